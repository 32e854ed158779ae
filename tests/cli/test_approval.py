"""A person at a terminal, who says yes or stops it: real processes, real time, an emulated cloud in a hurry."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import PROFILE
from pseudo_terminal import END_OF_INPUT, INTERRUPT, person

from tpudeploy.emulator import Emulator, RealClock, running

pytestmark = pytest.mark.waits

QUICK = dict.fromkeys(
    ("queued", "waiting", "provisioning", "boot", "reset", "deleting", "suspending", "preempted"), 0.1
)
HASTE = {"TPUDEPLOY_PATIENCE_POLL_FIRST": "0.05", "TPUDEPLOY_PATIENCE_POLL_MOST": "0.1"}
PROMPT = "Enter a value: "


@pytest.fixture
def cloud() -> Iterator[Emulator]:
    with running(clock=RealClock(), scenario={"nodes": "simulated", "timings": QUICK}) as emulator:
        yield emulator


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "gemma.yaml").write_text(PROFILE, encoding="utf-8")
    return tmp_path


def test_yes_is_an_approval_and_the_plan_was_read_before(cloud: Emulator, folder: Path) -> None:
    with person("apply", "gemma.yaml", folder=folder, environment={**cloud.environment, **HASTE}) as somebody:
        somebody.waits_for(PROMPT)
        assert "Plan: 1 to add, 0 to change, 0 to destroy." in somebody.read
        assert "Only 'yes' will be accepted to approve." in somebody.read
        assert not cloud.live()
        assert somebody.types("yes\n").stays_to_the_end() == 0
        assert "Done! Resources: 1 added" in somebody.read
        assert "\033[" in somebody.read  # a person looks: there is colour


@pytest.mark.parametrize("typed", ["no\n", "y\n", "YES\n", "\n", END_OF_INPUT], ids=repr)
def test_anything_but_yes_changes_nothing(cloud: Emulator, folder: Path, typed: str) -> None:
    with person("apply", "gemma.yaml", folder=folder, environment={**cloud.environment, **HASTE}) as somebody:
        assert somebody.waits_for(PROMPT).types(typed).stays_to_the_end() == 1
        assert "Cancelled: nothing was changed." in somebody.read
    assert not cloud.live()
    assert not (folder / ".tpudeploy").exists()


def test_ctrl_c_at_the_question_changes_nothing(cloud: Emulator, folder: Path) -> None:
    environment = {**cloud.environment, "NO_COLOR": "1"}
    with person("apply", "gemma.yaml", folder=folder, environment=environment) as somebody:
        assert somebody.waits_for(PROMPT).types(INTERRUPT).stays_to_the_end() == 130
        assert "Traceback" not in somebody.read
        assert "\033[" not in somebody.read
    assert not cloud.live()


def test_a_world_that_changes_while_the_question_stands_makes_the_plan_stale(cloud: Emulator, folder: Path) -> None:
    with person(
        "apply", "-auto-approve", "gemma.yaml", folder=folder, environment={**cloud.environment, **HASTE}
    ) as somebody:
        assert somebody.stays_to_the_end() == 0
    (name,) = (n for zone in cloud.live().values() for n in zone)
    (folder / "gemma.yaml").write_text(PROFILE.replace("16384", "8192"), encoding="utf-8")
    with person("apply", "gemma.yaml", folder=folder, environment={**cloud.environment, **HASTE}) as somebody:
        somebody.waits_for(PROMPT)
        assert "1 to restart" in somebody.read
        cloud.preempt(name)
        assert somebody.types("yes\n").stays_to_the_end() == 11
        assert "The plan for gemma no longer applies" in somebody.read


def test_ctrl_c_in_the_middle_is_saved_and_the_next_run_goes_on_without_asking(cloud: Emulator, folder: Path) -> None:
    cloud.script(
        {"fault": "wait-for-ever", "times": 1}
    )  # so that however slow this machine is, the queue has not moved
    hasty = {**cloud.environment, **HASTE}
    with person("apply", "-auto-approve", "gemma.yaml", folder=folder, environment=hasty) as somebody:
        somebody.waits_for("Queued in us-east5-a")
        assert somebody.types(INTERRUPT).stays_to_the_end() == 130
        assert "Work in progress is saved." in somebody.read
        assert "Traceback" not in somebody.read
    before = {name for zone in cloud.live().values() for name in zone}
    (name,) = before
    cloud.grant(name)
    with person("apply", "gemma.yaml", folder=folder, environment=hasty) as somebody:
        assert somebody.stays_to_the_end() == 0
        assert PROMPT not in somebody.read
    assert {name for zone in cloud.live().values() for name in zone} == before


def test_gc_asks_before_it_removes(cloud: Emulator, folder: Path) -> None:
    hasty = {**cloud.environment, **HASTE}
    with person("apply", "-auto-approve", "gemma.yaml", folder=folder, environment=hasty) as somebody:
        assert somebody.stays_to_the_end() == 0
    (folder / ".tpudeploy" / "state" / "gemma.json").unlink()
    with person("gc", "-foreign", folder=folder, environment=hasty) as somebody:
        somebody.waits_for(PROMPT)
        assert "Do you really want to remove this? There is no undo." in somebody.read
        assert somebody.types("no\n").stays_to_the_end() == 1
    assert len(cloud.billed()) == 1
    with person("gc", "-foreign", folder=folder, environment=hasty) as somebody:
        assert somebody.waits_for(PROMPT).types("yes\n").stays_to_the_end() == 0
        assert "Done! 1 removed." in somebody.read
    assert not cloud.live()


@pytest.mark.parametrize(("typed", "code", "resets"), [("yes\n", 0, 1), ("no\n", 1, 0)])
def test_a_reset_for_a_node_that_does_not_hear_is_asked_for_there_and_then(
    folder: Path, typed: str, code: int, resets: int
) -> None:
    scenario = {"nodes": "simulated", "timings": {**QUICK, "patch": 0.1}, "boot": {"hears_changes": False}}
    with running(clock=RealClock(), scenario=scenario) as cloud:
        environment = {**cloud.environment, **HASTE, "TPUDEPLOY_PATIENCE_ACKNOWLEDGE": "1", "NO_COLOR": "1"}
        with person("apply", "-auto-approve", "gemma.yaml", folder=folder, environment=environment) as somebody:
            assert somebody.stays_to_the_end() == 0
        (folder / "gemma.yaml").write_text(PROFILE.replace("16384", "8192"), encoding="utf-8")
        with person("apply", "gemma.yaml", folder=folder, environment=environment) as somebody:
            somebody.waits_for(PROMPT).types("yes\n").waits_for("Do you want to reset gemma[0]?")
            assert somebody.types(typed).stays_to_the_end() == code
        assert ("Done! Resources: 0 added, 0 changed, 1 restarted" in somebody.read) is (code == 0)
        assert ("Error: gemma[0] still runs the previous server" in somebody.read) is (code == 1)
        requests = [r for r in cloud.requests if r.method == "POST" and r.resource.endswith(":reset")]
        assert len(requests) == resets
