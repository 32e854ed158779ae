"""A work bench for the startup script: its own root, and a PATH that holds shims and the few tools that it may use."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from real_time import DEADLINE

from node.answers import Answers, Call, Rule
from tpudeploy.domain.slices import BootPhase

_TOOLS = "bash base64 cat cut date find grep md5sum mkdir mv od rm sed sort stat tar tee timeout touch tr wc"
TOOLS = tuple(_TOOLS.split())
SHIMS = ("curl", "docker", "sleep", "systemctl")

METADATA = "computeMetadata/v1/"
TOKEN = '{"access_token":"ya29.bench","expires_in":3599,"token_type":"Bearer"}'
CHAT = '{"id":"chatcmpl-1","choices":[{"message":{"role":"assistant","content":"Hello."}}]}'

REPORTER = "18"  # seconds that it sleeps between two reports of progress

# A machine on which all goes well; a test puts its own rules before these.
FAIR: tuple[Rule, ...] = (
    ("sleep", REPORTER, [(0, "", "a call that nobody makes")]),  # or what reports beside the work would never rest
    ("curl", "guest-attributes/", [(200, "")]),
    ("curl", "service-accounts/default/token", [(200, TOKEN)]),
    ("curl", "service-accounts/default/email", [(200, "vm@p.iam.gserviceaccount.com")]),
    ("curl", "project/project-id", [(200, "my-project")]),
    ("curl", "/health", [(0, ""), (200, "")]),
    ("curl", "/v1/chat/completions", [(200, CHAT)]),
    ("docker", "inspect -f", [(0, "true 0\n")]),
    ("docker", "image inspect", [(1, "No such image")]),
)


@dataclass
class Bench:
    folder: Path
    rules: list[Rule] = field(default_factory=list)
    without: tuple[str, ...] = ()
    instead: tuple[str, ...] = ()  # tools that answer by rules, too
    _answers: Answers = field(init=False)

    def __post_init__(self) -> None:
        self._answers = Answers(self.folder / "bin")

    @property
    def root(self) -> Path:
        return self.folder / "root"

    def run(self, script: str) -> subprocess.CompletedProcess[str]:
        """One boot, to its end."""
        binaries = self.folder / "bin"
        binaries.mkdir(exist_ok=True)
        for tool in TOOLS:
            (binaries / tool).unlink(missing_ok=True)
            (binaries / tool).symlink_to(shutil.which(tool) or tool)
        (self.folder / "startup.sh").write_text(script)
        commands = {*SHIMS, *self.instead, "apt-get"} - set(self.without)
        with self._answers.to(commands, [*self.rules, *FAIR]):
            return subprocess.run(
                [binaries / "bash", self.folder / "startup.sh"],
                env={"PATH": str(binaries), "TPUDEPLOY_ROOT": str(self.root), "HOME": str(self.folder)},
                capture_output=True,
                text=True,
                timeout=DEADLINE / 2,  # a call that waits for another one waits longer
                check=False,
            )

    def calls(self, start: str = "") -> list[Call]:
        return [call for call in self._answers.calls if call.line.startswith(start)]

    def sleeps(self) -> list[int]:
        """The seconds of every sleep of the work, in order."""
        return [int(call.argv[1]) for call in self.calls("sleep") if call.argv[1] != REPORTER]

    def moves(self) -> list[tuple[str, str]]:
        """Every phase with its detail, in order, as the log has them."""
        log = (self.root / "var/log/tpudeploy/startup.log").read_text()
        lines = (re.match(r"\S+Z (\w+): (.*)", line) for line in log.splitlines())
        return [(line[1], line[2]) for line in lines if line is not None and line[1] in set(BootPhase)]

    def reports(self) -> list[dict[str, str]]:
        """Every report that was written, in order."""
        return [json.loads(call.stdin) for call in self.calls("curl") if call.line.endswith("/tpudeploy/report")]

    def attributes(self) -> dict[str, list[str]]:
        """Every value that a report brought which the one before it did not have, in order, by key."""
        values: dict[str, list[str]] = {}
        for report in self.reports():
            for key, value in report.items():
                if values.get(key, [None])[-1] != value:
                    values.setdefault(key, []).append(value)
        return values
