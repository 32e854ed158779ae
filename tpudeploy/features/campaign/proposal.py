"""Propose a campaign: its servers as sizing sees them, what cannot run and why, its lanes, its time and its cost."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tpudeploy import catalog, loading
from tpudeploy.config import codes
from tpudeploy.config.diagnose import problem, warning
from tpudeploy.config.document import unusable
from tpudeploy.domain.budget import HbmBudget, Unsized
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import Diagnostic, Location, errors_in
from tpudeploy.domain.errors import ConfigError, UsageError
from tpudeploy.features.accuracy.service import QuestionRequest, check_questions
from tpudeploy.features.benchmark.bench_operation import WINDOW
from tpudeploy.features.benchmark.cells import feasible
from tpudeploy.features.benchmark.offer import Point
from tpudeploy.features.benchmark.report.labels import labels, text_of
from tpudeploy.features.campaign import lanes
from tpudeploy.features.campaign.chip_limits import ChipLimits, QuotaOf, QuotaReading, read_quota
from tpudeploy.features.campaign.grid import CampaignGrid, Combination
from tpudeploy.features.campaign.lanes import CampaignLane, CampaignServer, CellTimes, LaneNeed, LaneTurn
from tpudeploy.features.campaign.measured import Measured
from tpudeploy.features.campaign.record import CampaignRecord
from tpudeploy.loading import Profile
from tpudeploy.node.compile_cache import program_key
from tpudeploy.reconcile import prices
from tpudeploy.reconcile.spend import seconds_beside_end
from tpudeploy.sizing.serve import ServingAnswer
from tpudeploy.text import words

_HOUR = 3600.0
_LABEL = "campaign"  # of each slice, and of its lines in the ledger
_QUOTA_HINT = "chips: N sets a limit of your own"
_CHECKED_BEFORE = ("model.id", "tpu.type")  # an obstacle is about these, where it is about no value of its own
# What a campaign decides for each of its deployments.
_OWN = (
    "replicas=1",
    "router=null",
    "scale=null",
    "lifecycle.update=in-place",
    "lifecycle.replace=destroy-before-create",
    "lifecycle.on_run_end=release",
    "lifecycle.prevent_destroy=false",
    "lifecycle.idle=null",
    "lifecycle.hours=null",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GridObstacle:
    """Why a combination cannot run. `at` is the value in the grid that it is about."""

    label: str
    why: str
    at: Location | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignPlan:
    """What a campaign will do: the turns that remain, in lanes, with what they need.

    `source` is the profile that every server is made of, as it was read then: `base` is its name, `profile` its text.
    `turns` are all that can run, measured or not. `cells` counts theirs, `cells_done` those that are measured, and
    `cells_failed` those of servers that failed before. `profiles` are by the keys of the servers. `spent` is what
    the campaign has cost so far, in USD.
    """

    grid: CampaignGrid
    source: Profile
    base: str
    profile: str
    turns: tuple[LaneTurn, ...]
    lanes: tuple[CampaignLane, ...]
    needs: Mapping[str, LaneNeed]
    times: CellTimes
    obstacles: tuple[GridObstacle, ...]
    diagnostics: tuple[Diagnostic, ...]
    profiles: Mapping[str, Profile]
    limits: ChipLimits
    cells: int
    cells_done: int
    cells_failed: int
    spent: float
    retries: bool = False

    @property
    def servers(self) -> tuple[CampaignServer, ...]:
        """The servers that can run, in the order of the grid's lanes."""
        return tuple({turn.server.key: turn.server for turn in self.turns}.values())

    @property
    def cells_left(self) -> int:
        return sum(len(turn.points) for lane in self.lanes for turn in lane.turns)

    @property
    def busy_lanes(self) -> tuple[CampaignLane, ...]:
        """The lanes that have something to measure."""
        return tuple(lane for lane in self.lanes if lane.turns)

    @property
    def seconds(self) -> float:
        """The likely seconds until all lanes are over, once their slices are granted."""
        return lanes.makespan(self.busy_lanes, self.times, self.limits)

    @property
    def likely_usd(self) -> float | None:
        return _sum(self.needs[lane.name].likely_usd for lane in self.busy_lanes)

    @property
    def most_usd(self) -> float | None:
        """The most that the campaign may still cost: what the budget has left, at most."""
        most, budget = _sum(self.needs[lane.name].most_usd for lane in self.busy_lanes), self.grid.spec.budget
        if budget is None:
            return most
        room = max(0.0, budget - self.spent)
        return room if most is None else min(most, room)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidate:
    """A combination with its profile and what sizing says of it. `why` it cannot run, or ""."""

    combination: Combination
    profile: Profile
    deployment: Deployment
    lane: str
    why: str
    about: str  # the path that `why` is about, or ""


