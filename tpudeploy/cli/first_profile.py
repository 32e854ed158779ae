"""Ask at a terminal for what a first profile needs, and write the answers into a shipped profile."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tpudeploy import catalog
from tpudeploy.catalog import choice_hint
from tpudeploy.cli.context import AS_WRITTEN, Context
from tpudeploy.cli.new_profile import new_profile
from tpudeploy.cli.terminal import Terminal

_SECRET = re.compile(r"[A-Za-z0-9_-]{1,255}")
_MODEL = re.compile(r"[\w.-]+/[\w.-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """The answers of a person. `zones` is empty for every zone that has the slice, `api_key` is "" for none."""

    model: str
    type: str
    zones: tuple[str, ...]
    api_key: str


def ask_source(terminal: Terminal, shipped: Mapping[str, str], default: str) -> str:
    """Return the name of the shipped profile to begin with."""
    width = max(map(len, shipped))
    for name, text in shipped.items():
        terminal.data(f"  {name.ljust(width)}  {value_of(text, 'id')} on {value_of(text, 'type')}")
    return _ask(terminal, "Start from profile", default, lambda answer: _unknown(answer, shipped))


def ask_answers(terminal: Terminal, text: str) -> Answers:
    """Return what the profile is to say, beginning with what the shipped one says."""
    model = _ask(terminal, "Model", value_of(text, "id"), _invalid_model)
    types = [type_.name for type_ in catalog.accelerator_types()]
    type_ = _ask(terminal, "Slice type", value_of(text, "type"), lambda answer: _unknown(answer, types))
    accelerator = catalog.accelerator_type(type_)
    known_zones = sorted(catalog.generation(accelerator.generation).zones) if accelerator is not None else []
    terminal.data(f"  Zones with {type_}: {', '.join(known_zones)}")
    zones = _ask(terminal, "Zones, separated by commas", "all", lambda answer: _unknown_zone(answer, known_zones))
    terminal.data("  An API key guards /v1; `plan` lists the paths that stay open. Name a secret of Secret Manager.")
    api_key = _ask(terminal, "Secret with the API key", "none", _invalid_secret)
    return Answers(
        model=model,
        type=type_,
        zones=() if zones == "all" else tuple(_split(zones)),
        api_key="" if api_key == "none" else api_key,
    )


def with_answers(text: str, answers: Answers) -> str:
    """Return the text of a shipped profile with the answers in it.

    Its comments stay, some of which are measurements, so another model or slice has a profile of its own.
    """
    if (answers.model, answers.type) != (value_of(text, "id"), value_of(text, "type")):
        name = name_in(text) if answers.model == value_of(text, "id") else ""
        return new_profile(answers.model, answers.type, answers.zones, answers.api_key, name=name)
    if answers.zones:
        text = re.sub(r"(?m)^  (zones|max_search_price_per_hour):.*\n", "", text)
        text = re.sub(r"(?m)^placement:\n", f"placement:\n  zones: [{', '.join(answers.zones)}]\n", text, count=1)
    if answers.api_key:
        text = re.sub(r"(?m)^ *#? ?VLLM_API_KEY:.*\n", "", text)
        text = re.sub(r"(?m)^secrets:\n", f"secrets:\n  VLLM_API_KEY: {answers.api_key}\n", text, count=1)
    return text


def show_size(path: Path, context: Context) -> None:
    """Print what the profile needs, and the next command, which works without an account."""
    name = os.path.relpath(path)
    (profile,) = context.load([str(path)], AS_WRITTEN)
    size = context.workspace([str(path)]).size(profile)
    context.terminal.data(size.as_text(context.terminal.paint, context.terminal.width))
    command = shlex.join(["tpudeploy", "apply", "-auto-approve", name])
    context.terminal.data(f"\nTry it without an account, on the emulator:\n    tpudeploy emulator run -- {command}")


def name_in(text: str) -> str:
    """Return the name of the deployment in the text of a profile."""
    match = re.search(r"(?m)^name: (\S+)", text)
    return match[1] if match else ""


def value_of(text: str, key: str) -> str:
    """Return the value of a key of `model` or `tpu` in the text of a shipped profile, or "" without one."""
    match = re.search(rf"(?m)^  {key}: (\S+)", text)
    return match[1] if match else ""


def _ask(terminal: Terminal, question: str, default: str, problem: Callable[[str], str]) -> str:
    """Ask until the answer has no problem. An empty answer, and the end of input, is the default."""
    while True:
        answer = terminal.ask(f"{question} [{default}]: ") or default
        message = "" if answer == default else problem(answer)
        if not message:
            return answer
        terminal.data(f"  {message}")


def _unknown(answer: str, words: Iterable[str]) -> str:
    names = list(words)
    if answer in names:
        return ""
    return f"There is no `{answer}`. {choice_hint(answer, names)}"


def _unknown_zone(answer: str, zones: Iterable[str]) -> str:
    names = list(zones)
    return next(filter(None, (_unknown(zone, names) for zone in _split(answer))), "")


def _split(answer: str) -> list[str]:
    return [zone for zone in re.split(r"[,\s]+", answer) if zone]


def _invalid_model(answer: str) -> str:
    return "" if _MODEL.fullmatch(answer) else "Write the id of a model on Hugging Face, such as google/gemma-4-E2B-it."


def _invalid_secret(answer: str) -> str:
    return "" if _SECRET.fullmatch(answer) else "Write the name of a secret: letters, digits, - and _."
