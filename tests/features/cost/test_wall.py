"""No slice is requested that could exceed a budget: of its deployment, of a team, or of the run."""

from __future__ import annotations

import re

import pytest
from command_line import INSTANCE, PROFILE, CommandLine, Killed, Open

from tpudeploy.domain.lock import BUDGETS
from tpudeploy.emulator.storage_objects import Conditions, StoredObject
from tpudeploy.workspace import Workspace

# Spot at $1.40 an hour. With its end, a slice costs at most 10 hours, the 45 minutes of a start, and a quarter of an hour.
END = "lifecycle: {end: 10h}\n"
ROOM, NO_ROOM = 16, 15


def budgets(at: CommandLine, text: str) -> None:
    (at.folder / ".tpudeploy").mkdir(exist_ok=True)
    (at.folder / ".tpudeploy" / "budgets.yaml").write_text(text, encoding="utf-8")


@pytest.mark.parametrize("text", [PROFILE, INSTANCE], ids=["queued resource", "instance"])
def test_a_slice_that_could_exceed_the_budget_is_not_requested(cli: Open, text: str) -> None:
    at = cli()
    profile = at.write(text + END + f"budget: {{month: {NO_ROOM}}}\n")
    planned = at.run("plan", profile)
    assert planned.code == 0
    assert "gemma[0] would not be requested, because it could exceed a budget: $0.00 spent + $0.00" in planned.words
    refused = at.run("apply", "-auto-approve", profile)
    assert refused.code == 13
    assert "gemma[0] is not requested, because it could exceed a budget: $0.00 spent + $0.00" in refused.words
    assert "and budget.month is $15.00 in 2026-09 (UTC)" in refused.words
    assert "[TPU3007]" in refused.words
    assert at.requested_zones() == []
    at.write(text + END + f"budget: {{month: {ROOM}}}\n")
    assert "budget" not in at.run("plan", profile).err
    assert at.run("apply", "-auto-approve", profile).code == 0


def test_the_ceiling_of_a_run_counts_what_its_deployments_run_already(cli: Open) -> None:
    at = cli()
    profile = at.write(PROFILE + END)
    refused = at.run("apply", "-auto-approve", "-max-cost", str(NO_ROOM), profile)
    assert (refused.code, at.requested_zones()) == (13, [])
    assert "and -max-cost is $15.00 for this run" in refused.words
    assert at.run("apply", "-auto-approve", "-max-cost", str(ROOM), profile).code == 0
    more = at.run("apply", "-auto-approve", "-max-cost", str(ROOM), profile, "-set", "replicas=2")
    assert more.code == 13
    assert len(at.slices) == 1, "what runs is untouched"
    assert at.run("apply", "-auto-approve", "-max-cost", str(2 * ROOM), profile, "-set", "replicas=2").code == 0


def test_without_an_end_no_ceiling_holds(cli: Open) -> None:
    at = cli()
    result = at.run("apply", "-auto-approve", "-max-cost", "1000", at.write())
    assert (result.code, "this request has no end" in result.words, at.requested_zones()) == (13, True, [])


def test_a_team_s_budget_is_shared_by_the_deployments_of_its_states(cli: Open) -> None:
    at = cli()
    at.write(PROFILE + END)
    at.write(PROFILE.replace("name: gemma", "name: other") + END, "other.yaml")
    budgets(at, f"day: {ROOM}\n")
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    refused = at.run("apply", "-auto-approve", "other.yaml")
    assert (refused.code, "and budgets.yaml.day is $16.00" in refused.words) == (13, True)
    assert at.run("destroy", "-auto-approve", "gemma.yaml").code == 0
    assert at.run("apply", "-auto-approve", "other.yaml", "-set", "lifecycle.end=9h").code == 0


def test_of_two_deployments_in_one_run_one_gets_the_last_dollar(cli: Open) -> None:
    at = cli()
    at.write(PROFILE + END)
    at.write(PROFILE.replace("name: gemma", "name: other") + END, "other.yaml")
    for limits in ((), ("-max-cost", str(ROOM))):
        if not limits:
            budgets(at, f"day: {ROOM}\n")
        assert at.run("apply", "-auto-approve", *limits, "gemma.yaml", "other.yaml").code == 13
        assert len(at.slices) == 1
        assert at.run("destroy", "-auto-approve", "gemma.yaml", "other.yaml").code == 0
        (at.folder / ".tpudeploy" / "budgets.yaml").unlink(missing_ok=True)


