"""A request that a run leaves behind, as its last words name it: until when it waits, and what it may cost."""

from __future__ import annotations

from collections.abc import Iterator

from tpudeploy.domain.state import Attempt
from tpudeploy.reconcile import prices

_MINUTE, _HOUR = 60.0, 3600.0
_MINUTES = 2 * _HOUR  # up to here they are told in minutes


def outstanding(attempt: Attempt, now: float) -> str:
    """`gemma-00000000-0-0 (us-east5-a, spot): lapses in 90 min; if granted, $1.40/h`."""
    facts = "; ".join(_facts(attempt, now))
    return f"{attempt.name} ({attempt.zone}, {attempt.provisioning}){f': {facts}' if facts else ''}"


def _facts(attempt: Attempt, now: float) -> Iterator[str]:
    if attempt.releasing_at is not None:
        yield "given up, not gone yet"
    elif attempt.granted_at is None and attempt.provisioning_at is None and attempt.expires_at is not None:
        yield f"lapses in {_span(attempt.expires_at - now)}"
    if attempt.releasing_at is None or attempt.granted_at is not None:
        yield f"{'if granted, ' if attempt.granted_at is None else ''}{_cost(attempt)}"


def _cost(attempt: Attempt) -> str:
    usd, most = prices.of_attempt(attempt), prices.most_of_attempt(attempt)
    if usd is None:
        return "at an unknown price"
    run = attempt.spec.get("placement.max_run_duration")
    return f"${usd:.2f}/h" if most is None else f"${usd:.2f}/h, at most ${most:.2f} in its {run}"


def _span(seconds: float) -> str:
    left = max(0.0, seconds)
    return f"{left / _MINUTE:.0f} min" if left <= _MINUTES else f"{left / _HOUR:.0f} h"
