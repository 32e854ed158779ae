"""The format of grid.yaml: what a campaign varies, which loads it measures, and what it may cost."""

from typing import Annotated, Literal

from pydantic import Field

from tpudeploy.config.scalars import Duration
from tpudeploy.config.schema.base import Form, FormatVersion, Items, JsonValue, Section, Text, Time, Words
from tpudeploy.domain.accelerator import Backend

# Names of deployments are made of it, of a type of slice and of a number, and have at most 40 characters.
CampaignName = Annotated[
    str, Form("[a-z](?:[-a-z0-9]{0,18}[a-z0-9])?", "gemma-on-v6e: lower case, digits and dashes, at most 20 characters")
]
_DAY = Duration.parse("24h")
Count = Annotated[int, Field(ge=1, le=1_000_000)]
Counts = Annotated[Items[Count], Field(min_length=1)]


class CellsSpec(Section):
    """The loads: each number of streams with each length of prompts and of answers is a cell."""

    concurrency: Counts = Field(
        default=(1, 64), description="Concurrent streams. Default: 1 and 64.", examples=[[1, 16, 256]]
    )
    context: Counts = Field(default=(1024,), description="Tokens in a prompt. Default: 1024.", examples=[[128, 8192]])
    output: Counts = Field(default=(128,), description="Tokens in an answer. Default: 128.", examples=[[128]])
    window: Time | None = Field(
        default=None,
        description="How long each cell is measured. Default: three requests of each stream, at most 60s.",
        examples=["60s"],
    )
    repeats: Annotated[int, Field(ge=1, le=20)] = Field(
        default=1,
        description="How often each cell is measured, each time after another start of its server. Two or more give an"
        " interval. Default: 1.",
        examples=[3],
    )


class GridSpec(Section):
    """The grid of a campaign: each combination of its lists is a server, and each load on a server a cell."""

    version: FormatVersion = Field(description="The version of this format: 1.", examples=[1])
    name: CampaignName = Field(
        description="The name of the campaign. Its deployments are called NAME-TYPE, such as gemma-v6e-1.",
        examples=["gemma-on-v6e"],
    )
    base: Text = Field(
        description="The profile that every server is made of, relative to this file.", examples=["base.yaml"]
    )
    models: Words = Field(default=(), description="Values of model.id.", examples=[["google/gemma-4-E2B-it"]])
    slices: Words = Field(default=(), description="Values of tpu.type.", examples=[["v6e-1", "v6e-4"]])
    backends: Items[Literal[*tuple(map(str, Backend)), "auto"]] = Field(  # type: ignore[valid-type]  # the members
        (), description="Values of placement.backend.", examples=[["auto"]]
    )
    settings: dict[str, Annotated[Items[JsonValue], Field(min_length=1)]] = Field(
        default_factory=dict,
        description="Values of any key of the profile, by its path.",
        examples=[{"serving.padding_gap": [0, 512]}],
    )
    exclude: Items[dict[str, JsonValue]] = Field(
        default=(),
        description="Combinations to leave out: each is a mapping of paths to values that all have to match.",
        examples=[[{"model.id": "google/gemma-4-26B-A4B-it", "tpu.type": "v6e-1"}]],
    )
    cells: CellsSpec = Field(default_factory=CellsSpec, description="The loads, and how to measure them.")
    accuracy: Text | None = Field(
        default=None,
        description="Questions that each server answers once: arithmetic, lm_eval:TASK, or a JSONL file beside this "
        "one. Default: none.",
        examples=["arithmetic"],
    )
    chips: Annotated[int, Field(ge=1, le=100_000)] | None = Field(
        default=None,
        description="How many chips all slices may have at the same time. Default: Google's quota of each generation.",
        examples=[12],
    )
    budget: float | None = Field(
        default=None,
        gt=0,
        description="USD at list price that the whole campaign may cost. A slice that could exceed it until its end is"
        " not requested. Default: no limit.",
        examples=[20],
    )
    end: Time = Field(
        default_factory=lambda: _DAY, description="The longest duration of the campaign. Default: 24h.", examples=["8h"]
    )
