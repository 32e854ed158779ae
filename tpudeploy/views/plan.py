"""Format a plan as text in Terraform's style, with the line of the profile that caused each change."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from math import inf

from tpudeploy.domain.deployment import Json
from tpudeploy.domain.diagnostics import errors_in
from tpudeploy.domain.hours import Hours
from tpudeploy.domain.names import ROUTER
from tpudeploy.domain.plan import (
    Action,
    Change,
    DriftKind,
    Effect,
    FieldChange,
    Goal,
    Mode,
    Plan,
    Reason,
    RouterPlan,
    SliceDrift,
)
from tpudeploy.domain.router import RouterHost
from tpudeploy.pins import FOLLOWS
from tpudeploy.planning.effects import ChangeEffects, plan_effects
from tpudeploy.text import words
from tpudeploy.text.paint import Paint
from tpudeploy.views import drift

_HOUR = 3600.0
_NARROW = 80  # columns of a terminal below which the values of attributes do not begin in one column
_SYMBOLS = {Action.CREATE: "+", Action.UPDATE: "~", Action.RESTART: "↻", Action.DESTROY: "-"}
_MEANING = {
    "+": "create",
    "~": "update in place",
    "↻": "restart the server, keep the chips",
    "-": "destroy",
    "-/+": "destroy and then create replacement",
    "+/-": "create replacement and then destroy",
}
_VERBS = {
    Action.CREATE: "will be created",
    Action.UPDATE: "will be updated in place",
    Action.RESTART: "will be restarted in place: the slice is kept; it is down until the server is back",
    Action.REPLACE: "must be replaced",
    Action.DESTROY: "will be destroyed",
}


def plan(plan: Plan, paint: Paint, width: int | None = None) -> str:
    """Return the whole plan, ending with Terraform's summary line. `width`: the columns of the terminal, if any."""
    if plan.mode is Mode.REFRESH_ONLY:
        return _drift(plan, paint)
    all_effects = [each for each in plan_effects(plan) if each.change.action is not Action.NO_OP]
    changes = [each.change for each in all_effects]
    if not changes:
        note = _outside(plan.drift, (), paint)
        notes = (_unfinished_runs, _scaled_numbers, _ended)
        return "\n".join([*note, _no_changes(plan), *(line for lines in notes for line in lines(plan.goals))])
    symbols = dict.fromkeys(symbol(c) for c in changes)
    legend = [f"  {_coloured(s, paint)} {_MEANING[s]}" for s in symbols]
    is_narrow = width is not None and width < _NARROW
    blocks = ["\n".join(_change(each, paint, is_narrow=is_narrow)) for each in all_effects]
    head = ["Actions are indicated with the following symbols:", *legend, "", "tpudeploy will perform these actions:"]
    note = _outside(plan.drift, {c.address for c in changes}, paint)
    is_named = len(plan.goals) > 1
    lines = (line(goal, is_named=is_named) for goal in plan.goals for line in (_router, _scale))
    routers = filter(None, lines)
    return "\n".join(
        [
            *note,
            *head,
            "",
            "\n\n".join(blocks),
            "",
            paint.bold(summary(changes)),
            *total(plan),
            *routers,
            *_ended(plan.goals),
        ]
    )


def _outside(drifts: Iterable[SliceDrift], addresses: Collection[str], paint: Paint) -> list[str]:
    """Return the section of what changed outside at these addresses, and of the slices that no state tracks."""
    relevant = [d for d in drifts if d.address in addresses or d.kind is DriftKind.UNTRACKED]
    return [drift.section(relevant, paint), ""] if relevant else []


def _drift(plan: Plan, paint: Paint) -> str:
    without_state = () if errors_in(plan.diagnostics) else plan.never_applied
    return drift.alone(
        plan.drift, paint, is_partial=plan.is_forbidden, without_state=without_state, count=len(plan.goals)
    )


