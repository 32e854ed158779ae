"""What each change of a plan does to clients and to the bill: for its text, its approval and the consent of agents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import inf

from pydantic import ValidationError

from tpudeploy import catalog
from tpudeploy.config.scalars import Duration, Moment
from tpudeploy.config.schema.placement import PlacementSpec
from tpudeploy.domain.deployment import Json
from tpudeploy.domain.ending import EndCause
from tpudeploy.domain.hours import Hours
from tpudeploy.domain.plan import Action, Change, Goal, Plan
from tpudeploy.domain.policy import nested
from tpudeploy.planning.resolve import dearest_price
from tpudeploy.reconcile import prices
from tpudeploy.reconcile.machine_end import parse_end

Attributes = Mapping[str, Json]
_HOUR = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeEffects:
    """The effects of one change.

    `interrupts`: its server ends or restarts. `buys`: a slice or a router's VM may be requested. `loosens` are the keys
    by which what exists may cost more from now on: longer, in more slices, or at more expensive places.
    `usd_per_hour` is the price of one slice, None if unknown. `seconds` bounds how long it runs once it serves;
    infinite if it has no end.
    """

    change: Change
    interrupts: bool
    buys: bool
    loosens: tuple[str, ...]
    usd_per_hour: float | None
    seconds: float

    @property
    def spends_more(self) -> bool:
        return self.buys or bool(self.loosens)

    @property
    def usd(self) -> float:
        """Return the most that one slice costs until its end; infinite without an end or a known price."""
        return inf if self.usd_per_hour is None else self.usd_per_hour * self.seconds / _HOUR


def plan_effects(plan: Plan) -> tuple[ChangeEffects, ...]:
    """Return the effects of each change of a plan, in its order."""
    return tuple(effects(each, plan.made_at, starts=goal.starts) for goal in plan.goals for each in goal.changes)


def effects(change: Change, now: float, *, starts: bool = False) -> ChangeEffects:
    """Return the effects of a change. `starts`: its deployment has ended, and starts again."""
    action = change.action
    exists = action in {Action.NO_OP, Action.UPDATE, Action.RESTART, Action.REPLACE}
    loosens = tuple(_looser_keys(change.before, change.after)) if exists and change.before else ()
    if starts and exists and change.slice_name and EndCause.END not in loosens:
        loosens = (EndCause.END, *loosens)
    known_prices = [usd for usd in (change.usd_per_hour_after, change.usd_per_hour_most) if usd is not None]
    usd = max(known_prices, default=None)
    if any(path.startswith("placement.") for path in loosens):
        dearest = _dearest(change.after)
        usd = None if dearest == inf else max(dearest, usd or 0.0)
    return ChangeEffects(
        change=change,
        interrupts=action not in {Action.NO_OP, Action.CREATE, Action.UPDATE},
        buys=action in {Action.CREATE, Action.REPLACE},
        loosens=loosens,
        usd_per_hour=usd,
        seconds=_longest(change.after, now),
    )


def worst_cases(plan: Plan) -> Mapping[str, float]:
    """Return the most USD that each deployment with a looser key costs until its end; infinite if unknown.

    Each of its slices counts at the most expensive place, as many as scaling may add.
    """
    looser = {each.change.deployment: each for each in plan_effects(plan) if each.loosens}
    return {goal.name: _worst_case_of(goal, looser[goal.name]) for goal in plan.goals if goal.name in looser}


def _worst_case_of(goal: Goal, one: ChangeEffects) -> float:
    deployment = goal.deployment
    if deployment is None or one.seconds == inf:
        return inf
    count = len(deployment.replica_indexes) if deployment.scale is None else deployment.scale.max
    ceiling = prices.ceiling_of_replicas(deployment, count)
    usd_per_hour = max(ceiling.usd_per_hour, (one.usd_per_hour or inf) * count)
    seconds = one.seconds + deployment.health.timeout_seconds
    return usd_per_hour * seconds / _HOUR if ceiling.is_known else inf


def _looser_keys(before: Attributes, after: Attributes) -> Iterator[str]:
    """Yield the keys by which a deployment with `after` may cost more than with `before`."""
    for path, may_cost_more in _RULES.items():
        old, new = before.get(path), after.get(path)
        if old != new and may_cost_more(old, new):
            yield path
    # What had ended when it was idle starts again with its hours.
    if (
        before.get(EndCause.HOURS) is None
        and after.get(EndCause.HOURS) is not None
        and before.get(EndCause.IDLE) is not None
    ):
        yield EndCause.HOURS
    if _dearest(after) > _dearest(before):
        yield from (path for path in _PLACES if before.get(path) != after.get(path))


def _ends_later(old: Json, new: Json) -> bool:
    """Return whether an end may be later. Only when it first serves tells a time from a duration."""
    if old is None or new is None:
        return new is None
    was, becomes = parse_end(str(old)), parse_end(str(new))
    return type(was) is not type(becomes) or becomes > was


def _is_longer(old: Json, new: Json) -> bool:
    return old is not None and (new is None or Duration.parse(str(new)) > Duration.parse(str(old)))


def _has_more_hours(old: Json, new: Json) -> bool:
    return old is not None and (new is None or not Hours.parse(str(old)).covers(Hours.parse(str(new))))


def _is_raised_limit(old: Json, new: Json) -> bool:
    """Return whether a limit is higher or gone; without one before, any is lower."""
    return old is not None and (new is None or _number(new) > _number(old))


def _is_more(old: Json, new: Json) -> bool:
    return new is not None and (old is None or _number(new) > _number(old))


def _is_not_lower(old: Json, new: Json) -> bool:
    """Return whether a limit with a default that depends on the places is not certainly lower."""
    return old is None or new is None or _number(new) > _number(old)


def _renews(_: Json, new: Json) -> bool:
    return new == "renew"


_RULES: Mapping[str, Callable[[Json, Json], bool]] = {
    EndCause.END: _ends_later,
    EndCause.IDLE: _is_longer,
    EndCause.HOURS: _has_more_hours,
    "lifecycle.on_run_end": _renews,
    "health.timeout": _is_longer,  # an end counts from then, if it does not serve before
    "budget.day": _is_raised_limit,
    "budget.month": _is_raised_limit,
    "scale.min": _is_more,
    "scale.max": _is_more,
    "scale.max_cost_per_hour": _is_raised_limit,
    "placement.on_demand_floor": _is_more,
    "placement.max_parallel_requests": _is_not_lower,
    "placement.max_search_price_per_hour": _is_not_lower,
}
_PLACES = ("placement.zones", "placement.provisioning", "placement.max_price_per_chip_hour")
_MORE_PLACES = ("placement.reservation", "placement.max_search_price_per_hour", "placement.on_demand_floor")


def _dearest(attributes: Attributes) -> float:
    """Return the price per hour of a slice at the most expensive place; infinite if one is unknown."""
    kind = catalog.accelerator_type(str(attributes.get("tpu.type")))
    if kind is None:
        return 0.0  # a router's VM
    paths = (*_PLACES, *_MORE_PLACES)
    tree = nested({path: attributes[path] for path in paths if path in attributes}).get("placement", {})
    try:
        usd = dearest_price(PlacementSpec.model_validate(tree), kind)
    except ValidationError:
        return inf  # another version of tpudeploy applied it
    return inf if usd is None else usd * kind.chips


def _longest(attributes: Attributes, now: float) -> float:
    """Return for how many seconds a slice runs at most once it serves. Hours begin again, so they are no end."""
    text, run = attributes.get(EndCause.END), attributes.get("placement.max_run_duration")
    seconds = [inf]
    if text is not None:
        end = parse_end(str(text))
        seconds.append(max(0.0, end - now) if isinstance(end, Moment) else end)
    if run is not None and attributes.get("lifecycle.on_run_end") != "renew":
        seconds.append(Duration.parse(str(run)))
    return float(min(seconds))


def _number(value: Json) -> float:
    return float(str(value))
