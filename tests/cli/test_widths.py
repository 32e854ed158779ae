"""What each command prints fits into the terminal, from 60 columns on."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import sys
import termios
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from command_line import PROFILE
from stories.serving_folder import PROFILE_FILE, serving_folder

from tpudeploy.cli.main import main
from tpudeploy.emulator import VirtualClock
from tpudeploy.operations import OPERATIONS
from tpudeploy.text.words import width

G, EITHER = PROFILE_FILE, "either.yaml"
RUNS = ("agent-e2b-v6e-1", "agent-e2b-v6e-4", "agent-12b-v6e-1", "agent-12b-v6e-4", "fp8-26b-v6e-4")
_ORDERS = re.compile(r"\033\[[0-9;?]*[A-Za-z]")
# A line that cannot be broken: a command to copy, a line of a file above its caret, or a single word.
_UNBROKEN = re.compile(r"\s*(Run: |tpudeploy |curl |from openai |\d* \| |\S*$|`[^`]*`\S*$)")

COMMANDS = {
    "validate": (("validate", G, "broken.yaml"),),
    "size": (("size", G), ("size", G, "-sweep"), ("size", G, "-set", "model.id=some/body")),
    "doctor": (("doctor", G), ("doctor", EITHER)),
    "zones": (("zones", G), ("zones", EITHER), ("zones", "-type", "v6e-256")),
    "plan": (("plan", G), ("plan", G, "-set", "serving.max_model_len=8192"), ("plan", "-destroy", G)),
    "apply": (("apply", G, "-auto-approve"),),
    "gc": (("gc",),),
    "drift": (("drift", G),),
    "status": (("status",), ("status", G, "-details", "-timeline")),
    "show": (("show",), ("show", "saved.plan")),
    "output": (("output",), ("output", "gemma")),
    "logs": (("logs", G, "-explain"), ("logs", "-explain", "-file", "boot.log")),
    "verify": (("verify", G),),
    "accuracy": (("verify", G, "-accuracy", "arithmetic", "-questions", "4"),),
    "metrics": (("metrics", G),),
    "diagnose": (("diagnose", G, "-window", "1s"),),
    "bench": (("bench", G, "-window", "50ms", "-concurrency", "1,4", "-context", "4,1024", "-output", "1,8"),),
    "bench_import": (("bench", "import", "run.json"),),
    "import_benchmarks": (("bench", "import", "giq.csv"),),
    "benchmark_runs": (("bench", "list"), ("compare", "-published")),
    "benchmark_trend": (("bench", "trend", "RUN"),),
    "benchmark_run": (("bench", "show", "RUN"),),
    "bench_report": (("bench", "report", "RUN", "-out", "report.html"),),
    "compare": (("compare", *RUNS), ("compare", "RUN", RUNS[0])),
    "operating_points": (("recommend", "-run", RUNS[0]),),
    "recommend": (("recommend", G, "-users", "4", "-context", "1024", "-output", "128", "-budget", "1"),),  # no profile
    "recommend_models": (
        ("recommend", G, "-model", "Qwen/Qwen3-8B", "-model", "a/b", "-users", "4", "-context", "1024", "-output", "9"),
        ("recommend", G, "-model", "a/b", "-users", "4", "-context", "1024", "-output", "128", "-budget", "1"),
    ),
    "rehearse": (("rehearse", "-dry-run", "-max-cost", "5"), ("rehearse", "-auto-approve")),
    "state_list": (("state", "list"),),
    "state_show": (("state", "show", "gemma"),),
    "state_history": (("state", "history", "gemma"),),
    "state_rm": (("state", "rm", "gemma", "-dry-run"),),
    "report_host": (("report-host", "gemma[0]", "-description", "Its sums differ.", "-dry-run"),),
    "cost": (("cost",), ("cost", "-group-by", "zone")),
    "explain": (("explain",), ("explain", "TPU1201")),
    "support_bundle": (("support-bundle", G, "-o", "support.tar.gz"),),
    "version": (("version",),),
}
# Not wrapped, because its lines are copied, piped or a model's; or about what only other stories have.
OTHERS = {"render", "alerts", "state_pull", "query", "details"}
OTHERS |= {
    "destroy",
    "import_slice",
    "state_mv",
    "state_push",
    "state_migrate",
    "force_unlock",
    "ab",
    "ab_propose",
    "ab_result",
    "compile",
    "draft_profile",
    "tune",
    "tune_result",
    "campaign",
    "campaign_propose",
    "campaign_report",
    "campaign_result",
}


@dataclass(frozen=True)
class Place:
    """A folder in which gemma serves, and a run of a benchmark is kept."""

    clock: VirtualClock
    run: str

    def at_terminal(self, patch: pytest.MonkeyPatch, columns: int, *words: str) -> str:
        """Return what a command writes to a terminal of this width."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        pieces: list[bytes] = []
        reader = threading.Thread(target=_read_all, args=(ours, pieces))
        reader.start()
        with (
            patch.context() as during,
            os.fdopen(theirs, "w", encoding="utf-8") as terminal,
            os.fdopen(os.dup(theirs), "w", encoding="utf-8") as messages,
        ):
            during.setenv("COLUMNS", str(columns))
            during.setenv("TERM", "xterm")
            during.setattr(sys, "stdout", terminal)
            during.setattr(sys, "stderr", messages)
            main([self.run if word == "RUN" else word for word in words], clock=self.clock)
        reader.join()
        os.close(ours)
        return _ORDERS.sub("", b"".join(pieces).decode()).replace("\r\n", "\n")


def _read_all(terminal: int, pieces: list[bytes]) -> None:
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # how Linux says that the other end is closed
            return
        pieces.append(piece)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("widths")
    others = {
        EITHER: PROFILE.replace("placement:\n", "placement:\n  backend: auto\n").replace("gemma", "either", 1),
        "broken.yaml": f"version: 1\nnmae: {'x' * 30}\n",
        "giq.csv": "instance_type,model,model_server,output_tokens_per_second,ntpot_milliseconds,queries_per_second\n"
        "ct6e-standard-4t,google/gemma-4-E2B-it,vllm,5120,14,20\nct6e-standard-1t,google/gemma-4-E2B-it,vllm,2560,30,10\n",
        "boot.log": "INFO 08-01 12:00:00 Starting\nValueError: no\n",
    }
    with serving_folder(folder, others) as clock:
        assert main(["plan", G, "-out", "saved.plan"], clock=clock) == 0
        (run,) = (folder / ".tpudeploy" / "runs").glob("*.json")
        yield Place(clock, run.stem)


def test_every_operation_is_looked_at() -> None:
    assert COMMANDS.keys() | OTHERS == set(OPERATIONS)


@pytest.mark.parametrize("words", [words for rows in COMMANDS.values() for words in rows], ids=" ".join)
def test_a_command_fits_into_its_terminal(
    place: Place, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    for columns in (60, 80, 200):
        text = place.at_terminal(monkeypatch, columns, *words)
        lines = [line for part in text.split("\n") for line in part.split("\r")]
        wide = [line for line in lines if width(line) > columns and not _UNBROKEN.match(line)]
        assert not wide, "\n".join(["", *wide])


def test_a_command_to_copy_stays_on_one_line(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = place.at_terminal(monkeypatch, 60, "doctor", G).splitlines()
    (command,) = (line.strip() for line in lines if "Run: " in line)
    assert command.startswith("Run: gcloud compute firewall-rules create gemma-vllm ")
    assert command.endswith("--source-ranges=YOUR_RANGE")
