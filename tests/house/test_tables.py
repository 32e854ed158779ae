"""Every table is whole: nothing beside it that it does not name, nothing in it that is not there."""

from __future__ import annotations

import argparse
import ast
import inspect
import re
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml

from tpudeploy import feature_table
from tpudeploy.adapters import assets
from tpudeploy.adapters.google.refusals import VERDICTS
from tpudeploy.availability.doctor import EXAMINATIONS
from tpudeploy.boot_log.signatures import SIGNATURES
from tpudeploy.catalog import flags
from tpudeploy.catalog.routers import MACHINES, ROUTERS
from tpudeploy.cli.commands import COMMANDS, command, help_of
from tpudeploy.cli.commands.completion import _SOURCES
from tpudeploy.cli.commands.state import VERBS
from tpudeploy.cli.main import main
from tpudeploy.cli.parsers import parser_of, verbs_of
from tpudeploy.config import foreign_keys, keys
from tpudeploy.config.rules import RULES, SERVER_RULES
from tpudeploy.domain import events
from tpudeploy.domain.router import RouterKind
from tpudeploy.emulator.compute_engine.offers import _ORDINARY_CPUS
from tpudeploy.emulator.faults import FAULTS
from tpudeploy.features.ab_test.arms import RISKY
from tpudeploy.features.alerts.rules import RULES as ALERTS
from tpudeploy.node.router_configuration import _CONFIGURE
from tpudeploy.operations import OPERATIONS, argument_types, operation
from tpudeploy.operations.declaration import Access
from tpudeploy.operations.explanations import explanations
from tpudeploy.sizing.checks import CHECKS
from tpudeploy.sizing.checks.check import Check
from tpudeploy.workspace import Workspace

STATELESS = {"validate", "explain", "version"}  # they read profiles and tables alone
ROOT = Path(__file__).parents[2]


def test_every_command_is_an_operation_or_a_file_and_the_other_way_round() -> None:
    files = {path.stem for path in (ROOT / "tpudeploy" / "cli" / "commands").glob("*.py")} - {"__init__"}
    of_operations = {name.replace("_", "-") for name, summary in OPERATIONS.items() if summary}
    of_features = set(feature_table.COMMANDS)
    assert {file.replace("_", "-") for file in files} | of_operations | of_features == set(COMMANDS)


def test_every_operation_is_in_the_table_and_a_method() -> None:
    modules = [path.stem for path in (ROOT / "tpudeploy" / "operations").glob("*.py")]
    assert {row for name in modules for row in _rows(name)} == set(OPERATIONS) - set(feature_table.OPERATIONS)
    for name in OPERATIONS:
        row = operation(name)
        assert inspect.unwrap(getattr(Workspace, name)) is row.run


def _rows(module_name: str) -> set[str]:
    """Return the names of the rows in a module: its own name, or those in its table."""
    if module_name == "__init__":
        return set()
    module = import_module(f"tpudeploy.operations.{module_name}")
    rows = getattr(module, "OPERATIONS", {})
    return {module_name} if hasattr(module, "OPERATION") else set(() if rows is OPERATIONS else rows)


# A text may be a path, and a time may be written as a number of seconds.
_KINDS: dict[Any, Any] = {Path: None, argument_types.latency: argument_types.seconds}


def test_a_variable_has_the_same_kind_of_value_for_every_command_that_reads_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pages = [(name, verb) for name in COMMANDS for verb in ("", *verbs_of(command(name)))]
    names = {action.option_strings[-1] for page in pages for action in _options(page) if not action.choices}
    clashes = {}
    for name in sorted(names):
        monkeypatch.setenv(variable := f"TPUDEPLOY_{name.removeprefix('--').replace('-', '_').upper()}", "7")
        readers = [action for page in pages for action in _options(page) if action.default in ("7", ["7"])]
        kinds = {(type(action).__name__, _KINDS.get(action.type, action.type)) for action in readers}
        if len(kinds) > 1:
            clashes[variable] = kinds
        monkeypatch.delenv(variable)
    assert clashes == {}


def _options(page: tuple[str, str]) -> list[argparse.Action]:
    parser = parser_of(*page)
    return [action for name in parser.option_names if (action := parser.option(name)) is not None]


def test_a_person_is_asked_before_what_may_end_a_server() -> None:
    rows = {name: operation(name) for name in OPERATIONS}
    ends = {name for name, row in rows.items() if row.access is Access.END}
    assert {"apply", "destroy", "report_host", "ab"} <= ends
    assert [name for name in ends if rows[name].approval is None] == []


