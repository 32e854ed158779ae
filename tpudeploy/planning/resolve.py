"""Resolve a profile and the catalogue into a Deployment. Every default is decided here, once.

Why: decision 39 in docs/decisions.md.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

from tpudeploy import catalog, pins
from tpudeploy.catalog import families, flags
from tpudeploy.catalog.engines import DEFAULT_CACHE
from tpudeploy.catalog.routers import DEFAULT_MACHINE
from tpudeploy.catalog.tasks import resolve_task
from tpudeploy.config.profile import Joined, Profile
from tpudeploy.config.scalars import Duration, Moment
from tpudeploy.config.schema import (
    BudgetSpec,
    HealthSpec,
    LifecycleSpec,
    NetworkSpec,
    PlacementSpec,
    ProfileSpec,
    RouterSpec,
    ScaleSpec,
    Section,
    ServingSpec,
)
from tpudeploy.domain.accelerator import AcceleratorType, Backend, Generation
from tpudeploy.domain.cost_budget import CostBudget
from tpudeploy.domain.deployment import (
    AUTO,
    DEFAULT_PORT,
    MACHINE_IMAGE,
    BucketFolder,
    Candidate,
    Container,
    Deployment,
    HealthGoal,
    Json,
    Lifecycle,
    Mirror,
    Network,
    OwnFile,
    Provisioning,
    Scale,
    Script,
    SecretRef,
    Via,
)
from tpudeploy.domain.ending import End, IdleLimit
from tpudeploy.domain.model import Checkpoint
from tpudeploy.domain.names import Zone
from tpudeploy.domain.notify import Notify
from tpudeploy.domain.pins import NONE, Pins
from tpudeploy.domain.router import Router, RouterHost, RouterKind
from tpudeploy.node import render
from tpudeploy.node.compile_cache import compile_cache
from tpudeploy.node.fingerprint import server_print, text_print
from tpudeploy.node.router_machine import router_machine
from tpudeploy.node.serving import MIRROR_FOLDER, environment_of_keys, serve, served_name
from tpudeploy.reconcile.prices import search_limits
from tpudeploy.sizing import size
from tpudeploy.sizing.profile import flag_values

_GIB = 1024**3
# Enough for a 20 GB image, the weights of the largest model that one host takes, twice, and both caches.
_BOOT_DISK_GIB = 200
_VALID_UNTIL = Duration.parse("2h")
_COOLDOWN = Duration.parse("10m")
# What tpu_inference's own scripts for several hosts set (2026-08). A profile may write other values in serving.env.
_OVER_HOSTS = {
    "TPU_MULTIHOST_BACKEND": "ray",
    "JAX_PLATFORMS": "",
    "VLLM_ENGINE_READY_TIMEOUT_S": "1800",
    "RAY_health_check_timeout_ms": "20000",
    "RAY_health_check_failure_threshold": "100",
    "RAY_DEDUP_LOGS": "0",
}
_RAY_SHM_SIZE = "16gb"
# The folders of the hub's cache and the compiled graphs, on the machine and (vLLM's own defaults) in the container.
HUB = ("/var/lib/tpudeploy/hf", "/root/.cache/huggingface")
GRAPHS = ("/var/lib/tpudeploy/xla", DEFAULT_CACHE)
_MIRROR = "/var/lib/tpudeploy/weights"
_CONTAINER_NAME = "serving.container_name"
_MIRROR_NAME = 12  # hexadecimal digits of a mirror's folder: each has its own, so that two are never mixed


def resolve(
    profile: Profile,
    templates: Mapping[str, str],
    *,
    project: str | None,
    config_json: str | None = None,
    own_files: tuple[OwnFile, ...] = (),
    lock: Pins = NONE,
) -> Deployment:
    """Return the desired state that a profile describes.

    `project` is used if the profile names none, `config_json` is the text of model.config, `own_files` are the
    project's in the startup script, and `lock` are the pins of the lock file. Raise `errors.ConfigError` if the script
    would be larger than Google accepts.
    """
    deployment = resolve_without_script(
        profile, project=project, config_json=config_json, own_files=own_files, lock=lock
    )
    render.check_size(deployment, lambda: templates)

    def render_script() -> str:
        return render.startup_script(deployment, templates, server_print(deployment.attributes))

    return _with_router_machine(replace(deployment, startup_script=Script(render_script)), templates)


def resolve_without_script(
    profile: Profile,
    *,
    project: str | None,
    config_json: str | None,
    own_files: tuple[OwnFile, ...] = (),
    lock: Pins = NONE,
) -> Deployment:
    """Return the deployment without its startup script, which is enough to size and check it, and faster."""
    kind = catalog.accelerator_type(profile.tpu.type)
    if kind is None:
        raise KeyError(profile.tpu.type)  # the rules have refused unknown types
    placement, mirror = profile.placement, _mirror(profile)
    parts = _parts(profile, kind, mirror, project, lock)
    digests: dict[str, Json] = {file.attribute: f"sha256:{_sha256(file.text)[:16]}" for file in own_files}
    attributes = {**dict(_attributes(profile, parts, lock)), **digests}
    other_origins = {**dict(pins.origins(profile, lock)), **{file.attribute: file.at for file in own_files}}
    engine, checkpoint = pins.engine_of(profile.serving.image, lock), _checkpoint(profile, lock)
    config_json = (checkpoint.config or None) if checkpoint is not None and config_json is None else config_json
    candidates = _candidates(placement, _models(placement), kind, tuple(parts.runtimes))
    floor_candidates = _candidates(placement, _floor_models(placement), kind, tuple(parts.runtimes))
    limits = search_limits(
        candidates,
        floor_candidates,
        kind.chips,
        most=placement.max_parallel_requests,
        usd_per_hour=placement.max_search_price_per_hour,
    )
    deployment = Deployment(
        name=profile.name,
        replicas=profile.replicas,
        project=parts.project,
        model_id=profile.model.id,
        accelerator=kind,
        runtimes=parts.runtimes,
        boot_disk_gib=parts.boot_disk_gib,
        candidates=candidates,
        on_demand_floor=placement.on_demand_floor or 0,
        floor_candidates=floor_candidates,
        scale=_scale(profile.scale, start=_written_replicas(profile)),
        first_requests=limits.first_requests,
        max_parallel_requests=limits.max_parallel_requests,
        search_usd_per_hour=limits.usd_per_hour,
        reservation=placement.reservation,
        max_run_seconds=None if placement.max_run_duration is None else float(placement.max_run_duration),
        valid_until_seconds=float(placement.valid_until or _VALID_UNTIL),
        network=_network(placement.network),
        service_account=placement.service_account,
        labels=placement.labels,
        container=parts.container,
        health=_health(profile.health),
        lifecycle=_lifecycle(profile.lifecycle),
        cost_budget=_cost_budget(profile.budget),
        notify=Notify(targets=profile.notify, secret=profile.notify_key or ""),
        compile_cache=compile_cache(profile, parts.container, kind),
        mirror=mirror,
        own_files=own_files,
        router=parts.router,
        written=_source_print(profile, attributes, digests),
        task=resolve_task(profile.model.id, flag_values(profile.serving), families.config_of(config_json)),
        engine=engine,
        checkpoint=checkpoint,
        startup_script=Script(""),
        attributes=attributes,
        origins=Joined(other_origins, profile.origins) if other_origins else profile.origins,
        budget=size(
            profile,
            config_json=config_json,
            engine=engine,
            tensors=checkpoint.tensors if checkpoint is not None else {},
        ),
    )
    return _with_router_machine(deployment, {})


class _Parts(NamedTuple):
    """The parts of a deployment whose defaults depend on the catalogue, on pins or on the command line."""

    kind: AcceleratorType
    project: str | None
    runtimes: Mapping[Backend, str]
    boot_disk_gib: int
    container: Container
    router: Router | None


def _parts(
    profile: ProfileSpec, kind: AcceleratorType, mirror: Mirror | None, project: str | None, lock: Pins
) -> _Parts:
    container, disk = _container(profile, kind, mirror, lock), profile.tpu.boot_disk_size
    router = profile.router
    return _Parts(
        kind=kind,
        project=profile.placement.project or project,
        runtimes=_runtimes(profile, catalog.generation(kind.generation), kind),
        boot_disk_gib=_BOOT_DISK_GIB if disk is None else math.ceil(disk / _GIB),
        container=container,
        router=None if router is None else _router(router, served_name(container.serve, profile.model.id)),
    )


def _checkpoint(profile: ProfileSpec, lock: Pins) -> Checkpoint | None:
    """Return what the hub said of a model that the catalogue does not know, or None."""
    commit = lock.target_of(pins.model_of(profile)) or profile.model.revision or ""
    return None if families.is_listed(profile.model.id) else lock.checkpoints.get(commit)


def _written_replicas(profile: ProfileSpec) -> int | None:
    return profile.replicas if "replicas" in profile.model_fields_set else None


def _source_print(profile: Profile, attributes: Mapping[str, Json], digests: Mapping[str, Json]) -> str:
    """Return a fingerprint of what the profile says, if that says when the deployment ends, else "".

    Neither a default that a later version adds nor another pin changes it.
    """
    lifecycle = profile.lifecycle
    if lifecycle.end is None and lifecycle.idle is None and lifecycle.hours is None:
        return ""

    own = {path: value for path, value in attributes.items() if profile.origins.first(path)}
    return text_print(json.dumps([own, digests, _written_replicas(profile)], sort_keys=True))


def _with_router_machine(deployment: Deployment, templates: Mapping[str, str]) -> Deployment:
    """Return the deployment with the VM of its router, if that has one."""
    if deployment.router is None or deployment.router.host is not RouterHost.VM:
        return deployment

    return replace(deployment, router_machine=router_machine(deployment, deployment.router, templates))


def _network(network: NetworkSpec) -> Network:
    return Network(
        network=network.network,
        subnetwork=network.subnetwork,
        external_ip=network.external_ip,
        tags=network.tags,
    )


def _health(health: HealthSpec) -> HealthGoal:
    return HealthGoal(timeout_seconds=float(health.timeout), via=Via(health.via), prompt=health.prompt)


def _lifecycle(lifecycle: LifecycleSpec) -> Lifecycle:
    return Lifecycle(
        prevent_destroy=lifecycle.prevent_destroy,
        create_before_destroy=lifecycle.replace == "create-before-destroy",
        ignore_changes=lifecycle.ignore_changes,
        blue_green=lifecycle.update == "blue-green",
        renew=lifecycle.on_run_end == "renew",
        max_unavailable=lifecycle.max_unavailable or 1,
        drain_seconds=None if lifecycle.drain_timeout is None else float(lifecycle.drain_timeout),
        end=_end(lifecycle.end),
        idle=None if lifecycle.idle is None else IdleLimit(text=lifecycle.idle.text, seconds=float(lifecycle.idle)),
        hours=lifecycle.hours,
    )


def _cost_budget(budget: BudgetSpec) -> CostBudget | None:
    if budget.day is None and budget.month is None:
        return None
    return CostBudget(usd_per_day=budget.day, usd_per_month=budget.month)


def _end(end: Duration | Moment | None) -> End | None:
    if end is None:
        return None
    if isinstance(end, Moment):
        return End(text=end.text, at=float(end))
    return End(text=end.text, after_seconds=float(end))


def _scale(scale: ScaleSpec | None, *, start: int | None) -> Scale | None:
    if scale is None:
        return None
    return Scale(
        min=scale.min,
        max=scale.max,
        waiting=scale.waiting,
        kv_cache=scale.kv_cache,
        cooldown_seconds=float(scale.cooldown or _COOLDOWN),
        max_usd_per_hour=scale.max_cost_per_hour,
        start=start,
    )


def _models(placement: PlacementSpec) -> tuple[Provisioning, ...]:
    return tuple(map(Provisioning, placement.provisioning))


def _floor_models(placement: PlacementSpec) -> tuple[Provisioning, ...]:
    """Return the models of the on-demand floor: those that last, of the ones that are listed, else on-demand."""
    if placement.on_demand_floor is None:
        return ()
    lasting = tuple(model for model in _models(placement) if model.is_lasting)
    return lasting or (Provisioning.ON_DEMAND,)


def _router(router: RouterSpec, model: str) -> Router:
    return Router(
        kind=RouterKind(router.kind),
        host=RouterHost(router.host),
        address="" if router.host == RouterHost.VM.value else router.address,
        port=router.port,
        policy=router.policy,
        model=model,
        machine=router.machine or DEFAULT_MACHINE if router.host == RouterHost.VM.value else "",
    )


def _runtimes(spec: ProfileSpec, generation: Generation, kind: AcceleratorType) -> dict[Backend, str]:
    """Return the software of the machines by the API that may be asked for them, the preferred one first.

    The TPU API comes first: its image has docker, so that a slice of it starts sooner, and its requests wait for as
    long as the profile says. A slice of several hosts is one request there, and three resources at Compute Engine.
    """
    chosen = spec.placement.backend
    backends = (Backend(chosen),) if chosen != AUTO else kind.backends
    return {backend: spec.tpu.runtime_version or generation.runtime_of(backend) for backend in backends}


def _mirror(spec: ProfileSpec) -> Mirror | None:
    """Return the bucket of mirrored weights and their folder on the machine, or None if the profile names no mirror."""
    if spec.model.mirror is None:
        return None
    bucket = BucketFolder.parse(spec.model.mirror)
    name = _sha256(f"{bucket.name}/{bucket.prefix}")[:_MIRROR_NAME]
    return Mirror(bucket=bucket, folder=f"{_MIRROR}/{name}")


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _container(spec: ProfileSpec, kind: AcceleratorType, mirror: Mirror | None, lock: Pins) -> Container:
    serving = spec.serving
    digest, commit = lock.target_of(pins.image_of(spec)), lock.target_of(pins.model_of(spec))
    volumes = _volumes(serving)
    if mirror is not None:
        volumes = (*volumes, (mirror.folder, MIRROR_FOLDER))
    return Container(
        name=serving.container_name or spec.name,
        image=serving.image if digest is None else pins.at_digest(serving.image, digest),
        serve=serve(spec, tensor_parallel_size=_tensor_parallel(serving, kind), commit=commit),
        setup=serving.setup,
        environment={**(_OVER_HOSTS if kind.hosts > 1 else {}), **environment_of_keys(serving), **serving.env},
        secrets=tuple(SecretRef(variable=v, secret=s) for v, s in spec.secrets.items()),
        volumes=volumes,
        shm_size=_shm_size(serving, kind),
        port=serving.port or DEFAULT_PORT,
        hosts=kind.hosts,
    )


def _shm_size(serving: ServingSpec, kind: AcceleratorType) -> str | None:
    """Return the size of the container's shared memory. Ray keeps its objects there, and docker's default is 64 MiB."""
    if serving.shm_size is not None:
        return serving.shm_size.text
    return _RAY_SHM_SIZE if kind.hosts > 1 else None


def _volumes(serving: ServingSpec) -> tuple[tuple[str, str], ...]:
    """Return the profile's volumes. The default is a volume for each cache, which would end with the container.

    A cache that the profile puts into memory stays there: a folder of the disk over /dev/shm would undo that.
    """
    if serving.volumes is not None:
        return tuple(serving.volumes.items())
    hub, graphs = serving.env.get("HF_HOME", HUB[1]), serving.xla_cache_path or GRAPHS[1]
    host_by_path = {hub: HUB[0], graphs: GRAPHS[0]}
    return tuple((host, path) for path, host in host_by_path.items() if _is_on_disk(path))


def _is_on_disk(path: str) -> bool:
    return path.startswith("/") and not f"{path}/".startswith("/dev/shm/")  # noqa: S108 - a path in the container


def _tensor_parallel(serving: ServingSpec, kind: AcceleratorType) -> int:
    """Return the devices of one stage of one copy."""
    copies = (serving.data_parallel_size or 1) * _stages(serving)
    return serving.tensor_parallel_size or max(1, kind.devices // copies)


def _stages(serving: ServingSpec) -> int:
    return math.prod(
        _stage_count(serving, name) for name in ("pipeline-parallel-size", "prefill-context-parallel-size")
    )


def _stage_count(serving: ServingSpec, flag_name: str) -> int:
    sizes = [value for name, value in serving.args.items() if (flag := flags.find(name)) and flag.name == flag_name]
    return sizes[0] if sizes and type(sizes[0]) is int else 1


def _candidates(
    placement: PlacementSpec, models: tuple[Provisioning, ...], kind: AcceleratorType, backends: tuple[Backend, ...]
) -> tuple[Candidate, ...]:
    """Return the places in the order of the search: the first provisioning model in every zone, then the next.

    With several APIs each zone comes once, from the APIs in turn, before a zone comes again at its other API. So few
    requests draw on both quotas, and on as many zones as those of one API would: whether the APIs sell the same chips
    of a zone is not known.

    Places above a price limit are left out. An unknown price is at most that of on-demand; if that is unknown too,
    a limit per chip excludes the place, and a search tries it last. Above the price of a search are those where one
    slice costs more, unless it does everywhere: a limit that was written for a smaller slice leaves one request.
    """
    places = [each for model in models for each in _of_model(placement, kind, model, backends)]
    search_usd = placement.max_search_price_per_hour
    if search_usd is not None:
        usd = search_usd / kind.chips
        places = [each for each in places if (_most_usd(kind, each) or 0.0) <= usd] or places
    return tuple(places)


def _most_usd(kind: AcceleratorType, candidate: Candidate) -> float | None:
    """Return the price of a chip in this place, or that of on-demand where it's unknown."""
    if candidate.usd_per_chip_hour is not None:
        return candidate.usd_per_chip_hour
    return catalog.usd_per_chip_hour(kind.generation, candidate.zone.region, Provisioning.ON_DEMAND)


