"""The hint that an extra is missing has a command that works for the tool that installed tpudeploy."""

from __future__ import annotations

import json
import sys
from importlib.metadata import PathDistribution
from pathlib import Path
from typing import Any

import pytest

from tpudeploy.adapters.extras import install_command, upgrade_command

METADATA = """\
Metadata-Version: 2.4
Name: tpudeploy
Requires-Dist: requests>=2.32
Provides-Extra: gcs
Requires-Dist: google-cloud-storage>=3.0; extra == 'gcs'
Provides-Extra: bench
Requires-Dist: httptools>=0.6.4; extra == 'bench'
Requires-Dist: uvloop>=0.21; extra == 'bench'
"""
CHECKOUT = {"url": "file:///home/me/my%20tools", "dir_info": {}}
EDITABLE = {"url": "file:///home/me/tools", "dir_info": {"editable": True}}
REPOSITORY = {"url": "https://example.org/t.git", "vcs_info": {"vcs": "git", "requested_revision": "v1"}}
WHEEL = {"url": "file:///tmp/t.whl", "archive_info": {}}
UV_TOOL = "uv-receipt.toml"


@pytest.mark.parametrize(
    ("origin", "source"),
    [
        (None, "'tpudeploy[bench,mcp]'"),
        (CHECKOUT, "'/home/me/my tools[bench,mcp]'"),
        (EDITABLE, "--editable '/home/me/tools[bench,mcp]'"),
        (REPOSITORY, "'tpudeploy[bench,mcp] @ git+https://example.org/t.git@v1'"),
    ],
)
def test_what_uv_installed_before_stays(origin: Any, source: str, tmp_path: Path) -> None:
    receipt = """\
[tool]
requirements = [
    { name = "tpudeploy", extras = ["bench", "mcp"] },
    { name = "plotext", specifier = ">=5" },
    { name = "google-cloud-storage", specifier = ">=3.0" },
]
entrypoints = []
"""
    (tmp_path / UV_TOOL).write_text(receipt, encoding="utf-8")
    command = install_command("gcs", prefix=tmp_path, package=_installed(tmp_path, "uv", origin))
    assert command == f"uv tool install --with 'plotext>=5' --with 'google-cloud-storage>=3.0' {source}"


@pytest.mark.parametrize(
    ("marker", "installer", "origin", "expected"),
    [
        ("pipx_metadata.json", "pip", CHECKOUT, "pipx inject tpudeploy 'google-cloud-storage>=3.0'"),
        (UV_TOOL, "uv", None, "uv tool install --with 'google-cloud-storage>=3.0' tpudeploy"),
        (UV_TOOL, "uv", CHECKOUT, "uv tool install --with 'google-cloud-storage>=3.0' '/home/me/my tools'"),
        (UV_TOOL, "uv", EDITABLE, "uv tool install --with 'google-cloud-storage>=3.0' --editable /home/me/tools"),
        (
            UV_TOOL,
            "uv",
            REPOSITORY,
            "uv tool install --with 'google-cloud-storage>=3.0' git+https://example.org/t.git@v1",
        ),
        (UV_TOOL, "uv", WHEEL, "uv tool install --with 'google-cloud-storage>=3.0' file:///tmp/t.whl"),
        (None, "uv", CHECKOUT, f"uv pip install --python {sys.executable} 'google-cloud-storage>=3.0'"),
        (None, "pip", None, f"{sys.executable} -m pip install 'google-cloud-storage>=3.0'"),
    ],
)
def test_the_command_is_that_of_the_tool_that_installed_it(
    marker: str | None, installer: str, origin: Any, expected: str, tmp_path: Path
) -> None:
    if marker is not None:
        (tmp_path / marker).touch()
    assert install_command("gcs", prefix=tmp_path, package=_installed(tmp_path, installer, origin)) == expected


@pytest.mark.parametrize(
    ("marker", "installer", "origin", "expected"),
    [
        ("pipx_metadata.json", "pip", REPOSITORY, "pipx upgrade tpudeploy"),
        (UV_TOOL, "uv", None, "uv tool upgrade tpudeploy"),
        (None, "uv", None, f"uv pip install --python {sys.executable} --upgrade tpudeploy"),
        (None, "pip", None, f"{sys.executable} -m pip install --upgrade tpudeploy"),
        (None, "pip", REPOSITORY, f"{sys.executable} -m pip install --upgrade git+https://example.org/t.git@v1"),
    ],
)
def test_an_upgrade_is_made_by_the_tool_that_installed_it_and_from_the_same_source(
    marker: str | None, installer: str, origin: Any, expected: str, tmp_path: Path
) -> None:
    if marker is not None:
        (tmp_path / marker).touch()
    assert upgrade_command(prefix=tmp_path, package=_installed(tmp_path, installer, origin)) == expected


@pytest.mark.parametrize(
    ("marker", "directory", "expected"),
    [
        ("pipx_metadata.json", {}, "git -C '{}' pull && pipx upgrade tpudeploy"),
        (UV_TOOL, {}, "git -C '{}' pull && uv tool upgrade tpudeploy"),
        (UV_TOOL, {"editable": True}, "git -C '{}' pull"),
    ],
)
def test_a_checkout_is_updated_first_and_one_that_is_gone_is_not_named(
    marker: str, directory: Any, expected: str, tmp_path: Path
) -> None:
    (tmp_path / marker).touch()
    checkout = tmp_path / "my tools"
    package = _installed(tmp_path, "pip", {"url": checkout.as_uri(), "dir_info": directory})
    assert upgrade_command(prefix=tmp_path, package=package) == ""
    checkout.mkdir()
    assert upgrade_command(prefix=tmp_path, package=package) == expected.format(checkout)


def test_an_extra_of_several_packages_adds_all_of_them(tmp_path: Path) -> None:
    package = _installed(tmp_path, "pip", None)
    assert install_command("bench", prefix=tmp_path, package=package).endswith("'httptools>=0.6.4' 'uvloop>=0.21'")


def _installed(folder: Path, installer: str, origin: Any) -> PathDistribution:
    files = folder / "tpudeploy-1.dist-info"
    files.mkdir()
    (files / "METADATA").write_text(METADATA, encoding="utf-8")
    (files / "INSTALLER").write_text(f"{installer}\n", encoding="utf-8")
    if origin is not None:
        (files / "direct_url.json").write_text(json.dumps(origin), encoding="utf-8")
    return PathDistribution(files)
