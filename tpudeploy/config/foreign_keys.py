"""Top-level keys of other tools' files, and the key or the page here that does the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class ForeignKey(NamedTuple):
    """Another tool's key: the key of the profile that does the same, None where no single one does, and advice."""

    key: str | None
    advice: str = ""

    def __str__(self) -> str:
        return self.advice if self.key is None else f"write {self.key}{self.advice}"


def _same(words: str, key: str | None, advice: str = "") -> Mapping[str, ForeignKey]:
    return dict.fromkeys(words.split(), ForeignKey(key, advice))


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
HINTS: Mapping[str, ForeignKey] = {
    **_same(
        "region regions zone location cloud infra availability_zones",
        "placement.zones",
        ", a list of zones such as [us-east5-a], or any",
    ),
    **_same("spot use_spot preemptible spot_policy interruptible", "placement.provisioning", ": [spot]"),
    **_same(
        "resources accelerators accelerator gpus gpu tpus instance_type machine_type chips hardware topology node_type "
        "instance_types",
        "tpu.type",
        ", such as v6e-4: it names the generation and the number of chips",
    ),
    **_same(
        "autoscaling autoscale scaling replica_policy min_replicas max_replicas service num_replicas num_nodes",
        "replicas",
        ", a number, and change it with `tpudeploy apply`: docs/how-to/replicas.md",
    ),
    **_same(
        "max_price max_cost price autostop idle_duration ttl",
        "budget",
        ", lifecycle.end or placement.max_price_per_chip_hour: docs/how-to/limit-the-cost.md",
    ),
    **_same("env envs environment variables", "serving.env", "; a secret belongs under secrets"),
    **_same("ports port expose", "serving.port", ": one server has one port"),
    **_same(
        "setup run command commands entrypoint cmd init script",
        None,
        "the server is `vllm serve` with serving.args; what to run before it belongs under serving.setup",
    ),
    **_same("args engine_args flags vllm extra_args", None, "flags of vLLM belong under serving.args"),
    **_same("image docker container image_id", "serving.image"),
    **_same(
        "volumes mounts file_mounts volume_mounts",
        "serving.volumes",
        "; model.mirror fetches weights from a bucket",
    ),
    **_same("disk disk_size boot_disk", "tpu.boot_disk_size"),
    **_same("shm_size shared_memory", "serving.shm_size"),
    **_same("network vpc subnet subnetwork external_ip", "placement.network"),
    **_same("project project_id gcp_project", "placement.project", ", or set GOOGLE_CLOUD_PROJECT"),
    **_same("service_account identity", "placement.service_account"),
    **_same("reservation reservations", "placement.reservation"),
    **_same("token hf_token api_key credentials auth", None, "name a secret under secrets, such as secrets.HF_TOKEN"),
    **_same(
        "max_duration max_run_duration timeout",
        "placement.max_run_duration",
        ", or health.timeout for the start",
    ),
    **_same("healthcheck health_check readiness_probe liveness_probe probes", "health"),
    **_same("tags metadata annotations", "placement.labels"),
    **_same("model_name model_id models", "model", ": {id: …}, one model for a profile"),
    **_same("load_balancer ingress gateway routing", "router", ": docs/how-to/replicas.md"),
    **_same(
        "apiVersion kind spec",
        None,
        "a profile is no Kubernetes manifest: `tpudeploy init` writes one, docs/how-to/gke.md goes the other way",
    ),
    **_same("services deploy", None, "a profile is no compose file: `tpudeploy init` writes one"),
    **_same(
        "backend state",
        None,
        "name where states are kept with --backend or in tpudeploy.toml: docs/how-to/share-the-state.md",
    ),
}