def dearest_price(placement: PlacementSpec, kind: AcceleratorType) -> float | None:
    """Return the highest price per chip and hour of the places that may be requested, or None if one is unknown."""
    models = (*map(Provisioning, placement.provisioning), *_floor_models(placement))
    costs = [each.usd_per_chip_hour for each in _candidates(placement, models, kind, kind.backends)]
    return None if None in costs else max((usd for usd in costs if usd is not None), default=0.0)


def _of_model(
    placement: PlacementSpec, kind: AcceleratorType, model: Provisioning, backends: tuple[Backend, ...]
) -> Iterator[Candidate]:
    most = placement.max_price_per_chip_hour
    zones = _zones(placement, catalog.generation(kind.generation), model)
    for zone, backend in in_turn(zones, backends):
        usd = catalog.usd_per_chip_hour(kind.generation, zone.region, model)
        candidate = Candidate(zone=zone, provisioning=model, usd_per_chip_hour=usd, backend=backend)
        upper_bound = _most_usd(kind, candidate)
        if most is None or (upper_bound is not None and upper_bound <= most):
            yield candidate


def in_turn(zones: tuple[Zone, ...], backends: tuple[Backend, ...]) -> Iterator[tuple[Zone, Backend]]:
    """Yield every zone with every API: each zone once with the APIs in turn, then each with the next API."""
    for shift in range(len(backends)):
        for number, zone in enumerate(zones):
            yield zone, backends[(number + shift) % len(backends)]


