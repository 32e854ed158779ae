"""A plan as people read it: Terraform's manners, with the line that caused each change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tpudeploy.domain.diagnostics import errors_in
from tpudeploy.domain.plan import Action, Change, Effect, FieldChange, Goal, Mode, Plan, Reason
from tpudeploy.views import drift, words
from tpudeploy.views.paint import Paint

_SYMBOLS = {Action.CREATE: "+", Action.UPDATE: "~", Action.RESTART: "↻", Action.DESTROY: "-"}
_MEANING = {
    "+": "create",
    "~": "update in place",
    "↻": "restart the server, keep the chips",
    "-": "destroy",
    "-/+": "destroy and then create replacement",
    "+/-": "create replacement and then destroy",
}
_WILL = {
    Action.CREATE: "will be created",
    Action.UPDATE: "will be updated in place",
    Action.RESTART: "will be restarted in place: the chips stay, nothing serves meanwhile",
    Action.REPLACE: "must be replaced",
    Action.DESTROY: "will be destroyed",
}


def plan(of: Plan, paint: Paint) -> str:
    """The whole plan, ending with Terraform's summary line."""
    if of.mode is Mode.REFRESH_ONLY:
        return drift.alone(of.drift, paint, is_partial=of.is_forbidden)
    shown = [c for c in of.changes if c.action is not Action.NO_OP]
    if not shown:
        return "\n".join([_nothing(of), *_pending(of.goals)])
    symbols = dict.fromkeys(symbol(c) for c in shown)
    legend = [f"  {_coloured(s, paint)} {_MEANING[s]}" for s in symbols]
    blocks = ["\n".join(_change(c, paint)) for c in shown]
    head = ["Actions are indicated with the following symbols:", *legend, "", "tpudeploy will perform these actions:"]
    touched = {c.address for c in shown}
    outside = [d for d in of.drift if d.address in touched]
    note = [drift.section(outside, paint), ""] if outside else []
    return "\n".join([*note, *head, "", "\n\n".join(blocks), "", paint.bold(summary(shown))])


def _nothing(of: Plan) -> str:
    if errors_in(of.diagnostics):
        return "No changes."  # the errors say what is there
    wanted = any(goal.deployment is not None for goal in of.goals)
    unverified = [goal.name for goal in of.goals if goal.to_verify]
    if unverified:
        names = ", ".join(unverified)
        return f"No changes. The engine of {names} did not do what its profile says when it was last verified."
    return f"No changes. {'What runs is what the profile says.' if wanted else 'There is nothing to destroy.'}"


def summary(changes: Iterable[Change]) -> str:
    """`Plan: 1 to add, 0 to change, 0 to destroy.`; a replace counts in both."""
    actions = [c.action for c in changes]
    add = sum(a in {Action.CREATE, Action.REPLACE} for a in actions)
    destroy = sum(a in {Action.DESTROY, Action.REPLACE} for a in actions)
    restart = actions.count(Action.RESTART)
    restarts = f", {restart} to restart" if restart else ""
    return f"Plan: {add} to add, {actions.count(Action.UPDATE)} to change{restarts}, {destroy} to destroy."


def symbol(change: Change) -> str:
    if change.action is Action.REPLACE:
        return "+/-" if change.create_before_destroy else "-/+"
    return _SYMBOLS[change.action]


def _pending(goals: Iterable[Goal]) -> Iterator[str]:
    for goal in goals:
        if goal.resumes:
            command = "destroy" if goal.deployment is None else "apply"
            yield f"An earlier run for {goal.name} did not reach its end; `tpudeploy {command}` finishes it."


def _change(change: Change, paint: Paint) -> Iterator[str]:
    mark = symbol(change)
    yield f"  # {paint.bold(change.address)} {_will(change)}"
    if change.reason not in {Reason.NONE, Reason.REQUESTED}:
        yield f"  # ({change.reason})"
    yield f"{_coloured(mark.rjust(3), paint)} {change.address}{_where(change)}"
    written = words.told(change)
    if change.action is Action.DESTROY:
        written = [f for f in change.fields if f.path in _TELLING]
    width = max((len(f.path) for f in written), default=0)
    for field in written:
        yield _field(field, change, width, paint)
    hidden = change.unchanged or len(change.fields) - len(written)
    if hidden:
        yield paint.dim(f"        # ({hidden} {_hidden(change)}{'s' if hidden > 1 else ''} hidden)")
    yield from _cost(change, paint)


def _will(change: Change) -> str:
    if change.reason is Reason.REQUESTED:
        return f"will be replaced, {change.reason}"
    if change.reason is Reason.ADOPTED and change.action is Action.UPDATE and not change.fields:
        return "will be adopted as it stands"
    if change.hands_over:
        return "will be handed over to another slice"
    return "will be completed" if _goes_on(change) else _WILL[change.action]


def _goes_on(change: Change) -> bool:
    """Whether an earlier run has made a part of it."""
    return change.action is Action.CREATE and bool(change.slice_name)


