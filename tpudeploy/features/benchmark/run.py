"""A benchmark's run: what was measured, how, and every cell with its figures. What is said of speed is read from here.

`tpudeploy.run/1` is these fields as JSON (runfile.py). Units stand in the names; shares are 0 to 1, or above where
something cannot be true.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from tpudeploy.domain.starts import MeasuredStart
from tpudeploy.features.benchmark.offer import Point

_HOUR = 3600.0


class Side(StrEnum):
    """One of the two arms of an A/B."""

    A = "A"
    B = "B"

    @property
    def other(self) -> Side:
        return Side.B if self is Side.A else Side.A


class CellStatus(StrEnum):
    """The status of a cell's figures. If several apply, the first in this order counts; `reasons` names all of them."""

    SKIPPED_LEN = "skipped_len"  # not asked: prompt and answer are longer than the engine takes
    FAILED = "failed"  # too many requests failed
    COPY_SUSPECT = "copy_suspect"  # published: another subject has the same figure
    CACHE_SUSPECT = "cache_suspect"  # prompts came from the prefix cache
    ROOFLINE_SUSPECT = "roofline_suspect"  # faster than the chips can be, or nearly
    CONTRADICTORY = "contradictory"  # imported: its figures cannot all be true
    CLIENT_BOUND = "client_bound"  # the client was late itself, or kept too few streams going
    FEW_STREAMS = "few_streams"  # fewer streams ran than requested, for an unknown reason
    OVERSUBSCRIBED = "oversubscribed"  # more streams than the KV cache or `max_num_seqs` lets run at once
    OK = "ok"


class Ended(StrEnum):
    """Why a run has no more cells than it has."""

    NOT_YET = "not yet"  # under way, or killed
    COMPLETE = "complete"
    DURATION = "duration"
    COST = "cost"
    INTERRUPTED = "interrupted"


