"""Define `boot`: scripts of the project that run on the machine."""

from typing import Annotated

from tpudeploy.config.schema.base import Field, Form, Section

Script = Annotated[str, Form(r"[^\x00-\x1f\x7f]*\.sh", "parts/agent.sh: a path that ends in .sh")]


class BootSpec(Section):
    before: tuple[Script, ...] = Field(
        default=(),
        description="Scripts to run before the image and the weights are fetched: paths relative to this file. Bash "
        "runs them as root, in this order, at every boot and at each change of the server, so each must be repeatable. "
        "If one fails, the boot fails. Default: none.",
        examples=[["parts/mount.sh"]],
    )
    after: tuple[Script, ...] = Field(
        default=(),
        description="Scripts to run once the server has completed a prompt, as in `before`. The deployment serves when "
        "they have ended. Default: none.",
        examples=[["parts/agent.sh"]],
    )
