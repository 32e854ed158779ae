"""`up MODEL_ID`: from a model id to a serving endpoint, against the emulator."""

from __future__ import annotations

import json

import yaml
from command_line import Open

MODEL = "google/gemma-4-E2B-it"
FILE = "gemma-4-e2b-it.yaml"


def test_a_model_id_serves_after_one_yes(cli: Open) -> None:
    at = cli()
    first = at.run("up", MODEL, "-auto-approve")
    assert first.code == 0, first.all
    profile = yaml.safe_load((at.folder / FILE).read_text(encoding="utf-8"))
    assert (profile["model"]["id"], profile["tpu"]["type"], profile["lifecycle"]["end"]) == (MODEL, "v6e-1", "24h")
    position = [first.out.index(part) for part in (f"{MODEL} on v6e-1, in ", "KV cache", "Plan:", "endpoint = ")]
    assert position == sorted(position)
    assert "/h" in first.out
    again = at.run("up", MODEL, "-auto-approve")
    assert again.code == 0, again.all
    assert "No changes" in again.out


def test_nothing_is_requested_without_a_yes(cli: Open) -> None:
    at = cli()
    refused = at.run("up", MODEL, "-o", "mine.yaml")
    assert refused.code != 0
    assert "pass -auto-approve" in refused.err
    assert not at.slices
    assert (at.folder / "mine.yaml").exists()


def test_a_file_that_was_changed_is_kept_and_the_error_names_the_command(cli: Open) -> None:
    at = cli()
    at.write("mine", FILE)
    refused = at.run("up", MODEL, "-auto-approve")
    assert refused.code == 1
    assert "Apply it: `tpudeploy apply " in refused.err
    assert (at.folder / FILE).read_text(encoding="utf-8") == "mine"
    assert not at.slices


def test_a_model_that_cannot_be_sized_is_refused_before_anything_is_written(cli: Open) -> None:
    at = cli()
    refused = at.run("up", "someone/something-7b", "-auto-approve")
    assert refused.code == 13
    assert "cannot be sized, because" in refused.err
    assert not (at.folder / "something-7b.yaml").exists()
    assert not at.slices


def test_json_is_the_stream_of_apply(cli: Open) -> None:
    at = cli()
    first = at.run("up", MODEL, "-auto-approve", "-json")
    assert first.code == 0, first.all
    rows = [json.loads(line) for line in first.out.splitlines()]
    assert rows[-1]["type"] == "report"