class Driver(StrEnum):
    """Whose client drove the load. What it did not count itself is None in its figures."""

    TPUDEPLOY = "tpudeploy"
    VLLM = "vllm"
    GUIDELLM = "guidellm"
    AIPERF = "aiperf"
    SGLANG = "sglang"
    INFERENCE_PERF = "inference-perf"
    LLMPERF = "llmperf"
    GRID = "grid"  # a CSV file by another tool
    GKE_QUICKSTART = "gke-inference-quickstart"  # a table of GKE Inference Quickstart, by Google
    PUBLISHED = "published"  # an article's table

    @property
    def is_of_others(self) -> bool:
        """Whether others measured it, on a server of theirs."""
        return self in {Driver.GKE_QUICKSTART, Driver.PUBLISHED}


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """The spread of `count` samples. Quantiles lie between the two nearest samples. None: the source does not say."""

    count: int | None
    mean: float
    deviation: float | None
    p50: float | None
    p90: float | None
    p95: float | None
    p99: float | None
    most: float | None

    @property
    def middle(self) -> float:
        """The median, or the mean where the median is unknown."""
        return self.mean if self.p50 is None else self.p50

    @property
    def tail(self) -> float:
        """The value that 95 of 100 samples do not exceed, or the mean where that is unknown."""
        return self.mean if self.p95 is None else self.p95


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The figures of a cell: latencies of every request but each stream's first, rates of the window alone.

    `requests` is how many were measured. It is None, as `requests_failed` is, where an imported file does not say.
    `window_seconds` is how long the window was. TTFT is from the
    write of the request to the first piece; ITL between pieces, which hold several tokens where the engine speculates;
    TPOT is the time after the first token over the tokens after it. `goodput_requests_per_second` counts the requests
    that kept the SLO.
    """

    requests: int | None
    requests_failed: int | None
    window_seconds: float | None = None
    requests_per_second: float | None = None
    goodput_requests_per_second: float | None = None
    input_tokens_per_second: float | None = None
    output_tokens_per_second: float | None = None
    prompt_tokens_mean: float | None = None
    output_tokens_mean: float | None = None
    ttft_seconds: Spread | None = None
    itl_seconds: Spread | None = None
    tpot_seconds: Spread | None = None
    e2e_seconds: Spread | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The evidence for or against the figures; None where it is unknown.

    `streams_mean` is how many requests were under way at once in the window, as the client counted them.
    `streams_by_latency` is the same by Little's law, where the client did not count: rate times latency over a whole
    run, so that its beginning and its end lower it. `cached_share` is of the prompt tokens
    that the engine looked up in its prefix cache. `peak_share` is the arithmetic that these tokens need at least, of
    what the chips can do; `bandwidth_share` the same of reading the weights for each piece of a stream. `answers` is
    the number of requests that each replica behind a router completed meanwhile, those of the warm-up included, by its
    address; a replica whose metrics cannot be read is not in it.
    """

    client_lag_p99_seconds: float | None = None
    client_cpu_share: float | None = None
    streams_mean: float | None = None
    streams_by_latency: float | None = None
    cached_share: float | None = None
    peak_share: float | None = None
    bandwidth_share: float | None = None
    answers: Mapping[str, int] = field(default_factory=dict)
    ADDED_LATER = frozenset({"answers"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The result of a driver for one offer. `is_cut`: its time ended before there were figures.

    `seconds` is all that it took; `errors` as in `Cell`.
    """

    figures: Figures | None
    evidence: Evidence
    errors: Mapping[str, int]
    seconds: float
    is_cut: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """`at_once` is how many such requests the engine can run together, where that is known.

    `began_at` is in seconds since the epoch. `seconds` is all that the cell took, warm-up included; None where an
    imported file does not say. `errors` has the number of failures by their text.
    """

    point: Point
    status: CellStatus
    reasons: tuple[str, ...] = ()
    at_once: int | None = None
    began_at: float | None = None
    seconds: float | None = 0.0
    figures: Figures | None = None
    evidence: Evidence | None = None
    errors: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_trusted(self) -> bool:
        """Whether its figures can be used. A queue makes no throughput doubtful; every other status does."""
        return self.status in {CellStatus.OK, CellStatus.OVERSUBSCRIBED}

    @property
    def requests_per_second(self) -> float | None:
        return None if self.figures is None else self.figures.requests_per_second

    @property
    def ttft_seconds(self) -> Spread | None:
        return None if self.figures is None else self.figures.ttft_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Slo:
    """A request keeps it whose TTFT and TPOT are not above these, in seconds; None: any will do."""

    ttft_seconds: float | None = None
    tpot_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The bounds of one command: seconds of measuring, and the most that the slice may cost, in USD. None: no bound."""

    seconds: float | None = None
    usd: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The server that was measured: enough to recognize it, and to distinguish it from another.

    `profile_fingerprint` is that of the profile as it was deployed, `spec_fingerprint` that of its server alone: both
    "" where only an address is known. `engine` is what the engine said of itself, by name. `usd_per_hour` is of the
    whole slice. `replica` is the address of the one that was measured of several, "" where there is one. `replicas` are
    the addresses of all that were measured together, through the router at `url`: `chips` and `usd_per_hour` are those
    of all of them, `accelerator_type` is that of one. Zones and provisioning models that differ are joined by commas.
    `is_emulated`: no figure says anything about a TPU. None and "" are unknown.
    """

    model: str
    url: str = ""
    deployment: str = ""
    profile_fingerprint: str = ""
    spec_fingerprint: str = ""
    model_id: str = ""
    model_revision: str = ""
    image: str = ""
    image_digest: str = ""
    engine: Mapping[str, str] = field(default_factory=dict)
    accelerator_type: str = ""
    chips: int | None = None
    zone: str = ""
    provisioning: str = ""
    usd_per_hour: float | None = None
    is_emulated: bool = False
    replica: str = ""
    replicas: tuple[str, ...] = ()
    ADDED_LATER = frozenset({"replicas"})

    @property
    def hardware(self) -> str:
        """The slices that were measured: `v6e-4`, or `2 x v6e-4` behind a router; "" if they are unknown."""
        return f"{len(self.replicas)} x {self.accelerator_type}" if self.replicas else self.accelerator_type


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """Which cells, in the order to run them, and how.

    `window_seconds` is the most that a cell is measured for, and with `is_whole_window` how long exactly. Without
    `asks_oversubscribed`, cells with more streams than run at once are named and not asked. `seed` makes the prompts;
    "": each cell's are its own.
    """

    points: tuple[Point, ...]
    slo: Slo = Slo()
    window_seconds: float = 60.0
    asks_oversubscribed: bool = True
    seed: str = ""
    is_whole_window: bool = False
    ADDED_LATER = frozenset({"is_whole_window"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A run's place in an A/B: the experiment's id, counted from 0."""

    experiment: str
    place: int
    side: Side


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One sweep over one subject. Cells come in the order in which they ended; a point has one cell at most.

    `source` is the file that it was imported from, and `source_hash` that file's own (of several, of all
    in a row); "" for what we measured. `turn` is that of an A/B, None for a run by itself. `start` is how its server
    came up, None where it was not read, or the log does not say.
    """

    id: str
    began_at: float
    version: str
    driver: Driver
    subject: Subject
    sweep: Sweep
    cells: tuple[Cell, ...] = ()
    ended: Ended = Ended.NOT_YET
    source: str = ""
    source_hash: str = ""
    turn: Turn | None = None
    start: MeasuredStart | None = None

    @property
    def remaining_points(self) -> tuple[Point, ...]:
        """The points of the sweep that have no cell yet."""
        measured_points = {cell.point for cell in self.cells}
        return tuple(point for point in self.sweep.points if point not in measured_points)

    @property
    def seconds(self) -> float:
        return sum(cell.seconds or 0.0 for cell in self.cells)

    @property
    def usd(self) -> float | None:
        """The cost of the slice while it was measured; None where its price, or the time of a cell, is unknown."""
        price = self.subject.usd_per_hour
        if price is None or any(cell.seconds is None for cell in self.cells):
            return None
        return price * self.seconds / _HOUR
