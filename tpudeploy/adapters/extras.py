"""Return the command that adds an extra to this installation, or upgrades it, by the tool that made it: uv, pipx, pip.

The requirements of the extra are added, and not `tpudeploy[extra]`: which release, checkout or repository tpudeploy was
installed from does not matter then, except for `uv tool`, which makes an environment again from its sources.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
import tomllib
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

_NAME = "tpudeploy"
_RECEIPT = "uv-receipt.toml"
_EXTRA = re.compile(r"^(?P<requirement>[^;]+);.*\bextra == ['\"](?P<extra>[\w-]+)['\"]")


def install_command(extra: str, *, prefix: Path | None = None, package: Distribution | None = None) -> str:
    """Return the command, for a shell. Tests pass the environment's folder and the installed package."""
    folder = prefix or Path(sys.prefix)
    installed = package or distribution(_NAME)
    requirements = [shlex.quote(each) for each in _requirements(installed, extra)]
    together = " ".join(requirements)
    if (folder / "pipx_metadata.json").exists():
        return f"pipx inject {_NAME} {together}"
    if (folder / _RECEIPT).exists():
        extras, others = _receipt(folder / _RECEIPT)
        new = [*others, *(each for each in requirements if each not in others)]
        return f"uv tool install {' '.join(f'--with {each}' for each in new)} {_source(installed, extras)}"
    if (installed.read_text("INSTALLER") or "").strip() == "uv":
        return f"uv pip install --python {shlex.quote(sys.executable)} {together}"
    return f"{shlex.quote(sys.executable)} -m pip install {together}"


def upgrade_command(*, prefix: Path | None = None, package: Distribution | None = None) -> str:
    """Return the command that installs the latest version, for a shell.

    It is "" for what is run from its sources, and where the folder that it was installed from is gone, as in an image.
    """
    folder = prefix or Path(sys.prefix)
    try:
        installed = package or distribution(_NAME)
    except PackageNotFoundError:  # it is run from its sources
        return ""
    checkout = _checkout(installed)
    if checkout and not Path(checkout).is_dir():
        return ""
    pull = f"git -C {shlex.quote(checkout)} pull" if checkout else ""
    if pull and _origin(installed)["dir_info"].get("editable"):
        return pull
    if (folder / "pipx_metadata.json").exists():
        install = f"pipx upgrade {_NAME}"
    elif (folder / _RECEIPT).exists():
        install = f"uv tool upgrade {_NAME}"
    elif (installed.read_text("INSTALLER") or "").strip() == "uv":
        install = f"uv pip install --python {shlex.quote(sys.executable)} --upgrade {_source(installed)}"
    else:
        install = f"{shlex.quote(sys.executable)} -m pip install --upgrade {_source(installed)}"
    return f"{pull} && {install}" if pull else install


def _requirements(package: Distribution, extra: str) -> list[str]:
    matches = (_EXTRA.match(each) for each in package.requires or ())
    return [m["requirement"].strip() for m in matches if m is not None and m["extra"] == extra]


def _receipt(file: Path) -> tuple[str, list[str]]:
    """Return the extras of a tool and the packages beside it, as uv's receipt has them.

    `uv tool install` makes the environment again, from what its command line names and nothing else.
    """
    try:
        rows = tomllib.loads(file.read_text(encoding="utf-8")).get("tool", {}).get("requirements", [])
    except (OSError, ValueError):
        rows = []
    extras, others = "", []
    for row in rows:
        own = f"[{','.join(row['extras'])}]" if row.get("extras") else ""
        if row.get("name") == _NAME:
            extras = own
        else:
            others.append(shlex.quote(f"{row['name']}{own}{row.get('specifier', '')}"))
    return extras, others


def _source(package: Distribution, extras: str = "") -> str:
    """Return where the package was installed from, as PEP 610 records it: a folder, a repository, or its name."""
    origin = _origin(package)
    url = origin.get("url", "")
    if "vcs_info" in origin:
        revision = origin["vcs_info"].get("requested_revision")
        url = f"git+{url}{f'@{revision}' if revision else ''}"
    elif "dir_info" in origin:
        editable = "--editable " if origin["dir_info"].get("editable") else ""
        return editable + shlex.quote(f"{_checkout(package)}{extras}")
    if not url:
        return shlex.quote(f"{_NAME}{extras}")
    return shlex.quote(f"{_NAME}{extras} @ {url}" if extras else url)


def _checkout(package: Distribution) -> str:
    """Return the folder that the package was installed from, or ""."""
    origin = _origin(package)
    return unquote(urlsplit(origin["url"]).path) if "dir_info" in origin else ""


def _origin(package: Distribution) -> dict[str, Any]:
    origin: dict[str, Any] = json.loads(package.read_text("direct_url.json") or "{}")
    return origin
