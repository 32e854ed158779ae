"""Every profile that ships is applied, and its server does what was planned for it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from command_line import Open

import tpudeploy as td
from tpudeploy import Workspace

PROFILES = sorted((Path(__file__).parents[2] / "profiles").glob("*.yaml"), key=lambda path: path.stem)
# Eight hosts run their scripts, for ten seconds of processor time. Of several hosts, test_several_hosts.py has fewer.
_EIGHT_HOSTS = "qwen3-235b-v6e32"


@pytest.mark.parametrize(
    "profile",
    [
        pytest.param(path, id=path.stem, marks=[pytest.mark.long] if path.stem == _EIGHT_HOSTS else [])
        for path in PROFILES
    ],
)
def test_a_shipped_profile_does_what_was_planned(cli: Open, profile: Path) -> None:
    # The first request is granted alone: each other one would boot a machine, only to be given back.
    at = cli(nodes="real", trouble=[{"fault": "wait-for-ever", "call": "2-"}])
    at.write(profile.read_text(encoding="utf-8"))
    applied = at.run("apply", "-auto-approve", "gemma.yaml")
    assert applied.code == 0, applied.all
    assert "Not as planned" not in applied.all
    verified = at.run("verify", "gemma.yaml", "-json")
    assert verified.code == 0, verified.all
    settings = {row["name"]: row for row in json.loads(verified.out)["settings"]}
    assert {row["verdict"] for row in settings.values()} <= {"holds", "untold"}, verified.out
    assert settings["graphs"]["verdict"] == "holds", settings["graphs"]


@pytest.mark.parametrize("path", PROFILES, ids=lambda path: path.stem)
def test_a_shipped_profile_limits_its_search_to_what_is_the_default_for_its_slice(path: Path) -> None:
    tree = yaml.safe_load(path.read_text(encoding="utf-8"))
    limit = tree["placement"].pop("max_search_price_per_hour")
    default = Workspace.open().deployment(td.Profile.from_text(json.dumps(tree)), offline=True)
    assert limit == default.search_usd_per_hour
