"""`lifecycle`, `budget`, `health` and `boot`: how a deployment changes, what it may cost, when it counts as serving."""

from typing import Annotated, Literal

from pydantic import Field

from tpudeploy.config.scalars import Duration
from tpudeploy.config.schema.base import EndTime, Form, Items, RunHours, Section, Text, Time, Words


class LifecycleSpec(Section):
    """How a deployment changes, and when it ends."""

    prevent_destroy: bool = Field(
        default=False, description="true: destroy and replace are refused. Default: false. Source: Terraform's word."
    )
    update: Literal["in-place", "blue-green"] = Field(
        default="in-place",
        description="How a server change is rolled out: in-place restarts the server on the same chips, with "
        "downtime; blue-green starts it on a second slice, sends clients there, and deletes the first once no client "
        "can use it; both are billed for that time. Default: in-place.",
    )
    replace: Literal["create-before-destroy", "destroy-before-create"] = Field(
        default="create-before-destroy",
        description="How a slice change is rolled out: create-before-destroy needs capacity for both, "
        "destroy-before-create serves nothing meanwhile. Default: create-before-destroy.",
    )
    on_run_end: Literal["release", "renew"] = Field(
        default="release",
        description="What happens at max_run_duration, when Google deletes the VM: release lets it end; renew requests "
        "a replacement early enough to take over before that, if an apply runs at that time. Default: "
        "release.",
    )
    max_unavailable: int | None = Field(
        default=None,
        ge=1,
        le=1000,
        description="With several replicas: how many of them may be out of service at one time because of a change. "
        "A replica stops taking new requests before it is changed, while the others serve. Default: 1.",
        examples=[1],
    )
    drain_timeout: Time | None = Field(
        default=None,
        description="The longest wait for in-flight requests of a draining slice, before it is "
        "restarted or deleted; what it still runs then is cut off. Default: 15m.",
        examples=["15m"],
    )
    end: EndTime | None = Field(
        default=None,
        description="When the deployment ends and its slices are deleted: so long after it first serves (`24h`), or at "
        "a time (`2026-12-24 18:00 Europe/Berlin`). The machine deletes its own request then, if its service account "
        "may; so do the next `apply`, and `apply -watch` while it runs. An ended deployment stays ended until the "
        "profile changes or `apply -start` starts it again. Default: null, never.",
        examples=["24h", "2026-12-24 18:00 Europe/Berlin"],
    )
    idle: Time | None = Field(
        default=None,
        description="The deployment ends after this time without a request, as with `end`. The engine's own counter "
        "decides, minus tpudeploy's checks. It never ends while a request runs, nor "
        "during a start or a change. With `hours`, it starts again at their next opening. Default: null, never.",
        examples=["30m"],
    )
    hours: RunHours | None = Field(
        default=None,
        description="Office hours of the deployment in a time zone: days (default: every day), opening and closing "
        "time, possibly on the next day. Its slices are deleted at the closing time, as "
        "with `end`, and the first `apply` in its hours, or `apply -watch`, requests them again. Default: null, "
        "always.",
        examples=["Mon-Fri 08:00-19:00 Europe/Berlin"],
    )
    ignore_changes: Words = Field(
        default=(),
        description="Paths a plan ignores changes of, e.g. serving.image. Default: none.",
        examples=[["serving.image"]],
    )


class BudgetSpec(Section):
    """What a deployment may cost at list price."""

    day: float | None = Field(
        default=None,
        ge=0,
        description="The most to spend in a day (UTC), in USD at list price. A slice that could exceed it is not "
        "requested: what was spent counts, and each slice until its end. Default: no limit.",
        examples=[20],
    )
    month: float | None = Field(
        default=None,
        ge=0,
        description="The most to spend in a month (UTC), in USD at list price. Default: no limit.",
        examples=[300],
    )


class HealthSpec(Section):
    """When a deployment counts as serving."""

    timeout: Time = Field(
        default=Duration.parse("45m"),
        description="The longest time from the grant until the server serves; a slower slice is kept, not "
        "deleted. Default: 45m.",
        examples=["45m"],
    )
    via: Literal["auto", "external", "internal", "iap", "node"] = Field(
        default="auto",
        description="How the endpoint is checked: at its external or internal address, through an IAP tunnel, or by the"
        " node's own report. Default: auto, in that order.",
    )
    prompt: Text = Field(
        default="Say hello.",
        description="The prompt used to check the server: a real completion, not only /health. Default: Say hello.",
    )


Script = Annotated[str, Form(r"[^\x00-\x1f\x7f]*\.sh", "parts/agent.sh: a path that ends in .sh")]


class BootSpec(Section):
    """Your own scripts for the machine."""

    before: Items[Script] = Field(
        default=(),
        description="Scripts to run before the image and the weights are fetched: paths relative to this file. Bash "
        "runs them as root, in this order, at every boot and at each change of the server, so each must be repeatable. "
        "If one fails, the boot fails. Default: none.",
        examples=[["parts/mount.sh"]],
    )
    after: Items[Script] = Field(
        default=(),
        description="Scripts to run once the server has completed a prompt, as in `before`. The deployment serves when "
        "they have ended. Default: none.",
        examples=[["parts/agent.sh"]],
    )
