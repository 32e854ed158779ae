"""The stand-in's life: read the task, refuse or boot, serve until the owner ends it."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

from tpudeploy import catalog
from tpudeploy.emulator.machine import ray
from tpudeploy.emulator.machine.session import forget_interrupts
from tpudeploy.emulator.machine.vllm.api import ApiServer
from tpudeploy.emulator.machine.vllm.arguments import USAGE, Arguments, VllmUsageError, parse, read_size
from tpudeploy.emulator.machine.vllm.boot import BootSequence
from tpudeploy.emulator.machine.vllm.engine import new_engine
from tpudeploy.emulator.machine.vllm.lifeline import TASK, Lifeline, read_task, say


def refusal(arguments: Arguments, task: Mapping[str, Any]) -> str:
    """Return the error that ends a server with this configuration before it loads anything; "" for none.

    Each text is vLLM's own last line, as people quote it; a whole log of such an end is not at hand.
    """
    return next(filter(None, (check(arguments, task) for check in CHECKS)), "")


def _devices(arguments: Arguments, task: Mapping[str, Any]) -> str:
    type_ = catalog.accelerator_type(task["accelerator_type"])
    present = 0 if type_ is None else type_.devices
    required = int(arguments.text("tensor-parallel-size", "1"))
    return (
        f"ValueError: Insufficient devices for 2D mesh: found {present}, expected {required}"
        if required > present
        else ""
    )


def _batch(arguments: Arguments, _task: Mapping[str, Any]) -> str:
    tokens = read_size(arguments.text("max-num-batched-tokens", "2048"))
    seqs = read_size(arguments.text("max-num-seqs", "256"))
    if tokens >= seqs:
        return ""
    return f"ValueError: max_num_batched_tokens ({tokens}) must be greater than or equal to max_num_seqs ({seqs})."


def _tools(arguments: Arguments, _task: Mapping[str, Any]) -> str:
    lacks_parser = arguments.has("enable-auto-tool-choice") and not arguments.has("tool-call-parser")
    return "TypeError: Error: --enable-auto-tool-choice requires --tool-call-parser" if lacks_parser else ""


def _weights(arguments: Arguments, task: Mapping[str, Any]) -> str:
    """Return the error in the words of transformers (UNVERIFIED: vLLM may report it before)."""
    if task["has_weights"]:
        return ""
    return f"OSError: {arguments.model} does not appear to have a file named config.json."


CHECKS: tuple[Callable[[Arguments, Mapping[str, Any]], str], ...] = (_tools, _batch, _devices, _weights)


def run() -> None:
    forget_interrupts()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    sys.exit(_live(read_task()))


def _die_with_a_node(place: tuple[str, int]) -> None:
    """End the process when a host leaves its Ray (UNVERIFIED: a real engine may hang instead)."""
    ray.wait_for_departure(place)
    say("(EngineCore pid=2) ERROR ray.exceptions.ActorDiedError: The actor died unexpectedly.")
    os._exit(1)


def _live(task: TASK) -> int:
    if task["refusal"]:
        say(task["refusal"]["text"])
        return int(task["refusal"]["code"])
    try:
        arguments = parse(task["words"])
    except VllmUsageError as error:
        say(f"{USAGE}{error}")
        return 2
    lifeline = Lifeline(task)
    boot = BootSequence(task, lifeline)
    if task.get("ray"):
        threading.Thread(target=_die_with_a_node, args=(tuple(task["ray"]),), daemon=True).start()
    cause = refusal(arguments, task)
    engine = None if cause else new_engine(arguments, task)
    if engine is not None:
        cause = boot.play(engine, arguments)
    if engine is None or cause:
        boot.die(cause)
        return 1
    try:
        has_access_log = bool(task.get("access_log", True)) and not arguments.has("disable-uvicorn-access-log")
        real_second = float(task.get("real_second", 0.0))
        server = ApiServer(
            tuple(task["place"]), engine, lifeline, has_access_log=has_access_log, real_second=real_second
        )
    except OSError as error:
        boot.say(f"(APIServer pid=1) OSError: [Errno {error.errno}] {error.strerror}")
        return 1
    boot.say("(APIServer pid=1) INFO:     Application startup complete.")
    lifeline.serving()
    server.serve_forever()
    return 0
