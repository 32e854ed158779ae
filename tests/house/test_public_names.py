"""What `import tpudeploy` gives: the promised names, sorted, and nothing imported before it is asked for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

import tpudeploy as td
from tpudeploy.operations import OPERATIONS, operation

PROFILE = Path(__file__).parents[2] / "profiles" / "gemma4-e2b-v6e1.yaml"


def test_the_public_names_are_these_in_order() -> None:
    assert {"Plan", "Profile", "Report", "Wait", "Workspace", "errors", "events", "size"} <= set(td.__all__)
    assert sorted(td.__all__) == td.__all__ == dir(td)


@pytest.mark.parametrize("name", td.__all__)
def test_every_public_name_is_there_and_documented(name: str) -> None:
    assert getattr(td, name).__doc__
    assert name in dir(td)


def test_no_other_name_is_there() -> None:
    with pytest.raises(AttributeError, match="Workspaces"):
        td.Workspaces  # type: ignore[attr-defined]  # noqa: B018 - that is the point


def test_the_package_alone_imports_nothing_else_of_ours() -> None:
    code = "import sys, tpudeploy; print([m for m in sys.modules if m.startswith('tpudeploy.')])"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout.strip() == "[]"


def test_a_profile_is_loaded_with_overlays_and_settings(tmp_path: Path) -> None:
    overlay = tmp_path / "canary.yaml"
    overlay.write_text("serving: {max_model_len: 8192}\n", encoding="utf-8")
    profile = td.Profile.load(PROFILE, overlays=[overlay], set={"tpu.type": "v6e-8"})
    assert isinstance(profile, td.Profile)
    assert profile.serving.max_model_len == 8192
    assert profile.tpu.type == "v6e-8"
    assert profile.origins["serving.max_model_len"].file == str(overlay)


def test_a_bad_profile_raises_with_every_problem(tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("version: 1\nname: Bad Name\nmodle: {}\n", encoding="utf-8")
    with pytest.raises(td.errors.ProfileInvalid) as caught:
        td.Profile.load(bad)
    assert len(caught.value.diagnostics) >= 2
    assert caught.value.exit_code == 1


def test_every_result_of_an_operation_is_exported() -> None:
    results = {result for name in OPERATIONS for result in operation(name).results}
    exported = {getattr(td, name) for name in td.__all__}
    # One of a kind of another, or that only a listing has.
    assert {result.__name__ for result in results - exported} == {"AllOutputs", "Codes", "Drift"}


def test_a_profile_is_made_from_a_text_or_a_mapping_and_changed_by_settings() -> None:
    text = PROFILE.read_text(encoding="utf-8")
    from_text = td.Profile.from_text(text)
    from_mapping = td.Profile.from_mapping(yaml.safe_load(text))
    assert from_text == from_mapping == td.Profile.load(PROFILE)
    longer = from_text.with_settings({"serving.max_model_len": 8192})
    assert longer.serving.max_model_len == 8192
    both = longer.with_settings({"serving.max_num_seqs": 7}).serving
    assert (both.max_model_len, both.max_num_seqs) == (8192, 7), "what was set before stays set"
    with pytest.raises(td.errors.ProfileInvalid) as caught:
        td.Profile.from_text("version: 1\nnmae: x\n")
    assert any(problem.location and problem.location.line == 2 for problem in caught.value.diagnostics)


@pytest.mark.parametrize(
    "many", [PROFILE, str(PROFILE), [PROFILE], (td.Profile.load(PROFILE),), td.Profile.load(PROFILE)]
)
def test_one_profile_or_a_path_is_taken_where_a_list_is(many: Any) -> None:
    result = td.Workspace.open().validate(many)
    assert [profile.is_valid for profile in result.profiles] == [True]
    assert "valid" in str(result)
    assert repr(result).startswith("<Validation: ")


def test_a_size_prints_as_the_command_does() -> None:
    size = td.Workspace.open().size(PROFILE)
    assert str(size).startswith("gemma4-e2b  google/gemma-4-E2B-it on v6e-1")
    assert size.to_dict()["format"] == "tpudeploy.size/1"
    assert size._repr_html_().startswith("<pre>gemma4-e2b")
