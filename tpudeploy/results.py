"""Result: the base of what operations return: frozen data that prints itself as text, and as the document of --json."""

from __future__ import annotations

import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from html import escape
from typing import Any, ClassVar, TypeVar

from tpudeploy.domain.serialization import to_json
from tpudeploy.schemas import schema_of
from tpudeploy.schemas.schema_of import Definitions, object_of
from tpudeploy.text.paint import Paint
from tpudeploy.text.words import plain

R = TypeVar("R", bound="Result")


class Result:
    """The base of results. Frozen data; `to_dict()` is the document that --json prints, and `str` its text.

    A field that has `Annotated[…, "a sentence"]` as its type is so described in the JSON Schema and to agents.
    """

    __slots__ = ()

    FORMAT: ClassVar[str]
    IS_DOCUMENT: ClassVar[bool] = True  # False if it is part of another document, or that of another class
    ON_ONE_LINE: ClassVar[bool] = False  # a document that one line holds, for programs that read lines
    IS_VERBATIM: ClassVar[bool] = False  # True if a terminal must not wrap its text: a script, a file, an answer
    ADDED_LATER: ClassVar[frozenset[str]] = frozenset()  # keys that documents of an earlier version lack

    def to_dict(self) -> dict[str, Any]:
        """Return the document as JSON values."""
        return {"format": f"tpudeploy.{self.FORMAT}/1", **self.values()}

    def values(self) -> dict[str, Any]:
        """Return the keys of the document beside `format`: by default, the fields."""
        return {spec.name: to_json(getattr(self, spec.name)) for spec in fields(self)}  # type: ignore[arg-type]  # every subclass is a dataclass

    def as_text(self, paint: Paint, width: int | None = None) -> str:
        """Return what a person reads on stdout. Tables fit into `width` columns; the command wraps the sentences."""
        raise NotImplementedError

    def messages(self, paint: Paint) -> str:
        """Return what a person reads on stderr beside the text, "" for nothing."""
        del paint
        return ""

    @property
    def exit_code(self) -> int:
        """Return the exit code of the command that prints this result."""
        return 0

    def __str__(self) -> str:
        """Return the text, in which no character of others hides or reorders what is beside it."""
        text = self.as_text(Paint())
        return text if self.IS_VERBATIM else plain(text)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.summary}>"

    @property
    def summary(self) -> str:
        """Return one line for `repr`."""
        return next((line.strip() for line in str(self).splitlines() if line.strip()), self.FORMAT)

    def _repr_html_(self) -> str:
        """Return the text for a notebook."""
        return f"<pre>{escape(str(self))}</pre>"

    @classmethod
    def schema(cls) -> Mapping[str, Any]:
        """Return the JSON Schema of the document, made from the fields."""
        return document(cls.FORMAT, {}, cls)

    @classmethod
    def promised_keys(cls) -> tuple[str, ...]:
        """Return the keys of the document that agents are promised: by default, those that are always there."""
        return tuple(cls.schema()["required"])


@typing.dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def result(cls: type[R]) -> type[R]:
    """Make a class of results frozen data, with the short `repr` of `Result`."""
    return dataclass(frozen=True, slots=True, kw_only=True, repr=False)(cls)


def document(
    kind: str, keys: Mapping[str, Any], cls: type | None = None, *, optional: Iterable[str] = (), **more: Any
) -> Mapping[str, Any]:
    """Return the JSON Schema of a document: its format, these keys, and the fields of `cls`.

    The value of a key is a type or a schema; a list of one mapping stands for a list of objects with these keys, and
    `more` is as for `schemas.schema_of.document`.
    """
    head = {"format": {"const": f"tpudeploy.{kind}/1"}}
    return schema_of.document(f"tpudeploy {kind}", {**head, **keys}, cls=cls, optional=optional, **more)


def part(keys: Mapping[str, Any], *, optional: Iterable[str] = ()) -> dict[str, Any]:
    """Return the schema of an object inside a document, with keys of plain types."""
    definitions = Definitions(is_output=True)
    return object_of({name: definitions.schema(value) for name, value in keys.items()}, optional=optional)
