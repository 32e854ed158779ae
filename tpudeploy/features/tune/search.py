"""The search of a tuning: which settings to measure next, which can still win, and what can be claimed. It is pure.

One axis after the other, alternatives race against the best settings so far (successive halving: Jamieson and
Talwalkar, Non-stochastic best arm identification, 2016). Each is measured beside a fresh measurement of the best, so a
slow drift of the machine favours none. The worse half drops out, with all that cannot win, and the rest is repeated. A
second pass repeats only what could win by the first one's estimates. A grid measures the product of all axes, a race
their sum.

The best of many noisy figures looks better than it is. So the claim rests on measurements of its own: the winner in
turns with the profile as it is written, A B A B … A, by the interval of an A/B. No figure of the race counts there.

The search is replayed from all measurements at each step, so a killed tuning continues where it ended, and one with
more money where it stopped.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum, StrEnum
from math import expm1, log, sqrt
from statistics import fmean
from typing import NamedTuple, TypeAlias

from tpudeploy.features.ab_test.effect import RepeatFigure, effect, finding
from tpudeploy.features.ab_test.experiment import AbFinding, MeasuredEffect
from tpudeploy.features.benchmark.run import Side

Settings: TypeAlias = tuple[tuple[str, str], ...]  # (path, value) as in `--set`, sorted; () is the profile as written

CONFIRM = "confirm"
_ROUNDS = 2
_REPEATS = 3  # measurements of an alternative in a race, at most
_MARGIN = 0.01  # a smaller gain is not worth a line in the overlay
_NOISE = 0.01  # of one measurement, until repeats show more
_REACH = 2.0  # standard errors: what lies beyond cannot win
_STILL = 0.06  # of the best: an alternative that was further behind is not raced again
_PAIRS, FEWEST_PAIRS = 4, 2  # of the winner with the profile as written
_CENT = 1e-6  # USD: a rounding error


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """Alternatives that exclude each other. Each sets the same paths; () among them is the profile as written.

    With `recompiles`, a server that starts with another one has programs to compile.
    """

    name: str
    choices: tuple[Settings, ...]
    recompiles: bool = True

    @property
    def paths(self) -> frozenset[str]:
        return frozenset(path for choice in self.choices for path, _ in choice)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One measurement. `value` is the objective, more is better; None for settings that break a limit or cannot run.

    `stage` is the race that it is for, `number` counts the measurements of these settings there from 0. `run` is the id
    of the benchmark run, "" of one that was not needed.
    """

    place: int
    stage: str
    settings: Settings
    number: int
    value: float | None
    usd: float = 0.0
    why: str = ""
    run: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchBudget:
    """The most that a tuning may cost, and the cost of a measurement after a cold start and a warm one, in USD."""

    limit: float | None = None
    cold: float = 0.0
    warm: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneStep:
    """The next measurement."""

    stage: str
    settings: Settings
    number: int


class StopReason(StrEnum):
    """Why a search has ended."""

    DECIDED = "no other settings can win"
    MONEY = "the next measurement would cost more than is left"


class ClaimFinding(StrEnum):
    """The result of a tuning."""

    BETTER = "better"
    NONE = "no better settings"  # the race has found none
    UNPROVEN = "not proven"  # the measurements of its own do not show that the winner is better
    UNTESTED = "not confirmed"  # there was too little money for them
    MEETS = "meets the limits"  # the profile as it is written does not


