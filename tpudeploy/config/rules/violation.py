"""What a rule says: a code, the path of the key that is wrong, and a sentence about it."""

from __future__ import annotations

from typing import NamedTuple

from pydantic import BaseModel

from tpudeploy.config.nodes import Path


class Violation(NamedTuple):
    """What is wrong with the value at `path`, or with its key (`is_key`). `also` is the path that it contradicts."""

    code: str
    path: Path
    message: str
    hint: str = ""
    also: Path = ()
    is_key: bool = False
    is_warning: bool = False


def is_set(profile: BaseModel, path: Path) -> bool:
    """Return whether the profile has the key at `path`, also one whose value is refused."""
    section: object = profile
    for part in path:
        if not isinstance(section, BaseModel) or part not in section.model_fields_set:
            return False
        section = getattr(section, str(part))
    return True
