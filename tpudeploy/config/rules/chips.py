"""Check `tpu` against the catalogue: the type exists and is supported, with its runtime, and its chips are used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

from tpudeploy import catalog
from tpudeploy.catalog import type_names
from tpudeploy.catalog.generations import GENERATIONS
from tpudeploy.config import codes
from tpudeploy.config.diagnose import problem, quoted, warning
from tpudeploy.config.nodes import MapNode, Path, dotted, find
from tpudeploy.config.rules import look
from tpudeploy.config.rules.placement import backends
from tpudeploy.domain.accelerator import AcceleratorType, Support
from tpudeploy.domain.deployment import AUTO
from tpudeploy.domain.diagnostics import Diagnostic

_TYPE: Path = ("tpu", "type")
_GENERATION: Path = ("tpu", "generation")
_TOPOLOGY: Path = ("tpu", "topology")
_RUNTIME: Path = ("tpu", "runtime_version")
_TP: Path = ("serving", "tensor_parallel_size")
_DP: Path = ("serving", "data_parallel_size")
# The generations on which vLLM's matrix has several hosts pass, in pipeline stages.
_TESTED_OVER_HOSTS = ("v6e", "tpu7x")
_CODES = {
    type_names.TypeNameFault.UNKNOWN: codes.UNKNOWN_TYPE,
    type_names.TypeNameFault.UNSUPPORTED: codes.NOT_SUPPORTED,
    type_names.TypeNameFault.AMBIGUOUS: codes.AMBIGUOUS_TYPE,
}


def known_type(root: MapNode) -> Iterator[Diagnostic]:
    name = look.value(root, _TYPE, str)
    if not name or catalog.accelerator_type(name) is not None:
        return
    wrong = type_names.problem_of(name, label=quoted(name), is_accepted=lambda t: _is_created(t, root))
    hint = wrong.hint or f"choose one of {_choices(root)}"
    yield problem(_CODES[wrong.fault], wrong.message, look.at(root, _TYPE), path=_TYPE, hint=hint)


def one_slice(root: MapNode) -> Iterator[Diagnostic]:
    """Report a generation and a topology that name no type, or another one than is written."""
    generation, topology = look.value(root, _GENERATION, str), look.value(root, _TOPOLOGY, str)
    if generation is None and topology is None:
        return
    if generation is None or topology is None:
        path, lacking = (_TOPOLOGY, "generation") if generation is None else (_GENERATION, "topology")
        # The value of another type, which the schema reports, is there all the same.
        if find(root, ("tpu", lacking)) is None:
            hint = f"add tpu.{lacking}, or write tpu.type instead"
            message = f"{dotted(path)} needs tpu.{lacking}"
            yield problem(codes.TOPOLOGY, message, look.at(root, path), path=path, hint=hint)
        return
    types = catalog.types_of(generation)
    slice_type = catalog.type_of_topology(generation, topology)
    if not types:
        names = ", ".join(each.name for each in GENERATIONS)
        reason = catalog.UNSUPPORTED_GENERATIONS.get(catalog.unsupported_generation(generation) or "")
        message = f"There is no TPU generation {quoted(generation)} in the catalogue"
        message, hint = f"{message}: {reason}" if reason else message, f"choose one of {names}"
        yield problem(codes.TOPOLOGY, message, look.at(root, _GENERATION), path=_GENERATION, hint=hint)
    elif slice_type is None:
        hint = f"choose one of {', '.join(t.topology for t in types)}"
        message = f"The catalogue has no topology {quoted(topology)} of {types[0].generation}"
        yield problem(codes.TOPOLOGY, message, look.at(root, _TOPOLOGY), path=_TOPOLOGY, hint=hint)
    else:
        name = look.value(root, _TYPE, str) or ""
        message = f"tpu.type is {quoted(name)}, and {generation} with topology {topology} is {slice_type.name}"
        hint = "keep one of them; a layer removes the other with null"
        yield problem(codes.TOPOLOGY, message, look.at(root, _TOPOLOGY), path=_TOPOLOGY, hint=hint)


def _choices(root: MapNode) -> str:
    """Return the types that the profile's backend creates, as text."""
    return ", ".join(t.name for t in catalog.accelerator_types() if _is_created(t, root))


def _is_created(slice_type: AcceleratorType, root: MapNode) -> bool:
    """Return whether a backend of the profile creates slices of this type."""
    return not set(backends(root)).isdisjoint(slice_type.backends)


def over_hosts(root: MapNode) -> Iterator[Diagnostic]:
    """Check how the ranks lie on several hosts. One Ray worker runs on each, and all hosts of a slice take part.

    vLLM's test matrix of 2026-08 has pipeline stages across hosts pass on v6e and TPU7x. Tensor parallelism across
    hosts was tried by its developers (tpu-inference pull request 278), and is not in the matrix.
    """
    slice_type = _slice_type(root)
    if slice_type is None or slice_type.hosts == 1:
        return
    hosts, each = slice_type.hosts, slice_type.devices_per_host
    data, stages = look.value(root, _DP, int) or 1, dict(_stages(root))
    tensor, split = tensor_parallel(root) or 0, prod(size for size, _ in stages.values())
    if not _positive(tensor, data, split) or slice_type.devices % (tensor * data * split):
        return  # `parallelism` reports it
    shape = f"tensor_parallel_size: {each} with args.pipeline_parallel_size: {hosts}"
    if data > 1:
        message = f"data_parallel_size {data} on {slice_type.name}: one copy spans its {hosts} hosts"
        hint = f"leave it out; replicas: {data} serves {data} copies, each on a slice of its own"
        yield problem(codes.NOT_SUPPORTED, message, look.at(root, _DP), path=_DP, hint=hint)
    elif tensor * split < slice_type.devices:
        path = _TP if look.value(root, _TP, int) else next(iter(stages.values()))[1]
        noun = f"{slice_type.device_noun}s"
        message = f"{tensor * split} of the {slice_type.devices} {noun} of {slice_type.name} are used, and all {hosts}"
        hint = f"all hosts of a slice start together: write {shape}"
        yield problem(codes.PARALLELISM, f"{message} hosts are needed", look.at(root, path), path=path, hint=hint)
    elif split > 1 and hosts % split:
        path = next(iter(stages.values()))[1]
        message = f"{split} stages do not divide the {hosts} hosts of {slice_type.name}: a stage has whole hosts"
        yield problem(codes.PARALLELISM, message, look.at(root, path), path=path, hint=f"write {shape}")
    else:
        yield from _untested_over_hosts(root, slice_type, tensor, shape)


