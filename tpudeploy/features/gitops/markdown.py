"""Format a plan as a pull request comment within GitHub's limit: a table of changes, with the details collapsed."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import isinf

from tpudeploy.domain.ceiling import Ceiling
from tpudeploy.domain.deployment import Json
from tpudeploy.domain.diagnostics import Diagnostic, Severity
from tpudeploy.domain.errors import TpudeployError
from tpudeploy.domain.plan import Action, Change, Effect, FieldChange, Goal, Plan, Reason, SliceDrift
from tpudeploy.features.gitops.comment import Fitted, Part, code, details, fence, fit, paragraph, prose
from tpudeploy.node.revision import Holding, Revision
from tpudeploy.reconcile.cost_wall import BudgetUse
from tpudeploy.text import words
from tpudeploy.text.words import plain
from tpudeploy.version import VERSION
from tpudeploy.views.plan import summary, symbol, visible_fields

# GitHub refuses a body of more than 65,536 characters with status 422. The rest is for the marker and other text.
COMMENT_BYTES = 60_000
# GitHub does not show a step summary of more than one mebibyte, and earlier steps may have written to it.
SUMMARY_BYTES = 1_000_000

_TRUNCATED = (
    "> [!CAUTION]\n> This comment is truncated, so it approves nothing. The run's artifacts hold the whole plan."
)

_VERBS: Mapping[Action, str] = {
    Action.CREATE: "create",
    Action.UPDATE: "update in place",
    Action.RESTART: "restart in place",
    Action.REPLACE: "replace",
    Action.DESTROY: "destroy",
}


def plan(
    plan: Plan,
    revisions: Mapping[str, Revision],
    *,
    orphans: Iterable[str],
    budgets: Iterable[BudgetUse] = (),
    whole: str,
    ending: str,
    run_url: str,
    limit: int,
) -> Fitted:
    """Return a plan as a comment. `orphans` are deployments with a state but no profile; `whole` is its fingerprint.

    `ending` is the last line, which says what merging does; a truncated text has only the notice instead.
    """
    pending = [c for c in plan.changes if c.action is not Action.NO_OP]
    outcome = summary(pending).removeprefix("Plan: ").rstrip(".") if pending else "no changes"
    head = f"### tpudeploy plan · {outcome}{_money(pending)}"
    notes = "\n".join(
        [
            *_checks(plan.diagnostics),
            *map(_budget_note, budgets),
            *map(_orphan_note, orphans),
            *_unfinished_runs(plan.goals),
        ]
    )
    parts = [Part(text=head), *changes(plan, revisions), Part(text=notes)]
    fingerprint = whole if pending else ""
    comment = fit(
        [*parts, Part(text=_footer(fingerprint, run_url, ending if pending else ""))], limit, notice=_TRUNCATED
    )
    if comment.is_whole:
        return comment
    return fit([*parts, Part(text=_footer(fingerprint, run_url))], limit, notice=_TRUNCATED)


def changes(plan: Plan, revisions: Mapping[str, Revision] | None = None) -> list[Part]:
    """Return the parts that describe a plan's changes, from the table to the diffs."""
    sides = revisions or {}
    pending = [c for c in plan.changes if c.action is not Action.NO_OP]
    table = _table([_row(c, sides.get(c.deployment)) for c in pending])
    sections = (part for goal in plan.goals for part in _sections(goal, sides.get(goal.name)))
    return [Part(text=_warning(pending, sides)), Part(text=table), *sections]


def failure(message: str, hint: str, diagnostics: Sequence[Diagnostic], *, run_url: str, limit: int) -> Fitted:
    """Return the comment for a plan that could not be made, with the error."""
    head = "### tpudeploy plan · failed"
    why = paragraph([message, *hint.splitlines()])
    checks = "\n".join(_checks(diagnostics)) if diagnostics else ""
    return fit([Part(text=t) for t in (head, why, checks, _footer("", run_url))], limit)


def _budget_note(use: BudgetUse) -> str:
    if isinf(use.period.usd):
        most = (
            "no end to what runs" if isinf(use.alive) else f"at most ${use.alive:.2f} more until the ends of what runs"
        )
        return f"- {use.period.label}: ${use.spent:.2f} spent, {most}; no budget"
    whose = f" of {code(use.deployment)}" if use.deployment else ""
    remainder = f"**${use.remainder:.2f} left**" if use.remainder >= 0 else f"**${-use.remainder:.2f} over**"
    return (
        f"- {code(use.period.key)}{whose}, {use.period.label}: ${use.spent:.2f} spent, at most ${use.alive:.2f} more"
        f" until the ends of what runs, {remainder} of ${use.period.usd:.2f}"
    )


