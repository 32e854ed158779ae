"""Does a registry have an image? One HEAD of its manifest, as docker would ask, and nothing is pulled.

Written from the protocol; that Google's registries take an access token as a bearer's is unverified.
"""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.client import HTTPException
from typing import Any
from urllib.parse import urlencode, urlsplit

from tpudeploy.domain.facts import Unknown
from tpudeploy.domain.surroundings import Image

HUB = "registry-1.docker.io"
_GOOGLE = re.compile(r"(?:[a-z0-9-]+\.)*(?:pkg\.dev|gcr\.io)")
_REFERENCE = re.compile(r"(?P<path>.+?)(?::(?P<tag>[\w.-]+))?(?:@(?P<digest>[a-z0-9]+:[0-9a-f]+))?")
_CHALLENGE = re.compile(r'(\w+)="([^"]*)"')
_ACCEPT = ", ".join(
    f"application/vnd.{kind}+json"
    for kind in (
        "oci.image.index.v1",
        "oci.image.manifest.v1",
        "docker.distribution.manifest.list.v2",
        "docker.distribution.manifest.v2",
    )
)
_CLOSED = {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}


class Registry:
    """`base` gives the URL of a registry by its host name; `token` one for Google's own, or None."""

    def __init__(self, base: Callable[[str], str], token: Callable[[], str | None], *, timeout: float) -> None:
        self._base = base
        self._token = token
        self._timeout = timeout

    def image(self, reference: str) -> Image | Unknown:
        """Never raises but `errors.CloudError` of `token`: a registry that cannot be asked is a reason to know less.

        Docker Hub answers alike for what is private and for what is not there: to a machine without an account of
        its own it is the same.
        """
        host, repository, version = parts(reference)
        url = f"{self._base(host)}/v2/{repository}/manifests/{version}"
        is_google = _GOOGLE.fullmatch(host) is not None
        try:
            status, headers = self._head(url, self._token() if is_google else None)
            if status == HTTPStatus.UNAUTHORIZED and not is_google:
                status, headers = self._head(url, self._anonymous(headers.get("www-authenticate", "")))
        except (OSError, ValueError, HTTPException) as cause:
            return Unknown(because=f"{host} cannot be asked: {_reason(cause)}.")
        if status == HTTPStatus.OK:
            return Image(is_there=True, digest=headers.get("docker-content-digest", ""))
        if status == HTTPStatus.NOT_FOUND or (status == HTTPStatus.UNAUTHORIZED and host == HUB):
            return Image(is_there=False)
        if status in _CLOSED:
            return Unknown(because=f"{host} does not show {reference} to you; it may to the machine.")
        return Unknown(because=f"{host} answered {status}.")

    def _anonymous(self, challenge: str) -> str | None:
        """The token that whoever asks is given. Raise ValueError for an answer that holds none."""
        asked = dict(_CHALLENGE.findall(challenge))
        realm = asked.pop("realm", "")
        if urlsplit(realm).scheme not in ("http", "https"):
            return None
        with _opener(realm).open(f"{realm}?{urlencode(asked)}", timeout=self._timeout) as answer:
            tree: Mapping[str, Any] = json.loads(answer.read(1 << 20))
        if not isinstance(tree, dict):
            raise ValueError("the answer of its token service is none")  # noqa: TRY004  what a server sent is a value
        return str(tree.get("token") or tree.get("access_token") or "") or None

    def _head(self, url: str, token: str | None) -> tuple[int, Mapping[str, str]]:
        headers = {"Accept": _ACCEPT, **({"Authorization": f"Bearer {token}"} if token else {})}
        request = urllib.request.Request(url, method="HEAD", headers=headers)  # noqa: S310  the scheme is ours
        try:
            with _opener(url).open(request, timeout=self._timeout) as answer:
                return answer.status, {k.lower(): v for k, v in answer.headers.items()}
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, {k.lower(): v for k, v in refused.headers.items()}


def parts(reference: str) -> tuple[str, str, str]:
    """Host, repository and tag or digest, by docker's rules: no host is Docker Hub, no tag is `latest`."""
    found = _REFERENCE.fullmatch(reference)
    if found is None:
        return HUB, reference, "latest"
    first, _, rest = found["path"].partition("/")
    is_host = bool(rest) and (set(first) & set(".:") or first == "localhost")
    host, path = (first, rest) if is_host else (HUB, found["path"])
    if host in ("docker.io", "index.docker.io"):
        host = HUB
    if host == HUB and "/" not in path:
        path = f"library/{path}"
    return host, path, found["digest"] or found["tag"] or "latest"


class _Stay(urllib.request.HTTPRedirectHandler):
    """A manifest stands where it is asked for: a token must not follow a redirection."""

    def redirect_request(self, *_: object) -> None:
        return None


def _opener(url: str) -> urllib.request.OpenerDirector:
    return opener(url, _Stay())


def opener(url: str, *handlers: urllib.request.BaseHandler) -> urllib.request.OpenerDirector:
    """What opens it. Only the emulator is spoken to in plain HTTP, and no proxy stands between it and us."""
    direct = [urllib.request.ProxyHandler({})] if url.startswith("http://") else []
    return urllib.request.build_opener(*handlers, *direct)


def _reason(cause: BaseException) -> str:
    inner = getattr(cause, "reason", cause)
    return str(getattr(inner, "strerror", None) or inner or type(cause).__name__)