def propose(
    grid: CampaignGrid,
    folder: Path,
    *,
    record: CampaignRecord | None,
    measured: Measured,
    spent: float,
    quota_of: QuotaOf,
    retries: bool = False,
    load: Callable[[Path], Profile] = Profile.load,
) -> CampaignPlan:
    """Return the plan of a grid whose base profile is relative to `folder`, without what is measured.

    Servers that failed before are left out too, unless it `retries`. `load` reads the base profile as far as its author
    is trusted. `quota_of` is as for `read_quota`, and called only where the grid has no `chips`.

    Raise `errors.ConfigError` for a base that cannot be used, for a value of the grid that no server can have, and
    where the likely cost or time is more than the budget or the end.
    """
    _check_accuracy(grid, folder)
    source = load(folder / grid.spec.base)
    sized = _sized_grid(grid, source)
    failures = {} if record is None or retries else record.failures

    def remaining_turns(lane: CampaignLane) -> tuple[LaneTurn, ...]:
        return tuple(_remaining(lane.turns, measured, failures))

    quota = _quota(grid, sized, [lane.name for lane in sized.lanes if remaining_turns(lane)], quota_of)
    sized = _within_quota(grid, sized, quota)
    every_lane = sized.lanes
    remaining = tuple(replace(lane, turns=remaining_turns(lane)) for lane in every_lane)
    turns, times = tuple(turn for lane in every_lane for turn in lane.turns), _cell_times(grid)
    cells, measured_count = _count(turns), sum(_measured_points(turn, measured) for turn in turns)
    plan = CampaignPlan(
        grid=grid,
        source=source,
        base=grid.spec.base,
        profile="" if source.reader is None else source.reader.read(str(folder / grid.spec.base)).decode(),
        turns=turns,
        lanes=remaining,
        needs={lane.name: lanes.need(lane, times) for lane in remaining},
        times=times,
        obstacles=sized.obstacles,
        diagnostics=sized.diagnostics,
        profiles=sized.profiles,
        limits=quota.limits,
        cells=cells,
        cells_done=measured_count,
        cells_failed=cells - measured_count - sum(_count(lane.turns) for lane in remaining),
        spent=spent,
        retries=retries,
    )
    _check_limits(plan)
    return plan


@dataclass(frozen=True, slots=True, kw_only=True)
class _SizedGrid:
    """A grid as sizing sees it: the lanes that can run, and what cannot."""

    lanes: tuple[CampaignLane, ...]
    obstacles: tuple[GridObstacle, ...]
    diagnostics: tuple[Diagnostic, ...]
    profiles: Mapping[str, Profile]
    deployments: Mapping[str, Deployment]  # one of each lane, by its name


