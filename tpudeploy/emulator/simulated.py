"""A machine without bash or processes: its guest attributes are those of a machine that serves.

As the startup script does, it fails without its image or a secret, in the script's words. It undoes a change of its
metadata that fails, and goes back to the server that served last, which has to boot again, for as long as any boot.
"""

from __future__ import annotations

import json
import re
import shlex
import threading
from collections.abc import Mapping
from functools import lru_cache

from tpudeploy.domain.pace import LOOP_PATH
from tpudeploy.emulator.http_server import HttpRequest, HttpServer, Reply
from tpudeploy.emulator.machine import Unsupported
from tpudeploy.emulator.machine.docker import run_options
from tpudeploy.emulator.machine.docker.run_options import RunOptions
from tpudeploy.emulator.machine.docker.serve import Serve, find_serve
from tpudeploy.emulator.machine.facts import Behaviour, MachineFacts
from tpudeploy.emulator.machine.vllm import arguments, deaths
from tpudeploy.emulator.machine.vllm.closed_loop import LoopOffer, play
from tpudeploy.emulator.machine.vllm.engine import EmulatedEngine, new_engine
from tpudeploy.emulator.scriptless import END_KEY, Scriptless
from tpudeploy.emulator.stand_in import ANSWER, Streams, answer

# The phases that a startup script reports, in order, and the share of the boot at which each begins.
_PHASES = (
    ("booted", 0.0),
    ("docker", 0.1),
    ("image", 0.2),
    ("secrets", 0.3),
    ("starting", 0.4),
    ("serving", 1.0),
)
_TURNS = ("starting", "serving")  # those at which a caller has something to do
_PORT = 8000
_PROBE_MARK = "tpudeploy-probe"
_SETUP_FAILED = "a setup step exited 1"
_DISK_FULL = "no space left on device"
_UNDO_FAILED = "the engine did not come up"
_IMAGE = re.compile(r"^image=(.*)$", re.MULTILINE)
_VARIABLES = re.compile(r"^secret_variables=\((.*)\)$", re.MULTILINE)
_SECRETS = re.compile(r"^secret_resources=\((.*)\)$", re.MULTILINE)
_QUESTION_PATHS = re.compile(r"^question_paths=\((.*)\)$", re.MULTILINE)
_ASKED = re.compile(r"^asked=(.*)$", re.MULTILINE)
_DOCKER_RUN = re.compile(r"^docker_run=\(\n(.*?)^\)$", re.DOTALL | re.MULTILINE)
# Of several hosts: what the head starts in its container.
_SERVER = re.compile(r"^server=\(\n(.*?)^\)$", re.DOTALL | re.MULTILINE)


