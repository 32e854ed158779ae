"""Answer from the engine's own code, for chips that are absent. Run by the Python of an environment with vllm-tpu.

It imports nothing of tpudeploy. Each line of its input is a request in JSON, each line of its output the answer. libtpu
describes a slice that isn't there; every array on it is a description (shape, type, sharding), so nothing is allocated
and nothing runs there. vLLM makes its configuration, tpu_inference loads the model, splits the weights and lays out the
KV cache; for models that run through torchax, PyTorch's meta device stands in for the checkpoint. With `graphs`, the
engine's precompile loop runs too, and each call of a compiled function becomes a compilation by libtpu.

Requests are answered in forked processes, so that imports are paid once and no engine sees another's state. As the
leader of a session, this process and its children end with their parent.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import functools
import io
import json
import os
import re
import signal
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path
from typing import Any, ClassVar

os.environ.update(
    ALLOW_MULTIPLE_LIBTPU_LOAD="1",
    HF_HUB_OFFLINE="1",
    JAX_PLATFORMS="cpu",
    # What tpu_inference/env_override.py sets before libtpu is loaded.
    LIBTPU_INIT_ARGS="--xla_tpu_use_dynamic_smem_negotiation=true ",
    NUM_PRECOMPILE_WORKERS="1",
    TPU_ACCELERATOR_TYPE="v6e-1",
    TPU_SKIP_MDS_QUERY="1",
    TPU_WORKER_HOSTNAMES="localhost",
    TPU_WORKER_ID="0",
    VLLM_DISABLE_COMPILE_CACHE="1",
    VLLM_LOGGING_LEVEL="ERROR",
    VLLM_NO_USAGE_STATS="1",
    VLLM_XLA_CACHE_PATH="/nonexistent",
)
# Libraries print to the output: the answers have a descriptor of their own.
ANSWERS = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)

import jax
import numpy as np
from jax._src.pallas.mosaic import tpu_info as pallas_info
from jax.experimental import topologies

try:
    from jax._src import tpu_info
except ImportError:  # JAX of tpu_inference 0.29 to 0.31
    tpu_info = pallas_info

Description = jax.ShapeDtypeStruct
PARTS: dict[int, tuple[tuple[int, int, int], str]] = {
    1: ((1, 1, 1), "1x1x1"),
    2: ((1, 2, 1), "1x2x1"),
    4: ((2, 2, 1), "2x2x1"),
    8: ((2, 4, 1), "2x4x1"),
}
# The parts of a spec of the KV cache that an answer has, where the engine's class has them.
SPEC_FIELDS = ("num_kv_heads", "head_size", "sliding_window", "block_size", "page_size_bytes", "shapes")
MOST_MESSAGE = 2_000


class AbsentSlice:
    """The absent slice. The engine sees its devices, and `used` bytes of each as taken, once a model is loaded."""

    devices: ClassVar[list[Any]] = []
    used = 0
    hbm_bytes = 0
    compiles = False


placed: dict[int, tuple[Any, Any]] = {}  # the sharding of each traced array, by its identity; the array keeps it alive


def is_absent(sharding: Any) -> bool:
    try:
        return any(device in AbsentSlice.devices for device in sharding.device_set)
    except (AttributeError, TypeError, ValueError):
        return False


def is_description(value: Any) -> bool:
    return isinstance(value, Description)


def described(value: Any, sharding: Any) -> Any:
    if is_description(value) and value.sharding == sharding:
        return value
    is_key = jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key)
    dtype = value.dtype if is_key else jax.dtypes.canonicalize_dtype(value.dtype)
    return Description(np.shape(value), dtype, sharding=sharding)


_device_put, _jit, _devices = jax.device_put, jax.jit, jax.devices


def device_put(value: Any, device: Any = None, **options: Any) -> Any:
    """Describe what goes to an absent device; remember where a traced array goes."""
    sharding = getattr(device, "sharding", device)
    if not (isinstance(sharding, jax.sharding.Sharding) and is_absent(sharding)):
        return _device_put(value, device, **options)

    def place(leaf: Any) -> Any:
        if not isinstance(leaf, jax.core.Tracer):
            return described(leaf, sharding)
        leaf = jax.numpy.copy(leaf)
        placed[id(leaf)] = (leaf, sharding)
        return leaf

    return jax.tree.map(place, value)


class Compilations:
    """The graphs that were compiled, by name and StableHLO. `report` gets each as it is done."""

    def __init__(self) -> None:
        self.graph = ""
        self.by_text: dict[Any, Any] = {}
        self.report: Any = None

    def compile(self, name: str, lowered: Any, lower_seconds: float) -> Any:
        key = (name, hash(lowered.as_text()))
        if key not in self.by_text:
            began = time.monotonic()
            compiled = self.by_text[key] = lowered.compile()
            memory = compiled.memory_analysis()
            self.report(
                {
                    "graph": self.graph,
                    "function": name,
                    "temp_bytes": memory.temp_size_in_bytes,
                    "code_bytes": memory.generated_code_size_in_bytes,
                    "argument_bytes": memory.argument_size_in_bytes,
                    "output_bytes": memory.output_size_in_bytes,
                    "cycles": estimated_cycles(compiled.as_text()),
                    "seconds": round(lower_seconds + time.monotonic() - began, 1),
                }
            )
        return self.by_text[key]


def estimated_cycles(text: str) -> int:
    """Return the sum of what the compiler estimates for the fusions of the entry computation."""
    entry = text[max(text.rfind("\nENTRY "), 0) :]
    return sum(map(int, re.findall(r'"estimated_cycles":"(\d+)"', entry)))


compilations = Compilations()


class Jit:
    """A jitted function that takes descriptions: then its result is described, or it's compiled for the slice."""

    def __init__(self, function: Any, **options: Any) -> None:
        self.options, self.jitted = options, _jit(function, **options)
        self.__wrapped__ = function
        self.__name__ = getattr(function, "__name__", "function")
        self.__doc__ = function.__doc__

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        return self if owner is None else BoundJit(self, owner)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves, out = jax.tree.leaves((args, kwargs)), self.options.get("out_shardings")
        shardings = jax.tree.leaves(out, is_leaf=lambda x: isinstance(x, jax.sharding.Sharding))
        if any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
            return self.jitted(*args, **kwargs)
        if not any(map(is_description, leaves)) and not any(map(is_absent, shardings)):
            return self.jitted(*args, **kwargs)
        if not AbsentSlice.compiles:
            shapes = self.jitted.eval_shape(*args, **kwargs)
            if isinstance(out, jax.sharding.Sharding):
                return jax.tree.map(lambda shape: Description(shape.shape, shape.dtype, sharding=out), shapes)
            return shapes
        began = time.monotonic()
        lowered = self.jitted.lower(*args, **kwargs)
        compiled = compilations.compile(self.__name__, lowered, time.monotonic() - began)
        return jax.tree.map(
            lambda shape, sharding: Description(shape.shape, shape.dtype, sharding=sharding),
            lowered.out_info,
            compiled.output_shardings,
        )

    def lower(self, *args: Any, **kwargs: Any) -> Any:
        return Lowered(self.jitted.lower(*args, **kwargs), self.__name__)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.jitted, name)


