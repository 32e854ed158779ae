"""A pipeline of one's own: load, plan, decide by rule, apply with a log of events, ask, take it away.

    tpudeploy emulator run -- python examples/02-library/pipeline.py

Elsewhere than on the emulator this costs money, up to the limit below.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import tpudeploy as td

PROFILE = Path(__file__).parents[2] / "profiles" / "gemma4-e2b-v6e1.yaml"
MOST_PER_HOUR = 2.00


def main() -> None:
    profile = td.Profile.load(PROFILE, set={"name": "nightly", "placement.max_run_duration": "1h"})
    with TemporaryDirectory() as folder, td.Workspace.open(folder) as workspace:
        plan = workspace.plan([profile])
        check(plan)
        try:
            report = workspace.apply(plan, on_event=log, wait=td.Wait.SERVING, timeout=3600)
            if report.error is not None:
                raise report.error
            answer = workspace.query(profile, "Are you there?", max_tokens=32)
            print(f"{report.endpoints[0].url} says: {answer.answer}")
        finally:
            removed = workspace.destroy([profile], on_event=log)
        if removed.error is not None:
            raise removed.error


def check(plan: td.Plan) -> None:
    """The gate: only additions, and none that costs more than we said."""
    for change in plan.changes:
        print(f"{change.address}: {change.action}, ${change.usd_per_hour_after}/h")
        if change.action != "create":
            raise SystemExit(f"{change.address} would be touched: {change.action}")
        if change.usd_per_hour_after is None or change.usd_per_hour_after > MOST_PER_HOUR:
            raise SystemExit(f"{change.address} would cost more than ${MOST_PER_HOUR:.2f}/h")


def log(event: td.events.Event) -> None:
    print(f"  {type(event).__name__}", file=sys.stderr)


if __name__ == "__main__":
    main()
