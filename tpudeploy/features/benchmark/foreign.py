"""Results of other load clients. A file's content shows which client wrote it; FORMATS has a row for each.

Numbers are finite or unknown, and times are in seconds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import isfinite
from typing import Any

from tpudeploy.features.benchmark import gke_quickstart
from tpudeploy.features.benchmark.csv_table import CsvRow, csv_table
from tpudeploy.features.benchmark.gke_quickstart import QuickstartRow
from tpudeploy.features.benchmark.offer import Point
from tpudeploy.features.benchmark.run import Driver, Evidence, Figures, Spread

Tree = Mapping[str, Any]
_MS = 1e-3
_UNITS = {"sec": 1.0, "s": 1.0, "ms": _MS, "us": 1e-6, "ns": 1e-9}
_GRID_COLUMNS = ("concurrency", "context_len", "throughput_req_sec", "avg_latency_s")
_GRID_OK = {"success", "ok", ""}
_GRID_SKIPPED = "skipped"  # the beginning of several statuses
# The names of a spread's fields, as each client writes them.
_VLLM_NAMES = {"mean": "mean", "deviation": "std", "p50": "median", "p90": "p90", "p95": "p95", "p99": "p99"}
_AIPERF_NAMES = {"mean": "avg", "deviation": "std", "most": "max"} | {p: p for p in ("p50", "p90", "p95", "p99")}
_SERVING_KEYS = {"completed", "total_input_tokens", "output_throughput"}
_SGLANG_KEYS = {"total_output_tokens_retokenized", "mean_e2e_latency_ms"}
_AT_A_RATE = "cells at a request rate have the mean number of requests that ran at once"
_LLMPERF_DEPTH = 4
_LONGEST_TABLE = 32 << 20  # characters: more than 100,000 rows of any client
_GUIDELLM_NAMES = {"mean": "mean", "deviation": "std_dev", "p50": "median", "most": "max"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignCell:
    """One cell of another client. `model` is the served name, or "" where the file does not say.

    Of a table of several servers, `hardware` is the name of the slice type or of another machine, and `server` the
    engine. `figures` is None where the client left the cell out, because the engine cannot run it at once; `why` says
    so.
    """

    point: Point
    figures: Figures | None
    why: str = ""
    evidence: Evidence = field(default=Evidence())
    model: str = ""
    seconds: float | None = None
    errors: Mapping[str, int] = field(default_factory=dict)
    note: str = ""
    hardware: str = ""
    server: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A result of another client that is no cell, and why."""

    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignFile:
    """The client that wrote a file, its cells, and the results that are left out."""

    driver: Driver
    cells: tuple[ForeignCell, ...]
    left_out: tuple[LeftOut, ...] = ()


def read(text: str) -> ForeignFile:
    """Return what a file has. Raise ValueError, with the reason, for one of no known client or without a cell.

    A file may hold several results: objects one after the other, lines of JSON, or blocks as `vllm bench serve` prints
    them among its other output.
    """
    text = text.removeprefix("\ufeff")
    if _BLOCK in text:
        trees: Sequence[Tree] = tuple(_blocks(text))
    elif text.lstrip().startswith(("{", "[")):
        trees = _trees(text)
    else:
        return _read_table(text)
    forms = [_form(tree, len(trees)) for tree in trees]
    if len({form.driver for form in forms}) > 1:
        raise ValueError(f"it holds results of {', '.join(sorted({form.name for form in forms}))}")
    results = [result for form, tree in zip(forms, trees, strict=True) for result in _results(form, tree)]
    cells = tuple(result for result in results if isinstance(result, ForeignCell))
    left_out = tuple(result for result in results if isinstance(result, LeftOut))
    if not cells:
        raise ValueError(left_out[0].why if left_out else "it holds no result")
    return ForeignFile(driver=forms[0].driver, cells=cells, left_out=left_out)


def _form(tree: Tree, count: int) -> Format:
    """Return the format of a result. Raise ValueError for anything else, e.g. a client's list of single requests."""
    form = next((form for form in FORMATS if form.matches(tree)), None)
    if form is None:
        other = next((sentence for keys, sentence in _OTHERS.items() if keys <= tree.keys()), "")
        if other:
            raise ValueError(other)
        single = " (if its lines are single requests, import the summary that the client writes)" if count > 1 else ""
        raise ValueError(f"it is not a result of {', '.join(form.name for form in FORMATS)}{single}")
    return form


