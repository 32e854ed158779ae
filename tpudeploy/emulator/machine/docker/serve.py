"""Finds the `vllm serve` in a container's command, by reading alone; nothing of the command is ever run."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

SHELLS = frozenset(("bash", "/bin/bash", "sh", "/bin/sh"))
SEPARATORS = frozenset(("&&", "||", ";", "|", "&"))
API_SERVER = ("-m", "vllm.entrypoints.openai.api_server")


@dataclass(frozen=True, slots=True)
class Serve:
    """`words` follow `vllm serve`; `has_setup`: something was to happen before it."""

    words: tuple[str, ...]
    has_setup: bool


def find_serve(command: Sequence[str]) -> Serve | None:
    """None where the container would run something else."""
    match list(command):
        case [shell, "-c", script] if shell in SHELLS:
            return _in_script(script)
        case [shell, "-c", _, _, count, *rest] if shell in SHELLS and count.isdecimal():
            return _after(rest, int(count))
        case [python, *rest] if python.startswith("python") and tuple(rest[:2]) == API_SERVER:
            return Serve(tuple(rest[2:]), has_setup=False)
        case _:
            return _after(command, 0)


def _after(words: Sequence[str], steps: int) -> Serve | None:
    if tuple(words[steps : steps + 2]) != ("vllm", "serve"):
        return None
    return Serve(tuple(words[steps + 2 :]), has_setup=steps > 0)


def _in_script(script: str) -> Serve | None:
    lexer = shlex.shlex(script, posix=True, punctuation_chars="&|;")
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        words = list(lexer)
    except ValueError:  # an unbalanced quote: bash would not run it either
        return None
    for start, pair in enumerate(pairwise(words)):
        if pair == ("vllm", "serve"):
            rest = words[start + 2 :]
            end = next((at for at, word in enumerate(rest) if word in SEPARATORS), len(rest))
            before = [word for word in words[:start] if word != "exec"]
            return Serve(tuple(rest[:end]), has_setup=bool(before))
    return None
