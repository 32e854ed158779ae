"""Whatever Google's libraries raise becomes one of ours, here and nowhere else.

Two trees can surface: `google.api_core` (Cloud Storage) and `googleapiclient.errors` (discovery), beside what their
transports raise (`requests`, `httplib2`, sockets) and `google.auth`. A test walks them all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager

from tpudeploy.adapters.google.codes import OF_STATUS, PASSING, Code
from tpudeploy.adapters.google.verdicts import hint_for, verdict
from tpudeploy.domain import errors
from tpudeploy.domain.deployment import Provisioning
from tpudeploy.domain.slices import Remedy

# "METHOD URL: " that Google's typed clients put before the text.
_PREFIX = re.compile(r"^[A-Z]+ https?://\S+: ")
# What Cloud Storage's client puts behind it.
_SUFFIX = re.compile(r": \('Request failed with status code', .*\)$", re.DOTALL)


class Absent(Exception):
    """A 404. Never leaves adapters/google: absent is an answer."""


class Exists(Exception):
    """A 409. Never leaves adapters/google."""


class Precondition(Exception):
    """Refused in the present state of the resource. Never leaves adapters/google."""


@contextmanager
def translated(doing: str, asked: Provisioning | None = None) -> Iterator[None]:
    """Raise our errors for Google's. `doing` completes "Could not …" in the message; `asked` is a request's model."""
    try:
        yield
    except Exception as cause:
        ours = _ours(doing, cause, asked)
        if ours is None:
            raise
        raise ours from cause


@contextmanager
def looking(doing: str) -> Iterator[None]:
    """`translated`, for calls that ask for no slice: what would refuse one only keeps us from looking here."""
    try:
        with translated(doing):
            yield
    except errors.Refused as refused:
        raise errors.Fault(f"Could not {doing}: {refused.message}", refusal=refused.refusal) from refused


def _ours(doing: str, cause: Exception, asked: Provisioning | None) -> Exception | None:
    """None for what is not Google's. Their trees are imported only here: most calls raise nothing."""
    import googleapiclient.errors
    import httplib2
    import requests.exceptions
    from google.api_core import exceptions as api
    from google.auth import exceptions as auth

    match cause:
        case googleapiclient.errors.HttpError():
            return _refused(doing, *_said(int(cause.status_code), str(cause.reason), cause.content), asked)
        case api.GoogleAPICallError():
            status = int(cause.code) if cause.code is not None else 500
            content = getattr(cause.response, "content", b"")
            text = _SUFFIX.sub("", _PREFIX.sub("", cause.message))
            return _refused(doing, *_said(status, text, content), asked)
        case auth.GoogleAuthError() if not isinstance(cause, auth.TransportError):
            return errors.Denied(f"Could not {doing}: {_first_line(cause)}", hint=hint_for("credentials"))
        case auth.TransportError() | googleapiclient.errors.Error() | api.GoogleAPIError():
            return errors.Fault(f"Could not {doing}: {_first_line(cause)}")
        case requests.exceptions.RequestException() | httplib2.HttpLib2Error() | OSError():
            return errors.Fault(f"Could not {doing}: {_first_line(cause)}")
    return None


def _said(status: int, text: str, content: bytes) -> tuple[str, Code]:
    """The body's text and canonical status, else `text` and what the HTTP status stands for."""
    of_status = code = OF_STATUS.get(status, Code.UNKNOWN)
    try:
        body = json.loads(content)["error"]
        text = str(body["message"])
        code = Code.__members__.get(body.get("status", ""), code)
        if code is Code.UNKNOWN:
            code = of_status  # a 500 may have had its effect, whatever its body does not know
    except (ValueError, KeyError, TypeError):
        text = text or f"HTTP {status}"  # a proxy's page, or no body at all
    return text, code


def _refused(doing: str, text: str, code: Code, asked: Provisioning | None) -> Exception:
    answers: dict[Code, type[Exception]] = {Code.NOT_FOUND: Absent, Code.ALREADY_EXISTS: Exists}
    if code in answers:
        return answers[code](text)
    if code in PASSING:
        return errors.Fault(f"Could not {doing}: {text}")
    if code is Code.FAILED_PRECONDITION or "not supported while in state" in text:
        return Precondition(text)
    refusal = verdict(text, code, asked)
    if refusal.remedy is Remedy.LOOK_AGAIN:
        return errors.Fault(f"Could not {doing}: {refusal.message}", refusal=refusal, retry_after=refusal.holds_seconds)
    if refusal.remedy is Remedy.STOP:
        hint = hint_for(refusal.kind, refusal.message)
        return errors.Denied(f"Could not {doing}: {refusal.message}", hint=hint, refusal=refusal)
    return errors.Refused(refusal.message, hint=hint_for(refusal.kind), refusal=refusal)


def _first_line(cause: BaseException) -> str:
    return (str(cause) or type(cause).__name__).splitlines()[0]