@dataclass(frozen=True, slots=True, kw_only=True)
class RaceEvidence:
    """The result of a race: its winning choice, by how much, over how many pairs. An estimate, not a claim.

    `change` is None for a choice within the limits beside settings that broke them.
    """

    axis: str
    choice: Settings
    change: float | None
    pairs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneVerdict:
    """The end of a search. `effect` is the winner's against the profile as written, None where nothing was compared."""

    winner: Settings
    finding: ClaimFinding
    stop: StopReason
    effect: MeasuredEffect | None = None
    evidence: tuple[RaceEvidence, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRequest:
    """A measurement that a search waits for. `is_claim`: it is for the claim, for which money was put aside."""

    step: TuneStep
    is_claim: bool = False


class OutOfMoney(Exception):
    """Ends the race: the next measurement would leave too little for the claim."""


_Search: TypeAlias = Generator[TrialRequest, Trial, TuneVerdict]


class _Standing(IntEnum):
    """How settings stand beside the best ones, the worst first."""

    BREAKS_LIMIT = 0
    BOTH_WITHIN = 1
    BEST_BREAKS_LIMIT = 2


class _Score(NamedTuple):
    """A pair of measurements, or several, ordered. `gain` is the logarithm of the ratio to the best.

    It is that of the value alone where the best broke a limit, and 0 where the settings did.
    """

    standing: _Standing
    gain: float

    def plus(self, gain: float) -> _Score:
        return self._replace(gain=self.gain + gain)


_WORTH_A_LINE = _Score(_Standing.BOTH_WITHIN, _MARGIN)
_BARELY_ALIVE = _Score(_Standing.BOTH_WITHIN, -_STILL)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Race:
    """The state of the search between two races. `behind` are scores beside the best, by axis and choice."""

    best: Settings = ()
    evidence: Mapping[str, RaceEvidence] = field(default_factory=dict)
    behind: Mapping[tuple[str, Settings], _Score] = field(default_factory=dict)
    scatter: tuple[float, ...] = ()


def decide(axes: Sequence[Axis], trials: Sequence[Trial], budget: SearchBudget) -> TuneStep | TuneVerdict:
    """Return the next measurement, or the end: what was found by these trials within this budget."""
    book = {(trial.stage, trial.settings, trial.number): trial for trial in trials}
    search = _search(tuple(sorted(axes, key=lambda axis: axis.recompiles)), trials, budget)
    try:
        request = next(search)
        while True:
            step = request.step
            trial = book.get((step.stage, step.settings, step.number))
            if trial is not None:
                request = search.send(trial)
            elif _affords(step.settings, trials, budget, is_claim=request.is_claim):
                return step
            else:
                request = search.throw(OutOfMoney)
    except StopIteration as end:
        verdict: TuneVerdict = end.value
        return verdict


def with_choice(settings: Settings, axis: Axis, choice: Settings) -> Settings:
    """Return the settings with another choice on one axis."""
    others = [pair for pair in settings if pair[0] not in axis.paths]
    return tuple(sorted((*others, *choice)))


def least_usd(budget: SearchBudget) -> float:
    """Return what one alternative costs, beside the profile, with the comparison that a claim takes."""
    return budget.cold + (2 * FEWEST_PAIRS + 2) * budget.warm


def spent(trials: Iterable[Trial]) -> float:
    return sum(trial.usd for trial in trials)


def _affords(settings: Settings, trials: Sequence[Trial], budget: SearchBudget, *, is_claim: bool) -> bool:
    """Return whether the money is there for a measurement; in a race, also for the claim."""
    if budget.limit is None:
        return True
    is_new = all(trial.settings != settings for trial in trials)
    reserve = 0.0 if is_claim else (2 * FEWEST_PAIRS + 1) * budget.warm
    return spent(trials) + (budget.cold if is_new else budget.warm) + reserve <= budget.limit + _CENT


def _search(axes: Sequence[Axis], trials: Sequence[Trial], budget: SearchBudget) -> _Search:
    race, stop = _Race(), StopReason.DECIDED
    for round_ in range(_ROUNDS):
        before = race.best
        for axis in axes:
            try:
                race = yield from _race_axis(axis, race, round_)
            except OutOfMoney:
                stop = StopReason.MONEY
                break
        if race.best == before or stop is StopReason.MONEY:
            break
    evidence = tuple(each for each in race.evidence.values() if set(each.choice) <= set(race.best) and each.choice)
    if not race.best:
        return TuneVerdict(winner=(), finding=ClaimFinding.NONE, stop=stop)
    claim, measured_effect = yield from _confirm(race.best, trials, budget)
    return TuneVerdict(winner=race.best, finding=claim, stop=stop, effect=measured_effect, evidence=evidence)


def _race_axis(axis: Axis, race: _Race, round_: int) -> Generator[TrialRequest, Trial, _Race]:
    """Race the alternatives of one axis against the best settings so far, and return what is best then."""
    rivals = {with_choice(race.best, axis, choice): choice for choice in axis.choices}
    rivals.pop(race.best, None)
    if round_:
        alive = _Score(_Standing.BOTH_WITHIN, 0.0)
        scores_before = {arm: race.behind.get((axis.name, choice), alive) for arm, choice in rivals.items()}
        rivals = {arm: choice for arm, choice in rivals.items() if scores_before[arm] > _BARELY_ALIVE}
    scores = yield from _heats(f"{round_ + 1} {axis.name}", race, rivals)
    return _after(axis, race, rivals, scores)


def _heats(
    stage: str, race: _Race, rivals: Iterable[Settings]
) -> Generator[TrialRequest, Trial, Mapping[Settings, list[_Score]]]:
    """Measure each rival beside the best settings, as often as it can still win. Return the scores."""
    scores: dict[Settings, list[_Score]] = {arm: [] for arm in rivals}
    active = list(scores)
    for number in range(_REPEATS):
        if not active:
            break
        reference = yield TrialRequest(step=TuneStep(stage=stage, settings=race.best, number=number))
        for arm in active:
            trial = yield TrialRequest(step=TuneStep(stage=stage, settings=arm, number=number))
            scores[arm].append(_score(trial.value, reference.value))
        active = _still_racing(active, scores, _noise(race.scatter, scores))
    return {arm: values for arm, values in scores.items() if values}


def _after(
    axis: Axis, race: _Race, rivals: Mapping[Settings, Settings], scores: Mapping[Settings, Sequence[_Score]]
) -> _Race:
    """Return the state of the search after a race."""
    scatter = (*race.scatter, *_deviations(scores))
    estimates = {arm: _estimate(values) for arm, values in scores.items()}
    winner = max(estimates, key=lambda arm: estimates[arm], default=None)
    if winner is None or estimates[winner] <= _WORTH_A_LINE:
        behind = {**race.behind, **{(axis.name, rivals[arm]): estimate for arm, estimate in estimates.items()}}
        return replace(race, behind=behind, scatter=scatter)
    gain = estimates[winner]
    # What was behind the old best is further behind the new one.
    behind = {**race.behind, **{(axis.name, rivals[arm]): _beside(each, gain) for arm, each in estimates.items()}}
    change = expm1(gain.gain) if gain.standing is _Standing.BOTH_WITHIN else None
    own = RaceEvidence(axis=axis.name, choice=rivals[winner], change=change, pairs=len(scores[winner]))
    return _Race(best=winner, evidence={**race.evidence, axis.name: own}, behind=behind, scatter=scatter)


def _beside(score: _Score, best: _Score) -> _Score:
    """Return the score beside settings that have become the best."""
    if score.standing is best.standing:
        return _Score(_Standing.BOTH_WITHIN, score.gain - best.gain)
    return _Score(_Standing.BREAKS_LIMIT, 0.0)


def _estimate(scores: Sequence[_Score]) -> _Score:
    """Return the score over several pairs. Settings that break a limit once break it."""
    standings = {each.standing for each in scores}
    standing = _Standing.BREAKS_LIMIT if _Standing.BREAKS_LIMIT in standings else max(standings)
    return _Score(standing, fmean(each.gain for each in scores if each.standing is standing))


def _still_racing(
    active: Sequence[Settings], scores: Mapping[Settings, Sequence[_Score]], noise: float
) -> list[Settings]:
    """Return what is measured again: the better half of the alternatives that can still win, unless one has won."""
    reach = {arm: _REACH * noise / sqrt(len(scores[arm])) for arm in active}
    estimates = {arm: _estimate(scores[arm]) for arm in active}
    surest = max(_WORTH_A_LINE, *(estimates[arm].plus(-reach[arm]) for arm in active))
    possible = [arm for arm in active if estimates[arm].plus(reach[arm]) > surest]
    possible.sort(key=lambda arm: estimates[arm], reverse=True)
    if len(possible) == 1 and estimates[possible[0]].plus(-reach[possible[0]]) > _WORTH_A_LINE:
        return []  # it has won, and beaten the best so far
    return possible[: max(1, -(-len(active) // 2))]


def _score(value: float | None, reference: float | None) -> _Score:
    if value is None:
        return _Score(_Standing.BREAKS_LIMIT, 0.0)
    if reference is None:
        return _Score(_Standing.BEST_BREAKS_LIMIT, log(value))
    return _Score(_Standing.BOTH_WITHIN, log(value / reference))


def _noise(scatter: Sequence[float], scores: Mapping[Settings, Sequence[_Score]]) -> float:
    """Return the standard deviation of one pair: what repeats show, and no less than is usual."""
    every = [*scatter, *_deviations(scores)]
    return max(_NOISE, sqrt(fmean(each * each for each in every)) if every else 0.0) * sqrt(2)


def _deviations(scores: Mapping[Settings, Sequence[_Score]]) -> list[float]:
    """Return how far repeats are from their means."""
    deviations: list[float] = []
    for values in scores.values():
        for standing in (_Standing.BOTH_WITHIN, _Standing.BEST_BREAKS_LIMIT):
            gains = [each.gain for each in values if each.standing is standing]
            deviations += [gain - fmean(gains) for gain in gains if len(gains) > 1]
    return deviations


def _confirm(
    winner: Settings, trials: Sequence[Trial], budget: SearchBudget
) -> Generator[TrialRequest, Trial, tuple[ClaimFinding, MeasuredEffect | None]]:
    """Compare the winner with the profile as written by measurements of their own."""
    stage = f"{CONFIRM} {' '.join('='.join(pair) for pair in winner)}"
    pairs = _affordable_pairs(stage, trials, budget)
    if pairs < FEWEST_PAIRS:
        return ClaimFinding.UNTESTED, None
    figures: list[RepeatFigure] = []
    is_within = {Side.A: True, Side.B: True}
    for place in range(2 * pairs + 1):
        side = Side.B if place % 2 else Side.A
        settings = winner if side is Side.B else ()
        try:
            trial = yield TrialRequest(step=TuneStep(stage=stage, settings=settings, number=place // 2), is_claim=True)
        except OutOfMoney:  # measurements took longer than predicted
            return ClaimFinding.UNTESTED, None
        if trial.value is None:
            is_within[side] = False
        else:
            figures.append(RepeatFigure(side=side, place=trial.place, value=trial.value))
    if not is_within[Side.B]:
        return ClaimFinding.UNPROVEN, None
    if not is_within[Side.A]:
        return ClaimFinding.MEETS, None
    result = effect(figures)
    is_better = result is not None and finding(result) is AbFinding.BETTER
    return (ClaimFinding.BETTER if is_better else ClaimFinding.UNPROVEN), result


def _affordable_pairs(stage: str, trials: Sequence[Trial], budget: SearchBudget) -> int:
    """Return how many pairs were affordable when the comparison began."""
    if budget.limit is None or not budget.warm:
        return _PAIRS
    left = budget.limit - spent(trial for trial in trials if trial.stage != stage)
    return min(_PAIRS, (int(left / budget.warm + _CENT) - 1) // 2)