class BoundJit:
    """A jitted function of a class. As in JAX, an explicit `self` is passed to `lower`."""

    def __init__(self, jit_of_class: Jit, owner: Any) -> None:
        self.jit_of_class, self.owner = jit_of_class, owner

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.jit_of_class(self.owner, *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.jit_of_class, name)


class Lowered:
    """A lowered function whose compilation is reported."""

    def __init__(self, lowered: Any, name: str) -> None:
        self.lowered, self.name = lowered, name

    def compile(self, *_: Any, **__: Any) -> Any:
        return compilations.compile(self.name, self.lowered, 0.0)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.lowered, name)


def jit(function: Any = None, **options: Any) -> Any:
    return functools.partial(jit, **options) if function is None else Jit(function, **options)


# Before the engine is imported: its modules decorate functions, and ask for devices, as they are imported.
jax.device_put, jax.jit = device_put, jit
jax.devices = lambda backend=None: _devices(backend) if backend == "cpu" else AbsentSlice.devices
jax.local_devices = lambda *_, **__: AbsentSlice.devices
jax.device_count = jax.local_device_count = lambda *_: len(AbsentSlice.devices)
Description.block_until_ready = lambda self: self
Description.to = lambda self, *_, **__: self  # a model that pools rehearses its copy to the host
for module in (tpu_info, pallas_info):
    module.get_device_kind = lambda: AbsentSlice.devices[0].device_kind
    module.get_num_device_cores = lambda: 1