def _results(form: Format, tree: Tree) -> Sequence[ForeignCell | LeftOut]:
    """Return the cells of a result, or why a damaged one is left out."""
    try:
        return form.read(tree)
    except ValueError as cause:
        return (LeftOut(why=f"{form.name}: {cause}"),)
    except (KeyError, TypeError, AttributeError, RecursionError) as cause:
        return (LeftOut(why=f"{form.name}: {type(cause).__name__}: {cause}"),)


def _trees(text: str) -> Sequence[Tree]:
    """Return the JSON objects of a text, one after the other. Raise ValueError for another text, or one that is cut."""
    decoder, trees, at = json.JSONDecoder(), list[Any](), 0
    try:
        while at < len(text):
            at += len(text[at:]) - len(text[at:].lstrip())
            if at < len(text):
                tree, at = decoder.raw_decode(text, at)
                trees.extend(tree if isinstance(tree, list) else [tree])
    except ValueError as cause:
        name = next((form.name for form in FORMATS if form.sign in text), "")
        cut = f"; it looks like a result of {name} that is cut off" if name else ""
        raise ValueError(f"{cause}{cut}") from cause
    except RecursionError as cause:
        raise ValueError("it is nested too deeply") from cause
    if not trees or not all(isinstance(tree, dict) for tree in trees):
        raise ValueError(f"it is not a result of {', '.join(form.name for form in FORMATS)}")
    return trees


# What `vllm bench serve` (0.32, vllm/benchmarks/serve.py) and `sglang.bench_serving` print at their end, with the keys
# that their JSON has. Earlier and later versions write some labels otherwise.
_BLOCK = "Serving Benchmark Result"
_END_OF_BLOCK = re.compile(r"\n[^\n=]*={30,}[ \t]*\r?(?=\n|$)")
_LINE = re.compile(r"^[\s|]*(?:\([^)\n]*\) *)?(?P<label>[A-Za-z][^:\n]*?) *: +(?P<value>\S+)\s*$")
_LABELS = {
    "successful requests": "completed",
    "failed requests": "failed",
    "maximum request concurrency": "max_concurrency",
    "max request concurrency": "max_concurrency",
    "max concurrency": "max_concurrency",
    "request rate configured (rps)": "request_rate",
    "traffic request rate": "request_rate",
    "benchmark duration (s)": "duration",
    "total input tokens": "total_input_tokens",
    "total generated tokens": "total_output_tokens",
    "total generated tokens (retokenized)": "total_output_tokens_retokenized",
    "request throughput (req/s)": "request_throughput",
    "request goodput (req/s)": "request_goodput",
    "output token throughput (tok/s)": "output_throughput",
    "concurrency": "concurrency",
}
_LATENCY = re.compile(r"(?P<what>mean|median|std|p\d+) (?P<name>ttft|tpot|itl|e2el|e2e latency) \(ms\)")


def _blocks(text: str) -> Iterator[Tree]:
    """Yield each printed block as its client's JSON has it. Raise ValueError for one that is cut off."""
    parts = text.split(_BLOCK)
    for before, block in pairwise(parts):
        # Releases before 0.11 print the streams and the rate above the block, and not in it.
        settings = _labelled(_END_OF_BLOCK.split(before)[-1])
        tree: dict[str, Any] = {
            name: settings[name] for name in ("max_concurrency", "request_rate") if name in settings
        }
        tree |= _labelled(_END_OF_BLOCK.split(block)[0])
        missing = next((key for key in ("completed", "duration", "output_throughput") if key not in tree), None)
        if missing is not None:
            raise ValueError(f"vllm bench serve: the block that it printed has no `{missing}`: it is cut off")
        tree.setdefault("total_input_tokens", None)
        yield tree


def _labelled(text: str) -> dict[str, Any]:
    """Return the values of the labels in a text, by the names in the client's JSON; the last of several counts."""
    tree: dict[str, Any] = {}
    for line in text.splitlines():
        match = _LINE.match(line)
        if match is None:
            continue
        label = match["label"].lower()
        latency = _LATENCY.fullmatch(label)
        name = _LABELS.get(label)
        if latency is not None:
            tree[f"{latency['what']}_{latency['name'].replace(' ', '_')}_ms"] = _parsed(match["value"])
        elif name is not None:
            tree[name] = _parsed(match["value"])
    return tree


def _parsed(text: str) -> Any:
    """Return a number, or the text if it isn't one (`inf`)."""
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return text


def _is_vllm(tree: Tree) -> bool:
    return tree.keys() >= _SERVING_KEYS and not tree.keys() & _SGLANG_KEYS


