"""Check `tpu` against the catalogue: the type exists and is supported, with its runtime, and its chips are used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

from tpudeploy import catalog
from tpudeploy.catalog import type_names
from tpudeploy.catalog.generations import GENERATIONS
from tpudeploy.config import codes
from tpudeploy.config.diagnose import quoted
from tpudeploy.config.nodes import Path, dotted
from tpudeploy.config.rules.placement import backends
from tpudeploy.config.rules.server import Server
from tpudeploy.config.rules.violation import Violation, is_set
from tpudeploy.config.schema import ProfileSpec
from tpudeploy.domain.accelerator import AcceleratorType, Support
from tpudeploy.domain.deployment import AUTO

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


def known_type(profile: ProfileSpec) -> Iterator[Violation]:
    name = profile.tpu.type
    if not name or catalog.accelerator_type(name) is not None:
        return
    wrong = type_names.problem_of(name, label=quoted(name), is_accepted=lambda t: _is_created(t, profile))
    hint = wrong.hint or f"choose one of {_choices(profile)}"
    yield Violation(_CODES[wrong.fault], _TYPE, wrong.message, hint)


def one_slice(profile: ProfileSpec) -> Iterator[Violation]:
    """Report a generation and a topology that name no type, or another one than is written."""
    generation, topology = profile.tpu.generation, profile.tpu.topology
    if generation is None or topology is None:
        for path, other in ((_TOPOLOGY, _GENERATION), (_GENERATION, _TOPOLOGY)):
            if is_set(profile, path) and not is_set(profile, other):
                message, hint = (
                    f"{dotted(path)} needs {dotted(other)}",
                    f"add {dotted(other)}, or write tpu.type instead",
                )
                yield Violation(codes.TOPOLOGY, path, message, hint)
        return
    types = catalog.types_of(generation)
    slice_type = catalog.type_of_topology(generation, topology)
    if not types:
        names = ", ".join(each.name for each in GENERATIONS)
        reason = catalog.UNSUPPORTED_GENERATIONS.get(catalog.unsupported_generation(generation) or "")
        message = f"There is no TPU generation {quoted(generation)} in the catalogue"
        message, hint = f"{message}: {reason}" if reason else message, f"choose one of {names}"
        yield Violation(codes.TOPOLOGY, _GENERATION, message, hint)
    elif slice_type is None:
        hint = f"choose one of {', '.join(t.topology for t in types)}"
        message = f"The catalogue has no topology {quoted(topology)} of {types[0].generation}"
        yield Violation(codes.TOPOLOGY, _TOPOLOGY, message, hint)
    else:
        message = (
            f"tpu.type is {quoted(profile.tpu.type)}, and {generation} with topology {topology} is {slice_type.name}"
        )
        hint = "keep one of them; a layer removes the other with null"
        yield Violation(codes.TOPOLOGY, _TOPOLOGY, message, hint)


def _choices(profile: ProfileSpec) -> str:
    """Return the types that the profile's backend creates, as text."""
    return ", ".join(t.name for t in catalog.accelerator_types() if _is_created(t, profile))


def _is_created(slice_type: AcceleratorType, profile: ProfileSpec) -> bool:
    """Return whether a backend of the profile creates slices of this type."""
    return not set(backends(profile)).isdisjoint(slice_type.backends)


def over_hosts(server: Server) -> Iterator[Violation]:
    """Check how the ranks lie on several hosts. One Ray worker runs on each, and all hosts of a slice take part.

    vLLM's test matrix of 2026-08 has pipeline stages across hosts pass on v6e and TPU7x. Tensor parallelism across
    hosts was tried by its developers (tpu-inference pull request 278), and is not in the matrix.
    """
    slice_type = catalog.accelerator_type(server.profile.tpu.type)
    if slice_type is None or slice_type.hosts == 1:
        return
    hosts, each = slice_type.hosts, slice_type.devices_per_host
    data, stages = server.profile.serving.data_parallel_size or 1, dict(_stages(server))
    tensor, split = tensor_parallel(server) or 0, prod(size for size, _ in stages.values())
    if tensor < 1 or split < 1 or slice_type.devices % (tensor * data * split):
        return  # `parallelism` reports it
    shape = f"tensor_parallel_size: {each} with args.pipeline_parallel_size: {hosts}"
    if data > 1:
        message = f"data_parallel_size {data} on {slice_type.name}: one copy spans its {hosts} hosts"
        hint = f"leave it out; replicas: {data} serves {data} copies, each on a slice of its own"
        yield Violation(codes.NOT_SUPPORTED, _DP, message, hint)
    elif tensor * split < slice_type.devices:
        path = _TP if server.profile.serving.tensor_parallel_size else next(iter(stages.values()))[1]
        noun = f"{slice_type.device_noun}s"
        message = f"{tensor * split} of the {slice_type.devices} {noun} of {slice_type.name} are used, and all {hosts}"
        hint = f"all hosts of a slice start together: write {shape}"
        yield Violation(codes.PARALLELISM, path, f"{message} hosts are needed", hint)
    elif split > 1 and hosts % split:
        path = next(iter(stages.values()))[1]
        message = f"{split} stages do not divide the {hosts} hosts of {slice_type.name}: a stage has whole hosts"
        yield Violation(codes.PARALLELISM, path, message, f"write {shape}")
    else:
        yield from _untested_over_hosts(slice_type, tensor, shape)


