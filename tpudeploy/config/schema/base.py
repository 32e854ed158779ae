"""Define what the sections of the format share: strictness, and types for text of a required form."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    ConfigDict,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    Strict,
    ValidatorFunctionWrapHandler,
)
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from tpudeploy.catalog._spelling import count_of
from tpudeploy.config.scalars import DURATION_PATTERN, SIZE_PATTERN, TOKENS_PATTERN, Duration, Size


class Section(BaseModel):
    """A mapping of the profile. It refuses unknown keys and values of other types, and it is immutable.

    Two rules keep start-up short. Sections build no validators, because whole profiles are validated; so `unwritten`
    creates a section that a profile omits. And the files of sections do not use `from __future__ import annotations`:
    pydantic evaluates annotations, and would have to compile the text of each.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True, defer_build=True)


def unwritten(section: type[Section]) -> Callable[[], Any]:
    """Return a factory of the section with its defaults: one object for all profiles, because it is immutable."""
    return cache(section.model_construct)


class Form:
    """Text of a required form. `looks` is an example of it."""

    def __init__(self, pattern: str, looks: str) -> None:
        self.pattern = pattern
        self.looks = looks

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {**handler(schema), "pattern": f"^(?:{self.pattern})$"}

    def _check(self, text: str) -> str:
        if re.fullmatch(self.pattern, text) is None:
            raise _wrong_form(self.looks)
        return text


class Quantity:
    """A number with a unit, at least 1, as text. `read` raises ValueError for other text."""

    def __init__(self, read: Callable[[str], float], pattern: str, looks: str) -> None:
        self.read = read
        self.pattern = pattern
        self.looks = looks

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self._check)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"type": "string", "pattern": self.pattern}

    def _check(self, value: object) -> float:
        if isinstance(value, Duration | Size):
            return value
        try:
            quantity = self.read(value) if isinstance(value, str) else None
        except ValueError:
            quantity = None
        if quantity is None or quantity < 1:
            raise _wrong_form(self.looks)
        return quantity


def _as_it_is(value: int | str) -> int | str:
    return value


class Tokens:
    """A number of tokens as vLLM reads it: 16384, 16k (16,000) or 16K (16,384); with `has_auto` also `auto` or -1.

    The value is an integer, or the text `auto`.
    """

    def __init__(self, *, has_auto: bool = False) -> None:
        self.has_auto = has_auto

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_wrap_validator_function(
            self._check,
            core_schema.int_schema(strict=True, ge=1, le=2**31 - 1),
            serialization=core_schema.plain_serializer_function_ser_schema(_as_it_is),  # `auto` is not an integer
        )

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        number = {"type": "integer", "minimum": -1 if self.has_auto else 1, "maximum": 2**31 - 1}
        words = f"{TOKENS_PATTERN}|[aA][uU][tT][oO]" if self.has_auto else TOKENS_PATTERN
        return {"anyOf": [number, {"type": "string", "pattern": f"^(?:{words})$"}]}

    def _check(self, value: object, handler: ValidatorFunctionWrapHandler) -> int | str:
        if isinstance(value, str):
            if self.has_auto and value.strip().lower() == "auto":
                return "auto"
            value = count_of(value)
        # -1 is how vLLM writes `auto`. The exact type excludes `true`, which is an int in Python.
        if self.has_auto and type(value) is int and value == -1:
            return "auto"
        limit: int = handler(value)
        return limit


class Version:
    """The integer 1. A Literal would accept true and 1.0 too."""

    @staticmethod
    def __get_pydantic_core_schema__(source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(Version._check)

    @staticmethod
    def __get_pydantic_json_schema__(schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"const": 1}

    @staticmethod
    def _check(value: object) -> int:
        if type(value) is not int or value != 1:
            raise _wrong_form("1, the only version")
        return value


def _wrong_form(looks: str) -> PydanticCustomError:
    return PydanticCustomError("form", "not of the form {looks}", {"looks": looks})


Text = Annotated[str, Form(r"[\s\S]+", "text that is not empty")]
Words = Annotated[tuple[Text, ...], Strict(False)]  # noqa: FBT003 - a YAML list arrives as a list, not as a tuple
Time = Annotated[Duration, Quantity(Duration.parse, DURATION_PATTERN, "90s, 15m, 2h or 7d")]
Bytes = Annotated[Size, Quantity(Size.parse, SIZE_PATTERN, "10gb (decimal) or 10GiB (binary)")]

Bucket = Annotated[
    str, Form(r"gs://[a-z0-9][a-z0-9._-]{1,220}[a-z0-9](?:/[A-Za-z0-9._=+@-]+)*/?", "gs://bucket/folder")
]
AbsolutePath = Annotated[str, Form(r"/[^\0:\n]*", "/an/absolute/path, without a colon")]
