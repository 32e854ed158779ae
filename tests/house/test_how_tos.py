"""The pages of docs/how-to do what they say: the commands of each run in order, before an emulated cloud.

Each begins with the shipped profile as gemma.yaml. `ACHIEVED` looks at what a page has done. A block ```` ```yaml mine.yaml ```` is that file. In a block `sh`, each command of tpudeploy is run in process and on virtual
time, and has to succeed; commands of other tools are well-formed, and not run. `sh needs-a-project` is for what no
emulator answers: its commands are only parsed, by `test_shipped_documents.py`.
"""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from command_line import CommandLine, Open

import tpudeploy as td

ROOT = Path(__file__).parents[2] / "docs"
PROFILES = ROOT.parent / "profiles"
PAGES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "how-to").glob("*.md"))
_BLOCK = re.compile(r"^```(?P<kind>yaml (?P<file>\S+)|sh|python)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
BUCKET = "gs://my-states/models"  # a folder stands in for it
_HERE = ("mkdir", "cp", "printf", "echo", "sed")  # commands of the shell that a page needs to have run
# A measurement is real time: short, and of little.
SHORT = {
    "TPUDEPLOY_WINDOW": "100ms",
    "TPUDEPLOY_CONCURRENCY": "1,2",
    "TPUDEPLOY_CONTEXT": "64",
    "TPUDEPLOY_OUTPUT": "8",
}
# Pages that begin with something in the cloud.
BEFORE: Mapping[str, Callable[[CommandLine], None]] = {"how-to/existing-slice.md": CommandLine.make_by_hand}


def _the_state_has_moved(at: CommandLine) -> None:
    """The folder has no state, a plan there stops at the slice, and the other place has its state and its endpoint."""
    assert len(at.slices) == 1
    assert "No state" in at.run("state", "list").all or not at.run("state", "list").out.strip()
    here = at.run("plan", "gemma.yaml")
    assert here.code != 0, here.all
    assert "tracks" in here.words
    there = at.run("plan", "gemma.yaml", "-backend", "elsewhere", "-detailed-exitcode")
    assert there.code == 0, there.all
    assert at.run("output", "gemma4-e2b", "-backend", "elsewhere").code == 0


def _the_change_and_the_state_are_there(at: CommandLine) -> None:
    """The second slice has the change, and the state is that of an earlier serial."""
    assert at.run("plan", "gemma.yaml", "-set", "serving.max_num_seqs=128").code == 0
    assert "max_num_seqs: 128" in (at.folder / "gemma.yaml").read_text(encoding="utf-8")
    earlier = json.loads((at.folder / "earlier.json").read_text(encoding="utf-8"))
    now = json.loads(at.run("state", "pull", "gemma4-e2b").out)
    assert now.pop("serial") > earlier.pop("serial")
    own = {"written", "history"}
    assert {k: v for k, v in now.items() if k not in own} == {k: v for k, v in earlier.items() if k not in own}


def _terraform_reads_its_file(at: CommandLine) -> None:
    assert json.loads((at.folder / "main.tf.json").read_text(encoding="utf-8"))["resource"]
    assert len(at.slices) == 1
    assert "gemma4-e2b" not in at.run("state", "list").out


# What a page has done at its end, by looking and not by an exit code.
ACHIEVED: Mapping[str, Callable[[CommandLine], None]] = {
    "how-to/share-the-state.md": _the_state_has_moved,
    "how-to/roll-back.md": _the_change_and_the_state_are_there,
    "how-to/move-away.md": _terraform_reads_its_file,
}


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_work_in_its_order(page: str, cli: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    at = cli()
    for name, value in {"TPUDEPLOY_AUTO_APPROVE": "1", **SHORT}.items():
        monkeypatch.setenv(name, value)
    at.write((PROFILES / "gemma4-e2b-v6e1.yaml").read_text(encoding="utf-8"))
    if page in BEFORE:
        BEFORE[page](at)
    for block in _BLOCK.finditer((ROOT / page).read_text(encoding="utf-8")):
        if block["file"]:
            at.write(block["text"], block["file"])
        elif block["kind"] == "python":
            _run_python(at, block["text"])
        else:
            for words in _commands(block["text"]):
                _run(at, words)
    if page in ACHIEVED:
        ACHIEVED[page](at)


def _leave_a_lock(at: CommandLine, name: str) -> None:
    """Leave the lock of a run that was killed."""
    with td.Workspace.open(at.folder, backend="elsewhere", clock=at.clock) as workspace:
        states = workspace.adapters.states
        lease = states.lock(name, "apply")
        file = at.folder / "elsewhere" / "state" / f"{name}.lock"
        holder = file.read_bytes()
        states.unlock(lease)
        file.write_bytes(holder)


def _run_python(at: CommandLine, text: str) -> None:
    """Run a program in the folder of the page, on its clock."""
    program = text.replace('Workspace.open(".")', "Workspace.open(folder, clock=clock)")
    with contextlib.chdir(at.folder):
        exec(compile(program, "the page", "exec"), {"folder": at.folder, "clock": at.clock})


def _commands(script: str) -> Iterator[list[str]]:
    subprocess.run(["bash", "-n", "-c", script], check=True)
    for line in script.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words:
            yield words


def _run(at: CommandLine, words: list[str]) -> None:
    if words[0] in _HERE:
        line = " ".join(word if word in {">", ">>"} else shlex.quote(word) for word in words)
        subprocess.run(["bash", "-c", line], cwd=at.folder, check=True)
    if words[0] != "tpudeploy":
        return
    file = None
    if ">" in words:
        words, file = words[: words.index(">")], words[-1]
    words = ["elsewhere" if word == BUCKET else word for word in words]
    if words[1] == "force-unlock":
        _leave_a_lock(at, words[2])
        words = [*words, "-force"]  # no person is asked here
    if "-serial" in words:
        history = json.loads(at.run("state", "history", words[3], "-json").out)
        words[words.index("-serial") + 1] = str(history["states"][-1]["serial"])
    result = at.run(*words[1:])
    assert result.code == 0, f"{shlex.join(words)}\n{result.all}"
    if file is not None:
        (at.folder / file).write_text(result.out, encoding="utf-8")
