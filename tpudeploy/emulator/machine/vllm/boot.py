"""How the stand-in boots: the milestones of a real boot log, spread over the scenario's seconds of the node's clock.

The order and the durations are those of a measured cold boot of google/gemma-4-E2B-it on a v6e-1 (652 s), with the
graphs that graphs.py lists for this server; the lines have vLLM 0.32's form.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from tpudeploy.emulator.machine.vllm import deaths
from tpudeploy.emulator.machine.vllm.arguments import Arguments
from tpudeploy.emulator.machine.vllm.engine import EmulatedEngine
from tpudeploy.emulator.machine.vllm.graphs import Graph
from tpudeploy.emulator.machine.vllm.lifeline import Lifeline, say
from tpudeploy.emulator.timings import Jitter

LEAST_SECONDS = 1.0  # JAX's jax_persistent_cache_min_compile_time_secs
READ_SHARE = 0.02  # of what compiling a program takes, to read it from the cache: what brings the sum to the log's
# The stand-in's programs depend on these, beside the model, the image, the chips and the number of blocks.
FLAGS = (
    *("tensor-parallel-size", "data-parallel-size", "dtype", "kv-cache-dtype", "block-size", "max-model-len"),
    *("max-num-seqs", "max-num-batched-tokens", "speculative-config", "limit-mm-per-prompt", "additional-config"),
)
GAP = "VLLM_TPU_BUCKET_PADDING_GAP"


@dataclass(frozen=True, slots=True, kw_only=True)
class Programs:
    """The stand-in's compile cache: a file for each program, as JAX stores them, which its contents identify.

    JAX names an entry by a hash of the program, the compiler and the chips, and stores only what took a second to
    compile. In the measured boot, 393.98 s of 447.75 s of engine start were compilation; the groups of graphs that took
    a second each and more make 401 s of the total.

    `folder` None: nothing is cached. `identity` is what all programs of this server were compiled for.
    """

    folder: Path | None
    identity: str

    def has(self, name: str) -> bool:
        """Return whether a program can be read back: an incomplete file, or one of another server, does not count."""
        entry = self._entry(name)
        return entry is not None and entry.is_file() and entry.read_bytes() == self._content(name)

    def keep(self, name: str) -> None:
        entry = self._entry(name)
        if entry is None:
            return
        entry.parent.mkdir(parents=True, exist_ok=True)
        entry.write_bytes(self._content(name))

    def _entry(self, name: str) -> Path | None:
        function = name.partition(" --> ")[0]  # JAX names the file by the function; its shapes are in the hash
        slug = "".join(c if c.isalnum() else "_" for c in function)
        return None if self.folder is None else self.folder / f"jit_{slug}-{self._hash(name)}-cache"

    def _content(self, name: str) -> bytes:
        return (self._hash(f"content of {name}") * 16).encode()

    def _hash(self, name: str) -> str:
        return hashlib.sha256(f"{self.identity}\n{name}".encode()).hexdigest()


def programs_of(engine: EmulatedEngine, arguments: Arguments, task: Mapping[str, Any]) -> Programs:
    inputs: Sequence[object] = (
        engine.name,  # a copy of the weights is the same model
        task["image_digest"],
        task["accelerator_type"],
        engine.cache.blocks,
        *(arguments.flags.get(flag) for flag in FLAGS),
        task["environment"].get(GAP),
    )
    folder = task["cache_folder"]
    return Programs(folder=None if folder is None else Path(folder), identity=repr(inputs))


API = "(APIServer pid=1) "
CORE = "(EngineCore pid=327) "
MEASURED_SECONDS = 652
# `init engine (profile, create kv cache, warmup model) took 447.75 s (compilation: 393.98 s)`, of the same boot.
MEASURED_INIT, MEASURED_COMPILATION = 447.75, 393.98
# Seconds of the same boot for all graphs, and for those that take long enough to be cached.
MEASURED_GRAPHS, MEASURED_KEPT = 447, 401

WHENCE = {
    "unmeasured": "nobody measured a boot like this: of the KV cache there are no figures",
    "scenario": "the figures of the KV cache are the scenario's",
}


def milestones(
    engine: EmulatedEngine, arguments: Arguments, place: tuple[str, int], programs: Programs, jitter: Jitter
) -> Iterator[tuple[float, str]]:
    """Second of the measured boot → line. `{at}` becomes the time of day. Programs in the cache take less."""
    cache = engine.cache
    concurrency = cache.tokens / engine.max_model_len
    yield (
        12,
        f"{API}INFO {{at}} [api_utils.py:345] version {engine.version}, model {engine.model} (the emulator's stand-in)",
    )
    yield 12, f"{API}INFO {{at}} [api_utils.py:273] non-default args: {_format_arguments(arguments)}"
    yield 24, f"{API}INFO {{at}} [model.py:1883] Using max model len {engine.max_model_len}"
    yield 83, f"{CORE}INFO {{at}} [compilation_manager.py:66] Enabling JAX compile cache."
    yield 83, f"{CORE}INFO {{at}} [model_loader.py:625] Loading model with MODEL_IMPL_TYPE=auto"
    # On this disk already, the weights are not downloaded first: 9 s of the measured boot.
    sooner = 0 if arguments.model == engine.name else 9
    yield max(83, 90 - sooner), f"{CORE}Loading safetensors checkpoint shards:   0% Completed | 0/1 [00:00<?, ?it/s]"
    yield 140 - sooner, f"{CORE}Loading safetensors checkpoint shards: 100% Completed | 1/1 [00:49<00:00, 49.75s/it]"
    if cache.memory:
        yield 143 - sooner, f"{CORE}INFO {{at}} [tpu_worker.py:557] Memory statistics | {cache.memory}"
    if cache.origin in WHENCE:
        yield 143 - sooner, f"{CORE}INFO {{at}} [emulator] {WHENCE[cache.origin]}"
    pool = f"{cache.tokens:,} tokens, Maximum concurrency for {engine.max_model_len:,} tokens per request"
    if cache.origin != "unmeasured":
        size = f"{CORE}INFO {{at}} [kv_cache_utils.py:2330] TPU KV cache size: {pool}: {concurrency:.2f}x"
        yield 143 - sooner, size
    ready = yield from _compile(143 - sooner, engine.graphs, programs, jitter)
    yield ready + 62, f"{API}INFO {{at}} [api_server.py:682] Starting vLLM server on http://{place[0]}:{place[1]}"


def _compile(
    began: float, graphs: Sequence[Graph], programs: Programs, jitter: Jitter
) -> Generator[tuple[float, str], None, float]:
    """Compile or read every graph; return the second at which the engine is ready."""
    at, compiled = began, 0.0
    for group, members in groupby(graphs, key=lambda graph: graph.group):
        count = 0
        for graph in members:
            count += 1
            takes = jitter.vary(graph.seconds, graph.name)
            is_kept = graph.seconds >= LEAST_SECONDS
            is_there = is_kept and programs.has(graph.name)
            yield at, f"{CORE}INFO {{at}} [compilation_manager.py:137] Precompile {graph.name}"
            at += takes * (READ_SHARE if is_there else 1)
            compiled += takes if is_kept and not is_there else 0
            if is_kept and not is_there:
                programs.keep(graph.name)
        if not group.startswith("input_embeddings_merger"):  # these two take turns
            yield at, f"{CORE}INFO {{at}} [compilation_manager.py:228] Warm-up call pass finished over {count} tasks."
    took = at - began + MEASURED_INIT - MEASURED_GRAPHS
    compilation = MEASURED_COMPILATION * compiled / MEASURED_KEPT
    figures = f"took {took:.2f} s (compilation: {compilation:.2f} s)"
    yield at, f"{CORE}INFO {{at}} [core.py:348] init engine (profile, create kv cache, warmup model) {figures}"
    return at


class BootSequence:
    def __init__(self, task: Mapping[str, Any], lifeline: Lifeline) -> None:
        self._task = task
        self._lifeline = lifeline
        self._now = self._start = lifeline.now()

    def play(self, engine: EmulatedEngine, arguments: Arguments) -> str:
        """Print the boot; return the text of the crash that ends it, or ""."""
        programs = programs_of(engine, arguments, self._task)
        jitter = Jitter(share=self._task["jitter"]["share"], source=tuple(self._task["jitter"]["source"]))
        for second, line in milestones(engine, arguments, tuple(self._task["place"]), programs, jitter):
            self._wait(second)
            if self._task["crash"] and second > MEASURED_SECONDS / 5:
                return str(self._task["crash"])
            if self._task["hang"] and second > MEASURED_SECONDS / 2:
                self._lifeline.sleep_until(None)
            self.say(line)
        return ""

    def say(self, line: str) -> None:
        at = time.strftime("%m-%d %H:%M:%S", time.gmtime(self._now))
        say(line.replace("{at}", at))

    def die(self, text: str) -> None:
        """Log the engine's end as vLLM does: a recorded one, or a text in vLLM's form."""
        if text in deaths.NAMES:
            for line in deaths.lines(text):
                self.say(line)
            return
        for line in text.splitlines():
            self.say(f"{CORE}ERROR {{at}} [core.py:1349] {line}")
        self.say(
            f"{API}RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {{}}"
        )

    def _wait(self, second: float) -> None:
        moment = self._start + self._task["boot_seconds"] * second / MEASURED_SECONDS
        if moment > self._now:
            self._now = self._lifeline.sleep_until(moment)


def _format_arguments(arguments: Arguments) -> str:
    flags = {name.replace("-", "_"): " ".join(words) or True for name, words in arguments.flags.items()}
    return str({"model_tag": arguments.model, **flags} | ({"api_key": "***"} if "api_key" in flags else {}))
