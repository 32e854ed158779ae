"""A profile and the catalogue become a Deployment: every default decided, once, here."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from tpudeploy import catalog
from tpudeploy.catalog import flags
from tpudeploy.config.profile import Joined, Profile
from tpudeploy.config.scalars import Duration
from tpudeploy.config.schema import PlacementSpec, ProfileSpec, ServingSpec
from tpudeploy.domain.accelerator import AcceleratorType, Generation
from tpudeploy.domain.deployment import (
    Candidate,
    Container,
    Deployment,
    HealthGoal,
    Json,
    Lifecycle,
    Mirror,
    Network,
    Provisioning,
    Script,
    SecretRef,
    Via,
)
from tpudeploy.domain.diagnostics import Location
from tpudeploy.domain.names import Zone
from tpudeploy.domain.pins import NONE, Pins
from tpudeploy.node import arguments, render
from tpudeploy.node.compile_cache import DEFAULT as GRAPHS
from tpudeploy.node.compile_cache import compile_cache
from tpudeploy.node.mirror import INSIDE, mirror
from tpudeploy.pins import pins
from tpudeploy.sizing import size

_GIB = 1024**3
# Room for a 20 GB image, the weights of the largest model that one host takes, twice, and both caches.
_BOOT_DISK_GIB = 200
_VALID_UNTIL = Duration.parse("2h")
_PORT = 8000
# Where the hub's cache and the compiled graphs are kept, on the machine and (vLLM's own places) in the container.
_HUB = ("/var/lib/tpudeploy/hf", "/root/.cache/huggingface")
_GRAPHS = ("/var/lib/tpudeploy/xla", GRAPHS)


def resolve(
    profile: Profile,
    templates: Mapping[str, str],
    *,
    project: str | None,
    config_json: str | None = None,
    held: Pins = NONE,
) -> Deployment:
    """What must be true. `project` is the fallback where the profile names none; `config_json` is model.config's text.

    `held` is what names are pinned to.

    Raise `errors.ConfigError` where the startup script would be larger than Google takes.
    """
    known = without_script(profile, project=project, config_json=config_json, held=held)
    render.check_size(known, lambda: templates)

    def rendered() -> str:
        from tpudeploy.node.fingerprint import server_print  # not for `validate`, which starts sooner without

        return render.startup_script(known, templates, server_print(known.attributes))

    return replace(known, startup_script=Script(rendered))


def without_script(profile: Profile, *, project: str | None, config_json: str | None, held: Pins = NONE) -> Deployment:
    """The same but for its startup script: enough to be sized and checked, and sooner."""
    spec = profile.spec
    kind = catalog.accelerator_type(spec.tpu.type)
    if kind is None:
        raise KeyError(spec.tpu.type)  # the parser has refused unknown types
    generation = catalog.generation(kind.generation)
    weights = mirror(spec)
    container = _container(spec, kind, held, weights)
    deployment = Deployment(
        name=spec.name,
        replicas=spec.replicas,
        project=spec.placement.project or project,
        model_id=spec.model.id,
        accelerator=kind,
        runtime_version=spec.tpu.runtime_version or generation.runtime_version,
        boot_disk_gib=_BOOT_DISK_GIB if spec.tpu.boot_disk_size is None else math.ceil(spec.tpu.boot_disk_size / _GIB),
        candidates=tuple(_candidates(spec.placement, generation)),
        max_parallel_requests=spec.placement.max_parallel_requests,
        reservation=spec.placement.reservation,
        max_run_seconds=_seconds(spec.placement.max_run_duration),
        valid_until_seconds=float(spec.placement.valid_until or _VALID_UNTIL),
        network=Network(
            network=spec.placement.network.network,
            subnetwork=spec.placement.network.subnetwork,
            external_ip=spec.placement.network.external_ip,
            tags=spec.placement.network.tags,
        ),
        service_account=spec.placement.service_account,
        labels=spec.placement.labels,
        container=container,
        health=HealthGoal(
            timeout_seconds=float(spec.health.timeout), via=Via(spec.health.via), prompt=spec.health.prompt
        ),
        lifecycle=Lifecycle(
            prevent_destroy=spec.lifecycle.prevent_destroy,
            create_before_destroy=spec.lifecycle.replace == "create-before-destroy",
            ignore_changes=spec.lifecycle.ignore_changes,
            blue_green=spec.lifecycle.update == "blue-green",
            renew=spec.lifecycle.on_run_end == "renew",
        ),
        compile_cache=compile_cache(spec, container, kind),
        mirror=weights,
        startup_script=Script(""),
        attributes={},
        origins=_origins(profile, held),
        budget=size(spec, config_json=config_json),
    )
    return replace(deployment, attributes=dict(_attributes(spec, deployment, held)))


def _origins(profile: Profile, held: Pins) -> Mapping[str, Location]:
    pinned = dict(pins.origins(profile.spec, held))
    return Joined(pinned, profile.origins) if pinned else profile.origins


def _container(spec: ProfileSpec, kind: AcceleratorType, held: Pins, weights: Mirror | None) -> Container:
    serving = spec.serving
    digest, commit = held.target_of(pins.image_of(spec)), held.target_of(pins.model_of(spec))
    return Container(
        name=serving.container_name or spec.name,
        image=serving.image if digest is None else pins.at_digest(serving.image, digest),
        serve=arguments.serve(spec, tensor_parallel_size=_tensor_parallel(serving, kind), commit=commit),
        setup=serving.setup,
        environment={**arguments.environment(serving), **serving.env},
        secrets=tuple(SecretRef(variable=v, secret=s) for v, s in spec.secrets.items()),
        volumes=(*_volumes(serving), *(() if weights is None else ((weights.folder, INSIDE),))),
        shm_size=serving.shm_size.text if serving.shm_size is not None else None,
        port=serving.port or _PORT,
    )


def _volumes(serving: ServingSpec) -> tuple[tuple[str, str], ...]:
    """The profile's, or both caches where the container will look for them: without a volume they die with it.

    What a person puts into memory stays there: a folder of the disk over /dev/shm would undo it.
    """
    if serving.volumes is not None:
        return tuple(serving.volumes.items())
    hub, graphs = serving.env.get("HF_HOME", _HUB[1]), serving.xla_cache_path or _GRAPHS[1]
    kept = {inside: host for host, inside in ((_HUB[0], hub), (_GRAPHS[0], graphs)) if _is_kept(inside)}
    return tuple((host, inside) for inside, host in kept.items())


def _is_kept(inside: str) -> bool:
    return inside.startswith("/") and not f"{inside}/".startswith("/dev/shm/")  # noqa: S108 - a path in the container


def _tensor_parallel(serving: ServingSpec, kind: AcceleratorType) -> int:
    """The chips that are left for one copy: of a slice, the stages and copies take their share."""
    stages = math.prod(
        _stage_count(serving, name) for name in ("pipeline-parallel-size", "prefill-context-parallel-size")
    )
    return serving.tensor_parallel_size or max(1, kind.chips // ((serving.data_parallel_size or 1) * stages))


def _stage_count(serving: ServingSpec, flag_name: str) -> int:
    sizes = [value for name, value in serving.args.items() if (flag := flags.find(name)) and flag.name == flag_name]
    return sizes[0] if sizes and type(sizes[0]) is int else 1


def _candidates(placement: PlacementSpec, generation: Generation) -> Iterator[Candidate]:
    """Pairs in the order to ask: the first provisioning model everywhere, then the next; dearer ones left out.

    Where no price is known, on-demand's is the most it can be; where that is not known either, a cap keeps it out.
    """
    most = placement.max_price_per_chip_hour
    for model in map(Provisioning, placement.provisioning):
        for zone in _zones(placement, generation, model):
            price = catalog.usd_per_chip_hour(generation.name, zone.region, model)
            dearest = price if price is not None else _on_demand(generation, zone)
            if most is None or (dearest is not None and dearest <= most):
                yield Candidate(zone=zone, provisioning=model, usd_per_chip_hour=price)


def _on_demand(generation: Generation, zone: Zone) -> float | None:
    return catalog.usd_per_chip_hour(generation.name, zone.region, Provisioning.ON_DEMAND)


def _zones(placement: PlacementSpec, generation: Generation, model: Provisioning) -> tuple[Zone, ...]:
    if placement.zones != "any":
        return tuple(map(Zone.parse, placement.zones))
    if model is Provisioning.RESERVED and placement.reservation is not None:
        return (Zone.parse(placement.reservation.split("/")[3]),)  # projects/P/locations/Z/reservations/R
    known = generation.flex_start_zones if model is Provisioning.FLEX_START else generation.zones
    return tuple(map(Zone.parse, known))


def _attributes(spec: ProfileSpec, deployment: Deployment, held: Pins) -> Iterator[tuple[str, Json]]:
    """The resolved profile, flat, and its pins, each behind what it pins.

    `replicas` is counted beside it; `version`, `name`, `extends` say nothing of one.
    """
    decided: dict[str, Any] = {
        "placement.project": deployment.project,
        "placement.valid_until": (spec.placement.valid_until or _VALID_UNTIL).text,
        "serving.container_name": deployment.container.name,
        "serving.tensor_parallel_size": _tensor_parallel(spec.serving, deployment.accelerator),
        "serving.volumes": dict(deployment.container.volumes),
        "tpu.boot_disk_size": f"{deployment.boot_disk_gib}GiB",
        "tpu.runtime_version": deployment.runtime_version,
    }
    tree = spec.model_dump(mode="python", exclude={"version", "name", "extends", "replicas"})
    pinned = {"serving.image": (pins.DIGEST, held.target_of(pins.image_of(spec)))}
    pinned["model.revision"] = (pins.COMMIT, held.target_of(pins.model_of(spec)))
    for path, value in {**_flat(tree), **decided}.items():
        if value is not None and value not in ({}, []):
            yield path, value
        pin, to = pinned.get(path, ("", None))
        if to is not None:
            yield pin, to


# Mappings whose entries are attributes of their own; any other mapping is one value (a JSON argument, say).
_OPEN = {"", "model", "tpu", "serving", "secrets", "placement", "placement.network", "placement.labels", "lifecycle"}
_OPEN |= {"health", "serving.args", "serving.env"}
_PLAIN = frozenset({str, int, float, bool})  # these types themselves: a quantity is a number with a text


def _flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Json]:
    flat: dict[str, Json] = {}
    for key, value in tree.items():
        path = f"{prefix}{key}"
        if path in _OPEN and isinstance(value, Mapping):
            flat |= _flat(value, f"{path}.")
        else:
            flat[path] = _json(value)
    return flat


def _json(value: Any) -> Json:
    """Quantities as they were written, tuples as lists."""
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


def _seconds(duration: float | None) -> float | None:
    return None if duration is None else float(duration)
