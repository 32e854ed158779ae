"""`explain CODE`: what brings a code out really does, and what to write instead is accepted."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from desk import PROFILE, Desk, Open

from tpudeploy.cli.examples import EXAMPLES
from tpudeploy.cli.explanations import every_error, groups
from tpudeploy.config.codes import EXPLANATIONS

SHELL = ">|<;&"
COMMANDS = ("tpudeploy ", "chmod ", "iconv ", "--set ", "one file ")  # fixes that are no YAML
# Raised only by what a test cannot bring about with a line or two; their own stories are in tests/.
UNSHOWN = {
    *("TPU0001", "TPU3000", "TPU5000", "TPU7000"),  # the roots of families: whatever has no code of its own
    *("TPU5001", "TPU5002", "TPU7001", "TPU6010"),  # what another server answers
    *("TPU6000", "TPU6002", "TPU6003", "TPU6004", "TPU6005", "TPU6006", "TPU6007"),  # what becomes of a boot
}


@pytest.mark.parametrize("code", [code for code, example in EXAMPLES.items() if example.is_run])
def test_an_example_brings_out_its_code(desk: Open, code: str) -> None:
    example = EXAMPLES[code]
    at = desk(trouble=[{"fault": example.trouble}] if example.trouble else [])
    at.write(PROFILE, "prod.yaml")
    if example.layer:
        at.write(example.layer + "\n", "layer.yaml")
        said = at.run("validate", "prod.yaml", "-f", str(at.folder / "layer.yaml")).all
    else:
        said = "".join(_run(at, line) for line in example.session.splitlines())
    assert code in said, said


def _run(at: Desk, line: str) -> str:
    """One line of a session: ours at this desk, everybody else's by the shell."""
    program, *_ = shlex.split(line)
    line = line.removesuffix(" < /dev/null")  # a desk has no terminal
    if program == "tpudeploy" and not any(mark in line for mark in SHELL):
        return at.run(*shlex.split(line)[1:]).all
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    run = ["bash", "-c", line]
    done = subprocess.run(
        run, cwd=at.folder, capture_output=True, text=True, check=False, env={**os.environ, "PATH": path}
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize("code", [code for code, about in EXPLANATIONS.items() if not about.fix.startswith(COMMANDS)])
def test_what_to_write_instead_is_accepted(desk: Open, monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    at = desk()
    monkeypatch.setenv("GREETING", "hello")
    monkeypatch.setenv("USER", "ada")
    at.write(PROFILE, "prod.yaml")
    for name in ("base.yaml", "overrides.yaml"):
        at.write("health: {timeout: 45m}\n", name)
    at.write(EXPLANATIONS[code].fix + "\n", "fix.yaml")
    said = at.run("validate", "prod.yaml", "-f", str(at.folder / "fix.yaml"))
    assert said.code == 0, said.all
    assert code not in said.all


def test_no_two_errors_have_the_same_code() -> None:
    codes = [cls.code for cls in every_error() if "code" in vars(cls)]
    assert len(codes) == len(set(codes))


def test_every_code_of_ours_has_a_cause_an_example_and_a_command(desk: Open) -> None:
    at = desk()
    known = groups()
    for code in (*known["Profiles"], *known["Errors"]):
        page = at.run("explain", code).out
        assert "\n\nCause: " in page, code
        if code not in UNSHOWN and code.startswith("TPU"):
            assert "\n\nExample:\n  " in page, code
            assert "\n\nCommand:\n  " in page, code
