"""A file of another tool becomes a valid profile, with a list of what it doesn't have, or an error at a place.

Those in tests/field/sources are published: AI-Hypercomputer/tpu-recipes c8cfe2f (docker-compose-gemma4-31B,
gemma4-server, qwen3_5-server), GoogleCloudPlatform/kubernetes-engine-samples (gke-llama3-70b-tpu from ai-ml/vllm-tpu,
gke-gemma3-gpu from ai-ml/llm-serving-gemma), kubernetes-sigs/lws docs/examples/vllm/TPU (lws-tpu), the service of
dstack's TPU example (dstack-nightly), and the command of vllm-project/tpu-inference issue 1850 (m1850).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from command_line import command
from drafts import SECRETS, at, init

PUBLISHED, OWN = Path(__file__).parents[2] / "field" / "sources", Path(__file__).parent / "sources"
ROWS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "docker-compose-gemma4-31B.yml": (
        {
            "model.id": "google/gemma-4-31B-it",
            "tpu.type": "v6e-8",
            "serving.image": "vllm/vllm-tpu:gemma4",
            "serving.tensor_parallel_size": 8,
            "serving.max_model_len": 16384,
            "serving.shm_size": "16g",
            "serving.args.disable_chunked_mm_input": True,
            "secrets.HF_TOKEN": "hf-token",
        },
        ("`privileged`, `network_mode`: tpudeploy starts",),
    ),
    "gemma4-server.yaml": (
        {
            "tpu.type": "tpu7x-4",
            "placement.backend": "gce-instance",
            "serving.data_parallel_size": 4,
            "serving.block_size": 256,
            "serving.args.limit_mm_per_prompt": {"image": 0, "video": 0, "audio": 0},
            "serving.env.USE_BATCHED_RPA_KERNEL": "1",
            "serving.volumes./var/lib/tpudeploy/data-volume": "/data",
        },
        ("StorageClass `hyperdisk-balanced-tpu`", "PersistentVolumeClaim `hd-claim-v2`", "volume `data-volume`"),
    ),
    "qwen3_5-server.yaml": (
        {"model.id": "Qwen/Qwen3.5-397B-A17B-FP8", "tpu.type": "tpu7x-4", "serving.args.enable_expert_parallel": True},
        ("Service `vllm-qwen3-5-service`",),
    ),
    "gke-llama3-70b-tpu.yaml": (
        {"tpu.type": "v6e-8", "serving.xla_cache_path": "/data", "serving.args.download_dir": "/data"},
        ("bucket `GSBUCKET` at /data: write model.mirror", "serviceAccountName `KSA_NAME`", "`VLLM_USE_V1`"),
    ),
    "gke-gemma3-gpu.yaml": (
        {"model.id": "google/gemma-3-27b-it", "tpu.type": "v6e-8", "serving.env": None},
        ("8 x nvidia-l4: a TPU slice takes their place", "`--swap-space`"),
    ),
    "dstack-nightly.dstack.yml": (
        {
            "model.id": "meta-llama/Meta-Llama-3.1-8B-Instruct",
            "tpu.type": "v5litepod-4",
            "serving.max_model_len": 4096,
            "serving.port": 8000,
            "serving.env": None,
        },
        ("HF_TOKEN: Only its name is written",),
    ),
    "m1850.sh": (
        {"tpu.type": "v6e-4", "serving.hbm_utilization": 0.5, "serving.port": 7000},
        ("`--no-async-scheduler`: vLLM 0.32.0 has no such flag. Write `async_scheduling: false`",),
    ),
    "sky-envs.yaml": (
        {
            "name": "qwen-serve",
            "model.id": "Qwen/Qwen3-32B",
            "tpu.type": "v6e-8",
            "tpu.boot_disk_size": "500GiB",
            "serving.port": 8081,
            "serving.max_model_len": 8192,
            "placement.provisioning": ["spot"],
            "placement.zones": ["us-east5-b"],
            "replicas": 2,
        },
        ("`--tensor-parallel-size`: its value depends on $SKYPILOT_NUM_GPUS_PER_NODE", "`file_mounts`", "`setup`"),
    ),
    "sky-any-of.yaml": ({"tpu.type": "v6e-4", "placement.zones": ["europe-west4-a", "us-east5-a"]}, ()),
    "dstack-service.dstack.yml": (
        {
            "tpu.type": "v6e-8",
            "placement.provisioning": ["spot", "on-demand"],
            "placement.max_run_duration": "6h",
            "serving.shm_size": "16gb",
            "serving.port": 8000,
        },
        ("`replicas: 1..4`: write scale", "volume `cache:/root/.cache/huggingface`"),
    ),
    "dstack-gpu.dstack.yml": ({"tpu.type": "v6e-1"}, ("`A100`: a TPU slice takes the place of GPUs",)),
    "compose-gpu.yml": (
        {
            "name": "vllm-openai",
            "serving.port": 9000,
            "serving.args.limit_mm_per_prompt": {"image": 2},
            "serving.volumes./var/lib/tpudeploy/models": "/models",
        },
        ("service `proxy`: a profile has the server alone",),
    ),
    "compose-merge.yml": ({"serving.image": "vllm/vllm-tpu:v0.32.0", "serving.env.HF_HOME": "/data"}, ()),
    "compose-secrets.yml": (
        {"secrets": {"HF_TOKEN": "hf-token", "DB_PASSWORD": "db-password", "VLLM_API_KEY": "vllm-key"}},
        (),
    ),
    "k8s-statefulset.yaml": (
        {"tpu.type": "v6e-4", "replicas": 3, "serving.port": 9000, "serving.setup": ["pip install foo"]},
        ("Secret `s`: its values are not read", "initContainer `dl`", "POD_IP: the cluster gives its value"),
    ),
    "k8s-jobset.yaml": (
        {
            "tpu.type": "v6e-16",
            "serving.tensor_parallel_size": 4,
            "serving.args.pipeline_parallel_size": 4,
            "placement.provisioning": ["spot"],
        },
        (),
    ),
    "k8s-kserve.yaml": (
        {
            "name": "qwen-small",
            "model.id": "Qwen/Qwen2.5-3B-Instruct",
            "tpu.type": "v6e-4",
            "replicas": 2,
            "secrets.HF_TOKEN": "hf-token",
            "serving.env": None,
        },
        ("HF_TOKEN: Only its name is written", "`imagePullSecrets`: a machine has credentials for Artifact Registry"),
    ),
    "two-hosts.sh": (
        {"model.id": "Qwen/Qwen3-32B", "tpu.type": "v6e-8", "serving.env": None},
        ("`JAX_COORDINATOR_ADDRESS`, `JAX_NUM_PROCESSES`, `TPU_WORKER_ID`: the image or the runtime of the machine",),
    ),
    "startup.sh": (
        {
            "model.id": "google/gemma-4-31B-it",
            "tpu.type": "v6e-8",
            "serving.image": "vllm/vllm-tpu:v0.32.0",
            "serving.volumes./mnt/disks/persist": "/root/.cache/huggingface",
        },
        (),
    ),
    "readme-steps.sh": (
        {
            "tpu.type": "v6e-8",
            "placement.project": "my-proj-123",
            "placement.zones": ["us-east5-b"],
            "placement.max_run_duration": "4h",
            "serving.env": {"HF_HOME": "/dev/shm"},
            "serving.max_model_len": 2048,
        },
        (),
    ),
    "unit.service": ({"model.id": "Qwen/Qwen3-8B", "secrets.HF_TOKEN": "hf-token"}, ()),
    "cloud-init.yaml": ({"model.id": "Qwen/Qwen3-8B"}, ()),
    "prefill-decode.sh": ({"serving.port": 8100}, ("on line 2: it starts another server",)),
}
STOPS: dict[str, tuple[str, int]] = {
    "sky-two-meanings.yaml": ('"v7x-8" has two meanings', 3),
    "dstack-v2.dstack.yml": ('"v2-8" is not supported', 6),
    "k8s-rayservice.yaml": ("No workload starts vLLM: the file has RayService", 1),
    "open-bracket.yaml": ("did not find expected node content", 2),
    "lws-tpu.yaml": ("The catalogue has no v5e slice of topology 4x4", 22),
}


def file(name: str) -> Path:
    return next(folder / name for folder in (PUBLISHED, OWN) if (folder / name).exists())


@pytest.mark.parametrize("name", ROWS)
def test_a_file_becomes_a_valid_profile(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    keys, notes = ROWS[name]
    profile, printed = init(tmp_path, capsys, "-from-file", str(file(name)))
    assert {key: at(profile, key) for key in keys} == keys
    for note in notes:
        assert note in printed
    text = (tmp_path / "p.yaml").read_text(encoding="utf-8")
    for secret in SECRETS:
        assert secret not in printed + text


def test_what_is_in_the_profile_is_not_said_to_be_missing_from_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "compose.yaml").write_text(
        "services:\n  llm:\n    image: vllm/vllm-tpu:v0.32.0\n    command: --model Qwen/Qwen3-8B --api-key $KEY\n"
        f"    environment: {{HF_TOKEN: {SECRETS[0]}}}\n    volumes: [./hub:/data]\n"
        "    deploy: {replicas: 3, restart_policy: {condition: any}}\n",
        encoding="utf-8",
    )
    profile, printed = init(tmp_path, capsys, "-from-file", "compose.yaml")
    assert (profile["replicas"], profile["secrets"].keys()) == (3, {"HF_TOKEN", "VLLM_API_KEY"})
    missing, _, changed = printed.partition("Carried over with a change:")
    assert "`deploy.restart_policy`" in missing
    for each in ("HF_TOKEN", "VLLM_API_KEY", "./hub:/data", "replicas"):
        assert each not in missing
        assert each in changed or each == "replicas"
    assert "# Carried over with a change:" in (tmp_path / "p.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", STOPS)
def test_what_cannot_be_read_is_an_error_at_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    message, line = STOPS[name]
    result = command(tmp_path, capsys, "init", "-from-file", str(file(name)), "p.yaml")
    assert (result.code, result.out) == (1, "")
    assert message in result.err
    assert f"{name}:{line}:" in result.err
    assert not [*tmp_path.iterdir()]


def test_every_file_has_a_row() -> None:
    assert {*ROWS, *STOPS} == {path.name for folder in (PUBLISHED, OWN) for path in folder.iterdir()}


def test_a_slice_of_several_hosts_can_be_named_instead(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profile, _ = init(tmp_path, capsys, "-from-file", str(file("lws-tpu.yaml")), "-type", "v6e-16")
    assert (at(profile, "tpu.type"), at(profile, "serving.shm_size"), profile["replicas"]) == ("v6e-16", "30g", 2)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("deep.yaml", "services: " + "[" * 5_000, "Nested deeper than 40 levels"),
        ("big.yaml", "a: " + "x" * 3_000_000, "at most 1"),
        ("anchors.yaml", "a: &a [x]\n" + "".join(f"b{n}: &b{n} [*a, *a]\n" for n in range(99)), "No known tool"),
        ("many.yaml", "---\na: 1\n" * 300, "more than 200 documents"),
        ("latin.yaml", "services: \udcff", "UTF-8"),
        ("profile.yaml", "version: 1\nname: x\nmodel: {id: a/b}\ntpu: {type: v6e-1}", "This is a profile already"),
        ("empty.yaml", "", "nothing to read"),
        ("list.yaml", "- a\n- b", "Expected a mapping"),
        ("compose.yaml", "services: {db: {image: postgres}}", "No service of this file starts vLLM"),
        ("sky.yaml", "run: python train.py\nresources: {accelerators: tpu-v6e-8}", "no command that starts vLLM"),
        ("dstack.yaml", "type: task\ncommands: ['vllm serve \"x']\n", "The quote that opens here"),
        ("bom.sh", "\ufeff#!/bin/bash\nvllm serve 'x\n", "The quote that opens here"),
        ("loop.yaml", "apiVersion: v1\nkind: Pod\nspec: {containers: [{image: vllm/vllm-tpu}]}", "No workload starts"),
    ],
)
def test_a_hostile_file_ends_in_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, content: str, message: str
) -> None:
    (tmp_path / name).write_bytes(content.encode("utf-8", "surrogateescape"))
    result = command(tmp_path, capsys, "init", "-from-file", str(tmp_path / name), "p.yaml")
    assert result.code == 1
    assert message in result.err, result.err
    assert not (tmp_path / "p.yaml").exists()


@pytest.mark.parametrize("name", ["nothing.yaml", "."])
def test_a_file_that_is_not_there_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    result = command(tmp_path, capsys, "init", "-from-file", name)
    assert result.code == 1
    assert "Traceback" not in result.all
