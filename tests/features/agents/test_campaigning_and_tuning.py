"""An agent proposes a campaign or a tuning, and runs it below the ceiling, or with a person's yes, or not at all."""

from __future__ import annotations

from typing import Any

import pytest
from agent import Agent, connected, says, turns_away
from command_line import PROFILE, CommandLine, Open

GRID = """\
version: 1
name: small
base: gemma.yaml
settings:
  serving.padding_gap: [0, 512]
cells: {concurrency: [1], context: [16], output: [2], window: 1s}
budget: 20
"""
LOAD: dict[str, Any] = {"concurrency": [32], "context": [512], "output": [64]}
AXES = ["serving.max_num_seqs=64,128"]


@pytest.fixture
def at(cli: Open) -> CommandLine:
    at: CommandLine = cli(boot={"boot_seconds": 5})
    at.write()
    at.write(GRID, "grid.yaml")
    return at


@pytest.fixture
def paced(cli: Open) -> CommandLine:
    at: CommandLine = cli(boot={"boot_seconds": 60, "paced": True, "noise": 0.003})
    at.write()
    return at


def proposed_tuning(agent: Agent, **more: Any) -> Any:
    return agent.document("tune_propose", profile="gemma.yaml", axes=AXES, **{"max_cost": 5, **LOAD, **more})


def test_a_campaign_runs_below_the_ceiling_without_a_person_and_leaves_nothing(at: CommandLine) -> None:
    with connected(at, max_cost=30.0) as agent:
        proposed = agent.document("campaign_propose", grid="grid.yaml")
        assert (proposed["cells_left"], proposed["needs_consent"], proposed["budget"]) == (2, False, 20)
        assert "2 servers, 2 cells" in proposed["text"]
        begun = agent.document("campaign", proposal_id=proposed["proposal_id"])
        assert (begun["does"], begun["deployments"]) == ("campaign", ["small-v6e-1"])
        ended = agent.ended()
        result = agent.whole("campaign_result", name="small")
    assert ended["state"] == "succeeded", ended
    assert (result["cells_left"], len(result["cells"])) == (0, 2)
    assert at.emulator.billed() == ()
    assert len(at.emulator.bill()) == 1


def test_a_campaign_is_asked_about_where_there_is_no_ceiling_and_refused_where_nobody_can_be_asked(
    at: CommandLine,
) -> None:
    for person, words in ((None, "cannot ask a person"), (turns_away("decline"), "did not approve")):
        with connected(at, person=person) as agent:
            proposed = agent.document("campaign_propose", grid="grid.yaml")
            assert proposed["needs_consent"]
            assert words in agent.call("campaign", proposal_id=proposed["proposal_id"]).text
    assert "2 servers, 2 cells" in agent.questions[0]
    assert at.requested_zones() == []
    with connected(at, person=says(approve=True)) as agent:
        agent.document("campaign", proposal_id=agent.document("campaign_propose", grid="grid.yaml")["proposal_id"])
        assert agent.ended()["state"] == "succeeded"


def test_the_ceiling_of_a_server_holds_for_its_campaigns_beside_what_its_agents_bought(at: CommandLine) -> None:
    at.write(PROFILE.replace("name: gemma", "name: other") + "lifecycle: {end: 24h}\n", "other.yaml")
    with connected(at, max_cost=36.5) as agent:
        plan = agent.document("plan", profiles=["other.yaml"])
        agent.document("apply", plan_id=plan["plan_id"])
        assert agent.ended()["state"] == "succeeded"
        bought = len(at.requested_zones())
        agent.document("campaign", proposal_id=agent.document("campaign_propose", grid="grid.yaml")["proposal_id"])
        ended = agent.ended()
        assert ended["state"] == "succeeded"
        assert ended["result"]["cells_left"] == 2, "24 hours of the other one leave no room below the ceiling"
    assert len(at.requested_zones()) == bought
    with connected(at, max_cost=5.0) as agent:
        refused = agent.call("campaign_propose", grid="grid.yaml")
    assert "$20.00 is above the ceiling of this server, $5.00" in refused.text


