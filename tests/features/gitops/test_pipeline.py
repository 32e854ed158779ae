"""What a pipeline says of itself, in every state in which GitHub says it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tpudeploy.domain.errors import OutputFailed, UsageError
from tpudeploy.features.gitops.forge import Pipeline
from tpudeploy.features.gitops.pipeline import keep, outputs, pipeline, summarize

HEAD = "a" * 40


def _event(folder: Path, event: Any) -> dict[str, str]:
    (folder / "event").write_text(json.dumps(event), encoding="utf-8")
    return {"GITHUB_REPOSITORY": "acme/models", "GITHUB_SHA": "c" * 40, "GITHUB_EVENT_PATH": str(folder / "event")}


def test_outside_a_pipeline_there_is_none() -> None:
    assert pipeline({}) == Pipeline()


def test_a_verdict_belongs_to_the_pull_requests_own_commit(tmp_path: Path) -> None:
    head = {"sha": HEAD, "repo": {"full_name": "acme/models"}}
    run = pipeline(_event(tmp_path, {"pull_request": {"number": 7, "head": head}}))
    assert (run.pull, run.commit, run.is_fork) == (7, HEAD, False)


@pytest.mark.parametrize("repository", [{"full_name": "stranger/models"}, {}, None], ids=["fork", "odd", "deleted"])
def test_whatever_is_not_ours_is_a_fork(tmp_path: Path, repository: Any) -> None:
    run = pipeline(_event(tmp_path, {"pull_request": {"number": 7, "head": {"sha": HEAD, "repo": repository}}}))
    assert run.is_fork


@pytest.mark.parametrize("event", [{}, [], None, {"pull_request": None}, {"schedule": "7 * * * *"}], ids=str)
def test_an_event_without_a_pull_request_is_about_its_commit(tmp_path: Path, event: Any) -> None:
    run = pipeline(_event(tmp_path, event))
    assert (run.pull, run.commit, run.is_fork) == (None, "c" * 40, False)


@pytest.mark.parametrize("text", ["", "{", "\x00"], ids=repr)
def test_an_event_that_cannot_be_read_is_an_error(tmp_path: Path, text: str) -> None:
    around = _event(tmp_path, {})
    (tmp_path / "event").write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match="GITHUB_EVENT_PATH"):
        pipeline(around)


def test_an_output_stays_on_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_OUTPUT", str(tmp_path / "output"))
    outputs({"reason": "one\nexit-code=0", "code": "1"})
    assert (tmp_path / "output").read_text("utf-8") == "reason=one exit-code=0\ncode=1\n"


def test_what_cannot_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_OUTPUT", str(tmp_path))
    with pytest.raises(OutputFailed, match="cannot be written: Is a directory"):
        outputs({"a": "b"})
    (tmp_path / "file").touch()
    with pytest.raises(OutputFailed, match="cannot be written"):
        keep(tmp_path / "file" / "folder", {"plan.md": "told"})


def test_where_nobody_reads_nothing_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    outputs({"a": "b"})
    summarize("told")
