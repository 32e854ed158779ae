"""What is remembered: who is at work on it now, and what was asked for and not given back."""

from __future__ import annotations

from collections.abc import Iterator

from tpudeploy.availability.doctor.case import Case, fail, listed, ok, unknown, warn
from tpudeploy.domain.diagnosis import Finding
from tpudeploy.domain.facts import Unknown
from tpudeploy.domain.state import Attempt


def lock(case: Case) -> Iterator[Finding]:
    holder = case.holder
    if isinstance(holder, Unknown):
        yield unknown(case, "lock", holder)
    elif holder is None:
        yield ok("lock", "Nobody is at work on it.")
    else:
        message = f"{holder.who} is at work on it (process {holder.pid}, `{holder.operation}`)."
        yield warn("lock", message, "Wait for it, or work with them: the lock ends with its process.")


def requests(case: Case) -> Iterator[Finding]:
    state = case.state
    if isinstance(state, Unknown):
        yield fail("requests", state.because, state.hint)
        return
    attempts = state.attempts if state is not None else ()
    waiting = [a for a in attempts if a.granted_at is None]
    if waiting:
        message = f"Asked for and not granted: {listed(map(_named, waiting))}. Each counts against quota."
        yield warn("requests", message, "`tpudeploy apply` goes on with it, `tpudeploy destroy` gives it back.")
    elif attempts:
        yield ok("requests", f"Held: {listed(map(_named, attempts))}.")
    else:
        yield ok("requests", "Nothing is held or asked for.")


def _named(of: Attempt) -> str:
    return f"{of.name} ({of.zone}, {of.provisioning})"