@pytest.mark.parametrize(
    ("grid", "words"),
    [
        (GRID.replace("budget: 20\n", ""), "has no budget"),
        (GRID.replace("gemma.yaml", "../outside.yaml"), "is not a YAML file in this project"),
        (GRID.replace("gemma.yaml", "/etc/hosts"), "is not a YAML file in this project"),
        (GRID.replace("gemma.yaml", "linked.yaml"), "is not a YAML file in this project"),
        (GRID.replace("gemma.yaml", "env.yaml"), "may not read the environment variable REGION_NOTE"),
        (GRID.replace("small", "${env:REGION_NOTE}"), "may not read the environment variable REGION_NOTE"),
        (GRID + "accuracy: lm_eval:gsm8k\n", "Questions for an agent are `arithmetic`"),
        (GRID + "accuracy: ../questions.jsonl\n", "Questions for an agent are `arithmetic`"),
        (GRID.replace("serving.padding_gap: [0, 512]", "model.config: [/etc/hosts, b.json]"), "outside the project"),
    ],
)
def test_a_grid_of_an_agent_reaches_nothing_outside_of_the_project(
    at: CommandLine, monkeypatch: pytest.MonkeyPatch, grid: str, words: str
) -> None:
    monkeypatch.setenv("REGION_NOTE", "canary-4f1e9c")
    outside = at.folder.parent / "outside.yaml"
    outside.write_text(PROFILE.replace("name: gemma", "name: canary-4f1e9c"), encoding="utf-8")
    (at.folder / "linked.yaml").symlink_to(outside)
    at.write(PROFILE.replace("16384", '16384\n  env: {B: "${env:REGION_NOTE}"}'), "env.yaml")
    at.write(grid, "grid.yaml")
    with connected(at, max_cost=30.0) as agent:
        refused = agent.call("campaign_propose", grid="grid.yaml")
    outside.unlink()
    assert refused.is_error
    assert words in refused.text
    assert "canary-4f1e9c" not in str(refused)
    assert at.requested_zones() == []


@pytest.mark.parametrize("path", ["../grid.yaml", "/etc/hosts", ".", ".tpudeploy/x.yaml", "grid.txt", "x" * 9000])
def test_a_grid_outside_of_the_project_is_not_read(at: CommandLine, path: str) -> None:
    with connected(at, max_cost=30.0) as agent:
        refused = agent.call("campaign_propose", grid=path)
    assert "is not a YAML file in this project" in refused.text
    assert len(refused.text) < 4096


def test_a_grid_of_an_untrusted_project_is_refused_for_an_agent_too(at: CommandLine) -> None:
    at.write("untrusted = true\n", "tpudeploy.toml")
    with connected(at, max_cost=30.0) as agent:
        assert "untrusted project is refused" in agent.call("campaign_propose", grid="grid.yaml").text


def test_a_campaign_takes_no_deployment_that_it_did_not_request(at: CommandLine) -> None:
    at.write(PROFILE.replace("name: gemma", "name: small-v6e-1"), "own.yaml")
    with connected(at, max_cost=30.0) as agent:
        proposed = agent.document("campaign_propose", grid="grid.yaml")
        assert at.run("apply", "-auto-approve", "own.yaml").code == 0
        agent.call("campaign", proposal_id=proposed["proposal_id"])
        refused = agent.call("campaign_propose", grid="grid.yaml")
    assert "small-v6e-1 is deployed, and not by this campaign" in refused.text
    assert list(at.slices.values()) == ["ACTIVE"]
    run = at.run("campaign", "grid.yaml", "-auto-approve")
    assert (run.code, "Give the grid another name" in run.words) == (1, True)
    assert list(at.slices.values()) == ["ACTIVE"]


