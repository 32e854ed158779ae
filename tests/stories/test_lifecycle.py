"""What a plan says before a replacement that has no room, or a name that was changed, costs anybody anything."""

from __future__ import annotations

import json

from command_line import PROFILE, CommandLine, Open

ONE_ZONE = PROFILE.replace("us-east5-a, us-east5-b, europe-west4-a", "us-east5-a")
LARGER = ONE_ZONE.replace("v6e-1", "v6e-4")
FIRST = "lifecycle: {replace: destroy-before-create}\n"
RESERVATION = "projects/emulated/locations/us-east5-a/reservations/ours"
RESERVED = ONE_ZONE.replace("[spot]", f"[reserved]\n  reservation: {RESERVATION}")


def _deployed(at: CommandLine, text: str) -> str:
    profile = at.write(text)
    applied = at.run("apply", "-auto-approve", profile)
    assert applied.code == 0, applied.all
    return profile


def test_a_replacement_that_the_quota_cannot_hold_beside_the_old_is_refused_with_the_other_way(cli: Open) -> None:
    at = cli(quota=[{"class": "preemptible", "region": "us-east5", "limit": 4}])
    profile = _deployed(at, ONE_ZONE)
    at.write(LARGER)
    planned = at.run("plan", profile)
    assert planned.code == 13
    assert "Plan: 1 to add, 0 to change, 1 to destroy." in planned.out
    assert (
        "gemma[0] cannot be replaced before its slice is deleted: us-east5 has a quota of 4 preemptible chips"
        in planned.err
    )
    assert "of which 1 are used" in planned.err
    assert "destroy-before-create releases the old slice first" in planned.err
    assert "Nothing then serves during the wait for chips, and for about 10 min more." in planned.err
    assert at.run("apply", "-auto-approve", profile).code == 13
    assert len(at.requested_zones()) == 1
    at.write(LARGER + FIRST)
    assert at.run("plan", profile).code == 0
    applied = at.run("apply", "-auto-approve", profile)
    assert applied.code == 0, applied.all
    assert list(at.slices.values()) == ["ACTIVE"]


def test_a_replacement_that_has_another_place_is_planned(cli: Open) -> None:
    at = cli(quota=[{"class": "preemptible", "region": "us-east5", "limit": 4}])
    profile = _deployed(at, PROFILE)
    at.write(PROFILE.replace("v6e-1", "v6e-4"))
    assert at.run("plan", profile).code == 0, "europe-west4-a has a quota of its own"


def test_a_quota_that_holds_both_is_no_obstacle_and_one_that_nobody_tells_neither(cli: Open) -> None:
    at = cli(quota=[{"class": "preemptible", "region": "us-east5", "limit": 5}])
    profile = _deployed(at, ONE_ZONE)
    at.write(LARGER)
    assert at.run("plan", profile).code == 0
    at.emulator.script({"fault": "api-off", "method": "serviceusage"})
    assert at.run("plan", profile).code == 0


def test_a_quota_that_is_too_small_either_way_is_no_reason_to_give_the_old_slice_up(cli: Open) -> None:
    at = cli(quota=[{"class": "preemptible", "region": "us-east5", "limit": 2}])
    profile = _deployed(at, ONE_ZONE)
    at.write(LARGER)
    assert "TPU3021" not in at.run("plan", profile).all


def test_a_reservation_does_not_show_that_it_has_room_for_both(cli: Open) -> None:
    at = cli()
    profile = _deployed(at, RESERVED)
    at.write(RESERVED.replace("v6e-1", "v6e-4"))
    planned = at.run("plan", profile)
    assert planned.code == 13
    assert f"nothing shows that {RESERVATION} has room for both" in planned.err
    assert at.run("plan", "-replace", "gemma", at.write(RESERVED)).code == 13
    at.write(RESERVED.replace("v6e-1", "v6e-4").replace("[reserved]", "[reserved, spot]"))
    assert at.run("plan", profile).code == 0, "spot draws from something else"


def test_only_a_replacement_asks_for_quota(cli: Open) -> None:
    at = cli()
    profile = _deployed(at, ONE_ZONE)
    at.write(ONE_ZONE.replace("16384", "8192"))
    assert at.run("plan", profile).code == 0
    assert not [r for r in at.emulator.requests if "consumerQuota" in r.path]


def test_a_renamed_profile_is_told_whose_slices_it_would_buy_anew(cli: Open) -> None:
    at = cli()
    _deployed(at, PROFILE)
    renamed = at.write(PROFILE.replace("name: gemma", "name: gemma-search"), "search.yaml")
    planned = at.run("plan", renamed)
    assert planned.code == 0
    assert "Warning: gemma-search has no state, and gemma has slices that match it exactly" in planned.err
    assert "`tpudeploy state mv gemma gemma-search`" in planned.err
    codes = [check["address"]["name"] for check in json.loads(at.run("plan", "-json", renamed).out)["checks"]]
    assert "TPU3022" in codes


def test_what_is_meant_to_be_twice_or_is_something_else_is_no_renaming(cli: Open) -> None:
    at = cli()
    first = _deployed(at, PROFILE)
    twin = at.write(PROFILE.replace("name: gemma", "name: twin"), "twin.yaml")
    assert "TPU3022" not in at.run("plan", first, twin).all, "both are named here"
    other = at.write(PROFILE.replace("name: gemma", "name: other").replace("16384", "8192"), "other.yaml")
    assert "TPU3022" not in at.run("plan", other).all
    assert at.run("apply", "-auto-approve", twin).code == 0
    assert "TPU3022" not in at.run("plan", twin).all, "it has a state of its own"


def test_a_plan_takes_no_lock_and_writes_nothing_wherever_the_state_lies(cli: Open) -> None:
    at = cli()
    profile, place = at.write(ONE_ZONE), ("--backend", "gs://states/here")
    assert at.run("apply", "-auto-approve", *place, profile).code == 0
    at.write(LARGER)
    before = len(at.emulator.requests)
    assert at.run("plan", *place, profile).code == 0
    assert at.run("drift", *place, profile).code == 0
    reads = (":getGuestAttributes", "/v1/completions")
    writes = [r for r in at.emulator.requests[before:] if r.method != "GET" and not any(n in r.path for n in reads)]
    assert not writes
