"""Top-level keys of other tools' files, and the key or the page here that does the same."""

from __future__ import annotations

from collections.abc import Mapping

_ZONES = "write placement.zones, a list of zones such as [us-east5-a], or any"
_CHIPS = "write tpu.type, such as v6e-4: it names the generation and the number of chips"
_COMMAND = "the server is `vllm serve` with serving.args; what to run before it belongs under serving.setup"
_REPLICAS = "write replicas, a number, and change it with `tpudeploy apply`: docs/how-to/replicas.md"
_COST = "write budget, lifecycle.end or placement.max_price_per_chip_hour: docs/how-to/limit-the-cost.md"
_FLAGS = "flags of vLLM belong under serving.args"

# Words of Google's and other tools for a value, and the word of the format. The key that has the choice takes it.
VALUES: Mapping[str, str] = {
    **dict.fromkeys(("preemptible", "spot-vm", "spot_vm", "interruptible"), "spot"),
    **dict.fromkeys(
        ("dws", "flex", "flexstart", "flex_start", "flex-start-vm", "dynamic-workload-scheduler"), "flex-start"
    ),
    **dict.fromkeys(("ondemand", "on_demand", "standard", "regular", "default"), "on-demand"),
    **dict.fromkeys(("reservation", "committed", "specific"), "reserved"),
    **dict.fromkeys(("queued-resources", "queued_resource", "queued_resources", "tpu-vm", "tpu"), "queued-resource"),
    **dict.fromkeys(("gce", "compute-engine", "compute", "instance", "vm", "gke"), "gce-instance"),
    **dict.fromkeys(("bf16", "bfloat"), "bfloat16"),
    **dict.fromkeys(("fp16", "half"), "float16"),
    **dict.fromkeys(("fp8_e4m3fn", "float8_e4m3fn", "float8"), "fp8"),
}
# Options of docker and flags of other servers that people write under serving.args. Sources: docker run's reference,
# sglang's server_args.py.
FLAGS: Mapping[str, str] = {
    **dict.fromkeys(
        ("privileged", "net", "network", "rm", "it", "d", "ipc", "ulimit", "gpus"),
        "leave it out: tpudeploy starts the container with the machine's network and its TPUs",
    ),
    "name": "write serving.container_name, or nothing: it is the deployment's name",
    **dict.fromkeys(("v", "volume", "mount"), "write serving.volumes"),
    **dict.fromkeys(("e", "env", "env_file"), "write serving.env; a secret belongs under secrets"),
    **dict.fromkeys(("p", "publish"), "write serving.port: the container has the machine's network"),
    "shm_size": "write serving.shm_size",
    **dict.fromkeys(("tp", "tp_size"), "write serving.tensor_parallel_size"),
    **dict.fromkeys(("dp", "dp_size"), "write serving.data_parallel_size"),
    "mem_fraction_static": "write serving.hbm_utilization",
    **dict.fromkeys(("context_length", "max_total_tokens", "max_length"), "write serving.max_model_len"),
    "max_running_requests": "write serving.max_num_seqs",
    "chunked_prefill_size": "write serving.max_num_batched_tokens",
    "model_path": "write model.id",
}
HINTS: Mapping[str, str] = {
    **dict.fromkeys(("region", "regions", "zone", "location", "cloud", "infra", "availability_zones"), _ZONES),
    **dict.fromkeys(
        ("spot", "use_spot", "preemptible", "spot_policy", "interruptible"),
        "write placement.provisioning: [spot]",
    ),
    **dict.fromkeys(
        ("resources", "accelerators", "accelerator", "gpus", "gpu", "tpus", "instance_type", "machine_type"),
        _CHIPS,
    ),
    **dict.fromkeys(("chips", "hardware", "topology", "node_type", "instance_types"), _CHIPS),
    **dict.fromkeys(
        ("autoscaling", "autoscale", "scaling", "replica_policy", "min_replicas", "max_replicas"),
        _REPLICAS,
    ),
    **dict.fromkeys(("service", "num_replicas", "num_nodes"), _REPLICAS),
    **dict.fromkeys(("max_price", "max_cost", "price", "autostop", "idle_duration", "ttl"), _COST),
    **dict.fromkeys(("env", "envs", "environment", "variables"), "write serving.env; a secret belongs under secrets"),
    **dict.fromkeys(("ports", "port", "expose"), "write serving.port: one server has one port"),
    **dict.fromkeys(("setup", "run", "command", "commands", "entrypoint", "cmd", "init", "script"), _COMMAND),
    **dict.fromkeys(("args", "engine_args", "flags", "vllm", "extra_args"), _FLAGS),
    **dict.fromkeys(("image", "docker", "container", "image_id"), "write serving.image"),
    **dict.fromkeys(
        ("volumes", "mounts", "file_mounts", "volume_mounts"),
        "write serving.volumes; model.mirror fetches weights from a bucket",
    ),
    **dict.fromkeys(("disk", "disk_size", "boot_disk"), "write tpu.boot_disk_size"),
    **dict.fromkeys(("shm_size", "shared_memory"), "write serving.shm_size"),
    **dict.fromkeys(("network", "vpc", "subnet", "subnetwork", "external_ip"), "write placement.network"),
    **dict.fromkeys(("project", "project_id", "gcp_project"), "write placement.project, or set GOOGLE_CLOUD_PROJECT"),
    **dict.fromkeys(("service_account", "identity"), "write placement.service_account"),
    **dict.fromkeys(("reservation", "reservations"), "write placement.reservation"),
    **dict.fromkeys(
        ("token", "hf_token", "api_key", "credentials", "auth"),
        "name a secret under secrets, such as secrets.HF_TOKEN",
    ),
    **dict.fromkeys(
        ("max_duration", "max_run_duration", "timeout"),
        "write placement.max_run_duration, or health.timeout for the start",
    ),
    **dict.fromkeys(("healthcheck", "health_check", "readiness_probe", "liveness_probe", "probes"), "write health"),
    **dict.fromkeys(("tags", "metadata", "annotations"), "write placement.labels"),
    **dict.fromkeys(("model_name", "model_id", "models"), "write model: {id: …}, one model for a profile"),
    **dict.fromkeys(("load_balancer", "ingress", "gateway", "routing"), "write router: docs/how-to/replicas.md"),
    **dict.fromkeys(
        ("apiVersion", "kind", "spec"),
        "a profile is no Kubernetes manifest: `tpudeploy init` writes one, docs/how-to/gke.md goes the other way",
    ),
    **dict.fromkeys(("services", "deploy"), "a profile is no compose file: `tpudeploy init` writes one"),
    **dict.fromkeys(
        ("backend", "state"),
        "name where states are kept with --backend or in tpudeploy.toml: docs/how-to/share-the-state.md",
    ),
}
