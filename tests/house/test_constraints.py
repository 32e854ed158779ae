"""What a pipeline installs: constraints/pipeline.txt has it with versions and hashes, and is what pyproject.toml asks for."""

from __future__ import annotations

import re
import tomllib
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "constraints" / "pipeline.txt").read_text("utf-8")
REFRESH = "run `make constraints`"


def _versions() -> dict[str, Version]:
    """Each package, with its version."""
    lines = re.findall(r"^([\w.-]+)==(\S+)", TEXT, re.MULTILINE)
    assert lines
    return {canonicalize_name(name): Version(version) for name, version in lines}


def _requirements() -> list[Requirement]:
    tree = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    project = tree["project"]
    built_by = [*tree["dependency-groups"]["build"], *tree["build-system"]["requires"]]
    return [Requirement(r) for r in (*project["dependencies"], *project["optional-dependencies"]["gcs"], *built_by)]


def test_it_holds_what_the_project_asks_for() -> None:
    versions = _versions()
    for requirement in _requirements():
        name = canonicalize_name(requirement.name)
        assert name in versions, f"{requirement} is missing: {REFRESH}"
        assert requirement.specifier.contains(versions[name]), (
            f"{name} {versions[name]} is not {requirement}: {REFRESH}"
        )


def test_it_holds_what_that_asks_for_in_turn() -> None:
    """From a file with hashes that lacks one of them, pip installs nothing. Read from what is installed here."""
    versions = _versions()
    visited: set[tuple[str, frozenset[str]]] = set()
    remaining = [(r, frozenset(r.extras)) for r in _requirements()]
    while remaining:
        requirement, extras = remaining.pop()
        name = canonicalize_name(requirement.name)
        assert name in versions, f"{requirement.name} is missing: {REFRESH}"
        if (name, extras) in visited:
            continue
        visited.add((name, extras))
        for line in metadata.requires(name) or ():
            needed = Requirement(line)
            if needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in (extras or {""})):
                remaining.append((needed, frozenset(needed.extras)))
    assert len(visited) > len(_requirements())


def test_each_has_hashes_and_none_says_where_it_comes_from() -> None:
    for block in re.split(r"\n(?=\w)", TEXT.strip()):
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", block), block.splitlines()[0]
    assert not re.search(r"://|index|find-links|\.(org|com|io|net)\b", TEXT)