def test_a_tuning_of_a_server_that_runs_needs_a_persons_yes_even_below_a_ceiling(paced: CommandLine) -> None:
    assert paced.run("apply", "-auto-approve", "gemma.yaml").code == 0
    before = paced.state()
    with connected(paced, max_cost=50.0) as agent:
        proposed = proposed_tuning(agent)
        assert proposed["needs_consent"]
        assert "cannot ask a person" in agent.call("tune", proposal_id=proposed["proposal_id"]).text
    assert paced.state() == before
    with connected(paced, person=says(approve=True)) as agent:
        proposed = proposed_tuning(agent)
        agent.document("tune", proposal_id=proposed["proposal_id"])
        ended = agent.ended()
        result = agent.whole("tune_result", tune_id=proposed["id"])
    assert ended["state"] == "succeeded", ended
    assert result == ended["result"]
    assert result["settings"].keys() == {"serving.max_num_seqs"}, "what is best among them is the tests' of tune"
    assert result["usd"] < 5
    assert "Tune gemma" in agent.questions[0]
    assert paced.run("plan", "gemma.yaml", "-detailed-exitcode").code == 0, "it serves as its profile says again"


def test_a_tuning_on_a_slice_of_its_own_stays_below_the_ceiling_and_deletes_it(paced: CommandLine) -> None:
    with connected(paced, max_cost=6.0) as agent:
        assert (
            "$7.00 is above the ceiling"
            in agent.call("tune_propose", profile="gemma.yaml", axes=AXES, max_cost=7, **LOAD).text
        )
        proposed = proposed_tuning(agent)
        assert not proposed["needs_consent"]
        agent.document("tune", proposal_id=proposed["proposal_id"])
        assert agent.ended()["state"] == "succeeded"
    assert paced.emulator.billed() == ()


def test_a_tuning_does_not_delete_what_was_deployed_since_it_was_proposed_or_since_it_ended(
    paced: CommandLine,
) -> None:
    with connected(paced, max_cost=50.0) as agent:
        agent.document("tune", proposal_id=proposed_tuning(agent)["proposal_id"])
        assert agent.ended()["state"] == "succeeded"
        again = proposed_tuning(agent)
        assert paced.run("apply", "-auto-approve", "gemma.yaml").code == 0
        refused = agent.call("tune", proposal_id=again["proposal_id"])
        assert "gemma is deployed since" in refused.text
    words = ("-concurrency", "32", "-context", "512", "-output", "64", "-try", AXES[0])
    finished = paced.run("tune", "gemma.yaml", *words, "-max-cost", "5", "-auto-approve")
    assert finished.code == 0, finished.all
    assert "ACTIVE" in paced.slices.values(), "a finished tuning is only finished"


def test_a_tuning_that_is_cancelled_brings_the_server_back(paced: CommandLine) -> None:
    assert paced.run("apply", "-auto-approve", "gemma.yaml").code == 0
    with connected(paced, person=says(approve=True)) as agent:
        agent.document("tune", proposal_id=proposed_tuning(agent)["proposal_id"])
        agent.hears("step")
        agent.document("cancel")
        assert agent.ended()["state"] == "cancelled"
    assert paced.run("plan", "gemma.yaml", "-detailed-exitcode").code == 0


@pytest.mark.parametrize("tool", ["tune", "campaign"])
def test_what_was_not_proposed_is_not_run(at: CommandLine, tool: str) -> None:
    with connected(at, max_cost=30.0) as agent:
        for id_ in ("campaign-1", "tuning-1-0", "../x"):
            refused = agent.call(tool, proposal_id=id_)
            assert (refused.document["exit_code"], "Nothing was done." in refused.text) == (11, True)
    assert at.requested_zones() == []


@pytest.mark.parametrize("questions", ["lm_eval:gsm8k", "../questions.jsonl", "/etc/passwd"])
def test_questions_of_an_agent_are_no_file_and_no_program(at: CommandLine, questions: str) -> None:
    with connected(at, max_cost=30.0) as agent:
        refused = agent.call("tune_propose", profile="gemma.yaml", max_cost=5, questions=questions)
    assert "Questions for an agent are `arithmetic`" in refused.text
