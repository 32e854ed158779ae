"""A node's disk: one folder in the place of `/`, and all that its startup script finds on PATH."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

from tpudeploy.emulator.machine import shims

OWN, SHIMS = ".emulator", ".emulator/bin"
TMPFS = ("dev/shm", "run")
SYSTEMD = "run/systemd/system"  # sd_booted(3): there exactly where systemd runs the machine
FOLDERS = ("root", "tmp", "var/log", "var/lib", "usr/bin", *TMPFS, SYSTEMD)
# What Debian has, reaches no network and starts nothing but what it is given. No interpreter but the shell.
TOOLS = """
awk basename bash base64 cat chmod chown cksum cp cut dirname echo env expr false find grep head id install kill
ln ls md5sum mkdir mkfifo mktemp mv nohup nproc od paste printenv printf pwd readlink realpath rm rmdir sed seq
sh sha256sum sort stat stdbuf tail tar tee test timeout touch tr true truncate tty uname uniq wc xargs
"""
SUDO = """#!/bin/sh
while [ $# -gt 0 ]; do
  case "$1" in
    -u|-g|-h|-p) shift 2 ;;
    --) shift; break ;;
    -*) shift ;;
    *=*) export "$1"; shift ;;
    *) break ;;
  esac
done
exec "$@"
"""

# A script of the project may do anything, and here it would do it to the machine of whoever runs the emulator.
NO_OWN_SCRIPTS = """#!/bin/sh
case "$1" in
  "$TPUDEPLOY_ROOT"/run/tpudeploy/own/*) echo "The emulator does not run ${1##*/}"; exit 0 ;;
esac
exec "$TPUDEPLOY_ROOT/usr/bin/bash" "$@"
"""

# For systems without GNU's: the limit is dropped, the command runs.
FALLBACKS = {
    "timeout": """#!/bin/sh
while :; do case "$1" in -*) shift ;; *) break ;; esac; done
shift
exec "$@"
"""
}


class Root:
    """`path` is `$TPUDEPLOY_ROOT`; `OWN` inside it is ours, not the node's."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.own = path / OWN
        self.shims = path / SHIMS
        self.script = self.own / "startup-script"
        self.exit_code = self.own / "startup-script.exit"
        self.console = self.own / "console.log"
        self.containers = self.own / "containers"

    def make(self) -> None:
        if self.path.exists() and any(self.path.iterdir()):
            raise FileExistsError(f"{self.path} is not empty: a node's root is made, and removed, whole")
        for folder in (*(self.path / name for name in FOLDERS), self.shims, self.containers):
            folder.mkdir(parents=True, exist_ok=True)
        self._link_tools()

    def empty_tmpfs(self) -> None:
        for name in TMPFS:
            shutil.rmtree(self.path / name)
            (self.path / name).mkdir()
        (self.path / SYSTEMD).mkdir(parents=True)

    def remove(self) -> None:
        shutil.rmtree(self.path)

    def add_shims(self, names: Iterable[str], port: int, key: str) -> None:
        shims.install(self.shims, names, port, key)
        self._add("sudo", SUDO)

    def refuse_own_scripts(self) -> None:
        self._add("bash", NO_OWN_SCRIPTS)

    def _link_tools(self) -> None:
        for tool in TOOLS.split():
            program = shutil.which(tool)
            if program:
                (self.path / "usr/bin" / tool).symlink_to(program)
            elif tool in FALLBACKS:
                self._add(tool, FALLBACKS[tool])

    def _add(self, name: str, text: str) -> None:
        shim = self.shims / name
        shim.write_text(text, encoding="utf-8")
        shim.chmod(0o755)

    def environment(self) -> dict[str, str]:
        """Return all variables that the startup script inherits."""
        return {
            "HOME": str(self.path / "root"),
            "LANG": "C.UTF-8",
            "PATH": f"{self.shims}:{self.path / 'usr/bin'}",
            "TMPDIR": str(self.path / "tmp"),
            "TPUDEPLOY_ROOT": str(self.path),
            "USER": "root",
        }

    def holds(self, path: Path) -> bool:
        return path.resolve().is_relative_to(self.path.resolve())

    def path_of(self, inside: str, volumes: Sequence[str]) -> Path | None:
        """Return where a container's path is on the node: in the deepest volume that holds it.

        None where no volume holds it, or one that is not the node's.
        """
        path = PurePosixPath(inside)
        pairs = (volume.partition(":") for volume in volumes)
        mounts = [(host, PurePosixPath(target.partition(":")[0])) for host, _, target in pairs]
        holding = [(host, at) for host, at in mounts if path.is_relative_to(at)]
        if not holding:
            return None
        host, at = max(holding, key=lambda mount: len(mount[1].parts))
        on_node = Path(host) / path.relative_to(at)
        return on_node if self.holds(on_node) else None
