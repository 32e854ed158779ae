"""An agent proposes an A/B, a person says yes, and the deployment is what its profile says afterwards."""

from __future__ import annotations

import json

import pytest
from agent import connected, says, turns_away
from command_line import CommandLine, Open

from tpudeploy.adapters import records

SMALL = {"repeats": 2, "concurrency": [1], "context": [16], "output": [2], "window_seconds": 0.05}
FLAG = "serving.padding_gap=0,512"


@pytest.fixture
def serving(cli: Open) -> CommandLine:
    at: CommandLine = cli(boot={"boot_seconds": 5})
    assert at.run("apply", "-auto-approve", at.write()).code == 0
    return at


def is_as_written(at: CommandLine) -> bool:
    return at.run("plan", "gemma.yaml", "-detailed-exitcode").code == 0


def test_it_is_proposed_approved_carried_out_and_brought_back(serving: CommandLine) -> None:
    with connected(serving, person=says(approve=True)) as agent:
        proposed = agent.document("ab_propose", profile="gemma.yaml", flag=FLAG, **SMALL)
        assert (proposed["turns"], proposed["restarts"]) == (["A", "B", "A", "B", "A"], 6)
        begun = agent.document("ab", ab_id=proposed["ab_id"])
        assert (begun["does"], begun["ab_id"]) == ("ab", proposed["ab_id"])
        ended = agent.ended()
        document = agent.whole("ab_result", ab_id=proposed["ab_id"])
    (question,) = agent.questions
    assert "6 restarts: nothing serves for about" in question
    assert ended["state"] == "succeeded", ended
    assert [event["side"] for event in ended["events"] if event["type"] == "turn"] == ["A", "B", "A", "B", "A"]
    assert ended["result"] == document == json.loads(serving.run("compare", proposed["ab_id"], "-json").out)
    assert document["left"] == 0
    assert is_as_written(serving)


def test_without_a_persons_yes_nothing_restarts(serving: CommandLine) -> None:
    before = serving.state()
    with connected(serving, person=turns_away("decline")) as agent:
        proposed = agent.document("ab_propose", profile="gemma.yaml", flag=FLAG, **SMALL)
        assert "did not approve" in agent.call("ab", ab_id=proposed["ab_id"]).text
    with connected(serving) as mute:
        proposed = mute.document("ab_propose", profile="gemma.yaml", flag=FLAG, **SMALL)
        assert "cannot ask a person" in mute.call("ab", ab_id=proposed["ab_id"]).text
        assert "There is no A/B `ab-1`. Nothing was done." in mute.call("ab", ab_id="ab-1").text
        assert "needs another slice" in mute.call("ab_propose", profile="gemma.yaml", flag="tpu.type=v6e-1,v6e-4").text
    assert serving.state() == before


def test_a_proposal_is_never_replaced_by_another_of_its_id(
    serving: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person may have approved the first one. Ids have the second and four digits, so two may be equal."""
    monkeypatch.setattr(records, "new_id", lambda _now: "20260101-000000-abcd")
    with connected(serving, person=says(approve=True)) as agent:
        proposed = agent.document("ab_propose", profile="gemma.yaml", flag=FLAG, **SMALL)
        other = agent.call("ab_propose", profile="gemma.yaml", flag="serving.max_num_seqs=64,128", **SMALL)
        assert f"`{proposed['ab_id']}` is another proposal already. Nothing was done." in other.text


def test_what_is_cancelled_is_brought_back_too(serving: CommandLine) -> None:
    with connected(serving, person=says(approve=True)) as agent:
        proposed = agent.document("ab_propose", profile="gemma.yaml", flag=FLAG, **{**SMALL, "window_seconds": 600})
        agent.document("ab", ab_id=proposed["ab_id"])
        agent.hears("turn")
        agent.document("cancel")
        assert agent.ended()["state"] == "cancelled"
    assert is_as_written(serving)
