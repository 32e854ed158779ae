"""An agent changes something: only the plan it was shown, only with a person's yes where anything ends, in the background."""

from __future__ import annotations

import pytest
from agent import Agent, Answers, connected, says, turns_away
from command_line import PROFILE, CommandLine, Open
from real_time import until

SHORTER = PROFILE.replace("16384", "8192")
ENDING = PROFILE + "lifecycle: {end: 24h}\n"
CEILING = 100.0  # USD, with which an agent may buy a slice for a day


@pytest.fixture
def serving(cli: Open) -> CommandLine:
    at: CommandLine = cli()
    assert at.run("apply", "-auto-approve", at.write()).code == 0
    return at


def planned(agent: Agent, **more: object) -> str:
    return str(agent.document("plan", profiles=["gemma.yaml"], **more)["plan_id"])


def test_what_was_planned_is_applied_in_the_background_and_polled_to_its_end(cli: Open) -> None:
    at = cli()
    at.write(ENDING)
    with connected(at, max_cost=CEILING) as agent:
        plan = agent.document("plan", profiles=["gemma.yaml"])
        assert (plan["needs_consent"], plan["applyable"]) == (False, True)
        assert "Plan: 1 to add, 0 to change, 0 to destroy." in plan["text"]
        begun = agent.document("apply", plan_id=plan["plan_id"])
        ended = agent.ended()
        again = agent.document("plan", profiles=["gemma.yaml"])
    assert begun["operation_id"] == ended["operation_id"] == "operation-1"
    assert (ended["state"], ended["error"]) == ("succeeded", None)
    assert [o["address"] for o in ended["result"]["outcomes"]] == ["gemma[0]"]
    answer = [event["type"] for event in ended["events"]]
    assert "change_started" in answer
    assert answer[-1] == "change_done"
    assert again["is_empty"]
    assert list(at.slices.values()) == ["ACTIVE"]


def test_a_plan_that_the_world_has_overtaken_is_refused_as_on_the_command_line(cli: Open) -> None:
    at = cli()
    at.write(ENDING)
    with connected(at, max_cost=CEILING) as agent:
        plan_id = planned(agent)
        assert at.run("apply", "-auto-approve", "-wait", "accepted", "gemma.yaml").code == 0
        assert at.run("destroy", "-auto-approve", "gemma.yaml").code == 0
        requests = len(at.requested_zones())
        refused = agent.call("apply", plan_id=plan_id)
    assert refused.is_error
    assert (refused.document["code"], refused.document["exit_code"]) == ("TPU3001", 11)
    assert plan_id in refused.text
    assert len(at.requested_zones()) == requests


def test_a_deployment_whose_profile_is_gone_is_destroyed_by_its_name(serving: CommandLine) -> None:
    (serving.folder / "gemma.yaml").unlink()
    with connected(serving, person=says(approve=True)) as agent:
        plan = agent.document("plan", profiles=["gemma"], destroy=True)
        assert "Plan: 0 to add, 0 to change, 1 to destroy." in plan["text"]
        agent.document("destroy", plan_id=plan["plan_id"])
        assert agent.ended()["state"] == "succeeded"
        assert "neither a profile nor a deployment" in agent.call("plan", profiles=["gema"], destroy=True).text
        # A name is no profile where a profile is needed, and no way out of the folder.
        assert agent.call("plan", profiles=["gemma"]).is_error
        assert agent.call("plan", profiles=["../gemma.yaml"], destroy=True).is_error
    assert not serving.slices


def test_a_plan_that_nobody_was_shown_is_refused(cli: Open) -> None:
    at = cli()
    at.write(ENDING)
    with connected(at, max_cost=CEILING) as agent:
        plan_id = planned(agent)
        for other in (f"{plan_id[:-1]}x", "", "gemma.yaml"):
            refused = agent.call("apply", plan_id=other)
            assert (refused.is_error, refused.document["exit_code"]) == (True, 11)
    assert at.requested_zones() == []


