"""Define the top-level keys that each tool's document has. Later versions only add keys, as those of `--json` do."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Tree = dict[str, Any]


class ToolDocument(BaseModel):
    """A document; it may have more keys than these."""

    model_config = ConfigDict(extra="allow")


class Help(ToolDocument):
    """What a server may do, on what, and by which names."""

    format: Literal["tpudeploy.help/1"]
    version: str
    project: Tree = Field(description="the folder, its profiles, where its states are, and the project of Google Cloud")
    may: Tree = Field(description="whether agents may change anything, and the ceiling of what they request in USD")
    rules: list[str]
    tools: Tree = Field(description="the names of the tools, by whether they only read, start, or end something")
    other_names: dict[str, str] = Field(description="names by which other agents know a tool; a call by them works")
    prompts: dict[str, str]


class Planned(ToolDocument):
    """The plan as `plan --json` prints it, and the id that this server keeps it under."""

    format: Literal["tpudeploy.plan/1"]
    plan_id: str = Field(description="for apply and destroy; this server keeps it until it ends")
    fingerprint: str = Field(description="identifies its effects, as `ci plan` writes it into a pull request")
    mode: str
    is_empty: bool
    applyable: bool = Field(description="false if nothing would change, or if a check forbids it")
    needs_consent: bool = Field(description="whether it ends or restarts anything, so that a person is asked")
    text: str = Field(description="as a person reads it")


class OperationProgress(ToolDocument):
    """A background operation. Poll with `after` = `last_event` until `state` is no longer `running`."""

    format: Literal["tpudeploy.operation/1"]
    operation_id: str
    does: Literal["apply", "destroy", "bench", "ab", "tune", "campaign"]
    state: Literal["running", "succeeded", "failed", "cancelled"]
    last_event: int
    events: list[Tree]
    result: Tree | None = Field(description="the report, or the benchmark run, once it has ended")
    error: Tree | None = Field(description="what stopped it, with exit_code and hint")


class TuningProposalDocument(ToolDocument):
    """What a tuning will do, and the id that this server keeps it under."""

    format: Literal["tpudeploy.tune/1"]
    id: str = Field(description="for tune_result, once it has begun")
    proposal_id: str = Field(description="for tune; this server keeps it until it ends")
    max_cost: float
    axes: list[Tree] = Field(description="what is varied")
    dropped: list[Tree] = Field(description="what is not, and why")
    needs_consent: bool
    text: str = Field(description="as a person reads it")


class CampaignProposalDocument(ToolDocument):
    """What a campaign will do, and the id that this server keeps it under."""

    format: Literal["tpudeploy.campaign_proposal/1"]
    proposal_id: str = Field(description="for campaign; this server keeps it until it ends")
    name: str = Field(description="for campaign_result, once it has begun")
    cells_left: int
    usd_likely: float | None
    usd_most: float | None
    budget: float | None
    obstacles: list[Tree] = Field(description="what cannot run, and why")
    needs_consent: bool
    text: str = Field(description="as a person reads it")


class AbProposalDocument(ToolDocument):
    """What an A/B will do, and the id that this server keeps it under."""

    format: Literal["tpudeploy.ab_proposal/1"]
    ab_id: str = Field(description="for ab; this server keeps it until it ends")
    restarts: int = Field(description="the number of restarts, during which nothing serves; a person is asked first")
    text: str = Field(description="as a person reads it")
