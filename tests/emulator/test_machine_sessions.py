"""A Ctrl-C at the emulator's terminal leaves the processes of its machines alone, even while they are being started."""

from __future__ import annotations

import subprocess
import sys

from real_time import DEADLINE

# A process group of its own receives SIGINT again and again while it starts sessions; the signals are its terminal's.
_STORM = """
import os, signal, subprocess, sys, threading
from pathlib import Path
from tpudeploy.emulator.machine import session
signal.signal(signal.SIGINT, lambda *_: None)
over = threading.Event()
def press():
    while not over.wait(0.0002):
        os.killpg(0, signal.SIGINT)
threading.Thread(target=press, daemon=True).start()
code = "import os; from tpudeploy.emulator.machine.session import forget_interrupts; forget_interrupts(); print(os.getsid(0) == os.getpid())"
with open(os.devnull, "wb") as output:
    children = [
        session.start([sys.executable, "-c", code], output=output, environment=os.environ, folder=Path("."))
        for _ in range(40)
    ]
    codes = [child.wait() for child in children]
over.set()
print([code for code in codes if code])
"""


def test_no_process_of_a_machine_is_lost_to_ctrl_c_while_it_is_started() -> None:
    process = subprocess.run(
        [sys.executable, "-c", _STORM],
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
        start_new_session=True,
    )
    assert (process.returncode, process.stdout) == (0, "[]\n"), process.stderr
