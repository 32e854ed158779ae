"""The first hour: what a newcomer types, with a word too few or a wrong one, and how to end what it costs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import PROFILE, Open
from pseudo_terminal import INTERRUPT, person


def test_the_lines_after_init_are_commands_and_no_answers(tmp_path: Path) -> None:
    """README's first block, pasted into a terminal: `init --from` asks nothing."""
    with person("init", "--from", "gemma4-e2b-v6e1", "first.yaml", folder=tmp_path, environment={}) as somebody:
        assert somebody.stays_to_the_end() == 0
    assert (tmp_path / "first.yaml").exists()


def test_an_interrupt_at_a_question_advises_nothing(tmp_path: Path) -> None:
    with person("init", folder=tmp_path, environment={}) as somebody:
        somebody.waits_for("Start from profile").types(INTERRUPT)
        assert somebody.stays_to_the_end() == 130
    assert "nothing was done" in somebody.read
    assert "destroy" not in somebody.read


def test_a_deployment_is_destroyed_by_its_name_when_its_profile_is_gone(cli: Open) -> None:
    at = cli()
    at.write(PROFILE + "replicas: 2\nlifecycle: {prevent_destroy: true}\n")
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    status = at.run("status")
    assert "To stop paying: tpudeploy destroy gemma\n" in status.out
    (at.folder / "gemma.yaml").unlink()
    assert at.run("destroy", "-auto-approve", "gemma").code == 13
    assert at.slices, "what the profile forbids, its name does not allow"
    assert at.run("destroy", "-auto-approve", "gemma", "-set", "lifecycle.prevent_destroy=false").code == 0
    assert not at.slices
    assert "To stop paying" not in at.run("status").out


def test_gc_says_how_to_end_what_is_needed(cli: Open) -> None:
    at = cli()
    assert at.run("apply", "-auto-approve", at.write()).code == 0
    assert "`tpudeploy destroy NAME` deletes a deployment" in at.run("gc").words


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("destroy", "-auto-approve", "nope"), "`nope` is neither a profile nor a deployment with a state here."),
        (("router", "nope"), "`nope` is not deployed here"),
        (("force-unlock", "nope"), "There is no lock with the id nope."),
        (("force-unlock", "gemma"), "There is no lock with the id gemma."),
    ],
    ids=" ".join,
)
def test_a_wrong_name_is_a_sentence(words: tuple[str, ...], sentence: str, cli: Open) -> None:
    at = cli()
    at.write()
    result = at.run(*words)
    assert result.code == 1
    assert sentence in result.words
    assert json.loads(at.run(*words, "-json").out.splitlines()[-1])["message"].startswith(sentence[:20])