def _untested_over_hosts(root: MapNode, slice_type: AcceleratorType, tensor: int, shape: str) -> Iterator[Diagnostic]:
    """Warn of a shape over several hosts that is not in vLLM's tests; `shape` is the one that is."""
    is_tested_generation = slice_type.generation in _TESTED_OVER_HOSTS
    is_over_hosts = tensor > slice_type.devices_per_host
    if is_tested_generation and not is_over_hosts:
        return
    subject = f"{slice_type.hosts} hosts"
    if is_over_hosts:
        subject = f"Tensor parallelism over {tensor // slice_type.devices_per_host} hosts"
    message = f"{subject} of {slice_type.generation} is not in vLLM's tests"
    hint = "expect failures that one host does not have"
    if is_tested_generation:
        hint += f"; in its tests {shape} passes"
    yield warning(codes.UNTESTED_OVER_HOSTS, message, look.at(root, _TYPE), path=_TYPE, hint=hint)


def vllm_support(root: MapNode) -> Iterator[Diagnostic]:
    slice_type = _slice_type(root)
    if slice_type is not None and catalog.generation(slice_type.generation).support is Support.EXPERIMENTAL:
        message = f"vLLM calls its support for {slice_type.generation} experimental"
        hint = "expect models and flags that work on v6e and fail here"
        yield warning(codes.EXPERIMENTAL_GENERATION, message, look.at(root, _TYPE), path=_TYPE, hint=hint)


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
    own = generation.runtime_of(backend)
    owners = [(g.name, b) for g in GENERATIONS for b in g.backends if g.runtime_of(b) == runtime]
    if runtime == own or not owners:
        return
    owner, owner_backend = next((row for row in owners if row[0] == generation.name), owners[0])
    if owner == generation.name:
        message = f"{quoted(runtime)} is the runtime of {owner_backend}, not of {backend}"
    else:
        message = f"{quoted(runtime)} is the runtime of {owner}, not of {slice_type.name}"
    hint = f"leave it out, or write {own}"
    yield problem(codes.RUNTIME_MISMATCH, message, look.at(root, _RUNTIME), path=_RUNTIME, hint=hint)


def parallelism(root: MapNode) -> Iterator[Diagnostic]:
    """Check that the ranks, which take a device each, fit the slice: tensor x pipeline x prefill context x data."""
    slice_type = _slice_type(root)
    tensor, data = look.value(root, _TP, int), look.value(root, _DP, int)
    stages = dict(_stages(root))
    if slice_type is None or not _positive(tensor, data, *(size for size, _ in stages.values())):
        return
    devices, noun = slice_type.devices, slice_type.device_noun
    factors = _factors(tensor, data, stages)
    _, path = next(iter(factors.values()))
    used = prod(size for size, _ in factors.values())
    product = " x ".join(f"{key} {size}" for key, (size, _) in factors.items())
    if devices % used:
        count = f"{devices} {noun if devices == 1 else f'{noun}s'}"
        each = "" if slice_type.devices_per_chip == 1 else f" ({slice_type.devices_per_chip} on each chip)"
        message = f"{product} does not fit {slice_type.name}, which has {count}{each}"
        hint = _what_works(devices, tensor, data, prod(size for size, _ in stages.values()))
        yield problem(codes.PARALLELISM, message, look.at(root, path), path=path, hint=hint)
    elif tensor and used < devices and slice_type.hosts == 1:
        message = f"{product} uses {used} of the {devices} {noun}s of {slice_type.name}; all are billed"
        copies = devices // used * (data or 1)
        hint = f"data_parallel_size: {copies} serves {copies} copies"
        yield warning(codes.IDLE_CHIPS, message, look.at(root, path), path=path, hint=hint)


def tensor_parallel(root: MapNode) -> int | None:
    """Return the ranks of tensor parallelism: as set, else the devices of the slice for each copy and stage."""
    size, slice_type = look.value(root, _TP, int), _slice_type(root)
    if size is not None or slice_type is None:
        return size
    copies = (look.value(root, _DP, int) or 1) * prod(size for _, (size, _) in _stages(root))
    return slice_type.devices // copies if copies > 0 else None


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


def _what_works(devices: int, tensor: int | None, data: int | None, stages: int) -> str:
    if stages > 1:
        return f"the product may be {_divisors(devices)}"
    if tensor and data and devices % data == 0:
        return f"with data_parallel_size {data}, tensor_parallel_size may be {_divisors(devices // data)}"
    return f"their product may be {_divisors(devices)}" if tensor and data else f"it may be {_divisors(devices)}"


def _divisors(count: int) -> str:
    sizes = [str(size) for size in range(1, count + 1) if count % size == 0]
    return " or ".join([", ".join(sizes[:-1]), sizes[-1]]) if len(sizes) > 1 else sizes[0]
