"""The views beyond what whole screens show: every event has its words, and no text can break a line or a format."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, get_args

import pytest
from jsonschema import Draft7Validator

from tpudeploy.domain import events
from tpudeploy.domain.deployment import Provisioning
from tpudeploy.domain.diagnostics import Diagnostic, Location, Severity
from tpudeploy.domain.ending import EndCause
from tpudeploy.domain.excerpt import describe_diagnostics, escaped
from tpudeploy.domain.names import Zone
from tpudeploy.domain.orphans import Claim, CloudResource, Orphan, Orphans, OwnerMark, ResourceRequest
from tpudeploy.domain.plan import DESTROY_INTERRUPTED, Action, DriftKind, SliceDrift
from tpudeploy.domain.request_table import PlaceState, PlaceStatus
from tpudeploy.domain.slices import Absence, BootPhase, Phase, Slice, SliceRef
from tpudeploy.domain.verify import Verdict, VerifiedSetting
from tpudeploy.orphans.view import gc
from tpudeploy.text import words
from tpudeploy.text.paint import Paint
from tpudeploy.views import jsonl
from tpudeploy.views.drift import alone
from tpudeploy.views.events import line
from tpudeploy.views.reports import REPORTS, CheckedProfile

PLAIN, COLOUR = Paint(), Paint(colour=True)
NAMED = {"name": "gemma-aaaaaaaa-0-0", "zone": "us-east5-a", "provisioning": "spot"}
HELD = {
    **dict.fromkeys(("id", "operation", "who", "host"), "somebody"),
    "pid": 1,
    "created": 0.0,
    "heartbeat": 0.0,
    "run_url": "https://ci.example/1",
}
PLACES = (
    PlaceStatus(zone="us-east5-b", provisioning="spot", state=PlaceState.QUEUED, why="ACCEPTED"),
    PlaceStatus(zone="us-east5-a", provisioning="spot", state=PlaceState.REFUSED, kind="stockout"),
)

SHORTER = VerifiedSetting(
    name="max_model_len", declared="16384", effective={"api": "4096"}, verdict=Verdict.DIFFERS, is_written=True
)


def _example(cls: Callable[..., events.Event], **facts: Any) -> events.Event:
    return cls(at=0.0, address="gemma[0]", **facts)


EVENTS: tuple[events.Event, ...] = (
    _example(events.ChangeStarted, action=Action.CREATE),
    _example(events.Requested, **NAMED, accelerator_type="v6e-1"),
    _example(events.NotGranted, **NAMED, kind="stockout", message="no capacity", blocked_seconds=300),
    _example(events.NotGranted, **NAMED, kind="preempted", message="taken", blocked_seconds=0),
    _example(events.NotGranted, **NAMED, kind="preempted", message="taken", blocked_seconds=7200, landed=True),
    _example(events.Reclaimed, **NAMED, reason="it serves already"),
    _example(events.Scaled, before=1, after=2, why="9 requests wait"),
    _example(events.EndPassed, why="lifecycle.end: 24h"),
    _example(events.HoursBegan, cause=EndCause.HOURS, why="lifecycle.hours: Mon-Fri 08:00-19:00 Europe/Berlin"),
    _example(events.PhaseChanged, **NAMED, phase=Phase.QUEUED, detail="ACCEPTED", elapsed=61),
    _example(events.Outlook, places=PLACES),
    _example(events.Waiting, why="ACCEPTED", elapsed=3600, places=PLACES),
    _example(events.LockHeld, **HELD),
    _example(events.LockHeld, **HELD | dict.fromkeys(("pid", "created", "heartbeat"))),
    _example(events.Retrying, message="the service is unavailable", seconds=4),
    _example(events.LockWaiting, message="The state of gemma is locked by ada", seconds=4),
    _example(events.Draining, **NAMED, seconds=60),
    _example(events.Released, **NAMED, reason="no longer wanted"),
    _example(events.Gone, **NAMED, reason=Absence.GONE),
    _example(events.Gone, **NAMED, reason=Absence.NEVER_APPEARED),
    _example(events.Adopted, **NAMED),
    _example(events.Updated, **NAMED, what=events.UpdateSubject.NODE),
    _example(events.Updated, **NAMED, what=events.UpdateSubject.RESTART),
    _example(events.Serving, **NAMED, url="http://1.2.3.4:8000", door="external", answer="Hello.", elapsed=200),
    _example(events.Pinned, kind="image", name="vllm/vllm-tpu:nightly", to="sha256:01", before="sha256:00"),
    _example(
        events.Verified,
        **NAMED,
        held=4,
        broken=(SHORTER,),
        off=(),
        blocks="17996",
        tokens="1151744",
        silent={"log": "HTTP 403"},
    ),
    _example(events.Verified, **NAMED, held=0, broken=(), off=(), blocks="", tokens="", silent={"api": "timed out"}),
    _example(events.Warned, message="cannot be reached from here", hint="open the port"),
    _example(events.ChangeDone, action=Action.CREATE, elapsed=200),
    _example(events.ChangeLeft, action=Action.CREATE, elapsed=200),
    _example(events.ChangeFailed, action=Action.CREATE, code="TPU6000", message="does not serve", hint="see the log"),
)


def test_every_kind_of_event_is_here() -> None:
    assert {type(event) for event in EVENTS} == set(get_args(events.Event))


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_an_event_has_its_words_for_people_and_its_facts_for_programs(event: events.Event) -> None:
    text = line(event, PLAIN)
    assert text.startswith("gemma[0]: ")
    assert "\033" not in text
    assert line(event, COLOUR) != text
    tree = json.loads(jsonl.line(event))
    assert "\n" not in jsonl.line(event)
    assert (tree["v"], tree["line"], tree["address"]) == (1, text, "gemma[0]")


@pytest.mark.parametrize("phase", [*Phase, *BootPhase])
def test_every_phase_can_be_told(phase: Phase | BootPhase) -> None:
    answer = line(_example(events.PhaseChanged, **NAMED, phase=phase, detail="", elapsed=5), PLAIN)
    name = "gemma-aaaaaaaa-0-0, " if phase in {*BootPhase, Phase.REFUSED} - {BootPhase.FAILED} else ""
    assert answer.endswith(f"[{name}5s elapsed]")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (59.4, "59s"), (60, "1m 0s"), (3599, "59m 59s"), (7320, "2h 2m"), (86400, "1d 0h"), (273600, "3d 4h")],
)
def test_a_duration_is_its_two_largest_units(seconds: float, text: str) -> None:
    assert words.duration(seconds) == text


# What reorders text, hides in it, or is a second form of a terminal's commands.
HIDDEN = (
    "\u202eevil",
    "\u2066",
    "\u2069",
    "\u061c",
    "\u200b",
    "\u2060",
    "\ufeff",
    "\x85",
    "\xad",
    "\u3164",
    "\U000e0041",
)


@pytest.mark.parametrize("text", HIDDEN)
def test_a_document_writes_what_hides_as_escapes(text: str) -> None:
    document = escaped(json.dumps({"a": text}, ensure_ascii=False))
    assert document.isprintable()
    assert json.loads(document) == {"a": text}


def test_emoji_and_scripts_that_need_joiners_are_shown_as_they_are() -> None:
    text = "\U0001f469\u200d\U0001f680 \u0646\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645 \u2764\ufe0f"
    assert words.plain(text) == text


@pytest.mark.parametrize("text", ["\x1b]0;title\x07", "\x9b31m", "a\rb", "\x00", "\u2028", "\udcff", *HIDDEN])
def test_no_text_of_others_commands_the_terminal(text: str) -> None:
    line = words.plain(f"before {text} after\n\tnext")
    assert line.isprintable() is False  # its own line feed and tab stay
    assert line.replace("\n", "").replace("\t", "").isprintable()
    assert line.startswith("before ")
    assert line.endswith(" after\n\tnext")
    answer = describe_diagnostics([Diagnostic(code="TPU1", message=text, hint=text)])
    assert answer.replace("\n", "").isprintable()


def _stray(**facts: Any) -> Orphan:
    """Something of a type that the catalogue does not know, and `known` over it."""
    ref = SliceRef(name="gemma-aaaaaaaa-0-0", project="p", zone=Zone("us-east5-a"))
    resource = CloudResource(
        ref=ref,
        mark=OwnerMark(deployment="gemma", lineage="aaaaaaaa", replica=0),
        is_signed=True,
        slice=Slice(name=ref.name, zone=ref.zone, phase=Phase.UP, raw_state="ACTIVE\x1b[31m"),
        request=ResourceRequest(accelerator_type="", provisioning=Provisioning.SPOT),
        requested_at=None,
    )
    stray = Orphan(
        resource=resource, deployment="gemma", claim=Claim.LEFTOVER, goes=True, age=None, usd_per_hour=None, chips=None
    )
    return replace(stray, **facts)


def test_what_nobody_knows_of_a_leftover_is_said_to_be_unknown() -> None:
    strays = (_stray(), _stray(usd_per_hour=1.5, chips=4, age=60.0))
    answer = gc(Orphans(projects=("p",), strays=strays, needed=0, foreign=False), PLAIN)
    assert "unknown type" in answer
    assert "age unknown  price unknown" in answer
    assert "Plan: 2 to remove; saves $1.50/h and more at list price, gives 4 chips of quota back." in answer
    assert "\x1b" not in answer
    assert "\x1b[31m-" in gc(Orphans(projects=("p",), strays=strays, needed=0, foreign=False), COLOUR)


def test_a_value_stays_on_one_line_of_a_screen() -> None:
    assert words.value("two\nlines") == '"two\\nlines"'
    assert len(words.value("x" * 1000)) < 100


def _pointed(text: str, column: int, width: int) -> str:
    """What stands over the carets."""
    at = Location(file="a.yaml", line=3, column=column, width=width, text=text)
    *_, above, below = describe_diagnostics([Diagnostic(code="TPU1", message="m", location=at)]).splitlines()
    start = below.index("^")
    return above[start : start + below.count("^")]


@pytest.mark.parametrize("before", ["", "  key: ", "\tkey: ", "k" * 500 + ": ", "schlüssel: "])
@pytest.mark.parametrize("after", ["", "  # comment", "x" * 500])
def test_the_caret_stands_under_the_fault(before: str, after: str) -> None:
    assert _pointed(f"{before}fault{after}", len(before) + 1, 5) == "fault"


def test_a_place_beyond_the_end_of_its_line_still_has_a_caret() -> None:
    at = Location(file="a.yaml", line=1, column=9, width=4, text="short")
    assert "^" in describe_diagnostics([Diagnostic(code="TPU1", message="m", location=at)])


# What of SARIF 2.1.0 we write, as the specification has it; GitHub wants a place in a file for each result.
_TEXT = {"type": "string", "minLength": 1}
_PLACED = {
    "type": "object",
    "properties": {
        "artifactLocation": {
            "properties": {"uri": {"type": "string", "pattern": r"^([A-Za-z0-9\-._~/@!$&'()*+,;=]|%[0-9A-F]{2})+$"}}
        },
        "region": {
            "properties": {k: {"type": "integer", "minimum": 1} for k in ("startLine", "startColumn", "endColumn")}
        },
    },
    "required": ["artifactLocation", "region"],
    "additionalProperties": False,
}
_RESULT = {
    "type": "object",
    "properties": {
        "ruleId": _TEXT,
        "level": {"enum": ["none", "note", "warning", "error"]},
        "message": {"properties": {"text": _TEXT}, "required": ["text"], "additionalProperties": False},
        "locations": {
            "minItems": 1,
            "items": {"properties": {"physicalLocation": _PLACED}, "required": ["physicalLocation"]},
        },
    },
    "required": ["ruleId", "level", "message", "locations"],
    "additionalProperties": False,
}
SARIF = Draft7Validator(
    {
        "properties": {
            "$schema": _TEXT,
            "version": {"const": "2.1.0"},
            "runs": {"minItems": 1, "items": {"properties": {"results": {"items": _RESULT}}, "required": ["tool"]}},
        },
        "required": ["version", "runs"],
        "additionalProperties": False,
    }
)
NASTY = "a::b,c%d\r\n<e> & \"f\" 'g' \u2028 \x1b[31m \x9b \ufffe 模"


def _nasty() -> Iterator[Diagnostic]:
    at = Location(file="a,b:c.yaml", line=1, column=1, width=3, text=NASTY)
    yield Diagnostic(code="TPU1201", message=NASTY, hint=NASTY, location=at)
    yield Diagnostic(code="TPU2001", message=NASTY, severity=Severity.WARNING)
    yield Diagnostic(code="TPU1002", message=NASTY, location=Location(file="HOME", line=0, column=0))
    yield Diagnostic(code="TPU1003", message=NASTY, location=Location(file="--set", line=1, column=3))


@pytest.mark.parametrize("name", REPORTS)
def test_no_text_of_a_person_breaks_a_report(name: str) -> None:
    from xml.etree import ElementTree as ET

    report = REPORTS[name](
        [CheckedProfile(file="p.yaml", diagnostics=tuple(_nasty())), CheckedProfile(file="ok.yaml", diagnostics=())]
    )
    match name:
        case "json":
            assert json.loads(report)["profiles"][0]["diagnostics"][0]["message"] == NASTY
        case "sarif":
            SARIF.validate(json.loads(report))
            (run,) = json.loads(report)["runs"]
            assert [r["level"] for r in run["results"]] == ["error", "warning", "error", "error"]
            uris = [r["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for r in run["results"]]
            assert uris == ["a,b%3Ac.yaml", "p.yaml", "p.yaml", "p.yaml"]
        case "junit":
            assert ET.fromstring(report).get("failures") == "1"
        case "github":
            first, *others, warning = report.split("\n")
            assert first.startswith("::error file=a%2Cb%3Ac.yaml,line=1,col=1,endColumn=4,title=TPU1201::a::b,c%25d")
            assert all(other.startswith("::error file=p.yaml,line=1,col=1,") for other in others)
            assert warning.startswith("::warning file=p.yaml,line=1")
        case _:
            pytest.fail(f"no test reads {name}")


def test_more_annotations_than_github_shows_are_counted_and_none_is_lost() -> None:
    diagnostics = tuple(Diagnostic(code="TPU1201", message=f"problem {n}") for n in range(12))
    *all_of_them, last = REPORTS["github"]([CheckedProfile(file="p.yaml", diagnostics=diagnostics)]).split("\n")
    assert [line.rpartition(" ")[2] for line in all_of_them] == [str(n) for n in range(12)]
    assert last == "::notice::12 errors; GitHub shows 10 of them, and the log of this step all."


def test_a_table_that_is_wider_than_the_terminal_keeps_its_first_column() -> None:
    rows = [("slice", "gemma-aaaaaaaa-0-0 (v6e-1, us-east5-a, flex-start)"), ("cloud", "ACTIVE")]
    assert words.aligned(rows, room=200) == words.aligned(rows)
    assert words.aligned(rows, room=44) == [
        "slice  gemma-aaaaaaaa-0-0 (v6e-1,",
        "       us-east5-a, flex-start)",
        "cloud  ACTIVE",
    ]
    verdicts = [("block_size", "64", "32 (api)", COLOUR.red("NOT IN EFFECT")), ("model", "a", "a", "")]
    table = words.aligned(verdicts, room=40)
    assert table[0].startswith("block_size  64  32 (api)  \033[31mNOT IN")
    assert all(words.width(line) <= 40 for line in table)


@pytest.mark.parametrize(("cells", "expected"), [(4, "zone"), (3, "zo…")])
def test_a_text_is_cut_only_where_it_does_not_fit(cells: int, expected: str) -> None:
    assert words.cut("zone", cells) == expected


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0.4, "now"), (59, "59s ago"), (60, "1m ago"), (3599, "59m ago"), (3600, "1h ago"), (86_400, "1d ago")],
)
def test_an_age_is_told_in_its_largest_unit(seconds: float, expected: str) -> None:
    assert words.ago(seconds) == expected


@pytest.mark.parametrize(
    ("detail", "words_of_it", "words_of_the_other"),
    [
        (DESTROY_INTERRUPTED, "A `tpudeploy destroy` was interrupted.", "creates another one"),
        ("", "creates another one", "A `tpudeploy destroy` was interrupted."),
    ],
)
def test_a_slice_that_is_missing_has_the_advice_of_its_reason(
    detail: str, words_of_it: str, words_of_the_other: str
) -> None:
    drift = SliceDrift(
        deployment="gemma", replica=0, kind=DriftKind.MISSING, slice_name="s", zone="us-east5-a", detail=detail
    )
    text = alone([drift], PLAIN)
    assert words_of_it in text
    assert words_of_the_other not in text