def _zones(placement: PlacementSpec, generation: Generation, model: Provisioning) -> tuple[Zone, ...]:
    if placement.zones != "any":
        return tuple(map(Zone.parse, placement.zones))
    if model is Provisioning.RESERVED and placement.reservation is not None:
        return (Zone.parse(placement.reservation.split("/")[3]),)  # projects/P/locations/Z/reservations/R
    zones: Iterable[str] = generation.zones
    if model is Provisioning.FLEX_START:
        # Where no refusal is recorded, what is said of zones is not verified: those that are said to offer flex-start
        # come first, and each other one may. A refusal comes at once.
        others = () if generation.flex_start_refused else zones
        zones = dict.fromkeys([*generation.flex_start_zones, *others])
    return tuple(map(Zone.parse, zones))


def _attributes(spec: ProfileSpec, parts: _Parts, lock: Pins) -> Iterator[tuple[str, Json]]:
    """Yield the attributes of one replica: the resolved profile, flat, each pin after what it pins.

    `replicas`, `notify`, `version`, `name` and `extends` are not attributes of a replica.
    """
    defaults: dict[str, Any] = {
        "placement.project": parts.project,
        "placement.valid_until": (spec.placement.valid_until or _VALID_UNTIL).text,
        _CONTAINER_NAME: parts.container.name,
        "serving.tensor_parallel_size": _tensor_parallel(spec.serving, parts.kind),
        "serving.volumes": dict(parts.container.volumes),
        "tpu.boot_disk_size": f"{parts.boot_disk_gib}GiB",
        # With several APIs, the one that grants decides it: see `Deployment.attributes_at`.
        "tpu.runtime_version": None if len(parts.runtimes) > 1 else next(iter(parts.runtimes.values())),
        "tpu.type": parts.kind.name,
    }
    if parts.router is not None and parts.router.host is RouterHost.VM:
        # Google assigns its address.
        defaults |= {"router.address": None, "router.machine": parts.router.machine}
    pinned = {
        "serving.image": (pins.DIGEST, lock.target_of(pins.image_of(spec))),
        "model.revision": (pins.COMMIT, lock.target_of(pins.model_of(spec))),
        "tpu.runtime_version": (MACHINE_IMAGE, lock.target_of(pins.machine_image_of(spec))),
    }
    for path, value in {**_flat_values(spec, ""), **defaults}.items():
        if value is not None and value not in ({}, []):
            yield path, value
        pin, target = pinned.get(path, ("", None))
        if target is not None:
            yield pin, target


