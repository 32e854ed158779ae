"""The stand-in's life: read the task, refuse or boot, serve until the owner ends it."""

from __future__ import annotations

import signal
import sys

from tpudeploy.emulator.machine.session import forget_interrupts
from tpudeploy.emulator.machine.vllm.api import Server
from tpudeploy.emulator.machine.vllm.arguments import USAGE, UsageError, parse
from tpudeploy.emulator.machine.vllm.boot import Boot
from tpudeploy.emulator.machine.vllm.engine import new_engine
from tpudeploy.emulator.machine.vllm.lifeline import TASK, Lifeline, read_task, say
from tpudeploy.emulator.machine.vllm.refusals import refusal


def run() -> None:
    forget_interrupts()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    sys.exit(_live(read_task()))


def _live(task: TASK) -> int:
    if task["refusal"]:
        say(task["refusal"]["text"])
        return int(task["refusal"]["code"])
    try:
        arguments = parse(task["words"])
    except UsageError as error:
        say(f"{USAGE}{error}")
        return 2
    lifeline = Lifeline(task)
    boot = Boot(task, lifeline)
    cause = refusal(arguments, task)
    engine = None if cause else new_engine(arguments, task)
    if engine is not None:
        cause = boot.play(engine, arguments)
    if engine is None or cause:
        boot.die(cause)
        return 1
    try:
        server = Server(tuple(task["place"]), engine, lifeline)
    except OSError as error:
        boot.say(f"(APIServer pid=1) OSError: [Errno {error.errno}] {error.strerror}")
        return 1
    boot.say("(APIServer pid=1) INFO:     Application startup complete.")
    lifeline.serving()
    server.serve_forever()
    return 0
