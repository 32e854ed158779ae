"""A command reads the files of a project once, whatever it does with them."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from command_line import PROFILE, Open

from tpudeploy.adapters.pin_file import PinFile
from tpudeploy.domain.pins import FILE, NONE, Name, Pin, PinKind
from tpudeploy.pins import with_pins
from tpudeploy.serialization import pinfile

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


@pytest.mark.parametrize("image", ["v0.32.0", "nightly"])
def test_a_command_reads_the_pins_once(cli: Open, image: str) -> None:
    at = cli()
    profile = at.write(PROFILE.replace("v0.32.0", image))
    (at.folder / "tpudeploy.toml").write_text('project = "test-project"\n', encoding="utf-8")
    assert at.run("apply", "-auto-approve", profile).code == 0  # writes the pins
    for words in (("validate",), ("plan",), ("apply", "-auto-approve"), ("status",), ("destroy", "-auto-approve")):
        with opened_files() as opens:
            assert at.run(*words, profile).code == 0
        assert opens["tpudeploy.toml"] == 1, words
        assert opens["tpudeploy.lock.json"] <= 1, words


def test_pins_that_another_program_wrote_are_read_again(tmp_path: Path) -> None:
    store = PinFile(tmp_path, tmp_path / ".tpudeploy", emulated=True)
    name = Name(kind=PinKind.MODEL, text="google/gemma-4-E2B-it")
    for commit in ("c0" * 20, "c1" * 20):
        pins = with_pins(NONE, [Pin(name=name, to=commit)])
        (tmp_path / FILE).write_text(pinfile.dumps(pins), encoding="utf-8")
        assert store.read().target_of(name) == commit
