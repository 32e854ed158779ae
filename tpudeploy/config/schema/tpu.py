"""`tpu`: the slice."""

from typing import Annotated

from pydantic import Field

from tpudeploy.config.schema.base import Bytes, Form, Section, Text

RuntimeVersion = Annotated[str, Form(r"[a-z0-9][a-z0-9._-]*", "v2-alpha-tpuv6e")]


class TpuSpec(Section):
    # A plain string: the catalogue knows the names, so that a new generation is one row there and nothing here.
    type: Text = Field(
        description="Accelerator type, generation and number of chips: v6e-1, v6e-4, v6e-8; v5litepod-1, -4, -8. "
        "v6e-16 and up have several hosts and are not supported yet. Required. Source: Cloud TPU's "
        "`acceleratorType`.",
        examples=["v6e-4"],
    )
    runtime_version: RuntimeVersion | None = Field(
        None,
        description="The VM's software image. Default: the generation's, v2-alpha-tpuv6e for v6e. Source: Cloud "
        "TPU's `runtimeVersion`.",
        examples=["v2-alpha-tpuv6e"],
    )
    boot_disk_size: Bytes | None = Field(
        None,
        description="Size of the boot disk, e.g. 200GiB; rounded up to whole GiB. Default: what image, weights and "
        "caches need, with room. Source: Cloud TPU's `bootDiskConfig.diskSizeGb`.",
        examples=["200GiB"],
    )
