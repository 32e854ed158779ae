"""The causes of an engine's death: one row a cause. Add a new one to the file of its group."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tpudeploy.boot_log.signatures import chips, flags, hbm, hub, kernels, model, process, registry, script
from tpudeploy.boot_log.signatures.row import Signature

# In each line the first row that matches names the cause. Our script's own sentences come first, then rows of memory,
# because they quote all others; the rows that fit any program come last.
GROUPS: Mapping[str, tuple[Signature, ...]] = {
    "script": script.ROWS,
    "memory": hbm.ROWS,
    "kernels": kernels.ROWS,
    "chips": chips.ROWS,
    "flags": flags.ROWS,
    "hub": hub.ROWS,
    "model": model.ROWS,
    "image": registry.ROWS,
    "process": process.ROWS,
}
SIGNATURES = tuple(row for rows in GROUPS.values() for row in rows)
HARDWARE_FAULTS = frozenset(row.name for row in SIGNATURES if row.is_hardware)

# Lines that look like trouble and are harmless.
HARMLESS: Mapping[re.Pattern[str], str] = {
    re.compile(r"Unknown vLLM environment variable detected: VLLM_(TPU_BUCKET_PADDING_GAP|XLA_CACHE_PATH)"): (
        "tpu_inference reads it; only vLLM's own list lacks it"
    ),
    re.compile(r"Unable to poll the TPU GCE Metadata"): "the metadata server answers 404 on these machines",
    re.compile(r"not registered in tpu-inference\. Falling back to vLLM-native Pytorch definition"): (
        "torchax runs the model: slower to start, and its programs take more of the HBM"
    ),
    re.compile(r"Found ulimit of \d+ and failed to automatically increase"): (
        "matters with thousands of connections: --ulimit nofile then"
    ),
}
