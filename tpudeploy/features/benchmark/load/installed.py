"""Installed: a load driver that runs another client as a separate process and reads the result that it writes.

Each cell runs it twice; the first pass is a warm-up, and its result is discarded. No secret is put on a command line,
where every user of the machine could read it. A client that accepts a key only there cannot measure an endpoint that
requires one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tpudeploy.adapters.child import check_interrupt, child
from tpudeploy.adapters.files import read_end, read_file
from tpudeploy.domain import errors
from tpudeploy.features.benchmark import foreign
from tpudeploy.features.benchmark.offer import Offer
from tpudeploy.features.benchmark.run import Driver, Evidence, Measured, Slo

_POLL = 0.05  # seconds
_WARM_UP = 10.0  # seconds, for clients that limit the time and not the requests
_MOST_RESULT_BYTES, _LOG_BYTES = 256 << 20, 1 << 16
_LAST_LINES = 3  # of the client's log, shown if it fails


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCommand:
    """The values of a command line. `requests` is the number in this pass; the result is written to `folder`."""

    offer: Offer
    url: str
    tokenizer: str
    folder: Path
    requests: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """A client program on PATH. `key` is the environment variable for its API key; `result` is the file it writes."""

    program: str
    arguments: Callable[[ClientCommand], list[str]]
    result: str
    install: str
    key: str | None = None


def _vllm(case: ClientCommand) -> list[str]:
    point = case.offer.point
    return [
        *("bench", "serve", "--backend", "vllm", "--base-url", case.url, "--endpoint", "/v1/completions"),
        *("--model", case.offer.model, "--tokenizer", case.tokenizer, "--dataset-name", "random"),
        *("--random-input-len", str(point.context_tokens), "--random-output-len", str(point.output_tokens)),
        *("--num-prompts", str(case.requests), "--max-concurrency", str(point.concurrency), "--ignore-eos"),
        *("--seed", str(case.offer.seed % 2**31), "--percentile-metrics", "ttft,tpot,itl,e2el"),
        *("--metric-percentiles", "50,90,95,99", "--save-result", "--result-dir", str(case.folder)),
        *("--result-filename", "result.json"),
    ]


def _guidellm(case: ClientCommand) -> list[str]:
    """Return the arguments of guidellm 0.8; all earlier versions have other flags."""
    point = case.offer.point
    lengths = f"prompt_tokens={point.context_tokens},output_tokens={point.output_tokens}"
    return [
        *("run", "--backend", f"kind=openai_http,target={case.url},model={case.offer.model}"),
        *("--profile", f'{{"kind":"concurrent","streams":[{point.concurrency}]}}'),
        *("--constraint", f"kind=max_duration,seconds={case.seconds:g}"),
        *("--tokenizer", f"kind=hf_auto,model={case.tokenizer}", "--data", f"kind=synthetic_text,{lengths}"),
        *("--metrics", "kind=generative,sample_size=0"),
        *("--output", f"kind=json,path={case.folder / 'result.json'}", "--disable-console"),
    ]


def _aiperf(case: ClientCommand) -> list[str]:
    point = case.offer.point
    return [
        *("profile", "--model", case.offer.model, "--url", case.url, "--endpoint-type", "completions", "--streaming"),
        *("--tokenizer", case.tokenizer, "--concurrency", str(point.concurrency)),
        *("--request-count", str(case.requests), "--num-dataset-entries", str(case.requests)),
        *("--isl", str(point.context_tokens), "--osl", str(point.output_tokens), "--use-server-token-count"),
        *("--random-seed", str(case.offer.seed % 2**31), "--ui", "none", "--no-gpu-telemetry"),
        *("--export-level", "summary", "--artifact-dir", str(case.folder)),
    ]


CLIENTS: Mapping[Driver, Client] = {
    Driver.VLLM: Client(
        program="vllm", arguments=_vllm, result="result.json", install="Run: pip install vllm", key="OPENAI_API_KEY"
    ),
    Driver.GUIDELLM: Client(
        program="guidellm", arguments=_guidellm, result="result.json", install="Run: pip install 'guidellm>=0.8'"
    ),
    Driver.AIPERF: Client(
        program="aiperf", arguments=_aiperf, result="profile_export_aiperf.json", install="Run: pip install aiperf"
    ),
}


class Installed:
    """See `ports.LoadDriver`. `tokenizer` is a model id on the hub, or a folder."""

    def __init__(self, driver: Driver, url: str, *, tokenizer: str, api_key: str | None = None) -> None:
        """Raise `errors.UsageError` where the client is not installed, or cannot receive the key safely."""
        self._client = CLIENTS[driver]
        self._url = url
        self._tokenizer = tokenizer
        self._api_key = api_key
        self._stopped = threading.Event()
        program = shutil.which(self._client.program)
        if program is None:
            raise errors.UsageError(f"{self._client.program} is not on PATH.", hint=self._client.install)
        if api_key is not None and self._client.key is None:
            raise errors.UsageError(
                f"{self._client.program} accepts a key only on its command line, where others can read it.",
                hint="Leave out --driver, or measure with --driver vllm.",
            )
        self._program = program

    def check(self) -> None:
        """Do nothing, because the constructor checks all that can be checked beforehand."""

    def stop(self) -> None:
        self._stopped.set()

    def measure(self, offer: Offer, slo: Slo) -> Measured:
        began = time.monotonic()
        streams = offer.point.sizes[0]
        is_over = self._run(offer, began, requests=streams, seconds=min(_WARM_UP, offer.window_seconds)) is None
        text = None if is_over else self._run(offer, began, requests=offer.requests, seconds=offer.window_seconds)
        seconds = time.monotonic() - began
        if text is None:
            return Measured(figures=None, evidence=Evidence(), errors={}, seconds=seconds, is_cut=True)
        try:
            (result,) = foreign.read(text).cells
        except ValueError as cause:
            raise errors.BenchFailed(f"{self._client.program} wrote a result that cannot be read: {cause}.") from cause
        if result.figures is None:
            raise errors.BenchFailed(f"{self._client.program} left the cell out: {result.why}.")
        return Measured(figures=result.figures, evidence=result.evidence, errors=result.errors, seconds=seconds)

    def _run(self, offer: Offer, began: float, *, requests: int, seconds: float) -> str | None:
        """Return the client's result, or None where the offer's time ended first. Raise `errors.Interrupted`."""
        with tempfile.TemporaryDirectory(prefix="tpudeploy-bench-") as name:
            folder = Path(name)
            case = ClientCommand(
                offer=offer, url=self._url, tokenizer=self._tokenizer, folder=folder, requests=requests, seconds=seconds
            )
            ends = None if offer.most_seconds is None else began + offer.most_seconds
            with (
                (folder / "log").open("w+b") as log,
                child(
                    [self._program, *self._client.arguments(case)],
                    cwd=folder,
                    env=self._environment(),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                ) as process,
            ):
                if not self._wait(process, ends):
                    return None
            check_interrupt(process)
            if process.returncode:
                raise errors.BenchFailed(
                    f"{self._client.program} ended with {process.returncode}: {_last(folder / 'log')}"
                )
            return _read_result(folder, self._client.result)

    def _wait(self, process: subprocess.Popen[bytes], ends: float | None) -> bool:
        """Wait for the process. Return False if its time ended first; raise `errors.Interrupted` after `stop`."""
        while process.poll() is None:
            if self._stopped.wait(_POLL):
                raise errors.Interrupted("Interrupted.")
            if ends is not None and time.monotonic() >= ends:
                return False
        return True

    def _environment(self) -> dict[str, str]:
        key = {} if self._api_key is None or self._client.key is None else {self._client.key: self._api_key}
        return {**os.environ, **key}


def _read_result(folder: Path, name: str) -> str:
    paths = sorted(folder.rglob(name))
    if not paths:
        raise errors.BenchFailed(f"It ended without a result: {_last(folder / 'log')}")
    try:
        return read_file(paths[0], _MOST_RESULT_BYTES).decode("utf-8")
    except (OSError, ValueError) as cause:
        why = getattr(cause, "strerror", None) or "it is not text"
        raise errors.BenchFailed(f"Its result {paths[0].name} cannot be read: {why}.") from cause


def _last(log: Path) -> str:
    text = read_end(log, _LOG_BYTES).decode("utf-8", "replace")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " | ".join(lines[-_LAST_LINES:]) or "it said nothing"