def _is_sglang(tree: Tree) -> bool:
    return tree.keys() >= _SERVING_KEYS and bool(tree.keys() & _SGLANG_KEYS)


def _read_vllm(tree: Tree) -> Sequence[ForeignCell]:
    """Read `vllm bench serve --save-result`: one cell a file (vLLM 0.32, vllm/benchmarks/serve.py main_async).

    `sglang.bench_serving --output-file` has the same keys but for the latency of a whole request.
    """
    tree = _with_e2el(tree)
    completed, seconds = int(_needed(tree, "completed")), _needed(tree, "duration")
    tokens_in, tokens_out = _needed(tree, "total_input_tokens"), _needed(tree, "total_output_tokens")
    if seconds <= 0:
        raise ValueError(f"its `duration` is {seconds:g}")
    most = _number(tree, "max_concurrency")
    prompt, answer = (tokens / completed if completed else None for tokens in (tokens_in, tokens_out))

    def latency(name: str, count: int | None) -> Spread | None:
        values = {ours: _number(tree, f"{theirs}_{name}_ms") for ours, theirs in _VLLM_NAMES.items()}
        return _spread(values, count=count, scale=_MS) if values["mean"] else None  # 0: nothing was measured

    e2e = latency("e2el", completed)
    figures = Figures(
        requests=completed,
        requests_failed=_count(_number(tree, "failed")),
        window_seconds=seconds,
        requests_per_second=_number(tree, "request_throughput"),
        goodput_requests_per_second=_number(tree, "request_goodput"),
        input_tokens_per_second=tokens_in / seconds,
        output_tokens_per_second=_number(tree, "output_throughput"),
        prompt_tokens_mean=prompt,
        output_tokens_mean=answer,
        ttft_seconds=latency("ttft", completed),
        itl_seconds=latency("itl", None),
        tpot_seconds=latency("tpot", None),
        e2e_seconds=e2e,
    )
    # Little's law. `max_concurrent_requests` counts by the second, and is twice the number that ran at once.
    streams = None if e2e is None else completed * e2e.mean / seconds
    own_streams = _number(tree, "concurrency")
    return (
        ForeignCell(
            point=_point(_concurrency(tree, most, own_streams or streams), prompt, answer),
            figures=figures,
            evidence=Evidence(streams_mean=own_streams, streams_by_latency=streams),
            model=str(tree.get("model_id") or tree.get("model") or ""),
            seconds=seconds,
            note="" if most is not None else _AT_A_RATE,
        ),
    )


def _with_e2el(tree: Tree) -> Tree:
    """Return the results with vLLM's names for the latency of whole requests, in place of sglang's."""
    if "mean_e2e_latency_ms" not in tree:
        return tree
    return {**tree, **{f"{part}_e2el_ms": tree.get(f"{part}_e2e_latency_ms") for part in _VLLM_NAMES.values()}}


def _concurrency(tree: Tree, most: float | None, mean: float | None) -> int | None:
    """Return how many requests ran at once: as many as allowed, else the mean. Raise ValueError if neither is known."""
    if most is not None:
        return int(most)
    rate = _number(tree, "request_rate")
    if rate is None:
        raise ValueError("it was not measured at a fixed concurrency (`--max-concurrency`)")
    if mean is None:
        raise ValueError(
            f"it was not measured at a fixed concurrency (`--max-concurrency`) but at {rate:g} requests/s, and has no "
            "latency of whole requests (`--percentile-metrics ttft,tpot,itl,e2el`) to tell how many ran at once"
        )
    return _whole(mean)


def _is_guidellm(tree: Tree) -> bool:
    benchmarks = tree.get("benchmarks")
    return isinstance(benchmarks, list) and all(isinstance(each, dict) and "metrics" in each for each in benchmarks)


def _read_guidellm(tree: Tree) -> Sequence[ForeignCell | LeftOut]:
    """Read guidellm's JSON: a benchmark for each strategy (0.8, src/guidellm/benchmark/schemas).

    A sweep has several strategies. One that failed or cannot be read is left out, and so is one at a request rate that
    had as many streams as another one.
    """
    results: dict[Point, ForeignCell] = {}
    left_out = list[LeftOut]()
    for benchmark in sorted(tree["benchmarks"], key=_is_at_a_rate):
        try:
            result = _read_guidellm_cell(benchmark)
        except (ValueError, TypeError, AttributeError) as cause:
            left_out.append(LeftOut(why=f"guidellm: {cause}"))
            continue
        if results.setdefault(result.point, result) is not result:
            left_out.append(
                LeftOut(why=f"guidellm: another benchmark has the same load, {result.point.concurrency} at once")
            )
    if not results and not left_out:
        raise ValueError("it has no benchmark")
    return (*results.values(), *left_out)