def _sized_grid(grid: CampaignGrid, base: Profile) -> _SizedGrid:
    names = labels([each.values for each in grid.combinations])
    by_values = {each.id: label for each, label in zip(grid.combinations, names, strict=True)}
    candidates, obstacles = _sized(grid, base, by_values)
    servers = {each.combination.id: _server(each, grid, by_values[each.combination.id]) for each in candidates}
    able = [each for each in candidates if not each.why and servers[each.combination.id].points]
    obstacles += [_obstacle(each, by_values, servers[each.combination.id]) for each in candidates if each not in able]
    every_lane, notes = _lanes(grid, able, servers)
    obstacles += [each for lane in every_lane for each in _lane_obstacles(grid, lane)]
    return _SizedGrid(
        lanes=tuple(lane for lane in every_lane if not _why_never(grid, lane)),
        obstacles=tuple(dict.fromkeys(obstacles)),
        diagnostics=(*notes, *_unsized(able, by_values)),
        profiles={servers[each.combination.id].key: each.profile for each in able},
        deployments={each.lane: each.deployment for each in able},
    )


def _quota(grid: CampaignGrid, sized: _SizedGrid, busy: Iterable[str], quota_of: QuotaOf) -> QuotaReading:
    """Return the limit that the grid names, else Google's for the lanes that have something to measure."""
    if grid.spec.chips is not None:
        return QuotaReading(limits=ChipLimits(together=grid.spec.chips), most={})
    return read_quota({name: sized.deployments[name] for name in busy}, quota_of)


def _within_quota(grid: CampaignGrid, sized: _SizedGrid, quota: QuotaReading) -> _SizedGrid:
    """Return the grid without the lanes whose slice no place has the quota for, and with what is not known."""
    small = {lane.name for lane in sized.lanes if lane.chips > quota.most.get(lane.name, lane.chips)}
    at = grid.value_at("slices") if grid.spec.slices else grid.at("name")
    obstacles = [
        GridObstacle(label=label, why=_over_quota(lane, quota.most[lane.name]), at=at)
        for lane in sized.lanes
        if lane.name in small
        for label in dict.fromkeys(turn.server.label for turn in lane.turns)
    ]
    notes = [
        warning(codes.OUT_OF_RANGE, f"Google's quota is unknown, so it limits no lane: {why}", at, hint=_QUOTA_HINT)
        for why in quota.unknown
    ]
    return replace(
        sized,
        lanes=tuple(lane for lane in sized.lanes if lane.name not in small),
        obstacles=(*sized.obstacles, *obstacles),
        diagnostics=(*sized.diagnostics, *notes),
    )


def _over_quota(lane: CampaignLane, most: int) -> str:
    return f"{lane.type} has {lane.chips} chips, and Google's quota is {most} (`chips` sets a limit of your own)"


def _cell_times(grid: CampaignGrid) -> CellTimes:
    window = grid.spec.cells.window
    return CellTimes(
        window=WINDOW if window is None else float(window),
        is_whole=window is not None,
        asks=grid.spec.accuracy is not None,
    )


def _count(turns: Iterable[LaneTurn]) -> int:
    return sum(len(turn.points) for turn in turns)


def _measured_points(turn: LaneTurn, measured: Measured) -> int:
    cells = measured.get((turn.server.key, turn.repeat), {})
    return sum(point in cells for point in turn.points)


def lane_profile(profile: Profile, end: str) -> Profile:
    """Return a server's profile with the end of its slice."""
    return profile.with_settings([f"lifecycle.end={end}"])


def _sized(
    grid: CampaignGrid, base: Profile, by_values: Mapping[str, str]
) -> tuple[list[_Candidate], list[GridObstacle]]:
    """Return what can be loaded, and an obstacle for each combination whose values do not go together.

    Raise `errors.ConfigError` for a value with which no combination is a profile: that is a misspelt one.
    """
    lane_names = _lane_names(grid, base)
    candidates: list[_Candidate] = []
    failures: dict[str, tuple[Diagnostic, ...]] = {}
    for number, combination in enumerate(grid.combinations):
        lane = lane_names[combination.slice_values]
        try:
            candidates.append(_candidate(combination, base, lane, grid.spec.name))
        except ConfigError as error:
            failures[combination.id] = error.problems
        if number == 0 and candidates:
            _check_least(grid, candidates[0])
    problems = list(_wrong_values(grid, failures))
    if problems:
        raise unusable(grid.file, problems)
    invalid_ones = [(each, failures[each.id][0]) for each in grid.combinations if each.id in failures]
    obstacles = [
        GridObstacle(label=by_values[each.id], why=first.message, at=each.places.get(first.path) or _place(each))
        for each, first in invalid_ones
    ]
    return candidates, obstacles


