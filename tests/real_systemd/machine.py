"""A machine whose PID 1 is this system's own systemd, in namespaces: a root that is thrown away, no network but its own.

A person's view of it: `run` a command there, change its `metadata`, read the `events` that its surroundings wrote down.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
NEEDED = ("bash", "curl", "dbus-daemon", "docker", "ip", "mount", "nsenter", "openssl", "unshare")
SYSTEMD = Path("/lib/systemd/systemd")
PATIENCE = 60.0  # seconds for the machine to come up, and for one thing to happen there
GOOGLE = ("tpu.googleapis.com", "compute.googleapis.com")
_BARE = "[Unit]\nDefaultDependencies=no\n"
# As Google's guest agent runs it: what the script starts outlives it.
STARTUP = """\
[Unit]
Requires=world.service
After=world.service dbus.socket
[Service]
Type=oneshot
KillMode=process
ExecStart=/usr/local/bin/google_metadata_script_runner startup
StandardOutput=append:/world/startup
StandardError=append:/world/startup
"""
RUNNER = """\
#!/bin/bash
set -e
script=$(mktemp -d)/startup-script
curl -sS -f -H 'Metadata-Flavor: Google' -o "$script" \\
  http://metadata.google.internal/computeMetadata/v1/instance/attributes/startup-script
chmod +x "$script"
"$script"
"""


class Unavailable(Exception):
    """Why such a machine cannot run on this system."""


@dataclass
class Machine:
    folder: Path
    init: int

    def set_metadata(self, **values: str) -> None:
        """As nodes.patch does: `tpudeploy-change` comes last, and each value changes at once."""
        for key, value in values.items():
            part = self.folder / "part"
            part.write_text(value, encoding="utf-8")
            part.replace(self.folder / "metadata" / key.replace("_", "-"))

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = ["nsenter", "--target", str(self.init), "--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup"]
        return subprocess.run([*command, *words], capture_output=True, text=True, timeout=PATIENCE, check=False)

    def run_by_hand(self) -> str:
        """What `google_metadata_script_runner startup` prints."""
        return self.run("/usr/local/bin/google_metadata_script_runner", "startup").stdout

    def kill(self, unit: str) -> None:
        result = self.run("systemctl", "kill", "--signal=KILL", "--kill-who=main", unit)
        assert result.returncode == 0, result.stderr

    def events(self, kind: str) -> list[Mapping[str, Any]]:
        lines = (self.folder / "events").read_text(encoding="utf-8").splitlines()
        return [event for event in map(json.loads, lines) if event["kind"] == kind]

    def reports(self) -> list[Mapping[str, str]]:
        return [json.loads(event["value"]) for event in self.events("attribute")]

    def docker(self) -> list[str]:
        return [f"{event['verb']} {event['name']}" for event in self.events("docker")]

    def waits_for(self, phase: str, **facts: str) -> Mapping[str, str]:
        """Its newest report, once it says so."""
        ends = time.monotonic() + PATIENCE
        while not (reports := self.reports()) or not facts.items() | {"phase": phase}.items() <= reports[-1].items():
            assert time.monotonic() < ends, f"it never said {phase}, {facts}:\n{self.story()}"
            time.sleep(0.05)
        return reports[-1]

    def waits_for_event(self, kind: str) -> Mapping[str, Any]:
        ends = time.monotonic() + PATIENCE
        while not (events := self.events(kind)):
            assert time.monotonic() < ends, f"there was no {kind}:\n{self.story()}"
            time.sleep(0.05)
        return events[0]

    def waits_until_quiet(self) -> None:
        """Until no work is under way any more: the last word of the report was written twice."""
        ends = time.monotonic() + PATIENCE
        while self.run("systemctl", "is-active", "tpudeploy-work").returncode == 0:
            assert time.monotonic() < ends, self.story()
            time.sleep(0.2)

    def story(self) -> str:
        """All that is known of it, for a test that fails."""
        files = ("console", "startup", "events", "world.log")
        return "\n".join(f"== {name}\n{_text(self.folder / name)}" for name in files)


@contextmanager
def booted(folder: Path, *, boot_seconds: float = 0.0, **metadata: str) -> Iterator[Machine]:
    """A machine that has come as far as its startup script. Raise Unavailable where this system lacks something."""
    _check()
    _furnish(folder)
    group = _control_group(folder)
    mark = Machine(folder, 0)
    mark.set_metadata(boot_seconds=f"{boot_seconds:g}", **metadata)
    namespaces = ("--mount", "--pid", "--uts", "--ipc", "--net", "--cgroup")
    join = f'echo $$ >"{group}/cgroup.procs" && exec "$@"'
    places = dict.fromkeys(str(Path(place).resolve()) for place in (HERE.parents[1], sys.prefix, sys.base_prefix))
    enter = [str(HERE / "enter.sh"), str(folder), *places]
    words = ["bash", "-c", join, "join", "unshare", *namespaces, "--fork", "--kill-child", "bash", *enter]
    with (folder / "entering").open("wb") as output, subprocess.Popen(words, stdout=output, stderr=output) as process:
        try:
            _await_world(folder, process)
            yield Machine(folder, _child(process.pid))
        finally:
            process.kill()  # and with it its child, PID 1, and with that all that runs there
            process.wait()
            _remove(group)


def _check() -> None:
    if os.geteuid() != 0:
        raise Unavailable("it takes root")
    missing = [name for name in NEEDED if shutil.which(name) is None]
    if not SYSTEMD.exists():
        missing.append("systemd")
    if missing:
        raise Unavailable(f"this system has no {', '.join(missing)}")


def _furnish(folder: Path) -> None:
    units = folder / "units"
    units.mkdir()
    (folder / "metadata").mkdir()
    (folder / "hosts").write_text(
        f"127.0.0.1 localhost metadata.google.internal {' '.join(GOOGLE)}\n", encoding="utf-8"
    )
    (folder / "runner").write_text(RUNNER, encoding="utf-8")
    (folder / "runner").chmod(0o755)
    names = ",".join(f"DNS:{name}" for name in GOOGLE)
    files = ("-keyout", str(folder / "google.key"), "-out", str(folder / "google.crt"))
    certificate = ("-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=google", "-addext")
    words = ["openssl", "req", "-x509", *certificate, f"subjectAltName={names}", *files]
    subprocess.run(words, check=True, capture_output=True, timeout=PATIENCE)
    tests = HERE.parent
    world = f"""{_BARE}
