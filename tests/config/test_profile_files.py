"""Profiles on disk: whatever stands at a path is read within bounds, or refused in words."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from config.sources import SMALL

from tpudeploy.adapters.files import FileReader
from tpudeploy.config.parse import parse
from tpudeploy.config.profile import Profile
from tpudeploy.config.reader import MAX_BYTES, Unreadable
from tpudeploy.domain.errors import ProfileInvalid, ProfileNotFound


def load(path: Path) -> Profile:
    return parse(str(path), FileReader(), environment={})


def test_a_profile_is_read_with_what_it_extends_beside_it(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "base.yaml").write_text("replicas: 4\n")
    top = tmp_path / "sub" / "top.yaml"
    top.write_text(SMALL + "extends: ../base.yaml\n")
    profile = load(top)
    assert profile.replicas == 4
    assert profile.origins["replicas"].file == str(tmp_path / "base.yaml")


def test_a_missing_profile_is_not_found_and_its_neighbour_suggested(tmp_path: Path) -> None:
    (tmp_path / "prod.yaml").write_text(SMALL)
    with pytest.raises(ProfileNotFound) as missing:
        load(tmp_path / "prdo.yaml")
    assert "prod.yaml" in missing.value.hint


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(ProfileNotFound) as missing:
        load(tmp_path / "nowhere" / "prod.yaml")
    assert "nowhere" in missing.value.hint


def test_a_missing_base_is_said_where_it_is_named(tmp_path: Path) -> None:
    top = tmp_path / "top.yaml"
    (tmp_path / "base.yaml").write_text("replicas: 4\n")
    top.write_text(SMALL + "extends: bsae.yaml\n")
    with pytest.raises(ProfileInvalid) as invalid:
        load(top)
    (diagnostic,) = invalid.value.diagnostics
    assert (diagnostic.code, diagnostic.location.line if diagnostic.location else 0) == ("TPU1101", 6)
    assert "base.yaml" in diagnostic.hint


def test_extends_in_a_circle_is_found_on_disk_too(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(SMALL + "extends: ./b.yaml\n")
    (tmp_path / "b.yaml").write_text("extends: ../" + tmp_path.name + "/a.yaml\nreplicas: 1\n")
    with pytest.raises(ProfileInvalid) as invalid:
        load(tmp_path / "a.yaml")
    assert [d.code for d in invalid.value.diagnostics] == ["TPU1102"]


def test_a_directory_is_no_profile(tmp_path: Path) -> None:
    with pytest.raises(ProfileInvalid) as invalid:
        load(tmp_path)
    assert [d.code for d in invalid.value.diagnostics] == ["TPU1010"]


def test_a_fifo_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(Unreadable, match="is not a regular file"):
        FileReader().read(str(tmp_path / "fifo"))


def test_a_huge_file_is_refused_and_not_read_whole(tmp_path: Path) -> None:
    huge = tmp_path / "huge.yaml"
    with huge.open("wb") as file:
        file.truncate(10 * 1024 * 1024)
    assert len(FileReader().read(str(huge))) == MAX_BYTES + 1
    with pytest.raises(ProfileInvalid) as invalid:
        load(huge)
    assert [d.code for d in invalid.value.diagnostics] == ["TPU1011"]


def test_a_path_that_is_no_name_of_a_file_is_refused(tmp_path: Path) -> None:
    for path in ("a\0b", str(tmp_path / ("x" * 300))):
        with pytest.raises(ProfileInvalid) as invalid:
            parse(path, FileReader(), environment={})
        assert [d.code for d in invalid.value.diagnostics] == ["TPU1010"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_refused(tmp_path: Path) -> None:
    locked = tmp_path / "locked.yaml"
    locked.write_text(SMALL)
    locked.chmod(0)
    with pytest.raises(ProfileInvalid) as invalid:
        load(locked)
    assert [d.code for d in invalid.value.diagnostics] == ["TPU1010"]


def test_reading_a_profile_loads_no_library_of_googles_and_no_templates(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(SMALL)
    code = (
        "import sys\n"
        "from tpudeploy.adapters.files import FileReader\n"
        "from tpudeploy.config.parse import parse\n"
        "parse(sys.argv[1], FileReader(), environment={})\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "p.yaml")], capture_output=True, text=True, check=True
    )
    loaded = set(ran.stdout.split())
    assert "yaml" in loaded
    assert not loaded & {
        "google",
        "googleapiclient",
        "httplib2",
        "jinja2",
        "requests",
        "tenacity",
    }