# They are of no replica: what exists does not depend on them.
_NO_ATTRIBUTES = frozenset({"version", "name", "extends", "notify", "notify_key", "replicas"})
# Mappings whose entries are attributes of their own; any other mapping is one value (a JSON argument, say).
_OPEN = frozenset({"secrets", "placement.labels", "serving.args", "serving.env"})
_PLAIN = frozenset({str, int, float, bool})  # these types themselves: a quantity is a number with a text


@cache
def _paths(section: type[Any], prefix: str) -> tuple[tuple[str, str], ...]:
    """Return the keys of a section at `prefix` that are attributes, each with its path."""
    return tuple((key, f"{prefix}{key}") for key in section.model_fields if prefix or key not in _NO_ATTRIBUTES)


def _flat_values(section: Section, prefix: str) -> Mapping[str, Json]:
    flat: dict[str, Json] = {}
    kind: type = type(section)
    for key, path in _paths(kind, prefix):
        value = getattr(section, key)
        if isinstance(value, Section):
            flat |= _flat_values(value, f"{path}.")
        elif path in _OPEN:
            flat |= {f"{path}.{entry}": _json(entry_value) for entry, entry_value in value.items()}
        else:
            flat[path] = _json(value)
    return flat


def _json(value: Any) -> Json:
    """Return a value as JSON: a quantity as its text in the profile, a tuple as a list."""
    if value is None or type(value) in _PLAIN:
        plain: Json = value
        return plain
    text = getattr(value, "text", None)
    if isinstance(text, str):
        return text
    if isinstance(value, tuple | list):
        return [_json(v) for v in value]
    if isinstance(value, Mapping):
        return {str(k): _json(v) for k, v in value.items()}
    other: Json = value
    return other