def _no_changes(plan: Plan) -> str:
    if errors_in(plan.diagnostics):
        return "No changes."  # the errors describe what exists
    is_desired = any(goal.deployment is not None for goal in plan.goals)
    unverified = [goal.name for goal in plan.goals if goal.to_verify]
    if is_desired and all(goal.is_removal for goal in plan.goals):
        return "No changes."  # each of them has ended, as a line of its own says
    if unverified:
        names = ", ".join(unverified)
        return (
            f"No changes. The engine of {names} did not run with its profile's settings when it was last verified.\n"
            "An apply verifies it again, and exits with 13 until it does; `tpudeploy verify` shows each setting."
        )
    return (
        f"No changes. {'The running deployment matches the profile.' if is_desired else 'There is nothing to destroy.'}"
    )


def summary(changes: Iterable[Change]) -> str:
    """Return `Plan: 1 to add, 0 to change, 0 to destroy.` A replacement counts as one to add and one to destroy."""
    actions = [c.action for c in changes]
    additions = sum(a in {Action.CREATE, Action.REPLACE} for a in actions)
    removals = sum(a in {Action.DESTROY, Action.REPLACE} for a in actions)
    restarts = actions.count(Action.RESTART)
    restarts_text = f", {restarts} to restart" if restarts else ""
    return f"Plan: {additions} to add, {actions.count(Action.UPDATE)} to change{restarts_text}, {removals} to destroy."


def _router(goal: Goal, *, is_named: bool) -> str:
    """Return the line about the router of a deployment that changes, and about what changes of it; "" without one."""
    router = goal.router
    if router is None or goal.errors or all(change.action is Action.NO_OP for change in goal.changes):
        return ""
    label = f"Router of {goal.name}" if is_named else "Router"
    before, after = router.before, router.after
    if after is None:
        last = "deleted with its replicas" if goal.deployment is None else "removed; clients use a replica's address"
        return f"{label}: {_router_place(before or {})}, {last}."
    return (
        f"{label}: {_router_place(after)}, {words.plural(router.replicas, 'replica')} behind it{_difference(router)}."
        f"{_interruption(router)}"
    )


def _scale(goal: Goal, *, is_named: bool) -> str:
    """Return the line about the bounds of a deployment that may be scaled, or ""."""
    scale = goal.scale
    if scale is None or goal.errors or all(change.action is Action.NO_OP for change in goal.changes):
        return ""
    label = f"Scale of {goal.name}" if is_named else "Scale"
    cost = words.ceiling(scale.ceiling) + (" at list price" if scale.ceiling.is_known else "")
    number = "to begin with" if _start_before_scaling(goal) is None else "now by their load"
    return (
        f"{label}: {scale.min} to {scale.max} replicas, {scale.replicas} {number}, {cost}. `apply -watch` adds "
        "and removes replicas between these bounds without another approval."
    )


def _ended(goals: Iterable[Goal]) -> Iterator[str]:
    """Yield a line for each deployment that has ended, with how to start it again."""
    for goal in goals:
        ended = None if goal.deployment is None else goal.deployment.ended
        if ended is not None and not goal.errors:
            changed = "" if ended.until is not None else " So does a change of its profile."
            yield f"{words.past_end(goal.name, ended)}{changed}"


def _scaled_numbers(goals: Iterable[Goal]) -> Iterator[str]:
    """Yield a line for each deployment whose load has changed the number of replicas that its profile says."""
    for goal in goals:
        start = _start_before_scaling(goal)
        if start is not None and goal.scale is not None:
            yield (
                f"{goal.name} has {words.plural(goal.scale.replicas, 'replica')} by their load. replicas: {start} was"
                " applied before, as the number to begin with; another number is applied again."
            )


def _start_before_scaling(goal: Goal) -> int | None:
    """Return the number of replicas that the profile says, if their load has changed it since; else None."""
    bounds = None if goal.deployment is None else goal.deployment.scale
    if goal.scale is None or bounds is None or bounds.start == goal.scale.replicas:
        return None
    return bounds.start


