"""Worlds in which every setting's effect is known, and what a tuning and a full grid find in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import exp, sin, tau
from random import Random

from tpudeploy.features.tune.search import (
    Axis,
    SearchBudget,
    Settings,
    Trial,
    TuneStep,
    TuneVerdict,
    decide,
    with_choice,
)

# What the starts and the window of one measurement take, in seconds, and the price of a v6e-4.
COLD, WARM, WINDOW = 600.0, 150.0, 180.0
USD_PER_SECOND = 5.4 / 3600
BUDGET = SearchBudget(cold=(COLD + WINDOW) * USD_PER_SECOND, warm=(WARM + WINDOW) * USD_PER_SECOND)
AXES = (
    Axis(name="utilization", choices=((), (("util", "0.94"),), (("util", "0.96"),)), recompiles=False),
    Axis(name="seqs", choices=((), (("seqs", "128"),), (("seqs", "512"),))),
    Axis(name="tokens", choices=((), (("tokens", "4096"),), (("tokens", "8192"),))),
    Axis(name="gap", choices=((), (("gap", "512"),))),
    Axis(name="block", choices=((), (("block", "32"),), (("block", "128"),))),
    Axis(name="kv", choices=((), (("kv", "fp8"),))),
    Axis(name="spec", choices=((), (("spec", "ngram"),))),
)


@dataclass
class TuneWorld:
    """A machine on which each choice has an effect, and pairs of axes another; in seconds it drifts in a wave."""

    random: Random
    effects: dict[Settings, float] = field(default_factory=dict)
    pairs: dict[tuple[Settings, Settings], float] = field(default_factory=dict)
    noise: float = 0.0
    drift: float = 0.0
    seconds: float = 0.0
    usd: float = 0.0
    compiled: set[Settings] = field(default_factory=set)

    def truth(self, settings: Settings) -> float:
        """The objective of these settings without noise and drift."""
        of_axes = [tuple(pair for pair in settings if pair[0] in axis.paths) for axis in AXES]
        one = sum(self.effects.get(choice, 0.0) for choice in of_axes)
        return 1000 * exp(one + sum(self.pairs.get(pair, 0.0) for pair in product(of_axes, of_axes)))

    def measure(self, settings: Settings) -> tuple[float, float]:
        """The objective as it is measured now, and what that cost."""
        programs = tuple(pair for pair in settings if pair[0] not in AXES[0].paths)
        start = WARM if programs in self.compiled else COLD
        self.compiled.add(programs)
        self.seconds += start + WINDOW
        usd = (start + WINDOW) * USD_PER_SECOND
        self.usd += usd
        wave = 1 + self.drift * sin(tau * self.seconds / 21_600)
        return self.truth(settings) * exp(self.random.gauss(0, self.noise)) * wave, usd


def world(seed: int, *, effect: float = 0.15, pair: float = 0.02, noise: float = 0.0, drift: float = 0.0) -> TuneWorld:
    """A world by its seed. Choices of an axis are at least 3 % apart where they have an effect."""
    random = Random(seed)
    effects: dict[Settings, float] = {}
    for axis in AXES:
        steps = list(range(-5, 6))
        random.shuffle(steps)
        zero = steps.pop()  # of the profile as written
        for choice in axis.choices[1:]:
            effects[choice] = effect * (steps.pop() - zero) / 5
    some = [choice for axis in AXES for choice in axis.choices[1:]]
    pairs = {(random.choice(some), random.choice(some)): random.uniform(-pair, pair) for _ in range(4)}
    return TuneWorld(random, effects, pairs, noise=noise, drift=drift)


def every(axes: Sequence[Axis]) -> Iterator[Settings]:
    """Each cell of the full grid."""
    for choices in product(*(axis.choices for axis in axes)):
        settings: Settings = ()
        for axis, choice in zip(axes, choices, strict=True):
            settings = with_choice(settings, axis, choice)
        yield settings


def tune(at: TuneWorld, budget: SearchBudget = BUDGET) -> tuple[TuneVerdict, list[Trial]]:
    """The verdict of a tuning in a world, with its trials."""
    trials: list[Trial] = []
    while isinstance(step := decide(AXES, trials, budget), TuneStep):
        value, usd = at.measure(step.settings)
        trials.append(
            Trial(
                place=len(trials),
                stage=step.stage,
                settings=step.settings,
                number=step.number,
                value=value,
                usd=usd,
            )
        )
    return step, trials