@pytest.mark.parametrize("later", [PROFILE.replace("16384", "8192"), "not: [a profile"])
def test_what_stands_in_the_profile_after_the_plan_changes_nothing_of_it(cli: Open, later: str) -> None:
    at = cli()
    at.write(ENDING)
    with connected(at, max_cost=CEILING) as agent:
        plan_id = planned(agent)
        at.write(later)
        agent.document("apply", plan_id=plan_id)
        assert agent.ended()["state"] == "succeeded"
    at.write(ENDING)
    assert at.run("plan", "-detailed-exitcode", "gemma.yaml").code == 0


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("person", [says(approve=False), turns_away("decline"), turns_away("cancel"), None])
def test_nothing_is_destroyed_without_a_persons_yes(serving: CommandLine, person: Answers | None, mode: str) -> None:
    before = serving.slices
    with connected(serving, person=person, mode=mode) as agent:
        refused = agent.call("destroy", plan_id=planned(agent, destroy=True))
        assert agent.call("operation").is_error, "nothing was begun"
    assert refused.is_error
    assert refused.document["code"] == "TPU3003"
    assert "Nothing was done." in refused.text
    assert len(agent.questions) == (person is not None)
    assert serving.slices == before


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_with_a_persons_yes_it_is_destroyed_and_they_were_told_what(serving: CommandLine, mode: str) -> None:
    (name,) = serving.slices
    with connected(serving, person=says(approve=True), mode=mode) as agent:
        plan = agent.document("plan", profiles=["gemma.yaml"], destroy=True)
        assert plan["needs_consent"]
        agent.document("destroy", plan_id=plan["plan_id"])
        assert agent.ended()["state"] == "succeeded"
    (question,) = agent.questions
    assert question.splitlines()[1:] == [f"- destroys gemma[0] ({name}, us-east5-a)", "There is no undo."]
    assert serving.slices == {}


BAD_CHIP = "TPU initialization failed: GRPC_ERROR error message: START_SESSION failed"


def test_a_host_is_reported_only_with_a_persons_yes_and_only_where_its_log_names_a_fault(cli: Open) -> None:
    at = cli(trouble=[{"fault": "boot", "crash": BAD_CHIP, "call": 1}])
    assert at.run("apply", "-auto-approve", at.write()).code == 1
    (name,) = at.slices
    for person in (says(approve=False), turns_away("decline"), None):
        with connected(at, person=person) as agent:
            assert "Nothing was done." in agent.call("report_host", address="gemma[0]").text
    assert at.slices == {name: "ACTIVE"}
    with connected(at, person=says(approve=True)) as agent:
        answer = agent.document("report_host", address="gemma[0]")
        assert (answer["is_accepted"], answer["is_deleted"]) == (False, True)
        assert BAD_CHIP in answer["description"]
        assert "report the host of gemma[0]" in agent.questions[0]
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    with connected(at, person=says(approve=True)) as agent:
        assert "names no fault of the machine" in agent.call("report_host", address="gemma[0]").text


@pytest.mark.parametrize(
    ("text", "more", "does"), [(SHORTER, {}, "restarts"), (PROFILE, {"replace": ["gemma"]}, "replaces")]
)
def test_an_apply_that_would_interrupt_whoever_uses_it_is_asked_too(
    serving: CommandLine, text: str, more: dict[str, object], does: str
) -> None:
    serving.write(text)
    before = serving.state()
    with connected(serving, person=turns_away("decline")) as agent:
        assert agent.call("apply", plan_id=planned(agent, **more)).is_error
    assert f"- {does} gemma[0] (" in agent.questions[0]
    with connected(serving) as mute:
        assert "cannot ask a person" in mute.call("apply", plan_id=planned(mute, **more)).text
    assert serving.state() == before


def test_a_node_that_does_not_hear_of_a_change_is_reset_where_the_person_said_so(cli: Open) -> None:
    at = cli(boot={"hears_changes": False})
    assert at.run("apply", "-auto-approve", at.write()).code == 0
    at.write(SHORTER)
    with connected(at, person=says(approve=True)) as agent:
        agent.document("apply", plan_id=planned(agent))
        unheard = agent.ended()
    assert (unheard["state"], unheard["error"]["code"]) == ("failed", "TPU6006")
    assert resets(at) == 0
    with connected(at, person=says(approve=True, reset=True)) as agent:
        agent.document("apply", plan_id=planned(agent))
        assert agent.ended()["state"] == "succeeded"
    assert resets(at) == 1
    assert at.run("plan", "-detailed-exitcode", "gemma.yaml").code == 0


def resets(at: CommandLine) -> int:
    return sum(request.resource.endswith(":reset") for request in at.emulator.requests)


def test_a_plan_goes_only_to_the_tool_it_was_made_for(serving: CommandLine) -> None:
    with connected(serving, person=says(approve=True)) as agent:
        assert agent.call("apply", plan_id=planned(agent, destroy=True)).is_error
        assert agent.call("destroy", plan_id=planned(agent)).is_error
    assert list(serving.slices.values()) == ["ACTIVE"]


