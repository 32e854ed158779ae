"""Tab completes what the parsers know and what the folder holds, in the shells that people use."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command_line import PROFILE, Open
from real_time import DEADLINE

from tpudeploy.cli.commands import COMMANDS, GROUPS

_ORDERS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|[\x07\x08\r]")
STATE = '{"records": [{"index": 0}, {"index": 1}]}'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a profile, an overlay, a saved plan, and the state of a deployment of two replicas."""
    (tmp_path / "gemma.yaml").write_text(PROFILE, encoding="utf-8")
    (tmp_path / "overlay.yaml").write_text("tpu: {type: v6e-8}\n", encoding="utf-8")
    (tmp_path / "monday.plan").write_text("{}", encoding="utf-8")
    (tmp_path / "fleet").mkdir()
    states = tmp_path / ".tpudeploy" / "state"
    states.mkdir(parents=True)
    (states / "older.json").write_text(STATE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def completed(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    capsys.readouterr()
    from tpudeploy.cli.main import main

    assert main(["completion", "fish", "--", *words]) == 0
    return [line.partition("\t")[0] for line in capsys.readouterr().out.splitlines()]


ADDRESSES = ["gemma", "older", "older[0]", "older[1]"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("",), [*COMMANDS, "help"]),
        (("de",), ["destroy"]),
        (("--v",), ["--version"]),
        (("help", "st"), ["status", "state"]),
        (("help", "state", "p"), ["pull", "push"]),
        (("state", "m"), ["mv", "migrate"]),
        (("state", "--lock-timeout", "5m", "m"), ["mv", "migrate"]),
        (("state", "mv", "--f"), ["--force"]),
        (("state", "pull", "--s"), ["--serial"]),
        (("state", "show", ""), ADDRESSES),
        (("state", "rm", "gemma", "older["), ["older[0]", "older[1]"]),
        (("state", "push", "mon"), ["monday.plan"]),
        (("ci", ""), ["plan", "apply", "drift", "ab", "bench"]),
        (("ci", "apply", "-acc"), ["-accept"]),
        (("bench", "re"), ["report"]),
        (("bench", ""), ["import", "list", "show", "trend", "report", "fleet/", "gemma.yaml"]),
        (("plan", ""), ["fleet/", "gemma.yaml"]),
        (("plan", "gemma.yaml", ""), ["fleet/", "gemma.yaml"]),
        (("apply", ""), ["fleet/", "gemma.yaml", "monday.plan"]),
        (("plan", "-f", "o"), ["overlay.yaml"]),
        (("plan", "--chdir", "fl"), ["fleet/"]),
        (("plan", "--det"), ["--detailed-exitcode"]),
        (("plan", "-det"), ["-detailed-exitcode"]),
        (("plan", "-detailed-exitcode", "-det"), []),
        (("plan", "--set", "tpu.type=v6e-8", "--se"), ["--set"]),
        (("apply", "gemma.yaml", "--wait", ""), ["accepted", "granted", "serving"]),
        (("apply", "gemma.yaml", "-wait=s"), ["-wait=serving"]),
        (("render", "gemma.yaml", "d"), ["docker"]),
        (("zones", "--type", "v6e-1"), ["v6e-1", "v6e-16", "v6e-128"]),
        (("plan", "--set", "tpu.ty"), ["tpu.type="]),
        (("plan", "--set", "placement.zones=[us-east5-a,us-east5-b"), ["placement.zones=[us-east5-a,us-east5-b"]),
        (("output", "o"), ["older"]),
        (("output", "gemma", "en"), ["endpoint"]),
        (("explain", "TPU1201"), ["TPU1201"]),
        (("init", "--from", "gemma4-31"), ["gemma4-31b-v6e8"]),
        (("completion", ""), ["bash", "zsh", "fish"]),
        (("emulator", "run", "--", "tpudeploy", "plan", "g"), ["gemma.yaml"]),
        (("frobnicate", ""), []),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_may_follow(
    folder: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], expected: list[str]
) -> None:
    assert completed(capsys, *words) == expected


BESIDE_THE_LINE = [
    "",
    " ",
    "  ",
    "tpudeploy",
    "tpudeploy ",
    "'",
    '"',
    "\\",
    "--",
    "-",
    "=",
    ":",
    "help help ",
    "plan -- ",
]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_no_word_an_empty_word_and_words_beyond_the_end_break_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str], shell: str
) -> None:
    from tpudeploy.cli.main import main

    beyond = [f"{name} {end}" for name in (*COMMANDS, "help", "nothing") for end in ("", "a b c d e ", "- -- = a=")]
    for line in (*BESIDE_THE_LINE, *beyond):
        words = [f"tpudeploy {line}" if line in beyond else line] if shell == "bash" else line.split(" ")
        assert main(["completion", shell, "--", *words]) == 0, line
    assert main(["completion", shell, "--"]) == 0  # the script itself
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_an_empty_word_may_become_each_command(folder: Path, capsys: pytest.CaptureFixture[str], shell: str) -> None:
    from tpudeploy.cli.main import main

    assert main(["completion", shell, "--", ""]) == 0
    assert [line.partition("\t")[0] for line in capsys.readouterr().out.splitlines()] == [*COMMANDS, "help"]