def _candidate(combination: Combination, base: Profile, lane: str, campaign: str) -> _Candidate:
    """Return a combination as it would be deployed. Raise `errors.ConfigError`."""
    naming = [f"name={lane}", f"placement.labels.{_LABEL}={campaign}"]
    profile = base.with_settings([*combination.settings, *_OWN, *naming])
    deployment, diagnostics = loading.checked(profile)
    budget = deployment.budget
    errors = errors_in(diagnostics)
    why, about = "", ""
    if errors:
        why, about = errors[0].message, errors[0].path
    elif isinstance(budget, HbmBudget | Unsized) and budget.fits is False:
        why = budget.because if isinstance(budget, Unsized) else "its weights and one request do not fit"
    return _Candidate(combination=combination, profile=profile, deployment=deployment, lane=lane, why=why, about=about)


def _server(candidate: _Candidate, grid: CampaignGrid, label: str) -> CampaignServer:
    deployment, spec = candidate.deployment, candidate.profile
    budget = deployment.budget
    start = budget.start if isinstance(budget, HbmBudget) else None
    able: list[Point] = []
    impossible: list[tuple[Point, str]] = []
    for point in grid.points:
        verdict = feasible(point, budget, {})
        if verdict is not None and verdict.service is ServingAnswer.REFUSED:
            impossible.append((point, verdict.why))
        else:
            able.append(point)
    return CampaignServer(
        key=lanes.server_key(deployment.attributes),
        label=label,
        values=candidate.combination.values,
        lane=candidate.lane,
        model=deployment.model_id,
        type=deployment.accelerator.name,
        programs=f"{spec.serving.image} {program_key(spec, deployment.container, deployment.accelerator)}",
        cold_seconds=None if start is None else start.cold_seconds,
        warm_seconds=None if start is None else start.warm_seconds,
        points=tuple(able),
        impossible=tuple(impossible),
    )


def _obstacle(candidate: _Candidate, by_values: Mapping[str, str], server: CampaignServer) -> GridObstacle:
    why = candidate.why or f"no load fits: {server.impossible[0][1]}"
    places = candidate.combination.places
    at = places.get(candidate.about) or _place(candidate.combination)
    return GridObstacle(label=by_values[candidate.combination.id], why=why, at=at)


def _place(combination: Combination) -> Location | None:
    """Return the value of the grid that says most about a combination: its model, its slice, or its first."""
    places = combination.places
    best = next((places[path] for path in _CHECKED_BEFORE if path in places), None)
    return best or next(iter(places.values()), None)


def _lanes(
    grid: CampaignGrid, able: Sequence[_Candidate], servers: Mapping[str, CampaignServer]
) -> tuple[tuple[CampaignLane, ...], list[Diagnostic]]:
    """Return the lanes, and a warning for each combination that is the same server as an earlier one."""
    notes: list[Diagnostic] = []
    first: dict[str, CampaignServer] = {}
    by_lane: dict[str, list[_Candidate]] = {}
    for each in able:
        server = servers[each.combination.id]
        if server.key in first:
            message = f"{server.label} is the same server as {first[server.key].label}: it is measured once"
            notes.append(warning(codes.OUT_OF_RANGE, message, _place(each.combination)))
            continue
        first[server.key] = server
        by_lane.setdefault(each.lane, []).append(each)
    all_lanes = tuple(
        CampaignLane(
            name=name,
            type=own[0].deployment.accelerator.name,
            generation=own[0].deployment.accelerator.generation,
            chips=own[0].deployment.accelerator.chips,
            usd_per_hour=_first_price(own[0].deployment),
            usd_per_hour_most=prices.dearest_usd_per_hour(own[0].deployment, own[0].deployment.candidates),
            before_serving=seconds_beside_end(own[0].deployment.health.timeout_seconds),
            turns=lanes.turns([servers[each.combination.id] for each in own], grid.spec.cells.repeats),
        )
        for name, own in by_lane.items()
    )
    return all_lanes, notes


