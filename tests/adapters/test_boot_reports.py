"""A machine's report, in one attribute as scripts write it today and in many as earlier ones did."""

from __future__ import annotations

import json

import pytest
from emulator.cloud_world import ZONE, world
from real_time import DEADLINE

from tpudeploy.adapters.google.cloud_tpu import CloudTpu
from tpudeploy.adapters.google.connect import CloudConnection
from tpudeploy.adapters.google.reports import parse
from tpudeploy.domain.names import Zone
from tpudeploy.domain.slices import BootPhase, BootReport, SliceRef

# As templates/boot/report.sh wrote it before reports were one attribute.
OLDER = """#!/bin/bash
attribute() {
  printf '%s' "$2" | curl -sS -f -X PUT --data-binary @- -H 'Metadata-Flavor: Google' --max-time 10 --retry 3 \\
    "http://metadata.google.internal/computeMetadata/v1/instance/guest-attributes/tpudeploy/$1"
}
attribute phase serving
attribute spec abc
attribute undone "1790000000 docker run failed: no such device"
sleep 30
attribute started 1790000100
attribute answer '{"id": 1}'
"""
SERVING = {"at": "1790000050", "phase": "serving", "spec": "new"}


def test_a_machine_that_was_booted_by_an_earlier_version_is_understood_by_googles_client() -> None:
    with world(nodes="real") as w:
        w.create(node={"metadata": {"startup-script": OLDER}})
        w.grow()
        w.clock.sleep(30)
        connection = CloudConnection(emulator_host=w.emulator.host, timeout=DEADLINE)
        report = CloudTpu(connection, w.clock).report(SliceRef(name="a", project="p", zone=Zone(ZONE)))
        connection.close()
    assert report == BootReport(
        phase=BootPhase.SERVING,
        spec="abc",
        started=1790000100,
        undone="1790000000",
        cause="docker run failed: no such device",
        answer='{"id": 1}',
    )


@pytest.mark.parametrize(
    ("older_started", "spec"),
    [("1790000000", "new"), ("1790000060", "old"), ("", "new"), ("soon", "new")],
)
def test_where_scripts_of_both_kinds_have_written_the_later_one_counts(older_started: str, spec: str) -> None:
    older = {"phase": "serving", "spec": "old", "started": older_started}
    report = parse({**older, "report": json.dumps(SERVING)})
    assert report is not None
    assert report.spec == spec


@pytest.mark.parametrize("report", ["", "{", "[]", "7", '{"phase": "elsewhere"}', json.dumps(SERVING)[:-2]])
def test_a_report_that_is_cut_off_or_somebody_elses_is_none(report: str) -> None:
    assert parse({"report": report}) is None


def test_a_report_keeps_lines_quotes_and_other_alphabets() -> None:
    report = parse({"report": '{"phase":"failed","detail":"a \\"b\\" \\\\ ключ","timeline":"booted 1\\nserving 2"}'})
    assert report is not None
    assert (report.detail, report.timeline) == ('a "b" \\ ключ', "booted 1\nserving 2")
