"""A command reads the files of a project once, whatever it does with them."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from command_line import PROFILE, Open

_active: list[Counter[str]] = []


def _count(event: str, arguments: tuple[object, ...]) -> None:
    if _active and event == "open" and isinstance(arguments[0], str | bytes | Path):
        _active[-1][Path(str(arguments[0])).name] += 1


sys.addaudithook(_count)


@contextmanager
def opened_files() -> Iterator[Counter[str]]:
    """Yield the number of times that each file is opened in this block, by its name."""
    _active.append(Counter())
    try:
        yield _active[-1]
    finally:
        _active.pop()


@pytest.mark.parametrize("words", [("validate",), ("size",), ("plan",)], ids=" ".join)
def test_a_command_reads_the_settings_and_the_profile_once(cli: Open, words: tuple[str, ...]) -> None:
    at = cli()
    profile = at.write(PROFILE)
    (at.folder / "tpudeploy.toml").write_text('project = "test-project"\n', encoding="utf-8")
    with opened_files() as opens:
        assert at.run(*words, profile).code == 0
    assert (opens["tpudeploy.toml"], opens[profile]) == (1, 1)
