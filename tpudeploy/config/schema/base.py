"""Define what the sections of the format share: keys, strictness, and types for text of a required form.

A section is read by `schema/read.py`, and described for editors by `config/jsonschema.py`. Both follow the annotations,
so that a key is declared once. The files of sections do not use `from __future__ import annotations`, because text
would have to be compiled.

Why there is no pydantic here: decision 7 in docs/decisions.md.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import FrozenInstanceError
from functools import cache, wraps
from typing import Annotated, Any, ClassVar, Final, NoReturn, Self, TypeAlias, TypeVar, TypeVarTuple

from tpudeploy.catalog._spelling import count_of
from tpudeploy.config.nodes import Path
from tpudeploy.config.scalars import (
    DOCKER_SIZE_PATTERN,
    DURATION_PATTERN,
    LEAST_DOCKER_SIZE,
    MOMENT_PATTERN,
    SIZE_PATTERN,
    TOKENS_PATTERN,
    ByteSize,
    Duration,
    Moment,
)
from tpudeploy.domain.hours import HOURS_PATTERN, Hours, UnknownZone

Read: TypeAlias = Callable[[Any], Any]
JsonSchema: TypeAlias = dict[str, Any]
Args = TypeVarTuple("Args")
S = TypeVar("S", bound="Section")
T = TypeVar("T")
REQUIRED: Final = object()
_MOST = 2**31 - 1


class Invalid(Exception):
    """A value is refused. `findings` are the reasons, each with the path below the value and a detail.

    The kinds are those of `config/translate.py`, which has the words for them.
    """

    def __init__(self, *findings: tuple[str, Path, Any]) -> None:
        super().__init__(findings)
        self.findings = findings

    @classmethod
    def because(cls, kind: str, detail: object = None) -> Self:
        return cls((kind, (), detail))

    def below(self, key: str | int) -> list[tuple[str, Path, Any]]:
        """Return the findings as those of the value that has this one at `key`."""
        return [(kind, (key, *path), detail) for kind, path, detail in self.findings]


class Key:
    """A key of a section, or the limits of a value. `annotation` is the type that the section declares."""

    annotation: Any = None

    def __init__(
        self,
        default: object,
        default_factory: Callable[[], object] | None,
        limits: Mapping[str, float],
        description: str,
        examples: list[Any],
    ) -> None:
        self.default = default
        self.default_factory = default_factory
        self.limits = limits
        self.description = description
        self.examples = examples
        self.is_required = default is REQUIRED and default_factory is None

    def reader(self, read: Read) -> Read:
        """Return `read` with the limits."""
        if not self.limits:
            return read

        def read_within(value: object) -> object:
            return _within(self.limits, read(value))

        return read_within

    def json_schema(self, inner: JsonSchema) -> JsonSchema:
        return {**inner, **{_JSON_LIMITS[name]: limit for name, limit in self.limits.items()}}


_JSON_LIMITS = {
    "gt": "exclusiveMinimum",
    "ge": "minimum",
    "lt": "exclusiveMaximum",
    "le": "maximum",
    "min_length": "minItems",
}


def _within(limits: Mapping[str, float], value: Any) -> Any:
    """Return the value; None, the absent one, has no limits."""
    for name, limit in limits.items() if value is not None else ():
        if not _IS_WITHIN[name](value, limit):
            raise Invalid.because(name, limit)
    return value


_IS_WITHIN: Mapping[str, Callable[[Any, float], bool]] = {
    "gt": lambda value, limit: value > limit,
    "ge": lambda value, limit: value >= limit,
    "lt": lambda value, limit: value < limit,
    "le": lambda value, limit: value <= limit,
    "min_length": lambda value, limit: len(value) >= limit,
}


def Field(  # noqa: N802 - the name that a field has in pydantic, and in what readers of such declarations know
    default: object = REQUIRED,
    *,
    default_factory: Callable[[], object] | None = None,
    description: str = "",
    examples: list[Any] | None = None,
    **limits: float,
) -> Any:
    """Declare a key, or limits inside `Annotated`: gt, ge, lt, le, and min_length of a list."""
    return Key(default, default_factory, limits, description, examples or [])


# The sets of keys that sections set: the profiles of a fleet set the same ones, and each set takes 216 bytes or more.
_key_sets: dict[frozenset[str], frozenset[str]] = {}


class Section:
    """A mapping of the profile. It refuses unknown keys and values of other types, and it is immutable.

    `model_fields_set` are the keys that the profile sets.
    """

    keys: ClassVar[Mapping[str, Key]] = {}
    model_fields_set: frozenset[str]
    results: dict[Any, Any]  # of functions under `once_a_section`

    def __init_subclass__(cls) -> None:
        keys: dict[str, Key] = {}
        for name, annotation in cls.__annotations__.items():
            keys[name] = key = vars(cls)[name]
            key.annotation = annotation
            delattr(cls, name)
        cls.keys = keys

    def __init__(self, values: Mapping[str, Any]) -> None:
        """Set the keys that are written; the others have their defaults."""
        own = self.__dict__
        for name, key in self.keys.items():
            if name in values:
                own[name] = values[name]
            else:
                own[name] = key.default if key.default_factory is None else key.default_factory()
        key_set = frozenset(values)
        own["model_fields_set"] = _key_sets.setdefault(key_set, key_set)
        own["results"] = {}

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __getstate__(self) -> dict[str, Any]:
        """Return the keys, for `copy` and `pickle`. What was computed of them is computed again."""
        return {**self.__dict__, "results": {}}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.keys)

    def __hash__(self) -> int:
        return hash(repr(self))  # mappings, which have no hash, are among its values

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in self.keys)})"

    def model_dump(self) -> dict[str, Any]:
        """Return all keys with their values, sections as mappings."""
        values = {name: getattr(self, name) for name in self.keys}
        return {name: value.model_dump() if isinstance(value, Section) else value for name, value in values.items()}

    @classmethod
    def adjust_json_schema(cls, schema: JsonSchema) -> None:
        """Change what editors accept, where a rule between keys decides it."""


def once_a_section(compute: Callable[[S, *Args], T]) -> Callable[[S, *Args], T]:
    """Compute a function of a section, and of words and numbers, once for each section.

    Sections that are written alike are one object (`schema/read.py`), so a fleet asks once for each way of writing. The
    result is kept as long as the section, is shared, and must not be changed.

    Why: decision 78 in docs/decisions.md.
    """

    @wraps(compute)
    def computed(section: S, *args: *Args) -> T:
        key = compute, args
        if key not in section.results:
            section.results[key] = compute(section, *args)
        result: T = section.results[key]
        return result

    return computed


def unwritten(section: type[Section]) -> Callable[[], Any]:
    """Return a factory of the section with its defaults: one object for all profiles, because it is immutable."""
    return cache(lambda: section({}))


class Form:
    """Text of a required form. `looks` is an example of it."""

    def __init__(self, pattern: str, looks: str) -> None:
        self.pattern = pattern
        self.looks = looks

    def reader(self, read: Read) -> Read:
        pattern: re.Pattern[str] | None = None

        def read_form(value: object) -> str:
            nonlocal pattern
            text: str = read(value)
            pattern = pattern or re.compile(self.pattern)
            if pattern.fullmatch(text) is None:
                raise Invalid.because("form", self.looks)
            return text

        return read_form

    def json_schema(self, inner: JsonSchema) -> JsonSchema:
        return {**inner, "pattern": f"^(?:{self.pattern})$"}


class Quantity:
    """A number with a unit, at least 1, as text. `parse` raises ValueError for other text."""

    def __init__(self, parse: Callable[[str], float], pattern: str, looks: str) -> None:
        self.parse = parse
        self.pattern = pattern
        self.looks = looks

    def reader(self, _: Read) -> Read:
        return self._read

    def json_schema(self, _: JsonSchema) -> JsonSchema:
        return {"type": "string", "pattern": self.pattern}

    def _read(self, value: object) -> float:
        if isinstance(value, Duration | ByteSize):
            return value
        try:
            quantity = self.parse(value) if isinstance(value, str) else None
        except ValueError:
            quantity = None
        if quantity is None or quantity < 1:
            raise Invalid.because("form", self.looks)
        return quantity


class DurationOrMoment:
    """A duration of at least a second, or a point in time with its time zone, as text."""

    LOOKS = "24h, or a time with its zone: 2026-12-24T18:00Z, 2026-12-24 18:00 Europe/Berlin"

    def reader(self, _: Read) -> Read:
        return self._read

    def json_schema(self, _: JsonSchema) -> JsonSchema:
        return {"anyOf": [{"type": "string", "pattern": pattern} for pattern in (DURATION_PATTERN, MOMENT_PATTERN)]}

    def _read(self, value: object) -> Duration | Moment:
        if isinstance(value, Duration | Moment):
            return value
        if not isinstance(value, str):
            raise Invalid.because("form", self.LOOKS)
        for kind in (Duration, Moment):
            try:
                time: Duration | Moment = kind.parse(value)
            except UnknownZone as unknown:
                raise Invalid.because("time_zone" if str(unknown) else "no_time_zones") from None
            except ValueError:
                continue
            if time >= 1:
                return time
        raise Invalid.because("form", self.LOOKS)


class WeekHours:
    """Hours of some days of each week in a time zone, as text."""

    LOOKS = "Mon-Fri 08:00-19:00 Europe/Berlin: days, opening and closing time, which differ, and an IANA time zone"

    def reader(self, _: Read) -> Read:
        return self._read

    def json_schema(self, _: JsonSchema) -> JsonSchema:
        return {"type": "string", "pattern": HOURS_PATTERN}

    def _read(self, value: object) -> Hours:
        if isinstance(value, Hours):
            return value
        try:
            return Hours.parse(value if isinstance(value, str) else "")
        except UnknownZone as unknown:
            raise Invalid.because("time_zone" if str(unknown) else "no_time_zones") from None
        except ValueError:
            raise Invalid.because("form", self.LOOKS) from None


class DockerQuantity(Quantity):
    """A size as docker takes it: text, or a whole number of bytes."""

    def json_schema(self, _: JsonSchema) -> JsonSchema:
        return {
            "anyOf": [{"type": "integer", "minimum": LEAST_DOCKER_SIZE}, {"type": "string", "pattern": self.pattern}]
        }

    def _read(self, value: object) -> float:
        return super()._read(str(value) if type(value) is int else value)


class Tokens:
    """A number of tokens as vLLM reads it: 16384, 16k (16,000) or 16K (16,384); with `has_auto` also `auto` or -1.

    The value is an integer, or the text `auto`.
    """

    def __init__(self, *, has_auto: bool = False) -> None:
        self.has_auto = has_auto

    def reader(self, _: Read) -> Read:
        return self._read

    def json_schema(self, _: JsonSchema) -> JsonSchema:
        number = {"type": "integer", "minimum": -1 if self.has_auto else 1, "maximum": _MOST}
        words = f"{TOKENS_PATTERN}|[aA][uU][tT][oO]" if self.has_auto else TOKENS_PATTERN
        return {"anyOf": [number, {"type": "string", "pattern": f"^(?:{words})$"}]}

    def _read(self, value: object) -> int | str:
        if isinstance(value, str):
            if self.has_auto and value.strip().lower() == "auto":
                return "auto"
            value = count_of(value)
        # The exact type excludes `true`, which is an int in Python.
        if type(value) is not int:
            raise Invalid.because("int")
        if self.has_auto and value == -1:  # as vLLM writes `auto`
            return "auto"
        limit: int = _within({"ge": 1, "le": _MOST}, value)
        return limit


class FormatVersion:
    """The integer 1. A Literal would accept true and 1.0 too."""

    def reader(self, _: Read) -> Read:
        return self._read

    def json_schema(self, _: JsonSchema) -> JsonSchema:
        return {"const": 1}

    @staticmethod
    def _read(value: object) -> int:
        if type(value) is not int or value != 1:
            raise Invalid.because("form", "1, the only version")
        return value


JsonValue: TypeAlias = Any  # what a flag takes

Text = Annotated[str, Form(r"[\s\S]+", "text that is not empty")]
Words = tuple[Text, ...]
Time = Annotated[Duration, Quantity(Duration.parse, DURATION_PATTERN, "90s, 15m, 2h or 7d")]
EndTime = Annotated[Duration | Moment, DurationOrMoment()]
RunHours = Annotated[Hours, WeekHours()]
DockerBytes = Annotated[
    ByteSize,
    DockerQuantity(ByteSize.parse_for_docker, DOCKER_SIZE_PATTERN, "16g, 16384m, 10gb, 10GiB or bytes"),
]
Bytes = Annotated[ByteSize, Quantity(ByteSize.parse, SIZE_PATTERN, "10gb (decimal) or 10GiB (binary)")]

Bucket = Annotated[
    str, Form(r"gs://[a-z0-9][a-z0-9._-]{1,220}[a-z0-9](?:/[A-Za-z0-9._=+@-]+)*/?", "gs://bucket/folder")
]
AbsolutePath = Annotated[str, Form(r"/[^\0:\n]*", "/an/absolute/path, without a colon")]
