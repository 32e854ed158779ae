"""An agent lets nothing cost more by itself: a person is asked, by the plan's own figures, unless the ceiling covers it."""

from __future__ import annotations

import json
import re

import pytest
from agent import connected, says, turns_away
from command_line import PROFILE, CommandLine, Open

END = "lifecycle: {end: 1h}\n"
USD = re.compile(r"\$[\d,.]+\d")
# What was applied, what the agent writes, and the key by which it may cost more.
MORE = [
    (END, "lifecycle: {end: 2000h}\n", "lifecycle.end"),
    (END, "", "lifecycle.end"),
    ("lifecycle: {end: 1h, idle: 15m}\n", "lifecycle: {end: 1h, idle: 100h}\n", "lifecycle.idle"),
    ("lifecycle: {end: 1h, hours: '00:00-23:00 UTC'}\n", END, "lifecycle.hours"),
    (END + "budget: {day: 20}\n", END + "budget: {day: 2000}\n", "budget.day"),
    (END + "scale: {max: 2}\n", END + "scale: {max: 20}\n", "scale.max"),
    (END + "health: {timeout: 45m}\n", END + "health: {timeout: 900h}\n", "health.timeout"),
]


@pytest.mark.parametrize(("before", "text", "key"), MORE)
def test_what_lets_a_deployment_cost_more_is_asked_and_a_no_changes_nothing(
    cli: Open, before: str, text: str, key: str
) -> None:
    at = deploy(cli, before)
    at.write(PROFILE + text)
    state = at.state()
    with connected(at, person=turns_away("decline")) as agent:
        plan = agent.document("plan", profiles=["gemma.yaml"])
        assert plan["needs_consent"]
        assert agent.call("apply", plan_id=plan["plan_id"]).is_error
        (question,) = agent.questions
    assert "- lets gemma[0] (" in question
    assert f"  {key} = " in question
    with connected(at) as mute:
        plan = mute.document("plan", profiles=["gemma.yaml"])
        refused = mute.call("apply", plan_id=plan["plan_id"])
    assert "lets a deployment cost more, and this client cannot ask a person" in refused.text
    assert at.state() == state


def test_what_costs_less_is_not_asked(cli: Open) -> None:
    at = deploy(cli, "lifecycle: {end: 10h}\n")
    at.write(PROFILE + "lifecycle: {end: 9h, idle: 1h}\n")
    with connected(at) as agent:
        plan = agent.document("plan", profiles=["gemma.yaml"])
        assert not plan["needs_consent"]
        agent.document("apply", plan_id=plan["plan_id"])
        assert agent.ended()["state"] == "succeeded"


def test_a_later_end_within_the_ceiling_is_not_asked_and_one_beyond_it_is(cli: Open) -> None:
    at = deploy(cli, END)
    with connected(at, max_cost=20.0, person=turns_away("decline")) as agent:
        for end, asks in (("10h", False), ("20h", True)):
            plan = agent.document("plan", profiles=["gemma.yaml"], set=[f"lifecycle.end={end}"])
            assert plan["needs_consent"] == asks, end
        at.write(PROFILE)
        assert agent.document("plan", profiles=["gemma.yaml"])["needs_consent"], "no ceiling covers what has no end"
        later = agent.document("plan", profiles=["gemma.yaml"], set=["lifecycle.end=10h"])
        agent.document("apply", plan_id=later["plan_id"])
        assert agent.ended()["state"] == "succeeded"
        assert agent.questions == []


def test_a_person_may_say_yes_to_more_than_the_ceiling(cli: Open) -> None:
    at = deploy(cli, END)
    at.write(PROFILE)
    with connected(at, max_cost=20.0, person=says(approve=True)) as agent:
        plan = agent.document("plan", profiles=["gemma.yaml"])
        agent.document("apply", plan_id=plan["plan_id"])
        assert agent.ended()["state"] == "succeeded"
        (question,) = agent.questions
    assert "nothing ends it" in question
    assert at.run("plan", "-detailed-exitcode", "gemma.yaml").code == 0


SEARCH = PROFILE.replace("max_parallel_requests: 1", "max_parallel_requests: 3")
ANYWHERE = SEARCH.replace("[us-east5-a, us-east5-b, europe-west4-a]", "any")


@pytest.mark.parametrize("exists", [False, True])
@pytest.mark.parametrize(
    "text",
    [
        PROFILE + END,
        SEARCH + END,
        ANYWHERE + END,
        PROFILE + END + "replicas: 2\n",
        PROFILE + END + "scale: {min: 1, max: 3}\n",
        PROFILE + "lifecycle: {end: 99h}\n",
        PROFILE.replace("16384", "8192"),
        PROFILE.replace("v6e-1", "v6e-4") + END,
    ],
)
def test_the_text_the_document_and_the_question_of_one_plan_have_the_same_figures(
    cli: Open, text: str, exists: bool
) -> None:
    at = deploy(cli, END) if exists else cli()
    at.write(text)
    with connected(at, person=turns_away("decline")) as agent:
        plan = agent.whole("plan", profiles=["gemma.yaml"])
        agent.call("apply", plan_id=plan["plan_id"])
    text_here = at.run("plan", "gemma.yaml").out
    document = json.loads(at.run("plan", "-json", "gemma.yaml").out)
    assert document["fingerprint"] == plan["fingerprint"]
    assert document["ceiling"] == plan["ceiling"]
    (question,) = agent.questions or [""]
    ceiling = f"${plan['ceiling']['usd_per_hour']:.2f}"
    if question:
        assert f"{ceiling}/h" in question
    assert set(USD.findall(question)) <= {*USD.findall(text_here), ceiling}
    assert set(USD.findall(plan["text"])) == set(USD.findall(text_here))
    for line in question.splitlines():
        if line.startswith("  ") and "$" in line:
            assert line.strip() in " ".join(plan["text"].split()), line


def deploy(cli: Open, lifecycle: str) -> CommandLine:
    at = cli()
    assert at.run("apply", "-auto-approve", at.write(PROFILE + lifecycle)).code == 0
    return at
