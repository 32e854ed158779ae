"""Getting a slice: every way in which Google says no, not yet, or nothing at all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from command_line import INSTANCE, PROFILE, CommandLine, Open

from tpudeploy.domain.errors import CapacityTimeout
from tpudeploy.loading import Profile
from tpudeploy.workspace import Workspace

A, B, ELSEWHERE = "us-east5-a", "us-east5-b", "europe-west4-a"

# One refusal of each scope (all of them: test_refusals.py); the words of Google's that the person reads; the zone
# that is asked next.
REFUSALS: tuple[tuple[Mapping[str, Any], str, str], ...] = (
    ({"fault": "stockout"}, 'There is no more capacity in the zone "us-east5-a"', B),
    ({"fault": "zone-unsupported"}, 'The requested zone "us-east5-a" is not supported', B),
    ({"fault": "quota-zero"}, "Limit: 0 in region us-east5", ELSEWHERE),
    ({"fault": "no-subnetwork"}, "No default subnetwork was found in region us-east5", ELSEWHERE),
)


@pytest.mark.parametrize("row", REFUSALS, ids=lambda row: str(row[0]["fault"]))
def test_a_refused_zone_is_named_in_googles_words_left_clean_and_not_asked_again(
    cli: Open, row: tuple[Mapping[str, Any], str, str]
) -> None:
    trouble, words, then = row
    at = cli(trouble=[{**trouble, "zone": A}])
    profile = at.write()
    applied = at.run("apply", "-auto-approve", profile)
    assert applied.code == 0, applied.all
    assert words in applied.err
    assert f"Refused in {A}, spot" in applied.err
    assert at.requested_zones() == [A, then]
    assert list(at.slices.values()) == ["ACTIVE"]  # no husk that eats quota

    at.write(PROFILE.replace("v6e-1", "v6e-4"))
    assert at.run("apply", "-auto-approve", profile).code == 0
    assert at.requested_zones() == [A, then, then]


@pytest.mark.parametrize("layer", ["L1", "L2", "L3"])
def test_words_that_nobody_has_seen_are_passed_on_and_held_against_the_place_for_half_a_minute(
    cli: Open, layer: str
) -> None:
    words = "quantum flux\nin chip 3"
    at = cli(trouble=[{"fault": "stockout", "zone": A, "layer": layer, "message": words, "code": 9}])
    applied = at.run("apply", "-auto-approve", at.write())
    assert applied.code == 0, applied.all
    assert words in applied.err
    assert f"Refused in {A}, spot (unknown); next attempt there in 30s" in applied.err
    assert at.requested_zones() == [A, B]
    (refused,) = at.state()["records"][0]["refusals"]
    assert refused["known"] is False


def test_a_refused_quota_of_spot_leaves_the_other_pool_of_the_zone_open(cli: Open) -> None:
    at = cli(quota=[{"class": "preemptible", "zone": "*", "limit": 0}])
    models = "[spot, flex-start, on-demand]\n  max_run_duration: 4h"
    applied = at.run("apply", "-auto-approve", at.write(PROFILE.replace("[spot]", models)))
    assert applied.code == 0, applied.all
    assert at.requested_zones() == [A, B, ELSEWHERE, A]  # flex-start draws from the pool of spot: not asked
    assert f"in {A}, on-demand" in applied.err


def test_a_provisioning_model_that_is_refused_gives_way_to_the_next_one(cli: Open) -> None:
    at = cli(trouble=[{"fault": "model-unsupported", "model": "SPOT"}])
    profile = at.write(PROFILE.replace("[spot]", "[spot, on-demand]"))
    applied = at.run("apply", "-auto-approve", profile)
    assert applied.code == 0, applied.all
    assert at.requested_zones() == [A, B, ELSEWHERE, A]
    assert f"in {A}, on-demand" in applied.err


def test_with_every_zone_full_it_waits_and_asks_again_ever_later(cli: Open) -> None:
    at = cli(trouble=[{"fault": "stockout", "times": 9}])
    began = at.clock.now()
    applied = at.run("apply", "-auto-approve", at.write())
    assert applied.code == 0, applied.all
    assert at.requested_zones() == [A, B, ELSEWHERE] * 3 + [A]
    assert at.clock.now() - began > 200
    assert "next attempt there in 1m 0s" in applied.err


def test_where_no_zone_has_quota_it_says_so_at_once_and_a_rerun_asks_anew(cli: Open) -> None:
    at = cli(trouble=[{"fault": "quota-zero", "times": 2}])
    profile = at.write()
    stopped = at.run("apply", "-auto-approve", profile)
    assert stopped.code == 1
    assert at.requested_zones() == [A, ELSEWHERE]
    assert "All allowed zones refused the request" in stopped.err
    assert f"{A}, spot; {ELSEWHERE}, spot: Quota limit" in stopped.err
    assert not at.slices
    assert at.run("apply", profile).code == 0  # the quota was granted meanwhile
    assert at.requested_zones() == [A, ELSEWHERE, A]


def test_a_timeout_keeps_the_place_in_the_queue_and_a_rerun_resumes_without_asking(cli: Open) -> None:
    at = cli(trouble=[{"fault": "timings", "waiting": 1800}])
    profile = at.write()
    stopped = at.run("apply", "-auto-approve", "-timeout", "10m", profile)
    assert stopped.code == 12, stopped.all
    (name,) = at.slices
    assert f"{name} ({A}, spot)" in stopped.err
    assert "was not granted in time" in stopped.err
    assert at.state()["goal"] is not None

    planned = at.run("plan", profile)
    assert "an earlier run began this" in planned.out
    resumed = at.run("apply", profile)  # no -auto-approve, and no terminal to ask
    assert resumed.code == 0, resumed.all
    assert at.requested_zones() == [A]
    assert list(at.slices) == [name]


def test_a_request_that_waits_holds_its_place_and_no_other_zone_is_asked(cli: Open) -> None:
    at = cli(trouble=[{"fault": "timings", "zone": A, "waiting": 3600}])
    applied = at.run("apply", "-auto-approve", at.write())
    assert applied.code == 0, applied.all
    assert at.requested_zones() == [A]
    assert "Still waiting: WAITING_FOR_RESOURCES" in applied.err
    assert 5 < applied.err.count("Still waiting") < 12  # an hour in a queue is no wall of text


@pytest.mark.parametrize("fault", ["wait-for-ever", "accepted"])
def test_a_request_that_lapses_is_cleared_away_and_the_next_zone_is_asked(cli: Open, fault: str) -> None:
    at = cli(trouble=[{"fault": fault, "zone": A}, {"fault": "wait-for-ever", "zone": A}])
    applied = at.run("apply", "-auto-approve", at.write(PROFILE + "  valid_until: 30m\n"))
    assert applied.code == 0, applied.all
    assert at.requested_zones() == [A, B]
    assert "not provisioned before its validity interval ended" in applied.err
    assert "(lapsed)" in applied.err
    assert list(at.slices.values()) == ["ACTIVE"]


@pytest.mark.polls_every_second("the minute of the decision is told")
def test_a_slice_that_loops_in_provisioning_is_abandoned_for_the_next_zone(cli: Open) -> None:
    at = cli(trouble=[{"fault": "provisioning-loop", "zone": A, "for": 3000}])
    applied = at.run("apply", "-auto-approve", at.write())
    assert applied.code == 0, applied.all
    assert at.requested_zones() == [A, B]
    assert "still PROVISIONING after 40 min" in applied.err
    assert list(at.slices.values()) == ["ACTIVE"]


@pytest.mark.parametrize(
    ("fault", "command"),
    [
        ("api-off", "gcloud services enable tpu.googleapis.com"),
        ("iam-denied", "gcloud projects add-iam-policy-binding"),
    ],
)
def test_what_only_a_person_can_mend_stops_at_once_with_the_command_to_run(cli: Open, fault: str, command: str) -> None:
    at = cli(trouble=[{"fault": fault, "times": 1, "method": "queuedResources.create"}])
    profile = at.write()
    stopped = at.run("apply", "-auto-approve", profile)
    assert stopped.code == 1
    assert command in stopped.err
    assert at.requested_zones() == [A]
    assert not at.slices
    assert at.run("apply", "-auto-approve", profile).code == 0  # mended: the next run asks again at once


def test_without_credentials_it_says_how_to_log_in(cli: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    at = cli()
    monkeypatch.delenv("TPU_EMULATOR_HOST")
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(at.folder / "gcloud"))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    stopped = at.run("plan", at.write())
    assert stopped.code == 1
    assert "gcloud auth application-default login" in stopped.err
    assert "Traceback" not in stopped.all


def test_a_rate_limit_is_waited_out_where_it_struck(cli: Open) -> None:
    at = cli(trouble=[{"fault": "rate-limit", "times": 1}])
    began = at.clock.now()
    applied = at.run("apply", "-auto-approve", at.write())
    assert applied.code == 0, applied.all
    assert at.requested_zones() == [A, A]
    assert "CreateNode requests per minute" in applied.err
    assert at.clock.now() - began > 60
    assert list(at.slices.values()) == ["ACTIVE"]


@pytest.mark.parametrize(
    "trouble",
    [
        [{"fault": "lost-reply"}],
        [{"fault": "lost-reply"}, {"fault": "hidden", "seconds": 70}],
        [{"fault": "already-exists"}],
        [{"fault": "already-exists"}, {"fault": "hidden", "seconds": 70}],
        [{"fault": "hidden", "seconds": 70}],
        [{"fault": "slow-operation"}],
    ],
    ids=lambda rows: "+".join(r["fault"] for r in rows),
)
def test_whatever_becomes_of_the_reply_exactly_one_slice_is_asked_for_and_kept(
    cli: Open, trouble: list[Mapping[str, Any]]
) -> None:
    at = cli(trouble=[{**row, "call": 1} for row in trouble])
    applied = at.run("apply", "-auto-approve", at.write())
    assert applied.code == 0, applied.all
    assert at.requested_zones() == [A]
    assert len(at.slices) == 1
    assert _serves(at)


@pytest.mark.parametrize("fault", ["unavailable", "backend-error", "connection-refused", "slow"])
def test_a_cloud_that_does_not_answer_for_a_while_is_looked_at_again(cli: Open, fault: str) -> None:
    at = cli(trouble=[{"fault": fault, "method": "queuedResources.get", "times": 3}])
    applied = at.run("apply", "-auto-approve", at.write())
    assert applied.code == 0, applied.all
    assert at.requested_zones() == [A]
    assert len(at.slices) == 1


def test_a_cloud_that_stays_silent_ends_the_run_and_a_rerun_goes_on(cli: Open) -> None:
    at = cli(trouble=[{"fault": "unavailable", "method": "queuedResources.get", "times": 40}])
    profile = at.write()
    stopped = at.run("apply", "-auto-approve", profile)
    assert stopped.code == 1
    assert "The service is currently unavailable" in stopped.err
    while (again := at.run("apply", profile)).code == 1:
        at.clock.sleep(60)
    assert again.code == 0, again.all
    assert at.requested_zones() == [A]
    assert _serves(at)


CREATES = "queuedResources.create|compute.instances.insert"
UNANSWERED = {
    "never carried out": {"fault": "unavailable"},
    "a broken connection": {"fault": "connection-refused"},
    "a full zone as a 503": {"fault": "stockout", "layer": "L1"},
}


@pytest.mark.parametrize("trouble", UNANSWERED.values(), ids=UNANSWERED.keys())
@pytest.mark.parametrize("profile", [PROFILE, INSTANCE], ids=["queued-resource", "gce-instance"])
def test_a_zone_that_answers_no_create_is_left_for_the_next(
    cli: Open, profile: str, trouble: Mapping[str, Any]
) -> None:
    at = cli(trouble=[{**trouble, "zone": A, "method": CREATES}])
    applied = at.run("apply", "-auto-approve", at.write(profile))
    assert applied.code == 0, applied.all
    assert at.requested_zones() == [A, B]
    assert len(at.slices) == 1


@pytest.mark.parametrize("profile", [PROFILE, INSTANCE], ids=["queued-resource", "gce-instance"])
def test_where_no_zone_answers_a_create_all_are_asked_in_turn_and_ever_more_seldom(cli: Open, profile: str) -> None:
    at = cli(trouble=[{"fault": "unavailable", "method": CREATES}])
    stopped = at.run("apply", "-auto-approve", "-timeout", "1h", at.write(profile))
    assert stopped.code == 12, stopped.all
    assert f"Refused in {A}, spot" in stopped.all
    assert "(unanswered)" in stopped.all
    assert set(at.requested_zones()) == {A, B, ELSEWHERE}
    assert len(at.requested_zones()) < 20  # it was 31, all of them in the first zone
    assert not at.slices


@pytest.mark.parametrize("profile", [PROFILE, INSTANCE], ids=["queued-resource", "gce-instance"])
def test_a_slice_whose_create_was_answered_with_503_is_kept_alone(cli: Open, profile: str) -> None:
    at = cli(trouble=[{"fault": "failed-reply", "method": CREATES}])
    applied = at.run("apply", "-auto-approve", at.write(profile))
    assert applied.code == 0, applied.all
    assert at.requested_zones() == [A]
    assert len(at.slices) == 1


@pytest.mark.parametrize("layer", ["L1", "L2", "L3"])
def test_a_request_that_google_calls_wrong_stops_in_googles_words_wherever_they_come(cli: Open, layer: str) -> None:
    wrong = {"fault": "stockout", "layer": layer, "code": 3, "message": "tpu.node.tags: no such thing"}
    at = cli(trouble=[wrong])
    stopped = at.run("apply", "-auto-approve", at.write())
    assert stopped.code == 1
    assert "tpu.node.tags: no such thing" in stopped.err.partition("Error: ")[2]
    assert at.requested_zones() == [A]
    assert not at.slices


@pytest.mark.parametrize(("wait", "state"), [("accepted", "WAITING_FOR_RESOURCES"), ("granted", "ACTIVE")])
def test_apply_may_end_earlier_and_the_next_one_goes_on(cli: Open, wait: str, state: str) -> None:
    at = cli(boot={"boot_seconds": 600}, timings={"queued": 0.5, "waiting": 900})
    profile = at.write()
    begun = at.run("apply", "-auto-approve", "-wait", wait, profile)
    assert begun.code == 0
    assert "Done! Resources: 0 added, 0 changed, 0 destroyed.\nIn progress: gemma[0]." in begun.out
    assert "complete" not in begun.err
    assert state in {*at.slices.values(), "WAITING_FOR_RESOURCES"}
    assert not (at.folder / "endpoints").exists()
    assert at.run("apply", profile).code == 0
    assert at.requested_zones() == [A]
    assert _serves(at)


def _serves(at: CommandLine) -> bool:
    result = at.run("status", "gemma.yaml")
    return "gemma[0]  serving" in result.out


def test_an_abandoned_slice_that_will_not_go_keeps_nobody_from_the_endpoint(cli: Open) -> None:
    at = cli(trouble=[{"fault": "provisioning-loop", "zone": "us-east5-a", "for": 6000}])
    profile = at.write()
    applied = at.run("apply", "-auto-approve", profile)
    assert applied.code == 0, applied.all
    message = applied.err
    assert message.index("Serving at") < message.index("Deleted ")
    assert list(at.slices.values()) == ["ACTIVE"]


@pytest.mark.parametrize("destroys", [False, True])
def test_a_slice_that_never_goes_ends_the_run_in_the_end_and_is_named(cli: Open, destroys: bool) -> None:
    looping = {"fault": "provisioning-loop", "zone": "us-east5-a", "for": 90_000}
    never = {"fault": "delete-refused", "times": 9_999}
    at = cli(trouble=[never] if destroys else [looping])
    profile = at.write()
    result = at.run("apply", "-auto-approve", profile)
    if destroys:
        assert result.code == 0
        result = at.run("destroy", "-auto-approve", profile)
    assert result.code == 1
    message = (
        "gemma is not fully deleted yet"
        if destroys
        else "gemma serves, but the slices that it replaced are not deleted yet"
    )
    assert message in result.err
    (remaining,) = [
        attempt["name"] for attempt in at.state()["records"][0]["attempts"] if attempt["life"]["state"] == "releasing"
    ]
    assert remaining in result.err.rpartition("Error:")[2]


def test_who_does_not_stay_to_watch_asks_in_one_place_and_gives_back_the_others(cli: Open) -> None:
    at = cli(trouble=[{"fault": "wait-for-ever"}])
    many = at.write(_parallel(3))
    assert at.run("apply", "-auto-approve", "-timeout", "2m", many).code == 12
    assert len(at.slices) == 3
    assert at.run("apply", "-wait", "accepted", many).code == 0
    assert list(at.slices.values()) == ["WAITING_FOR_RESOURCES"]


def test_fewer_parallel_requests_than_before_give_the_youngest_back(cli: Open) -> None:
    at = cli(trouble=[{"fault": "wait-for-ever"}])
    assert at.run("apply", "-auto-approve", "-timeout", "2m", at.write(_parallel(3))).code == 12
    first = at.requested_zones()[0]
    assert at.run("apply", "-auto-approve", "-timeout", "5m", at.write(_parallel(1))).code == 12
    (remaining,) = at.emulator.live()
    assert remaining == first


def _parallel(requests: int) -> str:
    return PROFILE.replace("requests: 1", f"requests: {requests}")


def test_out_of_time_while_every_zone_refuses_no_request_is_called_open(cli: Open) -> None:
    at = cli(trouble=[{"fault": "stockout"}])
    applied = at.run("apply", "-auto-approve", "-timeout", "5m", at.write())
    assert applied.code == 12, applied.all
    assert "gemma was not granted in time. No request is open now." in applied.err
    assert "Still outstanding" not in applied.err
    assert "destroy" not in applied.err, "there is nothing to delete"


@pytest.mark.parametrize(
    "trouble",
    [
        {"fault": "quota-zero", "method": "queuedResources.create"},  # refused at once
        {"fault": "stockout"},  # refused by its operation
        {"fault": "preempt", "after": 30.0},  # lost while its server starts
    ],
    ids=lambda row: row["fault"],
)
def test_a_run_that_may_request_one_slice_requests_no_other(cli: Open, trouble: Mapping[str, Any]) -> None:
    at = cli(trouble=[trouble])
    workspace = Workspace(at.folder, clock=at.clock)
    at.write()
    report = workspace.apply(workspace.plan([Profile.load(at.folder / "gemma.yaml")]), max_requests=1)
    assert isinstance(report.error, CapacityTimeout)
    assert "gemma has no slice, and this run may request no other. " in report.error.message
    assert len(at.requested_zones()) == 1
    workspace.close()
