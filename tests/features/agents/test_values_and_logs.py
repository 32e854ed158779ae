"""An agent tries a value before it writes it, sees the lines of a log that it looks for, and the text of what would run."""

from __future__ import annotations

import json

import pytest
from agent import connected, says
from command_line import PROFILE, CommandLine, Open

SECRET = "hf_" + "abcdEFGH1234" * 3


@pytest.fixture
def at(cli: Open) -> CommandLine:
    at: CommandLine = cli()
    at.write(PROFILE + "lifecycle: {end: 24h}\n")
    return at


def test_a_value_is_tried_on_a_plan_a_size_and_a_check_as_with_set_on_the_command_line(at: CommandLine) -> None:
    values = ["serving.max_model_len=8192", "tpu.type=v6e-4"]
    words = [word for value in values for word in ("-set", value)]
    with connected(at) as agent:
        sized = agent.whole("size", profile="gemma.yaml", set=values)
        checked = agent.whole("validate", profiles=["gemma.yaml"], set=["serving.max_model_len=soon"])
        rendered = agent.whole("render", profile="gemma.yaml", what="argv", set=values)
        plan = agent.whole("plan", profiles=["gemma.yaml"], set=values)
    printed = json.loads(at.run("size", "gemma.yaml", "-json", *words).out)
    assert sized == {key: printed[key] for key in sized}
    assert (sized["max_model_len"], sized["accelerator_type"]) == (8192, "v6e-4")
    assert checked["valid"] is False
    assert checked["profiles"][0]["diagnostics"][0]["path"] == "serving.max_model_len"
    assert "8192" in rendered["content"]
    assert "v6e-4" in plan["text"]


def test_what_is_applied_is_the_plan_with_its_values_and_the_next_plan_without_them_would_undo_it(
    at: CommandLine,
) -> None:
    with connected(at, max_cost=100.0) as agent:
        plan = agent.document("plan", profiles=["gemma.yaml"], set=["serving.max_model_len=8192"])
        agent.document("apply", plan_id=plan["plan_id"])
        assert agent.ended()["state"] == "succeeded"
        same = agent.document("plan", profiles=["gemma.yaml"], set=["serving.max_model_len=8192"])
        other = agent.document("plan", profiles=["gemma.yaml"])
    assert (same["is_empty"], other["is_empty"], other["needs_consent"]) == (True, False, True)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("serving.env.B=${env:SECRET_THING}", "may not read the environment variable SECRET_THING"),
        ("model.config=/etc/passwd", "outside the project"),
        ("extends=../other.yaml", "extends"),
        ("serving.max_mum_seqs=1", "max_num_seqs"),
        ("nonsense", "nonsense"),
        ("lifecycle.prevent_destroy=maybe", "prevent_destroy"),
    ],
)
def test_a_value_is_as_untrusted_as_the_profile(
    at: CommandLine, monkeypatch: pytest.MonkeyPatch, value: str, words: str
) -> None:
    monkeypatch.setenv("SECRET_THING", "canary-4f1e9c")
    with connected(at) as agent:
        answered = agent.call("plan", profiles=["gemma.yaml"], set=[value])
    assert answered.is_error
    assert words in answered.text
    assert "canary-4f1e9c" not in str(answered)
    assert "root:" not in str(answered)


def test_a_value_cannot_lift_what_a_person_is_asked_about(at: CommandLine) -> None:
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    with connected(at) as agent:
        plan = agent.document("plan", profiles=["gemma.yaml"], set=["serving.max_model_len=8192"])
        assert "cannot ask a person" in agent.call("apply", plan_id=plan["plan_id"]).text
        removal = agent.document("plan", profiles=["gemma.yaml"], destroy=True, set=["lifecycle.prevent_destroy=false"])
        assert "cannot ask a person" in agent.call("destroy", plan_id=removal["plan_id"]).text
    assert list(at.slices.values()) == ["ACTIVE"]


def test_the_lines_of_a_log_are_those_that_contain_a_text_and_hold_no_secret(cli: Open) -> None:
    at = cli(nodes="real", secrets={"hf-token": SECRET})
    assert at.run("apply", "-auto-approve", at.write()).code == 0
    with connected(at) as agent:
        (log,) = agent.whole("logs", profile="gemma.yaml", contains="APPLICATION startup")["logs"]
        (last,) = agent.whole("logs", profile="gemma.yaml", last=3)["logs"]
        (none,) = agent.whole("logs", profile="gemma.yaml", contains="no such words")["logs"]
        (plain,) = agent.whole("logs", profile="gemma.yaml")["logs"]
        every = agent.whole("logs", profile="gemma.yaml", contains="")
        assert agent.call("logs", profile="gemma.yaml", last=0).is_error
    assert log["lines"]
    assert all("application startup" in line.lower() for line in log["lines"])
    assert len(last["lines"]) == 3
    assert none["lines"] == []
    assert "lines" not in plain
    assert SECRET not in json.dumps(every)


def test_the_commands_for_what_is_missing_are_a_script(cli: Open) -> None:
    at = cli()
    at.write()
    with connected(at) as agent:
        script = agent.whole("doctor", profile="gemma.yaml", fix_script=True)["script"]
    assert script.rstrip("\n") == at.run("doctor", "-fix-script", "gemma.yaml").out.rstrip("\n")


def test_a_shipped_profile_is_drafted_and_a_wrong_name_says_what_was_meant(cli: Open) -> None:
    with connected(cli()) as agent:
        drafted = agent.document("init", shipped="gemma4-e2b-v6e1")
        wrong = agent.call("draft_profile", shipped="gemma4-e2b-v6e2")
        both = agent.call("draft_profile", shipped="gemma4-e2b-v6e1", model="x/y")
    assert (drafted["model"], drafted["accelerator_type"]) == ("google/gemma-4-E2B-it", "v6e-1")
    assert "Did you mean `gemma4-e2b-v6e" in wrong.text
    assert both.is_error


def test_a_crash_of_ours_is_reported_as_one_and_the_server_lives(
    at: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tpudeploy.operations.size.predict_size", lambda *_, **__: 1 / 0)
    with connected(at, person=says(approve=True)) as agent:
        crashed = agent.call("size", profile="gemma.yaml")
        assert agent.document("validate", profiles=["gemma.yaml"])["valid"]
    assert crashed.is_error
    assert crashed.document["exit_code"] == 70
    assert "this is a bug in tpudeploy" in crashed.text