def _money(changes: Iterable[Change]) -> str:
    priced = list(changes)
    if not priced:
        return ""
    before = sum(c.usd_per_hour_before or 0.0 for c in priced)
    after = sum(c.usd_per_hour_after or 0.0 for c in priced)
    has_unknown = any(c.usd_per_hour_after is None and c.action is not Action.DESTROY for c in priced)
    unknown = " and what has no known price" if has_unknown else ""
    return f" · {words.hourly(before)} → **{words.hourly(after)}**{unknown}{_ceiling(priced)}"


def _ceiling(changes: Sequence[Change]) -> str:
    """Return what may be billed at one time during acquisition: more requests may be granted than are kept."""
    together = [c for c in changes if c.slices_at_once > 1]
    if not together:
        return ""
    most = sum((c.ceiling for c in changes if c.action is not Action.DESTROY), Ceiling())
    seconds = max(c.seconds_at_once or 0.0 for c in together)
    usd = f"**{words.hourly(most.usd_per_hour)}**"
    cost = words.ceiling(most).replace(words.hourly(most.usd_per_hour), usd)
    return f", {cost} at one time, for up to {words.duration(seconds)}"


def _warning(changes: Iterable[Change], sides: Mapping[str, Revision]) -> str:
    lines = [
        f"> {_describe_downtime(c, sides.get(c.deployment))}"
        for c in changes
        if c.action in {Action.REPLACE, Action.RESTART, Action.DESTROY}
    ]
    return "\n".join(["> [!WARNING]", *(f"{line}\\" for line in lines[:-1]), *lines[-1:]]) if lines else ""


def _describe_downtime(change: Change, revision: Revision | None) -> str:
    name = code(change.address)
    start = None if revision is None else _start(revision.after)
    down = "meanwhile" if start is None else f"for about {words.duration(start)}"
    match change.action:
        case Action.REPLACE if change.hands_over:
            return f"{name} is handed over: the new slice serves, and the old one is drained, before that one goes."
        case Action.REPLACE if change.create_before_destroy:
            return f"{name} is replaced: the new slice serves before the old one goes."
        case Action.REPLACE if not change.replicas_serving:
            return f"{name} is destroyed before its replacement is asked for: nothing serves until that is granted."
        case _ if change.replicas_serving:
            deed = "restarted" if change.action is Action.RESTART else "deleted"
            return f"{name} takes no new requests and completes those that it has before it is {deed}; others serve."
        case Action.RESTART:
            return f"{name} is restarted: the chips stay, nothing serves {down}."
    return f"{name} is destroyed. There is no undo."


def _table(rows: list[str]) -> str:
    if not rows:
        return ""
    head = "| | replica | what | why | price | KV cache | cold start |"
    return "\n".join([head, "|---|---|---|---|---|---|---|", *rows])


def _row(change: Change, revision: Revision | None) -> str:
    before, after = (revision.before, revision.after) if revision is not None else (None, None)
    if change.action in {Action.CREATE, Action.DESTROY}:
        before, after = (None, after) if change.action is Action.CREATE else (before, None)
    cells = [
        code(symbol(change)),
        code(change.address),
        _VERBS[change.action],
        _why(change),
        _transition(change.usd_per_hour_before, change.usd_per_hour_after, words.hourly),
        _transition(_kv(before), _kv(after), lambda tokens: f"{tokens:,.0f} tokens"),
        _transition(_start(before), _start(after), words.duration),
    ]
    return f"| {' | '.join(cells)} |"


def _kv(holding: Holding | None) -> float | None:
    return None if holding is None else holding.kv_cache_tokens


def _start(holding: Holding | None) -> float | None:
    return None if holding is None else holding.start_seconds


def _transition(before: float | None, after: float | None, text: Callable[[float], str]) -> str:
    if before is None or after is None or before == after:
        value = after if after is not None else before
        return "" if value is None else text(value)
    return f"{text(before)} → {text(after)}"


def _why(change: Change) -> str:
    """Return the reason of a change, and the attributes that require its action, with their lines."""
    costs = {Action.REPLACE: Effect.REPLACE, Action.RESTART: Effect.RESTART, Action.UPDATE: Effect.COSMETIC}
    cost = Effect.RESTART if change.hands_over else costs.get(change.action)
    causes = [f"{code(field.path)}{_origin(field)}" for field in change.fields if field.effect is cost]
    reason = [] if change.reason is Reason.NONE else [prose(change.reason)]
    more = [f"and {len(causes) - 2} more"] if len(causes) > 2 else []  # noqa: PLR2004 - two fit a cell
    return "; ".join([*reason, *causes[:2], *more])


