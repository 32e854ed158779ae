"""Plans and approval: what is shown is what happens, and nothing happens that nobody said yes to."""

from __future__ import annotations

import re

import pytest
from command_line import PROFILE, CommandLine, Open
from other_process import holding

import tpudeploy as td
from tpudeploy.text import words
from tpudeploy.text.paint import Paint

DETAILED = "-detailed-exitcode"


def _deployed(at: CommandLine, text: str = PROFILE) -> str:
    profile = at.write(text)
    applied = at.run("apply", "-auto-approve", profile)
    assert applied.code == 0, applied.all
    return profile


def test_a_changed_world_between_plan_and_apply_is_noticed_by_the_next_plan(cli: Open) -> None:
    at = cli()
    profile = _deployed(at)
    assert at.run("plan", profile, DETAILED).code == 0
    at.emulator.preempt(next(iter(at.slices)))
    at.clock.sleep(60)
    assert at.run("plan", profile, DETAILED).code == 2


@pytest.mark.parametrize("command", ["apply", "destroy"])
def test_without_a_terminal_and_without_auto_approve_nothing_happens(cli: Open, command: str) -> None:
    at = cli()
    profile = at.write() if command == "apply" else _deployed(at)
    before, zones_before = dict(at.slices), at.requested_zones()
    stopped = at.run(command, profile)
    assert stopped.code == 1
    assert "Approval needs an interactive terminal" in stopped.err
    assert "-auto-approve" in stopped.err
    assert (dict(at.slices), at.requested_zones()) == (before, zones_before)


def test_options_have_twins_in_the_environment(cli: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    at = cli(trouble=[{"fault": "wait-for-ever"}])
    monkeypatch.setenv("TPUDEPLOY_AUTO_APPROVE", "1")
    monkeypatch.setenv("TPUDEPLOY_TIMEOUT", "10m")
    began = at.clock.now()
    assert at.run("apply", at.write()).code == 12
    assert 600 <= at.clock.now() - began < 700
    assert at.run("apply", "gemma.yaml", "-timeout", "20m").code == 12
    assert 1800 <= at.clock.now() - began < 1900  # the option wins


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("TPUDEPLOY_TIMEOUT", "soon", "`soon` is not a duration"),
        ("TPUDEPLOY_WAIT", "forever", "`forever` is not one of accepted, granted, serving"),
    ],
)
def test_a_twin_that_makes_no_sense_is_told_like_the_option(
    cli: Open, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, words: str
) -> None:
    at = cli()
    monkeypatch.setenv(variable, value)
    result = at.run("apply", "-auto-approve", at.write())
    assert result.code == 1
    assert words in result.err
    assert "Traceback" not in result.all


PROTECTED = PROFILE + "lifecycle:\n  prevent_destroy: true\n"


def test_prevent_destroy_refuses_the_removal_and_still_shows_the_plan(cli: Open) -> None:
    at = cli()
    profile = _deployed(at, PROTECTED)
    refused = at.run("destroy", "-auto-approve", profile)
    assert refused.code == 13
    assert "Plan: 0 to add, 0 to change, 1 to destroy." in refused.out
    assert "gemma[0] may not be destroyed" in refused.err
    assert "gemma.yaml:17" in refused.err
    assert list(at.slices.values()) == ["ACTIVE"]


def test_prevent_destroy_refuses_a_replacement_and_allows_a_restart(cli: Open) -> None:
    at = cli()
    profile = _deployed(at, PROTECTED)
    at.write(PROTECTED.replace("v6e-1", "v6e-4"))
    planned = at.run("plan", profile)
    assert planned.code == 13
    assert "forces replacement" in planned.out
    assert at.run("apply", "-auto-approve", profile).code == 13
    assert len(at.requested_zones()) == 1
    at.write(PROTECTED.replace("16384", "8192"))
    assert at.run("apply", "-auto-approve", profile).code == 0


def test_ignored_changes_are_no_changes(cli: Open) -> None:
    at = cli()
    ignoring = PROFILE + "lifecycle:\n  ignore_changes: [serving.image]\n"
    profile = _deployed(at, ignoring)
    at.write(ignoring.replace("v0.32.0", "v0.33.0"))
    planned = at.run("plan", profile, DETAILED)
    assert planned.code == 0, planned.all
    assert "No changes" in planned.out


def test_destroy_before_create_removes_the_old_slice_before_it_asks_for_the_new(cli: Open) -> None:
    at = cli(quota=[{"class": "preemptible", "region": "us-east5", "limit": 4}])
    text = PROFILE.replace("us-east5-a, us-east5-b, europe-west4-a", "us-east5-a") + (
        "lifecycle:\n  replace: destroy-before-create\n"
    )
    profile = _deployed(at, text)
    at.write(text.replace("v6e-1", "v6e-4"))
    planned = at.run("plan", profile)
    assert "-/+ destroy and then create replacement" in planned.words
    replaced = at.run("apply", "-auto-approve", profile)
    assert replaced.code == 0, replaced.all
    assert replaced.err.index("Deleted gemma") < replaced.err.index("Requesting v6e-4")
    assert "Refused" not in replaced.err  # both at once would not fit the quota
    assert list(at.slices.values()) == ["ACTIVE"]


