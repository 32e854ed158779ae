"""How fast profiles are sized: many in one process, and one in a process of its own.

A benchmark, not a test: `python tests/bench/sizing.py [PROFILES]`.
"""

from __future__ import annotations

import subprocess
import sys
import time
from itertools import cycle, islice
from pathlib import Path
from statistics import median

import tpudeploy as td
from tpudeploy.sizing import size

PROFILES = sorted((Path(__file__).parents[2] / "profiles").glob("*.yaml"))
TPUDEPLOY = str(Path(sys.executable).with_name("tpudeploy"))
RUNS = 9


def main(count: int) -> None:
    loaded = [td.Profile.load(path) for path in PROFILES]
    begin = time.perf_counter()
    for spec in islice(cycle(loaded), count):
        size(spec)
    seconds = time.perf_counter() - begin
    print(f"{count:,} profiles sized in {seconds:.2f} s, {count / seconds:,.0f} a second (budget: 1,000 in 1 s)")
    print(f"`tpudeploy size`: {median(_process() for _ in range(RUNS)):.3f} s, median of {RUNS} (budget: 0.25 s)")


def _process() -> float:
    begin = time.perf_counter()
    subprocess.run([TPUDEPLOY, "size", str(PROFILES[0])], capture_output=True, check=True)
    return time.perf_counter() - begin


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000)
