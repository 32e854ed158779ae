"""Writes tpudeploy/catalog/_vllm_flags.py from the parser of the vLLM that this Python has.

    PYTHON-WITH-VLLM tests/oracle/dump_vllm_flags.py [PATH]

Run it when the pinned vLLM changes; vLLM's CPU build has the same options. It needs nothing of tpudeploy.
"""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

# vLLM lives in another Python than the one that type-checks.
from vllm import __version__  # type: ignore[import-not-found] # as above
from vllm.engine.arg_utils import AsyncEngineArgs, get_type_hints  # type: ignore[import-not-found] # as above
from vllm.entrypoints.launchers.cli_args import (  # type: ignore[import-not-found] # as above
    FrontendArgs,
    make_arg_parser,
)
from vllm.utils.argparse_utils import FlexibleArgumentParser  # type: ignore[import-not-found] # as above

TABLE = Path(__file__).parents[2] / "tpudeploy" / "catalog" / "_vllm_flags.py"

NOT_SERVING = {
    "help",  # prints and exits
    "model",  # the positional argument says it; both together are an error
}

HEADER = '''\
"""The options of `vllm serve`, one line each, written by tests/oracle/dump_vllm_flags.py; never edit by hand.

Columns: name, style, value type, aliases. An indented line holds the choices of the flag above it.
"""

VLLM_VERSION = "{version}"

TABLE = """\\
'''

# By the name of the function that vLLM's parser reads the word with; None reads it as it is.
TYPES = {
    "str": "text",
    None: "text",
    "int": "int",
    "float": "float",
    "human_readable_int": "size",
    "human_readable_int_or_auto": "size-or-auto",
    "parse_dataclass": "object",
    "loads": "json",
    "union_dict_and_str": "text-or-object",
    "<lambda>": "lambda",
}

BY_HAND = {  # what only the source of a lambda or of an action tells
    "device-ids": "text",  # comma-separated in one word
    "linear-backend": "keyword",  # lowered, and - becomes _
    "moe-backend": "keyword",
    "sparse-indexer-topk-backend": "keyword",
    "lora-modules": "text-or-object",  # each name=path or a JSON object
}

HINTS = {f.name: f.type for args in (AsyncEngineArgs, FrontendArgs) for f in dataclasses.fields(args)}


def unwrapped(reader: Callable[[str], object] | None) -> str | None:
    """The name of the innermost reader: `optional_type(parse_type(int))` reads an int."""
    while inspect.isfunction(reader):
        inner = inspect.getclosurevars(reader).nonlocals.get("return_type")
        if inner is None:
            break
        reader = inner
    return None if reader is None else reader.__name__


def style(action: argparse.Action, value_type: str) -> str:
    match action:
        case argparse.BooleanOptionalAction():
            return "toggle"
        case argparse._StoreTrueAction():  # argparse gives it no public name
            return "switch"
        case argparse._AppendAction():  # as above
            return "repeated"
    by_nargs = {"+": "words", "?": "optional", None: "json" if value_type in {"object", "array"} else "value"}
    return by_nargs[action.nargs]  # type: ignore[index] # a number of words would be new: the KeyError says so


def value_type(action: argparse.Action, name: str) -> str:
    if action.nargs == 0:
        return "bool"
    value_type = BY_HAND.get(name) or TYPES[unwrapped(action.type)]  # type: ignore[arg-type] # never a registry name here
    hints: set[Any] = get_type_hints(HINTS.get(action.dest, str))
    if value_type == "json":
        return "array" if any(getattr(hint, "__origin__", hint) is list for hint in hints) else "object"
    if value_type == "text-or-object" and action.nargs is None and str not in hints:
        return "object"  # the parser lets any text pass, the configuration behind it does not
    return value_type


def rows(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in sorted(parser._actions, key=lambda action: action.dest):  # the only list of options there is
        name = action.dest.replace("_", "-")
        if name in NOT_SERVING or not action.option_strings:
            continue
        kind = value_type(action, name)
        spellings = [s.lstrip("-") for s in action.option_strings if not s.startswith("--no-")]
        yield " ".join([name, style(action, kind), kind, *sorted(s for s in spellings if s != name)])
        if choices := [str(choice) for choice in action.choices or () if choice is not None]:
            yield from textwrap.wrap(
                " ".join(choices),
                100,
                initial_indent="    ",
                subsequent_indent="    ",
                break_long_words=False,
                break_on_hyphens=False,
            )


def main() -> None:
    target = Path(sys.argv[1]) if sys.argv[1:] else TABLE
    parser = make_arg_parser(FlexibleArgumentParser(prog="vllm serve"))
    version = __version__.split("+")[0]
    target.write_text(HEADER.format(version=version) + "\n".join(rows(parser)) + '\n"""\n', encoding="utf-8")


if __name__ == "__main__":
    main()