def _is_at_a_rate(benchmark: Tree) -> bool:
    return _strategy(benchmark).get("type_") not in {"concurrent", "synchronous"}


def _strategy(benchmark: Tree) -> Tree:
    """Return the strategy of a benchmark, which lies elsewhere in each release: 0.8, 0.4 to 0.7, 0.2 and 0.3."""
    places = (benchmark.get(place) for place in ("config", "scheduler", "args"))
    strategies = (place.get("strategy") for place in places if isinstance(place, Mapping))
    return next((each for each in strategies if isinstance(each, Mapping)), {})


def _read_guidellm_cell(tree: Tree) -> ForeignCell:
    metrics, config = tree["metrics"], tree.get("config") or {}
    totals = metrics.get("request_totals") or tree.get("request_totals") or tree.get("total_count")

    def mean(name: str) -> float | None:
        return _number(metrics, name, "successful", "mean")

    def latency(name: str, scale: float) -> Spread | None:
        values = (metrics.get(name) or {}).get("successful") or {}
        quantiles = {quantile: _number(values, "percentiles", quantile) for quantile in ("p90", "p95", "p99")}
        values_by_name = {ours: _number(values, theirs) for ours, theirs in _GUIDELLM_NAMES.items()}
        return _spread({**values_by_name, **quantiles}, count=_number(values, "count"), scale=scale)

    rate, prompt, answer = mean("requests_per_second"), mean("prompt_token_count"), mean("output_token_count")
    began, ended = _number(tree, "start_time"), _number(tree, "end_time")
    seconds = _number(tree, "duration") or (ended - began if began is not None and ended is not None else None)
    figures = Figures(
        requests=_count(_number(totals, "successful")),
        requests_failed=_count(_number(totals, "errored")),
        window_seconds=seconds,
        requests_per_second=rate,
        input_tokens_per_second=_product(rate, prompt),
        output_tokens_per_second=mean("output_tokens_per_second"),
        prompt_tokens_mean=prompt,
        output_tokens_mean=answer,
        ttft_seconds=latency("time_to_first_token_ms", _MS),
        itl_seconds=latency("inter_token_latency_ms", _MS),
        tpot_seconds=latency("time_per_output_token_ms", _MS),
        e2e_seconds=latency("request_latency", 1.0),
    )
    return ForeignCell(
        point=_point(_guidellm_streams(_strategy(tree), mean("request_concurrency")), prompt, answer),
        figures=figures,
        note=_AT_A_RATE if _is_at_a_rate(tree) else "",
        evidence=Evidence(streams_mean=mean("request_concurrency")),
        model=str((config.get("backend") or {}).get("model") or ""),
        seconds=seconds,
    )


def _guidellm_streams(strategy: Tree, mean: float | None) -> int:
    """Return the streams of a strategy; at a request rate, the mean that ran. Raise ValueError for one without any."""
    streams = _number(strategy, "streams")
    if streams is not None:
        return int(streams)
    if strategy.get("type_") == "synchronous":
        return 1
    measured = _whole(mean)
    if measured is None:
        raise ValueError(f"its strategy `{strategy.get('type_')}` keeps no fixed number of streams")
    return measured


def _is_inference_perf(tree: Tree) -> bool:
    return {"load_summary", "successes"} <= tree.keys()


def _read_inference_perf(tree: Tree) -> Sequence[ForeignCell]:
    """Read a summary of inference-perf, which drives a request rate (kubernetes-sigs/inference-perf, reportgen)."""
    successes, load = tree["successes"], tree["load_summary"]
    completed = _count(_number(successes, "count"))

    def latency(name: str) -> Spread | None:
        values = (successes.get("latency") or {}).get(name) or {}
        quantiles = {"p50": "median", "p90": "p90", "p95": "p95", "p99": "p99", "most": "max", "mean": "mean"}
        by_name = {ours: _number(values, theirs) for ours, theirs in quantiles.items()}
        by_name["p50"] = _number(values, "p50") if by_name["p50"] is None else by_name["p50"]  # earlier releases
        return _spread(by_name, count=completed, scale=1.0)

    e2e, rate = latency("request_latency"), _number(successes, "throughput", "requests_per_sec")
    fixed = _number(load, "concurrency")
    streams = None if e2e is None else _product(rate, e2e.mean)
    if fixed is None and streams is None:
        raise ValueError("it has neither a concurrency, nor the rate and latency that tell how many ran at once")
    prompt, answer = _number(successes, "prompt_len", "mean"), _number(successes, "output_len", "mean")
    seconds = _number(load, "send_duration")
    figures = Figures(
        requests=completed,
        requests_failed=_count(_number(tree.get("failures"), "count")),
        window_seconds=seconds,
        requests_per_second=rate,
        input_tokens_per_second=_number(successes, "throughput", "input_tokens_per_sec"),
        output_tokens_per_second=_number(successes, "throughput", "output_tokens_per_sec"),
        prompt_tokens_mean=prompt,
        output_tokens_mean=answer,
        ttft_seconds=latency("time_to_first_token"),
        itl_seconds=latency("inter_token_latency"),
        tpot_seconds=latency("time_per_output_token"),
        e2e_seconds=e2e,
    )
    return (
        ForeignCell(
            point=_point(_whole(streams) if fixed is None else int(fixed), prompt, answer),
            figures=figures,
            evidence=Evidence(streams_by_latency=streams),
            seconds=seconds,
            note=_AT_A_RATE if fixed is None else "",
        ),
    )


