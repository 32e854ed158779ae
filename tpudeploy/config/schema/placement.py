"""Define `tpu` and `placement`: the slice, where it may be, how it is paid for and requested."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, Tag

from tpudeploy.config.schema.base import LIST, TEXT, TEXT_OR_LIST, Bytes, Form, Items, Section, Text, Time
from tpudeploy.domain.names import PROJECT, ZONE

RuntimeVersion = Annotated[str, Form(r"[a-z0-9][a-z0-9._-]*", "v2-alpha-tpuv6e")]


def _type_or_topology(schema: dict[str, Any]) -> None:
    """Let editors accept a generation with a topology instead of a type."""
    schema["anyOf"] = [{"required": schema.pop("required")}, {"required": ["generation", "topology"]}]


class TpuSpec(Section):
    """The slice."""

    model_config = ConfigDict(json_schema_extra=_type_or_topology)

    # A plain string: the catalogue knows the names, so that a new generation is one row there and nothing here.
    type: Text = Field(
        description="Accelerator type, by any of Google's names: the TPU API's (v6e-1, -4, -8; v5litepod-1, -4, "
        "-8; v5p-8 has 8 cores on 4 chips), Compute Engine's machine type (ct6e-standard-4t, "
        "ct5p-hightpu-1t-tpu, tpu7x-standard-4t), generation and chips (v5e-4), or generation and topology (v6e-2x4, "
        "tpu7x-2x2x2). Names counting TensorCores in some tools and chips in others are refused with both "
        "meanings (tpu7x-8). Slices of several hosts (v6e-16 and larger) run one server over Ray. Required, unless "
        "generation and topology name the slice. Source: Cloud TPU's `acceleratorType`.",
        examples=["v6e-4"],
    )
    generation: Text | None = Field(
        default=None,
        description="TPU generation, v5e, v5p, v6e or tpu7x: with topology, it names the slice instead of type. "
        "Default: none.",
        examples=["v6e"],
    )
    topology: Text | None = Field(
        default=None,
        description="How the chips of the slice are connected, e.g. 2x2 or 2x2x1: with generation, it names the slice "
        "instead of type. Default: none. Source: Cloud TPU's `acceleratorConfig.topology`.",
        examples=["2x2"],
    )
    runtime_version: RuntimeVersion | None = Field(
        default=None,
        description="The VM's software image; with backend: gce-instance, a family of images. Not with "
        "backend: auto where several APIs serve the type. Default: the generation's, v2-alpha-tpuv6e for v6e. Source: "
        "Cloud TPU's `runtimeVersion`.",
        examples=["v2-alpha-tpuv6e"],
    )
    boot_disk_size: Bytes | None = Field(
        default=None,
        description="Size of the boot disk, e.g. 200GiB; rounded up to whole GiB. Default: what image, weights and "
        "caches need, with room. Source: Cloud TPU's `bootDiskConfig.diskSizeGb`.",
        examples=["200GiB"],
    )


ZoneName = Annotated[str, Form(ZONE.pattern, "us-east5-b")]
_PROJECT = PROJECT.pattern
Project = Annotated[str, Form(_PROJECT, "my-project")]
Reservation = Annotated[
    str,
    Form(
        rf"projects/{_PROJECT}/locations/{ZONE.pattern}/reservations/[a-z](?:[a-z0-9-]{{0,61}}[a-z0-9])?",
        "projects/my-project/locations/us-east5-b/reservations/my-reservation",
    ),
]
ResourceName = Annotated[str, Form(r"[A-Za-z0-9][\w./:-]*", "default, or projects/P/global/networks/N")]
NetworkTag = Annotated[str, Form(r"[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?", "allow-vllm")]
ServiceAccount = Annotated[
    str, Form(r"[a-z0-9-]+@[a-z0-9.-]+\.gserviceaccount\.com", "vllm@my-project.iam.gserviceaccount.com")
]
ProvisioningModel = Literal["flex-start", "spot", "on-demand", "reserved"]


Zones = Annotated[
    Annotated[Literal["any"], Tag(TEXT)] | Annotated[Items[ZoneName], Field(min_length=1), Tag(LIST)], TEXT_OR_LIST
]


class NetworkSpec(Section):
    """How the VM is connected."""

    network: ResourceName = Field(
        default="default", description="VPC network. Default: default. Source: Cloud TPU's `networkConfig.network`."
    )
    subnetwork: ResourceName | None = Field(
        default=None,
        description="Subnetwork. Default: the network's in that region. Source: Cloud TPU's "
        "`networkConfig.subnetwork`.",
    )
    external_ip: bool = Field(
        default=True,
        description="Give the VM an external address; without one it needs Private Google Access and a way to the "
        "hub. Default: true. Source: Cloud TPU's `networkConfig.enableExternalIps`.",
    )
    tags: Items[NetworkTag] = Field(
        default=(),
        description="Network tags for firewall rules. Default: none. Source: Cloud TPU's `tags`.",
    )


class PlacementSpec(Section):
    """Where a slice can run, and how it is requested."""

    project: Project | None = Field(
        default=None,
        description="Google Cloud project. Default: GOOGLE_CLOUD_PROJECT, then the credentials' own; only cloud "
        "commands need it.",
        examples=["my-project"],
    )
    backend: Literal["queued-resource", "gce-instance", "auto"] = Field(
        default="queued-resource",
        description="Google's API to request a slice from: queued-resource (the TPU API), gce-instance (Compute "
        "Engine, with separate quota), or auto: all APIs for the type, at the "
        "same time. v5e is at the TPU API alone, tpu7x at Compute Engine alone. Default: queued-resource.",
        examples=["gce-instance", "auto"],
    )
    zones: Zones = Field(
        default="any",
        description="`any`, or zones in order of preference. Default: any, in the catalogue's order.",
        examples=["any", ["us-east5-b", "europe-west4-a"]],
    )
    provisioning: Items[ProvisioningModel] = Field(
        default=("on-demand",),
        min_length=1,
        description="Provisioning models in order of preference. Default: [on-demand], Google's own. Source: Cloud "
        "TPU's `provisioningModel`.",
        examples=[["flex-start", "spot"]],
    )
    reservation: Reservation | None = Field(
        default=None,
        description="The reservation for `reserved`. Default: none. Source: Cloud TPU's `reservationName`.",
        examples=["projects/my-project/locations/us-east5-b/reservations/my-reservation"],
    )
    max_run_duration: Time | None = Field(
        default=None,
        description="How long a slice may run before Google deletes it, e.g. 12h. Required with flex-start, at most "
        "7d. Default: no end. Source: Cloud TPU's `runDuration.maxRunDuration`.",
        examples=["12h"],
    )
    valid_until: Time | None = Field(
        default=None,
        description="How long a request may wait before it expires, e.g. 2h. Default: 2h. Source: Cloud "
        "TPU's `queueingPolicy.validUntilDuration`.",
        examples=["2h"],
    )
    max_parallel_requests: Annotated[int, Field(ge=1, le=64)] | None = Field(
        default=None,
        description="The number of places to request from at the same time for one replica; the first usable slice is "
        "kept and the other requests are deleted. Each counts against quota while it waits. Default: 3, and after "
        "refusals as many as max_search_price_per_hour allows.",
        examples=[8],
    )
    max_search_price_per_hour: Annotated[float, Field(gt=0)] | None = Field(
        default=None,
        description="USD per hour, at list price, of all slices requested at the same time for one replica: Google "
        "may grant them in the same minute. Places where one slice costs more are tried only if it does everywhere, "
        "one at a time. Default: about the price of four slices; no limit if max_parallel_requests is set.",
        examples=[20.0],
    )
    on_demand_floor: int | None = Field(
        default=None,
        ge=1,
        le=1000,
        description="How many replicas Google does not preempt: their slices are on-demand, or reserved where "
        "provisioning has that, whatever else provisioning lists for the others. Default: none.",
        examples=[1],
    )
    max_price_per_chip_hour: Annotated[float, Field(gt=0)] | None = Field(
        default=None,
        description="USD per chip and hour; pairs of zone and provisioning model with a higher list price are not "
        "tried. Default: no limit.",
        examples=[2.0],
    )
    network: NetworkSpec = Field(
        default_factory=NetworkSpec,
        description="How the VM is connected. Default: the default network, with an external address.",
    )
    service_account: ServiceAccount | None = Field(
        default=None,
        description="The VM's identity for reading secrets and pulling images. Default: the project's compute "
        "account. Source: Cloud TPU's `serviceAccount.email`.",
        examples=["vllm@my-project.iam.gserviceaccount.com"],
    )
    labels: dict[str, str] = Field(
        default_factory=dict,
        description="Labels of the node, for bills and searches; keys beginning with `tpudeploy` are reserved. "
        "Default: none. Source: Cloud TPU's `labels`.",
        examples=[{"team": "search"}],
    )
