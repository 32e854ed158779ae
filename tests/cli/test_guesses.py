"""A name that does not exist: what exists is listed, and no command that ends or buys something guesses by spelling."""

from __future__ import annotations

import pytest
from command_line import PROFILE, Open

GUESS = "did you mean"


@pytest.mark.parametrize(
    "line",
    [
        *("destroy foo.yaml", "destroy gema.yaml", "destroy gema", "apply gema.yaml", "gc gema.yaml", "tune gema.yaml"),
        *("state rm gema", "state rm gema[0]", "state mv gema[0] x[0]", "force-unlock gema", "force-unlock abc"),
        *("apply gemma.yaml -target gema", "apply gemma.yaml -replace gema[0]", "destroy gemma.yaml -target gema"),
        *("import gema[0] us-east5-a/q gema.yaml", "report-host gema.yaml", "campaign gema.yaml"),
    ],
)
def test_a_command_that_ends_or_buys_never_guesses(cli: Open, line: str) -> None:
    at = cli(nodes="simulated")
    assert at.run("apply", "-auto-approve", at.write()).code == 0
    wrong = at.run(*line.split())
    assert wrong.code not in {0, 70}
    assert GUESS not in wrong.all.lower()


@pytest.mark.parametrize(
    ("line", "guess"),
    [
        ("plan gema.yaml", "gemma.yaml"),
        ("plan GEMMA.yml", "gemma.yaml"),
        ("plan gemma.yaml -target gema", "gemma"),
        ("state show gema[0]", "gemma"),
        ("state pull gema", "gemma"),
    ],
)
def test_a_command_that_changes_nothing_does(cli: Open, line: str, guess: str) -> None:
    at = cli(nodes="simulated")
    assert at.run("apply", "-auto-approve", at.write()).code == 0
    wrong = at.run(*line.split())
    assert GUESS in wrong.err.lower()
    assert guess in wrong.err


@pytest.mark.parametrize("command", ["plan", "destroy"])
def test_what_exists_is_listed_and_an_ending_makes_no_names_alike(cli: Open, command: str) -> None:
    at = cli()
    for name in ("prod", "test"):
        at.write(PROFILE, f"{name}.yaml")
    wrong = at.run(command, "foo.yaml")
    assert GUESS not in wrong.err
    assert "prod.yaml" in wrong.err
    assert "test.yaml" in wrong.err