def test_what_is_cancelled_is_saved_and_another_apply_goes_on_with_it(cli: Open) -> None:
    at = cli(timings={"waiting": 3600.0})
    at.write(ENDING)
    with connected(at, max_cost=CEILING) as agent:
        agent.gate.shut()
        agent.document("apply", plan_id=planned(agent))
        agent.hears("requested")
        until(lambda: at.slices, "the request")
        busy = agent.call("apply", plan_id=planned(agent))
        assert (busy.document["code"], busy.document["exit_code"]) == ("TPU4001", 10)
        agent.document("cancel")
        cancelled = agent.ended()
        assert (cancelled["state"], cancelled["error"]["exit_code"]) == ("cancelled", 130)
        (remaining,) = at.slices
        assert any(remaining in event.get("message", "") for event in cancelled["events"])
        agent.gate.open()
        agent.document("apply", plan_id=planned(agent))
        assert agent.ended()["state"] == "succeeded"
    assert list(at.slices) == [remaining]


def test_a_server_that_ends_leaves_what_another_goes_on_with(cli: Open) -> None:
    at = cli(timings={"waiting": 3600.0})
    at.write(ENDING)
    with connected(at, max_cost=CEILING) as agent:
        agent.gate.shut()
        agent.document("apply", plan_id=planned(agent))
        agent.hears("requested")
        until(lambda: at.slices, "the request")
    (remaining,) = at.slices
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    assert list(at.slices) == [remaining]


def test_what_fails_ends_as_the_command_line_does(cli: Open) -> None:
    at = cli(nodes="real", boot={"crash": "program-allocation"})
    at.write(ENDING)
    with connected(at, max_cost=CEILING) as agent:
        agent.document("apply", plan_id=planned(agent))
        ended = agent.ended()
        (log,) = agent.document("logs", profile="gemma.yaml")["logs"]
    assert (ended["state"], ended["error"]["exit_code"]) == ("failed", 1)
    assert ended["result"]["outcomes"][0]["error"]["code"] == "TPU6000"
    assert log["cause"]["signature"] == "no-room-for-program"
    assert log["cause"]["remedy"]


def test_a_plan_that_a_check_forbids_is_shown_and_not_applied(cli: Open) -> None:
    at = cli()
    at.write(PROFILE.replace("google/gemma-4-E2B-it", "google/gemma-4-31B-it"))
    with connected(at, max_cost=CEILING) as agent:
        plan = agent.document("plan", profiles=["gemma.yaml"])
        assert not plan["applyable"]
        refused = agent.call("apply", plan_id=plan["plan_id"])
    assert (refused.is_error, refused.document["exit_code"]) == (True, 13)
    assert at.requested_zones() == []


def test_a_run_that_is_given_up_in_time_says_so(cli: Open) -> None:
    at = cli(timings={"waiting": 7200.0})
    at.write(ENDING)
    with connected(at, max_cost=CEILING) as agent:
        agent.document("apply", plan_id=planned(agent), timeout_seconds=600)
        assert agent.ended()["error"]["exit_code"] == 12


@pytest.mark.parametrize(
    ("person", "words"),
    [
        (None, "buys a slice, and this client cannot ask a person"),
        (turns_away("decline"), "The person did not approve"),
        (says(approve=False), "The person did not approve"),
    ],
)
def test_an_agent_buys_nothing_without_a_persons_yes_or_a_ceiling(
    cli: Open, person: Answers | None, words: str
) -> None:
    at = cli()
    at.write()
    with connected(at, person=person) as agent:
        plan = agent.document("plan", profiles=["gemma.yaml"])
        refused = agent.call("apply", plan_id=plan["plan_id"])
    assert (plan["needs_consent"], refused.is_error, words in refused.text) == (True, True, True), refused.text
    assert at.requested_zones() == []


def test_with_a_persons_yes_an_agent_buys_and_they_were_told_the_price(cli: Open) -> None:
    at = cli()
    at.write()
    with connected(at, person=says(approve=True)) as agent:
        agent.document("apply", plan_id=planned(agent))
        assert agent.ended()["state"] == "succeeded"
        (question,) = agent.questions
    assert "- buys a slice for gemma[0]\n  about $1.40/h" in question
    assert "it has no end: only `tpudeploy destroy` stops it; about $33.68 a day" in question


def test_the_ceiling_of_a_server_counts_all_that_its_agents_bought(cli: Open) -> None:
    at = cli()
    at.write(ENDING)
    at.write(ENDING.replace("name: gemma", "name: other"), "other.yaml")
    with connected(at, max_cost=60.0) as agent:
        agent.document("apply", plan_id=planned(agent))
        assert agent.ended()["state"] == "succeeded"
        plan = agent.document("plan", profiles=["other.yaml"])
        agent.document("apply", plan_id=plan["plan_id"])
        ended = agent.ended()
    assert (ended["state"], ended["error"]["code"], ended["error"]["exit_code"]) == ("failed", "TPU3007", 13)
    assert "and -max-cost is $60.00" in ended["error"]["message"]
    assert len(at.slices) == 1