def _router_place(keys: Mapping[str, Json]) -> str:
    if keys["host"] == RouterHost.VM:
        return f"{keys['kind']} on a VM ({keys['machine']}), at its port {keys['port']}"
    return f"{keys['kind']} at http://{keys['address']}:{keys['port']}"


def _difference(router: RouterPlan) -> str:
    """Return what changes of the router, in parentheses."""
    before, after = router.before or {}, router.after or {}
    if not before:
        return " (new)"
    keys = [key for key in dict.fromkeys((*before, *after)) if before.get(key) != after.get(key)]
    texts = [f"{key} {words.value(before.get(key))} -> {words.value(after.get(key))}" for key in keys]
    return f" ({', '.join(texts)})" if texts else ""


def _interruption(router: RouterPlan) -> str:
    """Return the sentence about requests that arrive while a router of this machine changes; "" without one."""
    before, after = router.before or {}, router.after or {}
    if before.get("host") != "local" or after.get("host") != "local":
        return ""
    if any(before.get(key) != after.get(key) for key in ("address", "port")):
        return " Its previous address answers for another minute."
    is_same_kind = before.get("kind") == after.get("kind")
    # A reload hands the port of HAProxy over.
    if is_same_kind and (after.get("kind") == "haproxy" or before.get("policy") == after.get("policy")):
        return ""
    return " It does not answer for some seconds while it is started again."


def symbol(change: Change) -> str:
    if change.action is Action.REPLACE:
        return "+/-" if change.create_before_destroy else "-/+"
    return _SYMBOLS[change.action]


def _unfinished_runs(goals: Iterable[Goal]) -> Iterator[str]:
    for goal in goals:
        if goal.resumes:
            command = "destroy" if goal.deployment is None else "apply"
            yield f"An earlier run for {goal.name} did not finish; `tpudeploy {command}` completes it."


def visible_fields(change: Change) -> list[FieldChange]:
    """Return the attributes of a change to show. A new slice shows those that are written or pinned, no defaults.

    Of a router's VM, few of whose attributes are written, it shows all that are its own.
    """
    if change.action is not Action.CREATE:
        return list(change.fields)
    return [f for f in change.fields if f.origin is not None or f.path in FOLLOWS or f.path.startswith("vm.")]


def _change(effects: ChangeEffects, paint: Paint, *, is_narrow: bool) -> Iterator[str]:
    change = effects.change
    mark = symbol(change)
    yield f"  # {paint.bold(change.address)} {_verb(change)}"
    if change.reason not in {Reason.NONE, Reason.REQUESTED}:
        yield f"  # ({change.reason})"
    slice_text = f" = {change.slice_name} ({change.zone})" if change.slice_name else ""
    yield f"{_coloured(mark.rjust(3), paint)} {change.address}{slice_text}"
    # What decides comes before what it is made of.
    yield from (paint.dim(f"        # {line}") for line in costs(effects))
    visible = visible_fields(change)
    if change.action is Action.DESTROY:
        visible = [f for f in change.fields if f.path in _IDENTIFYING]
    width = 0 if is_narrow else max((len(f.path) for f in visible), default=0)
    for field in visible:
        yield _field(field, change, width, paint)
    hidden = change.unchanged or len(change.fields) - len(visible)
    if hidden:
        yield paint.dim(f"        # ({words.plural(hidden, _hidden_noun(change))} hidden)")


def _verb(change: Change) -> str:
    if change.reason is Reason.REQUESTED:
        return f"will be replaced, {change.reason}"
    if change.reason is Reason.ADOPTED and change.action is Action.UPDATE and not change.fields:
        return "will be adopted unchanged"
    if change.hands_over:
        return "will be handed over to another slice"
    if change.action is Action.RESTART and change.replicas_serving:
        return "will be restarted in place: the slice is kept, and the other replicas serve until the server is back"
    return "will be completed" if _is_resumed(change) else _VERBS[change.action]


