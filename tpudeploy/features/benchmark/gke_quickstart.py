"""Tables of GKE Inference Quickstart: `gcloud container ai profiles`, as CSV or as the JSON of its API.

Fields: google.cloud.gkerecommender.v1 (PerformanceStats, Profile). Columns: the formats `csvprofile` and `profile` of
the Google Cloud SDK (command_lib/run/printers, 2025), and what `--format="csv(…)"` makes of the fields. Columns of
lengths and use cases are not verified: later releases of the service have workloadSpec.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tpudeploy import catalog
from tpudeploy.features.benchmark.csv_table import CsvRow

TITLE = "GKE Inference Quickstart"
METHOD = (
    "measured by Google on GKE; NTPOT is the latency of a request over its output tokens, so the number of streams and "
    "the latency of requests follow from it by Little's law; whether latencies are means or medians, the server's "
    "flags, and when it was measured aren't stated"
)
# Each field, by the spellings of its column without spaces and signs.
_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "machine": ("instancetype",),
    "model": ("modelname", "model"),
    "server": ("modelservername", "modelserver"),
    "version": ("modelserverversion",),
    "output_rate": ("outputtokenss", "outputtokenspersecond", "outputtokenssec"),
    "ntpot": ("ntpotms", "ntpotmilliseconds"),
    "ttft": ("ttftms", "ttftmilliseconds"),
    "requests_rate": ("qps", "queriespersecond"),
    "input_length": ("averageinputlength", "workloadspecaverageinputlength"),
    "output_length": ("averageoutputlength", "workloadspecaverageoutputlength"),
    "use_case": ("usecase", "workloadspecusecase"),
}
_NEEDED: Mapping[str, str] = {
    "model": "Model Name",
    "output_rate": "Output Tokens/s",
    "ntpot": "NTPOT (ms)",
}
_TEXTS: Sequence[str] = ("model", "machine", "server", "version", "use_case")
_NUMBERS: Sequence[str] = ("output_rate", "requests_rate", "ntpot", "ttft", "input_length", "output_length")
_MS = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class QuickstartRow:
    """One measurement: rates per second, latencies in seconds, lengths in tokens. None and "" are unknown.

    `machine` is the name of the slice type, or of a machine without TPUs. `ntpot` is the latency of a request over its
    output tokens.
    """

    model: str
    machine: str
    server: str = ""
    output_rate: float | None = None
    requests_rate: float | None = None
    ntpot: float | None = None
    ttft: float | None = None
    input_length: float | None = None
    output_length: float | None = None


def is_table(columns: Sequence[str]) -> bool:
    """Return whether a table is one of the quickstart's, by the two columns that no other client's has together."""
    fields = _fields(columns)
    return "machine" in fields and bool({"ntpot", "ttft"} & fields.keys())


def rows_of_table(columns: Sequence[str], rows: Iterable[CsvRow]) -> Iterator[QuickstartRow]:
    """Yield each measurement of a table. Raise ValueError for a missing column, and for a value that is no number."""
    fields = _fields(columns)
    missing = next((title for field, title in _NEEDED.items() if field not in fields), None)
    if missing is not None:
        raise ValueError(f"it looks like a table of {TITLE} without its column `{missing}`")
    for row in rows:
        numbers = {name: row.number(fields[name]) for name in _NUMBERS if name in fields}
        texts = {name: row.values[fields[name]] for name in _TEXTS if name in fields}
        nameless = next((name for name in ("model", "machine") if not texts[name].strip()), None)
        if nameless is not None:
            raise ValueError(f"line {row.line}: it names no {nameless}")
        yield _row(texts, numbers, chips=None)


def is_profile(tree: Mapping[str, Any]) -> bool:
    """Return whether a JSON object is a profile of the API, or its response with several."""
    profiles = tree.get("profile")
    return "performanceStats" in tree or (
        isinstance(profiles, list) and all(isinstance(each, dict) and "performanceStats" in each for each in profiles)
    )


def rows_of_profile(tree: Mapping[str, Any]) -> Iterator[QuickstartRow]:
    """Yield each measurement of a profile, or of a response with several. Raise as damaged JSON does: KeyError …"""
    for profile in tree.get("profile", [tree]):
        server, workload = profile["modelServerInfo"], profile.get("workloadSpec") or {}
        texts = {
            "model": server["model"],
            "machine": profile.get("instanceType") or profile["acceleratorType"],
            "server": server.get("modelServer") or "",
            "version": server.get("modelServerVersion") or "",
            "use_case": workload.get("useCase") or "",
        }
        chips = (profile.get("resourcesUsed") or {}).get("acceleratorCount")
        for stats in profile["performanceStats"]:
            numbers = {
                "output_rate": stats.get("outputTokensPerSecond"),
                "requests_rate": stats.get("queriesPerSecond"),
                "ntpot": stats.get("ntpotMilliseconds"),
                "ttft": stats.get("ttftMilliseconds"),
                "input_length": workload.get("averageInputLength"),
                "output_length": workload.get("averageOutputLength"),
            }
            yield _row(texts, {name: _number(name, value) for name, value in numbers.items()}, chips=chips)


def _number(name: str, value: object) -> float | None:
    """Return a number from 0 on, also one that JSON has as a text, as it has 64-bit integers."""
    if value is None:
        return None
    return CsvRow(line=0, values={name: str(value)}).number(name)


def _row(texts: Mapping[str, str], numbers: Mapping[str, float | None], *, chips: object) -> QuickstartRow:
    # 0 is what protocol buffers have in place of an absent number.
    known = {name: value or None for name, value in numbers.items()}
    latencies = {name: None if (value := known.get(name)) is None else value * _MS for name in ("ntpot", "ttft")}
    words = {name: " ".join(str(text).split()) for name, text in texts.items()}
    server = " ".join(filter(None, (words.get("server"), words.get("version"))))
    use_case = words.get("use_case")
    return QuickstartRow(
        model=words["model"],
        machine=_slice_name(words["machine"], chips if isinstance(chips, int) else None),
        server=", ".join(filter(None, (server, use_case))),
        **{**known, **latencies},
    )


def _slice_name(machine: str, chips: int | None) -> str:
    """Return the slice type of a machine type, one machine unless `chips` says more; other machines keep their name."""
    kind = catalog.accelerator_type(machine)
    if kind is None or chips is None or chips == kind.chips:
        return machine if kind is None else kind.name
    larger = (
        each for each in catalog.accelerator_types() if (each.machine_type, each.chips) == (kind.machine_type, chips)
    )
    return next((each.name for each in larger), f"{chips} chips of {machine}")


def _fields(columns: Sequence[str]) -> dict[str, str]:
    """Return the column of each field that a table has."""
    by_spelling = {re.sub(r"[^a-z0-9]", "", column.lower()): column for column in columns}
    return {
        field: next(by_spelling[spelling] for spelling in spellings if spelling in by_spelling)
        for field, spellings in _COLUMNS.items()
        if any(spelling in by_spelling for spelling in spellings)
    }
