"""The pages of docs/how-to do what they say: the commands of each run in order, before an emulated cloud.

Each begins with the shipped profile as gemma.yaml. A block ```` ```yaml mine.yaml ```` is that file. In a block `sh`, each command of tpudeploy is run in process and on virtual
time, and has to succeed; commands of other tools are well-formed, and not run. `sh needs-a-project` is for what no
emulator answers: its commands are only parsed, by `test_shipped_documents.py`.
"""

from __future__ import annotations

import contextlib
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from command_line import CommandLine, Open

ROOT = Path(__file__).parents[2] / "docs"
PROFILES = ROOT.parent / "profiles"
PAGES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "how-to").glob("*.md"))
_BLOCK = re.compile(r"^```(?P<kind>yaml (?P<file>\S+)|sh|python)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_HERE = ("mkdir", "cp", "printf", "echo")  # commands of the shell that a page needs to have run
# A measurement is real time: short, and of little.
SHORT = {
    "TPUDEPLOY_WINDOW": "100ms",
    "TPUDEPLOY_CONCURRENCY": "1,2",
    "TPUDEPLOY_CONTEXT": "64",
    "TPUDEPLOY_OUTPUT": "8",
}
# Pages that begin with something in the cloud.
BEFORE: Mapping[str, Callable[[CommandLine], None]] = {"how-to/existing-slice.md": CommandLine.make_by_hand}


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
        subprocess.run(["bash", "-c", shlex.join(words)], cwd=at.folder, check=True)
    if words[0] != "tpudeploy":
        return
    file = None
    if ">" in words:
        words, file = words[: words.index(">")], words[-1]
    result = at.run(*words[1:])
    assert result.code == 0, f"{shlex.join(words)}\n{result.all}"
    if file is not None:
        (at.folder / file).write_text(result.out, encoding="utf-8")
