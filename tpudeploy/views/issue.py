"""A deviation as an issue: what is wrong, in which replica, and what to run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tpudeploy.core.deviation import Deviation, Kind
from tpudeploy.core.drift import ENGINE
from tpudeploy.domain.errors import TpudeployError
from tpudeploy.views.fenced import code, fence, prose
from tpudeploy.views.fitted import Part, fitted
from tpudeploy.views.markdown import COMMENT_BYTES, difference, outside

_TITLES: Mapping[Kind, str] = {
    Kind.LOST: "was lost",
    Kind.UNHEALTHY: "does not serve",
    Kind.NOT_IN_EFFECT: "does not do what it was told",
    Kind.DRIFT: "differs from its profile",
}
_WHAT: Mapping[Kind, str] = {
    Kind.LOST: "Its slice is gone: preempted, deleted or run out. `tpudeploy apply` asks for another.",
    Kind.UNHEALTHY: "The slice is there and billed, and the server does not answer. `tpudeploy status` shows more.",
    Kind.NOT_IN_EFFECT: "It serves, but its engine does not do what it was told. `tpudeploy verify` shows who says so.",
    Kind.DRIFT: "What runs is not what the profile says: one of the two was changed. `tpudeploy apply` makes it so.",
}


def title(of: Deviation) -> str:
    return f"tpudeploy: {of.name} {_TITLES[of.kind]}"


def body(of: Deviation) -> str:
    parts = [Part(text=f"**{of.kind}** · {_WHAT[of.kind]}"), Part(text="\n".join(_replicas(of)))]
    if of.drifted or of.outside or of.ineffective:
        lines = [line for found in (*of.ineffective, *of.outside) for line in outside(found)]
        lines += [line for change in of.drifted for line in difference(change)]
        parts.append(Part(text=fence(lines, "diff"), title="the differences", can_go=True))
    return fitted(parts, COMMENT_BYTES).text


def unknown_title(name: str) -> str:
    return f"tpudeploy: {name} is unknown"


def unknown_body(error: TpudeployError) -> str:
    """Return why nothing is known of a deployment, and what to do."""
    return "\\\n".join(prose(line) for line in (f"{error.message} [{error.code}]", *error.hint.splitlines()))


def settled(name: str) -> str:
    return f"{code(name)} is as its profile says again, and serves."


def _replicas(of: Deviation) -> Iterator[str]:
    for gone in of.lost:
        had = f" on {code(gone.slice_name)}" if gone.slice_name else ""
        yield f"- lost: {code(gone.address)}{had}, {prose(gone.detail or gone.kind)}"
    for replica in of.unhealthy:
        said = replica.boot_detail or replica.detail
        why = f": {prose(said)}" if said else ""
        yield f"- unhealthy: {code(replica.address)} on {code(replica.slice_name)} ({prose(replica.zone)}){why}"
    for found in of.ineffective:
        names = ", ".join(code(f.path.removeprefix(ENGINE)) for f in found.fields)
        yield f"- not in effect: {names} of {code(found.address)} on {code(found.slice_name)}"
    for found in of.outside:
        yield f"- drift: {code(found.address)} was changed outside of tpudeploy"
    for change in of.drifted:
        yield f"- drift: {code(change.address)} would be changed ({change.action})"
