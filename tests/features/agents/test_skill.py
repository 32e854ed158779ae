"""What coding agents are told to do is there: each command and tool that AGENTS.md and the skill name.

Their commands are run by tests/house/test_how_tos.py.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from agent import connected
from command_line import Open

from tpudeploy.cli.commands import COMMANDS
from tpudeploy.cli.main import parse, two_dashes
from tpudeploy.features.agents.prompts import PROMPTS

ROOT = Path(__file__).parents[3]
SKILL = ROOT / "docs" / "skills" / "tpudeploy" / "SKILL.md"
PAGES = (SKILL, ROOT / "AGENTS.md", ROOT / "docs" / "how-to" / "agents.md")
_NAME = re.compile(r"`([a-z]+(?:_[a-z]+)*)`")
# Words in the form of a tool's name that are arguments, keys, or names of other agents.
_OTHERS = {"set", "contains", "last", "plan_id", "profile", "secrets", "max_bytes", "left_out", "save_hf_token", "mcp"}


def test_the_skill_has_the_front_matter_that_clients_read() -> None:
    _, front, body = SKILL.read_text(encoding="utf-8").split("---\n", 2)
    tree = yaml.safe_load(front)
    assert tree.keys() == {"name", "description"}
    assert tree["name"] == SKILL.parent.name
    assert re.fullmatch("[a-z0-9-]{1,64}", tree["name"])
    assert 100 < len(tree["description"]) <= 1024
    assert len(body.encode()) < 5000


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_each_tool_that_is_named_is_one(cli: Open, page: Path) -> None:
    with connected(cli()) as agent:
        tools = {tool["name"] for tool in agent.tools()}
        prompts = {function.__name__ for function in PROMPTS.values()}
        names = set(_NAME.findall(page.read_text(encoding="utf-8"))) - _OTHERS - prompts
        unknown = {name for name in names - tools if agent.call(name).text.startswith("Unknown tool")}
    assert not unknown
    assert names & tools


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_each_command_that_is_named_is_one(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert set(re.findall(r"`tpudeploy ([a-z][a-z-]*)", text)) <= set(COMMANDS)
    for option in re.findall(r"`(-[a-z][a-z-]+)(?: [A-Z=]+)?`", text):
        forms = [(*words, option, *value) for words in ((), ("x",), ("x", "y")) for value in ((), ("1",), ("A.B=1",))]
        assert any(_is_command([command, *form]) for command in COMMANDS for form in forms), option


def _is_command(words: list[str]) -> bool:
    try:
        parse(two_dashes(words))
    except (Exception, SystemExit):  # noqa: BLE001 - an option of another command
        return False
    return True


def test_the_exit_codes_are_those_of_the_errors() -> None:
    from tpudeploy.domain import exits

    text = (ROOT / "AGENTS.md").read_text(encoding="utf-8")
    codes = {int(code) for code in re.findall(r"(?:^|\. |\.\n)(\d+):", text, re.MULTILINE)}
    all_codes = {value for name, value in vars(exits).items() if name.isupper() and isinstance(value, int)}
    assert {0, 1, 2, 10, 11, 12, 13, 130} <= codes
    assert codes <= all_codes
