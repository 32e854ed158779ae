"""Credentials, endpoints and timeouts of every Google client. Only this module knows a host name."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from email.utils import parsedate_to_datetime
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import googleapiclient.discovery
import googleapiclient.discovery_cache
import googleapiclient.errors
import googleapiclient.http
from google.api_core.client_options import ClientOptions
from google.auth.credentials import AnonymousCredentials, Credentials

from tpudeploy.adapters.google.translate import translate_errors
from tpudeploy.adapters.google.transport import LEAST_SECONDS, MOST_BYTES, ClientPool, OnceHttp, OnExchange, call_check
from tpudeploy.adapters.http_budget import Budget, is_public, is_remote, within
from tpudeploy.domain import errors
from tpudeploy.version import VERSION

if TYPE_CHECKING:
    import requests
    from google.cloud.storage import Client
    from google.cloud.tpu_v2 import TpuClient

EMULATOR_VARIABLE = "TPU_EMULATOR_HOST"
STORAGE_VARIABLE = "STORAGE_EMULATOR_HOST"  # Google's own variable, which has a scheme; we accept it without one too
# An endpoint of our own replaces the whole base URL, which has a path in the documents of these services.
_PATHS = {"compute": "/compute/v1/"}
# The library modifies a document while it builds a client from it.
_BUILDING = threading.Lock()
_RECORDED = frozenset(
    f"{api}.googleapis.com"
    for api in ("tpu", "compute", "serviceusage", "cloudresourcemanager", "cloudbilling", "logging")
)
# A state of 200 MB is downloaded within minutes by a line of 10 Mbit/s.
_STATE_SECONDS, _STATE_BYTES = 600.0, 1 << 30
# A metadata server answers within milliseconds. Google's library asks for it three times.
_METADATA_SECONDS, _SEARCH_SECONDS = 5.0, 20.0
_PAGE_TOKENS = ("pageToken", "nextPageToken")
_SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)


class CloudConnection:
    """Holds all that is needed to call Google. No client is thread-safe, so each call borrows one of a pool."""

    def __init__(
        self,
        *,
        emulator_host: str | None,
        timeout: float,
        storage_host: str | None = None,
        is_trusted: Callable[[], bool] = lambda: True,
    ) -> None:
        self.emulator_host = emulator_host
        self.storage_host = storage_host or emulator_host
        self.timeout = timeout
        self._is_trusted = is_trusted
        self._local = threading.local()
        self._collections: dict[tuple[str, ...], _Collection] = {}
        self._https, self._typed, self._storages = (
            ClientPool(self._new_http),
            ClientPool(self._new_typed),
            ClientPool(self._new_storage),
        )
        # A rehearsal records what is said to Google's APIs. It is set before the first call.
        self.on_exchange: OnExchange | None = None

    @classmethod
    def from_environment(cls, *, timeout: float, is_trusted: Callable[[], bool] = lambda: True) -> CloudConnection:
        return cls(
            emulator_host=os.environ.get(EMULATOR_VARIABLE) or None,
            storage_host=os.environ.get(STORAGE_VARIABLE) or None,
            timeout=timeout,
            is_trusted=is_trusted,
        )

    def close(self) -> None:
        """Close every connection that any thread opened."""
        for pool in (self._https, self._typed, self._storages):
            pool.close()

    def project(self) -> str | None:
        """Return the project of the credentials. Raise `errors.Denied` where there are no credentials."""
        return "emulated" if self.emulator_host else self._adc[1]

    def identity(self) -> str:
        """Return the account of the credentials. Raise `errors.Denied` where they are missing or no longer valid."""
        if self.emulator_host:
            return "no account (the emulator needs no credentials)"
        from google.auth.transport.requests import Request

        credentials = self._adc[0]
        with translate_errors("use the Google credentials"), self._login_session() as session:
            credentials.refresh(partial(Request(session), timeout=self.timeout))  # type: ignore[no-untyped-call]  # google-auth annotates no method
        account = getattr(credentials, "service_account_email", "") or getattr(credentials, "account", "")
        return str(account or "a user, by application-default credentials")

    def token(self) -> str | None:
        """Return an access token for a registry of Google's, or None for the emulator. Raise as `identity` does."""
        if self.emulator_host:
            return None
        self.identity()
        token: str | None = self._adc[0].token
        return token

    def registry(self, host: str) -> str:
        """Return the URL of a container registry, or of the emulator's."""
        return f"{self._endpoint}/registry/{host}" if self._endpoint else f"https://{host}"

    def may_be_registry(self, number: str) -> bool:
        """Return whether a registry may be at this IP address, which a profile names.

        For an untrusted profile it is a public one, so that a stranger cannot make this machine send requests inside
        its own network. The emulator's address is the operator's and is not checked.
        """
        return is_remote(number) if self._is_trusted() else is_public(number)

    @property
    def hub(self) -> str:
        """The URL of the Hugging Face hub, or of the emulator's."""
        return f"{self._endpoint}/hub" if self._endpoint else "https://huggingface.co"

    def collection(self, name: str, version: str, *path: str) -> Any:
        """Return a collection of a service, e.g. `"tpu", "v2alpha1", "projects", "locations"`."""
        key = (name, version, *path)
        with _BUILDING:
            if key not in self._collections:
                self._collections[key] = _Collection(partial(self._method, name, version, path))
            return self._collections[key]

    def _method(self, name: str, version: str, path: tuple[str, ...], method: str) -> Any:
        """Return a method of a collection, from the document in the library. Nothing is downloaded.

        All threads share it, because building it takes time. Raise AttributeError if the document has no such method.
        """
        endpoint = f"{self._endpoint}{_PATHS.get(name, '')}" if self._endpoint else None
        with _BUILDING:
            node = googleapiclient.discovery.build_from_document(
                _document_of_one(name, version, path, method),
                http=self._https,
                requestBuilder=self._request,
                client_options=ClientOptions(api_endpoint=endpoint) if endpoint else None,
            )
            for part in path:
                node = getattr(node, part)()
            return getattr(node, method)

    def _request(self, http: Any, postproc: Any, *arguments: Any, **options: Any) -> googleapiclient.http.HttpRequest:
        return googleapiclient.http.HttpRequest(http, partial(_object_of, postproc), *arguments, **options)

    def typed_tpu(self) -> AbstractContextManager[TpuClient]:
        """Lend Google's typed client of the general Cloud TPU API (v2), by REST.

        Its import costs half as much as a plan, so adapters/google/typed_reads.py alone uses it. Its methods send a
        request once, and take a timeout.
        """
        return self._typed.lend()

    def _new_typed(self) -> TpuClient:
        from google.api_core.gapic_v1.client_info import ClientInfo
        from google.cloud.tpu_v2 import TpuClient

        client = TpuClient(
            transport="rest",
            credentials=self._credentials,
            client_options=ClientOptions(api_endpoint=self._endpoint) if self._endpoint else None,
            client_info=ClientInfo(user_agent=f"tpudeploy/{VERSION}"),  # type: ignore[no-untyped-call]  # google-api-core annotates no constructor
        )
        # The client offers no public access to its session. With an `auth`, the session reads no .netrc either.
        session: Any = client.transport._session  # type: ignore[attr-defined]  # noqa: SLF001 - see above
        session.auth = call_check
        session.hooks["response"].append(self._note_response)
        self._limit(session, Budget(seconds=self.timeout, size=MOST_BYTES, least_seconds=LEAST_SECONDS))
        client.close = client.transport.close  # type: ignore[attr-defined]  # what a pool calls
        return client

    def storage(self) -> AbstractContextManager[Client]:
        """Lend a Cloud Storage client. Raise `errors.ConfigError` where its library is not installed."""
        return self._storages.lend()

    def _new_storage(self) -> Client:
        # Without this, each client looks up its bucket in a separate thread, for traces that are never collected.
        os.environ.setdefault("DISABLE_GCS_PYTHON_CLIENT_OTEL_BUCKET_METADATA", "true")
        try:
            from google.cloud.storage import Client
        except ImportError as cause:
            from tpudeploy.adapters.extras import install_command

            raise errors.ConfigError(
                "A gs:// backend needs Google's library for Cloud Storage, which is not installed.",
                hint=f"Run: {install_command('gcs')}",
            ) from cause

        endpoint = self.storage_host
        if endpoint is not None and "://" not in endpoint:
            endpoint = f"http://{endpoint}"
        client = Client(
            project=None,
            credentials=self._adc[0] if endpoint is None else AnonymousCredentials(),  # type: ignore[no-untyped-call]  # google-auth annotates no constructor
            client_options=ClientOptions(api_endpoint=endpoint) if endpoint else None,
        )
        # The client offers no public access to its session, and the headers of replies are only visible there.
        session: Any = client._http  # noqa: SLF001 - see above
        session.hooks["response"].append(self._note_date)
        seconds = max(_STATE_SECONDS, self.timeout)
        self._limit(session, Budget(seconds=seconds, size=_STATE_BYTES, least_seconds=seconds))
        return client

    def _limit(self, session: Any, budget: Budget) -> None:
        """Bound the replies to a session of google-auth, and those of the token server to the session that it has."""
        from tpudeploy.adapters.requests_budget import limit

        limit(session, budget)
        if session._auth_request_session is not None:  # noqa: SLF001 - google-auth offers no access to it
            limit(session._auth_request_session, _login_budget(self.timeout))  # noqa: SLF001 - as above

    @contextmanager
    def _login_session(self, seconds: float | None = None) -> Iterator[requests.Session]:
        """Yield a session for a token server, bounded as every other one."""
        import requests

        from tpudeploy.adapters.requests_budget import limit

        with requests.Session() as session:
            limit(session, _login_budget(self.timeout if seconds is None else seconds))
            yield session

    def storage_time(self) -> float | None:
        """Return the time of Cloud Storage's last reply to this thread, by the service's clock, in whole seconds.

        Return None where no reply had a date.
        """
        return getattr(self._local, "storage_time", None)

    def _note_date(self, response: requests.Response, *_: object, **__: object) -> None:
        try:
            moment = parsedate_to_datetime(response.headers["Date"]).timestamp()
        except (KeyError, ValueError, TypeError):
            self._local.storage_time = None
        else:
            self._local.storage_time = moment

    def _note_response(self, response: requests.Response, *_: object, **__: object) -> None:
        request = response.request
        self._note_exchange(
            request.method or "GET", request.url or "", request.body, response.status_code, response.content
        )

    def _note_exchange(self, method: str, url: str, body: Any, status: int, content: bytes) -> None:
        """Pass on what was said to an API. What a login says to a server of tokens has another host."""
        if self.on_exchange is not None and (self.emulator_host or urlsplit(url).hostname in _RECORDED):
            self.on_exchange(method, url, body, status, content)

    @property
    def _endpoint(self) -> str | None:
        return f"http://{self.emulator_host}" if self.emulator_host else None

    @property
    def _credentials(self) -> Credentials:
        return AnonymousCredentials() if self.emulator_host else self._adc[0]  # type: ignore[no-untyped-call]  # google-auth annotates no constructor

    @property
    def _adc(self) -> tuple[Credentials, str | None]:
        if isinstance(self._adc_or_error, errors.CloudError):
            raise self._adc_or_error
        return self._adc_or_error

    @cached_property
    def _adc_or_error(self) -> tuple[Credentials, str | None] | errors.CloudError:
        """Search once, whether or not it succeeds: on some networks the search for a metadata server is slow."""
        import google.auth
        from google.auth.transport.requests import Request

        try:
            with (
                translate_errors("find Google credentials"),
                within(_SEARCH_SECONDS),
                self._login_session(min(self.timeout, _METADATA_SECONDS)) as session,
            ):
                credentials, project = google.auth.default(scopes=_SCOPES, request=Request(session))
        except errors.CloudError as error:
            return error
        return credentials, project

    def _new_http(self) -> Any:
        if self.emulator_host:
            plain = OnceHttp(timeout=self.timeout, proxy_info=None, on_exchange=self._note_exchange)
            return googleapiclient.http.set_user_agent(plain, f"tpudeploy/{VERSION}")
        import google_auth_httplib2

        once = OnceHttp(timeout=self.timeout, on_exchange=self._note_exchange)
        plain = googleapiclient.http.set_user_agent(once, f"tpudeploy/{VERSION}")
        return google_auth_httplib2.AuthorizedHttp(self._credentials, http=plain)


