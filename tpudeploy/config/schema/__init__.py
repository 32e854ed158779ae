"""The reference of the profile format: one frozen model a section, one description a key."""

from typing import Annotated, Self

from pydantic import Field

from tpudeploy.config.schema.base import Form, FormatVersion, Section, Text, TextOrWords, Words
from tpudeploy.config.schema.lifecycle import BootSpec, BudgetSpec, HealthSpec, LifecycleSpec
from tpudeploy.config.schema.placement import NetworkSpec, PlacementSpec, TpuSpec
from tpudeploy.config.schema.replicas import RouterSpec, ScaleSpec
from tpudeploy.config.schema.serving import ModelSpec, ServingSpec
from tpudeploy.domain.names import DEPLOYMENT_NAME

Name = Annotated[
    str, Form(DEPLOYMENT_NAME.pattern, "gemma4-26b-turbo: lower case, digits and dashes, at most 40 characters")
]


class ProfileSpec(Section):
    """A profile, version 1. Durations: 90s, 15m, 2h, 7d. Sizes: 10gb, 10GiB. Values may hold ${env:NAME}."""

    version: FormatVersion = Field(description="Version of this format. Required.", examples=[1])
    name: Name = Field(
        description="The deployment's name, ^[a-z]([-a-z0-9]{0,38}[a-z0-9])?$. Required.",
        examples=["gemma4-26b-turbo"],
    )
    extends: TextOrWords | None = Field(
        default=None,
        description="Profiles to build on: a path or a list of paths, relative to this file; acyclic, at "
        "most 5 deep. Maps deep-merge, lists and scalars replace, null deletes. Default: none.",
        examples=["base.yaml"],
    )
    model: ModelSpec = Field(description="The model to serve. Required: `model.id`.")
    tpu: TpuSpec = Field(description="The slice. Required: `tpu.type`.")
    serving: ServingSpec = Field(description="The container and the server in it. Required: `serving.image`.")
    boot: BootSpec = Field(
        default_factory=BootSpec,
        description="Your own scripts for the machine. Default: none.",
    )
    secrets: dict[str, str] = Field(
        default_factory=dict,
        description="Environment variable: Secret Manager secret id, or a full resource name with version. The VM "
        "reads them at boot with its own identity. Default: none.",
        examples=[{"HF_TOKEN": "hf-token"}],
    )
    placement: PlacementSpec = Field(
        default_factory=PlacementSpec,
        description="Where a slice can run and how it is requested. Default: on-demand, any zone.",
    )
    replicas: int = Field(
        default=1,
        ge=1,
        le=1000,
        description="The number of slices serving the model. With `scale`, the initial number. Default: 1.",
        examples=[2],
    )
    router: RouterSpec | None = Field(
        default=None,
        description="The router in front of the replicas. Default: none; clients then "
        "choose a replica from the list in endpoints/NAME.json.",
    )
    scale: ScaleSpec | None = Field(
        default=None,
        description="Bounds for `apply -watch` to change the number of replicas by load. `replicas` is then the "
        "initial number. Default: none; the number is fixed.",
    )
    lifecycle: LifecycleSpec = Field(
        default_factory=LifecycleSpec,
        description="How changes are rolled out. Default: the defaults of its keys.",
    )
    budget: BudgetSpec = Field(
        default_factory=BudgetSpec,
        description="What the deployment may cost at list price. It needs an end then: lifecycle.end, "
        "lifecycle.hours or placement.max_run_duration. A team's budgets are in budgets.yaml beside the states. "
        "Default: no limit.",
    )
    notify: Words = Field(
        default=(),
        description="Whom to tell that the deployment serves, failed or ended, and that 80 % of a budget are spent: "
        "https URLs, which get a signed JSON document, and commands, which get it on their standard input, without a "
        "shell. `apply`, `destroy` and `apply -watch` send it, whichever sees it first. Default: none.",
        examples=[["https://hooks.example/tpu", "python3 notify.py"]],
    )
    notify_key: Text | None = Field(
        default=None,
        description="Secret Manager id of the key that signs what `notify` sends to URLs, or a full resource name with "
        "version; the run reads it with your identity. Default: the environment variable TPUDEPLOY_NOTIFY_KEY.",
        examples=["notify-key"],
    )
    health: HealthSpec = Field(
        default_factory=HealthSpec,
        description="When a deployment counts as serving. Default: the defaults of its keys.",
    )

    def with_name(self, name: str) -> Self:
        """Return this profile under another name."""
        return self.model_copy(update={"name": name})


__all__ = [
    "BootSpec",
    "BudgetSpec",
    "HealthSpec",
    "LifecycleSpec",
    "ModelSpec",
    "NetworkSpec",
    "PlacementSpec",
    "ProfileSpec",
    "RouterSpec",
    "ScaleSpec",
    "Section",
    "ServingSpec",
    "TpuSpec",
]