def _is_llmperf(tree: Tree) -> bool:
    return {"results_ttft_s_mean", "results_num_requests_started"} <= _flattened(tree).keys()


def _flattened(tree: Tree) -> Tree:
    """Return llmperf's summary with keys as its file has them: earlier versions nest them below `results`."""
    flat: dict[str, Any] = {}

    def add(prefix: str, value: Any, depth: int) -> None:
        if isinstance(value, Mapping) and depth < _LLMPERF_DEPTH:
            for key, each in value.items():
                add(f"{prefix}_{key}" if prefix else str(key), each, depth + 1)
        else:
            flat[prefix] = value

    add("", tree, 0)
    return flat


def _read_llmperf(tree: Tree) -> Sequence[ForeignCell]:
    """Read `*_summary.json` of llmperf's token_benchmark_ray.py: one cell a file, at a fixed concurrency."""
    flat = _flattened(tree)
    names = {"mean": "mean", "deviation": "stddev", "most": "max"}
    names |= {p: f"quantiles_{p}" for p in ("p50", "p90", "p95", "p99")}

    def latency(name: str) -> Spread | None:
        values = {ours: _number(flat, f"results_{name}_{theirs}") for ours, theirs in names.items()}
        return _spread(values, count=_number(flat, "results_num_completed_requests"), scale=1.0)

    streams = _needed(flat, "num_concurrent_requests")
    completed = _number(flat, "results_num_completed_requests")
    per_minute = _number(flat, "results_num_completed_requests_per_min")
    rate = None if per_minute is None else per_minute / 60
    prompt = _number(flat, "results_number_input_tokens_mean") or _number(flat, "mean_input_tokens")
    answer = _number(flat, "results_number_output_tokens_mean") or _number(flat, "mean_output_tokens")
    seconds = completed / rate if completed and rate else None
    figures = Figures(
        requests=_count(completed),
        requests_failed=_count(_number(flat, "results_number_errors")),
        window_seconds=seconds,
        requests_per_second=rate,
        input_tokens_per_second=_product(rate, prompt),
        output_tokens_per_second=_number(flat, "results_mean_output_throughput_token_per_s"),
        prompt_tokens_mean=prompt,
        output_tokens_mean=answer,
        ttft_seconds=latency("ttft_s"),
        # Its inter-token latency is a mean of each request: the time per token.
        tpot_seconds=latency("inter_token_latency_s"),
        e2e_seconds=latency("end_to_end_latency_s"),
    )
    return (
        ForeignCell(
            point=_point(int(streams), prompt, answer),
            figures=figures,
            model=str(flat.get("model") or ""),
            seconds=seconds,
        ),
    )


def _is_aiperf(tree: Tree) -> bool:
    metrics = _metrics(tree)
    return "aiperf_version" in tree or all(
        isinstance(metrics.get(name), Mapping) for name in ("request_throughput", "request_latency")
    )


def _metrics(tree: Tree) -> Tree:
    """Return the metrics of aiperf, which its first releases nest below `records`."""
    records = tree.get("records")
    return {**tree, **records} if isinstance(records, Mapping) else tree


