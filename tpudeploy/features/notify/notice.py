"""Notices: what became of a deployment, each with an id that every run derives alike from the state."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass

from tpudeploy.domain.names import address
from tpudeploy.domain.state import State
from tpudeploy.reconcile.cost_wall import BudgetUse

FORMAT = "tpudeploy.notification/1"
SERVING, FAILED, ENDED, BUDGET = EVENTS = ("serving", "failed", "ended", "budget")
_MOST_OF_A_BUDGET = 0.8
_LONGEST = 1000  # characters of a message


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """One event, as it is sent. `deployment` is "" for a budget of several.

    `at` is in seconds since the epoch. `why` is the key, the code or the budget behind it, `text` a sentence.
    `unless` is a lineage: the notice is true once the state of this deployment is gone, or is another one.
    """

    id: str
    event: str
    at: float
    deployment: str
    address: str
    why: str
    text: str
    unless: str = ""

    def body(self) -> bytes:
        """Return the document that is sent."""
        document = {
            "format": FORMAT,
            "id": self.id,
            "event": self.event,
            "at": round(self.at, 3),
            "deployment": self.deployment,
            "address": self.address,
            "why": self.why,
            "text": self.text,
        }
        return json.dumps(document, ensure_ascii=False).encode()


def of_state(state: State, now: float) -> Iterator[Notice]:
    """Yield what a state says: which of its servers serve, and that its end has come."""
    for record in state.records:
        for attempt in record.attempts:
            if attempt.is_announced and attempt.release is None and not attempt.is_lost:
                where = address(state.deployment, record.index)
                yield Notice(
                    id=_id(state.lineage, SERVING, attempt.name, attempt.boot.server),
                    event=SERVING,
                    at=now,
                    deployment=state.deployment,
                    address=where,
                    why=attempt.name,
                    text=f"{where} serves in {attempt.zone}, {attempt.provisioning}.",
                )
    if state.ended is not None:
        yield Notice(
            id=_id(state.lineage, ENDED, f"{state.ended.at:.0f}", state.ended.cause),
            event=ENDED,
            at=state.ended.at,
            deployment=state.deployment,
            address=state.deployment,
            why=state.ended.why,
            text=f"{state.deployment} ended ({state.ended.why}).",
        )


def of_removal(state: State, now: float) -> Notice | None:
    """Return that a deployment is destroyed, true once its state is gone; None for one that has nothing any more."""
    if state.ended is not None or not state.slice_attempts:
        return None
    return Notice(
        id=_id(state.lineage, ENDED, "destroy"),
        event=ENDED,
        at=now,
        deployment=state.deployment,
        address=state.deployment,
        why="destroy",
        text=f"{state.deployment} ended (destroy).",
        unless=state.lineage,
    )


def of_failure(deployment: str, state: State | None, *, at: float, where: str, code: str, message: str) -> Notice:
    """Return that a change failed. The same failure of the same approved change is one event, however often it runs."""
    since = f"{state.goal.since:.0f}" if state is not None and state.goal is not None else ""
    lineage = deployment if state is None else state.lineage
    text = message if len(message) <= _LONGEST else f"{message[: _LONGEST - 1]}…"
    return Notice(
        id=_id(lineage, FAILED, where, code, since),
        event=FAILED,
        at=at,
        deployment=deployment,
        address=where,
        why=code,
        text=f"{where} failed: {text}",
    )


def of_budget(use: BudgetUse, now: float) -> Notice | None:
    """Return that most of a budget is spent, or None while it is not."""
    period = use.period
    if not period.usd or use.spent < period.usd * _MOST_OF_A_BUDGET:
        return None
    owner = f"{use.deployment} spent" if use.deployment else "The deployments spent"
    return Notice(
        id=_id(use.deployment, BUDGET, period.key, f"{period.since:.0f}", f"{period.usd:g}"),
        event=BUDGET,
        at=now,
        deployment=use.deployment,
        address=use.deployment,
        why=period.key,
        text=f"{owner} ${use.spent:.2f} of ${period.usd:.2f} ({period.key}) {period.label}, at list price.",
    )


def _id(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]
