"""Recommendation of a slice for a workload: measured runs, cheapest first, or else slices with enough memory.

Without a run, everything that a profile may change freely is varied (`tpudeploy.sizing.search`): slice, generation,
split, utilization, type of the KV cache. The workload decides the length.

Why: decisions 37 and 93 in docs/decisions.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from tpudeploy import catalog
from tpudeploy.catalog.engines import figures_of
from tpudeploy.domain.accelerator import DEFAULT_BACKEND, AcceleratorType
from tpudeploy.domain.budget import HbmBudget
from tpudeploy.domain.deployment import Deployment, Json
from tpudeploy.domain.diagnostics import Severity
from tpudeploy.domain.serialization import to_json
from tpudeploy.features.benchmark.recommendation import HOURS_PER_MONTH, Basis, Choice, Recommendation, Workload
from tpudeploy.features.benchmark.run import Cell, Driver, Run, Spread
from tpudeploy.reconcile import prices
from tpudeploy.sizing.checks import check
from tpudeploy.sizing.checks.machine import boot_disk_gib
from tpudeploy.sizing.search import STAGES_KEY, SizingRemedy, budget_with, host_stages, splits, tunings
from tpudeploy.sizing.serve import ServingAnswer, ServingCapacity, can_serve
from tpudeploy.sizing.sweep import fault

_LENGTH_STEP = 1_024
_EMULATED = "it was measured on the emulator, where no model runs (--emulated accepts it)"
_ENGINE_SETTINGS = ("tensor_parallel_size", "data_parallel_size", "max_model_len")
_STAGES = f"serving.{STAGES_KEY}"
_HOUR, _MILLION = 3600.0, 1e6
TTFT, RATE = "the time to the first token", "tokens per second"  # names of what may be unknown

# The deployment of the profile with these settings on top, or the first problem of such a profile.
DeploymentWith = Callable[[Mapping[str, Json]], Deployment | str]


def recommend(
    deployment: Deployment,
    workload: Workload,
    runs: Iterable[Run],
    deployment_with: DeploymentWith,
    *,
    takes_emulated: bool = False,
) -> Recommendation:
    """Return the choices for the deployment's model; its other settings stay unless they are in the way.

    Runs on the emulator are evidence only with `takes_emulated`, because no TPU ran there. Published tables are never
    evidence. If a run of this project serves the workload, the size model is not used; beside others' tables, it is.
    """
    choices, refused = [], []
    for run in runs:
        if run.subject.model_id != deployment.model_id or not run.subject.chips:
            continue
        is_refused = run.subject.is_emulated and not takes_emulated
        choice = _EMULATED if is_refused else _measured_choice(run, workload, deployment, deployment_with)
        if isinstance(choice, str):
            refused.append(f"run {run.id} on {run.subject.hardware}: {choice}")
        else:
            choices.append(choice)
    if not any(choice.basis is Basis.MEASURED for choice in choices):
        sized_choices, refused_sizes = _sized_choices(deployment, workload, deployment_with)
        choices += sized_choices
        refused += refused_sizes
    # Of equal rank, what was found first: the splits of a slice come best first.
    choices.sort(key=lambda choice: choice.rank)
    is_sized = isinstance(deployment.budget, HbmBudget)
    return Recommendation(workload=workload, choices=tuple(choices), refused=tuple(refused), is_sized=is_sized)


def _measured_choice(
    run: Run, workload: Workload, deployment: Deployment, deployment_with: DeploymentWith
) -> Choice | str:
    """Return the choice that a run supports, or why it supports none."""
    cells = [cell for cell in run.cells if _covers(cell, workload)]
    if not cells:
        return _why_uncovered(run)
    cell = min(cells, key=lambda cell: cell.point.sizes)
    ttft = cell.ttft_seconds
    slow = "" if workload.ttft_seconds is None else _why_slow(ttft, workload.ttft_seconds)
    if slow:
        return slow
    cost = _cost_of_run(run, workload, deployment, deployment_with)
    if isinstance(cost, str):
        return cost
    settings = _accepted_settings(run, cost, workload, deployment, deployment_with)
    if isinstance(settings, str):
        return settings
    streams, context, output = cell.point.sizes
    why = f"measured at {streams:,} streams of {context:,} tokens in and {output:,} out"
    return Choice(
        settings=settings,
        accelerator_type=run.subject.accelerator_type,
        usd_per_month=cost.usd_per_month,
        unknown_prices=cost.unknown_prices,
        why=why if ttft is None else f"{why}: the first token within {_first_token(ttft)}",
        run=run.id,
        cell=cell,
        is_emulated=run.subject.is_emulated,
        basis=Basis.BY_OTHERS if run.driver.is_of_others else Basis.MEASURED,
        source=_source(run),
        usd_per_million_output_tokens=_usd_per_million(cell, cost.usd_per_month),
        unknown=tuple(_unknown(cell, cost.usd_per_month)),
        is_checked=workload.ttft_seconds is None or (ttft is not None and ttft.p95 is not None),
    )


def _usd_per_million(cell: Cell, usd_per_month: float | None) -> float | None:
    """Return the cost of a million output tokens at the rate of a cell, None where rate or price is unknown."""
    rate = None if cell.figures is None else cell.figures.output_tokens_per_second
    if not rate or usd_per_month is None:
        return None
    return usd_per_month / HOURS_PER_MONTH / _HOUR / rate * _MILLION


def _unknown(cell: Cell, usd_per_month: float | None) -> Iterator[str]:
    """Yield what a measurement doesn't say."""
    if cell.ttft_seconds is None:
        yield TTFT
    elif cell.ttft_seconds.p95 is None:
        yield f"the 95th percentile of {TTFT}"
    if cell.figures is None or not cell.figures.output_tokens_per_second:
        yield RATE
    if usd_per_month is None:
        yield "the price"


