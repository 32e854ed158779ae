"""Format an event as one line of text, and suppress repetitions. A new event does not type-check without its line."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import TypeAlias, assert_never

from tpudeploy.domain import events
from tpudeploy.domain.ending import EndCause
from tpudeploy.domain.names import Zone
from tpudeploy.domain.pins import FILE
from tpudeploy.domain.plan import Action
from tpudeploy.domain.slices import Absence, BootPhase, Phase
from tpudeploy.domain.verify import VerifiedSetting
from tpudeploy.text import words
from tpudeploy.text.paint import Paint
from tpudeploy.views import request_table
from tpudeploy.views.status import progress

_START = {
    Action.NO_OP: "Checking...",
    Action.CREATE: "Creating...",
    Action.UPDATE: "Modifying...",
    Action.RESTART: "Restarting...",
    Action.REPLACE: "Replacing...",
    Action.DESTROY: "Destroying...",
}
_COMPLETION = {
    Action.NO_OP: "Checked",
    Action.CREATE: "Creation complete",
    Action.UPDATE: "Modifications complete",
    Action.RESTART: "Restart complete",
    Action.REPLACE: "Replacement complete",
    Action.DESTROY: "Destruction complete",
}
# The text of a slice's phase; the zone's name follows it.
_PLACES: Mapping[str, str] = {
    Phase.CREATING: "Request accepted in",
    Phase.QUEUED: "Queued in",
    Phase.PROVISIONING: "Provisioning in",
    Phase.UP: "Up in",
    Phase.SUSPENDING: "Deleting in",
    Phase.LEAVING: "Deleting in",
    Phase.HUSK: "Dead in",
    Phase.LOST: "Lost in",
}
_UPDATES = {
    events.UpdateSubject.NODE: "Node updated",
    events.UpdateSubject.CHANGE: "Change sent to the node",
    events.UpdateSubject.RESTART: "Reset requested",
}


def line(event: events.Event, paint: Paint, *, like: str = "") -> str:
    """Return the event's text, prefixed with its address unless the event is about the whole run.

    `like` is the place whose refusal had the same text: the text is left out.
    """
    text = _refusal_text(event, paint, like) if isinstance(event, events.NotGranted) else _text(event, paint)
    return f"{paint.bold(event.address)}: {text}" if event.address else text


def _end_text(event: events.EndPassed | events.HoursBegan) -> str:
    if isinstance(event, events.HoursBegan):
        after = "" if event.cause is EndCause.HOURS else "after "
        return f"Hours started ({after}{event.why}): starting"
    return f"End reached ({event.why}): deleting its slices"


def _text(event: events.Event, paint: Paint) -> str:  # noqa: PLR0911 - one return for each kind of event
    match event:
        case events.ChangeStarted() | events.ChangeDone() | events.ChangeLeft() | events.ChangeFailed():
            return _change_text(event, paint)
        case events.Serving():
            answer = f": {words.value(event.answer)}" if event.answer else ""
            return f"{paint.green('Serving')} at {event.url}{answer}"
        case events.Verified():
            return _verified_text(event, paint)
        case events.LockHeld() | events.LockWaiting() | events.Retrying() | events.Waiting() | events.Outlook():
            return _wait_text(event, paint)
        case events.Updated():
            return f"{_UPDATES[event.what]} [{event.name}]"
        case events.Scaled():
            return f"Scaling from {event.before} to {words.plural(event.after, 'replica')}: {words.plain(event.why)}"
        case events.EndPassed() | events.HoursBegan():
            return _end_text(event)
        case events.Pinned():
            before = f", was {event.before}" if event.before else ""
            return f"Pinned {event.name} to {event.to}{before} ({FILE})"
        case events.Warned():
            hint = "".join(f"\n  {line}" for line in event.hint.splitlines())
            return f"{paint.yellow('Warning')}: {event.message}{hint}" if hint else event.message
    return _slice_text(event, paint)


_ChangeEvent: TypeAlias = events.ChangeStarted | events.ChangeDone | events.ChangeLeft | events.ChangeFailed


def _change_text(event: _ChangeEvent, paint: Paint) -> str:
    match event:
        case events.ChangeStarted():
            return _START[event.action]
        case events.ChangeDone():
            return f"{_COMPLETION[event.action]} after {words.duration(event.elapsed)}"
        case events.ChangeLeft():
            elapsed = words.duration(event.elapsed)
            return f"Stopped after {elapsed} with work in progress; the next apply continues it"
        case events.ChangeFailed():
            return paint.red("Failed")
    assert_never(event)


_WaitEvent: TypeAlias = events.LockHeld | events.LockWaiting | events.Retrying | events.Waiting | events.Outlook


def _wait_text(event: _WaitEvent, paint: Paint) -> str:
    match event:
        case events.LockHeld():
            return f"{paint.yellow('Locked')} by {_lock_holder(event)}"
        case events.LockWaiting():
            again = f"retrying in {words.duration(event.seconds)}"
            return f"{paint.yellow('Waiting for the lock')}, {again}: {words.plain(event.message)}"
        case events.Retrying():
            again = f"retrying in {words.duration(event.seconds)}"
            return f"{paint.yellow('No answer')}, {again}: {words.plain(event.message)}"
        case events.Waiting():
            reason = request_table.waiting(words.plain(event.why), event.places)
            return f"Still waiting: {reason} [{words.duration(event.elapsed)} elapsed]"
        case events.Outlook():
            return request_table.summary(event.places)
    assert_never(event)


_SliceEvent: TypeAlias = (
    events.Requested
    | events.NotGranted
    | events.PhaseChanged
    | events.Draining
    | events.Released
    | events.Reclaimed
    | events.Gone
    | events.Adopted
)


def _slice_text(event: _SliceEvent, paint: Paint) -> str:
    match event:
        case events.Requested():
            return f"Requesting {event.accelerator_type} in {event.place} [{event.name}]"
        case events.NotGranted():
            return _refusal_text(event, paint, "")
        case events.PhaseChanged():
            # What a machine reports does not name the slice, and several may boot at one time.
            name = "" if event.phase in {*_PLACES, BootPhase.FAILED} else f"{event.name}, "
            return f"{_phase_text(event)} [{name}{words.duration(event.elapsed)} elapsed]"
        case events.Draining():
            least = words.duration(event.seconds)
            return f"New requests go to the other slices; {event.name} drains for at least {least}"
        case events.Released():
            return f"Deleting {event.name} in {event.zone} ({event.reason})"
        case events.Reclaimed():
            return f"Keeping {event.name} in {event.zone}: {event.reason}"
        case events.Gone():
            return f"Deleted {event.name}" if event.reason is Absence.GONE else f"{event.name} {event.reason}"
        case events.Adopted():
            return f"Adopted {event.name} in {event.zone}: it is now in the state"
    assert_never(event)


def _refusal_text(event: events.NotGranted, paint: Paint, like: str) -> str:
    outcome = paint.yellow("Failed landing" if event.landed else "Refused")
    where = f"{event.place} ({event.kind})"
    if event.blocked_seconds:
        where += f"; next attempt there in {words.duration(event.blocked_seconds)}"
    if like:
        return f"{outcome} in {where}, as in {like}"
    return f"{outcome} in {where}\n  {words.plain(event.message)}"


def _verified_text(event: events.Verified, paint: Paint) -> str:
    """Return one line if everything is as declared and planned; otherwise add a line for each difference."""
    cache = ""
    if event.blocks:
        figures = f"{_with_thousands(event.blocks)} blocks, {_with_thousands(event.tokens)} tokens"
        cache = f"KV cache of {figures}" if event.off else f"KV cache as planned ({figures})"
    settings = ""
    if event.held:
        settings = f"{words.plural(event.held, 'declared setting')} in effect"
    if not cache and not settings and not event.broken and not event.off:
        return f"{paint.yellow('Nothing verified')}: {_describe_silence(event.silent)}"
    summary = "; ".join(filter(None, (cache, settings, _describe_silence(event.silent))))
    lines = [f"Verified: {summary or 'nothing else'}"]
    lines += [f"  {paint.red('Not in effect')}: {_describe_difference(each, 'declared')}" for each in event.broken]
    lines += [f"  {paint.yellow('Not as planned')}: {_describe_difference(each, 'planned')}" for each in event.off]
    return "\n".join(lines)


def _describe_difference(setting: VerifiedSetting, how: str) -> str:
    deviation = "" if setting.deviation is None else f" ({setting.deviation:+.1%})"
    witnesses = ", ".join(source for source, value in setting.effective.items() if value == setting.value)
    value, expected = words.plain(setting.value), words.plain(setting.declared)
    return f"{setting.name} is {value}, {how} {expected}{deviation} [{witnesses}]"


def _describe_silence(reasons: Mapping[str, str]) -> str:
    """Return the sources that reported nothing, by reason: `api and metrics reported nothing (timed out)`."""
    by_reason: dict[str, list[str]] = {}
    for source, reason in reasons.items():
        by_reason.setdefault(words.plain(reason), []).append(source)
    return "; ".join(f"{' and '.join(sources)} reported nothing ({reason})" for reason, sources in by_reason.items())


def _with_thousands(number: str) -> str:
    return f"{int(number):,}" if number.isdecimal() else "?"


def _lock_holder(event: events.LockHeld) -> str:
    if event.created is None:
        return "another run"
    page = f", {words.plain(event.run_url)}" if event.run_url else ""
    return f"{words.plain(event.who)} for `{words.plain(event.operation)}`{page}"


def _phase_text(event: events.PhaseChanged) -> str:
    """Return the slice's phase with Google's own state, or what its machine reports that it is doing."""
    if event.phase == BootPhase.FAILED:
        # The error that ends the run gives the cause. The slice may be one that is being replaced, so it is named.
        return f"The boot of {event.name} failed"
    if event.phase not in _PLACES:
        text = event.detail if event.stage is None else progress(event.stage, event.detail)
        return words.plain(text[:1].upper() + text[1:] if event.detail else text) or event.phase
    place = f"{_PLACES[event.phase]} {event.place}"
    return place if event.detail.lower() in {"", event.phase} else f"{place} ({event.detail})"


_Place: TypeAlias = "tuple[str, str]"  # address, place
# Phases that any request may reach, and that follow a refusal. Every other phase is news.
_USUAL = {Phase.CREATING, Phase.QUEUED, Phase.SUSPENDING, Phase.LEAVING, Phase.HUSK}


class Repeats:
    """Shows each kind of refusal once per place, until a request there gets further. `Waiting` summarises the others.

    It stores places, not requests, because the number of requests is unbounded.
    """

    def __init__(self) -> None:
        self._refused: defaultdict[_Place, set[str]] = defaultdict(set)
        self._silent: dict[_Place, str] = {}
        self._texts: dict[tuple[str, str], str] = {}

    def line(self, event: events.Event, paint: Paint) -> str | None:
        """Return the line of an event, or None for one that is not new. A text that other zones gave is not repeated.

        Call it once for each event, in order.
        """
        if not self.is_new(event):
            return None
        if not isinstance(event, events.NotGranted) or event.landed:
            return line(event, paint)
        key = event.address, Zone(event.zone).abstracted(event.message)
        first = self._texts.setdefault(key, event.place)
        return line(event, paint, like="" if first == event.place else first)

    def is_new(self, event: events.Event) -> bool:
        """Return whether to show an event. Call it once for each event, in order."""
        match event:
            case events.Outlook():
                return False  # only the live table shows it
            case events.LockHeld() | events.ChangeLeft():
                return False  # the error or the run's summary says it
            case events.Requested():
                return self._is_first(event)
            case events.NotGranted() if event.landed:
                return True  # a granted slice failed: always news
            case events.NotGranted():
                kinds = self._refused[_place(event)]
                is_new = event.kind not in kinds
                kinds.add(event.kind)
                return is_new
            case events.PhaseChanged() if event.phase not in _USUAL:
                self._refused.pop(_place(event), None)
                self._silent.pop(_place(event), None)
            case events.PhaseChanged() | events.Released() | events.Gone():
                return self._silent.get(_place(event)) != event.name
        return True

    def _is_first(self, event: events.Requested) -> bool:
        if _place(event) not in self._refused:
            return True
        self._silent[_place(event)] = event.name
        return False


def _place(event: events.Requested | events.NotGranted | events.PhaseChanged | events.Released | events.Gone) -> _Place:
    return event.address, event.place
