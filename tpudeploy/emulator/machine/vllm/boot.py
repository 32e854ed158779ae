"""How the stand-in boots: the milestones of a real boot log, spread over the scenario's seconds of the node's clock.

The order, the names of the graph groups and their counts are those of a measured cold boot of google/gemma-4-E2B-it
on a v6e-1 (652 s); the lines have vLLM 0.32's form.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Mapping
from typing import Any

from tpudeploy.emulator.machine.vllm.arguments import Arguments
from tpudeploy.emulator.machine.vllm.engine import Engine
from tpudeploy.emulator.machine.vllm.lifeline import Lifeline, say
from tpudeploy.emulator.machine.vllm.programs import LEAST_SECONDS, READ_SHARE, Programs, programs_of

API = "(APIServer pid=1) "
CORE = "(EngineCore pid=327) "
MEASURED_SECONDS = 652
# group of graphs, how many, when its first one began and its last one ended, in seconds of the measured boot
GRAPHS = (
    ("worker0 sample", 24, 143, 162),
    ("worker0 gather_logprobs", 6, 162, 177),
    ("worker0 compute_and_gather_prompt_logprobs", 7, 177, 196),
    ("worker0 backbone", 9, 196, 386),
    ("input_embeddings_merger", 9, 386, 390),
    ("input_embeddings_merger_text_only", 9, 390, 393),
    ("worker0 backbone with embeds", 9, 393, 557),
    ("_substitute_placeholder_token_fn", 70, 557, 565),
    ("select_from_array", 44, 565, 573),
    ("worker0 compute_logits", 6, 573, 577),
    ("structured_decode", 6, 577, 590),
)

# `init engine (profile, create kv cache, warmup model) took 447.75 s (compilation: 393.98 s)`, of the same boot.
MEASURED_INIT, MEASURED_COMPILATION = 447.75, 393.98
KEPT_SECONDS = sum(end - start for _, count, start, end in GRAPHS if end - start >= count * LEAST_SECONDS)

WHENCE = {
    "unmeasured": "nobody measured a boot like this: of the KV cache there are no figures",
    "scenario": "the figures of the KV cache are the scenario's",
}


def milestones(
    engine: Engine, arguments: Arguments, place: tuple[str, int], programs: Programs
) -> Iterator[tuple[float, str]]:
    """Second of the measured boot → line. `{at}` becomes the time of day. What the cache holds, takes less."""
    cache = engine.cache
    concurrency = cache.tokens / engine.max_model_len
    yield (
        12,
        f"{API}INFO {{at}} [api_utils.py:345] version {engine.version}, model {engine.model} (the emulator's stand-in)",
    )
    yield 12, f"{API}INFO {{at}} [api_utils.py:273] non-default args: {_shown(arguments)}"
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
    ready = yield from _graphs(143 - sooner, programs)
    yield ready + 62, f"{API}INFO {{at}} [api_server.py:682] Starting vLLM server on http://{place[0]}:{place[1]}"


def _graphs(began: float, programs: Programs) -> Generator[tuple[float, str], None, float]:
    """Every graph, compiled or read; the second at which the engine is ready."""
    at, compiled = began, 0.0
    for group, count, start, end in GRAPHS:
        each = (end - start) / count
        for index in range(count):
            name = f"{group} {index}"
            is_kept = each >= LEAST_SECONDS
            is_there = is_kept and programs.has(name)
            yield at, f"{CORE}INFO {{at}} [compilation_manager.py:137] Precompile {group} --> {index + 1}/{count}"
            at += each * (READ_SHARE if is_there else 1)
            compiled += each if is_kept and not is_there else 0
            if is_kept and not is_there:
                programs.keep(name)
        yield at, f"{CORE}INFO {{at}} [compilation_manager.py:228] Warm-up call pass finished over {count} tasks."
    took = at - began + MEASURED_INIT - (GRAPHS[-1][3] - GRAPHS[0][2])
    compilation = MEASURED_COMPILATION * compiled / KEPT_SECONDS
    told = f"took {took:.2f} s (compilation: {compilation:.2f} s)"
    yield at, f"{CORE}INFO {{at}} [core.py:348] init engine (profile, create kv cache, warmup model) {told}"
    return at


class Boot:
    def __init__(self, task: Mapping[str, Any], lifeline: Lifeline) -> None:
        self._task = task
        self._lifeline = lifeline
        self._now = self._start = lifeline.now()

    def play(self, engine: Engine, arguments: Arguments) -> str:
        """Print the boot; return the text of the crash that ends it, or ""."""
        programs = programs_of(engine, arguments, self._task)
        for second, line in milestones(engine, arguments, tuple(self._task["place"]), programs):
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
        """The engine's end, as vLLM's log shows it."""
        for line in text.splitlines():
            self.say(f"{CORE}ERROR {{at}} [core.py:1349] {line}")
        self.say(
            f"{API}RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {{}}"
        )

    def _wait(self, second: float) -> None:
        moment = self._start + self._task["boot_seconds"] * second / MEASURED_SECONDS
        if moment > self._now:
            self._now = self._lifeline.sleep_until(moment)


def _shown(arguments: Arguments) -> str:
    named = {name.replace("-", "_"): " ".join(words) or True for name, words in arguments.flags.items()}
    return str({"model_tag": arguments.model, **named} | ({"api_key": "***"} if "api_key" in named else {}))