def _lane_names(grid: CampaignGrid, base: Profile) -> Mapping[tuple[tuple[str, str], ...], str]:
    """Return the name of the deployment for each set of values that needs a slice of its own."""
    names: dict[tuple[tuple[str, str], ...], str] = {}
    for combination in grid.combinations:
        if combination.slice_values in names:
            continue
        slice_type = text_of(combination.values.get("tpu.type")) if "tpu.type" in combination.values else base.tpu.type
        name = re.sub("[^a-z0-9-]", "-", f"{grid.spec.name}-{slice_type or 'slice'}".lower())[:37].rstrip("-")
        same = sum(each == name or each.startswith(f"{name}-x") for each in names.values())
        names[combination.slice_values] = f"{name}-x{same + 1}" if same else name
    return names


def _lane_obstacles(grid: CampaignGrid, lane: CampaignLane) -> Iterator[GridObstacle]:
    """Yield an obstacle for each server of a lane that can never start."""
    if never := _why_never(grid, lane):
        key, why = never
        at = grid.value_at(key)
        labels_of_lane = dict.fromkeys(turn.server.label for turn in lane.turns)
        yield from (GridObstacle(label=label, why=why, at=at) for label in labels_of_lane)


def _why_never(grid: CampaignGrid, lane: CampaignLane) -> tuple[str, str] | None:
    """Return the key of the grid by which a lane can never start, and why; None if it can."""
    chips, budget = grid.spec.chips, grid.spec.budget
    if chips is not None and lane.chips > chips:
        return "chips", f"{lane.type} has {lane.chips} chips, and `chips` is {chips}"
    if budget is not None and lane.usd_per_hour_most is None:
        why = f"some places of {lane.type} have no known price, so no budget holds it; name others in placement.zones"
        return "budget", why
    return None


def _remaining(turns: Iterable[LaneTurn], measured: Measured, failures: Mapping[str, str]) -> Iterator[LaneTurn]:
    """Yield the turns with the loads that are not measured yet. A server that failed is not tried again."""
    for turn in turns:
        cells = measured.get((turn.server.key, turn.repeat), {})
        points = tuple(point for point in turn.points if point not in cells)
        if points and turn.server.key not in failures:
            yield replace(turn, points=points)


def _wrong_values(grid: CampaignGrid, failures: Mapping[str, Sequence[Diagnostic]]) -> Iterator[Diagnostic]:
    """Yield a problem for each value with which no combination is valid, at its place; an unknown key at its own."""
    for axis in grid.axes:
        for value, place in zip(axis.values, axis.places, strict=True):
            own = [each for each in grid.combinations if text_of(each.values[axis.path]) == text_of(value)]
            reasons = [next((d for d in failures.get(each.id, ()) if _is_about(d, axis.path)), None) for each in own]
            if own and all(reasons):
                first = next(each for each in reasons if each is not None)
                is_key = first.code == codes.UNKNOWN_KEY
                at = axis.at if is_key else place
                yield problem(first.code, first.message, at, path=(axis.path,), hint=first.hint)


def _is_about(diagnostic: Diagnostic, path: str) -> bool:
    """Return whether a diagnostic is about the value at a path, or about what is in it or around it."""
    own = diagnostic.path
    return bool(own) and (own == path or own.startswith(f"{path}.") or path.startswith(f"{own}."))


