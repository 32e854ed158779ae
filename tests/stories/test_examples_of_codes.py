"""`explain CODE`: what brings a code out really does, and what to write instead is accepted."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from command_line import PROFILE, CommandLine, Open, command
from github_api import GitHubApi
from workflow import Pipeline

import tpudeploy
from tpudeploy.cli.commands import COMMANDS as COMMAND_TABLE
from tpudeploy.config.codes import EXPLANATIONS
from tpudeploy.operations.examples import EXAMPLES
from tpudeploy.operations.explanations import every_error, groups
from tpudeploy.sizing.checks import CHECKS

SOURCES = Path(tpudeploy.__file__).parent
SHELL = ">|<;&"
COMMANDS = ("tpudeploy ", "chmod ", "iconv ", "--set ", "one file ")  # fixes that are no YAML
# Of the model itself, and of an engine's guard: their warnings stay, whatever is written.
FIXES = {
    **{code: about.fix for code, about in EXPLANATIONS.items()},
    **{row.code: row.explanation.fix for row in CHECKS if row.code not in ("TPU2010", "TPU2118")},
}
# The sessions whose times are those of an emulator without a scenario.
EXACT = {"TPU6007": pytest.mark.instant("its 190 s end in the drain, which lasts a minute")}
FAMILIES = ("TpudeployError", "PlanError")  # TPU0001 and TPU3000


@pytest.mark.parametrize(
    "code", [pytest.param(code, marks=EXACT.get(code, ())) for code, row in EXAMPLES.items() if not row.unrun]
)
def test_an_example_brings_out_its_code(
    cli: Open, forge: GitHubApi, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    example = EXAMPLES[code]
    at = cli(**yaml.safe_load(example.scenario or "{}"))
    at.write(PROFILE, "prod.yaml")
    monkeypatch.chdir(at.folder)
    monkeypatch.setenv("PWD", str(at.folder))
    if "GITHUB_" in example.session:
        Pipeline(forge, monkeypatch, at.folder / "runner")
    if example.layer:
        at.write(example.layer + "\n", "layer.yaml")
        output = at.run("validate", "prod.yaml", "-f", str(at.folder / "layer.yaml")).all
    else:
        output = "".join(_run(at, monkeypatch, line) for line in example.session.splitlines())
    assert (example.shows or code) in output, output


def _run(at: CommandLine, patch: pytest.MonkeyPatch, line: str) -> str:
    """One line of a session: tpudeploy's in process, any other by the shell."""
    line = line.removesuffix(" < /dev/null")  # this command line has no terminal
    words = shlex.split(line)
    if "tpudeploy" in words and not any(mark in line for mark in SHELL):
        program = words.index("tpudeploy")
        for variable in words[:program]:
            name, _, value = variable.partition("=")
            patch.setenv(name, os.path.expandvars(value))
        return at.run(*words[program + 1 :]).all
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    run = ["bash", "-c", line]
    process = subprocess.run(
        run, cwd=at.folder, capture_output=True, text=True, check=False, env={**os.environ, "PATH": path}
    )
    return process.stdout + process.stderr


def test_only_what_takes_timing_or_a_bug_or_is_never_raised_is_not_run() -> None:
    assert {code for code, example in EXAMPLES.items() if example.unrun} == {
        *("TPU0001", "TPU3000"),
        *("TPU0070", "TPU0130", "TPU4001", "TPU4002", "TPU6006", "TPU6008", "TPU7002"),
    }
    for name in FAMILIES:
        raised = re.compile(rf"raise (errors\.)?{name}\b")
        assert not [file for file in SOURCES.rglob("*.py") if raised.search(file.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("code", ["TPU1021", "TPU5003", "TPU6010"])
def test_an_example_can_be_pasted_into_a_shell_as_it_is_printed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], code: str
) -> None:
    (tmp_path / "prod.yaml").write_text(PROFILE, encoding="utf-8")
    page = command(tmp_path, capfd, "explain", code).out
    script = page.partition("Example:\n")[2].partition("\n\n")[0]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path}
    run = ["bash", "-c", script]
    process = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=False, env=environment)
    assert code in process.stdout + process.stderr, process.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["prod.yaml"], "the folder of the profile is left alone"


@pytest.mark.parametrize("code", [code for code, fix in FIXES.items() if not fix.startswith(COMMANDS)])
def test_what_to_write_instead_is_accepted(cli: Open, monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    at = cli()
    monkeypatch.setenv("GREETING", "hello")
    monkeypatch.setenv("USER", "ada")
    at.write(PROFILE, "prod.yaml")
    for name in ("base.yaml", "overrides.yaml"):
        at.write("health: {timeout: 45m}\n", name)
    at.write(EXAMPLES[code].layer + "\n", "layer.yaml")
    at.write(FIXES[code] + "\n", "fix.yaml")
    # A check is about a whole deployment: what to write instead is laid over what brought it out.
    layers = ["fix.yaml"] if code in EXPLANATIONS else ["layer.yaml", "fix.yaml"]
    overlays = [word for layer in layers for word in ("-f", str(at.folder / layer))]
    result = at.run("validate", "prod.yaml", *overlays)
    assert result.code == 0, result.all
    assert code not in result.all


def test_no_two_errors_have_the_same_code() -> None:
    codes = [cls.code for cls in every_error() if "code" in vars(cls)]
    assert len(codes) == len(set(codes))


def test_every_code_of_ours_has_a_cause_an_example_and_a_command(cli: Open) -> None:
    at = cli()
    check_codes = {code for codes in groups().values() for code in codes if code.startswith("TPU")}
    assert check_codes >= {cls.code for cls in every_error()}
    for code in check_codes:
        page = at.run("explain", code).out
        parts = re.fullmatch(rf"{code}  (.+)\n\nCause: (.+)\n\nExample:\n  .*", page, re.DOTALL)
        assert parts is not None, code
        assert parts[1] not in parts[2], code
        assert "\n\nCommand:\n  " in page, code


def test_every_tpudeploy_command_that_a_page_names_exists() -> None:
    mentions = {
        (code, name)
        for pages in groups().values()
        for code, page in pages.items()
        for name in re.findall(r"(?:`|^  |\b(?:Run|run|then): )tpudeploy ([a-z][a-z-]+)", page, re.MULTILINE)
    }
    assert len({name for _, name in mentions}) > 15
    assert {(code, name) for code, name in mentions if name not in COMMAND_TABLE} == set()


def test_every_refusal_and_cause_of_a_failed_boot_has_what_to_do(cli: Open) -> None:
    for group, pages in groups().items():
        if group.startswith(("Refusals", "Boots")):
            for code, page in pages.items():
                remedy = re.search(r"\n\n(?:What clears it|What to do): (.+)", page)
                assert remedy is not None, code
                assert len(remedy[1].split()) >= 3, code


def test_the_pages_of_the_codes_read_like_english_and_not_like_a_translation() -> None:
    """As many relative clauses and commas before `and` as in the READMEs of well-known packages, by kind of page."""
    counts: dict[str, list[int]] = {}
    for group, pages in groups().items():
        for page in pages.values():
            prose = re.sub(r"`[^`]*`", "x", re.sub(r"\n  .*", "", page))
            words = re.findall(r"[A-Za-z']+", prose.lower())
            count = counts.setdefault(group.partition(":")[0], [0, 0, 0])
            count[0] += len(words)
            count[1] += sum(word in ("that", "which", "whose") for word in words)
            count[2] += prose.count(", and ")
    for group, (number, relative, comma) in counts.items():
        assert 1000 * relative <= 10 * number, group
        assert 1000 * comma <= 5 * number, group