def test_names_come_from_the_folder_that_chdir_names(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/")
    assert completed(capsys, "--chdir", str(folder), "plan", "g") == ["gemma.yaml"]
    assert completed(capsys, "state", "show", "--chdir", str(folder), "o") == ["older", "older[0]", "older[1]"]


def test_what_cannot_be_read_completes_nothing_and_breaks_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / ".tpudeploy" / "state" / "older.json").write_text("[", encoding="utf-8")
    (folder / "gemma.yaml").write_bytes(b"\xff\xfename:")
    assert completed(capsys, "state", "show", "o") == ["older"]
    assert completed(capsys, "plan", "nowhere/") == []
    assert completed(capsys, "plan", "g") == []


def test_every_option_of_every_command_is_offered(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from tpudeploy.cli.commands import command as module
    from tpudeploy.cli.parsers import parser_of, verbs_of

    for name in COMMANDS:
        for verb in ("", *verbs_of(module(name))):
            words = (name, verb) if verb else (name,)
            options = {option for option in parser_of(name, verb).option_names if option.startswith("--")}
            assert set(completed(capsys, *words, "--")) == options, words


def test_every_command_is_in_a_group(cli: Open) -> None:
    assert "Other" not in GROUPS
    assert sorted(COMMANDS) == sorted(name for names in GROUPS.values() for name in names)


def _program(folder: Path) -> dict[str, str]:
    """Return an environment whose PATH has this checkout's `tpudeploy` first."""
    programs = folder / "programs"
    programs.mkdir()
    program = programs / "tpudeploy"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m tpudeploy "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    return {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "TERM": "xterm", "HOME": str(folder)}


# How each shell is started without the person's own settings, and how it learns to complete.
SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], 'eval "$(tpudeploy completion bash)"'),
    "zsh": (["zsh", "-f", "-i"], 'autoload -U compinit; compinit -D; eval "$(tpudeploy completion zsh)"'),
}


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("state pus", "tpudeploy state push"),
        ("apply gem", "tpudeploy apply gemma.yaml"),
        ("plan --set placement.zones=us-west4-", "tpudeploy plan --set placement.zones=us-west4-a"),
    ],
)
@pytest.mark.parametrize("shell", SHELLS)
def test_tab_in_a_real_shell(folder: Path, shell: str, typed: str, shown: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"apt-get install {shell}")
    start, learn = SHELLS[shell]
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        start, cwd=folder, env=_program(folder), stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    ) as process:
        os.close(theirs)
        try:
            os.write(ours, f"{learn}; echo re''ady\n".encode())
            assert "ready" in _read_until(ours, "ready")
            os.write(ours, f"tpudeploy {typed}\t".encode())
            assert shown in _read_until(ours, shown)
        finally:
            process.kill()
            os.close(ours)


def _read_until(terminal: int, text: str) -> str:
    """Return what the terminal shows up to this text, or until it is too late."""
    output, ends = b"", time.monotonic() + DEADLINE
    while text not in _plain(output) and time.monotonic() < ends:
        if select.select([terminal], [], [], 1.0)[0]:
            output += os.read(terminal, 65536)
    return _plain(output)


def _plain(output: bytes) -> str:
    """Return what a terminal gets without its orders, which zsh writes between letters."""
    return _ORDERS.sub("", output.decode(errors="replace"))


def test_tab_in_fish(folder: Path) -> None:
    if shutil.which("fish") is None:
        pytest.skip("apt-get install fish")
    questions = ("des", "state pus", "apply gem", "explain TPU1201", "state show older[")
    code = "tpudeploy completion fish | source\n" + "\n".join(f"complete -C 'tpudeploy {each}'" for each in questions)
    process = subprocess.run(
        ["fish", "--no-config", "-c", code],
        cwd=folder,
        env=_program(folder),
        capture_output=True,
        text=True,
        check=True,
    )
    words = [line.partition("\t")[0] for line in process.stdout.splitlines()]
    assert words == ["destroy", "push", "gemma.yaml", "TPU1201", "older[0]", "older[1]"]
    assert "Delete deployments" in process.stdout
