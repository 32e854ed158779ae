"""Words of the trade, and the entries of `tpudeploy explain` that they stand for, the likeliest first."""

from __future__ import annotations

from collections.abc import Mapping

_HBM = ("no-room-for-program", "weights-exceed-hbm", "no-room-for-kv", "no-room-while-compiling", "host-memory")
_RATE = ("rate-limit", "hub-rate-limit", "pull-rate-limit", "quota")
_DENIED = ("permission", "api-off", "act-as", "shared-network", "billing-off", "perimeter")
_CAPACITY = ("stockout", "preempted", "quota")
_KILLED = ("host-memory", "killed")

ENTRIES: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("oom", "out-of-memory", "memory", "hbm", "resource_exhausted"), _HBM),
    **dict.fromkeys(("429", "ratelimit", "throttled", "throttling", "too-many-requests"), _RATE),
    **dict.fromkeys(("403", "forbidden", "denied", "iam", "permission_denied"), _DENIED),
    **dict.fromkeys(("401", "unauthorized", "unauthenticated", "login"), ("credentials", "hub-unauthorized")),
    **dict.fromkeys(("404", "missing"), ("not-found", "network-missing", "image-missing", "model-not-found")),
    **dict.fromkeys(("400", "invalid_argument", "bad-request"), ("invalid", "type-unsupported", "runtime")),
    **dict.fromkeys(("409", "conflict"), ("exists", "container-name-conflict")),
    **dict.fromkeys(("412", "constraint", "org-policy", "orgpolicy"), ("organization-policy", "external-ip-forbidden")),
    **dict.fromkeys(("500",), ("internal",)),
    **dict.fromkeys(("502", "503", "unavailable"), ("unavailable", "stockout")),
    **dict.fromkeys(("504", "deadline_exceeded", "timeouts"), ("timeout", "ready-timeout", "engine-timeout")),
    **dict.fromkeys(("capacity", "no-capacity", "zone_resource_pool_exhausted"), _CAPACITY),
    **dict.fromkeys(("spot", "preemption", "preemptible", "evicted", "reclaimed"), ("preempted", "machine-preempted")),
    **dict.fromkeys(("quotas", "quota_exceeded", "limit"), ("quota", "quota-none", "quota-global", "address-quota")),
    **dict.fromkeys(("billing",), ("billing-off",)),
    **dict.fromkeys(("vpc", "shared-vpc", "xpn"), ("shared-network", "network-missing", "policy")),
    **dict.fromkeys(("vpc-sc", "vpcsc"), ("perimeter",)),
    **dict.fromkeys(("subnet", "subnetwork", "network"), ("policy", "network-missing", "shared-network")),
    **dict.fromkeys(("external-ip", "externalip"), ("external-ip-forbidden", "address-quota")),
    **dict.fromkeys(("cmek", "kms"), ("key-permission",)),
    **dict.fromkeys(
        ("reservation", "reservations"), ("reservation-required", "reservation-missing", "reservation-full")
    ),
    **dict.fromkeys(("scope",), ("scopes",)),
    **dict.fromkeys(("actas", "serviceaccount", "service-account"), ("act-as", "service-account-missing")),
    **dict.fromkeys(("gated", "license", "licence"), ("model-gated",)),
    **dict.fromkeys(
        ("hf", "huggingface", "hub", "hf_token", "token"), ("hub-unauthorized", "hub-token-invalid", "model-gated")
    ),
    **dict.fromkeys(("137", "sigkill", "oomkilled", "oom-killer", "oom_killer"), _KILLED),
    **dict.fromkeys(("143", "sigterm"), ("stopped",)),
    **dict.fromkeys(("vmem",), ("kernel-vmem",)),
    **dict.fromkeys(("smem",), ("no-room-in-kernel",)),
    **dict.fromkeys(("mosaic", "pallas", "kernel"), ("kernel-not-compiled", "kernel-vmem")),
    **dict.fromkeys(("torchax",), ("torchax-bug",)),
    **dict.fromkeys(
        ("libtpu", "topology", "accel0", "vfio"), ("runtime-topology", "runtime-missing", "chip-in-use", "no-chips")
    ),
    **dict.fromkeys(("lockfile", "tpu-in-use", "busy"), ("chip-in-use", "chip-lock-file")),
    **dict.fromkeys(("cuda", "nvidia", "gpu", "nccl"), ("cuda-image", "image-wrong-machine")),
    **dict.fromkeys(("ray", "placement-group"), ("ray-placement", "worker-missing", "head-unreachable")),
    **dict.fromkeys(("disk", "enospc", "no-space"), ("disk-full", "shared-memory", "disk-quota")),
    **dict.fromkeys(("shm",), ("shared-memory",)),
    **dict.fromkeys(("port", "eaddrinuse"), ("port-taken",)),
    **dict.fromkeys(("lora", "adapter"), ("adapter-rank", "adapter-missing")),
    **dict.fromkeys(
        ("quantization", "gptq", "awq", "bitsandbytes", "fp8"), ("quantization-unsupported", "quantization-dtype")
    ),
    **dict.fromkeys(("tokenizer",), ("tokenizer-missing", "tokenizer-unknown")),
    **dict.fromkeys(("chat-template", "template"), ("chat-template-missing", "chat-template-not-found")),
    **dict.fromkeys(("pydantic", "validationerror", "flag", "flags"), ("flag-refused", "variable-refused")),
    **dict.fromkeys(("pip", "package", "importerror", "modulenotfounderror"), ("package-missing", "pip-failed")),
    **dict.fromkeys(("metadata",), ("metadata-unreachable",)),
    **dict.fromkeys(
        ("docker", "pull", "imagepullbackoff", "manifest"), ("image-missing", "pull-rate-limit", "registry-denied")
    ),
    **dict.fromkeys(
        ("safetensors", "checkpoint", "weights"), ("checkpoint-incomplete", "checkpoint-corrupt", "weights-exceed-hbm")
    ),
    **dict.fromkeys(("tp", "tensor-parallel"), ("heads-not-divisible", "too-few-chips")),
    **dict.fromkeys(("context", "max_model_len"), ("length-exceeds-kv", "length-exceeds-model")),
    **dict.fromkeys(("mla",), ("mla-switches",)),
    **dict.fromkeys(("mamba", "hybrid"), ("pools-exceed-hbm",)),
}
