"""What a change does to clients and to the bill, key by key; and each key that restarts nothing is decided."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

import pytest

from tpudeploy.config import keys
from tpudeploy.domain.deployment import Json
from tpudeploy.domain.plan import Action, Change, Effect
from tpudeploy.node.fingerprint import effect
from tpudeploy.planning.effects import effects

NOW = 1_790_000_000.0  # 2026-09-21 14:13 UTC
BASE: Mapping[str, Json] = {
    "tpu.type": "v6e-1",
    "placement.zones": ["us-east5-a"],
    "placement.provisioning": ["spot"],
    "lifecycle.on_run_end": "release",
    "health.timeout": "45m",
}
OFFICE, LONGER = "Mon-Fri 08:00-19:00 UTC", "Mon-Sat 08:00-19:00 UTC"

# The key, what it was, what it becomes, and whether it may cost more.
KEYS = [
    ("lifecycle.end", "1h", "2000h", True),
    ("lifecycle.end", "1h", None, True),
    ("lifecycle.end", "2h", "60m", False),
    ("lifecycle.end", "60m", "1h", False),
    ("lifecycle.end", None, "2000h", False),
    ("lifecycle.end", "2026-12-24T18:00Z", "2026-12-24T19:00Z", True),
    ("lifecycle.end", "2026-12-24T18:00Z", "2026-12-24 18:00 Europe/Berlin", False),
    ("lifecycle.end", "1h", "2026-12-24T18:00Z", True),
    ("lifecycle.end", "2026-12-24T18:00Z", "1h", True),
    ("lifecycle.idle", "15m", "100h", True),
    ("lifecycle.idle", "15m", None, True),
    ("lifecycle.idle", "15m", "10m", False),
    ("lifecycle.idle", None, "100h", False),
    ("lifecycle.hours", OFFICE, LONGER, True),
    ("lifecycle.hours", OFFICE, None, True),
    ("lifecycle.hours", LONGER, OFFICE, False),
    ("lifecycle.hours", OFFICE, "Mon-Fri 08:00-19:00 Europe/Berlin", True),
    ("lifecycle.hours", "22:00-06:00 UTC", "23:00-05:00 UTC", False),
    ("lifecycle.hours", None, OFFICE, False),
    ("lifecycle.on_run_end", "release", "renew", True),
    ("lifecycle.on_run_end", "renew", "release", False),
    ("health.timeout", "45m", "9h", True),
    ("health.timeout", "45m", "30m", False),
    ("budget.day", 20, 30, True),
    ("budget.day", 20, None, True),
    ("budget.month", 20, 10, False),
    ("budget.month", None, 10, False),
    ("scale.max", 2, 3, True),
    ("scale.max", None, 3, True),
    ("scale.max", 3, 2, False),
    ("scale.min", 1, 2, True),
    ("scale.max_cost_per_hour", 10, 20, True),
    ("scale.max_cost_per_hour", 10, None, True),
    ("scale.max_cost_per_hour", None, 20, False),
    ("placement.on_demand_floor", None, 1, True),
    ("placement.on_demand_floor", 2, 1, False),
    ("placement.max_parallel_requests", 1, 3, True),
    ("placement.max_parallel_requests", 3, 1, False),
    ("placement.max_search_price_per_hour", 10, 20, True),
    ("placement.max_search_price_per_hour", 20, 10, False),
    ("placement.zones", ["us-east5-a"], ["us-east5-a", "europe-west4-a"], True),
    ("placement.zones", ["us-east5-a"], ["us-east5-a", "us-east5-b"], False),
    ("placement.zones", ["us-east5-a"], "any", True),
    ("placement.zones", "any", ["us-east5-a"], False),
    ("placement.provisioning", ["spot"], ["spot", "on-demand"], True),
    ("placement.provisioning", ["on-demand"], ["on-demand", "spot"], False),
    ("placement.max_price_per_chip_hour", 1.0, None, True),
    ("placement.max_price_per_chip_hour", None, 1.0, False),
]
# Changes of these keys restart nothing and let nothing cost more.
FREE = {
    "health.prompt",
    "health.via",
    "lifecycle.drain_timeout",
    "lifecycle.ignore_changes",
    "lifecycle.max_unavailable",
    "lifecycle.prevent_destroy",
    "lifecycle.replace",
    "lifecycle.update",
    "placement.labels",
    "placement.network.tags",
    "placement.valid_until",
    "router.address",
    "router.host",  # its VM is a change of its own, and so is another machine
    "router.kind",
    "router.machine",
    "router.policy",
    "router.port",
    "scale.cooldown",
    "scale.kv_cache",
    "scale.waiting",
    "serving.plain_env",
}


def change_of(action: Action = Action.UPDATE, *, path: str = "", old: Json = None, new: Json = None) -> Change:
    before, after = ({**BASE, path: value} if value is not None else dict(BASE) for value in (old, new))
    for each, value in ((before, old), (after, new)):
        if value is None:
            each.pop(path, None)
    return Change(
        deployment="gemma",
        replica=0,
        action=action,
        slice_name="gemma-1-0-0",
        usd_per_hour_after=1.4,
        before=before,
        after=after,
    )


@pytest.mark.parametrize(("path", "old", "new", "may_cost_more"), KEYS)
def test_a_change_spends_more_where_it_may_be_billed_longer_or_dearer(
    path: str, old: Json, new: Json, may_cost_more: bool
) -> None:
    result = effects(change_of(path=path, old=old, new=new), NOW)
    assert result.loosens == ((path,) if may_cost_more else ())
    assert result.spends_more == may_cost_more
    assert not result.interrupts


def test_hours_let_what_had_ended_when_it_was_idle_start_again() -> None:
    change = change_of(path="lifecycle.hours", new=OFFICE)
    idle = Change(
        deployment="gemma",
        replica=0,
        action=Action.UPDATE,
        before={**change.before, "lifecycle.idle": "15m"},
        after={**change.after, "lifecycle.idle": "15m"},
    )
    assert effects(idle, NOW).loosens == ("lifecycle.hours",)


def test_each_key_that_restarts_nothing_is_decided() -> None:
    paths = {".".join(map(str, path)) for path in keys.all_keys()}
    sections = {path.rpartition(".")[0] for path in paths}
    elsewhere = {"name", "version", "extends", "replicas", "notify", "notify_key"}  # no attributes of a slice
    cosmetic = {path for path in paths - sections - elsewhere if effect(path) is Effect.COSMETIC}
    in_table = {path for path, *_ in KEYS}
    assert cosmetic == in_table | FREE
    assert not in_table & FREE


@pytest.mark.parametrize(
    ("action", "interrupts", "buys"),
    [
        (Action.NO_OP, False, False),
        (Action.CREATE, False, True),
        (Action.UPDATE, False, False),
        (Action.RESTART, True, False),
        (Action.REPLACE, True, True),
        (Action.DESTROY, True, False),
    ],
)
def test_each_action_is_known_by_what_it_interrupts_and_buys(action: Action, interrupts: bool, buys: bool) -> None:
    result = effects(change_of(action), NOW)
    assert (result.interrupts, result.buys, result.loosens) == (interrupts, buys, ())


def test_a_restart_that_moves_the_end_as_well_says_both() -> None:
    result = effects(change_of(Action.RESTART, path="lifecycle.end", old="1h", new="2h"), NOW)
    assert (result.interrupts, result.loosens) == (True, ("lifecycle.end",))


def test_a_deployment_that_has_ended_and_starts_again_has_its_whole_time_again() -> None:
    change = change_of(Action.NO_OP, path="lifecycle.end", old="1h", new="1h")
    assert effects(change, NOW).loosens == ()
    assert effects(change, NOW, starts=True).loosens == ("lifecycle.end",)


@pytest.mark.parametrize(
    ("after", "hours"),
    [
        ({"lifecycle.end": "10h"}, 10),
        ({"lifecycle.end": "2026-09-22T00:13:20Z"}, 10),
        ({"lifecycle.end": "2020-01-01T00:00Z"}, 0),
        ({"lifecycle.end": "10h", "placement.max_run_duration": "4h"}, 4),
        ({"placement.max_run_duration": "4h", "lifecycle.on_run_end": "renew"}, inf),
        ({"lifecycle.idle": "15m"}, inf),
        ({"lifecycle.hours": OFFICE}, inf),
        ({}, inf),
    ],
)
def test_what_it_costs_until_its_end(after: Mapping[str, Json], hours: float) -> None:
    change = change_of()
    result = effects(
        Change(
            deployment="gemma",
            replica=0,
            action=Action.UPDATE,
            usd_per_hour_after=1.4,
            before=change.before,
            after={**change.after, **after},
        ),
        NOW,
    )
    assert result.usd == pytest.approx(1.4 * hours, abs=0.01)


def test_the_price_of_more_places_is_that_of_the_most_expensive() -> None:
    result = effects(change_of(path="placement.provisioning", old=["spot"], new=["spot", "on-demand"]), NOW)
    assert result.usd_per_hour == pytest.approx(2.7)
    unknown = effects(change_of(path="placement.zones", old=["us-east5-a"], new="any"), NOW)
    assert (unknown.usd_per_hour, unknown.usd) == (None, inf)
