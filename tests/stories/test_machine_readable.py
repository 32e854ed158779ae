"""What programs read: streams of events with their version first, and schemas that hold for all that is written."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from command_line import PROFILE, CommandLine, Open, Result
from jsonschema import Draft7Validator
from other_process import holding
from strict_schema import lines, strict

from tpudeploy.operations.schemas import all_schemas

APPLY = ("apply", "-auto-approve", "-json", "gemma.yaml")
# A document of each format, as an earlier version printed it. test_earlier_formats.py has states.
OLDER = Path(__file__).parent / "data" / "documents"
ENDS = {"change_done", "change_left", "change_failed"}


@pytest.mark.parametrize("what", sorted(all_schemas()))
def test_a_schema_is_one_and_an_older_document_of_its_format_is_still_valid(what: str) -> None:
    schema = all_schemas()[what]()
    Draft7Validator.check_schema(schema)
    document = OLDER / f"{what}.json"
    if document.exists():
        Draft7Validator(schema).validate(json.loads(document.read_text(encoding="utf-8")))


def test_every_older_document_has_a_schema() -> None:
    names = {path.stem for path in OLDER.glob("*.json")}
    assert len(names) > 30
    assert names <= set(all_schemas())


def test_what_is_printed_and_kept_is_what_the_schemas_say(cli: Open) -> None:
    at = cli(trouble=[{"fault": "stockout", "zone": "us-east5-a"}])
    profile = at.write(PROFILE + "replicas: 2\n")
    event, state, plan = strict(at, "events"), strict(at, "state"), strict(at, "plan")
    documents, output = [at.run("plan", "-json", profile)], [at.run(*APPLY)]
    strict(at, "lock").validate(json.loads((at.folder / "tpudeploy.lock.json").read_text(encoding="utf-8")))
    state.validate(at.state())
    at.write(PROFILE.replace("16384", "8192").replace("v6e-1", "v6e-4"))
    documents += [at.run("plan", "-json", profile)]
    output += [at.run(*APPLY)]
    state.validate(at.state())
    output += [at.run("destroy", "-auto-approve", "-json", profile)]
    for each in documents:
        plan.validate(json.loads(each.out))
    for each in output:
        assert each.code == 0, each.all
        for line in lines(each):
            event.validate(line)
            if line.get("format") == "tpudeploy.plan/1":
                plan.validate(line)
    assert {"plan", "report", "version", "not_granted"} <= {line["type"] for each in output for line in lines(each)}


@pytest.mark.parametrize("wrong", [{"v": 2, "type": "version"}, {"v": 1, "type": "gone"}, {}], ids=str)
def test_the_schema_of_events_does_not_let_everything_in(cli: Open, wrong: dict[str, object]) -> None:
    assert not strict(cli(), "events").is_valid(wrong)


@pytest.mark.parametrize("command", ["apply", "destroy"])
@pytest.mark.parametrize("more", [(), ("-no-such-option",), ("-parallelism", "none")], ids=str)
def test_a_stream_begins_with_its_version_whatever_comes_then(cli: Open, command: str, more: tuple[str, ...]) -> None:
    at = cli()
    for profile in (at.write(), at.write("version: 1\n", "broken.yaml")):
        first, *_ = lines(at.run(command, "-auto-approve", "-json", profile, *more))
        assert (first["v"], first["type"], first["format"]) == (1, "version", "tpudeploy.events/1")
        assert first["tpudeploy"]


def _served(at: CommandLine) -> Iterator[tuple[Result, str]]:
    yield at.run(*APPLY), "change_done"
    at.write(PROFILE.replace("v6e-1", "v6e-4"))
    yield at.run(*APPLY), "change_done"


def _steps(at: CommandLine) -> Iterator[tuple[Result, str]]:
    yield at.run(*APPLY, "-wait", "accepted"), "change_left"


def _out_of_time(at: CommandLine) -> Iterator[tuple[Result, str]]:
    at.emulator.script({"fault": "wait-for-ever"})
    yield at.run(*APPLY, "-timeout", "30m"), "change_failed"


def _crashed(at: CommandLine) -> Iterator[tuple[Result, str]]:
    at.emulator.script({"fault": "quota-zero"})
    yield at.run(*APPLY), "change_failed"


def _interrupted(at: CommandLine) -> Iterator[tuple[Result, str]]:
    end = at.clock.now() + 60

    def strike() -> None:
        if at.clock.now() >= end:
            raise KeyboardInterrupt

    at.clock.on_advance.append(strike)
    yield at.run(*APPLY), "change_left"


def _watched_until_it_fails(at: CommandLine) -> Iterator[tuple[Result, str]]:
    """It was told to be done, and is told no second end when it is lost for good."""
    began = at.clock.now()

    def lose() -> None:
        if at.clock.now() >= began + 7200 and at.emulator.billed():
            at.emulator.script({"fault": "quota-zero"})
            for name in at.emulator.billed():
                at.emulator.preempt(name)

    at.clock.on_advance.append(lose)
    yield at.run(*APPLY, "-watch"), "change_done"


@pytest.mark.parametrize(
    "course", [_served, _steps, _out_of_time, _crashed, _interrupted, _watched_until_it_fails], ids=lambda c: c.__name__
)
def test_every_start_has_exactly_one_end(
    cli: Open, course: Callable[[CommandLine], Iterator[tuple[Result, str]]]
) -> None:
    at = cli()
    at.write(PROFILE + "replicas: 2\n")
    event = strict(at, "events")
    for output, end in course(at):
        answer = lines(output)
        for line in answer:
            event.validate(line)
        starts = Counter(line["address"] for line in answer if line["type"] == "change_started")
        ends = Counter(line["address"] for line in answer if line["type"] in ENDS)
        assert starts, output.all
        assert starts == ends
        assert set(starts.values()) == {1}
        assert {line["type"] for line in answer} & ENDS == {end}


def test_a_lock_that_another_run_holds_is_told_in_fields(cli: Open) -> None:
    at = cli()
    at.write()
    with holding(at.folder / ".tpudeploy", "gemma", who="alice@laptop") as process:
        result = at.run(*APPLY)
    assert result.code == 10
    (lock_line,) = (line for line in lines(result) if line["type"] == "lock_held")
    assert (lock_line["address"], lock_line["who"], lock_line["operation"]) == ("gemma", "alice@laptop", "apply")
    assert lock_line["pid"] == process.pid
    assert lock_line["id"]
    strict(at, "events").validate(lock_line)


def test_a_lock_that_is_waited_for_is_told_once_with_its_holder(cli: Open) -> None:
    at = cli()
    at.write()
    with holding(at.folder / ".tpudeploy", "gemma", who="alice@laptop"):
        result = at.run(*APPLY, "-lock-timeout", "1m")
    assert result.code == 10
    kinds = Counter(line["type"] for line in lines(result))
    assert kinds["lock_held"] == 1
    assert kinds["lock_waiting"] > 1
    event = strict(at, "events")
    for line in lines(result):
        event.validate(line)


def test_what_stops_a_run_is_the_last_line_with_every_problem(cli: Open) -> None:
    at = cli()
    at.write(PROFILE.replace("16384", "many").replace("v6e-1", "v6e-7"))
    result = at.run(*APPLY)
    first, last = lines(result)
    assert (first["type"], last["type"], last["exit_code"], result.code) == ("version", "error", 1, 1)
    assert [(d["code"], d["location"]["line"]) for d in last["diagnostics"]] == [("TPU1301", 6), ("TPU1203", 9)]
    strict(at, "events").validate(last)
    protected = at.write(PROFILE + "lifecycle: {prevent_destroy: true}\n")
    assert at.run(*APPLY).code == 0
    refused = at.run("destroy", "-auto-approve", "-json", protected)
    assert refused.code == 13
    assert [line["type"] for line in lines(refused)] == ["version", "plan", "error"]


@pytest.mark.polls_every_second("a state that lasts ten seconds is seen")
def test_each_move_in_the_queue_names_where_it_came_from(cli: Open) -> None:
    at = cli()
    at.write()
    moves = [line for line in lines(at.run(*APPLY)) if line["type"] == "phase_changed"]
    assert [move["before"] for move in moves] == ["", *(move["phase"] for move in moves[:-1])]
    assert [move["phase"] for move in moves][:3] == ["creating", "queued", "provisioning"]
