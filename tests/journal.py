"""The journal of a failed test: its seeds, what each of its clouds was asked, and the logs of their machines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

import pytest

from tpudeploy.emulator import Emulator

_LINES = 200


def read_journal(config: pytest.Config, emulators: Iterable[Emulator]) -> Iterator[tuple[str, str]]:
    """Yield what explains a failed test and repeats it, each with its title."""
    options = ("--randomly-seed", "--hypothesis-seed")
    yield "seeds", "\n".join(f"{option}={config.getoption(option, None)}" for option in options)
    for emulator in emulators:
        scenario = emulator._cloud.scenario
        requests = [f"{request.method} {request.path} {request.verdict}" for request in emulator.requests]
        title = f"last requests to the emulator at {emulator.host}, with seed {scenario.seed}, jitter {scenario.jitter}"
        # A run that polls asks the same again and again: one line with its number.
        counted = [(line, sum(1 for _ in equal)) for line, equal in groupby(requests)]
        lines = [f"{line} ({number} times)" if number > 1 else line for line, number in counted]
        yield title, "\n".join(lines[-_LINES:])
        for name, hosts in emulator._cloud.hosts.items():
            for host in hosts:
                yield f"end of the log of {name}", "\n".join(host.log().splitlines()[-_LINES:])