import jax.numpy as jnp
import torch
import torchax
import tpu_inference.distributed.jax_parallel_state as parallel_state
import tpu_inference.models.vllm.vllm_model_wrapper as wrapper
import tpu_inference.utils as engine_utils
from flax import nnx
from torchax.interop import jax_view
from tpu_inference.models.common import model_loader
from tpu_inference.runner.tpu_runner import TPUModelRunner
from vllm.config import set_current_vllm_config
from vllm.distributed import ensure_model_parallel_initialized, init_distributed_environment
from vllm.engine.arg_utils import EngineArgs
from vllm.model_executor.model_loader.utils import initialize_model, process_weights_after_loading
from vllm.model_executor.models import registry
from vllm.utils.torch_utils import set_default_torch_dtype

try:
    from vllm.utils.argparse_utils import FlexibleArgumentParser
except ImportError:
    from vllm.utils import FlexibleArgumentParser

try:
    from vllm.v1.core.kv_cache_planning import get_kv_cache_configs
except ImportError:
    from vllm.v1.core.kv_cache_utils import get_kv_cache_configs

# The class of a model is inspected here, not in yet another process that imports everything again.
registry._run_in_subprocess = lambda function: function()
engine_utils.hbm_usage_gb = lambda _: [
    (AbsentSlice.used / 1024**3, AbsentSlice.hbm_bytes / 1024**3) for _device in AbsentSlice.devices
]
engine_utils.hbm_usage_bytes = lambda _: [(AbsentSlice.used, AbsentSlice.hbm_bytes) for _device in AbsentSlice.devices]


def abstract_jax_model(
    model_class: Any, config: Any, rng: Any, mesh: Any, pooler: Any = None, *, is_draft_model: bool = False
) -> Any:
    """Stand in for tpu_inference's `_get_nnx_model`: the model as its class declares it, without its weights."""
    with jax.set_mesh(mesh):
        model = nnx.eval_shape(lambda: model_class(config, rng, mesh), graph_updates=False)
    state = nnx.state(model)
    for _, variable in state.flat_state():
        metadata = variable.get_metadata()
        spec = metadata.get("out_sharding") or metadata.get("sharding") or metadata.get("sharding_names") or ()
        spec = spec.spec if isinstance(spec, jax.sharding.NamedSharding) else spec
        value = variable.get_value() if hasattr(variable, "get_value") else variable.value
        if hasattr(value, "shape"):
            sharding = (
                jax.sharding.SingleDeviceSharding(AbsentSlice.devices[0])
                if len(AbsentSlice.devices) == 1
                else jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*spec))
            )
            variable.set_value(Description(value.shape, value.dtype, sharding=sharding))
    nnx.update(model, state)
    if hasattr(model, "initialize_cache"):
        model.initialize_cache()
    return model


def to_jax(tensor: Any, *_: Any, **__: Any) -> Any:
    """Stand in for the copy of a tensor to JAX: a traced array of its shape."""
    if isinstance(tensor, torchax.tensor.Tensor):
        return jax_view(tensor)
    return jnp.zeros(tuple(tensor.shape), engine_utils.to_jax_dtype(tensor.dtype))


_new_parameter = torch.nn.Parameter.__new__


def parameter(kind: Any, data: Any = None, requires_grad: Any = True) -> Any:
    """Make a parameter of a tensor; it detaches it, and the copy lies where the tensor does."""
    made = _new_parameter(kind, data, requires_grad)
    if isinstance(data, torchax.tensor.Tensor) and id(jax_view(data)) in placed:
        placed[id(jax_view(made))] = (jax_view(made), placed[id(jax_view(data))][1])
    return made


torch.nn.Parameter.__new__ = staticmethod(parameter)
_item = torch.Tensor.item
# A scale or a threshold that a class computes from its weights: no shape depends on it.
torch.Tensor.item = lambda self: 1.0 if self.device.type == "meta" else _item(self)


def is_on_host(tensor: Any) -> bool:
    return not isinstance(tensor, torchax.tensor.Tensor)


def abstract_torch_model(loaded: dict[str, Any], *, vllm_config: Any, model_config: Any = None, **_: Any) -> Any:
    """Stand in for vLLM's `get_model`: the model on PyTorch's meta device, its weights on their way to the slice."""
    for name, module in list(sys.modules.items()):
        if name.startswith("tpu_inference") and module is not None:
            stand_ins = {
                "t2j": to_jax,
                "_tensor_is_in_cpu": is_on_host,
                "_load_weight_on_host": lambda tensor, _sharding: to_jax(tensor),
            }
            for title, stand_in in stand_ins.items():
                if title in vars(module):
                    setattr(module, title, stand_in)
    model_config = model_config or vllm_config.model_config
    with set_default_torch_dtype(model_config.dtype), torch.device("meta"):
        model = initialize_model(vllm_config=vllm_config, model_config=model_config)
    loaded["parameters"] = sum(parameter.numel() for parameter in model.parameters())
    loaded["parameter_bytes"] = sum(parameter.numel() * parameter.element_size() for parameter in model.parameters())
    process_weights_after_loading(model, model_config, torch.device("meta"))
    return model