def _is_resumed(change: Change) -> bool:
    """Return whether an earlier run already created a part of it."""
    return change.action is Action.CREATE and bool(change.slice_name)


def _hidden_noun(change: Change) -> str:
    if change.action is Action.DESTROY or _is_resumed(change):
        return "attribute"
    return "default" if change.action is Action.CREATE else "unchanged attribute"


_IDENTIFYING = {"model.id", "tpu.type", "serving.image", "vm.router", "vm.machine"}


def _field(field: FieldChange, change: Change, width: int, paint: Paint) -> str:
    place = "" if field.origin is None else paint.dim(f"  ({field.origin.file}:{field.origin.line})")
    name = field.path.ljust(width)
    if change.action is Action.CREATE:
        return f"      {paint.green('+')} {name} = {words.value(field.after)}{place}"
    if change.action is Action.DESTROY:
        return f"      {paint.red('-')} {name} = {words.value(field.before)}"
    after = words.value(field.after)
    # A value that tpudeploy did not apply is said to be live.
    live = f" (live; applied: {words.value(field.applied)})" if field.is_drift else ""
    if field.before is None:
        mark, values = paint.green("+"), after
    else:
        mark = paint.yellow("~") if field.after is not None else paint.red("-")
        values = f"{words.value(field.before)}{live} -> {after}"
    return f"      {mark} {name} = {values}{_why(field, change, paint)}{place}"


def _why(field: FieldChange, change: Change, paint: Paint) -> str:
    """Return a note on what a change of this attribute requires, if it decides the action of the whole change."""
    match change.action, field.effect:
        case Action.REPLACE, Effect.REPLACE:
            return paint.red(" # forces replacement")
        case Action.RESTART, Effect.RESTART:
            return paint.yellow(" # needs a restart")
        case Action.REPLACE, Effect.RESTART if change.hands_over:
            return paint.yellow(" # needs another server")
    return ""


def costs(effects: ChangeEffects) -> Iterator[str]:
    """Yield what a change costs, how long it takes, and when its slice ends: for the plan's text and its approval."""
    change = effects.change
    before, after = change.usd_per_hour_before, change.usd_per_hour_after
    most = _most(change)
    if change.action is Action.CREATE and after is not None:
        yield f"about {words.hourly(after)}{most} at list price once granted; free while it waits"
    elif change.action is Action.CREATE and change.ceiling.prices:
        yield f"price unknown{most} once granted; free while it waits"
    elif change.action is Action.REPLACE and before is not None and after is not None:
        yield f"about {words.hourly(before)} -> {words.hourly(after)}{most} at list price"
    elif change.action is Action.DESTROY and before is not None:
        yield f"about {words.hourly(before)} at list price is saved"
    yield from (*_places(change), *_billing_ceiling(change), *_handover(change), *_estimates(change))
    if change.max_run_seconds is not None:
        yield f"Google deletes the machine {words.duration(change.max_run_seconds)} after the grant"
    yield from _end(change)
    yield from _higher_cost(effects)


def _higher_cost(effects: ChangeEffects) -> Iterator[str]:
    """Yield by which keys it may cost more than before, and how much."""
    if not effects.loosens:
        return
    usd = effects.usd_per_hour
    price = "at an unknown price" if usd is None else f"{words.hourly(usd)}, {words.daily(usd)} at list price"
    end = "nothing ends it" if effects.seconds == inf else f"up to {words.duration(effects.seconds)} until its end"
    most = "" if effects.usd == inf else f", ${effects.usd:.2f}"
    yield f"it may cost more than before ({', '.join(effects.loosens)}): {price}; {end}{most}"


_BY_MACHINE = "its machine deletes it, if its service account may; else the next `apply`"