def test_every_verb_of_state_is_an_operation_and_the_other_way_round() -> None:
    assert {f"state_{verb}" for verb in VERBS} == {name for name in OPERATIONS if name.startswith("state_")}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = help_of(command(name))
    assert text
    assert main([name, "--help"]) == 0
    assert text.split(".")[0].split()[0] in capsys.readouterr().out


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_that_needs_states_can_be_told_where_they_are(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if name.replace("-", "_") in OPERATIONS:
        needs = name not in STATELESS
    else:
        of_feature = feature_table.COMMANDS.get(name)
        path = f"tpudeploy.cli.commands.{name.replace('-', '_')}" if of_feature is None else of_feature.module
        module = import_module(path)
        needs = ".workspace(" in inspect.getsource(module)
    assert main([name, "--help"]) == 0
    assert ("--backend" in capsys.readouterr().out) == needs


def test_every_file_of_rules_is_in_their_table() -> None:
    files = {path.stem for path in (ROOT / "tpudeploy" / "config" / "rules").glob("*.py")}
    modules = {rule.__module__ for rule in (*RULES, *SERVER_RULES)}
    assert {f"tpudeploy.config.rules.{name}" for name in files - {"__init__", "server", "violation"}} <= modules


def test_every_code_is_explained_and_every_explanation_says_something() -> None:
    for code, text in explanations().items():
        assert len(text.splitlines()) >= 2, code


def test_every_shipped_profile_is_in_the_list_of_profiles() -> None:
    answer = (ROOT / "profiles" / "README.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"^\| `([a-z0-9.-]+)` \|", answer, re.MULTILINE)) == sorted(assets.profiles())


@pytest.mark.parametrize("name", sorted(assets.profiles()))
def test_every_shipped_profile_is_valid(name: str) -> None:
    assert main(["validate", str(ROOT / "profiles" / f"{name}.yaml")]) == 0


def test_every_runtime_dependency_has_its_reason_in_architecture() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    answer = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    for requirement in project["dependencies"]:
        assert f"| {requirement.partition('>=')[0]} |" in answer


@pytest.mark.parametrize(
    ("what", "file"), [("config", ".pre-commit-config.yaml"), ("manifest", ".pre-commit-hooks.yaml")]
)
def test_pre_commit_understands_its_files(what: str, file: str) -> None:
    subprocess.run([sys.executable, "-m", "pre_commit", f"validate-{what}", ROOT / file], check=True)


def test_the_hook_for_profiles_is_a_command_of_ours() -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    program, command = hook["entry"].split()
    assert program == "tpudeploy"
    assert command in COMMANDS


def test_every_check_is_in_their_table() -> None:
    """Each function that is made a check is a row, and each row is one of them."""
    files = {path.stem for path in (ROOT / "tpudeploy" / "sizing" / "checks").glob("*.py")} - {"__init__"}
    modules = [import_module(f"tpudeploy.sizing.checks.{file}") for file in sorted(files)]
    checks = {thing.code for module in modules for thing in vars(module).values() if isinstance(thing, Check)}
    assert checks == {row.code for row in CHECKS}


@pytest.mark.parametrize(
    "rows",
    [
        [f"{row.__module__}.{row.__qualname__}" for row in (*RULES, *SERVER_RULES)],
        [f"{row.__module__}.{row.__qualname__}" for row in EXAMINATIONS],
        [row.__name__ for row in ALERTS],
        [row.code for row in CHECKS],
        [row.kind for row in VERDICTS],
        [row.name for row in SIGNATURES],
    ],
    ids=["rules", "examinations", "alerts", "checks", "refusals", "signatures"],
)
def test_a_row_is_in_its_table_once(rows: list[str]) -> None:
    assert sorted(set(rows)) == sorted(rows)


def test_every_event_happens() -> None:
    """A view's line for an event that no run reports would never be printed."""
    files = (
        file for file in (ROOT / "tpudeploy").rglob("*.py") if "views" not in file.parts and file.name != "events.py"
    )
    calls = [
        n for file in files for n in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if isinstance(n, ast.Call)
    ]
    words = (part for call in calls if ast.unparse(call.func) != "isinstance" for part in (call.func, *call.args))
    reported = {node.attr for word in words for node in ast.walk(word) if isinstance(node, ast.Attribute)}
    assert {event.__name__ for event in get_args(events.Event)} <= reported


def test_every_source_of_completions_is_that_of_an_argument() -> None:
    metavars = set()
    for name in COMMANDS:
        for verb in ("", *verbs_of(command(name))):
            parser = parser_of(name, verb)
            actions = [*_options((name, verb)), *parser._positionals._group_actions]
            metavars |= {action.metavar or action.dest.upper() for action in actions}
    assert set(_SOURCES) <= metavars


def test_every_router_has_its_facts_and_its_configuration() -> None:
    assert set(RouterKind) == set(ROUTERS) == set(_CONFIGURE)


def test_every_machine_of_a_router_is_offered_by_the_emulator_and_has_no_other_row_there() -> None:
    assert set(MACHINES) == set(_ORDINARY_CPUS)


def test_every_setting_whose_ab_asks_for_quality_exists() -> None:
    paths = {".".join(map(str, path)) for path in keys.all_keys()}
    for row in RISKY:
        flag = row.removeprefix("serving.args.")
        assert row in paths or flags.find(flag) or flags.removal(flag), row


def test_every_word_of_another_tool_stands_for_a_choice_of_a_key() -> None:
    schema = (ROOT / "profiles" / "profile.schema.json").read_text(encoding="utf-8")
    for word, choice in foreign_keys.VALUES.items():
        assert f'"{choice}"' in schema, word


def test_every_fault_of_the_emulator_is_done_somewhere_in_it() -> None:
    others = (file for file in (ROOT / "tpudeploy" / "emulator").rglob("*.py") if file.name != "faults.py")
    texts = "".join(file.read_text(encoding="utf-8") for file in others)
    assert {name for name in FAULTS if f'"{name}"' not in texts} == set()


@pytest.mark.parametrize(
    ("page", "folder", "pattern"),
    [("docs/all-pages.md", "docs", "**/*.md"), ("examples/README.md", "examples", "[0-9]*/")],
)
def test_every_page_and_example_is_on_the_front_page_and_the_other_way_round(
    page: str, folder: str, pattern: str
) -> None:
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", (ROOT / page).read_text(encoding="utf-8"))
    shown = {link.split("/")[0] if folder == "examples" else link for link in links if not link.startswith("..")}
    there = {path.relative_to(ROOT / folder).as_posix() for path in (ROOT / folder).glob(pattern)}
    # The site's build writes the pages of reference/ that its index lists.
    for_users = {path for path in there if not path.startswith(("maintainers/", "reference/"))}
    assert for_users - shown - {"index.md"} == set()
    assert {link for link in shown if not (ROOT / folder / link).exists()} == set()
