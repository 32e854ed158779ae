"""States and ends of requests that backends are asked to keep."""

from __future__ import annotations

from dataclasses import replace

from tpudeploy.domain.deployment import Provisioning
from tpudeploy.domain.history import Ending, HistoryEntry
from tpudeploy.domain.life import Starting
from tpudeploy.domain.names import Zone
from tpudeploy.domain.slices import RefusalScope
from tpudeploy.domain.state import Approval, Attempt, Boot, Record, RefusalRecord, State

EMPTY = State(deployment="gemma", lineage="a" * 32)
FULL = replace(
    EMPTY,
    serial=7,
    next_attempt=3,
    goal=Approval(fingerprint="f" * 16, since=1.5, who="me@here"),
    records=(
        Record(
            index=0,
            attempts=(
                Attempt(
                    name="gemma-aaaaaaaa-0-2",
                    project="p",
                    zone=Zone("us-east5-a"),
                    provisioning=Provisioning.FLEX_START,
                    spec={"serving.args.speculative_config": {"method": "ngram"}, "model.id": "Ünïcode/模型"},
                    asked_at=1.0,
                    boot=Boot(server="b" * 16),
                    operation="projects/p/locations/us-east5-a/operations/o",
                    life=Starting(granted_at=2.0),
                ),
            ),
            refusals=(
                RefusalRecord(
                    zone=Zone("us-east5-b"),
                    provisioning=Provisioning.SPOT,
                    kind="stockout",
                    scope=RefusalScope.PAIR,
                    message="no more capacity",
                    at=1.0,
                    until=301.0,
                ),
            ),
        ),
    ),
)

GRANTED = HistoryEntry(
    at=10.5,
    zone=Zone("us-east5-a"),
    provisioning=Provisioning.SPOT,
    type="v6e-1",
    chips=1,
    outcome=Ending.GRANTED,
    waited=31.25,
)
REFUSED = replace(
    GRANTED,
    at=20.0,
    provisioning=Provisioning.FLEX_START,
    outcome=Ending.REFUSED,
    kind="stockout",
    text='There is no more "capacity"\nin 模 \u2028 here',
)