def _end(change: Change) -> Iterator[str]:
    """Yield when a new slice ends, what it costs until then, and who ends it; or that nothing does."""
    if change.action is not Action.CREATE or change.replica == ROUTER:
        return
    end, idle, hours = (change.after.get(f"lifecycle.{key}") for key in ("end", "idle", "hours"))
    usd = change.usd_per_hour_after
    if end is idle is hours is None and change.max_run_seconds is None:
        price = "" if usd is None else f"; {words.daily(usd)} at list price"
        yield f"it has no end: only `tpudeploy destroy` stops it{price} (lifecycle.end)"
    if end is not None:
        when = f"at {end}" if _is_moment(end) else f"{end} after it first serves"
        price = "" if usd is None else f", {words.daily(usd)} until then"
        yield f"it ends {when}{price}: {_BY_MACHINE}"
    if idle is not None:
        yield _idle_end(change, str(idle), has_hours=hours is not None)
    if hours is not None:
        yield f"it runs {hours}: at their end, {_BY_MACHINE}"
        yield from _month_of_hours(str(hours), change.usd_per_hour_most or usd, change.after.get("budget.month"))
        yield "in its hours, `apply -watch` or a scheduled `apply` starts it again; nothing else does"


def _idle_end(change: Change, idle: str, *, has_hours: bool) -> str:
    until = ", until its hours begin again" if has_hours else ""
    if change.sees_all_requests:
        return f"it ends after {idle} without a request{until}: {_BY_MACHINE}"
    # A machine of several sees a part of the requests.
    by_runs = "by the next `apply`, or by `apply -watch` while that runs; nothing else does"
    return f"it ends once no replica had a request for {idle}{until}: {by_runs}"


def _month_of_hours(text: str, usd_per_hour: float | None, budget: Json) -> Iterator[str]:
    """Yield what a slice costs at most in a month of its hours, and that a budget does not last for one."""
    if usd_per_hour is None:
        return
    usd = usd_per_hour * Hours.parse(text).most_seconds_a_month / _HOUR
    yield f"in these hours, at most ${usd:.2f} a month at list price"
    if isinstance(budget, int | float) and budget < usd:
        yield f"budget.month: {budget:g} ends that earlier: then nothing is requested until the next month (UTC)"


def _is_moment(end: Json) -> bool:
    return ":" in str(end)


def _most(change: Change) -> str:
    """Return the price of the dearest place in parentheses, and how many places have no known price; "" for one."""
    ceiling, most = change.ceiling, change.usd_per_hour_most
    is_same = most in {None, change.usd_per_hour_after}
    if ceiling.unknown_prices:
        unknown = f"{ceiling.unknown_prices} of {words.plural(ceiling.prices, 'price')} unknown"
        return f" ({unknown})" if is_same else f" (up to {words.hourly(most)} or more; {unknown})"
    return "" if is_same else f" (at most {words.hourly(most)})"


def total(plan: Plan) -> list[str]:
    """Return the line about what the whole plan may cost at one time, unless its only change says the same."""
    is_said = len(plan.changes) == 1 and not any(goal.scale for goal in plan.goals)
    if is_said or plan.mode is not Mode.NORMAL or not plan.ceiling.prices:
        return []
    return [f"{words.billed_at_once(plan.ceiling)} while this plan is applied, at list price."]


def _places(change: Change) -> Iterator[str]:
    """Yield the APIs that are asked, and where, for a slice that may come from several of them."""
    if not change.places:
        return
    zones: dict[str, dict[str, None]] = {}
    for candidate in change.places:
        zones.setdefault(candidate.provisioning, {})[candidate.zone] = None
    backends = " and ".join(dict.fromkeys(candidate.backend for candidate in change.places))
    models = "; ".join(f"{model} in {words.some(names)}" for model, names in zones.items())
    yield f"requested from {backends}: {models}"


