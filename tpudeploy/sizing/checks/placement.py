"""Checks of places and of the way to the endpoint: where to ask, and who can reach what."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping

from tpudeploy import catalog
from tpudeploy.catalog import api_paths, releases
from tpudeploy.catalog.backends import BACKENDS
from tpudeploy.domain.deployment import API_KEY, Deployment
from tpudeploy.domain.diagnostics import Diagnostic
from tpudeploy.domain.task import Task
from tpudeploy.sizing.checks.check import arguments, check_for, error, warning

_GOOGLE = re.compile(r"([a-z0-9-]+\.)*(pkg\.dev|gcr\.io)/")


@check_for(
    "TPU2003",
    "No zone and provisioning model to try",
    "No combination of placement.zones and placement.provisioning is within placement.max_price_per_chip_hour at "
    "list price, or `zones: any` was used for a type without zones in the catalog. Name the zones in that case.",
    "placement: {max_price_per_chip_hour: 2.00}",
)
def no_place(deployment: Deployment) -> Iterator[Diagnostic]:
    has_floor = not deployment.on_demand_floor or bool(deployment.floor_candidates)
    if deployment.candidates and has_floor:
        return
    price = deployment.attributes.get("placement.max_price_per_chip_hour")
    path = "placement.zones" if price is None else "placement.max_price_per_chip_hour"
    reason = "no zone is known for this type"
    if price is not None:
        reason = f"all cost more than ${price} a chip and hour{_unknown_prices(deployment)}"
    hint = "Name zones, or allow another provisioning model or price."
    floor = "" if deployment.candidates == () else " for the replicas of placement.on_demand_floor"
    yield error(deployment, f"{deployment.name} has no place to ask{floor}: {reason}.", path=path, hint=hint)


def _unknown_prices(deployment: Deployment) -> str:
    """Return that a provisioning model has no known price, which then counts as that of on-demand."""
    generation = catalog.generation(deployment.accelerator.generation)
    models = {model for prices in generation.prices.values() for model in prices}
    wishes = deployment.attributes.get("placement.provisioning")
    unknown = [str(model) for model in wishes if model not in models] if isinstance(wishes, list) else []
    if not unknown:
        return ""
    names = " and ".join(unknown)
    return f" (the price of {names} is not known for {generation.name}, and counts as that of on-demand)"


def _open_paths(release: str | None, task: Task, flags: Container[str], variables: Mapping[str, str]) -> str:
    """Return, as a sentence, the paths that answer without the API key."""
    groups = list(api_paths.served(release, api_paths.words_of(task), flags, variables))
    model, others = (", ".join(api_paths.open_paths(groups, release, runs_model=runs)) for runs in (True, False))
    return f"Without the key, {model} run the model. These answer too: {others}."


_PROXY = "To close them, put a proxy in front and let it pass only the paths you list."


@check_for(
    "TPU2001",
    "An endpoint without an API key",
    "The machine gets an external address and vLLM requires no key. Google Cloud's default network lets no one "
    "in, but one firewall rule for the port opens the model to everyone it admits. Add a key in Secret Manager "
    "(vLLM, the health probe and `tpudeploy query` use it), or set placement.network.external_ip: false. A key "
    f"guards only paths that begin with {', '.join(api_paths.guarded_prefixes())} (vLLM {releases.NEWEST}). "
    f"{_open_paths(None, Task.UNKNOWN, (), {})} {_PROXY}",
    f"secrets: {{{API_KEY}: vllm-key}}",
)
def open_endpoint(deployment: Deployment) -> Iterator[Diagnostic]:
    if not deployment.network.external_ip or deployment.container.api_key is not None:
        return
    message = f"{deployment.name} has an external address and requires no API key."
    hint = f"Add secrets.{API_KEY}, or set placement.network.external_ip: false."
    yield warning(deployment, message, path=f"secrets.{API_KEY}", hint=hint)


@check_for(
    "TPU2010",
    "Paths that the API key doesn't guard",
    "vLLM checks the key by the beginning of a path, and a release decides which paths it checks. Anyone who reaches "
    f"the port can use the others. {_PROXY} Keep the port closed to everyone else: with placement.network.external_ip: "
    "false, only your VPC network reaches it. The warning stays, because tpudeploy can't see your proxy.",
    "placement: {network: {external_ip: false}}",
)
def open_paths(deployment: Deployment) -> Iterator[Diagnostic]:
    if deployment.container.api_key is None:
        return
    release = deployment.engine.release
    flags = [name for name, (_, value) in arguments(deployment).items() if value not in (None, False)]
    prefixes = ", ".join(api_paths.guarded_prefixes(release))
    message = f"{deployment.name} requires its API key only on paths that begin with {prefixes}."
    paths = _open_paths(release, deployment.task.task, flags, deployment.container.environment)
    yield warning(deployment, message, path=f"secrets.{API_KEY}", hint=f"{paths} {_PROXY}")


@check_for(
    "TPU2119",
    "The machine cannot reach the image or the weights",
    "Without an external address a machine reaches only Google's services (Private Google Access): Artifact "
    "Registry and Cloud Storage, but neither Docker Hub nor the Hugging Face hub. Copy the image to Artifact "
    "Registry and the weights to a bucket (model.mirror), name a mirror of the hub (HF_ENDPOINT), or add Cloud "
    "NAT to the subnetwork; with Cloud NAT, ignore this warning. On Compute Engine, Google's images have no "
    "docker. The startup script installs it from Ubuntu's archive, so the machine needs Cloud NAT there, or an "
    "image with docker (tpu.runtime_version).",
    'serving: {image: us-docker.pkg.dev/my-project/vllm/vllm-tpu:v0.32.0}\nmodel: {mirror: "gs://my-bucket/weights"}',
)
def unreachable(deployment: Deployment) -> Iterator[Diagnostic]:
    if deployment.network.external_ip:
        return
    hint = "It needs Cloud NAT, or a copy in Google's own services."
    if not _GOOGLE.match(deployment.container.image):
        image = deployment.attributes["serving.image"]
        message = f"Without an external address the machine cannot reach the registry of {image}."
        yield warning(deployment, message, path="serving.image", hint=hint)
    is_here = deployment.mirror is not None or deployment.model_id.startswith(("gs://", "/"))
    if not is_here and "HF_ENDPOINT" not in deployment.container.environment:
        message = f"Without an external address the machine cannot reach the hub for {deployment.model_id}."
        yield warning(deployment, message, path="model.id", hint=hint)
    apis = catalog.generation(deployment.accelerator.generation).apis
    for backend, runtime in deployment.runtimes.items():
        if BACKENDS[backend].image_has_docker or backend not in apis or runtime != apis[backend].runtime:
            continue
        api = BACKENDS[backend].api
        message = f"Without an external address a machine of {api} cannot install docker, which its image lacks."
        hint = "It needs Cloud NAT, or an image with docker in tpu.runtime_version."
        yield warning(deployment, message, path="placement.backend", hint=hint)


@check_for(
    "TPU2006",
    "Name that docker refuses",
    "docker requires names of at least two characters. The container is named after the deployment unless "
    "serving.container_name is set. Otherwise, the error would appear only after the grant.",
    "serving: {container_name: vllm-m}",
)
def short_name(deployment: Deployment) -> Iterator[Diagnostic]:
    name = deployment.container.name
    if len(name) == 1:
        message = f'docker refuses "{name}" as the name of a container: it has one character.'
        yield error(deployment, message, path="name", hint="Write a longer name, or serving.container_name.")
