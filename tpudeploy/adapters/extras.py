"""Return the command that adds an extra to this installation, by the tool that made it: uv, pipx or pip.

The requirements of the extra are added, and not `tpudeploy[extra]`: which release, checkout or repository tpudeploy was
installed from does not matter then, except for `uv tool`, which makes an environment again from its sources.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from importlib.metadata import Distribution, distribution
from pathlib import Path
from urllib.parse import unquote, urlsplit

_NAME = "tpudeploy"
_EXTRA = re.compile(r"^(?P<requirement>[^;]+);.*\bextra == ['\"](?P<extra>[\w-]+)['\"]")


def install_command(extra: str, *, prefix: Path | None = None, package: Distribution | None = None) -> str:
    """Return the command, for a shell. Tests pass the environment's folder and the installed package."""
    folder = prefix or Path(sys.prefix)
    installed = package or distribution(_NAME)
    requirements = [shlex.quote(each) for each in _requirements(installed, extra)]
    together = " ".join(requirements)
    if (folder / "pipx_metadata.json").exists():
        return f"pipx inject {_NAME} {together}"
    if (folder / "uv-receipt.toml").exists():
        return f"uv tool install {' '.join(f'--with {each}' for each in requirements)} {_source(installed)}"
    if (installed.read_text("INSTALLER") or "").strip() == "uv":
        return f"uv pip install --python {shlex.quote(sys.executable)} {together}"
    return f"{shlex.quote(sys.executable)} -m pip install {together}"


def _requirements(package: Distribution, extra: str) -> list[str]:
    matches = (_EXTRA.match(each) for each in package.requires or ())
    return [m["requirement"].strip() for m in matches if m is not None and m["extra"] == extra]


def _source(package: Distribution) -> str:
    """Return where the package was installed from, as PEP 610 records it: a folder, a repository, or its name."""
    origin = json.loads(package.read_text("direct_url.json") or "{}")
    url = origin.get("url", "")
    if "vcs_info" in origin:
        revision = origin["vcs_info"].get("requested_revision")
        return shlex.quote(f"git+{url}{f'@{revision}' if revision else ''}")
    if "dir_info" in origin:
        editable = "--editable " if origin["dir_info"].get("editable") else ""
        return editable + shlex.quote(unquote(urlsplit(url).path))
    return shlex.quote(url) if url else _NAME
