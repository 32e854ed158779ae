"""An event as one line for a person. Total: a new event does not type-check until it has its line here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from tpudeploy.domain import events
from tpudeploy.domain.attestation import Attested
from tpudeploy.domain.pins import FILE
from tpudeploy.domain.plan import Action
from tpudeploy.domain.slices import BootPhase, Phase
from tpudeploy.views import outlook, words
from tpudeploy.views.paint import Paint
from tpudeploy.views.stage import in_words

_STARTED = {
    Action.NO_OP: "Checking...",
    Action.CREATE: "Creating...",
    Action.UPDATE: "Modifying...",
    Action.RESTART: "Restarting...",
    Action.REPLACE: "Replacing...",
    Action.DESTROY: "Destroying...",
}
_DONE = {
    Action.NO_OP: "Checked",
    Action.CREATE: "Creation complete",
    Action.UPDATE: "Modifications complete",
    Action.RESTART: "Restart complete",
    Action.REPLACE: "Replacement complete",
    Action.DESTROY: "Destruction complete",
}
# A slice's phase, before the name of its zone.
_PLACES: Mapping[str, str] = {
    Phase.CREATING: "Received in",
    Phase.QUEUED: "In the queue of",
    Phase.PROVISIONING: "Provisioning in",
    Phase.UP: "Up in",
    Phase.LEAVING: "Leaving",
    Phase.HUSK: "Dead in",
    Phase.LOST: "Lost in",
}


def line(event: events.Event, paint: Paint) -> str:
    """Behind its address, but for what is said of a whole run."""
    words = _words(event, paint)
    return f"{paint.bold(event.address)}: {words}" if event.address else words


def _words(event: events.Event, paint: Paint) -> str:  # noqa: C901, PLR0911, PLR0912 - one case for each member of a closed union
    match event:
        case events.ChangeStarted():
            return _STARTED[event.action]
        case events.Requested():
            return f"Asking for {event.accelerator_type} in {event.zone}, {event.provisioning} [{event.name}]"
        case events.NotGranted():
            seconds = event.blocked_seconds
            again = f"; not asked there again for {words.duration(seconds)}" if seconds else ""
            where = f"{event.zone}, {event.provisioning} ({event.kind})"
            what = "Failed landing" if event.landed else "Refused"
            return f"{paint.yellow(what)} in {where}{again}\n  {words.plain(event.message)}"
        case events.PhaseChanged():
            return f"{_phase(event)} [{words.duration(event.elapsed)} elapsed]"
        case events.Outlook():
            return outlook.summary(event.places)
        case events.Waiting():
            told = outlook.waiting(words.plain(event.why), event.places)
            return f"Still waiting: {told} [{words.duration(event.elapsed)} elapsed]"
        case events.LockHeld():
            return f"{paint.yellow('Locked')} by {_holder(event)}"
        case events.Retrying():
            again = f"looking again in {words.duration(event.seconds)}"
            return f"{paint.yellow('No answer')}, {again}: {words.plain(event.message)}"
        case events.LockWaiting():
            again = f"asking again in {words.duration(event.seconds)}"
            return f"{paint.yellow('Waiting for the lock')}, {again}: {words.plain(event.message)}"
        case events.Draining():
            least = words.duration(event.seconds)
            return f"Clients are sent there; {event.name} serves those it still has, for {least} at least"
        case events.Released():
            return f"Deleting {event.name} in {event.zone} ({event.reason})"
        case events.Reclaimed():
            return f"Keeping {event.name} in {event.zone} after all: what it was given up for has failed"
        case events.Gone():
            return f"{event.name} {'is gone: nothing of it is left' if event.reason == 'gone' else event.reason}"
        case events.Adopted():
            return f"Adopted {event.name} in {event.zone}: remembered from here on"
        case events.Updated():
            return f"{_UPDATED[event.what]} [{event.name}]"
        case events.Serving():
            answer = f": {words.value(event.answer)}" if event.answer else ""
            return f"{paint.green('Serving')} at {event.url}{answer}"
        case events.Pinned():
            before = f", was {event.before}" if event.before else ""
            return f"Pinned {event.name} to {event.to}{before} ({FILE})"
        case events.Verified():
            return _verified(event, paint)
        case events.Warned():
            hint = "".join(f"\n  {each}" for each in event.hint.splitlines())
            return f"{paint.yellow('Warning')}: {event.message}{hint}" if hint else event.message
        case events.ChangeDone():
            return f"{_DONE[event.action]} after {words.duration(event.elapsed)}"
        case events.ChangeLeft():
            return f"Left under way after {words.duration(event.elapsed)}; the next run goes on"
        case events.ChangeFailed():
            return paint.red("Failed")
    assert_never(event)


# What of it was asked for: events.Updated.
_UPDATED = {"node": "Node updated", "change": "Change handed to the node", "restart": "Reset asked for"}


def _verified(event: events.Verified, paint: Paint) -> str:
    """One line where all is as declared and planned; what is not, a line each."""
    cache = f"{_thousands(event.blocks)} blocks, {_thousands(event.tokens)} tokens" if event.blocks else ""
    held = f"{event.held} declared setting{'s' if event.held != 1 else ''} in effect" if event.held else ""
    if not cache and not held and not event.broken and not event.off:
        return f"{paint.yellow('Nothing attested')}: {_silent(event.silent)}"
    planned = f"{cache}{'' if event.off else ': as planned'}" if cache else ""
    told = "; ".join(filter(None, (planned, held, _silent(event.silent))))
    broken = "".join(f"\n  {paint.red('Not in effect')}: {_differs(each, 'declared')}" for each in event.broken)
    off = "".join(f"\n  {paint.yellow('Not as planned')}: {_differs(each, 'planned')}" for each in event.off)
    return f"Attested: {told or 'nothing else'}{broken}{off}"


def _differs(of: Attested, how: str) -> str:
    deviation = "" if of.deviation is None else f" ({of.deviation:+.1%})"
    witnesses = ", ".join(source for source, value in of.effective.items() if value == of.value)
    return f"{of.name} is {words.plain(of.value)}, {how} {words.plain(of.declared)}{deviation} [{witnesses}]"


def _silent(of: Mapping[str, str]) -> str:
    """`api and metrics told nothing (timed out)`."""
    by_reason: dict[str, list[str]] = {}
    for source, why in of.items():
        by_reason.setdefault(words.plain(why), []).append(source)
    return "; ".join(f"{' and '.join(sources)} told nothing ({why})" for why, sources in by_reason.items())


def _thousands(number: str) -> str:
    return f"{int(number):,}" if number.isdecimal() else "?"


def _holder(event: events.LockHeld) -> str:
    if event.created is None:
        return "another run"
    page = f", {words.plain(event.run_url)}" if event.run_url else ""
    return f"{words.plain(event.who)} for `{words.plain(event.operation)}`{page}"


def _phase(event: events.PhaseChanged) -> str:
    """The slice's place in Google's cloud with Google's own word, or what the machine on it is doing, in its words."""
    if event.phase == BootPhase.FAILED:
        return "The boot failed"  # why is in the error that ends the run
    if event.phase not in _PLACES:
        told = event.detail if event.stage is None else in_words(event.stage, event.detail)
        return words.plain(told[:1].upper() + told[1:] if event.detail else told) or event.phase
    place = f"{_PLACES[event.phase]} {event.zone}, {event.provisioning}"
    return place if event.detail.lower() in {"", event.phase} else f"{place} ({event.detail})"
