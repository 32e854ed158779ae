"""The outbox: notices that are to be sent, and what was sent, in one file beside the states.

A run enters what it sees before it sends anything, and what it has sent right after: a run that is killed in between
sends it once more, with the same id.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from tpudeploy.features.notify.notice import Notice

FORMAT = "tpudeploy.outbox/1"
_KEPT = 7 * 86400.0  # seconds that an event waits for its receiver
_REMEMBERED = 62 * 86400.0  # longer than any period of a budget
_MOST = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """A notice to one target, which is known by a digest: the file names no URL and no command. `since` is when."""

    notice: Notice
    target: str
    since: float

    @property
    def key(self) -> str:
        return f"{self.notice.id}/{self.target}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outbox:
    """What waits to be sent, oldest first, and when each that was sent was last seen to be true, by its key."""

    waiting: tuple[Delivery, ...] = ()
    deliveries: Mapping[str, float] = field(default_factory=dict)

    def with_notices(self, candidates: Iterable[Delivery], now: float) -> Outbox:
        """Return the outbox with what is new of these. What a state still says stays remembered."""
        keys, deliveries_made = {each.key for each in self.waiting}, dict(self.deliveries)
        new = []
        for each in candidates:
            if each.key in deliveries_made:
                # A month is exact enough: the file is not written for each look.
                last = deliveries_made[each.key]
                deliveries_made[each.key] = now if now - last > _REMEMBERED / 2 else last
            elif each.key not in keys:
                keys.add(each.key)
                new.append(each)
        return replace(self, waiting=(*self.waiting, *new)[-_MOST:], deliveries=deliveries_made)

    def with_sent(self, delivery: Delivery, now: float) -> Outbox:
        waiting = tuple(each for each in self.waiting if each.key != delivery.key)
        return replace(self, waiting=waiting, deliveries={**self.deliveries, delivery.key: now})

    def without_old(self, now: float) -> Outbox:
        """Return the outbox without what waited for too long, and what is forgotten."""
        latest = sorted(self.deliveries.items(), key=lambda item: -item[1])[:_MOST]
        return Outbox(
            waiting=tuple(each for each in self.waiting if now - each.since < _KEPT or each.notice.unless),
            deliveries={key: at for key, at in latest if now - at < _REMEMBERED},
        )

    def settled(self, is_gone: Callable[[Notice], bool], now: float) -> Outbox:
        """Return the outbox in which the removals that are complete by now are true."""
        return replace(self, waiting=tuple(_settled(each, is_gone, now) for each in self.waiting))


def _settled(delivery: Delivery, is_gone: Callable[[Notice], bool], now: float) -> Delivery:
    notice = delivery.notice
    if not notice.unless or not is_gone(notice):
        return delivery
    return replace(delivery, notice=replace(notice, unless="", at=now), since=now)


def dumps(outbox: Outbox) -> str:
    """Return the file's text."""
    waiting = [{"target": each.target, "since": each.since, **asdict(each.notice)} for each in outbox.waiting]
    return json.dumps(
        {"format": FORMAT, "waiting": waiting, "sent": dict(outbox.deliveries)}, indent=1, ensure_ascii=False
    )


def loads(text: str) -> Outbox:
    """Return what a text holds. One that cannot be read holds nothing: the states say again what is still true."""
    try:
        tree = json.loads(text or "{}")
        deliveries = {str(key): float(at) for key, at in tree.get("sent", {}).items()}
        return Outbox(waiting=tuple(map(_delivery, tree.get("waiting", ()))), deliveries=deliveries)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return Outbox()


def _delivery(row: dict[str, Any]) -> Delivery:
    texts = {name: str(row[name]) for name in ("id", "event", "deployment", "address", "why", "text", "unless")}
    notice = Notice(at=float(row["at"]), **texts)
    return Delivery(notice=notice, target=str(row["target"]), since=float(row["since"]))
