"""Whatever Google's libraries can raise becomes one of ours: both trees are walked, so a new class fails here."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Iterator

import google.auth.exceptions
import googleapiclient.errors
import httplib2
import pytest
import requests
from google.api_core import exceptions as api
from google.protobuf import json_format

from tpudeploy.adapters.google.translate import Absent, Exists, PreconditionFailed, translate_errors
from tpudeploy.domain import errors

OURS = (errors.CloudError, Absent, Exists, PreconditionFailed)


def _name(cls: type[BaseException]) -> str:
    return cls.__qualname__


def _tree(cls: type[BaseException]) -> Iterator[type[BaseException]]:
    yield cls
    for child in cls.__subclasses__():
        yield from _tree(child)


def _blank(cls: type[BaseException]) -> BaseException:
    """An instance, whatever its constructor asks for: what matters is which handler takes its class."""
    blank = cls.__new__(cls)
    blank.args = ("words of the library",)
    match blank:
        case api.RetryError():
            blank.__init__("words of the library", None)  # type: ignore[misc]  # a fresh object, made whole
        case api.GoogleAPICallError():
            blank.__init__("words of the library")  # type: ignore[misc]  # a fresh object, made whole
    return blank


TRANSPORT: tuple[type[BaseException], ...] = (
    *_tree(requests.exceptions.RequestException),
    *_tree(httplib2.HttpLib2Error),
    *_tree(ssl.SSLError),
    ConnectionResetError,
    ConnectionRefusedError,
    BrokenPipeError,
    TimeoutError,
    socket.gaierror,
    socket.herror,
)
# A response is needed to make one; _from_http has its own test below.
DISCOVERY = tuple(c for c in _tree(googleapiclient.errors.Error) if not issubclass(c, googleapiclient.errors.HttpError))
TYPED = (*_tree(api.GoogleAPIError), *_tree(json_format.Error))
AUTH = tuple(_tree(google.auth.exceptions.GoogleAuthError))
EVERY = tuple(dict.fromkeys((*TRANSPORT, *DISCOVERY, *TYPED, *AUTH)))


@pytest.mark.parametrize("cls", EVERY, ids=_name)
def test_no_class_of_googles_reaches_the_engine(cls: type[BaseException]) -> None:
    with pytest.raises(OURS) as caught, translate_errors("look at it"):
        raise _blank(cls)
    assert caught.value.__cause__ is not None


@pytest.mark.parametrize("cls", TRANSPORT, ids=_name)
def test_a_connection_that_breaks_is_a_fault_the_effect_is_unknown(cls: type[BaseException]) -> None:
    with pytest.raises(errors.Fault), translate_errors("look at it"):
        raise _blank(cls)


@pytest.mark.parametrize(
    ("cls", "ours"),
    [
        (api.NotFound, Absent),
        (api.AlreadyExists, Exists),
        (api.Conflict, Exists),
        (api.Forbidden, errors.Denied),
        (api.Unauthorized, errors.Denied),
        (api.TooManyRequests, errors.Refused),
        (api.BadRequest, errors.Denied),
        (api.InternalServerError, errors.Fault),
        (api.ServiceUnavailable, errors.Fault),
        (api.DeadlineExceeded, errors.Fault),
        (api.GatewayTimeout, errors.Fault),
        (api.RetryError, errors.Fault),
    ],
)
def test_the_typed_clients_errors_mean_what_they_say(cls: type[api.GoogleAPIError], ours: type[Exception]) -> None:
    with pytest.raises(ours), translate_errors("look at it"):
        raise _blank(cls)


@pytest.mark.parametrize(
    ("http", "status", "ours"),
    [
        (404, "NOT_FOUND", Absent),
        (409, "ALREADY_EXISTS", Exists),
        (400, "FAILED_PRECONDITION", PreconditionFailed),
        (403, "PERMISSION_DENIED", errors.Denied),
        (401, "UNAUTHENTICATED", errors.Denied),
        (429, "RESOURCE_EXHAUSTED", errors.Refused),
        (500, "INTERNAL", errors.Fault),
        (500, "UNKNOWN", errors.Fault),
        (503, "UNAVAILABLE", errors.Fault),
        (504, "DEADLINE_EXCEEDED", errors.Fault),
        (499, "CANCELLED", errors.Fault),
        (409, "ABORTED", errors.Fault),
    ],
)
def test_both_clients_errors_are_told_by_the_bodys_own_status_and_text(
    http: int, status: str, ours: type[Exception]
) -> None:
    body = json.dumps({"error": {"code": http, "status": status, "message": "words of the service"}}).encode()
    for raised in (_http(http, body), _typed(http, body)):
        with pytest.raises(ours, match="words of the service"), translate_errors("look at it"):
            raise raised


FULL = "The zone 'projects/p/zones/us-east5-a' does not have enough resources available to fulfill the request."


@pytest.mark.parametrize(
    ("http", "reason", "text", "ours"),
    [
        pytest.param(503, "backendError", FULL, errors.Refused, id="the text names the capacity"),
        pytest.param(503, "insufficientCapacity", "Try later.", errors.Refused, id="the reason names the capacity"),
        pytest.param(503, "ZONE_RESOURCE_POOL_EXHAUSTED", "Try later.", errors.Refused, id="as an operation does"),
        pytest.param(503, "backendError", "Try later.", errors.Fault, id="the service does not answer"),
        pytest.param(500, "backendError", "Internal error encountered.", errors.Fault, id="it may have had its effect"),
        pytest.param(503, "backendError", "PERMISSION_DENIED by a replica", errors.Fault, id="no place is refused"),
        pytest.param(403, "quotaExceeded", "No more of that.", errors.Refused, id="a quota is no missing role"),
        pytest.param(403, "rateLimitExceeded", "Rate Limit Exceeded", errors.Fault, id="nor is a rate limit"),
        pytest.param(
            403,
            "rateLimitExceeded",
            "Quota exceeded for quota metric 'Queries' and limit 'Queries per minute' of service"
            " 'compute.googleapis.com' for consumer 'project_number:7'.",
            errors.Fault,
            id="of reads either",
        ),
        pytest.param(403, "forbidden", "No.", errors.Denied, id="a missing role"),
    ],
)
def test_an_error_of_compute_engine_means_what_its_reason_or_text_says_and_not_its_status(
    http: int, reason: str, text: str, ours: type[Exception]
) -> None:
    row = {"message": text, "domain": "global", "reason": reason}
    body = json.dumps({"error": {"code": http, "message": text, "errors": [row]}}).encode()
    with pytest.raises(ours, match=text[:10]), translate_errors("ask"):
        raise _http(http, body)


@pytest.mark.parametrize("content", [b"", b"<html>a proxy's page</html>", b"[]", b'{"error": "text"}', b"\xff\xfe"])
@pytest.mark.parametrize(("http", "ours"), [(502, errors.Fault), (403, errors.Denied), (404, Absent)])
def test_a_body_that_is_not_googles_is_told_by_its_http_status(
    content: bytes, http: int, ours: type[Exception]
) -> None:
    with pytest.raises(ours), translate_errors("look at it"):
        raise _http(http, content)


def test_a_rate_limit_says_how_long_to_wait() -> None:
    text = "Quota exceeded: Maximum number of CreateNode requests per minute"
    body = {"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": text}}
    with pytest.raises(errors.Fault) as caught, translate_errors("ask"):
        raise _http(429, json.dumps(body).encode())
    assert caught.value.retry_after == 60


def test_missing_credentials_come_with_the_way_to_log_in() -> None:
    with pytest.raises(errors.Denied) as caught, translate_errors("find Google credentials"):
        raise google.auth.exceptions.DefaultCredentialsError("none found")  # type: ignore[no-untyped-call]  # google-auth annotates no constructor
    assert "gcloud auth application-default login" in caught.value.hint
    assert "tpudeploy emulator run -- COMMAND" in caught.value.hint, "a newcomer may have no account"


def _typed(status: int, content: bytes) -> api.GoogleAPICallError:
    """As the typed client's REST transport makes it: by HTTP status alone, whatever the body says."""
    response = requests.Response()
    response.status_code = status
    response._content = content
    response.request = requests.Request("GET", "http://127.0.0.1/v2/it").prepare()
    error: api.GoogleAPICallError = api.from_http_response(response)  # type: ignore[no-untyped-call]  # google-api-core annotates little
    return error


def _http(status: int, content: bytes) -> googleapiclient.errors.HttpError:
    return googleapiclient.errors.HttpError(httplib2.Response({"status": status}), content)