def test_a_plan_of_several_counts_them_together_in_the_order_in_which_apply_requests_them(cli: Open) -> None:
    at = cli()
    at.write(PROFILE + END)
    at.write(PROFILE.replace("name: gemma", "name: other") + END, "other.yaml")
    budgets(at, f"day: {ROOM}\n")
    for first, second in (("gemma", "other"), ("other", "gemma")):
        plan = at.run("plan", f"{first}.yaml", f"{second}.yaml")
        assert f"{second}[0] would not be requested" in plan.words
        assert f"{first}[0] would not be requested" not in plan.words
        sums = re.search(r"still cost \+ (\S+) for what this plan requests before it \+ (\S+) for", plan.words)
        assert sums is not None
        assert sums[1] == sums[2], "both cost the same"
    refused = at.run("apply", "-auto-approve", "-parallelism", "1", "gemma.yaml", "other.yaml")
    assert refused.code == 13
    assert next(iter(at.slices)).startswith("gemma-"), "as the plan said"
    budgets(at, f"day: {2 * ROOM}\n")
    assert "would not be requested" not in at.run("plan", "gemma.yaml", "other.yaml").words


def test_a_replacement_beside_what_runs_is_counted_in_the_plan_as_well(cli: Open) -> None:
    at = cli()
    profile = at.write(PROFILE + END + f"budget: {{day: {ROOM}}}\n")
    assert at.run("apply", "-auto-approve", profile).code == 0
    words = ("-replace", "gemma[0]", profile)
    assert "gemma[0] would not be requested, because it could exceed a budget" in at.run("plan", *words).words
    at.write(PROFILE + END.replace("10h", "10h, replace: destroy-before-create") + f"budget: {{day: {ROOM}}}\n")
    assert "would not be requested" not in at.run("plan", *words).words


# 08:00 to 19:00: with the two minutes in which it is deleted, at most $15.45 on spot at $1.40 an hour.
HOURS = "lifecycle: {hours: 'Mon-Fri 08:00-19:00 UTC'}\n"


def test_hours_are_an_end_under_a_budget(cli: Open) -> None:
    at = cli(nodes="simulated")  # a Monday, in the afternoon
    profile = at.write(PROFILE + HOURS + "budget: {day: 10, month: 300}\n")
    plan = at.run("plan", profile)
    most = re.search(r"in these hours, at most \$(\S+) a month at list price", plan.out)
    assert most is not None
    assert float(most[1]) == pytest.approx(1.78 * 11 * 23, rel=0.01), "of the most expensive place"
    assert "budget.month: 300 ends that earlier" in plan.out
    applied = at.run("apply", "-auto-approve", profile)
    assert applied.code == 0, applied.words
    assert "still running: at most $" in at.run("cost").out
    for _ in range(1440):
        at.clock.sleep(60)  # the machine looks every minute
    assert at.run("apply", "-auto-approve", profile).code == 0, "the next day has its own budget"
    at.clock.sleep(86400)
    refused = at.run("apply", "-auto-approve", profile, "-set", "budget.day=1")
    assert (refused.code, "and budget.day is $1.00" in refused.words) == (13, True)
    assert not at.emulator.billed()


def test_at_night_a_slice_that_a_run_saw_to_be_gone_takes_nothing_from_the_team(cli: Open) -> None:
    at = cli()
    at.write(PROFILE + HOURS)
    at.write(PROFILE.replace("name: gemma", "name: other") + "lifecycle: {end: 1h}\n", "other.yaml")
    budgets(at, "day: 17\n")
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    at.clock.sleep(10 * 3600)
    assert not at.emulator.billed()
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    assert at.run("apply", "-auto-approve", "other.yaml").code == 0


def test_idle_alone_is_no_end(cli: Open) -> None:
    at = cli()
    profile = at.write(PROFILE + "lifecycle: {idle: 1h}\nbudget: {day: 1000}\n")
    refused = at.run("validate", profile)
    assert (refused.code, "TPU1329" in refused.all, "lifecycle.hours" in refused.all) == (1, True, True)


