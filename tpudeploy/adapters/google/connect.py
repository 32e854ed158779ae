"""Credentials, endpoints, timeouts: how every Google client of ours is made, and the only place that knows a host."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any

import googleapiclient.discovery
import googleapiclient.discovery_cache
import googleapiclient.http
from google.api_core.client_options import ClientOptions
from google.auth.credentials import AnonymousCredentials, Credentials

from tpudeploy.adapters.google.translate import translated
from tpudeploy.adapters.google.transport import OnceHttp
from tpudeploy.domain import errors
from tpudeploy.version import VERSION

if TYPE_CHECKING:
    import requests
    from google.cloud.storage import Client

EMULATOR_VARIABLE = "TPU_EMULATOR_HOST"
STORAGE_VARIABLE = "STORAGE_EMULATOR_HOST"  # Google's own; with the scheme, or as we take it too, without
# An endpoint of our own stands for the whole base URL, of which the documents of these services have a path.
_PATHS = {"compute": "/compute/v1/"}
# The library completes a document while it builds a client of it.
_BUILDING = threading.Lock()
_SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)


class Connection:
    """Everything needed to call Google. httplib2 is not thread-safe: one `Http` per thread."""

    def __init__(self, *, emulator_host: str | None, timeout: float, storage_host: str | None = None) -> None:
        self.emulator_host = emulator_host
        self.storage_host = storage_host or emulator_host
        self.timeout = timeout
        self._local = threading.local()
        self._services: dict[tuple[str, str], Any] = {}
        self._collections: dict[tuple[str, ...], Any] = {}
        self._opened: list[Callable[[], None]] = []

    @classmethod
    def from_environment(cls, *, timeout: float) -> Connection:
        return cls(
            emulator_host=os.environ.get(EMULATOR_VARIABLE) or None,
            storage_host=os.environ.get(STORAGE_VARIABLE) or None,
            timeout=timeout,
        )

    def close(self) -> None:
        """End every connection that any thread opened."""
        while self._opened:
            self._opened.pop()()

    def project(self) -> str | None:
        """The credentials' own project. Raise `errors.Denied` where there are no credentials."""
        return "emulated" if self.emulator_host else self._adc[1]

    def identity(self) -> str:
        """Whom Google takes us for. Raise `errors.Denied` where credentials are missing, or are good no longer."""
        if self.emulator_host:
            return "nobody (the emulator asks for no credentials)"
        from google.auth.transport.requests import Request

        credentials = self._adc[0]
        with translated("use the Google credentials"):
            credentials.refresh(partial(Request(), timeout=self.timeout))  # type: ignore[no-untyped-call]  # google-auth annotates no method
        named = getattr(credentials, "service_account_email", "") or getattr(credentials, "account", "")
        return str(named or "a person, by application-default credentials")

    def token(self) -> str | None:
        """An access token for a registry of Google's; None where there is nobody to be. Raise as `identity` does."""
        if self.emulator_host:
            return None
        self.identity()
        token: str | None = self._adc[0].token
        return token

    def registry(self, host: str) -> str:
        """The URL of a container registry, which the emulator stands in for too."""
        return f"{self._endpoint}/registry/{host}" if self._endpoint else f"https://{host}"

    @property
    def hub(self) -> str:
        """The URL of Hugging Face's hub, which the emulator stands in for too."""
        return f"{self._endpoint}/hub" if self._endpoint else "https://huggingface.co"

    def collection(self, name: str, version: str, *path: str) -> Any:
        """A collection of a service, e.g. `"tpu", "v2alpha1", "projects", "locations"`.

        Kept: discovery makes the classes of each level anew at every call, which costs more than the call.
        """
        key = (name, version, *path)
        with _BUILDING:
            if key not in self._collections:
                found = self._service(name, version)
                for part in path:
                    found = getattr(found, part)()
                self._collections[key] = found
            return self._collections[key]

    def _service(self, name: str, version: str) -> Any:
        """A discovery client, from the document in the library: nothing is downloaded.

        One for all threads, for it takes time to make: what is not thread-safe of it is its `Http`, and each request
        takes that of the thread which makes it.
        """
        if (name, version) not in self._services:
            endpoint = f"{self._endpoint}{_PATHS.get(name, '')}" if self._endpoint else None
            self._services[name, version] = googleapiclient.discovery.build_from_document(
                _document(name, version),
                http=self._http(),
                requestBuilder=self._request,
                client_options=ClientOptions(api_endpoint=endpoint) if endpoint else None,
            )
        return self._services[name, version]

    def _request(self, _: Any, *arguments: Any, **options: Any) -> googleapiclient.http.HttpRequest:
        return googleapiclient.http.HttpRequest(self._http(), *arguments, **options)

    def storage(self) -> Client:
        """Cloud Storage's client. Raise `errors.ConfigError` where its library is not installed."""
        if not hasattr(self._local, "storage"):
            # Else each client looks up its bucket in a thread of its own, for traces that nobody collects.
            os.environ.setdefault("DISABLE_GCS_PYTHON_CLIENT_OTEL_BUCKET_METADATA", "true")
            try:
                from google.cloud.storage import Client
            except ImportError as cause:
                raise errors.ConfigError(
                    "A gs:// backend needs Google's library for Cloud Storage, which is not installed.",
                    hint="Run: pip install 'tpudeploy[gcs]'",
                ) from cause

            host = self.storage_host
            endpoint = None if host is None else host if "://" in host else f"http://{host}"
            client = Client(
                project=None,
                credentials=self._adc[0] if endpoint is None else AnonymousCredentials(),  # type: ignore[no-untyped-call]  # google-auth annotates no constructor
                client_options=ClientOptions(api_endpoint=endpoint) if endpoint else None,
            )
            # The session is only reachable this way, and the replies' headers only through it.
            client._http.hooks["response"].append(self._note_date)  # noqa: SLF001 - see above
            self._local.storage = client
            self._opened.append(client.close)
        kept: Client = self._local.storage
        return kept

    def storage_time(self) -> float | None:
        """Return the moment of Cloud Storage's last reply in this thread by its own clock, in whole seconds.

        Return None where no reply said so.
        """
        return getattr(self._local, "storage_time", None)

    def _note_date(self, response: requests.Response, *_: object, **__: object) -> None:
        try:
            moment = parsedate_to_datetime(response.headers["Date"]).timestamp()
        except (KeyError, ValueError, TypeError):
            self._local.storage_time = None
        else:
            self._local.storage_time = moment

    @property
    def _endpoint(self) -> str | None:
        return f"http://{self.emulator_host}" if self.emulator_host else None

    @property
    def _credentials(self) -> Credentials:
        return AnonymousCredentials() if self.emulator_host else self._adc[0]  # type: ignore[no-untyped-call]  # google-auth annotates no constructor

    @property
    def _adc(self) -> tuple[Credentials, str | None]:
        if isinstance(self._found, errors.CloudError):
            raise self._found
        return self._found

    @cached_property
    def _found(self) -> tuple[Credentials, str | None] | errors.CloudError:
        """Looked for once, found or not: on some networks the search for Google's own machines takes its time."""
        import google.auth

        try:
            with translated("find Google credentials"):
                credentials, project = google.auth.default(scopes=_SCOPES)
        except errors.CloudError as missing:
            return missing
        return credentials, project

    def _http(self) -> Any:
        """The one of the thread that asks."""
        if not hasattr(self._local, "http"):
            self._local.http = self._new_http()
            self._opened.append(self._local.http.close)
        return self._local.http

    def _new_http(self) -> Any:
        if self.emulator_host:
            plain = OnceHttp(timeout=self.timeout, proxy_info=None)
            return googleapiclient.http.set_user_agent(plain, f"tpudeploy/{VERSION}")
        import google_auth_httplib2

        plain = googleapiclient.http.set_user_agent(OnceHttp(timeout=self.timeout), f"tpudeploy/{VERSION}")
        return google_auth_httplib2.AuthorizedHttp(self._credentials, http=plain)


@cache
def _document(name: str, version: str) -> Any:
    """Read once: Compute Engine's has five million characters."""
    text = googleapiclient.discovery_cache.get_static_doc(name, version)
    if text is None:
        raise FileNotFoundError(f"google-api-python-client has no document of {name} {version}")
    return json.loads(text)
