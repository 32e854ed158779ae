"""What `import tpudeploy` gives: the promised names, sorted, and nothing imported before it is asked for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import tpudeploy as td

PROFILE = Path(__file__).parents[2] / "profiles" / "gemma4-e2b-v6e1.yaml"


def test_the_public_names_are_these_in_order() -> None:
    assert td.__all__ == ["Plan", "Profile", "Report", "Wait", "Workspace", "errors", "events", "size"]
    assert sorted(td.__all__) == td.__all__


@pytest.mark.parametrize("name", td.__all__)
def test_every_public_name_is_there_and_documented(name: str) -> None:
    assert getattr(td, name).__doc__
    assert name in dir(td)


def test_no_other_name_is_there() -> None:
    with pytest.raises(AttributeError, match="Workspaces"):
        td.Workspaces  # type: ignore[attr-defined]  # noqa: B018 - that is the point


def test_the_package_alone_imports_nothing_else_of_ours() -> None:
    code = "import sys, tpudeploy; print([m for m in sys.modules if m.startswith('tpudeploy.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_profile_is_loaded_with_overlays_and_settings(tmp_path: Path) -> None:
    overlay = tmp_path / "canary.yaml"
    overlay.write_text("serving: {max_model_len: 8192}\n", encoding="utf-8")
    profile = td.Profile.load(PROFILE, overlays=[overlay], set={"tpu.type": "v6e-8"})
    assert isinstance(profile, td.Profile)
    assert profile.spec.serving.max_model_len == 8192
    assert profile.spec.tpu.type == "v6e-8"
    assert profile.origins["serving.max_model_len"].file == str(overlay)


def test_a_bad_profile_raises_with_every_problem(tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("version: 1\nname: Bad Name\nmodle: {}\n", encoding="utf-8")
    with pytest.raises(td.errors.ProfileInvalid) as caught:
        td.Profile.load(bad)
    assert len(caught.value.diagnostics) >= 2
    assert caught.value.exit_code == 1
