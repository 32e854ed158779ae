"""What is installed: the wheel holds every template and profile, by either way of building it, and works from them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tpudeploy.version import VERSION

ROOT = Path(__file__).parents[2]
DATA = "tpudeploy/_data/"
# Python 3.11.4 and later warn of archives that are unpacked without a filter; earlier ones know none.
_FILTERED: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}


def build_package(what: str, source: Path, folder: Path) -> Path:
    """By the backend itself: nothing is fetched."""
    code = f"import sys; from hatchling.build import build_{what}; print(build_{what}(sys.argv[1]))"
    built = subprocess.run(
        [sys.executable, "-c", code, str(folder)], cwd=source, capture_output=True, text=True, check=True
    )
    return folder / built.stdout.splitlines()[-1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_package("wheel", ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def wheel_of_sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sdist")
    with tarfile.open(build_package("sdist", ROOT, folder)) as packed:
        packed.extractall(folder, **_FILTERED)
    (source,) = (path for path in folder.iterdir() if path.is_dir())
    return build_package("wheel", source, folder)


def tracked() -> Mapping[str, bytes]:
    """Templates and profiles as git has them listed, with what they hold."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "templates", "profiles"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode != 0:
        pytest.skip("this is no git checkout")
    return {name: (ROOT / name).read_bytes() for name in listed.stdout.splitlines() if (ROOT / name).exists()}


def data_of(wheel: Path) -> Mapping[str, bytes]:
    with zipfile.ZipFile(wheel) as packed:
        return {n.removeprefix(DATA): packed.read(n) for n in packed.namelist() if n.startswith(DATA)}


def test_the_wheel_holds_every_template_and_profile_and_nothing_else(wheel: Path) -> None:
    assert data_of(wheel) == tracked()


def test_a_wheel_of_the_sdist_holds_the_same(wheel: Path, wheel_of_sdist: Path) -> None:
    assert data_of(wheel_of_sdist) == data_of(wheel)
    with zipfile.ZipFile(wheel) as one, zipfile.ZipFile(wheel_of_sdist) as other:
        assert sorted(one.namelist()) == sorted(other.namelist())


def test_the_wheel_is_typed_licensed_and_has_the_command(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        names = packed.namelist()
        (entry_points,) = (n for n in names if n.endswith("entry_points.txt"))
        assert "tpudeploy = tpudeploy.cli.main:run" in packed.read(entry_points).decode()
    assert "tpudeploy/py.typed" in names
    assert any(n.endswith("licenses/LICENSE") for n in names)
    assert any(n.endswith("licenses/tpudeploy/views/page/uplot/LICENSE") for n in names), "what draws charts is MIT"
    assert {f"tpudeploy/views/page/uplot/{name}" for name in ("uPlot.iife.min.js", "uPlot.min.css")} <= {*names}


def test_the_image_is_built_from_the_same_files(wheel: Path, tmp_path: Path) -> None:
    """Docker itself is not run: only what the Dockerfile copies is in the folder, and its last pip builds from there."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    build = text.partition("\nFROM python:${PYTHON}\n")[0]
    sent = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    for line in re.findall(r"^COPY (.+)$", build, re.MULTILINE):
        *names, target = line.split()
        for name in names:
            assert f"!{name}" in sent, "docker leaves out everything that .dockerignore does not name"
            source, place = ROOT / name, tmp_path / target
            if source.is_dir():
                shutil.copytree(source, place, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                place.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, place)
    with zipfile.ZipFile(wheel) as one, zipfile.ZipFile(build_package("wheel", tmp_path, tmp_path / "dist")) as other:
        assert sorted(one.namelist()) == sorted(other.namelist())
    assert re.search(r"--no-deps --no-index --no-build-isolation \.$", build, re.MULTILINE)


def test_on_pypi_each_link_of_readme_leads_to_a_file_of_the_release(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        (name,) = (n for n in packed.namelist() if n.endswith("METADATA"))
        metadata = packed.read(name).decode()
    assert f"\nVersion: {VERSION}\n" in metadata
    ours = re.compile(
        rf"https://(?:github\.com/tpudeploy/tpudeploy/blob|raw\.githubusercontent\.com/tpudeploy/tpudeploy)/v{VERSION}/"
    )
    targets = re.findall(r"\]\(([^)#]+)", metadata)
    files = [ours.sub("", target) for target in targets if ours.match(target)]
    assert len(files) > 20
    assert not [target for target in targets if not target.startswith("https://")]
    assert not [name for name in files if not (ROOT / name).exists()]
    assert f"](https://raw.githubusercontent.com/tpudeploy/tpudeploy/v{VERSION}/docs/static/apply.svg)" in metadata


@pytest.mark.parametrize("zipped", [False, True], ids=["installed", "zipped"])
def test_init_and_validate_work_from_the_wheel(wheel: Path, tmp_path: Path, zipped: bool) -> None:
    place = wheel
    if not zipped:
        place = tmp_path / "site"
        with zipfile.ZipFile(wheel) as packed:
            packed.extractall(place)
    work = tmp_path / "work"
    work.mkdir()
    for arguments in (["init"], ["validate", "gemma4-e2b-v6e1.yaml"]):
        code = f"import sys; sys.path.insert(0, {str(place)!r}); from tpudeploy.cli.main import run; run()"
        process = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            cwd=work,
            env=os.environ,
            capture_output=True,
            text=True,
            check=False,
        )
        assert process.returncode == 0, process.stderr
    profile = (work / "gemma4-e2b-v6e1.yaml").read_text(encoding="utf-8")
    shipped = (ROOT / "profiles" / "gemma4-e2b-v6e1.yaml").read_text(encoding="utf-8")
    assert profile.startswith(shipped)
    assert "  end: 24h" in profile.removeprefix(shipped)
    assert process.stdout == "gemma4-e2b-v6e1.yaml: valid\n"