def test_replicas_grow_and_shrink_and_each_plan_says_which(cli: Open) -> None:
    at = cli()
    profile = _deployed(at, PROFILE + "replicas: 2\n")
    assert len(at.slices) == 2
    first = at.run("status", profile).words
    assert "gemma[0] serving" in first
    assert "gemma[1] serving" in first

    at.write()
    fewer = at.run("plan", profile)
    assert "gemma[1] will be destroyed" in fewer.out
    assert "the profile has fewer replicas" in fewer.out
    assert "Plan: 0 to add, 0 to change, 1 to destroy." in fewer.out
    assert at.run("apply", "-auto-approve", profile).code == 0
    assert len(at.slices) == 1

    at.write(PROFILE + "replicas: 3\n")
    assert "Plan: 2 to add, 0 to change, 0 to destroy." in at.run("plan", profile).out
    assert at.run("apply", "-auto-approve", profile).code == 0
    assert list(at.slices.values()) == ["ACTIVE"] * 3
    assert at.run("plan", profile, DETAILED).code == 0


def test_a_slice_in_a_zone_that_is_no_longer_allowed_is_replaced(cli: Open) -> None:
    at = cli()
    profile = _deployed(at)
    at.write(PROFILE.replace("us-east5-a, ", ""))
    planned = at.run("plan", profile)
    assert "placement.zones" in planned.out
    assert "forces replacement" in planned.out
    assert at.run("apply", "-auto-approve", profile).code == 0
    assert at.requested_zones() == ["us-east5-a", "us-east5-b"]
    assert len(at.slices) == 1


def test_a_slice_in_a_zone_that_is_still_allowed_is_kept(cli: Open) -> None:
    at = cli()
    profile = _deployed(at)
    before = dict(at.slices)
    at.write(PROFILE.replace(", europe-west4-a", ""))
    planned = at.run("plan", profile)
    assert "will be updated in place" in planned.out
    assert "forces replacement" not in planned.out
    assert at.run("apply", "-auto-approve", profile).code == 0
    assert dict(at.slices) == before
    assert at.run("plan", profile, DETAILED).code == 0


def test_several_profiles_are_planned_and_applied_together_and_one_failure_stops_no_other(cli: Open) -> None:
    at = cli(trouble=[{"fault": "quota-zero", "type": "v6e-8"}])
    small = at.write()
    large = at.write(PROFILE.replace("name: gemma", "name: large").replace("v6e-1", "v6e-8"), "large.yaml")
    planned = at.run("plan", small, large)
    assert "Plan: 2 to add, 0 to change, 0 to destroy." in planned.out
    applied = at.run("apply", "-auto-approve", small, large)
    assert applied.code == 1
    assert "large[0]: Failed" in applied.err
    assert "gemma[0]: Creation complete" in applied.err
    assert "gemma[0] serving" in at.run("status", small).words
    assert at.run("destroy", "-auto-approve", small, large).code == 0
    assert not at.slices


@pytest.mark.parametrize("command", ["plan", "apply", "destroy"])
def test_two_profiles_of_one_name_are_refused(cli: Open, command: str) -> None:
    at = cli()
    result = at.run(command, at.write(), at.write(PROFILE.replace("v6e-1", "v6e-4"), "larger.yaml"))
    assert result.code == 1
    assert "Several profiles are called gemma." in result.err
    assert not at.emulator.requests


def test_destroying_what_is_not_there_is_no_error(cli: Open) -> None:
    at = cli()
    destroyed = at.run("destroy", "-auto-approve", at.write())
    assert destroyed.code == 0, destroyed.all
    assert "No changes. There is nothing to destroy." in destroyed.out
    assert at.run("plan", "-destroy", "gemma.yaml", DETAILED).code == 0


@pytest.mark.instant("the calls that fail are counted")
@pytest.mark.polls_every_second("the calls that fail are counted")
def test_a_stopped_removal_is_taken_up_again_without_asking(cli: Open) -> None:
    at = cli()
    profile = _deployed(at)
    at.emulator.script({"fault": "unavailable", "method": "queuedResources.get", "attempt": "30-60"})
    codes = [at.run("destroy", "-auto-approve", profile).code]
    while codes[-1] == 1:
        at.clock.sleep(60)
        codes.append(at.run("destroy", profile).code)
    assert codes[0] == 1
    assert codes[-1] == 0
    assert not at.slices


def test_an_open_endpoint_without_a_key_is_warned_about_before_and_at_the_apply(cli: Open) -> None:
    at = cli()
    profile = at.write()
    for command in (("plan",), ("apply", "-auto-approve"), ("validate",)):
        result = at.run(*command, profile)
        assert result.code == 0
        assert "Warning: gemma has an external address and requires no API key. [TPU2001]" in result.err


