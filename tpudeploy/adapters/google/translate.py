"""Translation of the exceptions of Google's libraries into ours. It happens only here.

Two exception trees can surface: `google.api_core` (the typed client, Cloud Storage) and `googleapiclient.errors`
(discovery). Their transports (`requests`, `httplib2`, sockets), `google.auth`, and the typed client's parser raise
exceptions of their own. A test covers them all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from tpudeploy.adapters.google.codes import CODE_BY_REASON, CODE_BY_STATUS, TRANSIENT, Code
from tpudeploy.adapters.google.verdicts import classify, classify_request, error_text, hint_for, is_certain_refusal
from tpudeploy.domain import errors
from tpudeploy.domain.deployment import Provisioning
from tpudeploy.domain.slices import Refusal, Remedy, SliceRequest

# Google's typed clients put "METHOD URL: " before the text.
_PREFIX = re.compile(r"^[A-Z]+ https?://\S+: ")
# The Cloud Storage client appends this to the text.
_SUFFIX = re.compile(r": \('Request failed with status code', .*\)$", re.DOTALL)


class Absent(Exception):
    """A 404. It never leaves adapters/google, because absence is an answer and not an error."""


class Exists(Exception):
    """A 409. It never leaves adapters/google."""


class PreconditionFailed(Exception):
    """A refusal because of the resource's present state. It never leaves adapters/google."""


@contextmanager
def translate_errors(action: str, provisioning: Provisioning | None = None) -> Iterator[None]:
    """Raise our errors in place of Google's.

    `action` completes "Could not …" in the message. `provisioning` is the model of the request, if there is one.
    """
    try:
        yield
    except Exception as cause:
        ours = _translate(action, cause, provisioning)
        if ours is None:
            raise
        raise ours from cause


@contextmanager
def translate_read_errors(action: str) -> Iterator[None]:
    """Do what `translate_errors` does, for calls that request no slice.

    A refusal of such a call only prevents the observation, so it is raised as a fault.
    """
    try:
        with translate_errors(action):
            yield
    except errors.Refused as refused:
        raise errors.Fault(f"Could not {action}: {refused.message}", refusal=refused.refusal) from refused


def send_request(call: Any, request: SliceRequest) -> str | None:
    """Send the call that requests a slice, once, and return the name of its operation, if there is one.

    Raise as `ports.TpuCloud.request` does. A name that exists is success: names are derived, so an earlier run made
    the request.
    """
    try:
        with translate_errors(f"ask for {request.name}", request.provisioning):
            operation: dict[str, Any] = call.execute(num_retries=0)
    except Exists:
        return None
    except (Absent, PreconditionFailed) as cause:
        code = Code.NOT_FOUND if isinstance(cause, Absent) else Code.FAILED_PRECONDITION
        refusal = classify_request(str(cause), code, request.provisioning)
        raise _refusal_error(f"ask for {request.name}", refusal) from cause
    except errors.Fault as fault:
        if fault.refusal is None:
            raise
        # This is a rate limit: nothing was created, and the requests in flight can still be observed.
        raise errors.Refused(fault.refusal.message, hint=fault.hint, refusal=fault.refusal) from fault
    return operation.get("name")


def send_deletion(call: Any, name: str) -> str | None:
    """Send the call that deletes a resource, once, and return the name of its operation, if there is one.

    An absent resource is the desired result, and what becomes of one whose state refuses a deletion shows at the next
    observation. Raise `errors.Fault` or `errors.Denied`.
    """
    try:
        with translate_read_errors(f"delete {name}"):
            operation: dict[str, Any] = call.execute(num_retries=0)
    except (Absent, Exists, PreconditionFailed):
        return None
    return operation.get("name")


def send_reset(call: Any, name: str) -> None:
    """Send the call that restarts a machine, once. The next observation shows what became of one that is not there.

    Raise as `send_deletion` does.
    """
    with suppress(Absent, PreconditionFailed), translate_read_errors(f"restart {name}"):
        call.execute(num_retries=0)