[Service]
Environment=PYTHONPATH={tests}:{tests.parent}
ExecStartPre=/bin/cp /world/runner /usr/local/bin/google_metadata_script_runner
ExecStartPre=/bin/sh -c 'cat /world/google.crt >> /etc/ssl/certs/ca-certificates.crt'
ExecStart={sys.executable} {HERE / "inside.py"} /world
StandardOutput=append:/world/world.log
StandardError=append:/world/world.log
"""
    dbus = Path("/lib/systemd/system/dbus.socket"), Path("/lib/systemd/system/dbus.service")
    for file in dbus:
        text = file.read_text(encoding="utf-8")
        (units / file.name).write_text(text.replace("[Unit]\n", _BARE, 1), encoding="utf-8")
    for name in ("basic.target", "sysinit.target", "shutdown.target"):
        (units / name).write_text(_BARE, encoding="utf-8")
    (units / "world.service").write_text(world, encoding="utf-8")
    (units / "google-startup-scripts.service").write_text(STARTUP.replace("[Unit]\n", _BARE), encoding="utf-8")
    (units / "world.target").write_text(f"{_BARE}Requires=dbus.socket world.service\n", encoding="utf-8")


def _control_group(folder: Path) -> Path:
    """A group of its own in the unified hierarchy, which the machine takes for its root."""
    lines = Path("/proc/mounts").read_text(encoding="utf-8").splitlines()
    mounted = next((line.split()[1] for line in lines if line.split()[2] == "cgroup2"), None)
    if mounted is None:
        raise Unavailable("no cgroup2 is mounted here")
    group = Path(mounted) / f"tpudeploy-test-{os.getpid()}-{folder.name}"
    try:
        group.mkdir()
    except OSError as cause:
        raise Unavailable(f"no control group can be made here: {cause}") from cause
    return group


def _await_world(folder: Path, process: subprocess.Popen[bytes]) -> None:
    ends = time.monotonic() + PATIENCE
    while '"ready"' not in _text(folder / "events"):
        if process.poll() is not None:
            raise Unavailable(f"no machine can be made here: {_text(folder / 'entering')}{_text(folder / 'console')}")
        assert time.monotonic() < ends, Machine(folder, 0).story()
        time.sleep(0.05)


def _child(pid: int) -> int:
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()[0])


def _remove(group: Path) -> None:
    ends = time.monotonic() + 10
    for path in [*sorted((p for p in group.rglob("*") if p.is_dir()), reverse=True), group]:
        while path.exists():
            with contextlib.suppress(OSError):
                path.rmdir()
            if time.monotonic() > ends:
                return
            time.sleep(0.02)


def _text(path: Path) -> str:
    return path.read_text("utf-8", "replace") if path.exists() else ""