def test_a_team_s_budget_refuses_what_has_no_end(cli: Open) -> None:
    at = cli()
    budgets(at, "day: 1000\n")
    refused = at.run("apply", "-auto-approve", at.write())
    assert (refused.code, "this request has no end" in refused.words, at.requested_zones()) == (13, True, [])


def test_a_project_s_budget_holds_for_its_own_deployments(cli: Open) -> None:
    at = cli()
    at.write(PROFILE + END)
    budgets(at, "month: 10000\nprojects:\n  emulated: {day: 1}\n  another-one: {day: 100}\n")
    refused = at.run("apply", "-auto-approve", "gemma.yaml")
    assert (refused.code, "budgets.yaml projects.emulated.day is $1.00" in refused.words) == (13, True)


def test_several_requests_at_once_all_count(cli: Open) -> None:
    at = cli(trouble=[{"fault": "stockout", "zone": "*", "until": 7200}])
    profile = at.write(
        PROFILE.replace("max_parallel_requests: 1", "max_parallel_requests: 3") + END + f"budget: {{day: {2 * ROOM}}}\n"
    )
    at.run("apply", "-auto-approve", profile, "-wait", "granted", "-timeout", "30m")
    assert len(at.slices) <= 2


def test_the_next_day_has_its_own_budget_and_what_runs_over_midnight_counts_in_both(cli: Open) -> None:
    at = cli()
    profile = at.write(PROFILE + "lifecycle: {end: 40h}\n" + "budget: {day: 33}\n")
    refused = at.run("apply", "-auto-approve", profile)
    assert (refused.code, "$33.68" in refused.words) == (13, True), refused.words
    at.write(PROFILE + "lifecycle: {end: 40h}\n" + "budget: {day: 34}\n")
    assert at.run("apply", "-auto-approve", profile).code == 0


PROBLEMS = [
    ("budget: {day: -3}\nlifecycle: {end: 1h}\n", "TPU1205", "^^"),
    ("budget: {day: 3}\n", "TPU1329", "A budget needs an end"),
    ("budget: {dya: 3}\nlifecycle: {end: 1h}\n", "TPU1201", 'did you mean "day"?'),
]


@pytest.mark.parametrize(("text", "code", "words"), PROBLEMS)
def test_a_budget_that_cannot_hold_is_an_error_with_its_place(cli: Open, text: str, code: str, words: str) -> None:
    at = cli()
    refused = at.run("validate", at.write(PROFILE + text))
    assert (refused.code, code in refused.all, words in refused.all, "gemma.yaml:16:" in refused.all) == (
        (1, True, True, True)
    ), refused.all


TEAM_PROBLEMS = [
    ("day: -3\n", "budgets.yaml:1:6"),
    ("projects:\n  emulated: {dya: 3}\n", 'did you mean "day"?'),
    ("projects: 7\n", "budgets.yaml:1:11"),
    ("- 1\n", "budgets.yaml:1:1"),
    ("day: [\n", "budgets.yaml"),
]


@pytest.mark.parametrize(("text", "words"), TEAM_PROBLEMS)
def test_budgets_that_cannot_be_read_stop_requests_with_their_place(cli: Open, text: str, words: str) -> None:
    at = cli()
    budgets(at, text)
    refused = at.run("apply", "-auto-approve", at.write(PROFILE + END))
    assert (refused.code, words in refused.all, at.requested_zones()) == (1, True, []), refused.all


def test_a_rehearsal_is_held_against_the_budget_of_the_team_and_counts_in_it(cli: Open) -> None:
    at = cli(timings={"boot": 240.0, "deleting": 120.0, "reset": 120.0})
    rehearse = ("rehearse", "-auto-approve", "-max-cost", "2")
    budgets(at, "day: 0.10\n")
    report = at.run(*rehearse)
    assert "could exceed a budget" in report.words
    assert at.requested_zones() == []
    budgets(at, "day: 2\n")
    at.left_or_killed(900.0, *rehearse)
    assert at.emulator.billed(), "it uses its instance"
    own = at.run("apply", "-auto-approve", at.write(PROFILE + "lifecycle: {end: 2h}\n"))
    assert (own.code, "that what is alive may still cost" in own.words) == (13, True), own.all
    assert "rehearsal" in at.run("cost").out