def _translate(action: str, cause: Exception, provisioning: Provisioning | None) -> Exception | None:
    """Return our error for an exception of Google's libraries, or None for any other exception."""
    import googleapiclient.errors
    import httplib2

    # Most errors are replies to the discovery client, and need none of the imports below: they take 0.12 s of CPU.
    if isinstance(cause, googleapiclient.errors.HttpError):
        text, code = _read_error_body(int(cause.status_code), str(cause.reason), cause.content)
        return _error_for(action, text, code, provisioning)
    import requests.exceptions
    from google.api_core import exceptions as api
    from google.auth import exceptions as auth
    from google.protobuf import json_format

    match cause:
        case api.GoogleAPICallError():
            status = int(cause.code) if cause.code is not None else 500
            content = getattr(cause.response, "content", b"")
            text, code = _read_error_body(status, _SUFFIX.sub("", _PREFIX.sub("", cause.message)), content)
            return _error_for(action, text, code, provisioning)
        case auth.DefaultCredentialsError():
            hint = f"{hint_for('credentials')}\nTo try it without an account: tpudeploy emulator run -- COMMAND"
            return errors.Denied(f"Could not {action}: {_first_line(cause)}", hint=hint)
        case auth.GoogleAuthError() if not isinstance(cause, auth.TransportError):
            return errors.Denied(f"Could not {action}: {_first_line(cause)}", hint=hint_for("credentials"))
        case auth.TransportError() | googleapiclient.errors.Error() | api.GoogleAPIError():
            return errors.Fault(f"Could not {action}: {_first_line(cause)}")
        case json_format.Error():  # the page of a proxy, or a field that the typed client does not know
            return errors.Fault(f"Could not {action}: the reply cannot be parsed ({_first_line(cause)})")
        case requests.exceptions.RequestException() | httplib2.HttpLib2Error() | OSError():
            return errors.Fault(f"Could not {action}: {_first_line(cause)}")
    return None


def _read_error_body(status: int, text: str, content: bytes) -> tuple[str, Code]:
    """Return the text and the canonical code of an error response.

    Both come from the body where it can be parsed, else from `text` and the HTTP status. A reason in the body says more
    than either status: Compute Engine answers 503 for a zone that is full too.
    """
    status_code = code = CODE_BY_STATUS.get(status, Code.UNKNOWN)
    try:
        body = json.loads(content)["error"]
        text = error_text(body) or text
        code = Code.__members__.get(body.get("status", ""), code)
        if code is Code.UNKNOWN:
            code = status_code  # UNKNOWN in the body must not hide that a 500 may have had its effect
        reasons = (row.get("reason") for row in (*body.get("errors", ()), *body.get("details", ())))
        code = next((CODE_BY_REASON[reason] for reason in reasons if reason in CODE_BY_REASON), code)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        text = text or f"HTTP {status}"  # the body is a proxy's page, or empty
    return text, code


def _error_for(action: str, text: str, code: Code, provisioning: Provisioning | None) -> Exception:
    answers: dict[Code, type[Exception]] = {Code.NOT_FOUND: Absent, Code.ALREADY_EXISTS: Exists}
    if code in answers:
        return answers[code](text)
    if code in TRANSIENT and not is_certain_refusal(text, code, provisioning):
        return errors.Fault(f"Could not {action}: {text}")
    if code is Code.FAILED_PRECONDITION or "not supported while in state" in text:
        return PreconditionFailed(text)
    refusal = classify(text, code, provisioning)
    if refusal.remedy is Remedy.LOOK_AGAIN:
        return errors.Fault(
            f"Could not {action}: {refusal.message}", refusal=refusal, retry_after=refusal.holds_seconds
        )
    return _refusal_error(action, refusal)


def _refusal_error(action: str, refusal: Refusal) -> errors.Denied | errors.Refused:
    hint = hint_for(refusal.kind, refusal.message)
    if refusal.remedy is Remedy.STOP:
        return errors.Denied(f"Could not {action}: {refusal.message}", hint=hint, refusal=refusal)
    return errors.Refused(refusal.message, hint=hint, refusal=refusal)


def _first_line(cause: BaseException) -> str:
    return (str(cause) or type(cause).__name__).splitlines()[0]
