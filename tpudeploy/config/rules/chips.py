"""`tpu` against the catalogue: the type exists, the runtime is its own, and the parallelism fits its chips."""

from __future__ import annotations

from collections.abc import Iterator

from tpudeploy import catalog
from tpudeploy.catalog.generations import GENERATIONS
from tpudeploy.config import codes
from tpudeploy.config.diagnose import problem, quoted, warning
from tpudeploy.config.nodes import MapNode, Path
from tpudeploy.config.rules import look
from tpudeploy.domain.accelerator import AcceleratorType
from tpudeploy.domain.diagnostics import Diagnostic

_TYPE: Path = ("tpu", "type")
_RUNTIME: Path = ("tpu", "runtime_version")
_TP: Path = ("serving", "tensor_parallel_size")
_DP: Path = ("serving", "data_parallel_size")


def known_type(root: MapNode) -> Iterator[Diagnostic]:
    name = look.value(root, _TYPE, str)
    if name and catalog.accelerator_type(name) is None:
        meant = catalog.closest_type(name, is_accepted=_is_supported)
        names = [known.name for known in catalog.accelerator_types() if _is_supported(known)]
        hint = f'did you mean "{meant}"?' if meant else f"there are {', '.join(names)}"
        message = f"There is no accelerator type {quoted(name)}"
        yield problem(codes.UNKNOWN_TYPE, message, look.at(root, _TYPE), path=_TYPE, hint=hint)


def _is_supported(slice_type: AcceleratorType) -> bool:
    """What `single_host` of config/unsupported.py accepts: advice that the next check refuses is none."""
    return slice_type.hosts == 1


def own_runtime(root: MapNode) -> Iterator[Diagnostic]:
    slice_type = _slice_type(root)
    runtime = look.value(root, _RUNTIME, str)
    owner = next((g.name for g in GENERATIONS if g.runtime_version == runtime), None)
    if slice_type and owner and owner != slice_type.generation:
        right = catalog.generation(slice_type.generation).runtime_version
        message = f"{quoted(runtime or '')} is the runtime of {owner}, not of {slice_type.name}"
        at = look.at(root, _RUNTIME)
        yield problem(codes.RUNTIME_MISMATCH, message, at, path=_RUNTIME, hint=f"leave it out, or write {right}")


def parallelism(root: MapNode) -> Iterator[Diagnostic]:
    slice_type = _slice_type(root)
    tensor, data = look.value(root, _TP, int), look.value(root, _DP, int)
    if slice_type is None or not _positive(tensor, data):
        return
    chips = slice_type.chips
    path = _TP if tensor else _DP
    used = (tensor or 1) * (data or 1)
    if chips % used:
        yield problem(
            codes.PARALLELISM,
            f"{_product(tensor, data)} does not fit {slice_type.name}, which has {_count(chips)}",
            look.at(root, path),
            path=path,
            hint=_what_works(chips, tensor, data),
        )
    elif tensor and used < chips:
        message = f"{_product(tensor, data)} uses {used} of the {chips} chips of {slice_type.name}; all are billed"
        hint = f"data_parallel_size: {chips // tensor} serves {chips // tensor} copies"
        yield warning(codes.IDLE_CHIPS, message, look.at(root, path), path=path, hint=hint)


def _slice_type(root: MapNode) -> AcceleratorType | None:
    return catalog.accelerator_type(look.value(root, _TYPE, str) or "")


def _positive(*sizes: int | None) -> bool:
    """Written, and of a size that means something: what is not is another finding's."""
    return any(sizes) and all(size is None or size > 0 for size in sizes)


def _product(tensor: int | None, data: int | None) -> str:
    written = {"tensor_parallel_size": tensor, "data_parallel_size": data}
    return " x ".join(f"{key} {size}" for key, size in written.items() if size)


def _what_works(chips: int, tensor: int | None, data: int | None) -> str:
    if tensor and data and chips % data == 0:
        return f"with data_parallel_size {data}, tensor_parallel_size may be {_divisors(chips // data)}"
    return f"their product may be {_divisors(chips)}" if tensor and data else f"it may be {_divisors(chips)}"


def _divisors(chips: int) -> str:
    sizes = [str(size) for size in range(1, chips + 1) if chips % size == 0]
    return " or ".join([", ".join(sizes[:-1]), sizes[-1]]) if len(sizes) > 1 else sizes[0]


def _count(chips: int) -> str:
    return "1 chip" if chips == 1 else f"{chips} chips"
