"""The machine of a router without bash or processes: it sends real requests on to the replicas of its list.

It stands in for the startup script and for the router's program: it reads what the script assigns, and refuses a text
that it does not understand. As a real router does, it reads a new list late.
"""

from __future__ import annotations

import re
import shlex
import threading
from collections.abc import Mapping, Sequence
from hashlib import sha256

from tpudeploy.emulator.http_server import HttpRequest, HttpServer, Reply
from tpudeploy.emulator.machine.facts import Behaviour, MachineFacts
from tpudeploy.emulator.routing import LISTS, send_on, servers_of
from tpudeploy.emulator.scriptless import Scriptless
from tpudeploy.emulator.stand_in import ANSWER

_ASSIGNED = re.compile(r"^(spec|port|list_path|proof)=(.+)$", re.MULTILINE)
_QUESTIONS = re.compile(r"^question_paths=\((.*)\)\nquestions=\((.*)\)$", re.MULTILINE)
_SECRETS = re.compile(r"^secret_resources=\((.*)\)$", re.MULTILINE)
_LIST_KEY, _CHANGE_KEY = "tpudeploy-replicas", "tpudeploy-change"
_LIST_OF_SMG = "workers.json"
# Run with smg 1.13.0: paths of vLLM that it does not pass on.
_UNKNOWN_TO_SMG = ("/score", "/v1/score", "/classify", "/pooling", "/v2/rerank")
_BOOT_SECONDS = 60.0  # boot, and the download of the program
_LOAD_SECONDS = 5.0  # from a change of the metadata to a router that has read its list