def _billing_ceiling(change: Change) -> Iterator[str]:
    """Return the maximum that may be billed at one time, and for how long."""
    if change.slices_at_once <= 1 or change.seconds_at_once is None:
        return
    first, most = change.slices_at_first, change.slices_at_once
    count = f"up to {most} slices may be billed at once"
    if first < most:
        count = f"up to {first} slices may be billed at once, up to {most} after refusals"
    unknown = change.ceiling.unknown_prices
    has_last_resorts = 0 < unknown < change.ceiling.prices and change.after.get("placement.zones") == "any"
    most_usd = replace(change.ceiling, unknown_prices=0) if has_last_resorts else change.ceiling
    yield f"{count} ({words.ceiling(most_usd)}) if requests are granted together;"
    yield f"the others are deleted within {words.duration(change.seconds_at_once)}"
    if has_last_resorts:
        places = words.plural(unknown, "place")
        yield f"{places} without a known price, only if no other is left: it may cost more there"


def _handover(change: Change) -> Iterator[str]:
    """Return how long both slices are billed, when the old run ends, and whether prevent_destroy applies."""
    if not change.hands_over:
        return
    before, after, start = change.usd_per_hour_before, change.usd_per_hour_after, change.start_seconds_after
    cost = "" if before is None or after is None else f", about {words.hourly(before + after)}"
    takes = "its start" if start is None else f"its start, about {words.minutes(start)},"
    yield f"both are billed{cost}, from the grant of the new one: for {takes} and until the old one is drained"
    if change.run_ends_at is not None:
        yield f"its run ends at {words.moment(change.run_ends_at)}, even if the successor does not serve by then"
    if change.after.get("lifecycle.prevent_destroy"):
        yield "prevent_destroy does not prevent this: the old slice is deleted only after the new one serves"


def _estimates(change: Change) -> Iterator[str]:
    """Return how long it does not serve, and how KV cache and cold start change."""
    if change.waits:
        yield f"it waits {change.waits}"
    least, most = change.downtime_seconds_least, change.downtime_seconds_most
    if change.replicas_serving:
        yield from _drain(change)
    elif least is not None and most is not None:
        yield f"down for about {words.span(least, most)} while the server restarts"
    elif change.action is Action.REPLACE and not change.create_before_destroy:
        start_seconds = change.start_seconds_after
        start_text = "its start" if start_seconds is None else f"a start of about {words.minutes(start_seconds)}"
        yield f"down from the deletion of the old slice: for the wait for chips and {start_text}"
    tokens, start_before, start_after = _tokens(change), change.start_seconds_before, change.start_seconds_after
    starts = ""
    if start_before is not None and start_after is not None and round(start_before / 60) != round(start_after / 60):
        starts = f"cold start about {words.minutes(start_before)} -> {words.minutes(start_after)}"
    if tokens or starts:
        yield "; ".join(part for part in (tokens, starts) if part)


def _drain(change: Change) -> Iterator[str]:
    """Return what happens to the requests of a replica that is interrupted while others serve."""
    others = "another replica serves" if change.replicas_serving == 1 else f"{change.replicas_serving} others serve"
    limit = "" if change.drain_seconds_most is None else f", for at most {words.duration(change.drain_seconds_most)}"
    yield f"it stops taking new requests and completes in-flight ones{limit}; {others} meanwhile"
    least, most = change.downtime_seconds_least, change.downtime_seconds_most
    if change.action is Action.DESTROY:
        return
    if least is not None and most is not None:
        yield f"then its server restarts within about {words.span(least, most)}"
    most_absent = change.after.get("lifecycle.max_unavailable", 1)
    yield f"replicas out of service at one time: at most {words.value(most_absent)} (lifecycle.max_unavailable)"


def _tokens(change: Change) -> str:
    before, after = change.kv_tokens_before, change.kv_tokens_after
    if before is None or after is None or before == after:
        return ""
    return f"KV cache {before:,} -> {after:,} tokens"


def _coloured(mark: str, paint: Paint) -> str:
    bare = mark.strip()
    if bare == "+":
        return paint.green(mark)
    return paint.red(mark) if bare in {"-", "-/+"} else paint.yellow(mark)
