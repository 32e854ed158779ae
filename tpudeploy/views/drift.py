"""What changed outside, in a section of its own: applied beside live."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tpudeploy.domain.plan import Drift, Drifted, DriftKind
from tpudeploy.views import words
from tpudeploy.views.paint import Paint

_HAS = {
    DriftKind.CHANGED: "has changed",
    DriftKind.DELETED: "has been deleted",
    DriftKind.LOST: "has been taken away",
    DriftKind.UNHEALTHY: "no longer serves",
    DriftKind.NOT_IN_EFFECT: "does not do what was applied",
    DriftKind.MISSING: "has no slice",
}
_HEAD = """Note: Objects have changed outside of tpudeploy

tpudeploy found these differences from what it last applied{beside}:"""
_UNDONE = """Unless the profile was changed in the same way, or ignores them (lifecycle.ignore_changes), the
following plan includes actions to undo these changes, or to respond to them."""
_RECORDED = """Nothing will be done to undo these. If you expected them, `tpudeploy apply -refresh-only` writes them
down in the state, without touching anything; `tpudeploy apply` undoes what the profile says otherwise."""
_TOLD = """What an engine does otherwise than it was told is not written down. `tpudeploy verify` shows every setting
and who says so; where the server was changed by hand, a reboot of its machine starts what was applied."""
_MISSED = """The state knows already that a slice is missing, so there is nothing to write down. `tpudeploy apply`
creates another one."""
_NOTHING = "No changes. What is there is what was last applied."

_NOTHING_ELSE = "No changes where tpudeploy could look."


def section(of: Iterable[Drift], paint: Paint) -> str:
    """Above a plan."""
    return "\n".join([_HEAD.format(beside=", which may have affected this plan"), "", _blocks(of, paint), "", _UNDONE])


def alone(of: Iterable[Drift], paint: Paint, *, is_partial: bool = False) -> str:
    """Return a whole plan that is about nothing else; `is_partial` where errors tell what could not be looked at."""
    known = tuple(of)
    if not known:
        return _NOTHING_ELSE if is_partial else _NOTHING
    unrecorded = {DriftKind.NOT_IN_EFFECT, DriftKind.MISSING}
    left = [_RECORDED] if any(d.kind not in unrecorded for d in known) else []
    left += [_MISSED] if any(d.kind is DriftKind.MISSING for d in known) else []
    left += [_TOLD] if any(d.kind is DriftKind.NOT_IN_EFFECT for d in known) else []
    return "\n".join([_HEAD.format(beside=""), "", _blocks(known, paint), "", "\n\n".join(left)])


def _blocks(of: Iterable[Drift], paint: Paint) -> str:
    return "\n\n".join("\n".join(_block(each, paint)) for each in of)


def _block(of: Drift, paint: Paint) -> Iterator[str]:
    is_gone = of.kind in {DriftKind.DELETED, DriftKind.LOST, DriftKind.MISSING}
    yield f"  # {paint.bold(of.address)} {_HAS[of.kind]}"
    if of.detail and of.kind is not DriftKind.DELETED:
        yield f"  # ({words.plain(of.detail)})"
    had = f" = {of.slice_name}{f' ({of.zone})' if of.zone else ''}" if of.slice_name else ""
    yield f"{paint.red('  -') if is_gone else paint.yellow('  ~')} {of.address}{had}"
    width = max((len(f.path) for f in of.fields), default=0)
    yield from (_field(field, width, paint) for field in of.fields)


def _field(of: Drifted, width: int, paint: Paint) -> str:
    mark = paint.yellow("~")
    if of.applied is None:
        mark = paint.green("+")
    elif of.live is None:
        mark = paint.red("-")
    return f"      {mark} {of.path.ljust(width)} = {words.value(of.applied)} (applied) -> {words.value(of.live)} (live)"