def _origin(field: FieldChange) -> str:
    return "" if field.origin is None else f" ({code(f'{field.origin.file}:{field.origin.line}')})"


def _sections(goal: Goal, revision: Revision | None) -> Iterator[Part]:
    if goal.drift:
        lines = itertools.chain.from_iterable(map(outside, goal.drift))
        yield _diff_part(goal.name, "changed outside of tpudeploy", lines)
    pending = [c for c in goal.changes if c.action is not Action.NO_OP]
    if not pending:
        return
    lines = itertools.chain.from_iterable(map(difference, pending))
    yield _diff_part(goal.name, "attributes", lines)
    if revision is not None:
        yield from _revision_sections(goal, revision, pending)


def _revision_sections(goal: Goal, revision: Revision, pending: Iterable[Change]) -> Iterator[Part]:
    if revision.docker:
        yield _diff_part(goal.name, "docker command", revision.docker)
    if revision.script:
        yield _diff_part(goal.name, "startup script", revision.script)
    if not revision.is_compared and any(c.slice_name and c.fields for c in pending):
        yield Part(text=f"This version cannot render what {code(goal.name)} runs now, so the diff omits it.")


def _diff_part(name: str, what: str, lines: Iterable[str]) -> Part:
    body = details(f"<code>{name}</code>: {what}", fence(lines, "diff"))
    return Part(text=body, title=f"{name}, {what}", can_go=True)


def difference(change: Change) -> Iterator[str]:
    """Yield a change as diff lines. GitHub colours by the first character: + green, - red, ! orange, @@ heading."""
    yield f"@@ {change.address}: {_VERBS[change.action]} @@"
    visible = visible_fields(change)
    width = max((len(f.path) for f in visible), default=0)
    for field in visible:
        yield _field(field, change, width)
    hidden = change.unchanged or len(change.fields) - len(visible)
    if hidden:
        yield f"  # {hidden} {'defaults' if change.action is Action.CREATE else 'unchanged attributes'}"


def _value(value: Json) -> str:
    """Return the whole value, unlike on a terminal, because an approver must see all of it."""
    return plain(json.dumps(value, ensure_ascii=False))


def outside(drift: SliceDrift) -> Iterator[str]:
    """Yield the live values beside those that were last applied."""
    detail = f", {plain(drift.detail)}" if drift.detail else ""
    yield f"@@ {drift.address}: {drift.kind}{detail} @@"
    for field in drift.fields:
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


def _checks(diagnostics: Sequence[Diagnostic]) -> Iterator[str]:
    if not diagnostics:
        yield "- All checks passed."
    for diagnostic in diagnostics:
        mark = "**Error:**" if diagnostic.severity is Severity.ERROR else "**Warning:**"
        at = "" if diagnostic.location is None else f" · {code(str(diagnostic.location))}"
        hint = f" {prose(diagnostic.hint)}" if diagnostic.hint else ""
        yield f"- {mark} {prose(diagnostic.message)}{hint} ({code(diagnostic.code)}{at})"


def _orphan_note(name: str) -> str:
    return (
        f"- **Note:** {code(name)} has a state, but no profile here. That alone destroys nothing: to destroy it, run "
        f"{code('tpudeploy destroy')}with its last profile."
    )


def _unfinished_runs(goals: Iterable[Goal]) -> Iterator[str]:
    for goal in goals:
        if goal.resumes:
            yield f"- **Note:** {code(goal.name)}: an earlier run did not finish; the changes it started stay approved."


def _footer(whole: str, run_url: str, ending: str = "") -> str:
    parts = [f"fingerprint {code(whole)}"] if whole else []
    parts += [f"[run]({run_url})"] if run_url else []
    line = " · ".join([*parts, f"tpudeploy {VERSION}"])
    return f"{line}\\\n{ending}" if ending else line


def apply_result(outcome: str, errors: Sequence[TpudeployError]) -> str:
    head = f"### tpudeploy apply · {prose(outcome)}"
    parts = [Part(text=head), *(Part(text=_error_text(e)) for e in errors)]
    return fit(parts, COMMENT_BYTES).text


def apply_interruption(error: TpudeployError, plan: Plan) -> str:
    """Return the error with the plan that was not applied. Without a marker, the comment approves nothing."""
    parts = [Part(text="### tpudeploy apply · stopped"), Part(text=_error_text(error)), *changes(plan)]
    return fit(parts, COMMENT_BYTES).text


def _error_text(error: TpudeployError) -> str:
    return paragraph([error.message, *error.hint.splitlines()])
