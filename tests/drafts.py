"""What `init` writes from a source, for the tests of intake."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from command_line import command

SECRETS = ("hf_AbcDefGhiJklMnoPqrStu", "sk-AbCdEf0123456789xyz", "hunter2-hunter2")


def init(folder: Path, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[dict[str, Any], str]:
    """Return what `init` writes, and what it prints. The profile is valid."""
    result = command(folder, capsys, "init", *words, "p.yaml")
    assert result.code == 0, result.all
    validation = command(folder, capsys, "validate", "p.yaml")
    assert validation.code == 0, validation.all
    profile: dict[str, Any] = yaml.safe_load((folder / "p.yaml").read_text(encoding="utf-8"))
    return profile, result.out


def at(profile: dict[str, Any], dotted: str) -> Any:
    """Return the value of a key, None without it. A host path has slashes, and is one key."""
    head, slash, tail = dotted.partition("./")
    value: Any = profile
    for part in [*head.split("."), *([f"/{tail}"] if slash else [])]:
        value = value.get(part) if isinstance(value, dict) else None
    return value