def _why_uncovered(run: Run) -> str:
    sizes = [(cell.point.context_tokens, cell.point.output_tokens) for cell in run.cells if cell.is_trusted]
    if sizes and all(None in pair for pair in sizes):
        return "it does not say how long its prompts and answers were (`bench import --context N` does)"
    return "it has no trusted cell with that many streams of that length"


def _why_slow(ttft: Spread | None, limit: float) -> str:
    if ttft is None:
        return "it does not have the time to the first token"
    return f"the first token takes {_first_token(ttft)}" if ttft.tail > limit else ""


def _first_token(ttft: Spread) -> str:
    return f"{ttft.tail:.3g} s" if ttft.p95 is not None else f"{ttft.tail:.3g} s on average"


def _source(run: Run) -> str:
    day = datetime.fromtimestamp(run.began_at, UTC).strftime("%-d %b %Y")
    if run.driver.is_of_others:
        return f"{run.source.partition(';')[0]}, imported {day}"
    by = "measured" if run.driver is Driver.TPUDEPLOY or not run.source else f"imported from {run.source}"
    return f"run {run.id}, {by} {day}"


def _cost_of_run(run: Run, workload: Workload, deployment: Deployment, deployment_with: DeploymentWith) -> _Cost | str:
    """Return what a run's slice costs, and what keeps its profile within the budget; or why that is impossible.

    What was paid counts, and the list price where that is unknown. Other places than the run's may grant a slice too.
    """
    paid = run.subject.usd_per_hour
    month = None if paid is None else paid * HOURS_PER_MONTH
    budget = workload.usd_per_month
    if month is not None and budget is not None and month > budget:
        return f"it costs ${month:,.0f} a month"
    kind = catalog.accelerator_type(run.subject.accelerator_type)
    if kind is None:
        return (
            "its price is unknown" if month is None and budget is not None else _Cost(usd_per_month=month, settings={})
        )
    if month is not None and budget is None:
        return _Cost(usd_per_month=month, settings={})
    models = run.subject.provisioning.split(", ") if run.subject.provisioning else []
    on_kind = deployment_with(_slice_settings(deployment, kind))
    if isinstance(on_kind, str):
        return on_kind
    cost = _cost(on_kind, kind, models, max(1, len(run.subject.replicas)), workload)
    return cost if isinstance(cost, str) or month is None else replace(cost, usd_per_month=month, unknown_prices=0)


