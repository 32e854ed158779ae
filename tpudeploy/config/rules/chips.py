"""Check `tpu` against the catalogue: the type exists and is supported, with its runtime, and its chips are used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

from tpudeploy import catalog
from tpudeploy.catalog.generations import GENERATIONS
from tpudeploy.config import codes
from tpudeploy.config.diagnose import problem, quoted, warning
from tpudeploy.config.nodes import MapNode, Path
from tpudeploy.config.rules import look
from tpudeploy.config.rules.placement import backends
from tpudeploy.domain.accelerator import AcceleratorType
from tpudeploy.domain.deployment import AUTO
from tpudeploy.domain.diagnostics import Diagnostic

_TYPE: Path = ("tpu", "type")
_RUNTIME: Path = ("tpu", "runtime_version")
_TP: Path = ("serving", "tensor_parallel_size")
_DP: Path = ("serving", "data_parallel_size")


def known_type(root: MapNode) -> Iterator[Diagnostic]:
    name = look.value(root, _TYPE, str)
    if not name or catalog.accelerator_type(name) is not None:
        return
    names = ", ".join(slice_type.name for slice_type in catalog.accelerator_types() if _is_supported(slice_type))
    generation = catalog.unsupported_generation(name)
    if generation is not None:
        lacking = catalog.UNSUPPORTED_GENERATIONS[generation]
        message = f"{quoted(name)} is not supported yet: tpudeploy does not know {lacking}"
        hint = f"choose one of {names}"
        yield problem(codes.NOT_SUPPORTED, message, look.at(root, _TYPE), path=_TYPE, hint=hint)
    else:
        closest = catalog.closest_type(name, is_accepted=_is_supported)
        hint = f'did you mean "{closest}"?' if closest else f"choose one of {names}"
        message = f"There is no accelerator type {quoted(name)}"
        yield problem(codes.UNKNOWN_TYPE, message, look.at(root, _TYPE), path=_TYPE, hint=hint)


def _is_supported(slice_type: AcceleratorType) -> bool:
    """Return whether `single_host` accepts the type, so that no hint names one that the next check refuses."""
    return slice_type.hosts == 1


def single_host(root: MapNode) -> Iterator[Diagnostic]:
    slice_type = _slice_type(root)
    if slice_type is not None and not _is_supported(slice_type):
        types = (t for t in catalog.accelerator_types() if t.generation == slice_type.generation)
        names = ", ".join(t.name for t in types if _is_supported(t))
        message = f"{slice_type.name} has {slice_type.hosts} hosts; several hosts are not supported yet"
        hint = f"types with one host: {names}"
        yield problem(codes.NOT_SUPPORTED, message, look.at(root, _TYPE), path=_TYPE, hint=hint)


def own_runtime(root: MapNode) -> Iterator[Diagnostic]:
    slice_type = _slice_type(root)
    runtime = look.value(root, _RUNTIME, str)
    if slice_type is None or runtime is None:
        return
    generation = catalog.generation(slice_type.generation)
    chosen_backends = backends(root)
    backend = chosen_backends[0]
    if len(chosen_backends) > 1:
        message = (
            f"{quoted(runtime)} is the runtime of one API, and {AUTO} requests from {' and '.join(chosen_backends)}"
        )
        hint = f"leave it out, because each has its own default; or write backend: {backend}"
        yield problem(codes.RUNTIME_MISMATCH, message, look.at(root, _RUNTIME), path=_RUNTIME, hint=hint)
        return
    # Another rule reports a backend that does not serve the generation.
    if backend not in generation.backends:
        return
    owners = {g.runtime_of(b): (g.name, b) for g in GENERATIONS for b in g.backends}
    owner, owner_backend = owners.get(runtime, (generation.name, backend))
    hint = f"leave it out, or write {generation.runtime_of(backend)}"
    at = look.at(root, _RUNTIME)
    if owner != generation.name:
        message = f"{quoted(runtime)} is the runtime of {owner}, not of {slice_type.name}"
        yield problem(codes.RUNTIME_MISMATCH, message, at, path=_RUNTIME, hint=hint)
    elif owner_backend is not backend:
        message = f"{quoted(runtime)} is the runtime of {owner_backend}, not of {backend}"
        yield problem(codes.RUNTIME_MISMATCH, message, at, path=_RUNTIME, hint=hint)


def parallelism(root: MapNode) -> Iterator[Diagnostic]:
    """Check that the ranks, which take a chip each, fit the slice: tensor x pipeline x prefill context x data."""
    slice_type = _slice_type(root)
    tensor, data = look.value(root, _TP, int), look.value(root, _DP, int)
    stages = dict(_stages(root))
    if slice_type is None or not _positive(tensor, data, *(size for size, _ in stages.values())):
        return
    chips = slice_type.chips
    factors = _factors(tensor, data, stages)
    _, path = next(iter(factors.values()))
    used = prod(size for size, _ in factors.values())
    product = " x ".join(f"{key} {size}" for key, (size, _) in factors.items())
    if chips % used:
        noun = "chip" if chips == 1 else "chips"
        message = f"{product} does not fit {slice_type.name}, which has {chips} {noun}"
        hint = _what_works(chips, tensor, data, prod(size for size, _ in stages.values()))
        yield problem(codes.PARALLELISM, message, look.at(root, path), path=path, hint=hint)
    elif tensor and used < chips:
        message = f"{product} uses {used} of the {chips} chips of {slice_type.name}; all are billed"
        copies = chips // used * (data or 1)
        hint = f"data_parallel_size: {copies} serves {copies} copies"
        yield warning(codes.IDLE_CHIPS, message, look.at(root, path), path=path, hint=hint)


def tensor_parallel(root: MapNode) -> int | None:
    """Return the ranks of tensor parallelism: as set, else the chips of the slice for each copy and stage."""
    size, slice_type = look.value(root, _TP, int), _slice_type(root)
    if size is not None or slice_type is None:
        return size
    copies = (look.value(root, _DP, int) or 1) * prod(size for _, (size, _) in _stages(root))
    return slice_type.chips // copies if copies > 0 else None


def ranks(root: MapNode) -> int:
    """Return how many ranks the deployment has: tensor x data x pipeline x prefill context."""
    return (
        (tensor_parallel(root) or 1) * (look.value(root, _DP, int) or 1) * prod(size for _, (size, _) in _stages(root))
    )


def _stages(root: MapNode) -> Iterator[tuple[str, tuple[int, Path]]]:
    """Yield the parallelism that has no key of its own, if it is not 1."""
    for name in ("pipeline-parallel-size", "prefill-context-parallel-size"):
        flag = look.setting(root, name)
        if flag is not None and type(flag.value) is int and flag.value != 1:
            yield name.replace("-", "_"), (flag.value, flag.path)


def _factors(
    tensor: int | None, data: int | None, stages: Mapping[str, tuple[int, Path]]
) -> dict[str, tuple[int, Path]]:
    keys = {"tensor_parallel_size": (tensor, _TP), "data_parallel_size": (data, _DP)}
    sizes = {key: (size, path) for key, (size, path) in keys.items() if size}
    return {**sizes, **stages}


def _slice_type(root: MapNode) -> AcceleratorType | None:
    return catalog.accelerator_type(look.value(root, _TYPE, str) or "")


def _positive(*sizes: int | None) -> bool:
    """Return whether a size is set and all are positive; another rule reports those that are not."""
    return any(sizes) and all(size is None or size > 0 for size in sizes)


def _what_works(chips: int, tensor: int | None, data: int | None, stages: int) -> str:
    if stages > 1:
        return f"the product may be {_divisors(chips)}"
    if tensor and data and chips % data == 0:
        return f"with data_parallel_size {data}, tensor_parallel_size may be {_divisors(chips // data)}"
    return f"their product may be {_divisors(chips)}" if tensor and data else f"it may be {_divisors(chips)}"


def _divisors(chips: int) -> str:
    sizes = [str(size) for size in range(1, chips + 1) if chips % size == 0]
    return " or ".join([", ".join(sizes[:-1]), sizes[-1]]) if len(sizes) > 1 else sizes[0]
