"""A script of three lines deploys and deletes, hears what happens as sentences, and gets errors as exceptions."""

from __future__ import annotations

import contextlib
import logging

import pytest
from command_line import Open

import tpudeploy as td


def test_three_lines_deploy_and_delete(cli: Open, caplog: pytest.LogCaptureFixture) -> None:
    at = cli()
    profile = at.write()
    lines: list[str] = []
    sentences: list[str] = []
    caplog.set_level(logging.INFO, logger="tpudeploy")
    with contextlib.chdir(at.folder):
        assert td.plan(profile, clock=at.clock).summary.startswith("Plan: 1 to add")
        assert not at.slices
        report = td.apply(profile, clock=at.clock, on_event=lambda event: sentences.append(str(event)))
        assert report.endpoints[0].url.startswith("http://")
        assert len(at.slices) == 1
        td.destroy(profile, clock=at.clock, on_event=td.progress(lines.append))
    assert not at.slices
    assert any(line.startswith("gemma[0]: Requesting v6e-1 in ") for line in sentences), sentences
    assert any(line.startswith("gemma[0]: Destruction complete after ") for line in lines), lines
    messages = [record.getMessage() for record in caplog.records if record.name == "tpudeploy"]
    assert set(sentences) <= set(messages)


def test_a_failed_deployment_is_an_exception(cli: Open) -> None:
    at = cli(trouble=[{"fault": "stockout", "zone": "*"}])
    profile = at.write()
    with contextlib.chdir(at.folder), pytest.raises(td.errors.CapacityTimeout):
        td.apply(profile, clock=at.clock, timeout="10m")


def test_a_program_without_logging_prints_nothing_of_ours(cli: Open, capfd: pytest.CaptureFixture[str]) -> None:
    at = cli()
    profile = at.write()
    with contextlib.chdir(at.folder):
        td.apply(profile, clock=at.clock)
    assert capfd.readouterr() == ("", "")
