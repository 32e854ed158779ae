"""A refusal closes what it speaks of and nothing else; a quota closes one pool, not the zone."""

from __future__ import annotations

import pytest

from tpudeploy.domain.deployment import Candidate, Provisioning
from tpudeploy.domain.names import Zone
from tpudeploy.domain.slices import Scope
from tpudeploy.domain.state import Refused
from tpudeploy.reconcile.refusals import covers

HERE, BESIDE, AWAY = "us-east5-a", "us-east5-b", "europe-west4-a"
PAIRS = [(zone, model) for zone in (HERE, BESIDE, AWAY) for model in Provisioning]
PREEMPTIBLE = {Provisioning.SPOT, Provisioning.FLEX_START}
STANDARD = {Provisioning.ON_DEMAND, Provisioning.RESERVED}


def _closed(model: Provisioning, scope: Scope) -> set[tuple[str, Provisioning]]:
    refused = Refused(zone=Zone(HERE), provisioning=model, kind="k", scope=scope, message="no", at=0.0, until=9.0)
    candidates = [Candidate(zone=Zone(zone), provisioning=p, usd_per_chip_hour=None) for zone, p in PAIRS]
    return {(str(c.zone), c.provisioning) for c in candidates if covers(refused, c)}


@pytest.mark.parametrize("asked", Provisioning)
def test_a_quota_closes_its_own_pool_alone(asked: Provisioning) -> None:
    pool = PREEMPTIBLE if asked in PREEMPTIBLE else STANDARD
    assert _closed(asked, Scope.ZONE_QUOTA) == {(HERE, p) for p in pool}
    assert _closed(asked, Scope.REGION_QUOTA) == {(zone, p) for zone in (HERE, BESIDE) for p in pool}


def test_every_other_scope_closes_what_its_name_says() -> None:
    assert _closed(Provisioning.SPOT, Scope.PAIR) == {(HERE, Provisioning.SPOT)}
    assert _closed(Provisioning.SPOT, Scope.ZONE) == {(HERE, p) for p in Provisioning}
    assert _closed(Provisioning.SPOT, Scope.REGION) == {(zone, p) for zone in (HERE, BESIDE) for p in Provisioning}
    assert _closed(Provisioning.SPOT, Scope.PROJECT) == set(PAIRS)
