"""Define the top-level keys that each tool's document has. Later versions only add keys, as those of `--json` do."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Tree = dict[str, Any]


class Answer(BaseModel):
    """A document; it may have more keys than these."""

    model_config = ConfigDict(extra="allow")


class Validated(Answer):
    format: Literal["tpudeploy.diagnostics/1"]
    valid: bool
    profiles: list[Tree]


class Sized(Answer):
    format: Literal["tpudeploy.size/1"]
    name: str
    fits: bool | None = Field(description="null if unknown; `cannot_size_because` says why")
    diagnostics: list[Tree]


class Alerts(Answer):
    format: Literal["tpudeploy.alerts/1"]
    text: str = Field(description="the contents of the file: YAML, or JSON for a dashboard")
    remarks: list[str]


class Explained(Answer):
    format: Literal["tpudeploy.explanation/1"]
    code: str
    text: str


class Zones(Answer):
    format: Literal["tpudeploy.zones/1"]
    emulated: bool
    tables: list[Tree] = Field(description="a quota limit does not guarantee capacity")


class Doctor(Answer):
    format: Literal["tpudeploy.doctor/1"]
    emulated: bool
    counts: dict[str, int] = Field(description="the number of preconditions per grade; `fail` stops an apply")


class Status(Answer):
    format: Literal["tpudeploy.status/1"]
    emulated: bool
    deployments: list[Tree]


class Memory(Answer):
    details: list[Tree] = Field(description="by machine; `memory` in bytes of one chip, planned beside measured")


class Output(Answer):
    format: Literal["tpudeploy.output/1"]
    name: str
    endpoint: str = Field(description="the address, without a path")


class Garbage(Answer):
    format: Literal["tpudeploy.gc/1"]
    strays: list[Tree] = Field(description="resources in the cloud with our mark, and whether a deployment needs them")
    unreachable: list[str]


class Drift(Answer):
    """A plan that would only record the drift."""

    format: Literal["tpudeploy.plan/1"]
    is_empty: bool = Field(description="whether nothing changed outside")
    resource_drift: list[Tree]


class Planned(Answer):
    """The plan as `plan --json` prints it, and the id that this server keeps it under."""

    format: Literal["tpudeploy.plan/1"]
    plan_id: str = Field(description="for apply and destroy; this server keeps it until it ends")
    fingerprint: str = Field(description="identifies its effects, as `ci plan` writes it into a pull request")
    mode: str
    is_empty: bool
    applyable: bool = Field(description="false if nothing would change, or if a check forbids it")
    needs_consent: bool = Field(description="whether it ends or restarts anything, so that a person is asked")
    text: str = Field(description="as a person reads it")


class Operation(Answer):
    """A background operation. Poll with `after` = `last_event` until `state` is no longer `running`."""

    format: Literal["tpudeploy.operation/1"]
    operation_id: str
    does: Literal["apply", "destroy", "bench", "ab"]
    state: Literal["running", "succeeded", "failed", "cancelled"]
    last_event: int
    events: list[Tree]
    result: Tree | None = Field(description="the report, or the benchmark run, once it has ended")
    error: Tree | None = Field(description="what stopped it, with exit_code and hint")


class Completion(Answer):
    format: Literal["tpudeploy.query/1"]
    answer: str
    ttft_seconds: float
    total_seconds: float
    prompt_tokens: int | None
    completion_tokens: int | None
    tokens_per_second: float | None


class Metrics(Answer):
    format: Literal["tpudeploy.metrics/1"]
    replicas: list[Tree]


class Logs(Answer):
    format: Literal["tpudeploy.logs/1"]
    logs: list[Tree] = Field(description="by machine: the root cause with what to do, or how long each phase took")


class Diagnosed(Logs):
    """Our findings are in `logs`. A draft is written by a model and is not verified."""

    draft: Tree | None = Field(description="what the served model wrote; `is_checked` is always false")
    no_draft: Tree | None = Field(description="why there is none")


class Runs(Answer):
    format: Literal["tpudeploy.runs/1"]
    runs: list[Tree]


class Run(Answer):
    format: Literal["tpudeploy.run/1"]
    id: str
    subject: Tree
    cells: list[Tree] = Field(description="by streams, context and output; `status` says whether to trust each")


class Comparison(Answer):
    format: Literal["tpudeploy.comparison/1"]
    runs: list[Tree]


class AbProposal(Answer):
    """What an A/B will do, and the id that this server keeps it under."""

    format: Literal["tpudeploy.ab_proposal/1"]
    ab_id: str = Field(description="for ab; this server keeps it until it ends")
    restarts: int = Field(description="the number of restarts, during which nothing serves; a person is asked first")
    text: str = Field(description="as a person reads it")


class Ab(Answer):
    format: Literal["tpudeploy.ab/1"]
    keep: Literal["A", "B"] | None = Field(description="which value to keep; null if there are too few repeats")
    reason: str
    overall: Tree | None = Field(
        description="B to A less 1, with a 95 % interval over repeats: the verdict rests on it"
    )
    rows: list[Tree] = Field(description="by cell and measure; `finding` holds for all of them together")


class Recommendation(Answer):
    format: Literal["tpudeploy.recommendation/1"]
    choices: list[Tree] = Field(description="best first; empty if nothing would serve the workload")
    profile: str | None = Field(description="the profile for the best, as YAML")


class Verified(Answer):
    format: Literal["tpudeploy.verify/1"]
    holds: bool
    settings: list[Tree]
