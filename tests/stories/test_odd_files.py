"""What is no file in the place of one: no command waits for it, reads it without end, or calls it a bug."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import CommandLine, Open
from real_time import DEADLINE

# Each file that a command reads, and the command.
FILES: dict[str, tuple[str, ...]] = {
    "gemma.yaml": ("validate", "gemma.yaml"),
    "base.yaml": ("validate", "gemma.yaml", "-f", "base.yaml"),
    "tpudeploy.toml": ("plan", "gemma.yaml"),
    "tpudeploy.lock.json": ("plan", "gemma.yaml"),
    ".tpudeploy/state/gemma.json": ("plan", "gemma.yaml"),
    ".tpudeploy/state/gemma.lock": ("apply", "gemma.yaml", "-auto-approve"),
    ".tpudeploy/zones-emulated.jsonl": ("apply", "gemma.yaml", "-auto-approve"),
    ".tpudeploy/ledger-emulated.jsonl": ("cost",),
    ".tpudeploy/state/earlier": ("state", "history", "gemma"),
    ".tpudeploy/runs/one.json": ("bench", "list"),
    ".tpudeploy/runs/two.json": ("bench", "show", "two"),
    "endpoints/gemma.json": ("output", "gemma.yaml"),
    "saved.plan": ("apply", "saved.plan"),
    "shown.plan": ("show", "shown.plan"),
    "result.json": ("bench", "import", "result.json"),
    "pushed.json": ("state", "push", "pushed.json"),
    "boot.log": ("logs", "-file", "boot.log", "-explain"),
    "scenario.yaml": ("emulator", "run", "-scenario", "scenario.yaml", "--", "true"),
}
KINDS: dict[str, Callable[[Path], None]] = {
    "FIFO": os.mkfifo,
    "folder": os.mkdir,
    "device": lambda path: path.symlink_to("/dev/zero"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("file", FILES)
def test_no_command_waits_for_what_is_no_file(cli: Open, file: str, kind: str) -> None:
    at = cli()
    at.write()
    path = at.folder / file
    path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    KINDS[kind](path)
    result = at.run(*(str(at.folder / word) if word == "scenario.yaml" else word for word in FILES[file]))
    if (file, kind) == (".tpudeploy/state/earlier", "folder"):
        return
    assert result.code in {1, 2}, result.all
    assert Path(file).stem in result.all, result.all


def test_what_is_no_profile_among_the_projects_own_is_none_to_start_from(cli: Open) -> None:
    at = cli()
    (at.folder / "profiles").mkdir()
    os.mkfifo(at.folder / "profiles" / "fifo.yaml")
    (at.folder / "profiles" / "binary.yaml").write_bytes(b"\xff\xfe")
    listed = at.run("init", "-from", "list")
    assert listed.code == 0
    assert "fifo" not in listed.out
    assert "binary" not in listed.out


@pytest.mark.parametrize(
    "words", [("plan", "gemma.yaml"), ("status", "gemma.yaml"), ("apply", "gemma.yaml"), ("state", "list")]
)
def test_a_working_directory_that_was_deleted_is_said_to_be_so(tmp_path: Path, words: tuple[str, ...]) -> None:
    code = (
        "import os, sys; os.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone')\n"
        "from tpudeploy.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )
    process = subprocess.run(
        [sys.executable, "-c", code, *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )
    assert process.returncode == 1, process.stderr
    assert "The working directory does not exist any more" in process.stderr


@pytest.mark.parametrize(
    "call",
    [
        "w = td.Workspace.open(); w.status()",
        "td.Workspace.open().show()",
        "td.Workspace.open().plan('gemma.yaml')",
        "td.Profile.load('gemma.yaml', untrusted=True)",
        "td.Workspace.open('sub').benchmark_runs()",
    ],
)
def test_the_library_says_so_too(tmp_path: Path, call: str) -> None:
    code = (
        "import os, sys; os.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone')\n"
        f"import tpudeploy as td\ntry:\n    {call}\nexcept td.errors.TpudeployError as error: print(error.message)"
    )
    process = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=DEADLINE, check=False
    )
    assert "Traceback" not in process.stderr
    assert "The working directory does not exist any more" in process.stdout or "`gemma.yaml`" in process.stdout


def _with(at: CommandLine, **changes: object) -> str:
    path = at.folder / ".tpudeploy" / "state" / "gemma.json"
    state = json.loads(path.read_text(encoding="utf-8"))
    for keys, value in changes.items():
        *above, last = keys.split("__")
        part = state
        for key in above:
            part = part[int(key) if key.isdecimal() else key]
        part[last] = value
    path.write_text(json.dumps(state), encoding="utf-8")
    return path.name


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("lineage", "../../etc"),
        ("deployment", "../gemma"),
        ("published", "a/../b"),
        ("records__0__home", "../us-east5-a"),
        ("records__0__attempts__0__name", "../../queuedResources/theirs"),
        ("records__0__attempts__0__project", "p/locations/x"),
        ("records__0__attempts__0__zone", "us-east5-a/nodes/theirs?x="),
        ("records__0__attempts__0__operation", "projects/p/../../theirs"),
    ],
)
def test_a_state_whose_names_lead_elsewhere_is_not_read(cli: Open, key: str, value: str) -> None:
    at = cli()
    assert at.run("apply", "-auto-approve", at.write()).code == 0
    _with(at, **{key: value})
    for words in (("plan", "gemma.yaml"), ("destroy", "-auto-approve", "gemma.yaml"), ("state", "show", "gemma")):
        refused = at.run(*words)
        assert refused.code == 1
        assert "cannot be read as a state" in refused.err or "is the state of" in refused.err
    assert at.slices
