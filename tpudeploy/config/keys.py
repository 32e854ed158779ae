"""List the keys of the format, as the schema defines them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from tpudeploy.config.nodes import Path
from tpudeploy.config.schema import ProfileSpec


@lru_cache(maxsize=1024)
def fields_at(path: Path) -> Mapping[str, FieldInfo] | None:
    """Return the keys below `path`; None for a section whose keys a person chooses, and for a path without keys."""
    section: type[BaseModel] | None = ProfileSpec
    for part in path:
        info = section.model_fields.get(str(part)) if section else None
        section = section_of(info) if info else None
    return section.model_fields if section else None


def section_of(info: FieldInfo) -> type[BaseModel] | None:
    """Return the section that a key holds, one that may be absent included, or None."""
    for annotation in get_args(info.annotation) or (info.annotation,):
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            return annotation
    return None


def all_keys(path: Path = ()) -> Iterator[Path]:
    """Yield every key of the format, in its order."""
    for name in fields_at(path) or ():
        yield (*path, name)
        yield from all_keys((*path, name))
