"""A plan as a comment on a pull request: what would happen in a table, the rest folded away, within GitHub's limit."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from tpudeploy.core.revision import Holding, Revision
from tpudeploy.domain.deployment import Json
from tpudeploy.domain.diagnostics import Diagnostic, Severity
from tpudeploy.domain.plan import Action, Change, Drift, Effect, FieldChange, Goal, Plan, Reason
from tpudeploy.version import VERSION
from tpudeploy.views import words
from tpudeploy.views.fenced import code, details, fence, prose
from tpudeploy.views.fitted import Fitted, Part, fitted
from tpudeploy.views.plan import summary, symbol
from tpudeploy.views.words import plain

# GitHub refuses a body of more than 65,536 characters, with 422; room is left for the marker and for others' words.
COMMENT_BYTES = 60_000
# A step's summary of more than a mebibyte is not shown; others may have written into it before.
SUMMARY_BYTES = 1_000_000

_CUT = (
    "> [!CAUTION]\n> Cut short, so this approves nothing. All of it is in the files of the run, and more on its page."
)

_WILL: Mapping[Action, str] = {
    Action.CREATE: "create",
    Action.UPDATE: "update in place",
    Action.RESTART: "restart in place",
    Action.REPLACE: "replace",
    Action.DESTROY: "destroy",
}


def plan(
    of: Plan,
    revisions: Mapping[str, Revision],
    *,
    orphans: Iterable[str],
    whole: str,
    ending: str,
    run_url: str,
    limit: int,
) -> Fitted:
    """`orphans` are deployments with a state and without a profile; `whole` is the plan's fingerprint.

    `ending` is the last line: what merging does. Where the text is cut, its notice is the only one that says that.
    """
    shown = [c for c in of.changes if c.action is not Action.NO_OP]
    about = summary(shown).removeprefix("Plan: ").rstrip(".") if shown else "no changes"
    head = f"### tpudeploy plan · {about}{_money(shown)}"
    notes = "\n".join([*_checks(of.diagnostics), *map(_orphan, orphans), *_pending(of.goals)])
    parts = [Part(text=head), *changes(of, revisions), Part(text=notes)]
    fingerprint = whole if shown else ""
    complete = fitted([*parts, Part(text=_foot(fingerprint, run_url, ending if shown else ""))], limit, notice=_CUT)
    if complete.is_whole:
        return complete
    return fitted([*parts, Part(text=_foot(fingerprint, run_url))], limit, notice=_CUT)


def changes(of: Plan, revisions: Mapping[str, Revision] | None = None) -> list[Part]:
    """What a plan would do, from the table to the differences."""
    sides = revisions or {}
    shown = [c for c in of.changes if c.action is not Action.NO_OP]
    table = _table([_row(c, sides.get(c.deployment)) for c in shown])
    sections = (part for goal in of.goals for part in _sections(goal, sides.get(goal.name)))
    return [Part(text=_warning(shown, sides)), Part(text=table), *sections]


def failure(message: str, hint: str, diagnostics: Sequence[Diagnostic], *, run_url: str, limit: int) -> Fitted:
    """No plan, and why."""
    head = "### tpudeploy plan · none could be made"
    why = [prose(line) for line in (message, *hint.splitlines())]
    checks = "\n".join(_checks(diagnostics)) if diagnostics else ""
    return fitted([Part(text=t) for t in (head, "\\\n".join(why), checks, _foot("", run_url))], limit)


def _money(shown: Iterable[Change]) -> str:
    known = list(shown)
    if not known:
        return ""
    before, after = (sum(usd or 0.0 for usd in side) for side in zip(*map(_prices, known), strict=True))
    more = any(c.usd_per_hour_after is None and c.action is not Action.DESTROY for c in known)
    unknown = " and what has no known price" if more else ""
    return f" · {words.hourly(before)} → **{words.hourly(after)}**{unknown}{_ceiling(known, after)}"


def _ceiling(shown: Sequence[Change], after: float) -> str:
    """What may be billed at one time while slices are acquired: more requests may be granted than are kept."""
    together = [c for c in shown if c.slices_at_once > 1]
    if any(c.usd_per_hour_at_once is None for c in together):
        return "; more at one time while slices are acquired, at prices that are not all known"
    most = after + sum((c.usd_per_hour_at_once or 0.0) - (c.usd_per_hour_after or 0.0) for c in together)
    seconds = max((c.seconds_at_once or 0.0 for c in together), default=0.0)
    return f", at most **{words.hourly(most)}** at one time, for up to {words.duration(seconds)}" if together else ""


def _prices(change: Change) -> tuple[float | None, float | None]:
    return change.usd_per_hour_before, change.usd_per_hour_after


def _warning(shown: Iterable[Change], sides: Mapping[str, Revision]) -> str:
    lines = [
        f"> {_threat(c, sides.get(c.deployment))}"
        for c in shown
        if c.action in {Action.REPLACE, Action.RESTART, Action.DESTROY}
    ]
    return "\n".join(["> [!WARNING]", *(f"{line}\\" for line in lines[:-1]), *lines[-1:]]) if lines else ""


def _threat(change: Change, of: Revision | None) -> str:
    name = code(change.address)
    start = None if of is None else _start(of.after)
    down = "meanwhile" if start is None else f"for about {words.duration(start)}"
    match change.action:
        case Action.REPLACE if change.hands_over:
            return f"{name} is handed over: the new slice serves, and the old one is drained, before that one goes."
        case Action.REPLACE if change.create_before_destroy:
            return f"{name} is replaced: the new slice serves before the old one goes."
        case Action.REPLACE:
            return f"{name} is destroyed before its replacement is asked for: nothing serves until that is granted."
        case Action.RESTART:
            return f"{name} is restarted: the chips stay, nothing serves {down}."
    return f"{name} is destroyed. There is no undo."


def _table(rows: list[str]) -> str:
    if not rows:
        return ""
    head = "| | replica | what | why | price | KV cache | cold start |"
    return "\n".join([head, "|---|---|---|---|---|---|---|", *rows])


def _row(change: Change, of: Revision | None) -> str:
    before, after = (of.before, of.after) if of is not None else (None, None)
    if change.action in {Action.CREATE, Action.DESTROY}:
        before, after = (None, after) if change.action is Action.CREATE else (before, None)
    cells = [
        code(symbol(change)),
        code(change.address),
        _WILL[change.action],
        _why(change),
        _moved(change.usd_per_hour_before, change.usd_per_hour_after, words.hourly),
        _moved(_kv(before), _kv(after), lambda tokens: f"{tokens:,.0f} tokens"),
        _moved(_start(before), _start(after), words.duration),
    ]
    return f"| {' | '.join(cells)} |"


def _kv(of: Holding | None) -> float | None:
    return None if of is None else of.kv_cache_tokens


def _start(of: Holding | None) -> float | None:
    return None if of is None else of.start_seconds


def _moved(before: float | None, after: float | None, told: Callable[[float], str]) -> str:
    if before is None or after is None or before == after:
        known = after if after is not None else before
        return "" if known is None else told(known)
    return f"{told(before)} → {told(after)}"


def _why(change: Change) -> str:
    """The attributes that cost what the whole change costs, with their lines; else the reason."""
    costs = {Action.REPLACE: Effect.REPLACE, Action.RESTART: Effect.RESTART, Action.UPDATE: Effect.COSMETIC}
    cost = Effect.RESTART if change.hands_over else costs.get(change.action)
    telling = [f for f in change.fields if f.effect is cost]
    named = [f"{code(f.path)}{_place(f)}" for f in telling]
    more = [f"and {len(named) - 2} more"] if len(named) > 2 else []  # noqa: PLR2004 - two fit a cell
    return "; ".join([*(prose(r) for r in (change.reason,) if r is not Reason.NONE), *named[:2], *more])


def _place(field: FieldChange) -> str:
    return "" if field.origin is None else f" ({code(f'{field.origin.file}:{field.origin.line}')})"


def _sections(goal: Goal, of: Revision | None) -> Iterator[Part]:
    if goal.drift:
        yield _part(goal.name, "changed outside of tpudeploy", [line for d in goal.drift for line in outside(d)])
    shown = [c for c in goal.changes if c.action is not Action.NO_OP]
    if shown:
        lines = [line for change in shown for line in difference(change)]
        yield _part(goal.name, "attributes", lines)
    if of is None or not shown:
        return
    if of.docker:
        yield _part(goal.name, "docker command", of.docker)
    if of.script:
        yield _part(goal.name, "startup script", of.script)
    if not of.is_compared and any(c.slice_name and c.fields for c in shown):
        yield Part(text=f"What {code(goal.name)} runs now cannot be rendered by this version, so that is not compared.")


def _part(name: str, what: str, lines: Iterable[str]) -> Part:
    body = details(f"<code>{name}</code>: {what}", fence(lines, "diff"))
    return Part(text=body, title=f"{name}, {what}", can_go=True)


def difference(change: Change) -> Iterator[str]:
    """GitHub colours a line of a diff by its first character: + green, - red, ! orange, @@ as a heading."""
    yield f"@@ {change.address}: {_WILL[change.action]} @@"
    written = words.told(change)
    width = max((len(f.path) for f in written), default=0)
    for field in written:
        yield _field(field, change, width)
    hidden = change.unchanged or len(change.fields) - len(written)
    if hidden:
        yield f"  # {hidden} {'defaults' if change.action is Action.CREATE else 'unchanged attributes'}"


def _value(of: Json) -> str:
    """Uncut, unlike on a terminal: what is approved is seen to its end."""
    return plain(json.dumps(of, ensure_ascii=False))


def outside(of: Drift) -> Iterator[str]:
    """What is live beside what was last applied."""
    detail = f", {plain(of.detail)}" if of.detail else ""
    yield f"@@ {of.address}: {of.kind}{detail} @@"
    for field in of.fields:
        yield f"! {field.path} = {_value(field.applied)} (applied) -> {_value(field.live)} (live)"


def _field(field: FieldChange, change: Change, width: int) -> str:
    name = field.path.ljust(width)
    at = "" if field.origin is None else f"  ({field.origin.file}:{field.origin.line})"
    if field.before is None:
        return f"+ {name} = {_value(field.after)}{at}"
    if field.after is None:
        return f"- {name} = {_value(field.before)}"
    forces = "  # forces replacement" if (change.action, field.effect) == (Action.REPLACE, Effect.REPLACE) else ""
    return f"! {name} = {_value(field.before)} -> {_value(field.after)}{forces}{at}"


def _checks(of: Sequence[Diagnostic]) -> Iterator[str]:
    if not of:
        yield "- All checks passed."
    for each in of:
        mark = "**Error:**" if each.severity is Severity.ERROR else "**Warning:**"
        at = "" if each.location is None else f" · {code(str(each.location))}"
        hint = f" {prose(each.hint)}" if each.hint else ""
        yield f"- {mark} {prose(each.message)}{hint} ({code(each.code)}{at})"


def _orphan(name: str) -> str:
    return (
        f"- **Note:** {code(name)} has a state, and none of these profiles is its own. That alone destroys nothing: "
        f"{code('tpudeploy destroy')}, with the profile as it was, does."
    )


def _pending(goals: Iterable[Goal]) -> Iterator[str]:
    for goal in goals:
        if goal.resumes:
            yield f"- **Note:** {code(goal.name)}: an earlier run did not reach its end; what it began stays approved."


def _foot(whole: str, run_url: str, ending: str = "") -> str:
    told = [f"fingerprint {code(whole)}"] if whole else []
    told += [f"[run]({run_url})"] if run_url else []
    line = " · ".join([*told, f"tpudeploy {VERSION}"])
    return f"{line}\\\n{ending}" if ending else line
