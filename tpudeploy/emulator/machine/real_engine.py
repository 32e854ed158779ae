"""A real engine in the place of the stand-in: what `emulator run --engine CMD` starts where a container would start.

CMD is vLLM's own command line, of a build for CPUs: it is called as `CMD serve MODEL FLAGS…` with the words of the
container, on the node's address, with the emulator's environment and the container's variables above it. Paths of the
container become those of the node's disk. What only a TPU build has, or a CPU cannot do, is dropped, and the
container's log says so in its first lines; everything else is the engine's to accept or to refuse. Setup steps are not
run, since no text of a profile is executed.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tpudeploy.emulator.machine.root import Root
from tpudeploy.emulator.machine.session import forget_interrupts
from tpudeploy.emulator.machine.warden import session

# Variables that only tpu_inference, JAX and libtpu read, by how their names begin.
TPU_VARIABLES = ("JAX_", "LIBTPU_", "MODEL_IMPL_TYPE", "PJRT_", "SKIP_JAX_", "TPU_", "VLLM_TPU_", "VLLM_XLA_", "XLA_")
_NO_HUB = "the emulated hub made it up"
FLAGS = {
    "--additional-config": "it configures tpu_inference",
    "--revision": _NO_HUB,
    "--tokenizer-revision": _NO_HUB,
    "--code-revision": _NO_HUB,
}
# Left alone, a CPU engine takes nearly all memory of its machine; in GiB.
CACHE_VARIABLE, CACHE_GIB = "VLLM_CPU_KVCACHE_SPACE", "1"
PARALLEL = ("--tensor-parallel-size", "-tp", "--pipeline-parallel-size", "-pp", "--data-parallel-size", "-dp")
PLACE = ("--host", "--port")
QUANTIZED_CACHE = "fp8"  # a CPU engine has kernels for it from AVX-512 on
KILLED = 128 + signal.SIGKILL


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """The command that runs instead of a container, and the notes on what differs from the container's."""

    words: tuple[str, ...]
    environment: Mapping[str, str]
    notes: tuple[str, ...]


def translate(
    engine: Sequence[str],
    words: Sequence[str],
    environment: Mapping[str, str],
    *,
    place: tuple[str, int],
    volumes: Sequence[str],
    root: Root,
    has_avx512: bool,
) -> Order:
    """Return the command for a container whose command is `vllm serve WORDS…`."""
    notes: list[str] = []
    served: list[str] = []
    for flag, flag_words in _flags(words):
        value = flag_words[-1].partition("=")[2] or flag_words[-1]
        reason = _drop_reason(flag, value, has_avx512=has_avx512)
        if reason:
            notes.append(f"dropped {flag} {value}: {reason}")
        elif flag not in PLACE:
            served.extend(flag_words)
    if served and _path(served[0], volumes, root) != served[0]:
        notes.append(
            f"{served[0]} is loaded from its place on the node's disk, which the engine's API gives as its model"
        )
    variables: dict[str, str] = {}
    for name, value in environment.items():
        if name.startswith(TPU_VARIABLES):
            notes.append(f"dropped the variable {name}: only a TPU build reads it")
        else:
            variables[name] = _path(value, volumes, root)
    host, port = place
    return Order(
        words=(*engine, "serve", *(_path(word, volumes, root) for word in served), "--host", host, "--port", str(port)),
        environment=variables,
        notes=tuple(notes),
    )


def _drop_reason(flag: str, value: str, *, has_avx512: bool) -> str:
    """Return why a CPU engine does not get this flag; "" for one that it gets."""
    if flag in PARALLEL and value != "1":
        return "a CPU engine is one device"
    if flag == "--kv-cache-dtype" and value.startswith(QUANTIZED_CACHE) and not has_avx512:
        return "this CPU has no AVX-512, which such a cache needs"
    return FLAGS.get(flag, "")


def has_avx512() -> bool:
    """Return whether this machine's CPU has it, as Linux says; elsewhere it counts as absent."""
    with contextlib.suppress(OSError):
        return "avx512f" in Path("/proc/cpuinfo").read_text("utf-8")
    return False


def run() -> None:
    """Be the container: run the engine until it ends, is stopped, or our owner is gone."""
    forget_interrupts()
    task: Mapping[str, Any] = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_die_with_owner, daemon=True, name="lifeline").start()
    if task["refusal"]:
        sys.stdout.write(f"{task['refusal']['text']}\n")
        sys.exit(int(task["refusal"]["code"]))
    for note in task["notes"]:
        sys.stdout.write(f"emulator: {note}\n")
    sys.stdout.flush()
    environment = {CACHE_VARIABLE: CACHE_GIB, **os.environ, **task["environment"]}
    try:
        engine = subprocess.Popen(task["words"], env=environment, stdin=subprocess.DEVNULL)
    except OSError as cause:
        sys.stdout.write(f"emulator: the engine `{task['words'][0]}` cannot be started: {cause.strerror}\n")
        sys.exit(127)
    signal.signal(signal.SIGTERM, lambda *_: engine.terminate())
    code = engine.wait()
    _end_session()
    sys.exit(code if code >= 0 else 128 - code)


def _flags(words: Sequence[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each flag with the words that belong to it; a word before the first flag comes alone, behind ""."""
    group: list[str] = []
    for word in words:
        if word.startswith("--") or word in PARALLEL:
            if group:
                yield _flag_name(group), tuple(group)
            group = [word]
        elif group:
            group.append(word)
        else:
            yield "", (word,)
    if group:
        yield _flag_name(group), tuple(group)


def _flag_name(group: Sequence[str]) -> str:
    return group[0].partition("=")[0].replace("_", "-")


def _path(word: str, volumes: Sequence[str], root: Root) -> str:
    """Return where on the node a path of the container is; another word stays as it is."""
    flag, equals, value = word.partition("=") if word.startswith("--") else ("", "", word)
    path = root.path_of(value, volumes) if value.startswith("/") else None
    return word if path is None else f"{flag}{equals}{path}"


def _die_with_owner() -> None:
    while os.read(0, 1):
        pass
    _end_session()
    os._exit(KILLED)


def _end_session() -> None:
    """Kill all that the engine started and did not end: nothing of a container outlives it."""
    for pid in session(os.getpid()):
        if pid != os.getpid():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