def _hidden(change: Change) -> str:
    if change.action is Action.DESTROY or _goes_on(change):
        return "attribute"
    return "default" if change.action is Action.CREATE else "unchanged attribute"


_TELLING = {"model.id", "tpu.type", "serving.image"}


def _where(change: Change) -> str:
    return f" = {change.slice_name} ({change.zone})" if change.slice_name else ""


def _field(field: FieldChange, change: Change, width: int, paint: Paint) -> str:
    place = "" if field.origin is None else paint.dim(f"  ({field.origin.file}:{field.origin.line})")
    name = field.path.ljust(width)
    if change.action is Action.CREATE:
        return f"      {paint.green('+')} {name} = {words.value(field.after)}{place}"
    if change.action is Action.DESTROY:
        return f"      {paint.red('-')} {name} = {words.value(field.before)}"
    after = words.value(field.after)
    if field.before is None:
        mark, values = paint.green("+"), after
    else:
        mark = paint.yellow("~") if field.after is not None else paint.red("-")
        values = f"{words.value(field.before)}{_outside(field)} -> {after}"
    return f"      {mark} {name} = {values}{_why(field, change, paint)}{place}"


def _outside(field: FieldChange) -> str:
    """Where the value before is none that was applied here."""
    return f" (live; applied: {words.value(field.applied)})" if field.is_drift else ""


def _why(field: FieldChange, change: Change, paint: Paint) -> str:
    """What this one attribute costs, where it is what the whole change costs."""
    match change.action, field.effect:
        case Action.REPLACE, Effect.REPLACE:
            return paint.red(" # forces replacement")
        case Action.RESTART, Effect.RESTART:
            return paint.yellow(" # needs a restart")
        case Action.REPLACE, Effect.RESTART if change.hands_over:
            return paint.yellow(" # needs another server")
    return ""


def _cost(change: Change, paint: Paint) -> Iterator[str]:
    before, after = change.usd_per_hour_before, change.usd_per_hour_after
    most = "" if change.usd_per_hour_most in {None, after} else f" (at most {words.hourly(change.usd_per_hour_most)})"
    if change.action is Action.CREATE and after is not None:
        yield paint.dim(
            f"        # about {words.hourly(after)}{most} at list price once granted; nothing while it waits"
        )
    elif change.action is Action.REPLACE and before is not None and after is not None:
        yield paint.dim(f"        # about {words.hourly(before)} -> {words.hourly(after)}{most} at list price")
    elif change.action is Action.DESTROY and before is not None:
        yield paint.dim(f"        # about {words.hourly(before)} at list price is saved")
    yield from (paint.dim(f"        # {line}") for line in (*_at_once(change), *_handed_over(change), *_deltas(change)))
    if change.max_run_seconds is not None:
        yield paint.dim(
            f"        # {words.duration(change.max_run_seconds)} after the grant Google deletes the machine"
        )


def _at_once(change: Change) -> Iterator[str]:
    """The ceiling of what may be billed at one time, and for how long."""
    if change.slices_at_once <= 1 or change.seconds_at_once is None:
        return
    usd = change.usd_per_hour_at_once
    cost = "at prices that are not all known" if usd is None else f"at most {words.hourly(usd)}"
    yield f"up to {change.slices_at_once} slices may be billed at one time ({cost}): requests may be granted together;"
    yield f"the next look deletes what is not needed, and it is gone within {words.duration(change.seconds_at_once)}"


def _handed_over(change: Change) -> Iterator[str]:
    """For how long two are paid for, until when there is time, and what does not stop it."""
    if not change.hands_over:
        return
    before, after, start = change.usd_per_hour_before, change.usd_per_hour_after, change.start_seconds_after
    cost = "" if before is None or after is None else f", about {words.hourly(before + after)}"
    takes = "its start" if start is None else f"its start, about {words.minutes(start)},"
    yield f"both are billed{cost}, from the grant of the new one: for {takes} and until the old one is drained"
    if change.run_ends_at is not None:
        yield f"its run ends at {words.moment(change.run_ends_at)}, whatever has become of the successor"
    if change.after.get("lifecycle.prevent_destroy"):
        yield "prevent_destroy does not stop it: this slice goes only once the other one serves"


def _deltas(change: Change) -> Iterator[str]:
    """How long nothing serves, and what memory and start become."""
    least, most = change.downtime_seconds_least, change.downtime_seconds_most
    if least is not None and most is not None:
        yield f"nothing serves for about {words.span(least, most)}: the old server ends, the new one starts"
    elif change.action is Action.REPLACE and not change.create_before_destroy:
        after = change.start_seconds_after
        start = "its start" if after is None else f"a start of about {words.minutes(after)}"
        yield f"nothing serves from the end of the old slice on: for the wait for chips, and {start}"
    tokens, start_before, start_after = _tokens(change), change.start_seconds_before, change.start_seconds_after
    starts = ""
    if start_before is not None and start_after is not None and round(start_before / 60) != round(start_after / 60):
        starts = f"cold start about {words.minutes(start_before)} -> {words.minutes(start_after)}"
    if tokens or starts:
        yield "; ".join(part for part in (tokens, starts) if part)


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
