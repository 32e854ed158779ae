"""An untrusted profile is within the budgets above it, whatever its author writes beside it."""

from __future__ import annotations

import pytest
from command_line import PROFILE, CommandLine, Open

END = "lifecycle: {end: 10h}\n"  # on spot, at most $15.43
DEFAULT = ".tpudeploy/budgets.yaml"


def write(at: CommandLine, files: dict[str, str]) -> None:
    for path, text in files.items():
        (at.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (at.folder / path).write_text(text, encoding="utf-8")


BESIDE = [
    {},
    {"own/tpudeploy.toml": 'backend = "./elsewhere"\n'},
    {"own/tpudeploy.toml": 'project = "another-one"\n'},
    {"own/.tpudeploy/state/x.lock": ""},
    {"own/tpudeploy.toml": "", "own/.tpudeploy/budgets.yaml": "day: 1000\n"},
    {"own/tpudeploy.toml": 'backend = "./elsewhere"\n', "own/elsewhere/budgets.yaml": "day: 1000\n"},
    {"own/tpudeploy.toml": 'backend = "../elsewhere"\n', "elsewhere/state/x.lock": ""},
]


@pytest.mark.parametrize("beside", BESIDE)
@pytest.mark.parametrize(
    "above", [{DEFAULT: "day: 3\n"}, {"tpudeploy.toml": 'backend = "team"\n', "team/budgets.yaml": "day: 3\n"}]
)
def test_settings_and_states_beside_an_untrusted_profile_leave_no_budget(
    cli: Open, above: dict[str, str], beside: dict[str, str]
) -> None:
    at = cli()
    write(at, {**above, **beside, "own/other.yaml": PROFILE.replace("name: gemma", "name: other") + END})
    refused = at.run("apply", "-auto-approve", "-untrusted", "own/other.yaml")
    assert (refused.code, "budgets.yaml.day is $3.00" in refused.words) == (13, True), refused.words
    assert at.requested_zones() == []


def test_several_folders_share_the_budget_above_them(cli: Open) -> None:
    at = cli()
    write(at, {DEFAULT: "day: 16\n"})
    for name, code in (("one", 0), ("two", 13)):
        profile = PROFILE.replace("name: gemma", f"name: {name}") + END
        write(at, {f"{name}/tpudeploy.toml": 'backend = "./mine"\n', f"{name}/{name}.yaml": profile})
        assert at.run("apply", "-auto-approve", "-untrusted", f"{name}/{name}.yaml").code == code
    assert len(at.slices) == 1


def test_settings_above_may_say_that_profiles_are_untrusted(cli: Open) -> None:
    at = cli()
    write(at, {DEFAULT: "day: 3\n", "tpudeploy.toml": "untrusted = true\n"})
    write(at, {"own/tpudeploy.toml": 'backend = "./elsewhere"\nuntrusted = false\n', "own/other.yaml": PROFILE + END})
    assert at.run("apply", "-auto-approve", "own/other.yaml").code == 13


def test_an_untrusted_project_names_no_backend_beside_its_budget_but_its_operator_may(cli: Open) -> None:
    at = cli()
    write(at, {DEFAULT: "day: 3\n", "tpudeploy.toml": 'backend = "./elsewhere"\n', "gemma.yaml": PROFILE + END})
    refused = at.run("plan", "-untrusted", "gemma.yaml")
    assert refused.code == 1
    assert "would leave the budget in .tpudeploy/budgets.yaml" in refused.words
    assert at.run("plan", "-untrusted", "-backend", "elsewhere", "gemma.yaml").code == 0


def test_a_project_of_a_trusted_author_inside_another_one_has_its_own_budget(cli: Open) -> None:
    at = cli()
    write(at, {DEFAULT: "day: 3\n", "own/tpudeploy.toml": "", "own/gemma.yaml": PROFILE + END})
    assert at.run("apply", "-auto-approve", "own/gemma.yaml").code == 0
