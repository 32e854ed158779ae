"""Each command, called in the ways people get a line wrong: refused at once, with words that help and do no harm."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import PROFILE

from tpudeploy.cli.commands import COMMANDS, command
from tpudeploy.cli.main import main
from tpudeploy.cli.parsers import verbs_of
from tpudeploy.cli.verbs import DESTRUCTIVE

_NAMES = [(name, verb) for name in COMMANDS for verb in ("", *verbs_of(command(name)))]
# Words that change something. An answer names one only if the line had it, or a misspelling of it.
_CHANGES = ("apply", "destroy", "gc", "force-unlock", "import", "-auto-approve", "-force", "state rm", "state push")


def _lines() -> Iterator[tuple[str, ...]]:
    for name, verb in _NAMES:
        words = (name, verb) if verb else (name,)
        yield (*words, "--frobnicate")
        yield (*words, "nope.yaml", "other.yaml", "x", "y", "z")
        yield (*words, "gemma.yaml", "--set")
        yield (*words, "--chdir", "nowhere")
        if not verb:
            yield (name[:-1] + ("x" if name[-1] != "x" else "y"),)
            yield (name, "--timout", "5m", "gemma.yaml")


LINES = tuple(_lines())


def test_there_are_more_than_two_hundred_of_them_and_each_command_is_in_one() -> None:
    assert len(LINES) > 200
    assert {line[0] for line in LINES} >= set(COMMANDS)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "gemma.yaml").write_text(PROFILE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    # Nothing may be asked of a cloud: where that is tried, the answer is about credentials.
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "none.json"))
    return tmp_path


@pytest.mark.parametrize("line", LINES, ids=" ".join)
def test_it_is_refused_without_a_traceback_a_file_or_a_suggestion_that_does_harm(
    line: tuple[str, ...], folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code = main(list(line))
    output = capfd.readouterr()
    assert code == 1, output.err
    assert not output.out.strip(), "what is refused prints nothing for a program to read"
    assert "Traceback" not in output.err
    assert "credentials" not in output.err
    assert len(output.err.strip().splitlines()) <= 15
    assert output.err.startswith(("Error: ", "Usage: "))
    assert [path.name for path in folder.iterdir()] == ["gemma.yaml"]
    for suggestion in re.findall(r"`([^`]+)`", output.err):
        for change in _CHANGES:
            has_change = re.search(rf"(^|tpudeploy |-){re.escape(change)}\b", suggestion)
            assert not has_change or change.split()[0].lstrip("-")[:-1] in " ".join(line), suggestion
    for option in re.findall(r"Did you mean `(--?[a-z-]+)`", output.err):
        assert option.replace("--", "-").lstrip("-")[:1] == "t", "a typo keeps its first letter"
        assert option not in DESTRUCTIVE
