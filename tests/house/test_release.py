"""What a tag publishes: one version everywhere, notes of a page, a schema that editors find, and jobs with provenance."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tpudeploy.version import VERSION

ROOT = Path(__file__).parents[2]


def _jobs() -> dict[str, Any]:
    jobs: dict[str, Any] = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text("utf-8"))["jobs"]
    return jobs


def _text(job: str) -> str:
    return yaml.safe_dump(_jobs()[job], width=1000)


def test_the_notes_of_the_version_have_at_most_60_lines() -> None:
    notes = subprocess.run([ROOT / ".ci/release-notes", VERSION], capture_output=True, text=True, check=True)
    assert 10 < len(notes.stdout.splitlines()) <= 60


@pytest.mark.parametrize("path", sorted((ROOT / "examples/05-pull-requests").glob("*.yml")), ids=lambda path: path.name)
def test_the_examples_use_the_action_of_this_version(path: Path) -> None:
    assert set(re.findall(r"tpudeploy/tpudeploy@(\S+)", path.read_text("utf-8"))) <= {f"v{VERSION}"}


def test_the_pages_name_the_hook_and_the_image_of_this_version() -> None:
    pages = "".join(path.read_text("utf-8") for path in (ROOT / "docs/how-to").glob("*.md"))
    assert set(re.findall(r"rev: (v[\d.]+)", pages)) == {f"v{VERSION}"}
    assert set(re.findall(r"ghcr\.io/tpudeploy/tpudeploy:([\d.]+)", pages)) == {VERSION}


def test_editors_find_the_schema_where_its_entry_in_the_catalog_says() -> None:
    page = (ROOT / "docs/maintainers/release.md").read_text("utf-8")
    (entry,) = re.findall(r"```text\n(.+?)```", page, re.DOTALL)
    schema = json.loads((ROOT / "profiles/profile.schema.json").read_text("utf-8"))
    assert json.loads(entry)["url"] == schema["$id"]
    assert schema["$id"].endswith("/main/profiles/profile.schema.json")
    assert schema["$schema"] == "http://json-schema.org/draft-07/schema#"


def test_the_release_publishes_packages_and_image_with_provenance_after_the_tests() -> None:
    jobs = _jobs()
    for job in ("publish", "image"):
        assert set(jobs[job]["needs"]) == {"test", "build"}
        assert jobs[job]["permissions"]["id-token"] == "write"
        assert jobs[job]["environment"], "a person approves"
    assert "attestations: true" in _text("publish")
    for words in (
        "--provenance mode=max",
        "--sbom true",
        "--push",
        "actions/attest-build-provenance@",
        "subject-digest",
    ):
        assert words in _text("image"), words
    assert set(jobs["notes"]["needs"]) == {"publish", "image"}, "notes of what is not published would mislead"


def test_each_supported_python_is_one_of_the_tests_and_of_the_packages() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text("utf-8"))
    versions = workflow["jobs"]["test"]["strategy"]["matrix"]["python"]
    setup = next(step for step in _jobs()["build"]["steps"] if "setup-python" in step.get("uses", ""))
    assert set(setup["with"]["python-version"].split()) == set(versions)
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    assert set(re.findall(r"Python :: (3\.\d+)", project)) == set(versions)
    assert f"for minor in {' '.join(versions)};" in (ROOT / ".ci/distributions").read_text("utf-8")
    assert f"| Python | {versions[0]} to {versions[-1]};" in (ROOT / "SUPPORT.md").read_text("utf-8")
