"""Format drift: what changed outside of tpudeploy, with the applied value beside the live one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from tpudeploy.domain.plan import Drifted, DriftKind, SliceDrift
from tpudeploy.text import words
from tpudeploy.text.paint import Paint

_SENTENCES = {
    DriftKind.CHANGED: "has changed",
    DriftKind.DELETED: "has been deleted",
    DriftKind.LOST: "has lost its slice",
    DriftKind.UNHEALTHY: "no longer serves",
    DriftKind.NOT_IN_EFFECT: "does not run with the applied settings",
    DriftKind.UNTRACKED: "has a slice that its state does not track: it appeared after its request was forgotten",
    DriftKind.MISSING: "has no slice",
}
_NOT_RECORDED = {DriftKind.NOT_IN_EFFECT, DriftKind.MISSING, DriftKind.UNHEALTHY, DriftKind.UNTRACKED}
_HEAD = """Note: Objects have changed outside of tpudeploy

tpudeploy found these differences from what it last applied{beside}:"""
_UNDO_NOTE = """Unless the profile was changed in the same way, or ignores them (lifecycle.ignore_changes), the
following plan includes actions to undo these changes, or to respond to them."""
_REFRESH_HINT = """tpudeploy will not undo these. If you expected them, `tpudeploy apply -refresh-only` records them in
the state without changing anything else; `tpudeploy apply` reverts what differs from the profile."""
_NOT_IN_EFFECT_HINT = """The state does not record settings that an engine ignores. `tpudeploy verify` shows every
setting and its source; if the server was changed by hand, a reboot of its machine starts what was applied."""
_MISSING_HINT = """The state already records that a slice is missing, so there is nothing to write. `tpudeploy apply`
creates another one."""
_HALF_DESTROYED_HINT = """A `tpudeploy destroy` was interrupted. `tpudeploy status` shows the command that continues it;
`tpudeploy apply` would request another slice instead."""
_LATE_SLICE_HINT = """The untracked slice is billed until it is deleted, and no `apply` uses it:
`tpudeploy gc` deletes it."""
_UNHEALTHY_HINT = """A plan does not probe a server that has served. If it does not come back by itself, record the
drift with `tpudeploy apply -refresh-only`: the next `tpudeploy apply` restarts the server and keeps the
chips. If its machine is gone for good, `tpudeploy apply -replace '{address}'` requests another slice."""
_NOTHING = "No changes. The live resources match what was last applied."
_NOTHING_ELSE = "No changes where tpudeploy could look."


def section(drift: Iterable[SliceDrift], paint: Paint) -> str:
    """Return the section about drift that precedes a plan."""
    drifts = tuple(drift)
    kinds = {each.kind for each in drifts}
    # A plan does nothing about a slice that no state tracks.
    notes = [_LATE_SLICE_HINT] if DriftKind.UNTRACKED in kinds else []
    beside = ""
    if kinds - {DriftKind.UNTRACKED}:
        beside = ", which may have affected this plan"
        notes.append(_UNDO_NOTE)
    head = _HEAD.format(beside=beside)
    return "\n".join([head, "", _blocks(drifts, paint), "", "\n\n".join(notes)])


def alone(
    drift: Iterable[SliceDrift],
    paint: Paint,
    *,
    is_partial: bool = False,
    without_state: Collection[str] = (),
    count: int = 0,
) -> str:
    """Return the text of a refresh-only plan of deployments, of which there are `count`, and some are `without_state`.

    `is_partial`: errors say what could not be observed.
    """
    drifts = tuple(drift)
    missing = never_applied(without_state)
    if not drifts and without_state and len(without_state) == count:
        return missing
    if missing:
        return f"{alone(drifts, paint, is_partial=is_partial)}\n{missing}"
    if not drifts:
        return _NOTHING_ELSE if is_partial else _NOTHING
    return "\n".join([_HEAD.format(beside=""), "", _blocks(drifts, paint), "", "\n\n".join(_remarks(drifts))])


def never_applied(names: Collection[str]) -> str:
    """Return the sentence about deployments without a state, or ""."""
    if not names:
        return ""
    verb = "was" if len(names) == 1 else "were"
    return f"{words.some(names)} {verb} never applied: there is no drift to find. Next: `tpudeploy apply`."


def _remarks(drifts: Collection[SliceDrift]) -> Iterator[str]:
    """Yield what to do about each kind of drift."""
    first_of_kind: dict[DriftKind, SliceDrift] = {}
    for drift in drifts:
        first_of_kind.setdefault(drift.kind, drift)
    if first_of_kind.keys() - _NOT_RECORDED:
        yield _REFRESH_HINT
    if DriftKind.UNTRACKED in first_of_kind:
        yield _LATE_SLICE_HINT
    if DriftKind.UNHEALTHY in first_of_kind:
        yield _UNHEALTHY_HINT.format(address=first_of_kind[DriftKind.UNHEALTHY].address)
    missing = {drift.is_half_destroyed for drift in drifts if drift.kind is DriftKind.MISSING}
    if True in missing:
        yield _HALF_DESTROYED_HINT
    if False in missing:
        yield _MISSING_HINT
    if DriftKind.NOT_IN_EFFECT in first_of_kind:
        yield _NOT_IN_EFFECT_HINT


def _blocks(drifts: Iterable[SliceDrift], paint: Paint) -> str:
    return "\n\n".join("\n".join(_block(drift, paint)) for drift in drifts)


def _block(drift: SliceDrift, paint: Paint) -> Iterator[str]:
    is_gone = drift.kind in {DriftKind.DELETED, DriftKind.LOST, DriftKind.MISSING}
    yield f"  # {paint.bold(drift.address)} {_SENTENCES[drift.kind]}"
    if drift.detail and drift.kind is not DriftKind.DELETED:
        yield f"  # ({words.plain(drift.detail)})"
    zone = f" ({drift.zone})" if drift.zone else ""
    slice_text = f" = {drift.slice_name}{zone}" if drift.slice_name else ""
    yield f"{paint.red('  -') if is_gone else paint.yellow('  ~')} {drift.address}{slice_text}"
    width = max((len(f.path) for f in drift.fields), default=0)
    yield from (_field(field, width, paint) for field in drift.fields)


def _field(field: Drifted, width: int, paint: Paint) -> str:
    mark = paint.yellow("~")
    if field.applied is None:
        mark = paint.green("+")
    elif field.live is None:
        mark = paint.red("-")
    values = f"{words.value(field.applied)} (applied) -> {words.value(field.live)} (live)"
    return f"      {mark} {field.path.ljust(width)} = {values}"