def test_a_waiting_request_of_a_rehearsal_counts_in_what_others_may_request(cli: Open) -> None:
    at = cli(nodes="simulated", timings={"waiting": 36_000.0})
    budgets(at, "day: 1.90\n")

    def strike() -> None:
        if at.slices:
            at.clock.on_advance.remove(strike)
            raise Killed

    at.clock.on_advance.append(strike)
    with pytest.raises(Killed):
        at.run("rehearse", "-auto-approve", "-max-cost", "1")
    assert not at.emulator.billed()
    own = at.write(PROFILE + "lifecycle: {end: 20m}\nhealth: {timeout: 30m}\n")  # at most $1.57
    refused = at.run("apply", "-auto-approve", own)
    assert (refused.code, "that what is alive may still cost" in refused.words) == (13, True), refused.all
    # It lapses: then it may cost nothing any more.
    at.clock.sleep(3600.0)
    assert at.run("apply", "-auto-approve", "-wait", "accepted", own).code == 0


def test_who_has_the_shared_budget_is_named(cli: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USER", "ada")
    at = cli(timings={"neighbour": 0})
    at.write(PROFILE + END)
    budgets(at, f"day: {ROOM}\n")
    with Workspace.open(at.folder, clock=at.clock) as hers:
        lease = hers.adapters.states.lock(BUDGETS, "apply")
        refused = at.run("apply", "-auto-approve", "gemma.yaml")
        hers.adapters.states.unlock(lease)
    assert (refused.code, at.requested_zones()) == (10, []), refused.all
    who = "The shared budget (budgets.yaml, or -max-cost of several deployments) is locked by ada@"
    assert f"gemma: Waiting for the lock, retrying in 1s: {who}" in refused.words
    assert f"Error: {who}" in refused.words
    assert "`apply`) for 0:01:" in refused.words
    assert "_budgets" not in refused.all
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0


def test_the_shared_budget_of_a_bucket_is_taken_over_from_a_dead_run(cli: Open) -> None:
    at = cli(timings={"neighbour": 0})
    at.write(PROFILE + END)
    where = ("--backend", "gs://states/team")
    upload = StoredObject(name="team/budgets.yaml", content=f"day: {ROOM}\n".encode())
    at.emulator._cloud.objects.insert("states", upload, Conditions())
    with Workspace.open(at.folder, backend=where[1], clock=at.clock) as hers:
        hers.adapters.states.lock(BUDGETS, "apply")
        began = at.clock.now()
        applied = at.run("apply", "-auto-approve", "gemma.yaml", *where)
    assert applied.code == 0, applied.all
    assert "The shared budget (budgets.yaml, or -max-cost of several deployments) is locked by " in applied.words
    assert at.clock.now() - began > 900.0
    assert "_budgets" not in applied.all


@pytest.mark.parametrize("text", [PROFILE, INSTANCE], ids=["queued resource", "instance"])
@pytest.mark.parametrize("later", ["{end: 200h}", "{hours: '00:00-23:00 UTC'}", "{}"])
def test_what_runs_gets_no_later_end_beyond_the_budget_and_keeps_its_own(cli: Open, text: str, later: str) -> None:
    at = cli()
    profile = at.write(text + "lifecycle: {end: 2h}\n")
    budgets(at, "day: 5\n")
    assert at.run("apply", "-auto-approve", profile).code == 0
    at.write(f"{text}lifecycle: {later}\n")
    words = "gemma[0] keeps its end, because a later one could exceed a budget: "
    assert words in at.run("plan", profile).words
    refused = at.run("apply", "-auto-approve", profile)
    assert (refused.code, words in refused.words, len(at.emulator.billed())) == (13, True, 1), refused.all
    assert "until Google ends them" in at.run("cost").words or "until their ends" in at.run("cost").words
    at.write(text + "lifecycle: {end: 90m}\n")
    assert at.run("apply", "-auto-approve", profile).code == 0, "an earlier one costs less"
    for _ in range(140):
        at.clock.sleep(60.0)
    assert not at.emulator.billed(), "its machine has the end that was within the budget"