def _login_budget(timeout: float) -> Budget:
    return Budget(seconds=timeout, size=1 << 20)


def _object_of(postproc: Callable[[Any, Any], Any], response: Any, content: Any) -> Any:
    """Return the body as the library parses it. Raise its error, and no other, for one that is no JSON object."""
    try:
        body = postproc(response, content)
    except (ValueError, RecursionError) as cause:
        raise googleapiclient.errors.Error("the reply cannot be parsed") from cause
    if not isinstance(body, dict):
        raise googleapiclient.errors.Error("the reply is not an object")
    return body


class _Collection:
    """A collection of a service, which builds each method at its first call.

    The library builds every method of a collection, with a text about its bodies: that takes longer than a request.
    """

    def __init__(self, build: Callable[[str], Any]) -> None:
        self._build = build

    def __getattr__(self, name: str) -> Any:
        method = self._build(name)
        setattr(self, name, method)  # Python no longer calls this function for it
        return method


def _document_of_one(name: str, version: str, path: tuple[str, ...], method: str) -> Any:
    """Return a service's document with one method, and the one for its next page.

    Of the bodies it has what the library needs, the tokens of pages. Raise AttributeError if there is no such method.
    """
    document = _document(name, version)
    collection = document
    for part in path:
        collection = collection["resources"][part]
    key = method.removesuffix("_next")
    if key not in collection["methods"]:
        raise AttributeError(f"{name} {version} has no method {'.'.join((*path, method))}")
    description = collection["methods"][key]
    bodies = {description[part]["$ref"] for part in ("request", "response") if part in description}
    smaller = {"methods": {key: description}}
    for part in reversed(path):
        smaller = {"resources": {part: smaller}}
    schemas = {body: _without_fields(document["schemas"][body]) for body in bodies}
    return {**document, "schemas": schemas, "methods": {}, **smaller}


def _without_fields(schema: Any) -> Any:
    properties = schema.get("properties", {})
    return {**schema, "properties": {key: properties[key] for key in _PAGE_TOKENS if key in properties}}


@cache
def _document(name: str, version: str) -> Any:
    """Return a service's document, parsed once: that of Compute Engine has five million characters."""
    text = googleapiclient.discovery_cache.get_static_doc(name, version)
    if text is None:
        raise FileNotFoundError(f"google-api-python-client has no document of {name} {version}")
    return json.loads(text)