def _check_least(grid: CampaignGrid, first: _Candidate) -> None:
    """Raise `errors.ConfigError` for a grid that no order and no luck brings below its budget.

    It is looked at before thousands of servers are sized, and by the windows of the cells alone.
    """
    spec, cells = grid.spec, grid.spec.cells
    chip_prices = [each.usd_per_chip_hour for each in first.deployment.candidates if each.usd_per_chip_hour]
    if spec.budget is None or not chip_prices:
        return
    types = [catalog.accelerator_type(name) for name in spec.slices] or [first.deployment.accelerator]
    chips = min((each.chips for each in types if each is not None), default=1)
    count = len(grid.combinations) * len(grid.points) * cells.repeats
    window = 0.0 if cells.window is None else float(cells.window)
    least = count * max(window, 1.0) / _HOUR * min(chip_prices) * chips / 2
    if least > spec.budget:
        raise _over_budget(grid, count, least, "at least ")


def _check_accuracy(grid: CampaignGrid, folder: Path) -> None:
    """Raise `errors.ConfigError` for questions that cannot be read, which no server has to run for."""
    if grid.spec.accuracy is not None:
        try:
            check_questions(QuestionRequest(source=grid.spec.accuracy, folder=folder))
        except UsageError as error:
            hint = error.hint or "accuracy: arithmetic, lm_eval:TASK, or a JSONL file beside the grid"
            at = grid.value_at("accuracy")
            raise unusable(grid.file, [problem(codes.OUT_OF_RANGE, error.message, at, hint=hint)]) from error


def _check_limits(plan: CampaignPlan) -> None:
    """Raise `errors.ConfigError` where no cell can run, or what remains is likely to exceed the budget or the end."""
    if not plan.cells and plan.obstacles:
        first = plan.obstacles[0]
        message = f"No cell of the grid can run: {first.label}: {first.why}"
        raise unusable(plan.grid.file, [problem(codes.OUT_OF_RANGE, message, first.at)])
    spec, usd = plan.grid.spec, plan.likely_usd
    if spec.budget is not None and usd is not None and plan.spent + usd > spec.budget:
        raise _over_budget(plan.grid, plan.cells_left, usd, "about ", plan.spent)
    if plan.seconds > float(spec.end):
        hours = words.duration(plan.seconds)
        message = f"The {plan.cells_left:,} cells take about {hours}, and the campaign ends after {spec.end.text}"
        at = plan.grid.value_at("end")
        raise unusable(
            plan.grid.file, [problem(codes.OUT_OF_RANGE, message, at, hint="measure fewer cells, or end later")]
        )


def _over_budget(grid: CampaignGrid, cells: int, usd: float, about: str, spent: float = 0.0) -> ConfigError:
    before = f", ${spent:.2f} is spent" if spent else ""
    message = f"{cells:,} cells cost {about}${usd:,.2f}{before}, and the budget is ${grid.spec.budget:,.2f}"
    hint = "measure fewer cells, or allow more"
    return unusable(grid.file, [problem(codes.OUT_OF_RANGE, message, grid.value_at("budget"), hint=hint)])


def _unsized(able: Iterable[_Candidate], by_values: Mapping[str, str]) -> Iterator[Diagnostic]:
    """Yield a warning for each server that sizing knows too little about."""
    for each in able:
        budget = each.deployment.budget
        if isinstance(budget, Unsized):
            label = by_values[each.combination.id]
            message = f"{label} cannot be sized, because {budget.because}: it may not start, and its time is a guess"
            yield warning(codes.OUT_OF_RANGE, message, _place(each.combination))


def _first_price(deployment: Deployment) -> float | None:
    costs = (prices.usd_per_hour_at(deployment, candidate) for candidate in deployment.candidates)
    return next((price for price in costs if price is not None), None)


def _sum(usd: Iterable[float | None]) -> float | None:
    values = list(usd)
    return None if None in values else sum(price for price in values if price is not None)