def item_bytes(dtype: Any) -> float:
    return 0.5 if "int4" in str(dtype) or "float4" in str(dtype) else dtype.itemsize


def traced_load(loaded: dict[str, Any], load: Any) -> Any:
    """Return a `load_weights` that is traced: what it puts on the slice is counted, nothing is allocated."""

    def load_weights(self: Any, shared_params: Any = None) -> Any:
        result = []

        def trace() -> int:
            params, lora = load(self, shared_params=shared_params)
            buffers = set(dict(self.model.named_buffers()))
            for name, tensor in params.items():
                array = jax_view(tensor)
                _, sharding = placed.get(id(array), (None, None))
                shape = array.shape if sharding is None else sharding.shard_shape(array.shape)
                kind = "buffers" if name in buffers else "weights"
                loaded[kind] = loaded.get(kind, 0) + int(np.prod(shape) * item_bytes(array.dtype))
            result.append((params, lora))
            return 0

        jax.eval_shape(trace)
        return result[0]

    return load_weights


def is_weight(leaf: Any) -> bool:
    return is_description(leaf) and not jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def engine_config(request: dict[str, Any], folder: Path) -> Any:
    for name, tree in {**request.get("files", {}), "config.json": request["config"]}.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(tree), encoding="utf-8")
    arguments = {
        "model": str(folder),
        "tensor_parallel_size": request["tensor_parallel_size"],
        "skip_tokenizer_init": True,
        **request.get("args", {}),
    }
    words = ["--model", str(folder), *arguments.pop("words", [])]  # offline, vLLM looks for its default model else
    return dataclasses.replace(as_parsed(words), **arguments).create_engine_config()


def as_parsed(words: list[str]) -> EngineArgs:
    """Return the settings that vLLM reads of words. Raise ValueError with what its parser says of wrong ones."""
    parser = EngineArgs.add_cli_args(FlexibleArgumentParser())
    errors = io.StringIO()
    try:
        with contextlib.redirect_stderr(errors):
            return EngineArgs.from_cli_args(parser.parse_args(words))
    except SystemExit as cause:
        raise ValueError(errors.getvalue().strip().rpartition("error: ")[2]) from cause


def set_slice(request: dict[str, Any]) -> None:
    chips, chip = request["tensor_parallel_size"], request["chip"]
    bounds, shape = PARTS[chips]
    os.environ["TPU_ACCELERATOR_TYPE"] = f"{'v5litepod' if chip == 'v5e' else chip}-{chips}"
    topology = topologies.get_topology_desc(
        topology_name=f"{chip}:{shape}", platform="tpu", chips_per_host_bounds=bounds, num_slices=1
    )
    AbsentSlice.devices[:] = list(topology.devices)
    AbsentSlice.hbm_bytes = request["hbm_bytes"]


def answer(request: dict[str, Any], report: Any) -> dict[str, Any]:
    """Return what the engine makes of a model, and what it says where it refuses."""
    set_slice(request)
    result: dict[str, Any] = {"libtpu": versions("libtpu"), "engine": versions("tpu_inference")}
    loaded: dict[str, Any] = {}
    model_loader._get_nnx_model = abstract_jax_model
    wrapper.vllm_get_model = functools.partial(abstract_torch_model, loaded)
    wrapper.VllmModelWrapper.load_weights = traced_load(loaded, wrapper.VllmModelWrapper.load_weights)
    with tempfile.TemporaryDirectory(prefix="tpudeploy-model-") as name:
        config = engine_config(request, Path(name))
        result.update(described_config(config))
        parallel_state.init_pp_distributed_environment(
            ip="127.0.0.1", rank=0, world_size=1, device=AbsentSlice.devices[0], need_pp=False
        )
        with set_current_vllm_config(config):
            rendezvous = f"file://{name}/rendezvous"
            init_distributed_environment(
                world_size=1, rank=0, local_rank=0, distributed_init_method=rendezvous, backend="gloo"
            )
            ensure_model_parallel_initialized(1, 1)
            runner = TPUModelRunner(config, AbsentSlice.devices)
            runner.load_model()
            result.update(described_weights(runner, loaded))
            AbsentSlice.used = result["weights_bytes_per_chip"]
            result.update(described_cache(runner, config))
            if request.get("graphs") is not None:
                compile_graphs(runner, config, request["graphs"], result, report)
    return result


