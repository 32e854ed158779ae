"""Find the `vllm serve` in a container's command by reading it; nothing of the command is ever run."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

SHELLS = frozenset(("bash", "/bin/bash", "sh", "/bin/sh"))
SEPARATORS = frozenset(("&&", "||", ";", "|", "&"))
API_SERVER = ("-m", "vllm.entrypoints.openai.api_server")
NOT_RUN = "exec: {word!r}: the emulator runs no image; it stands in for `vllm serve` alone"
SETUP_FAILED = "ERROR: a setup step failed, because the emulator's scenario says so"


@dataclass(frozen=True, slots=True)
class Serve:
    """`words` follow `vllm serve`; `has_setup`: the command does something else before it."""

    words: tuple[str, ...]
    has_setup: bool


def find_serve(command: Sequence[str]) -> Serve | None:
    """Return the call of `vllm serve`; None where the container would run something else."""
    match list(command):
        case [shell, "-c", script] if shell in SHELLS:
            return _in_script(script)
        case [shell, "-c", _, _, count, *rest] if shell in SHELLS and count.isdecimal():
            return _after(rest, int(count))
        case [python, *rest] if python.startswith("python") and tuple(rest[:2]) == API_SERVER:
            return Serve(tuple(rest[2:]), has_setup=False)
        case _:
            return _after(command, 0)


def find_ray(command: Sequence[str]) -> tuple[str, ...] | None:
    """Return the options of `ray start --block`, also behind setup steps; None where the container runs no Ray."""
    words = list(command)
    match words:
        case [shell, "-c", _, _, count, *rest] if shell in SHELLS and count.isdecimal():
            words = rest[int(count) :]
    return tuple(words[2:]) if words[:2] == ["ray", "start"] and "--block" in words else None


def ray_option(words: Sequence[str], name: str) -> str:
    """Return the value of `--name=VALUE`, or "" without it."""
    return next((word.partition("=")[2] for word in words if word.startswith(f"--{name}=")), "")


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
    for start, pair in enumerate(itertools.pairwise(words)):
        if pair == ("vllm", "serve"):
            rest = words[start + 2 :]
            end = next((at for at, word in enumerate(rest) if word in SEPARATORS), len(rest))
            before = [word for word in words[:start] if word != "exec"]
            return Serve(tuple(rest[:end]), has_setup=bool(before))
    return None


def listens(words: tuple[str, ...]) -> tuple[str | None, int]:
    """Return the last --host and --port, in both spellings; 8000 is vLLM's default."""
    place: dict[str, str] = {"--port": "8000"}
    for word, following in itertools.zip_longest(words, words[1:], fillvalue=""):
        flag, equals, value = word.partition("=")
        if flag in {"--host", "--port"}:
            place[flag] = value if equals else following
    return place.get("--host"), int(place["--port"]) if place["--port"].isdecimal() else 0


def refusal(command: Sequence[str], serve: Serve | None, *, setup_fails: bool) -> Mapping[str, str | int] | None:
    """Return the text and exit code of a container that never serves; None for one that may."""
    if serve is None:
        return {"text": NOT_RUN.format(word=(*command, "")[0]), "code": 127}
    return {"text": SETUP_FAILED, "code": 1} if serve.has_setup and setup_fails else None
