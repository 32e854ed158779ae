"""Deliver a notice to a URL, with a signature, or to a command, on its standard input."""

from __future__ import annotations

import hashlib
import hmac
import os
import shlex
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tpudeploy.adapters.child import child
from tpudeploy.adapters.http_budget import Budget, Unanswered, fetch
from tpudeploy.config.rules.notify import is_url
from tpudeploy.features.notify.notice import Notice
from tpudeploy.version import VERSION

SIGNATURE = "Tpudeploy-Signature"
EVENT_ID = "Tpudeploy-Event-Id"
KEY = "TPUDEPLOY_NOTIFY_KEY"
_SIZE = 64 << 10  # bytes of a response that is read and ignored
_LATER = frozenset({408, 425, 429})  # statuses by which a receiver asks for another try; so do those from 500 on
_DONE = range(200, 300)
_FAULTS = 500


class NotDelivered(Exception):
    """A notice did not arrive. `is_fault`: it may a moment later. The message completes "TARGET "."""

    def __init__(self, why: str, *, is_fault: bool = False) -> None:
        super().__init__(why)
        self.is_fault = is_fault


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipient:
    """A URL or a command. `key` returns what signs, and raises `NotDelivered` without one."""

    text: str
    key: Callable[[], bytes]

    @property
    def digest(self) -> str:
        """Return what the outbox knows it by."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]

    @property
    def label(self) -> str:
        """Return its host or its program: the rest of a URL, or an argument, may be a secret."""
        if is_url(self.text):
            scheme, _, rest = self.text.partition("://")
            return f"{scheme}://{rest.partition('/')[0].partition('?')[0]}"
        return f"`{shlex.split(self.text)[0]}`"


def deliver(target: Recipient, notice: Notice, *, now: float, folder: Path, seconds: float) -> None:
    """Send a notice within `seconds`. Raise `NotDelivered`."""
    if is_url(target.text):
        _post(target, notice, now, seconds)
    else:
        _run(target, notice, folder, seconds)


def signature(key: bytes, at: float, body: bytes) -> str:
    """Return the value of the header: the time of sending, and the HMAC of that time and the body."""
    digest = hmac.new(key, b"%d." % int(at) + body, hashlib.sha256).hexdigest()
    return f"t={int(at)},v1={digest}"


def _post(target: Recipient, notice: Notice, now: float, seconds: float) -> None:
    body = notice.body()
    headers = {
        "Content-Type": "application/json",
        EVENT_ID: notice.id,
        SIGNATURE: signature(target.key(), now, body),
    }
    meter = Budget(seconds=seconds, size=_SIZE, least_seconds=min(1.0, seconds)).begin()
    try:
        response = fetch(target.text, meter, method="POST", headers=headers, body=body)
    except Unanswered as cause:
        # One that used up its time, or sends without end, would do so again.
        raise NotDelivered(f"did not answer: {cause}", is_fault=not meter.is_used_up) from cause
    if response.status not in _DONE:
        is_fault = response.status in _LATER or response.status >= _FAULTS
        raise NotDelivered(response.outcome, is_fault=is_fault)


def _run(target: Recipient, notice: Notice, folder: Path, seconds: float) -> None:
    environment = {name: value for name, value in os.environ.items() if name != KEY}
    environment["TPUDEPLOY_VERSION"] = VERSION
    quiet = subprocess.DEVNULL
    try:
        with child(
            shlex.split(target.text), cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=quiet, stderr=quiet
        ) as process:
            process.communicate(notice.body(), timeout=seconds)
    except subprocess.TimeoutExpired as cause:
        raise NotDelivered(f"did not end within {seconds:g} s") from cause
    except OSError as cause:
        raise NotDelivered(f"cannot be run: {cause.strerror or cause}") from cause
    if process.returncode:
        raise NotDelivered(f"ended with {process.returncode}")
