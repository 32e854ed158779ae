"""Read the words of `vllm serve` into settings, by the table of flags of the release that will run."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tpudeploy.catalog import flags
from tpudeploy.catalog._spelling import ValueType
from tpudeploy.catalog.flags import Flag, Style
from tpudeploy.config.keys import FLAG_OF_KEY, SECRET_OF_FLAG
from tpudeploy.config.nodes import dotted
from tpudeploy.features.intake.shell import Word
from tpudeploy.features.intake.source import Note

_FLAG = re.compile(r"--?[A-Za-z][\w.-]*")
# Short options of `vllm serve`, and of argparse's abbreviations the ones that people write. Source: vLLM's arg_utils.
_ALIASES: Mapping[str, str] = {
    "tp": "tensor-parallel-size",
    "pp": "pipeline-parallel-size",
    "dp": "data-parallel-size",
    "ep": "enable-expert-parallel",
    "q": "quantization",
    "cc": "compilation-config",
}
_KEY_OF_FLAG = {flag: key for key, flag in FLAG_OF_KEY.items()}
_NO_FLAG = frozenset({"model", "model-tag"})
_INTEGER, _NUMBER = re.compile(r"[+-]?[0-9]+"), re.compile(r"[+-]?[0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineArguments:
    """What `vllm serve` is told. `settings` are values by canonical name of the flag, `words` where each stands."""

    model: Word | None
    settings: Mapping[str, Any]
    words: Mapping[str, Word]
    notes: tuple[Note, ...]


class _ArgumentReader:
    def __init__(self, release: str | None) -> None:
        self.release = release
        self.model: Word | None = None
        self.settings: dict[str, Any] = {}
        self.words: dict[str, Word] = {}
        self.notes: list[Note] = []

    def read(self, words: Sequence[Word]) -> None:
        position = 0
        while position < len(words):
            word = words[position]
            if _FLAG.match(word.text) is None:
                self._positional(word)
                position += 1
            else:
                position += 1 + self._flag(word, words[position + 1 :])

    def _positional(self, word: Word) -> None:
        if self.model is None and not word.text.startswith("-"):
            self.model = word
        elif word.text not in ("true", "false", "True", "False"):
            self.notes.append(Note(subject=f"`{word.text}`", reason="it belongs to no flag"))

    def _flag(self, word: Word, rest: Sequence[Word]) -> int:
        """Take one flag, and return how many of the words behind it are its values."""
        text, has_value, attached = word.text.partition("=")
        name = text.lstrip("-").replace("_", "-")
        values = [_part(word, attached)] if has_value else _values(rest)
        if name in _NO_FLAG:
            self.model = values[0] if values else self.model
            return 0 if has_value or not values else 1
        flag = self._find(_ALIASES.get(name, name))
        if flag is None:
            count = self._other_form(word, name, values)
        else:
            count = self._take(flag, word, values)
        return 0 if has_value else count

    def _other_form(self, word: Word, name: str, values: Sequence[Word]) -> int:
        """Take a member of a mapping, a switch that is off, or a flag that the release doesn't have."""
        head, dot, member = name.partition(".")
        owner = self._find(head) if dot else None
        if owner is not None:
            self._set_member(owner, member, values[:1])
            return min(1, len(values))
        positive = self._find(name.removeprefix("no-")) if name.startswith("no-") else None
        if positive is not None and positive.style is Style.TOGGLE:
            self._set(positive, value=False, word=word)
            return 0
        self.notes.append(Note(subject=f"`{word.text.partition('=')[0]}`", reason=self._why_unknown(name)))
        return len(values)

    def _find(self, name: str) -> Flag | None:
        return flags.find(name, self.release)

    def _why_unknown(self, name: str) -> str:
        release = self.release or flags.VLLM_VERSION
        removal = flags.removal(name, self.release)
        if removal is not None:
            return f"vLLM {release} has no such flag any more; {removal.last} had it: {removal.instead}"
        advice = flags.advice(name, self.release)
        return f"vLLM {release} has no such flag.{' ' + advice if advice else ''}".removesuffix(".")

    def _take(self, flag: Flag, word: Word, values: Sequence[Word]) -> int:
        if flag.style in (Style.SWITCH, Style.TOGGLE):
            has_truth = bool(values) and values[0].text.lower() in ("true", "false")
            self._set(flag, value=not (has_truth and values[0].text.lower() == "false"), word=word)
            return int(has_truth)
        if not values and flag.style is Style.OPTIONAL:
            self._set(flag, value=True, word=word)
            return 0
        if not values:
            self.notes.append(Note(subject=f"`--{flag.name}`", reason="it has no value"))
            return 0
        own = values if flag.style is Style.WORDS else values[:1]
        self.words[flag.name] = own[0]
        unclear = next((value for value in own if value.unknown), None)
        if unclear is not None:
            if flag.name not in SECRET_OF_FLAG:  # of a secret, its name alone is written
                self.notes.append(Note(subject=f"`--{flag.name}`", reason=why_unknown(unclear, _key(flag))))
            return len(own)
        items = [_typed(flag.value_type, value.text) for value in own]
        if flag.style is Style.REPEATED:
            self.settings[flag.name] = [*self.settings.get(flag.name, []), *items]
        else:
            self.settings[flag.name] = items if len(items) > 1 else items[0]
        return len(own)

    def _set(self, flag: Flag, value: Any, word: Word) -> None:
        self.settings[flag.name] = value
        self.words[flag.name] = word

    def _set_member(self, flag: Flag, member: str, values: Sequence[Word]) -> None:
        """Set one member of a mapping: `--compilation-config.level 3`."""
        value: Any = _plain(values[0].text) if values else True
        target = self.settings.get(flag.name)
        target = target if isinstance(target, dict) else {}
        self.settings[flag.name] = inner = target
        *path, last = member.replace("-", "_").split(".")
        for part in path:
            inner = inner.setdefault(part, {})
            if not isinstance(inner, dict):
                return
        inner[last] = value


