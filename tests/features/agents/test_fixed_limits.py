"""A server's ceiling and budgets hold whatever an agent writes: settings, states, the ledger, the budgets themselves."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import pytest
from agent import Agent, Answered, connected, says
from command_line import PROFILE, CommandLine, Open

END = "lifecycle: {end: 1h}\n"  # on spot, with its start and its deletion, at most $2.85
ONE_SLICE = 4.0


def write(at: CommandLine, path: str, text: str) -> None:
    (at.folder / path).parent.mkdir(parents=True, exist_ok=True)
    (at.folder / path).write_text(text, encoding="utf-8")


def profile(at: CommandLine, path: str, name: str) -> str:
    write(at, path, PROFILE.replace("name: gemma", f"name: {name}") + END)
    return path


def buy(agent: Agent, path: str) -> str:
    """Return "", or why the purchase was refused."""
    plan = agent.call("plan", profiles=[path])
    refused: Answered = plan if plan.is_error else agent.call("apply", plan_id=plan.document["plan_id"])
    if refused.is_error:
        return refused.text
    end = agent.ended()
    return "" if end["error"] is None else str(end["error"]["message"])


def without_states(at: CommandLine) -> None:
    shutil.rmtree(at.folder / ".tpudeploy")


def without_ledger(at: CommandLine) -> None:
    (at.folder / ".tpudeploy" / "ledger-emulated.jsonl").unlink()


def with_forged_end(at: CommandLine) -> None:
    ledger = at.folder / ".tpudeploy" / "ledger-emulated.jsonl"
    text = ledger.read_text(encoding="utf-8")
    last = text.splitlines()[-1]
    ledger.write_text(text + last.replace('"running"', '"gone"').replace('"began"', '"ended"') + "\n")
    without_state(at)


def without_state(at: CommandLine) -> None:
    (at.folder / ".tpudeploy" / "state" / "gemma.json").unlink()


def with_shorter_end(at: CommandLine) -> None:
    state = at.folder / ".tpudeploy" / "state" / "gemma.json"
    state.write_text(state.read_text(encoding="utf-8").replace('"1h"', '"1m"'))


@pytest.mark.parametrize("damage", [without_states, without_ledger, without_state, with_forged_end, with_shorter_end])
def test_the_sum_of_a_server_does_not_shrink_with_the_files(cli: Open, damage: Callable[[CommandLine], None]) -> None:
    at = cli()
    first, other = profile(at, "gemma.yaml", "gemma"), profile(at, "other.yaml", "other")
    with connected(at, max_cost=ONE_SLICE) as agent:
        assert buy(agent, first) == ""
        damage(at)
        assert "-max-cost is $4.00" in buy(agent, other)
        assert len(at.slices) == 1


def test_what_was_destroyed_counts_only_with_what_it_cost(cli: Open) -> None:
    at = cli()
    first, other = profile(at, "gemma.yaml", "gemma"), profile(at, "other.yaml", "other")
    with connected(at, max_cost=ONE_SLICE, person=says(approve=True)) as agent:
        assert buy(agent, first) == ""
        plan = agent.document("plan", profiles=[first], destroy=True)
        agent.document("destroy", plan_id=plan["plan_id"])
        assert agent.ended()["state"] == "succeeded"
        assert buy(agent, other) == ""


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("own/tpudeploy.toml", 'backend = "./elsewhere"\n'),
        ("own/tpudeploy.toml", 'backend = "../.tpudeploy/other"\n'),
        ("own/tpudeploy.toml", ""),
        ("own/.tpudeploy/state/other.lock", ""),
        ("tpudeploy.toml", 'backend = "./elsewhere"\n'),
    ],
)
def test_an_agent_cannot_choose_where_the_states_are(cli: Open, path: str, text: str) -> None:
    at = cli()
    other = profile(at, "own/other.yaml", "other")
    with connected(at, max_cost=100.0) as agent:
        write(at, path, text)
        refused = agent.call("plan", profiles=[other])
    assert refused.is_error
    assert "This server works with the states in" in refused.text or "lies outside the project" in refused.text
    assert at.requested_zones() == []


def test_a_server_that_only_reads_follows_each_profile_to_its_project(cli: Open) -> None:
    at = cli()
    other = profile(at, "own/other.yaml", "other")
    write(at, "own/tpudeploy.toml", 'backend = "./elsewhere"\n')
    with connected(at, allow_writes=False) as agent:
        assert "1 to add" in agent.document("plan", profiles=[other])["text"]


@pytest.mark.parametrize("text", [None, "day: 1000\n", "month: 1000\n"])
def test_the_budgets_of_a_server_are_those_that_it_began_with(cli: Open, text: str | None) -> None:
    at = cli()
    only = profile(at, "gemma.yaml", "gemma")
    write(at, ".tpudeploy/budgets.yaml", "day: 1\n")
    with connected(at, max_cost=100.0) as agent:
        if text is None:
            (at.folder / ".tpudeploy" / "budgets.yaml").unlink()
        else:
            write(at, ".tpudeploy/budgets.yaml", text)
        assert "budgets.yaml.day is $1.00" in buy(agent, only)
    assert at.requested_zones() == []
