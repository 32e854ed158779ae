"""How true the load client reads: what it says of a server beside what that server took, and what reading costs.

A benchmark, not a test: `python tests/bench/load.py [SECONDS] [STREAMS...]`. The server is tests/bench/known/server.c,
which needs `cc`; it waits 500 to 1,500 ms before a first token, so that streams do not move in step. On a busy machine
the server is late too, and says so: the two are compared, not the one with its settings. A client that is late itself
says so as well (`client_bound`, as in a cell of a run); OVER is a figure that is wrong by more than 2 % without that.
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

from tpudeploy.features.benchmark.cells import most_lag
from tpudeploy.features.benchmark.load.client import LoadClient
from tpudeploy.features.benchmark.measure import quantile, spread
from tpudeploy.features.benchmark.offer import Offer, Point

SOURCE = Path(__file__).parent / "known" / "server.c"
STREAMS = (1, 64, 256, 1024, 2048)
OUTPUT = 64
PROMISE = 0.02  # of p50 and p99, of TTFT and of TPOT


def main(seconds: float, streams: list[int]) -> None:
    print("         TTFT p50: true and error, p99: true and error, TPOT p50: true and error, p99: true and error")
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
    ttft = [a.arrivals[0] - a.sent_at for a in answers]
    tpot = [(a.arrivals[-1] - a.arrivals[0]) / (len(a.arrivals) - 1) for a in answers]
    pairs = [
        (truth[f"{name}_p{share}_us"] / 1e6, quantile(values, share / 100))
        for name, values in (("ttft", ttft), ("tpot", tpot))
        for share in (50, 99)
    ]
    begin, end = observation.window
    rate = sum(begin <= at < end for a in answers for at in a.arrivals) / (end - begin)
    lag = quantile(observation.lags, 0.99)
    verdict = ""
    if lag > most_lag(spread(ttft)):
        verdict = "client_bound"
    elif any(abs(read / true - 1) > PROMISE for true, read in pairs):
        verdict = "OVER"
    columns = "".join(f"{true:13.4f} {read / true - 1:+7.1%}" for true, read in pairs)
    return f"{streams:7}{columns} {rate:9.0f} {lag * 1000:7.1f}ms {observation.cpu_share:4.0%}  {verdict}"


def _truth(url: str) -> dict[str, float]:
    with urllib.request.urlopen(f"{url}/truth") as reply:
        answer: dict[str, float] = json.load(reply)
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
