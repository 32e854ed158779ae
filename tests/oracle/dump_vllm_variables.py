"""Writes tpudeploy/catalog/_vllm_variables.py from the environment variables of the engine that this Python has.

    PYTHON-WITH-VLLM tests/oracle/dump_vllm_variables.py [PATH]

Run it when the pinned engine changes, beside dump_vllm_flags.py. It needs vLLM and tpu_inference, and nothing of
tpudeploy. What a variable takes is found out by setting it and calling the function that reads it.
"""

from __future__ import annotations

import ast
import hashlib
import logging
import os
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

# The engine lives in another Python than the one that type-checks.
from tpu_inference import envs as tpu_envs  # type: ignore[import-not-found] # as above
from vllm import __version__, envs  # type: ignore[import-not-found,unused-ignore] # as above

TABLE = Path(__file__).parents[2] / "tpudeploy" / "catalog" / "_vllm_variables.py"

HEADER = '''\
"""The environment variables of the engine, written by tests/oracle/dump_vllm_variables.py; never edit by hand.

One line each: the name, and what its value must be, if anything refuses other values: `integer`, `number`, or the words
that it can be, with `any-case` if their case does not matter. `empty` means that an empty value is accepted too.
`DIGEST` is of the lines.
"""

VLLM_VERSION = "{version}"
DIGEST = "{digest}"

VARIABLES = """
{variables}
"""
'''
_OPTIONS = re.compile(r"Invalid (?:boolean )?value 'abc' for \w+\. Valid options: (.+)\.$", re.DOTALL)


def refusal(name: str, read: Callable[[], Any], value: str) -> str | None:
    """Return why a value is refused, or None if it is accepted."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        read()
    except ValueError as error:
        return str(error)
    finally:
        del os.environ[name]
        if before is not None:
            os.environ[name] = before
    return None


def options(text: str) -> list[str]:
    """Return the words in `['a', 'b']` or in `'a', 'b'`."""
    return [str(word) for word in ast.literal_eval(text if text.startswith("[") else f"[{text}]")]


def kind(name: str, read: Callable[[], Any]) -> list[str]:
    """Return what the value of a variable must be; nothing where any value is accepted, or none of these rules fits."""
    why = refusal(name, read, "abc")
    is_one_number = all(refusal(name, read, number) is None for number in ("0", "-1", "7"))
    is_one_number = is_one_number and refusal(name, read, "1,2") is not None
    words: list[str] = []
    if why is None:
        return words
    if why.startswith("invalid literal for int()") and is_one_number and refusal(name, read, "1.5") is not None:
        words = ["integer"]
    elif why.startswith("could not convert string to float") and is_one_number:
        words = ["number"]
    elif (match := _OPTIONS.fullmatch(why)) is not None:
        choices = [word for word in options(match[1]) if word]
        any_case = all(refusal(name, read, word.swapcase()) is None for word in choices)
        words = ["|".join(dict.fromkeys(map(str.lower, choices))), "any-case"] if any_case else ["|".join(choices)]
    if words and refusal(name, read, "") is None:
        words.append("empty")
    return words


def main() -> None:
    logging.disable(logging.CRITICAL)
    target = Path(sys.argv[1]) if sys.argv[1:] else TABLE
    readers: Mapping[str, Callable[[], Any]] = {**envs.environment_variables, **tpu_envs.environment_variables}
    lines = [" ".join([name, *kind(name, read)]) for name, read in sorted(readers.items())]
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    text = HEADER.format(version=__version__.split("+")[0], digest=digest, variables="\n".join(lines))
    target.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