def _read_aiperf(tree: Tree) -> Sequence[ForeignCell]:
    """Read `profile_export_aiperf.json`: one cell a file, each metric with its unit (schema 1.4, aiperf 0.13).

    genai-perf, from which it was made, writes the same metrics without counts and the duration.
    """
    tree = _metrics(tree)

    def average(name: str) -> float | None:
        return _number(tree, name, "avg")

    def scale(name: str) -> float:
        return _UNITS[str((tree.get(name) or {}).get("unit", "ms"))]  # a KeyError for a unit that is not of time

    def latency(name: str) -> Spread | None:
        values = {ours: _number(tree, name, theirs) for ours, theirs in _AIPERF_NAMES.items()}
        return _spread(values, count=_number(tree, name, "count"), scale=scale(name))

    rate, streams = average("request_throughput"), average("effective_concurrency")
    prompt, answer = average("input_sequence_length"), average("output_sequence_length")
    seconds = _product(average("benchmark_duration"), scale("benchmark_duration"))
    figures = Figures(
        requests=_count(average("request_count")),
        requests_failed=_count(average("error_request_count")),
        window_seconds=seconds,
        requests_per_second=rate,
        goodput_requests_per_second=average("goodput"),
        input_tokens_per_second=_product(rate, prompt),
        output_tokens_per_second=average("output_token_throughput"),
        prompt_tokens_mean=prompt,
        output_tokens_mean=answer,
        ttft_seconds=latency("time_to_first_token"),
        # Its inter-token latency is a mean of each request: the time per token.
        tpot_seconds=latency("inter_token_latency"),
        e2e_seconds=latency("request_latency"),
    )
    config = tree.get("input_config")
    names = ((config or {}).get("endpoint") or {}).get("model_names") if isinstance(config, Mapping) else None
    configured = _configured_concurrency(config)
    return (
        ForeignCell(
            # Without the configured number of streams, the measured mean is the nearest to it.
            point=_point(_whole(streams) if configured is None else configured, prompt, answer),
            figures=figures,
            evidence=Evidence(streams_mean=streams),
            model=str(names[0]) if isinstance(names, list) and names else "",
            seconds=seconds,
        ),
    )


def _configured_concurrency(config: Any) -> int | None:
    """Search the configuration for `concurrency`: its place changes with the version of aiperf, its name does not."""
    if isinstance(config, Mapping):
        own = _number(config, "concurrency")
        if own is not None:
            return int(own)
    elif not isinstance(config, list):
        return None
    children = config.values() if isinstance(config, Mapping) else config
    return next((value for value in map(_configured_concurrency, children) if value is not None), None)


def _read_table(text: str) -> ForeignFile:
    """Read a table as CSV: the quickstart's, or a grid. Raise ValueError for any other text."""
    if len(text) > _LONGEST_TABLE:
        raise ValueError(f"it isn't JSON, and as a table it's longer than {_LONGEST_TABLE >> 20} million characters")
    other = next((sentence for sign, sentence in _OTHER_TEXTS.items() if sign in text), "")
    if other:
        raise ValueError(other)
    columns, rows = csv_table(text)
    if gke_quickstart.is_table(columns):
        cells = _quickstart_cells(gke_quickstart.rows_of_table(columns, rows))
        return ForeignFile(driver=Driver.GKE_QUICKSTART, cells=tuple(cells))
    return ForeignFile(driver=Driver.GRID, cells=tuple(_read_grid(columns, rows)))


def _read_grid(columns: Sequence[str], rows: Iterable[CsvRow]) -> Sequence[ForeignCell]:
    """Read a grid as people write it down: CSV with `_GRID_COLUMNS` and `status`.

    It holds neither the number of requests and failures, nor the duration, nor the length of answers: all are unknown.
    """
    missing = [name for name in _GRID_COLUMNS if name not in columns]
    if missing:
        raise ValueError(f"it is neither JSON nor a CSV grid: it has no column `{missing[0]}`")
    cells = tuple(map(_read_grid_cell, rows))
    if not cells:
        raise ValueError("it is a CSV grid without a row")
    return cells


def _read_grid_cell(row: CsvRow) -> ForeignCell:
    def number(column: str) -> float:
        value = row.number(column)
        if value is None:
            raise ValueError(f"line {row.line}: `{column}` is unknown")
        return value

    streams, context = number("concurrency"), number("context_len")
    rate, latency = number("throughput_req_sec"), number("avg_latency_s")
    if not (streams.is_integer() and streams and context.is_integer()):
        raise ValueError(f"line {row.line}: streams and tokens are whole numbers, and at least one stream")
    point = Point(concurrency=int(streams), context_tokens=int(context), output_tokens=None)
    status = row.values.get("status", "").strip()
    quoted = f"the file says `{status}`"
    if status.startswith(_GRID_SKIPPED):
        return ForeignCell(point=point, figures=None, why=quoted)
    if status not in _GRID_OK or rate <= 0:
        return ForeignCell(point=point, figures=Figures(requests=0, requests_failed=1), errors={quoted: 1})
    figures = Figures(
        requests=None,
        requests_failed=None,
        requests_per_second=rate,
        input_tokens_per_second=rate * context,
        prompt_tokens_mean=context,
        e2e_seconds=_spread({"mean": latency}, count=None, scale=1.0),
    )
    return ForeignCell(point=point, figures=figures, evidence=Evidence(streams_by_latency=rate * latency))


