"""Pinned versions: constraints/pipeline.txt (with hashes) and constraints/development.txt match pyproject.toml."""

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


def test_the_makefile_installs_pinned_versions_of_all_extras() -> None:
    """A release of a dependency must not break a tree that was green yesterday."""
    text = (ROOT / "constraints" / "development.txt").read_text("utf-8")
    pins = {canonicalize_name(name) for name in re.findall(r"^([\w.-]+)==", text, re.MULTILINE)}
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    names = {canonicalize_name(Requirement(r).name) for extra in extras.values() for r in extra} - {"tpudeploy"}
    assert names - pins == set(), REFRESH
    assert not re.search(r"://|index|find-links", text)
    makefile = (ROOT / "Makefile").read_text("utf-8")
    installs = [line for line in makefile.splitlines() if "install --editable" in line or "$(INSTALL)" in line]
    assert installs
    assert all("$(INSTALL)" in line for line in installs)
    assert "INSTALL := $(PIP) install --constraint constraints/development.txt --editable" in makefile


def test_each_has_hashes_and_none_says_where_it_comes_from() -> None:
    for block in re.split(r"\n(?=\w)", TEXT.strip()):
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", block), block.splitlines()[0]
    assert not re.search(r"://|index|find-links|\.(org|com|io|net)\b", TEXT)