@pytest.mark.parametrize(
    "text",
    [
        PROFILE.replace("  HF_TOKEN: hf-token\n", "  VLLM_API_KEY: vllm-key\n"),
        PROFILE + "  network: {external_ip: false}\n",
    ],
    ids=["a key", "no external address"],
)
def test_an_endpoint_that_is_not_open_is_not_warned_about(cli: Open, text: str) -> None:
    at = cli()
    assert "TPU2001" not in at.run("plan", at.write(text)).all


def test_a_lock_that_another_process_holds_ends_the_run_with_its_holder(cli: Open) -> None:
    at = cli()
    profile = at.write()
    with holding(at.folder / ".tpudeploy", "gemma", who="alice@laptop") as process:
        locked = at.run("apply", "-auto-approve", profile)
        assert locked.code == 10
        assert f"alice@laptop (process {process.pid}, `apply`)" in locked.err
        assert at.requested_zones() == []
        assert at.run("plan", profile).code == 0  # looking needs no lock
    assert at.run("apply", "-auto-approve", profile).code == 0


def test_a_holder_that_was_killed_holds_nothing(cli: Open) -> None:
    at = cli()
    profile = at.write()
    with holding(at.folder / ".tpudeploy", "gemma", who="alice@laptop") as process:
        process.kill()
        process.wait()
    assert at.run("apply", "-auto-approve", profile).code == 0


@pytest.mark.parametrize("command", [("plan",), ("apply", "-auto-approve"), ("destroy", "-auto-approve"), ("status",)])
@pytest.mark.parametrize(
    ("content", "words"),
    [("{", "cannot be read as a state"), ('{"format": "tpudeploy.state/9"}', "this tpudeploy reads")],
)
def test_a_state_that_cannot_be_read_stops_everything_and_is_left_alone(
    cli: Open, command: tuple[str, ...], content: str, words: str
) -> None:
    at = cli()
    profile = _deployed(at)
    path = at.folder / ".tpudeploy" / "state" / "gemma.json"
    path.write_text(content, encoding="utf-8")
    before = dict(at.slices)
    result = at.run(*command, profile)
    assert result.code == 1
    assert words in result.err
    assert "Traceback" not in result.all
    assert path.read_text(encoding="utf-8") == content
    assert dict(at.slices) == before


def test_a_cloud_that_is_silent_ends_a_plan_soon_and_clearly(cli: Open) -> None:
    at = cli()
    profile = _deployed(at)
    at.emulator.script({"fault": "unavailable", "method": "queuedResources.get"})
    began = at.clock.now()
    result = at.run("plan", profile)
    assert result.code == 1
    assert "The service is currently unavailable" in result.err
    assert at.clock.now() - began < 60


def test_a_replacement_under_way_still_says_what_it_will_destroy(cli: Open) -> None:
    at = cli()
    profile = at.write()
    assert at.run("apply", "-auto-approve", profile).code == 0
    (old,) = at.slices
    at.write(PROFILE.replace("v6e-1", "v6e-4"))
    assert at.run("apply", "-auto-approve", "--wait", "accepted", profile).code == 0
    planned = at.run("plan", profile)
    assert "Plan: 1 to add, 0 to change, 1 to destroy." in planned.out
    assert old in planned.out
    assert "an earlier run began this" in planned.words.lower()
    assert at.run("apply", profile).code == 0
    assert old not in at.slices
    assert list(at.slices.values()) == ["ACTIVE"]


def test_a_price_that_no_place_meets_is_told_before_anything_is_asked(cli: Open) -> None:
    at = cli()
    profile = at.write(PROFILE + "  max_price_per_chip_hour: 0.1\n")
    planned = at.run("plan", profile)
    assert planned.code == 13
    assert "gemma has no place to ask: all cost more than $0.1 a chip and hour" in planned.err
    assert at.run("validate", profile).code == 1


def test_a_plan_fits_the_width_of_the_terminal_and_its_attributes_stay_in_one_column_from_80_columns_on(
    cli: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = cli()
    at.write()
    monkeypatch.chdir(at.folder)
    with td.Workspace.open(".", clock=at.clock) as workspace:
        plan = workspace.plan(["gemma.yaml"])
    unbroken = plan.as_text(Paint())
    for columns in (60, 80, 120, 200):
        text = words.fitted(plan.as_text(Paint(colour=True), columns), columns)
        lines = text.splitlines()
        assert [line for line in lines if words.width(line) > columns and "sha256:" not in line] == []
        assert ("tpu.type        " in text) == (columns >= 80)
        plain = re.sub(r"\033\[\d+m", "", text)
        assert plain.split() == unbroken.split(), "only spaces and ends of lines differ"
    assert "once\n          granted; free while it waits" in words.fitted(plan.as_text(Paint(), 60), 60)
