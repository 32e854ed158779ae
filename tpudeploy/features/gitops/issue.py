"""Format a deviation as an issue: what is wrong, in which replica, and what to run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tpudeploy.domain.errors import TpudeployError
from tpudeploy.domain.plan import DriftKind
from tpudeploy.features.gitops.comment import Part, code, fence, fit, paragraph, prose
from tpudeploy.features.gitops.markdown import COMMENT_BYTES, difference, outside
from tpudeploy.planning.deviation import Deviation, DeviationKind
from tpudeploy.planning.drift import ENGINE

_TITLES: Mapping[DeviationKind, str] = {
    DeviationKind.LOST: "was lost",
    DeviationKind.UNHEALTHY: "does not serve",
    DeviationKind.NOT_IN_EFFECT: "does not run with its declared settings",
    DeviationKind.DRIFT: "differs from its profile",
}
_WHAT: Mapping[DeviationKind, str] = {
    DeviationKind.LOST: "Its slice was preempted or deleted, or its run ended. `tpudeploy apply` requests another one.",
    DeviationKind.UNHEALTHY: (
        "The slice exists and is billed, but the server does not answer. `tpudeploy status` shows more."
    ),
    DeviationKind.NOT_IN_EFFECT: (
        "It serves, but its engine does not run with the declared settings."
        " `tpudeploy verify` shows the source of each value."
    ),
    DeviationKind.DRIFT: (
        "The running deployment differs from its profile: one of them was changed."
        " `tpudeploy apply` applies the profile."
    ),
}
_UNTRACKED = (
    "It has a slice that no state tracks: it appeared after its request was forgotten, and is billed."
    " `tpudeploy gc` deletes it."
)


def title(deviation: Deviation) -> str:
    return f"tpudeploy: {deviation.name} {_TITLES[deviation.kind]}"


def body(deviation: Deviation) -> str:
    others = {drift.kind for drift in deviation.outside} - {DriftKind.UNTRACKED}
    is_untracked = bool(deviation.outside) and not (others or deviation.drifted)
    what = _UNTRACKED if is_untracked and deviation.kind is DeviationKind.DRIFT else _WHAT[deviation.kind]
    parts = [Part(text=f"**{deviation.kind}** · {what}"), Part(text="\n".join(_replicas(deviation)))]
    if deviation.drifted or deviation.outside or deviation.ineffective:
        lines = [line for drift in (*deviation.ineffective, *deviation.outside) for line in outside(drift)]
        lines += [line for change in deviation.drifted for line in difference(change)]
        parts.append(Part(text=fence(lines, "diff"), title="the differences", can_go=True))
    return fit(parts, COMMENT_BYTES).text


def unknown_title(name: str) -> str:
    return f"tpudeploy: {name} is unknown"


def unknown_body(error: TpudeployError) -> str:
    """Return why nothing is known of a deployment, and what to do."""
    return paragraph([f"{error.message} [{error.code}]", *error.hint.splitlines()])


def resolution(name: str) -> str:
    return f"{code(name)} matches its profile again and serves."


def _replicas(deviation: Deviation) -> Iterator[str]:
    for drift in deviation.lost:
        slice_text = f" on {code(drift.slice_name)}" if drift.slice_name else ""
        yield f"- lost: {code(drift.address)}{slice_text}, {prose(drift.detail or drift.kind)}"
    for replica in deviation.unhealthy:
        detail = replica.boot_detail or replica.detail
        why = f": {prose(detail)}" if detail else ""
        yield f"- unhealthy: {code(replica.address)} on {code(replica.slice_name)} ({prose(replica.zone)}){why}"
    for drift in deviation.ineffective:
        names = ", ".join(code(f.path.removeprefix(ENGINE)) for f in drift.fields)
        yield f"- not in effect: {names} of {code(drift.address)} on {code(drift.slice_name)}"
    for drift in deviation.outside:
        if drift.kind is DriftKind.UNTRACKED:
            slice_text = f"{code(drift.slice_name)} ({code(str(drift.zone))})"
            yield f"- untracked: {slice_text} appeared late; `tpudeploy gc` deletes it"
        else:
            yield f"- drift: {code(drift.address)} was changed outside of tpudeploy"
    for change in deviation.drifted:
        yield f"- drift: {code(change.address)} would be changed ({change.action})"