def versions(package: str) -> str:
    from importlib.metadata import version

    return version(package)


def described_config(config: Any) -> dict[str, Any]:
    model, scheduler = config.model_config, config.scheduler_config
    return {
        "architecture": model.architectures[0],
        "block_size": config.cache_config.block_size,
        "max_model_len": model.max_model_len,
        "max_num_seqs": scheduler.max_num_seqs,
        "max_num_batched_tokens": scheduler.max_num_batched_tokens,
        "dtype": str(model.dtype).removeprefix("torch."),
        "quantization": model.quantization or "",
        "runner": model.runner_type,
        "vocabulary": model.get_vocab_size(),
        "hidden": model.get_hidden_size(),
        "is_multimodal": bool(model.is_multimodal_model),
        "has_prefix_caching": bool(config.cache_config.enable_prefix_caching),
    }


def described_weights(runner: Any, loaded: dict[str, Any]) -> dict[str, Any]:
    if loaded:
        total = loaded.get("weights", 0) + loaded.get("buffers", 0)
        return {"implementation": "vllm", "weights_bytes_per_chip": total, **loaded}
    leaves = [leaf for leaf in runner.state_leaves if is_weight(leaf)]
    per_chip = sum(int(np.prod(leaf.sharding.shard_shape(leaf.shape)) * item_bytes(leaf.dtype)) for leaf in leaves)
    return {
        "implementation": "flax_nnx",
        "weights_bytes_per_chip": per_chip,
        "parameters": sum(int(np.prod(leaf.shape)) for leaf in leaves),
        "parameter_bytes": sum(int(np.prod(leaf.shape) * item_bytes(leaf.dtype)) for leaf in leaves),
    }


def described_cache(runner: Any, config: Any) -> dict[str, Any]:
    """Return the layers' specs, and the blocks that vLLM makes of them. A refusal is part of the answer."""
    cache: dict[str, Any] = {}
    try:
        specs = runner.get_kv_cache_spec()
    except (ValueError, NotImplementedError) as refusal:
        return {"cache_refusal": str(refusal)[:MOST_MESSAGE]}
    rows: collections.Counter[tuple[str, str]] = collections.Counter()
    for spec in specs.values():
        fields = {name: getattr(spec, name) for name in SPEC_FIELDS if hasattr(spec, name)}
        if hasattr(spec, "page_size_padded"):
            fields["own_bytes"] = dataclasses.replace(spec, page_size_padded=None).page_size_bytes
        rows[type(spec).__name__, json.dumps(fields, default=str, sort_keys=True)] += 1
    cache["layers"] = [{"kind": kind, **json.loads(text), "count": count} for (kind, text), count in rows.items()]
    if not specs:
        return cache
    set_layout(config, list(specs.values()))
    chips = len(AbsentSlice.devices)
    available = int(
        AbsentSlice.hbm_bytes * config.cache_config.gpu_memory_utilization * chips - AbsentSlice.used * chips
    )
    try:
        (planned,) = get_kv_cache_configs(config, [specs], [available])
        cache["num_blocks"] = planned.num_blocks
        runner.planned_cache = planned
    except ValueError as refusal:
        cache["cache_refusal"] = str(refusal)[:MOST_MESSAGE]
    states = getattr(config.cache_config, "mamba_num_blocks", None)
    return {**cache, "num_states": states} if states else cache


def set_layout(config: Any, specs: list[Any]) -> None:
    try:
        from vllm.v1.attention.backends.utils import resolve_kv_cache_layout
    except ImportError:
        return
    config.cache_config.kv_cache_layout = resolve_kv_cache_layout(config, [["LBNHC"]], specs).name


class GraphNames:
    """Names each graph. The engine compiles variants of one under one name, in the same order each time.

    So a run that was killed between variants continues with those that follow.
    """

    def __init__(self) -> None:
        self._calls: collections.Counter[str] = collections.Counter()

    def next(self, title: str, sizes: dict[str, int]) -> str:
        """Return the name of the graph that is compiled next."""
        name = " ".join([title, *(f"{key}={value}" for key, value in sizes.items())])
        self._calls[name] += 1
        count = self._calls[name]
        return name if count == 1 else f"{name} variant={count}"


