"""BASELINES: published tables, and their runs, each cell with the doubts that the rules for our own runs find.

They are claims of their authors. A cell is doubtful if another subject has the same figure to the last digit: one of
the two was copied.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tpudeploy import catalog
from tpudeploy.features.benchmark.cells import judge_cell
from tpudeploy.features.benchmark.offer import Point
from tpudeploy.features.benchmark.roofline import Roofline, roofline
from tpudeploy.features.benchmark.run import Cell, CellStatus, Driver, Ended, Figures, Run, Spread, Subject, Sweep
from tpudeploy.version import VERSION

_TELLING_DIGITS = 3  # figures with fewer digits are equal by chance


def published() -> Mapping[str, Run]:
    """Return every published table as a run, by its id."""
    return {baseline.id: _run(baseline) for baseline in BASELINES}


def baseline_of(run: Run) -> Baseline | None:
    """Return the published table that a run is made from, or None."""
    return next((each for each in BASELINES if run.driver is Driver.PUBLISHED and each.id == run.id), None)


def _run(baseline: Baseline) -> Run:
    """Return a table as a run without a price, because no author says what was paid."""
    kind = catalog.accelerator_type(baseline.accelerator_type) if baseline.accelerator_type else None
    subject = Subject(
        model=baseline.model,
        model_id=baseline.model,
        accelerator_type=baseline.accelerator_type,
        chips=None if kind is None else kind.chips,
    )
    limits = roofline(subject, None)
    cells = tuple(_cell(baseline, claim, limits) for claim in baseline.claims)
    return Run(
        id=baseline.id,
        began_at=0.0,
        version=VERSION,
        driver=Driver.PUBLISHED,
        subject=subject,
        sweep=Sweep(points=tuple(cell.point for cell in cells)),
        cells=cells,
        ended=Ended.COMPLETE,
        source="; ".join((baseline.source, *baseline.caveats)),
    )


def _cell(baseline: Baseline, claim: PublishedCell, limits: Roofline | None) -> Cell:
    figures = Figures(
        requests=None,
        requests_failed=None,
        requests_per_second=claim.requests_per_second,
        input_tokens_per_second=claim.input_tokens_per_second,
        output_tokens_per_second=claim.output_tokens_per_second,
        output_tokens_mean=claim.output_tokens,
        ttft_seconds=_mean(claim.ttft_mean_seconds),
        tpot_seconds=_mean(claim.tpot_mean_seconds),
    )
    point = Point(concurrency=claim.users, context_tokens=claim.context_tokens, output_tokens=claim.output_tokens)
    cell = judge_cell(Cell(point=point, status=CellStatus.OK, figures=figures), limits)
    others = (other for other in BASELINES if other.id != baseline.id)
    twins = [other.id for other in others if any(_is_copy(claim, theirs) for theirs in other.claims)]
    if not twins:
        return cell
    reason = f"{', '.join(twins)} has {claim.requests_per_second} requests/s too"
    return replace(cell, status=CellStatus.COPY_SUSPECT, reasons=(*cell.reasons, reason))


def _is_copy(one: PublishedCell, other: PublishedCell) -> bool:
    rate = one.requests_per_second
    if rate is None or rate != other.requests_per_second:
        return False
    return len(f"{rate:.2f}".replace(".", "").strip("0")) >= _TELLING_DIGITS


def _mean(value: float | None) -> Spread | None:
    if value is None:
        return None
    return Spread(count=None, mean=value, deviation=None, p50=None, p90=None, p95=None, p99=None, most=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedCell:
    """One cell of a published table. Missing values are None."""

    users: int | None
    context_tokens: int | None
    output_tokens: int | None = None
    requests_per_second: float | None = None
    input_tokens_per_second: float | None = None
    output_tokens_per_second: float | None = None
    ttft_mean_seconds: float | None = None
    tpot_mean_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """A published table. `id` is its name on the command line. `accelerator_type` is "" for other hardware.

    `date`, `points_passed` and `start` are the source's words: when it ran, how many of its points passed, and how long
    its server took to start; "" where it does not say.
    """

    id: str
    source: str
    model: str
    accelerator_type: str = ""
    caveats: tuple[str, ...] = ()
    claims: tuple[PublishedCell, ...] = ()
    date: str = ""
    points_passed: str = ""
    start: str = ""


_AGENT = "Gemma 4 2B on TPU v6e-4, with an MCP agent (article, 2026)"
_FP8 = "KV FP8 with Gemma 4 26B (article, May 2026)"
_TURBO = "Turbo-Stable: Gemma 4 on one TPU v6e-4 in three runs (article, May 2026)"
_PREFILL_PEAK = "the peak counts prompt tokens, and the number of users at it is not told"
_PREFILL = "vLLM pull request 38879, fast prefill for Gemma 4 (April 2026), on one B200"
_NOT_TOLD = "the length of the answers, the engine's version, and how often each cell was run are not told"
_E2B, _E4B, _12B, _26B = (f"google/gemma-4-{size}-it" for size in ("E2B", "E4B", "12B", "26B-A4B"))


def _turbo(peak: float, interactive: float, loaded: float) -> tuple[PublishedCell, ...]:
    """Return claims of a peak of prompt tokens per second, and of first tokens: interactive, and with 256 users."""
    return (
        PublishedCell(users=None, context_tokens=None, output_tokens=1, input_tokens_per_second=peak),
        PublishedCell(users=1, context_tokens=None, ttft_mean_seconds=interactive),
        PublishedCell(users=256, context_tokens=2_048, ttft_mean_seconds=loaded),
    )


def _rates(rows: Mapping[int, float]) -> tuple[PublishedCell, ...]:
    """Return claims of requests per second by users, at 8 tokens of context."""
    return tuple(PublishedCell(users=users, context_tokens=8, requests_per_second=rate) for users, rate in rows.items())


def _peak(rate: float) -> tuple[PublishedCell, ...]:
    """Return the claim of a best rate whose table is not published."""
    return (PublishedCell(users=None, context_tokens=8, requests_per_second=rate),)


def _prefill(rows: Mapping[tuple[int, int], tuple[float | None, float]]) -> tuple[PublishedCell, ...]:
    """Return claims from (seconds to the first token, prompt tokens/s) by (users, context), with one output token."""
    return tuple(
        PublishedCell(
            users=users,
            context_tokens=context,
            output_tokens=1,
            ttft_mean_seconds=ttft,
            input_tokens_per_second=rate,
            requests_per_second=rate / context,
        )
        for (users, context), (ttft, rate) in rows.items()
    )


def _decode(rows: Mapping[int, tuple[float, float, float]]) -> tuple[PublishedCell, ...]:
    """Return claims from (requests/s, mean TTFT, mean TPOT, both in ms) by users, 8192 tokens in and 150 out."""
    return tuple(
        PublishedCell(
            users=users,
            context_tokens=8_192,
            output_tokens=150,
            requests_per_second=rate,
            ttft_mean_seconds=ttft / 1000,
            tpot_mean_seconds=tpot / 1000,
        )
        for users, (rate, ttft, tpot) in rows.items()
    )


BASELINES: tuple[Baseline, ...] = (
    Baseline(
        id="agent-e2b-v6e-1",
        source=_AGENT,
        model=_E2B,
        accelerator_type="v6e-1",
        caveats=(_NOT_TOLD,),
        claims=_rates(
            {
                1: 3.81,
                2: 6.72,
                4: 11.86,
                8: 21.49,
                16: 34.92,
                32: 58.22,
                64: 64.66,
                128: 71.86,
                256: 72.39,
                512: 70.12,
                1024: 72.83,
                2048: 71.43,
            }
        ),
    ),
    Baseline(
        id="agent-e2b-v6e-4",
        source=_AGENT,
        model=_E2B,
        accelerator_type="v6e-4",
        caveats=(_NOT_TOLD,),
        claims=_rates(
            {
                1: 5.14,
                2: 8.32,
                4: 12.52,
                8: 16.49,
                16: 34.34,
                32: 58.07,
                64: 101.45,
                128: 140.37,
                256: 181.42,
                512: 222.82,
                1024: 231.19,
                2048: 173.50,
            }
        ),
    ),
    Baseline(
        id="agent-e4b-v6e-1",
        source=_AGENT,
        model=_E4B,
        accelerator_type="v6e-1",
        caveats=(_NOT_TOLD, "only the peak is printed"),
        claims=_peak(64.66),
    ),
    Baseline(
        id="agent-e4b-v6e-4",
        source=_AGENT,
        model=_E4B,
        accelerator_type="v6e-4",
        caveats=(_NOT_TOLD,),
        claims=_rates({1: 6.13, 4: 15.56, 16: 34.34, 64: 101.45, 256: 178.86, 512: 202.80, 1024: 223.85, 2048: 176.67}),
    ),
    Baseline(
        id="agent-12b-v6e-1",
        source=_AGENT,
        model=_12B,
        accelerator_type="v6e-1",
        caveats=(_NOT_TOLD, "only the peak is printed"),
        claims=_peak(22.01),
    ),
    Baseline(
        id="agent-12b-v6e-4",
        source=_AGENT,
        model=_12B,
        accelerator_type="v6e-4",
        caveats=(_NOT_TOLD,),
        claims=_rates({1: 3.81, 4: 11.86, 16: 34.92, 64: 54.11, 256: 61.98, 512: 63.09, 1024: 61.33, 2048: 62.10}),
    ),
    Baseline(
        id="fp8-26b-v6e-4",
        source=_FP8,
        model=_26B,
        accelerator_type="v6e-4",
        caveats=("prefix caching is on by default, and no prompt was said to be unique",),
        claims=_prefill(
            {
                (1, 1_024): (0.489, 2_025),
                (128, 16_384): (3.914, 379_253),
                (32, 16_384): (2.1, 213_000),
                (1_024, 16_384): (19.2, 475_553),
            }
        ),
    ),
    Baseline(
        id="fp8-26b-v6e-4-earlier",
        source=_FP8,
        model=_26B,
        accelerator_type="v6e-4",
        caveats=("an earlier run of the same; its cell of 1,024 users timed out",),
        claims=_prefill({(1, 1_024): (0.116, 8_789), (128, 16_384): (3.052, 446_233)}),
    ),
    Baseline(
        id="agent-answer-e2b-v6e-4",
        source=_AGENT,
        model=_E2B,
        accelerator_type="v6e-4",
        caveats=("one answer of 493 tokens, in 2.689 s",),
        claims=(
            PublishedCell(
                users=1,
                context_tokens=None,
                output_tokens=493,
                output_tokens_per_second=207.27,
                ttft_mean_seconds=0.310,
            ),
        ),
    ),
    Baseline(
        id="turbo-1-4b-v6e-4",
        source=_TURBO,
        model=_E4B,
        accelerator_type="v6e-4",
        caveats=("run 1, 8 May; all of its light points passed; its cold start took about 20 minutes", _PREFILL_PEAK),
        date="8 May 2026",
        points_passed="100% (light points)",
        start="about 20 min",
        claims=_turbo(463_345, 0.800, 0.950),
    ),
    Baseline(
        id="turbo-2-26b-v6e-4",
        source=_TURBO,
        model=_26B,
        accelerator_type="v6e-4",
        caveats=(
            "run 2, 13 May; 94 % of 144 points passed; its cold start took about 24 minutes",
            _PREFILL_PEAK,
        ),
        date="13 May 2026",
        points_passed="94% of 144",
        start="about 24 min",
        claims=_turbo(483_930, 0.326, 131.99),
    ),
    Baseline(
        id="turbo-3-26b-v6e-4",
        source=_TURBO,
        model=_26B,
        accelerator_type="v6e-4",
        caveats=(
            "run 3, padding gap 512, utilization 0.90; all of 144 points passed",
            "its start below 10 s is that of a container on the same machine, with warm caches",
            _PREFILL_PEAK,
        ),
        date="May 2026",
        points_passed="100% of 144",
        start="< 10 s, warm caches",
        claims=_turbo(467_825, 0.302, 1.157),
    ),
    Baseline(
        id="prefill-off-e4b-b200",
        source=_PREFILL,
        model=_E4B,
        caveats=("on a GPU: on TPU the flag has no effect",),
        claims=_decode({8: (4.22, 570, 8.90), 32: (6.53, 942, 26.43)}),
    ),
    Baseline(
        id="prefill-on-e4b-b200",
        source=_PREFILL,
        model=_E4B,
        caveats=("on a GPU: on TPU the flag has no effect", "its accuracy gate stood at 0.10, where it shows nothing"),
        claims=_decode({8: (5.06, 363, 8.16), 32: (9.07, 622, 19.37)}),
    ),
)