def read_arguments(words: Sequence[Word], release: str | None) -> EngineArguments:
    """Return what the words after `vllm serve`, or after the server's module, say."""
    reader = _ArgumentReader(release)
    reader.read(words)
    return EngineArguments(model=reader.model, settings=reader.settings, words=reader.words, notes=tuple(reader.notes))


def _key(flag: Flag) -> str:
    """Return the key of a profile that sets a flag."""
    path = _KEY_OF_FLAG.get(flag.name)
    return f"serving.args.{flag.name.replace('-', '_')}" if path is None else dotted(path)


def why_unknown(word: Word, key: str) -> str:
    """Return why the value of a word is not written, and the key to write."""
    return f"{what_is_unknown(word)}: write {key}"


def what_is_unknown(word: Word) -> str:
    """Return why the value of a word is not known."""
    names = dict.fromkeys(word.unknown)
    if all(name.startswith("<") for name in names):
        return f"its value is still to be filled in ({word.text})"
    names_text = ", ".join(name if not re.fullmatch(r"[A-Za-z_]\w*", name) else f"${name}" for name in names)
    return f"its value depends on {names_text}, which the source doesn't set"


def _values(rest: Sequence[Word]) -> list[Word]:
    """Return the words that may be values of a flag: those up to the next flag. A negative number is a value."""
    values: list[Word] = []
    for word in rest:
        if _FLAG.match(word.text) is not None:
            break
        values.append(word)
    return values


def _part(word: Word, text: str) -> Word:
    return Word(text=text, start=word.start, end=word.end, unknown=word.unknown)


def _typed(kind: ValueType, text: str) -> Any:
    """Return a value as a profile has it. What is not of the flag's type stays text, which the check of it refuses."""
    match kind:
        case ValueType.INT | ValueType.SIZE | ValueType.SIZE_OR_AUTO if _INTEGER.fullmatch(text):
            return int(text)
        case ValueType.FLOAT if _NUMBER.fullmatch(text):
            return float(text)
        case ValueType.OBJECT | ValueType.ARRAY | ValueType.TEXT_OR_OBJECT:
            return _json(text)
    return text


def _json(text: str) -> Any:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, dict | list) else text


def _plain(text: str) -> Any:
    if text in ("true", "false", "True", "False"):
        return text.lower() == "true"
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _NUMBER.fullmatch(text) else _json(text)