class HostArrays:
    """Stand in for jax.numpy where the precompile loop fills arrays: they have a value here, and none on the slice."""

    zeros, ones = staticmethod(np.zeros), staticmethod(np.ones)

    def __getattr__(self, name: str) -> Any:
        return getattr(jnp, name)


def compile_graphs(runner: Any, config: Any, wish: dict[str, Any], result: dict[str, Any], report: Any) -> None:
    """Run the engine's precompile loop; report each graph as it is compiled, and what libtpu refuses."""
    if result["implementation"] != "flax_nnx":
        message = f"{result['architecture']} runs through torchax, whose graphs can't be compiled without its weights."
        raise NotImplementedError(message)
    if "num_blocks" not in result:
        raise ValueError(result.get("cache_refusal", "It has no KV cache."))
    report({**result, "is_head": True})
    config.cache_config.num_gpu_blocks = result["num_blocks"]
    AbsentSlice.compiles = True
    compilations.report = report
    runner.initialize_kv_cache(runner.planned_cache)
    manager = runner.compilation_manager
    manager._create_dummy_tensor = lambda shape, dtype, sharding=None: Description(
        tuple(shape),
        engine_utils.to_jax_dtype(dtype),
        sharding=sharding or jax.sharding.NamedSharding(runner.mesh, jax.sharding.PartitionSpec(None)),
    )
    sys.modules[type(manager).__module__].jnp = HostArrays()
    if wish.get("token_buckets"):
        runner.num_tokens_paddings = list(wish["token_buckets"])
    run_compilation = manager._run_compilation
    done = set(wish.get("done", {}).get(f"{result['engine']}-{result['libtpu']}", ()))
    only = tuple(wish.get("only", ()))
    names = GraphNames()

    def run(name: str, function: Any, *args: Any, **kwargs: Any) -> None:
        sizes = {key: value for key, value in kwargs.items() if type(value) is int}
        title = re.sub(r"^worker\d+ ", "", name)
        graph = names.next(title, sizes)
        if graph in done or (only and not any(word in title for word in only)):
            return
        compilations.graph = graph
        try:
            run_compilation(name, function, *args, **kwargs)
            tasks, manager._warmup_tasks = manager._warmup_tasks, []
            with jax.set_mesh(runner.mesh):
                for _, task, task_args, task_kwargs, handler in tasks:
                    if handler:
                        handler(task, task_args, task_kwargs)
                    else:
                        task(*task_args, **task_kwargs)
        except jax.errors.JaxRuntimeError as refusal:
            manager._warmup_tasks = []
            report({"graph": graph, "refusal": str(refusal)[:MOST_MESSAGE]})
        report({"graph": graph, "is_done": True})

    manager._run_compilation = run
    with jax.set_mesh(runner.mesh):
        manager._precompile_sampling()
        manager._precompile_gather_logprobs()
    manager._sampling_precompiled = manager._gather_logprobs_precompiled = True
    manager.capture_model()
    report({"is_complete": not only})


def serve(line: str, pipe: int) -> None:
    """Answer one request in this forked process, on `pipe`."""

    def write(row: dict[str, Any]) -> None:
        os.write(pipe, (json.dumps(row, default=str) + "\n").encode())

    try:
        request = json.loads(line)
        os.environ.update(request.get("env", {}))
        write({"answer": answer(request, write)})
    except BaseException as refusal:  # noqa: BLE001 - whatever the engine says is the answer
        traceback.print_exc(limit=-8)
        write({"refusal": f"{type(refusal).__name__}: {refusal}"[:MOST_MESSAGE]})


def end_with_parent() -> None:
    """End this process and what it has forked when the parent has ended, because its answer has no reader."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()


def main() -> None:
    is_leader = os.getpid() == os.getpgid(0)
    if is_leader:
        end_with_parent()
    for line in sys.stdin:
        out, into = os.pipe()
        child = os.fork()
        if not child:
            os.close(out)
            if is_leader:
                end_with_parent()
            serve(line, into)
            os._exit(0)
        os.close(into)
        with os.fdopen(out) as rows:
            for row in rows:
                ANSWERS.write(row)
        _, status = os.waitpid(child, 0)
        if status:  # each request has its answer, though it was killed
            ANSWERS.write(json.dumps({"refusal": f"ChildProcessError: the engine ended with status {status}"}) + "\n")


if __name__ == "__main__":
    main()