def _read_quickstart(tree: Tree) -> Sequence[ForeignCell]:
    """Read profiles as the API of GKE Inference Quickstart has them: cells of any number of servers."""
    return _quickstart_cells(gke_quickstart.rows_of_profile(tree))


def _quickstart_cells(rows: Iterable[QuickstartRow]) -> Sequence[ForeignCell]:
    """Return the cells of a table; of several at one load of one server, the one with the most tokens."""
    cells: dict[tuple[str, str, str, Point], ForeignCell] = {}
    for row in rows:
        cell = _quickstart_cell(row)
        if cell is None:
            continue
        key = (cell.model, cell.hardware, cell.server, cell.point)
        present = cells.get(key)
        if present is None or _output_rate(present) < _output_rate(cell):
            cells[key] = cell
    if not cells:
        raise ValueError("it has no row with figures")
    return tuple(cells.values())


def _output_rate(cell: ForeignCell) -> float:
    return 0.0 if cell.figures is None else cell.figures.output_tokens_per_second or 0.0


def _quickstart_cell(row: QuickstartRow) -> ForeignCell | None:
    """Return a cell, None for a row without a rate. NTPOT is the latency of a request over its output tokens."""
    tokens, requests = row.output_rate, row.requests_rate
    if tokens is None and requests is None:
        return None
    answer = tokens / requests if tokens is not None and requests is not None else row.output_length
    if requests is None and tokens is not None and answer:
        requests = tokens / answer
    streams = None if row.ntpot is None or tokens is None else max(1.0, row.ntpot * tokens)
    return ForeignCell(
        point=_point(_whole(streams), row.input_length, answer),
        figures=Figures(
            requests=None,
            requests_failed=None,
            requests_per_second=requests,
            input_tokens_per_second=_product(requests, row.input_length),
            output_tokens_per_second=tokens,
            prompt_tokens_mean=row.input_length,
            output_tokens_mean=answer,
            ttft_seconds=_spread({"mean": row.ttft}, count=None, scale=1.0),
            e2e_seconds=_spread({"mean": _product(row.ntpot, answer)}, count=None, scale=1.0),
        ),
        evidence=Evidence(streams_by_latency=streams),
        model=row.model,
        note=gke_quickstart.METHOD,
        hardware=row.machine,
        server=row.server,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """`matches` and `read` get the JSON tree; `read` raises ValueError, KeyError or TypeError for a damaged file.

    `sign` is a key by which the beginning of a file is recognized that is cut off.
    """

    driver: Driver
    name: str
    sign: str
    matches: Callable[[Tree], bool]
    read: Callable[[Tree], Sequence[ForeignCell | LeftOut]]


FORMATS = (
    Format(driver=Driver.VLLM, name="vllm bench serve", sign='"tokenizer_id"', matches=_is_vllm, read=_read_vllm),
    Format(driver=Driver.GUIDELLM, name="guidellm", sign='"benchmarks"', matches=_is_guidellm, read=_read_guidellm),
    Format(driver=Driver.AIPERF, name="aiperf", sign='"output_sequence_length"', matches=_is_aiperf, read=_read_aiperf),
    Format(
        driver=Driver.SGLANG,
        name="sglang.bench_serving",
        sign='"sharegpt_output_len"',
        matches=_is_sglang,
        read=_read_vllm,
    ),
    Format(
        driver=Driver.INFERENCE_PERF,
        name="inference-perf",
        sign='"load_summary"',
        matches=_is_inference_perf,
        read=_read_inference_perf,
    ),
    Format(
        driver=Driver.GKE_QUICKSTART,
        name=gke_quickstart.TITLE,
        sign='"performanceStats"',
        matches=gke_quickstart.is_profile,
        read=_read_quickstart,
    ),
    Format(
        driver=Driver.LLMPERF, name="llmperf", sign='"num_concurrent_requests"', matches=_is_llmperf, read=_read_llmperf
    ),
)


# Results of other tools, by their keys or their first words: why they are no cells.
_OFFLINE = "which hands all requests to the engine at once: there are no streams and no server to compare"
_OTHERS: Mapping[frozenset[str], str] = {
    frozenset({"elapsed_time", "total_num_tokens", "tokens_per_second"}): (
        f"it is a result of vllm bench throughput, {_OFFLINE}; import one of `vllm bench serve --save-result`"
    ),
    frozenset({"avg_latency", "latencies", "percentiles"}): (
        "it is a result of vllm bench latency, which measures one batch without a server; import one of "
        "`vllm bench serve --save-result`"
    ),
    frozenset({"prefill_latency", "median_decode_latency"}): (
        "it is a result of sglang.bench_one_batch, which measures one batch without a server; import one of "
        "sglang.bench_serving"
    ),
    frozenset({"metrics", "root_group"}): "it is a summary of k6, which counts no tokens",
    frozenset({"latencies", "bytes_in", "status_codes"}): "it is a report of vegeta, which counts no tokens",
    frozenset({"average", "latencyDistribution"}): "it is a report of ghz, which counts no tokens",
    frozenset(
        {"results", "n-shot"}
    ): "it is a result of lm-eval, which grades answers; `tpudeploy verify -accuracy` does",
    frozenset({"report", "config"}): "it is a result of optimum-benchmark, which measures a model without a server",
    frozenset({"num_requests", "response_times"}): "it is a result of Locust, which counts no tokens",
    frozenset(
        {"n_prompt", "n_gen", "avg_ts"}
    ): "it is a result of llama-bench, which measures llama.cpp without a server",
}
_OTHER_TEXTS: Mapping[str, str] = {
    "MLPerf Results Summary": (
        "it is a summary of MLPerf's loadgen, which has neither the streams nor the lengths of its requests"
    ),
    "Offline Throughput Benchmark Result": f"it is a result of sglang.bench_offline_throughput, {_OFFLINE}",
    "Type,Name,Request Count,Failure Count": "it is a table of Locust, which counts no tokens",
    "This is ApacheBench": "it is a result of ab, which counts no tokens",
    "Latency Distribution": "it is a result of wrk or hey, which count no tokens",
    ":::MLLOG": "it is a log of MLPerf, which has neither the streams nor the lengths of its requests",
    "Metric,avg,min,max,p99": "it is the CSV of genai-perf or aiperf; import its file profile_export_*.json",
    "max_concurrency,request_throughput": (
        "it is the summary of a sweep of vLLM's; import the JSON files of its runs, one `vllm bench serve` each"
    ),
    "= PERFORMANCE OVERVIEW": "it is a result of trtllm-bench, which measures TensorRT-LLM without a server",
    "<!DOCTYPE html>": "it is a page, not data: import the JSON that the client writes beside it",
    "Cost/M Input Tokens  ": (
        "it is the table that gcloud prints for people; add `--format=csvprofile`, or `--format=json`"
    ),
    "LLM Metrics": "it is the table that genai-perf or aiperf prints; import its file profile_export_*.json",
}


def _number(tree: Any, *path: str) -> float | None:
    """Return the finite number at that path, or None."""
    for name in path:
        tree = tree.get(name) if isinstance(tree, Mapping) else None
    is_number = isinstance(tree, int | float) and not isinstance(tree, bool)
    return float(tree) if is_number and isfinite(tree) else None


def _needed(tree: Any, name: str) -> float:
    """Return the number of that name. Raise ValueError without one."""
    value = _number(tree, name)
    if value is None:
        raise ValueError(f"it has no `{name}`")
    return value


def _spread(values: Mapping[str, float | None], *, count: float | None, scale: float) -> Spread | None:
    """Return a spread from values by the names of its fields, in units of `scale` seconds; None without a mean."""
    scaled = {name: None if value is None else value * scale for name, value in values.items()}
    mean = scaled.get("mean")
    if mean is None:
        return None
    others = {name: scaled.get(name) for name in ("deviation", "p50", "p90", "p95", "p99", "most")}
    return Spread(count=_count(count), mean=mean, **others)


def _point(streams: int | None, prompt: float | None, answer: float | None) -> Point:
    return Point(concurrency=streams, context_tokens=_whole(prompt), output_tokens=_whole(answer))


def _whole(mean: float | None) -> int | None:
    """Return a mean number of tokens or streams, rounded; None where it is unknown, or 0: then nothing was measured."""
    return None if mean is None else round(mean) or None


def _count(number: float | None) -> int | None:
    """Return a number of requests; None where the file has none, because unknown is not 0."""
    return None if number is None else int(number)


def _product(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one * other
