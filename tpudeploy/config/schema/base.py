"""The profile format's building blocks on pydantic: a strict, frozen model, and types for text of a required form.

Why: decision 7 in docs/decisions.md.
"""

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, TypeAlias, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    PlainValidator,
    Strict,
    Tag,
    ValidationError,
    WithJsonSchema,
)
from pydantic_core import PydanticCustomError, PydanticKnownError, core_schema

from tpudeploy.catalog._spelling import count_of
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

JsonValue: TypeAlias = Any
_MOST: Final = 2**31 - 1
T = TypeVar("T")


class Section(BaseModel):
    """A mapping of the profile. It refuses unknown keys and values of other types, and it is immutable."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    # What a refusal in Python becomes. `config/check.py` sets it, because it knows all sections.
    refusal: ClassVar[Callable[[type[Any], Mapping[str, Any], ValidationError], Exception] | None] = None

    if not TYPE_CHECKING:  # for type checkers, the arguments are the keys

        def __init__(self, **values: object) -> None:
            try:
                super().__init__(**values)
            except ValidationError as invalid:
                raise Section.refusal(type(self), values, invalid) if Section.refusal else invalid from None

        __init__.__pydantic_base_init__ = True  # sections inside another one are validated by that


def _refusal(kind: str, looks: str = "") -> PydanticCustomError:
    return PydanticCustomError(kind, "it looks like {looks}", {"looks": looks})


class Form:
    """Text of a required form. `looks` is an example of it."""

    def __init__(self, pattern: str, looks: str) -> None:
        self.pattern, self.looks = pattern, looks

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> core_schema.CoreSchema:
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        return {**handler(schema), "pattern": f"^(?:{self.pattern})$"}

    def check(self, text: str) -> str:
        if re.fullmatch(self.pattern, text) is None:
            raise _refusal("form", self.looks)
        return text


def quantity(parse: Callable[[str], Any], kind: type | tuple[type, ...], looks: str, **schema: Any) -> tuple[Any, Any]:
    """Return the annotations of a value that `parse` reads from text; `kind` is what it returns."""

    def read(value: object) -> Any:
        if isinstance(value, kind):
            return value
        try:
            result = parse(value) if isinstance(value, str) else None
        except UnknownZone as unknown:
            raise _refusal("time_zone" if str(unknown) else "no_time_zones") from None
        except ValueError:
            result = None
        if result is None or (isinstance(result, float | int) and result < 1):
            raise _refusal("form", looks)
        return result

    return PlainValidator(read), WithJsonSchema(schema)


def _time_or_moment(text: str) -> Duration | Moment:
    try:
        return Duration.parse(text)
    except ValueError:
        return Moment.parse(text)


def _tokens(*, has_auto: bool) -> tuple[Any, Any]:
    """A number of tokens as vLLM reads it: 16384, 16k (16,000) or 16K (16,384); maybe `auto` or -1."""

    def read(value: object) -> int | str:
        if isinstance(value, str):
            if has_auto and value.strip().lower() == "auto":
                return "auto"
            value = count_of(value)
        if type(value) is not int:  # the exact type excludes `true`
            raise PydanticKnownError("int_type")
        if has_auto and value == -1:
            return "auto"
        if not 1 <= value <= _MOST:
            above = PydanticKnownError("less_than_equal", {"le": _MOST})
            raise above if value > 1 else PydanticKnownError("greater_than_equal", {"ge": 1})
        return value

    number = {"type": "integer", "minimum": -1 if has_auto else 1, "maximum": _MOST}
    words = f"{TOKENS_PATTERN}|[aA][uU][tT][oO]" if has_auto else TOKENS_PATTERN
    return PlainValidator(read), WithJsonSchema({"anyOf": [number, {"type": "string", "pattern": f"^(?:{words})$"}]})


def _version(value: object) -> int:
    if type(value) is not int or value != 1:  # Literal[1] accepts true and 1.0
        raise _refusal("form", "1, the only version")
    return value


FormatVersion = Annotated[int, PlainValidator(_version), WithJsonSchema({"const": 1})]


# In a union of text and a list, anything but text is read as the list. No key of a file contains a NUL, so that these
# names of the alternatives, which pydantic adds to the places of its errors, can be told from keys.
TAGS = TEXT, LIST = "\0text", "\0list"
TEXT_OR_LIST = Discriminator(lambda value: TEXT if isinstance(value, str) else LIST)
Items: TypeAlias = Annotated[tuple[T, ...], Strict(strict=False)]  # YAML has lists
Text = Annotated[str, Form(r"[\s\S]+", "text that is not empty")]
Words = Items[Text]
TextOrWords = Annotated[Annotated[Text, Tag(TEXT)] | Annotated[Words, Tag(LIST)], TEXT_OR_LIST]
Time = Annotated[
    Duration, *quantity(Duration.parse, Duration, "90s, 15m, 2h or 7d", type="string", pattern=DURATION_PATTERN)
]
EndTime = Annotated[
    Duration | Moment,
    *quantity(
        _time_or_moment,
        (Duration, Moment),
        "24h, or a time with its zone: 2026-12-24T18:00Z, 2026-12-24 18:00 Europe/Berlin",
        anyOf=[{"type": "string", "pattern": pattern} for pattern in (DURATION_PATTERN, MOMENT_PATTERN)],
    ),
]
RunHours = Annotated[
    Hours,
    *quantity(
        Hours.parse,
        Hours,
        "Mon-Fri 08:00-19:00 Europe/Berlin: days, opening and closing time, which differ, and an IANA time zone",
        type="string",
        pattern=HOURS_PATTERN,
    ),
]
DockerBytes = Annotated[
    ByteSize,
    *quantity(
        ByteSize.parse_for_docker,
        ByteSize,
        "16g, 16384m, 10gb, 10GiB or bytes",
        anyOf=[{"type": "integer", "minimum": LEAST_DOCKER_SIZE}, {"type": "string", "pattern": DOCKER_SIZE_PATTERN}],
    ),
    BeforeValidator(lambda value: str(value) if type(value) is int else value),
]
Bytes = Annotated[
    ByteSize,
    *quantity(ByteSize.parse, ByteSize, "10gb (decimal) or 10GiB (binary)", type="string", pattern=SIZE_PATTERN),
]
TokenCount = Annotated[int, *_tokens(has_auto=False)]
TokensOrAuto = Annotated[int | Literal["auto"], *_tokens(has_auto=True)]
Bucket = Annotated[
    str, Form(r"gs://[a-z0-9][a-z0-9._-]{1,220}[a-z0-9](?:/[A-Za-z0-9._=+@-]+)*/?", "gs://bucket/folder")
]
AbsolutePath = Annotated[str, Form(r"/[^\0:\n]*", "/an/absolute/path, without a colon")]
