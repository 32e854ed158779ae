"""Interrupted in the middle: what a person reads, what is left, and that the same command goes on. Virtual time."""

from __future__ import annotations

import json
import signal

import pytest
from command_line import PROFILE, CommandLine, Open, Result

from tpudeploy import Profile, Workspace
from tpudeploy.domain import events
from tpudeploy.domain.errors import Interrupted

MANY = PROFILE.replace("requests: 1", "requests: 3")


def interrupted(at: CommandLine, after: float, *words: str) -> Result:
    """The command, with a Ctrl-C that strikes it after so many seconds, in the middle of whatever it does."""
    ends = at.clock.now() + after

    def strike() -> None:
        if at.clock.now() >= ends:
            at.clock.on_advance.remove(strike)
            raise KeyboardInterrupt

    at.clock.on_advance.append(strike)
    return at.run(*words)


def test_every_request_that_is_left_is_named_with_its_end_and_its_price(cli: Open) -> None:
    at = cli(timings={"waiting": 3600.0})
    at.write(MANY)
    result = interrupted(at, 600, "apply", "-auto-approve", "gemma.yaml")
    assert result.code == 130
    remaining = sorted(at.slices)
    assert len(remaining) == 3
    (line,) = (line for line in result.err.splitlines() if "Still outstanding" in line)
    for name in remaining:
        assert f"{name} (" in line
    assert line.startswith("gemma: Still outstanding: ")
    assert line.count("lapses in 110 min; if granted, $1.40/h") >= 1
    assert result.err.index("Still outstanding") < result.err.index(
        "Error: Interrupted. Work in progress is saved. [TPU0130]"
    )
    assert "Run the same command again to continue, or `tpudeploy destroy` to delete everything." in result.err
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    assert list(at.slices.values()) == ["ACTIVE"]


def test_a_slice_that_is_paid_for_and_does_not_serve_yet_is_named_too(cli: Open) -> None:
    at = cli(timings={"boot": 3600.0})
    result = interrupted(at, 900, "apply", "-auto-approve", at.write())
    assert result.code == 130
    (name,) = at.slices
    assert f"Still outstanding: {name} (us-east5-a, spot): $1.40/h." in result.err


def test_what_serves_is_not_outstanding(cli: Open) -> None:
    at = cli()
    result = interrupted(at, 7200, "apply", "-auto-approve", "-watch", at.write())
    assert result.code == 130
    assert "outstanding" not in result.err


def test_before_anything_was_asked_for_nothing_is_outstanding(cli: Open) -> None:
    at = cli(timings={"neighbour": 0})  # the Ctrl-C strikes with the first second that passes: in the run's own sleep
    result = interrupted(at, 0, "apply", "-auto-approve", at.write())
    assert result.code == 130
    assert "outstanding" not in result.err
    assert at.requested_zones() == []


def test_json_tells_it_as_an_event(cli: Open) -> None:
    at = cli(timings={"waiting": 7200.0})
    result = interrupted(at, 600, "apply", "-auto-approve", "-json", at.write())
    assert result.code == 130
    answer, last, error = map(json.loads, result.out.splitlines()[-3:])
    assert (error["type"], error["exit_code"]) == ("error", 130)
    (name,) = at.slices
    assert (answer["type"], answer["address"]) == ("warned", "gemma")
    assert name in answer["message"]
    assert (last["type"], last["address"]) == ("change_left", "gemma[0]")


def test_an_interrupted_destroy_names_what_is_not_gone_and_goes_on(cli: Open) -> None:
    at = cli(timings={"deleting": 600.0})
    assert at.run("apply", "-auto-approve", at.write()).code == 0
    (name,) = at.slices
    result = interrupted(at, 60, "destroy", "-auto-approve", "gemma.yaml")
    assert result.code == 130
    assert f"Still outstanding: {name} (us-east5-a, spot): abandoned, deletion pending; $1.40/h." in result.err
    assert at.run("destroy", "-auto-approve", "gemma.yaml").code == 0
    assert at.slices == {}


def test_a_library_is_stopped_from_its_own_callback_and_its_signals_stay_its_own(cli: Open) -> None:
    """The real clock, for virtual time never waits: the first event ends the run before it sleeps."""
    at = cli(timings={"waiting": 7200.0})
    at.write()
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)]
    answer: list[events.Event] = []
    with Workspace.open(at.folder) as workspace:
        plan = workspace.plan([Profile.load(at.folder / "gemma.yaml")])

        def hear(event: events.Event) -> None:
            answer.append(event)
            if isinstance(event, events.Requested):
                workspace.stop()

        with pytest.raises(Interrupted) as caught:
            workspace.apply(plan, on_event=hear)
    assert caught.value.exit_code == 130
    assert isinstance(answer[-1], events.ChangeLeft)
    assert not any(isinstance(event, events.Warned) for event in answer), "nothing is outstanding"
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)] == handlers
    assert not at.requested_zones(), "a purchase that was not sent by then is not sent"
