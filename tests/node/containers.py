"""Containers and deployments to render: one like the published one, others bent from it."""

from __future__ import annotations

from dataclasses import replace

from tpudeploy.catalog import accelerator_type
from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.deployment import Container, Deployment, HealthGoal, Lifecycle, Network, Script, SecretRef, Via

HF_TOKEN = SecretRef(variable="HF_TOKEN", secret="hf-token")

CONTAINER = Container(
    name="vllm-gemma4",
    image="vllm/vllm-tpu:nightly",
    serve=("vllm", "serve", "google/gemma-4-E2B-it", "--max-model-len", "16384"),
    setup=(),
    environment={"HF_HOME": "/dev/shm"},
    secrets=(),
    volumes=(("/dev/shm", "/dev/shm"),),
    shm_size="10gb",
    port=8000,
)


def container(**changes: object) -> Container:
    return replace(CONTAINER, **changes)  # type: ignore[arg-type]  # a test names the fields it bends


def deployment(holds: Container = CONTAINER, *, prompt: str = "Say hello.", timeout: float = 60.0) -> Deployment:
    kind = accelerator_type("v6e-1")
    assert kind is not None
    return Deployment(
        name="gemma4",
        replicas=1,
        project="my-project",
        model_id="google/gemma-4-E2B-it",
        accelerator=kind,
        runtimes={Backend.QUEUED_RESOURCE: "v2-alpha-tpuv6e"},
        boot_disk_gib=200,
        max_parallel_requests=1,
        candidates=(),
        reservation=None,
        max_run_seconds=None,
        valid_until_seconds=7200.0,
        network=Network(network=None, subnetwork=None, external_ip=True, tags=()),
        service_account=None,
        labels={},
        container=holds,
        health=HealthGoal(timeout_seconds=timeout, via=Via.AUTO, prompt=prompt),
        lifecycle=Lifecycle(prevent_destroy=False, create_before_destroy=True, ignore_changes=()),
        startup_script=Script(""),
        attributes={},
    )
