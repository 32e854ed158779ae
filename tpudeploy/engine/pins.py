"""What names are pinned to: held by the lock file, else by what stands, else asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tpudeploy.domain import events
from tpudeploy.domain.errors import StateError
from tpudeploy.domain.facts import Unknown
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.pins import FILE, Name, Pin, Pins, is_emulated
from tpudeploy.domain.state import State
from tpudeploy.domain.together import together
from tpudeploy.pins.pins import in_attributes, new, unused, with_pins, written
from tpudeploy.ports import PinStore, Sources, World

_AT_ONCE = 8


@frozen
class Found:
    """`pins` hold every name that could be; `unknown` says why the others could not."""

    pins: Pins
    unknown: Mapping[Name, Unknown]


def complete(held: Pins, wanted: Iterable[Name], states: Iterable[State], sources: Sources, *, emulated: bool) -> Found:
    """`held`, and what `wanted` names beyond it.

    What a slice of these deployments was given counts before what its name means today: a lock file that was never
    committed, or that a pipeline threw away, changes no image. What a run began without pins, it ends without.
    """
    known = tuple(states)
    given = (pin for pin in _given(known) if emulated or not is_emulated(pin.to))
    held = with_pins(held, (pin for pin in given if held.target_of(pin.name) is None))
    begun = set(_begun_without(known))
    return asked(held, (name for name in wanted if held.target_of(name) is None and name not in begun), sources)


def asked(held: Pins, names: Iterable[Name], sources: Sources) -> Found:
    """`held` with these names as they are today; what nobody tells stays as it was held."""
    each = tuple(dict.fromkeys(names))
    answers = dict(zip(each, together(_AT_ONCE, sources.look_up, each), strict=True))
    pins = [Pin(name=name, to=to) for name, to in answers.items() if not isinstance(to, Unknown)]
    unknown = {name: why for name, why in answers.items() if isinstance(why, Unknown)}
    return Found(pins=with_pins(held, pins), unknown=unknown)


def hold(world: World, store: PinStore, pins: Iterable[Pin]) -> None:
    """Write down those whose names are held to nothing yet. What is held is never changed by this.

    Where it cannot be written, that is said and no more: a slice remembers its own pins.
    """
    asked = tuple(pins)
    if not new(store.read(), asked):
        return
    try:
        before = store.update(lambda held: with_pins(held, new(held, asked)))
    except StateError as error:
        hint = "The slices remember what they are given. The next run that may write the file writes it."
        world.emit(events.Warned(at=world.clock.now(), address="", message=error.message, hint=hint))
        return
    tell(world, before, new(before, asked))


def renew(
    world: World, store: PinStore, names: Iterable[Name], sources: Sources, *, states: Iterable[State]
) -> tuple[Pin, ...]:
    """Look all of them up anew and hold what they are now; those that are new or have moved.

    What nobody tells stays as it was, which is said. What neither they nor `states` name is told, and stays too: it may
    be of a profile that was not named, and reviewed together with it. Raise `errors.StateError` where it cannot be
    written down.
    """
    each = tuple(names)
    found = asked(store.read(), each, sources)
    for name, why in found.unknown.items():
        kept = store.read().target_of(name)
        said = f"{name.text} {f'stays pinned to {kept}' if kept else 'is not pinned'}: {why.because}"
        world.emit(events.Warned(at=world.clock.now(), address="", message=said, hint=why.hint))
    pins = [
        Pin(name=name, to=to)
        for name in dict.fromkeys(each)
        if name not in found.unknown and (to := found.pins.target_of(name))
    ]
    before = store.update(lambda held: with_pins(held, pins))
    moved = tuple(pin for pin in pins if before.target_of(pin.name) != pin.to)
    tell(world, before, moved)
    _tell_unused(world, store.read(), (*each, *(n for s in states for a in s.attempts for n, _ in written(a.spec))))
    return moved


def _tell_unused(world: World, held: Pins, used: Iterable[Name]) -> None:
    left = unused(held, used)
    if left:
        named = ", ".join(name.text for name in left)
        said = f"{FILE} also holds what neither these profiles nor any state names: {named}."
        hint = "If no profile is left that does, take it out."
        world.emit(events.Warned(at=world.clock.now(), address="", message=said, hint=hint))


def tell(world: World, before: Pins, pins: Iterable[Pin]) -> None:
    """Each that is new, or not what it was."""
    for pin in pins:
        was = before.target_of(pin.name) or ""
        if was != pin.to:
            of = {"kind": pin.name.kind, "name": pin.name.text, "to": pin.to, "before": was}
            world.emit(events.Pinned(at=world.clock.now(), address="", **of))


def _given(states: Iterable[State]) -> Iterator[Pin]:
    """The newest last, which counts."""
    attempts = [a for state in states for a in state.attempts]
    for attempt in sorted(attempts, key=lambda a: a.asked_at):
        yield from in_attributes(attempt.spec)


def _begun_without(states: Iterable[State]) -> Iterator[Name]:
    for state in states:
        for attempt in state.attempts if state.goal is not None else ():
            yield from (name for name, to in written(attempt.spec) if to is None)
