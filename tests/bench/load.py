"""How true the load client reads: what it says of a server beside what that server took, and what reading costs.

A benchmark, not a test: `python tests/bench/load.py [SECONDS] [STREAMS...]`. The server is tests/bench/known/server.c,
which needs `cc`; it waits 500 to 1,500 ms before a first token, so that streams do not move in step. On a busy machine
the server is late too, and says so: the two are compared, not the one with its settings. A client that is late itself
says so as well (`client_bound`, as in a cell of a run); OVER is one that misses what we promise without a word.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tpudeploy.adapters.load.client import LoadClient
from tpudeploy.benchmark.cells import LAG
from tpudeploy.benchmark.measure import quantile
from tpudeploy.domain.load import Observation, Offer, Point

SOURCE = Path(__file__).parent / "known" / "server.c"
STREAMS = (1, 64, 256, 1024, 2048)
OUTPUT = 64
PROMISED = {256: 0.05, 2048: 0.10}  # of p50, at so many streams


def main(seconds: float, streams: list[int]) -> None:
    print("streams  TTFT p50 true  read  error   p99 true  read  error   ITL p50   tok/s  lag p99   CPU")
    with known_server(ttft_ms=500, jitter_ms=1000, itl_ms=100) as url:
        for count in streams:
            print(_row(url, count, seconds))
    print(f"load average {os.getloadavg()[0]:.1f}")


def _row(url: str, streams: int, seconds: float) -> str:
    point = Point(concurrency=streams, context_tokens=128, output_tokens=OUTPUT)
    _truth(url)
    offer = Offer(point=point, model="known", seed=1, requests=max(3 * streams, 16), window_seconds=seconds)
    observation = LoadClient(url).observe(offer)
    truth = _truth(url)
    assert observation.window is not None
    answers = [a for a in observation.answers if not a.error]
    assert len(answers) == truth["count"], (len(answers), truth)
    read = [a.arrivals[0] - a.sent_at for a in answers]
    gaps = [late - early for a in answers for early, late in zip(a.arrivals, a.arrivals[1:], strict=False)]
    begin, end = observation.window
    rate = sum(begin <= at < end for a in answers for at in a.arrivals) / (end - begin)
    p50, p99 = truth["ttft_p50_us"] / 1e6, truth["ttft_p99_us"] / 1e6
    verdict = "client_bound" if quantile(observation.lags, 0.99) > LAG else ""
    if not verdict and abs(quantile(read, 0.5) / p50 - 1) > PROMISED.get(streams, 1):
        verdict = "OVER"
    return (
        f"{streams:7} {p50:14.3f} {quantile(read, 0.5):5.3f} {quantile(read, 0.5) / p50 - 1:+6.1%}"
        f" {p99:10.3f} {quantile(read, 0.99):5.3f} {quantile(read, 0.99) / p99 - 1:+6.1%}"
        f" {quantile(gaps, 0.5):9.4f} {rate:7.0f} {_lag(observation):7.1f}ms {observation.cpu_share:4.0%}  {verdict}"
    )


def _lag(observation: Observation) -> float:
    return quantile(observation.lags, 0.99) * 1000


def _truth(url: str) -> dict[str, int]:
    with urllib.request.urlopen(f"{url}/truth") as reply:
        answer: dict[str, int] = json.load(reply)
    return answer


@contextmanager
def known_server(*, ttft_ms: int, jitter_ms: int, itl_ms: int) -> Iterator[str]:
    """Its URL."""
    compiler = shutil.which("cc") or sys.exit("needs a C compiler (cc)")
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "server"
        subprocess.run([compiler, "-O2", "-o", program, SOURCE], check=True)
        port = _free_port()
        server = subprocess.Popen([program, *map(str, (port, ttft_ms, jitter_ms, itl_ms))])
        try:
            _wait_for(port)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.kill()
            server.wait()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def _wait_for(port: int) -> None:
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            time.sleep(0.01)
        else:
            return
    sys.exit("the server does not answer")


if __name__ == "__main__":
    main(float((sys.argv[1:] or ["10"])[0]), [int(word) for word in sys.argv[2:]] or list(STREAMS))