def _accepted_settings(
    run: Run, cost: _Cost, workload: Workload, deployment: Deployment, deployment_with: DeploymentWith
) -> Mapping[str, Json] | str:
    """Return the settings of a run with which the profile is valid, or why there are none.

    Others' tables don't state the split: it stays the profile's, unless the slice has another number of chips.
    """
    settings = {**dict(_measured_settings(run, deployment.replicas)), **cost.settings}
    budget, key = deployment.budget, "serving.max_model_len"
    tokens = workload.context_tokens + workload.output_tokens
    if key not in settings and isinstance(budget, HbmBudget) and budget.engine.max_model_len < tokens:
        settings[key] = -(-tokens // _LENGTH_STEP) * _LENGTH_STEP
    changed = deployment_with(settings)
    kind = catalog.accelerator_type(run.subject.accelerator_type)
    if kind is not None and (isinstance(changed, str) or _leaves_chips_idle(changed, settings)):
        settings = {**_slice_settings(deployment, kind), **settings}
        changed = deployment_with(settings)
    return changed if isinstance(changed, str) else settings


def _leaves_chips_idle(deployment: Deployment, settings: Mapping[str, Json]) -> bool:
    """Return whether a split that no run states is that of a smaller slice."""
    if "serving.tensor_parallel_size" in settings or not isinstance(deployment.budget, HbmBudget):
        return False
    engine, kind = deployment.budget.engine, deployment.accelerator
    return kind.hosts == 1 and engine.tensor_parallel * engine.data_parallel < kind.devices


def _covers(cell: Cell, workload: Workload) -> bool:
    """Return whether a trusted cell has at least this load. A cell of unknown size covers none."""
    point = cell.point
    if cell.figures is None or not cell.is_trusted:
        return False
    if point.concurrency is None or point.context_tokens is None or point.output_tokens is None:
        return False
    is_enough = point.concurrency >= workload.users and point.context_tokens >= workload.context_tokens
    return is_enough and point.output_tokens >= workload.output_tokens


def _measured_settings(run: Run, replicas: int) -> Iterator[tuple[str, Json]]:
    subject = run.subject
    yield "tpu.type", subject.accelerator_type
    for name in _ENGINE_SETTINGS:
        if subject.engine.get(name, "").isdecimal():
            yield f"serving.{name}", int(subject.engine[name])
    if subject.provisioning:
        yield "placement.provisioning", [*subject.provisioning.split(", ")]
    # A run measured one server, or all that its router sent requests to: that many serve this load.
    count = max(1, len(subject.replicas))
    if count > 1 or count != replicas:
        yield "replicas", count


def _sized_choices(
    deployment: Deployment, workload: Workload, deployment_with: DeploymentWith
) -> tuple[list[Choice], list[str]]:
    if not isinstance(deployment.budget, HbmBudget):
        return [], [f"the size model: {deployment.budget.because}"]
    choices: list[Choice] = []
    refused: list[str] = []
    # The router of several replicas is taken to give each of them an equal share of the users.
    replicas = deployment.replicas
    workload = replace(workload, users=-(-workload.users // replicas))
    figures = figures_of(deployment.engine)
    for kind in catalog.accelerator_types():
        if kind.hosts > 1 and any(_generation(choice) == kind.generation for choice in choices):
            continue  # a slice of fewer hosts serves it
        on_kind = deployment_with(_slice_settings(deployment, kind))
        if isinstance(on_kind, str):
            refused.append(f"{kind.name}: {on_kind}")
            continue
        provisioning = _cheapest_model(on_kind)
        cost = _cost(on_kind, kind, [provisioning] if provisioning else [], replicas, workload)
        if isinstance(cost, str):
            refused.append(f"{kind.name}: {cost}")
            continue
        ways, problem = _ways(on_kind, kind, workload)
        if not ways:
            refused.append(f"{kind.name}: {_at_each(replicas)}{problem}")
        for way, capacity in ways:
            settings = {**_slice_settings(deployment, kind), **_sized_settings(way, provisioning), **cost.settings}
            settings |= {"replicas": replicas} if replicas > 1 else {}
            problem = _error(deployment_with(settings))
            if problem:
                refused.append(f"{kind.name}: {problem}")
                continue
            choices.append(
                Choice(
                    settings=settings,
                    accelerator_type=kind.name,
                    usd_per_month=cost.usd_per_month,
                    unknown_prices=cost.unknown_prices,
                    why=f"{_at_each(replicas)}{_differences(way)}{capacity.why}",
                    source=f"the size model, {figures[0].lower()}{figures[1:]}",
                    unknown=(TTFT, RATE),
                    is_checked=workload.ttft_seconds is None,
                )
            )
    return choices, refused


def _ways(
    deployment: Deployment, kind: AcceleratorType, workload: Workload
) -> tuple[list[tuple[SizingRemedy, ServingCapacity]], str]:
    """Return the mildest change of each split of the slice with which it serves, best first; or what is in the way."""
    present = deployment.budget
    if not isinstance(present, HbmBudget):
        return [], present.because
    ways, problems = [], []
    for split in _splits(present, kind, workload):
        for settings, way in tunings(split):
            capacity = can_serve(
                way, users=workload.users, context=workload.context_tokens, output=workload.output_tokens
            )
            problem = fault(way) or ("" if capacity.service is ServingAnswer.FITS else capacity.why)
            if not problem:
                ways.append((SizingRemedy(settings=settings, budget=way), capacity))
                break
            problems.append((-capacity.at_once, problem))
    ways.sort(key=lambda way: (len(way[0].settings), -way[1].at_once))
    return ways, min(problems)[1] if problems else "the model cannot be split over it"


def _splits(present: HbmBudget, kind: AcceleratorType, workload: Workload) -> Iterator[HbmBudget]:
    """Yield each split of the slice, one copy first, at the least length and sequences for the workload."""
    tokens = workload.context_tokens + workload.output_tokens
    length = min(-(-tokens // _LENGTH_STEP) * _LENGTH_STEP, max(present.model.max_position, tokens))
    short = replace(present, engine=replace(present.engine, max_model_len=length))
    ways = reversed([*splits(short, kind, kind.devices)]) if kind.hosts == 1 else [host_stages(short, kind)]
    for way in ways:
        if way is not None:
            users = -(-workload.users // way.engine.data_parallel)
            wide = budget_with(way, max_num_seqs=max(way.engine.max_num_seqs, users))
            if wide is not None:
                yield wide


def _generation(choice: Choice) -> str:
    kind = catalog.accelerator_type(choice.accelerator_type)
    return "" if kind is None else kind.generation


def _error(deployment: Deployment | str) -> str:
    """Return why a profile with these settings is refused, "" if it is valid."""
    if isinstance(deployment, str):
        return deployment
    errors = (diagnostic.message for diagnostic in check([deployment]) if diagnostic.severity is Severity.ERROR)
    return next(errors, "")


def _at_each(replicas: int) -> str:
    return "" if replicas == 1 else f"on each of {replicas} replicas, "


def _differences(way: SizingRemedy) -> str:
    """Return the settings that differ from the profile's, for a person, and nothing where none does."""
    parts = [
        f"{key} {value:.2f}" if isinstance(value, float) else f"{key} {value}" for key, value in way.settings.items()
    ]
    return f"with {', '.join(parts)}, " if parts else ""


def _slice_settings(deployment: Deployment, kind: AcceleratorType) -> dict[str, Json]:
    """Return the settings with which a profile names this slice, whole, and another generation's own runtime."""
    settings: dict[str, Json] = {
        "tpu.type": kind.name,
        "serving.tensor_parallel_size": kind.devices_per_host,
        "serving.data_parallel_size": 1,
    }
    if kind.hosts > 1:
        settings[_STAGES] = kind.hosts
    elif _STAGES in deployment.origins:
        settings[_STAGES] = None
    if kind.generation != deployment.accelerator.generation and "tpu.runtime_version" in deployment.origins:
        settings["tpu.runtime_version"] = None
    if DEFAULT_BACKEND not in kind.backends and deployment.origin("placement.backend") is None:
        settings["placement.backend"] = kind.backends[0].value
    if deployment.origin("tpu.boot_disk_size") is None and boot_disk_gib(deployment) > deployment.boot_disk_gib:
        settings["tpu.boot_disk_size"] = f"{boot_disk_gib(deployment)}GiB"
    return settings


def _sized_settings(way: SizingRemedy, provisioning: str) -> dict[str, Json]:
    engine = way.budget.engine
    settings: dict[str, Json] = {
        "serving.tensor_parallel_size": engine.tensor_parallel,
        "serving.data_parallel_size": engine.data_parallel,
        "serving.max_model_len": engine.max_model_len,
        "serving.max_num_seqs": engine.max_num_seqs,
        **{f"serving.{key}": to_json(value) for key, value in way.settings.items()},
    }
    return {**settings, "placement.provisioning": [provisioning]} if provisioning else settings


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cost:
    """The most that a profile costs in a month at list prices, and what keeps it within a budget.

    If `unknown_prices` of its places have none, it's a lower bound; `usd_per_month` is None where all are unknown.
    """

    usd_per_month: float | None
    settings: Mapping[str, Json]
    unknown_prices: int = 0


def _cost(
    deployment: Deployment, kind: AcceleratorType, models: Sequence[str], replicas: int, workload: Workload
) -> _Cost | str:
    """Return what the profile with this slice costs, wherever it is granted, or why that is above the budget.

    Within a budget, the profile requests only places that hold it: it gets a max_price_per_chip_hour.
    """
    chips = HOURS_PER_MONTH * kind.chips * replicas
    router = (prices.router_usd_per_hour(deployment) or 0.0) * HOURS_PER_MONTH
    places = _usd_per_chip_hour(deployment, models)
    known_prices = [usd for usd in places if usd is not None]
    unknown_prices = len(places) - len(known_prices)
    budget = workload.usd_per_month
    if budget is None:
        most = max(known_prices, default=None)
        month = None if most is None else most * chips + router
        return _Cost(usd_per_month=month, settings={}, unknown_prices=unknown_prices)
    affordable = [usd for usd in known_prices if usd * chips + router <= budget]
    if not affordable:
        least = min(known_prices, default=None)
        return "its price is unknown" if least is None else f"at least ${least * chips + router:,.0f} a month"
    most = max(affordable)
    is_limited = len(affordable) < len(places)
    settings: Mapping[str, Json] = {"placement.max_price_per_chip_hour": most} if is_limited else {}
    return _Cost(usd_per_month=most * chips + router, settings=settings)


def _usd_per_chip_hour(deployment: Deployment, models: Sequence[str]) -> list[float | None]:
    """Return the price of each place the profile may request by these provisioning models, or by its own if none."""
    return [each.usd_per_chip_hour for each in deployment.candidates if not models or each.provisioning in models]


def _cheapest_model(deployment: Deployment) -> str:
    """Return the provisioning model of the place with the lowest list price that the profile allows, "" for none."""
    known_prices = [
        (candidate.usd_per_chip_hour, str(candidate.provisioning))
        for candidate in deployment.candidates
        if candidate.usd_per_chip_hour is not None
    ]
    return min(known_prices, default=(0.0, ""))[1]