class Simulated(Scriptless):
    def __init__(self, facts: MachineFacts, behaviour: Behaviour) -> None:
        self._facts = facts
        self._behaviour = behaviour
        self._booted_at: float | None = None
        self._preempted_at: float | None = None
        self._boots = 0
        self._boot_seconds = behaviour.boot_seconds
        self._spec = self._change = self._script = ""
        self._served: tuple[str, str] | None = None  # the spec and script that served last: on the disk
        self._images: set[str] = set()  # what is pulled: on the disk
        self._missing: tuple[float, str] | None = None  # the share of the boot at which it fails, and the reason
        self._first_boot: float | None = None  # on the disk, as is when it first served
        self._first_service: float | None = None
        self._used_at = 0.0
        self._undone = self._cause = ""  # the change that was undone, and why: on the disk too
        self._server: HttpServer | None = None
        self._secrets: dict[str, str] = {}  # the values that the boot read, by variable
        self._engine: tuple[object, EmulatedEngine | None] = (None, None)  # what it is made of, engine
        self._streams = Streams(facts.clock)
        self._lock = threading.RLock()  # guest attributes and server are read at the same time

    def _report(self) -> dict[str, str | int]:
        can_report = self._behaviour.guest_attributes and self._facts.enables_guest_attributes
        if self._booted_at is None or not can_report:
            return {}
        self._take_over_change()
        phase, detail = self._phase()
        report: dict[str, str | int] = {"at": int(self._facts.clock.now()), "phase": phase, "detail": detail}
        report |= {"spec": self._spec, "change": self._change}
        if self._facts.hosts > 1:
            report["worker"] = str(self._facts.worker)
        if self._undone:
            report |= {"undone": self._undone, "cause": self._cause}
        if phase == "serving" and "~" in self._facts.metadata().get(END_KEY, ""):
            report["used"] = str(int(self._last_use()))
        if self._unended:
            report["unended"] = self._unended
        if phase == "serving" and self._first_service is not None:
            report["served"] = str(int(self._first_service))
        if self._preempted_at is not None:
            report["preempted"] = str(int(self._preempted_at))
        if phase in {"starting", "serving"}:
            begins = dict(_PHASES)["starting"] * self._boot_seconds
            report["started"] = str(int(self._booted_at + begins))
        if phase == "serving":
            report["answer"] = ANSWER
            # As in the script's record of a start that succeeded: when each phase of the server began.
            report["timeline"] = f"starting {report['started']}\nserving {int(self._booted_at + self._boot_seconds)}"
        return report

    def boot(self) -> None:
        self.power_on()

    def power_on(self) -> None:
        self._preempted_at = None
        self.reboot()
        # Of several hosts, the first one has the server.
        if self._behaviour.reachable and self._facts.worker == 0:
            port = 0 if self.address == "127.0.0.1" else _PORT
            self._server = HttpServer(port, self._answer, sleep=self._facts.clock.sleep, address=self.address)

    def reboot(self) -> None:
        self._booted_at = self._facts.clock.now()
        self._first_boot = self._booted_at if self._first_boot is None else self._first_boot
        self._boots += 1
        self._boot_seconds = self._facts.jitter.vary(self._behaviour.boot_seconds, "boot", self._boots)
        metadata = self._facts.metadata()
        self._spec, self._script = metadata.get("tpudeploy-spec", ""), metadata.get("startup-script", "")
        self._change = metadata.get("tpudeploy-change", "")
        self._gather()
        if self._change and self._change == self._undone:
            self._undo(self._cause, at=self._booted_at)  # a reboot does not repeat a change that failed

    def next_moment(self, *, turns: bool = False) -> float | None:
        """Return when the phase of the boot changes next, with `turns` to one of `_TURNS`; None where it does not."""
        if self._booted_at is None:
            return None
        now = self._facts.clock.now()
        moments = (
            self._booted_at + begins * self._boot_seconds for phase, begins in _PHASES if not turns or phase in _TURNS
        )
        return min((moment for moment in moments if moment > now), default=None)

    def _take_over_change(self) -> None:
        """Begin a change of the metadata. A watcher would do so at once; here the next look does."""
        change = self._facts.metadata().get("tpudeploy-change", "")
        with self._lock:
            if self._booted_at is not None and self._behaviour.hears_changes and change != self._change:
                self._phase()  # records what has served until now
                self._cut_streams()
                self.reboot()

    def announce_preemption(self) -> None:
        """Report, as the watcher does, that Google takes the machine back."""
        self._preempted_at = self._facts.clock.now()

    def stop(self) -> None:
        self.power_off()

    def power_off(self) -> None:
        """End the server. What is on the disk stays: the server that served last, and the change that was undone."""
        self._booted_at = None
        # The server waits for the threads of its answers, so those that are under way end first.
        self._cut_streams()
        if self._server is not None:
            self._server.close()
            self._server = None

    def _cut_streams(self) -> None:
        """End the streams under way, as the end of a server does."""
        self._streams.settle()
        self._streams.close()
        self._streams = Streams(self._facts.clock)

    def _answer(self, request: HttpRequest) -> Reply:
        self._take_over_change()
        if self._booted_at is None or self._phase()[0] != "serving":
            return Reply(http=503, body="")
        source = (self._script, self._behaviour, self._secrets)
        if self._engine[0] != source:
            engine = engine_of(self._script, self._facts.accelerator_type, self._behaviour, secrets=self._secrets)
            self._engine = (source, engine)
        # Its own requests have a mark in their URL: templates/boot/idle.sh.
        if request.method == "POST" and (not self._behaviour.access_log or _PROBE_MARK not in request.query):
            self._used_at = self._facts.clock.now()
        engine = self._engine[1]
        if engine is not None and not engine.accepts(request.path, request.headers.get("authorization", "")):
            return Reply(http=401, body={"error": "Unauthorized"})
        if request.path == LOOP_PATH and request.method == "POST":
            return self._loop(request, engine)
        pace = self._behaviour.token_seconds * (1.0 if engine is None else engine.pace)
        served = self._facts.clock.now() - self._booted_at - self._boot_seconds
        return answer(request, streams=self._streams, token_seconds=pace, engine=engine, served_seconds=served)

    def _loop(self, request: HttpRequest, engine: EmulatedEngine | None) -> Reply:
        """Answer a whole cell of load by arithmetic. It is in use until the cell ends."""
        if engine is None or engine.performance is None:
            return Reply(http=404, body={"detail": "Not Found"})
        now = self._facts.clock.now()
        loop = play(engine.performance, LoopOffer.read(json.loads(request.body)), now)
        self._used_at = now + loop["seconds"]
        return Reply(http=200, body=loop)

    def _phase(self) -> tuple[str, str]:
        """Return the phase of the boot and its detail, after going back from a change that failed."""
        with self._lock:
            phase, detail = self._outcome()
            if phase == "failed" and self._booted_at is not None:
                share = 1.0 if self._missing is None else self._missing[0]
                if not self._undo(detail, at=self._booted_at + share * self._boot_seconds):
                    return phase, detail
                phase, detail = self._outcome()
            if phase == "serving":
                self._served = (self._spec, self._script)
                if self._first_service is None and self._booted_at is not None:
                    self._first_service = self._booted_at + self._boot_seconds
            return phase, detail

    def _last_use(self) -> float:
        """Return when the server last had a request; now, while it does not serve or has one."""
        now = self._facts.clock.now()
        is_busy = self._streams.running or self._behaviour.load.get("num_requests_running", 0)
        if self._booted_at is None or self._phase()[0] != "serving" or is_busy:
            return now
        return max(self._booted_at + self._boot_seconds, self._used_at)

    def _first_times(self) -> tuple[float | None, float | None]:
        if self._booted_at is None:
            return None, None
        self._phase()  # it may serve by now
        return self._first_boot, self._first_service

    def _undo(self, cause: str, *, at: float) -> bool:
        """Boot the server that served last, from `at` on. Return False if none did, or it failed itself."""
        if not self._change or self._served is None or self._served[0] == self._spec:
            return False
        self._undone, self._cause = self._change, cause
        (self._spec, self._script), self._booted_at = self._served, at
        self._gather()
        return True

    def _gather(self) -> None:
        """Pull the image of the script and read its secrets, and note what is missing: templates/boot/gather.sh."""
        phases = dict(_PHASES)
        images, variables, resources = (_words(pattern, self._script) for pattern in (_IMAGE, _VARIABLES, _SECRETS))
        self._missing, self._secrets = None, {}
        for image in images:
            refusal = "" if image in self._images else self._facts.pull_refusal(image)
            if refusal:
                reason = f"The image cannot be pulled: Error response from daemon: {refusal}"
                self._missing = (phases["image"], reason)
                return
            self._images.add(image)
        for variable, resource in zip(variables, resources, strict=True):
            name = resource if resource.startswith("projects/") else f"projects/{self._facts.project}/{resource}"
            status, text = self._facts.secret(name)
            if status != 200:  # noqa: PLR2004 - HTTP
                self._missing = (phases["secrets"], self._refusal_of(name, status, text))
                return
            self._secrets[variable] = text

    def _refusal_of(self, secret: str, status: int, text: str) -> str:
        """Return why a secret cannot be read, in the words of templates/boot/secrets.sh."""
        match status:
            case 403:
                account = f"The VM's service account {self._facts.service_account}"
                remedy = "grant it roles/secretmanager.secretAccessor"
                return f"{account} may not read secret {secret}: {remedy}. Google says: {text}"
            case 404:
                remedy = "create it, or correct its name in the profile"
                return f"Secret {secret} does not exist: {remedy}. Google says: {text}"
            case _:
                return f"Secret {secret} cannot be read (HTTP {status}). Google says: {text}"

    def _outcome(self) -> tuple[str, str]:
        assert self._booted_at is not None
        share = 1.0
        if self._boot_seconds:
            share = (self._facts.clock.now() - self._booted_at) / self._boot_seconds
        phase = [name for name, begins in _PHASES if begins <= share][-1]
        if self._missing is not None and share >= self._missing[0]:
            return "failed", self._missing[1]
        if phase != "serving":
            return phase, ""
        cause = self._death()
        if cause:
            return "failed", cause
        if self._behaviour.absent_workers:
            return "starting", "Waiting for workers to join Ray"
        return ("starting", "") if self._behaviour.hang else (phase, "")

    def _death(self) -> str:
        """Return why the server ends, or ""."""
        if not self._facts.has_room:
            return _DISK_FULL
        is_undo = bool(self._change) and self._change == self._undone
        if is_undo and self._behaviour.undo_fails:
            return f"{self._cause} (the server before did not come back either: {_UNDO_FAILED})"
        if self._behaviour.crash in deaths.NAMES:
            return f"The container ended (exit code 1): {deaths.message(self._behaviour.crash)}"
        if self._behaviour.crash:
            return self._behaviour.crash
        container = _read_script(self._script)
        has_bad_setup = self._behaviour.setup_fails and container is not None and container[1].has_setup
        return _SETUP_FAILED if has_bad_setup else self._unanswered()

    def _unanswered(self) -> str:
        """Return why the script's own request fails, or "": vLLM attaches no route for what its model does not do."""
        paths = _words(_QUESTION_PATHS, self._script)
        if not paths:
            return ""  # of an earlier version, whose requests are not read here
        engine = engine_of(self._script, self._facts.accelerator_type, self._behaviour)
        if engine is None or any(path in engine.paths for path in paths):
            return ""
        noun = _words(_ASKED, self._script)[0]
        return f"The server is healthy, but {noun} failed (HTTP 404): Not Found"


