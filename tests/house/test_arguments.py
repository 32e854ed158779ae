"""Every option that takes a number or a duration refuses what is none, by its type, before anything is done."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from inspect import signature
from typing import Any

import pytest
from command_line import Open

import tpudeploy as td
from tpudeploy.cli.commands import COMMANDS, command
from tpudeploy.cli.parsers import parser_of, verbs_of
from tpudeploy.config.scalars import MOST_SECONDS
from tpudeploy.features.chat import command as chat
from tpudeploy.operations import OPERATIONS, argument_types, operation
from tpudeploy.operations.arguments import arguments, groups

# The least and the most that each type of an option may return.
BOUNDS: dict[Callable[[str], Any], tuple[float, float]] = {
    argument_types.duration: (0, MOST_SECONDS),
    argument_types.seconds: (1e-9, MOST_SECONDS * 10),
    argument_types.latency: (1e-9, 10**9),
    argument_types.amount: (1e-9, 10**9),
    argument_types.speed: (1e-9, 10**6),
    argument_types.count: (1, 10**9),
    argument_types.index: (0, 10**9),
    argument_types.port: (0, 65535),
    chat._temperature: (0, 2),
    chat._tokens: (1, 65_536),
}
LISTS = {argument_types.counts}
# What is no number: a command, a path, yes or no.
OTHERS = {"_engine", "_folder", "_truth", "Path"}
ABSURD = (
    *("-1", "-5s", "-0", "-0.5", "+5", "inf", "-inf", "nan", "1e9", "1e999", "0x10", "1_000", "", " ", "s", "5 m"),
    *("5s ", "1.5.5", "\u0663", "\u0663s", "\u00b2", "9" * 30, "9" * 400, "9" * 5000, "9999999999d", "1h30", "NaNs"),
)
EDGES = ("0", "00", "0s", "0ms", "1", "1.5", "999999999", "999d", "99999999s", "65536")


def typed_options() -> Iterator[tuple[tuple[str, ...], str, Callable[[str], Any]]]:
    """Yield each option with a type, with the words of its command."""
    for name in COMMANDS:
        for verb in ("", *verbs_of(command(name))):
            for action in parser_of(name, verb)._actions:
                if action.type is not None and action.option_strings:
                    yield tuple(filter(None, (name, verb))), action.option_strings[-1], action.type  # type: ignore[misc]  # a function


def test_each_type_of_an_option_has_its_bounds() -> None:
    types = {type_ for _, _, type_ in typed_options()}
    unknown = {getattr(type_, "__name__", "?") for type_ in types - BOUNDS.keys() - LISTS}
    assert unknown <= OTHERS, "give the type its bounds here"


@pytest.mark.parametrize("type_", [*BOUNDS, *LISTS], ids=lambda type_: type_.__name__)
def test_what_a_type_accepts_is_within_its_bounds(type_: Callable[[str], Any]) -> None:
    for text in (*ABSURD, *EDGES):
        try:
            value = type_(text)
        except argparse.ArgumentTypeError as refusal:
            assert text.strip()[:40] in str(refusal) or type_ in LISTS  # noqa: PT017 - some are accepted
            continue
        assert text not in ABSURD, f"{type_.__name__} takes {text[:40]!r} for {value}"
        least, most = BOUNDS.get(type_, (1, 10**9))
        for number in value if isinstance(value, tuple) else (value,):
            assert math.isfinite(number)
            assert least <= number <= most


@pytest.mark.parametrize("text", ["-5s", "-1", "9" * 400, "nan"])
def test_a_command_refuses_it_as_a_usage_error(cli: Open, text: str) -> None:
    at = cli()
    at.write()
    for words, option, type_ in typed_options():
        if type_ in BOUNDS or type_ in LISTS:
            result = at.run(*words, f"{option}={text}", "gemma.yaml")
            assert result.code == 1, (words, option, result.all)
            assert "bug" not in result.all, (words, option)


def test_every_operation_takes_its_durations_by_such_a_type() -> None:
    """A duration that is read as text reaches the work unchecked."""
    for name in OPERATIONS:
        for argument in operation(name).arguments:
            if argument.arg.metavar in {"TIME", "N", "USD"} and not argument.is_positional:
                assert argument.value is not None, (name, argument.name)


# What only a program gives, of every operation and of one: listeners, what the caller has at hand, what the command
# line asks in its own words.
OF_PROGRAMS = {
    *("workspace", "folder", "invalid", "listener"),
    *("on_event", "on_piece", "on_point", "on_cell", "on_message", "on_unreadable"),
}
FOR_ONE_RUN = {"skip_oversubscribed", "slo_ttft", "slo_tpot", "seed"}
OF_PROGRAMS_HERE: Mapping[str, set[str]] = {
    "plan": {"attest"},
    "apply": {"reset", "max_requests"},
    "logs": {"texts"},
    "diagnose": {"texts"},
    "import_slice": {"resource"},
    "bench_import": {"model", "type", "usd_per_hour"},
    "import_benchmarks": {"model", "type", "usd_per_hour"},
    "bench_report": {"out", "profile"},
    "bench": {"api_key"},
    "benchmark_trend": {"run_id"},
    "compare": {"by"},
    "accuracy": {"api_key"},
    "ab": {"proposal", "reset"},
    "ab_propose": {"by", *FOR_ONE_RUN},
    "campaign": {"proposal"},
    "campaign_report": {"name", "out"},
    "tune": {"reset", "driver", "tokenizer", *FOR_ONE_RUN},
    "support_bundle": {"output"},
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_parameter_of_an_operation_is_an_argument_unless_only_programs_give_it(name: str) -> None:
    """One whose type is imported for type checkers alone would vanish from the command and the tool."""
    run = operation(name).run
    of_groups = {each.name for cls in groups(run).values() for each in fields(cls)}
    takes = signature(run).parameters.keys() - groups(run).keys() | of_groups
    assert takes - {each.name for each in arguments(run)} - OF_PROGRAMS == OF_PROGRAMS_HERE.get(name, set())


@pytest.mark.parametrize("timeout", [-1, -0.5, math.nan, math.inf, 1e30, "-5s", "9" * 400])
def test_the_library_refuses_it_too(cli: Open, timeout: float | str) -> None:
    at = cli()
    at.write()
    with td.Workspace.open(at.folder, clock=at.clock) as workspace:
        plan = workspace.plan([td.Profile.load(at.folder / "gemma.yaml")])
        with pytest.raises(td.errors.UsageError, match="timeout"):
            workspace.apply(plan, timeout=timeout)