def _untested_over_hosts(slice_type: AcceleratorType, tensor: int, shape: str) -> Iterator[Violation]:
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
    yield Violation(codes.UNTESTED_OVER_HOSTS, _TYPE, message, hint, is_warning=True)


def vllm_support(profile: ProfileSpec) -> Iterator[Violation]:
    slice_type = catalog.accelerator_type(profile.tpu.type)
    if slice_type is not None and catalog.generation(slice_type.generation).support is Support.EXPERIMENTAL:
        message = f"vLLM calls its support for {slice_type.generation} experimental"
        hint = "expect models and flags that work on v6e and fail here"
        yield Violation(codes.EXPERIMENTAL_GENERATION, _TYPE, message, hint, is_warning=True)


def own_runtime(profile: ProfileSpec) -> Iterator[Violation]:
    slice_type = catalog.accelerator_type(profile.tpu.type)
    runtime = profile.tpu.runtime_version
    if slice_type is None or runtime is None:
        return
    generation = catalog.generation(slice_type.generation)
    chosen_backends = backends(profile)
    backend = chosen_backends[0]
    if len(chosen_backends) > 1:
        message = (
            f"{quoted(runtime)} is the runtime of one API, and {AUTO} requests from {' and '.join(chosen_backends)}"
        )
        hint = f"leave it out, because each has its own default; or write backend: {backend}"
        yield Violation(codes.RUNTIME_MISMATCH, _RUNTIME, message, hint)
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
    yield Violation(codes.RUNTIME_MISMATCH, _RUNTIME, message, hint)


def parallelism(server: Server) -> Iterator[Violation]:
    """Check that the ranks, which take a device each, fit the slice: tensor x pipeline x prefill context x data."""
    slice_type = catalog.accelerator_type(server.profile.tpu.type)
    tensor, data = server.profile.serving.tensor_parallel_size, server.profile.serving.data_parallel_size
    stages = dict(_stages(server))
    factors = _factors(tensor, data, stages)
    # Without any size, one rank has the slice. `engine_values` reports a number of stages below 1.
    if slice_type is None or not factors or min(size for size, _ in factors.values()) < 1:
        return
    devices, noun = slice_type.devices, slice_type.device_noun
    _, path = next(iter(factors.values()))
    used = prod(size for size, _ in factors.values())
    product = " x ".join(f"{key} {size}" for key, (size, _) in factors.items())
    if devices % used:
        count = f"{devices} {noun if devices == 1 else f'{noun}s'}"
        each = "" if slice_type.devices_per_chip == 1 else f" ({slice_type.devices_per_chip} on each chip)"
        message = f"{product} does not fit {slice_type.name}, which has {count}{each}"
        hint = _what_works(devices, tensor, data, prod(size for size, _ in stages.values()))
        yield Violation(codes.PARALLELISM, path, message, hint)
    elif tensor and used < devices and slice_type.hosts == 1:
        message = f"{product} uses {used} of the {devices} {noun}s of {slice_type.name}; all are billed"
        copies = devices // used * (data or 1)
        hint = f"data_parallel_size: {copies} serves {copies} copies"
        yield Violation(codes.IDLE_CHIPS, path, message, hint, is_warning=True)


def tensor_parallel(server: Server) -> int | None:
    """Return the ranks of tensor parallelism: as set, else the devices of the slice for each copy and stage."""
    serving, slice_type = server.profile.serving, catalog.accelerator_type(server.profile.tpu.type)
    if serving.tensor_parallel_size is not None or slice_type is None:
        return serving.tensor_parallel_size
    copies = (serving.data_parallel_size or 1) * prod(size for _, (size, _) in _stages(server))
    return slice_type.devices // copies if copies > 0 else None


def ranks(server: Server) -> int:
    """Return how many ranks the deployment has: tensor x data x pipeline x prefill context."""
    stages = prod(size for _, (size, _) in _stages(server))
    return (tensor_parallel(server) or 1) * (server.profile.serving.data_parallel_size or 1) * stages


def _stages(server: Server) -> Iterator[tuple[str, tuple[int, Path]]]:
    """Yield the parallelism that has no key of its own, if it is not 1."""
    for name in ("pipeline-parallel-size", "prefill-context-parallel-size"):
        flag = server.settings.get(name)
        if flag is not None and type(flag.value) is int and flag.value != 1:
            yield name.replace("-", "_"), (flag.value, flag.path)


def _factors(
    tensor: int | None, data: int | None, stages: Mapping[str, tuple[int, Path]]
) -> dict[str, tuple[int, Path]]:
    keys = {"tensor_parallel_size": (tensor, _TP), "data_parallel_size": (data, _DP)}
    sizes = {key: (size, path) for key, (size, path) in keys.items() if size}
    return {**sizes, **stages}


def _what_works(devices: int, tensor: int | None, data: int | None, stages: int) -> str:
    if stages > 1:
        return f"the product may be {_divisors(devices)}"
    if tensor and data and devices % data == 0:
        return f"with data_parallel_size {data}, tensor_parallel_size may be {_divisors(devices // data)}"
    return f"their product may be {_divisors(devices)}" if tensor and data else f"it may be {_divisors(devices)}"


def _divisors(count: int) -> str:
    sizes = [str(size) for size in range(1, count + 1) if count % size == 0]
    return " or ".join([", ".join(sizes[:-1]), sizes[-1]]) if len(sizes) > 1 else sizes[0]