class SimulatedRouter(Scriptless):
    """See `simulated.Simulated`: a machine of the same form."""

    def __init__(self, facts: MachineFacts, behaviour: Behaviour) -> None:
        self._facts = facts
        self._behaviour = behaviour
        self._booted_at: float | None = None
        self._boot_seconds = _BOOT_SECONDS
        self._boots = self._sent = 0
        self._settings: Mapping[str, str] = {}
        self._resources: list[str] = []
        self._questions: tuple[Sequence[str], ...] = ((), ())  # their paths and bodies
        self._change = ""
        self._seen: tuple[str, float] = ("", 0.0)  # the list of the metadata, and when it was noticed
        self._loaded = ""  # the list that requests are sent by
        self._has_completed = False
        self._first_boot: float | None = None  # on the disk, as is when it first served
        self._first_service: float | None = None
        self._used_at = 0.0
        self._server: HttpServer | None = None
        self._lock = threading.RLock()

    def boot(self) -> None:
        self.power_on()

    def power_on(self) -> None:
        self.reboot()
        if self._behaviour.reachable and "port" in self._settings:
            port = 0 if self.address == "127.0.0.1" else int(self._settings["port"])
            self._server = HttpServer(port, self._answer, sleep=self._facts.clock.sleep, address=self.address)

    def reboot(self) -> None:
        metadata = self._facts.metadata()
        script = metadata.get("startup-script", "")
        self._booted_at, self._boots = self._facts.clock.now(), self._boots + 1
        self._first_boot = self._booted_at if self._first_boot is None else self._first_boot
        self._used_at = self._booted_at
        self._boot_seconds = self._facts.jitter.vary(_BOOT_SECONDS, "boot", self._boots)
        self._settings = {name: shlex.split(value)[0] for name, value in _ASSIGNED.findall(script)}
        secrets = _SECRETS.search(script)
        self._resources = [] if secrets is None else shlex.split(secrets[1])
        questions = _QUESTIONS.search(script)
        self._questions = ((), ()) if questions is None else tuple(map(shlex.split, questions.groups()))
        self._change = metadata.get(_CHANGE_KEY, "")
        self._seen, self._loaded, self._has_completed = ("", 0.0), "", False
        if self._settings.get("list_path") not in LISTS:
            self._facts.note_unsupported("a startup script of an ordinary machine that is not a router's")

    def stop(self) -> None:
        self.power_off()

    def power_off(self) -> None:
        self._booted_at = None
        if self._server is not None:
            self._server.close()
            self._server = None

    def announce_preemption(self) -> None:
        """Do nothing: the script of a router does not look for a notice."""

    def next_moment(self, *, turns: bool = False) -> float | None:  # noqa: ARG002 - each of its moments matters
        """Return when the router is installed, or has read the list that was noticed; None where nothing is due."""
        if self._booted_at is None:
            return None
        now = self._facts.clock.now()
        moments = (self._booted_at + self._boot_seconds, self._seen[1] + _LOAD_SECONDS)
        return min((moment for moment in moments if moment > now), default=None)

    def _report(self) -> dict[str, str | int]:
        can_report = self._behaviour.guest_attributes and self._facts.enables_guest_attributes
        if self._booted_at is None or not can_report:
            return {}
        with self._lock:
            self._follow()
            phase, detail = self._phase()
            report: dict[str, str | int] = {"at": int(self._facts.clock.now()), "phase": phase, "detail": detail}
            report |= {"spec": self._settings.get("spec", ""), "change": self._change}
            if self._loaded:
                report["loaded"] = sha256(self._loaded.encode()).hexdigest()[:16]
            if phase == "serving":
                report["answer"] = ANSWER
            if self._unended:
                report["unended"] = self._unended
            return report

    def _first_times(self) -> tuple[float | None, float | None]:
        return (None, None) if self._booted_at is None else (self._first_boot, self._first_service)

    def _last_use(self) -> float:
        """Return when a replica last answered through it, as templates/boot/router.sh asks once a minute."""
        with self._lock:
            self._follow()
            request = HttpRequest(method="GET", target="/v1/models", headers={}, body=b"")
            if self._loaded and self._send_on(request).http < 500:  # noqa: PLR2004 - HTTP
                self._used_at = self._facts.clock.now()
            return self._used_at

    def _phase(self) -> tuple[str, str]:
        if not self._is_installed():
            return "image", "Installing the router"
        for resource in self._resources:
            status, text = self._facts.secret(f"projects/{self._facts.project}/{resource}")
            if status != 200:  # noqa: PLR2004 - HTTP
                return "failed", f"Secret {resource} cannot be read: {text}"
        if not self._has_completed:
            self._has_completed = any(map(self._is_answered, *self._questions))
        if self._has_completed:
            self._first_service = self._facts.clock.now() if self._first_service is None else self._first_service
            return "serving", f"Healthy, and {self._settings['proof']}"
        return "starting", "No replica has answered through the router yet"

    def _is_answered(self, path: str, question: str) -> bool:
        request = HttpRequest(method="POST", target=path, headers=self._own_headers(), body=question.encode())
        return self._send_on(request).http == 200  # noqa: PLR2004 - HTTP

    def _own_headers(self) -> Mapping[str, str]:
        headers = {"content-type": "application/json"}
        for resource in self._resources:
            headers["authorization"] = f"Bearer {self._facts.secret(f'projects/{self._facts.project}/{resource}')[1]}"
        return headers

    def _is_installed(self) -> bool:
        return self._booted_at is not None and self._facts.clock.now() - self._booted_at >= self._boot_seconds

    def _follow(self) -> None:
        """Notice another list, and load it some seconds later. Another change begins the work again."""
        if not self._is_installed() or not self._behaviour.hears_changes:
            return
        metadata, now = self._facts.metadata(), self._facts.clock.now()
        if metadata.get(_CHANGE_KEY, "") != self._change:
            self.reboot()
            return
        text = metadata.get(_LIST_KEY, "")
        if text != self._seen[0]:
            self._seen = (text, now)
        if text != self._loaded and now - self._seen[1] >= _LOAD_SECONDS:
            self._loaded = text

    def _answer(self, request: HttpRequest) -> Reply:
        with self._lock:
            if self._booted_at is None:
                return Reply(http=0, body="", cut="reset")
            self._follow()
            if not self._is_installed():
                return Reply(http=0, body="", cut="reset")
        return self._send_on(request)

    def _send_on(self, request: HttpRequest) -> Reply:
        self._sent += 1
        if self._settings["list_path"] == _LIST_OF_SMG and request.path in _UNKNOWN_TO_SMG:
            return Reply(http=404, body={"error": {"message": f"Invalid URL ({request.method} {request.path})"}})
        return send_on(request, servers_of(self._settings["list_path"], self._loaded), first=self._sent)
