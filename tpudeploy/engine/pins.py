"""Find the pin of each name: in the lock file, else in a state, else by a look-up at its source."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from tpudeploy.catalog.engines import needs_labels, release_in
from tpudeploy.catalog.families import is_listed
from tpudeploy.domain import events
from tpudeploy.domain.boots import BootRecord
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.engine import EngineKind, EngineOrigin
from tpudeploy.domain.errors import StateError
from tpudeploy.domain.facts import Unknown
from tpudeploy.domain.model import Checkpoint
from tpudeploy.domain.pins import FILE, Name, Pin, PinKind, Pins, is_emulated
from tpudeploy.domain.state import State
from tpudeploy.domain.together import together
from tpudeploy.pins import digest_in, in_attributes, names_with_pins, new, unused, with_pins
from tpudeploy.ports import PinStore, Sources, World

_AT_ONCE = 8
_NO_CHECKPOINTS: Mapping[str, Checkpoint] = {}
_NO_LABELS: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class PinLookup:
    """`pins` has every name whose pin is known; `unknown` gives the reason for each of the others."""

    pins: Pins
    unknown: Mapping[Name, Unknown]


def complete(
    pins: Pins, names: Iterable[Name], states: Iterable[State], sources: Sources, *, emulated: bool
) -> PinLookup:
    """Return `pins` with a pin for each of `names` (decision 34).

    The pin that a slice of these deployments was given counts before what its name means today, so a lock file that was
    never committed, or that a pipeline threw away, changes no image. A run that began without pins ends without them.
    """
    all_states = tuple(states)
    state_pins = (pin for pin in _pins_of_states(all_states) if emulated or not is_emulated(pin.to))
    pins = with_pins(pins, (pin for pin in state_pins if pins.target_of(pin.name) is None))
    each = tuple(names)
    images = {to: name.text for name in each if name.kind is PinKind.IMAGE and (to := pins.target_of(name))}
    unpinned_names = set(_unpinned_names(all_states))
    missing = (name for name in each if pins.target_of(name) is None and name not in unpinned_names)
    return look_up_pins(with_labels(pins, images, sources), missing, sources)


def look_up_pins(pins: Pins, names: Iterable[Name], sources: Sources) -> PinLookup:
    """Return `pins` with these names as their sources have them today. A name without an answer keeps its pin."""
    each = tuple(dict.fromkeys(names))
    answers = dict(zip(each, together(_AT_ONCE, sources.look_up, each), strict=True))
    new_pins = [Pin(name=name, to=to) for name, to in answers.items() if not isinstance(to, Unknown)]
    unknown = {name: why for name, why in answers.items() if isinstance(why, Unknown)}
    pins = _with_checkpoints(with_pins(pins, new_pins), new_pins, sources)
    images = {pin.to: pin.name.text for pin in new_pins if pin.name.kind is PinKind.IMAGE}
    return PinLookup(pins=with_labels(pins, images, sources), unknown=unknown)


def with_labels(pins: Pins, images: Mapping[str, str], sources: Sources) -> Pins:
    """Return `pins` with what the labels of images say of their engines. `images` are their names by digest.

    Only images are asked about whose name and tag leave that open. A registry that does not answer is asked again by
    the next run.
    """
    missing = {digest: image for digest, image in images.items() if digest not in pins.labels and needs_labels(image)}
    answers = together(_AT_ONCE, lambda digest: sources.labels(missing[digest], digest), missing)
    labels = {digest: text for digest, text in zip(missing, answers, strict=True) if isinstance(text, str)}
    return replace(pins, labels={**pins.labels, **labels}) if labels else pins


def _with_checkpoints(pins: Pins, new_pins: Iterable[Pin], sources: Sources) -> Pins:
    """Return `pins` with what the hub says of each commit of a model that the catalogue does not know."""
    missing = [
        pin
        for pin in new_pins
        if pin.name.kind is PinKind.MODEL and pin.to not in pins.checkpoints and not is_listed(pin.name.model[0])
    ]
    answers = together(_AT_ONCE, lambda pin: sources.describe(pin.name, pin.to), missing)
    checkpoints = {
        pin.to: answer for pin, answer in zip(missing, answers, strict=True) if isinstance(answer, Checkpoint)
    }
    return replace(pins, checkpoints={**pins.checkpoints, **checkpoints}) if checkpoints else pins


def hold(
    world: World,
    store: PinStore,
    pins: Iterable[Pin],
    checkpoints: Mapping[str, Checkpoint] = _NO_CHECKPOINTS,
    labels: Mapping[str, str] = _NO_LABELS,
) -> None:
    """Write the pins of names that the lock file does not have yet. It never changes a pin that is there.

    `checkpoints` are what the hub said of their commits, `labels` what those of images said of their digests.

    A file that cannot be written is only a warning, because a slice keeps its own pins in the state.
    """
    candidates = tuple(pins)
    current_pins = store.read()
    if not new(current_pins, candidates) and labels.keys() <= current_pins.labels.keys():
        return
    try:
        before = store.update(
            lambda current: replace(
                with_pins(current, new(current, candidates)),
                checkpoints={**checkpoints, **current.checkpoints},
                labels={**labels, **current.labels},
            )
        )
    except StateError as error:
        hint = "Each slice keeps its own pins in the state. The next run that can write the file adds them."
        world.emit(events.Warned(at=world.clock.now(), address="", message=error.message, hint=hint))
        return
    report(world, before, new(before, candidates))


def note_releases(store: PinStore, boots: Iterable[BootRecord], deployments: Iterable[Deployment]) -> None:
    """Write the releases that engines reported, by digest, for images whose name and tag tell none.

    A file that cannot be written is left as it is: the release is then as unknown as before.
    """
    digests = {
        digest_in(deployment.attributes)
        for deployment in deployments
        if deployment.engine.kind is not EngineKind.UNKNOWN and deployment.engine.origin is not EngineOrigin.TAG
    }
    reports = {record.digest: release_in(record.release) for record in boots if record.digest in digests}
    releases = {digest: release for digest, release in reports.items() if digest and release}
    if releases:
        with suppress(StateError):
            store.update(lambda current: replace(current, releases={**current.releases, **releases}))


def renew(
    world: World,
    store: PinStore,
    names: Iterable[Name],
    sources: Sources,
    *,
    states: Iterable[State],
    digests: Mapping[str, str],
) -> tuple[Pin, ...]:
    """Look up all names again, write their pins, and return those that are new or have moved.

    `digests` are images that are named by a digest: only their labels are looked up.

    A name without an answer keeps its pin, with a warning. A pin that neither the names nor `states` use is reported
    and kept, because it may belong to a profile that was not named. Raise `errors.StateError` if the file cannot be
    written.
    """
    each = tuple(names)
    lookup = look_up_pins(with_labels(store.read(), digests, sources), each, sources)
    for name, why in lookup.unknown.items():
        target = store.read().target_of(name)
        outcome = f"stays pinned to {target}" if target else "is not pinned"
        _warn(world, f"{name.text} {outcome}: {why.because}", why.hint)
    pins = [
        Pin(name=name, to=to)
        for name in dict.fromkeys(each)
        if name not in lookup.unknown and (to := lookup.pins.target_of(name))
    ]
    before = store.update(
        lambda current: replace(
            with_pins(current, pins),
            checkpoints={**current.checkpoints, **lookup.pins.checkpoints},
            labels={**current.labels, **lookup.pins.labels},
        )
    )
    moved_pins = tuple(pin for pin in pins if before.target_of(pin.name) != pin.to)
    report(world, before, moved_pins)
    attempts = (attempt for state in states for attempt in state.attempts)
    names_in_use = [*each, *(name for attempt in attempts for name, _ in names_with_pins(attempt.spec))]
    if unused_names := unused(store.read(), names_in_use):
        texts = ", ".join(name.text for name in unused_names)
        message = f"{FILE} also has pins that neither these profiles nor any state uses: {texts}."
        _warn(world, message, "Remove them if no other profile uses them.")
    return moved_pins


def report(world: World, before: Pins, pins: Iterable[Pin]) -> None:
    """Emit an event for each pin that is new or has moved."""
    for pin in pins:
        previous = before.target_of(pin.name) or ""
        if previous != pin.to:
            fields = {"kind": pin.name.kind, "name": pin.name.text, "to": pin.to, "before": previous}
            world.emit(events.Pinned(at=world.clock.now(), address="", **fields))


def _warn(world: World, message: str, hint: str) -> None:
    world.emit(events.Warned(at=world.clock.now(), address="", message=message, hint=hint))


def _pins_of_states(states: Iterable[State]) -> Iterator[Pin]:
    """Yield the pins of all attempts. The newest attempt is last, so that its pins count."""
    attempts = [attempt for state in states for attempt in state.attempts]
    for attempt in sorted(attempts, key=lambda each: each.asked_at):
        yield from in_attributes(attempt.spec)


def _unpinned_names(states: Iterable[State]) -> Iterator[Name]:
    """Yield the names that a run in progress began without a pin."""
    for state in states:
        for attempt in state.attempts if state.goal is not None else ():
            yield from (name for name, to in names_with_pins(attempt.spec) if to is None)