def _words(pattern: re.Pattern[str], script: str) -> list[str]:
    """Return the words that a script assigns to a variable; none for another text than ours."""
    match = pattern.search(script)
    return [] if match is None else shlex.split(match[1])


def engine_of(
    script: str, accelerator_type: str, behaviour: Behaviour, *, secrets: Mapping[str, str] | None = None
) -> EmulatedEngine | None:
    """Return the engine that a startup script would serve; None where vLLM's own parser would refuse it."""
    container = _read_script(script)
    if container is None:
        return None
    options, serve = container
    environment = {**options.environment, **(secrets or {})}
    task = {
        "image": options.image,
        "environment": {name: value for name, value in environment.items() if value is not None},
        "accelerator_type": accelerator_type,
        "kv_blocks": behaviour.kv_blocks,
        "block_size": behaviour.block_size,
        "serves": behaviour.serves,
        "release": behaviour.release,
        "instead": behaviour.instead,
        "load": behaviour.load,
        "growth": behaviour.growth,
        "knows": behaviour.knows,
        "paces": behaviour.paces,
        **{name: getattr(behaviour, name) for name in ("paced", "acceptance", "noise", "drift")},
    }
    try:
        return new_engine(arguments.parse(serve.words), task)
    except (ValueError, arguments.VllmUsageError):
        return None


@lru_cache(maxsize=256)  # the machines of a fleet have the same script
def _read_script(script: str) -> tuple[RunOptions, Serve] | None:
    """Return the container of a startup script, by reading it alone; None where it would not serve."""
    match = _DOCKER_RUN.search(script)
    if match is None:
        return None
    try:
        options = run_options.parse(shlex.split(match[1])[2:])
    except (ValueError, run_options.DockerUsageError, Unsupported):
        return None
    server = _SERVER.search(script)
    words = shlex.split(server[1]) if server else ()
    serve = find_serve(words[words.index("vllm") :] if words else options.command)
    return None if serve is None else (options, serve)
