"""What is to be said of slices that a deployment turns out to have though it has no state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import Diagnostic, Explanation, Severity
from tpudeploy.domain.found import CloudResource
from tpudeploy.domain.slices import Phase
from tpudeploy.orphans.collect import as_attempt
from tpudeploy.reconcile import prices

FOUND = "TPU3010"
NOT_LOOKED = "TPU3011"
EXPLANATIONS: Mapping[str, Explanation] = {
    FOUND: Explanation(
        "Slices of this deployment that no state tracks",
        "The deployment has no state here, but the project has slices that carry its name: the state was lost, or "
        "it is in another folder, in a bucket or with a colleague. An apply would create more slices beside them, "
        "so it stops. Adopt them (apply -adopt), which writes a new state; remove them (gc -foreign); work with "
        "the state that tracks them (--chdir, or backend in tpudeploy.toml); or choose another name in the profile "
        "if they belong to somebody else.",
        "tpudeploy apply -adopt PROFILE\ntpudeploy gc -foreign PROFILE",
    ),
    NOT_LOOKED: Explanation(
        "Slices without a state could not be searched for",
        "A deployment without a state may have slices all the same, if its state was lost. Google Cloud did not "
        "answer the search for them, or left out a zone. The plan continues as if there were none. `tpudeploy gc` "
        "searches again.",
        "tpudeploy gc PROFILE",
    ),
}
_DEAD = {Phase.HUSK, Phase.SUSPENDING, Phase.LEAVING, Phase.REFUSED}


def unremembered(deployment: Deployment, found: Sequence[CloudResource], *, destroy: bool) -> Iterator[Diagnostic]:
    """An error where any of them lives or may yet; a warning where all they do is use quota."""
    alive = [f for f in found if f.slice.phase not in _DEAD]
    named = ", ".join(map(_named, alive or found))
    if alive:
        noun = "slice exists" if len(alive) == 1 else "slices exist"
        yield Diagnostic(
            code=FOUND,
            message=f"{len(alive)} {noun} of {deployment.name} that no state here remembers: {named}.",
            hint=_REMOVE if destroy else _ADOPT,
        )
    elif found:
        yield Diagnostic(
            code=FOUND,
            message=f"No state here remembers what uses quota for {deployment.name}, dead or going: {named}.",
            severity=Severity.WARNING,
            hint=_REMOVE,
        )


def not_looked(names: Iterable[str], because: str) -> Diagnostic:
    return Diagnostic(
        code=NOT_LOOKED,
        message=f"{', '.join(names)} may have slices that no state here remembers: {because}",
        severity=Severity.WARNING,
        hint="`tpudeploy gc` looks again.",
    )


_REMOVE = "`tpudeploy gc -foreign`, with this profile, removes what is found."
_ADOPT = """This plan would buy another beside it. `tpudeploy apply -adopt` takes over what is found;
`tpudeploy gc -foreign`, with this profile, removes it. If it is somebody else's, use their state, or another name."""


def _named(found: CloudResource) -> str:
    cost = ""
    if found.slice.phase is Phase.UP:
        usd = prices.usd_per_hour(as_attempt(found, found.ref.name, 0.0))
        cost = ", price unknown" if usd is None else f", ${usd:.2f}/h"
    return f"{found.ref.name} ({found.ref.zone}, {found.slice.raw_state}{cost})"
