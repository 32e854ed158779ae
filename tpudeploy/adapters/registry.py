"""Container registries: one HEAD request for a manifest, as docker makes it, shows whether an image exists.

It is written from the protocol. That Google's registries accept an access token as a bearer token is unverified.
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
from tpudeploy.domain.project_facts import Image

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
    """Reads container registries.

    `base` returns the URL of a registry for its host name. `token` returns a token for Google's registries, or None.
    """

    def __init__(self, base: Callable[[str], str], token: Callable[[], str | None], *, timeout: float) -> None:
        self._base = base
        self._token = token
        self._timeout = timeout

    def image(self, reference: str) -> Image | Unknown:
        """Return whether the image exists, or `Unknown` with the reason. Raises only `errors.CloudError` of `token`.

        Docker Hub gives the same answer for private images and for absent ones. To a machine without an account,
        both are absent.
        """
        host, repository, version = parts(reference)
        url = f"{self._base(host)}/v2/{repository}/manifests/{version}"
        is_google = _GOOGLE.fullmatch(host) is not None
        try:
            status, headers = self._head(url, self._token() if is_google else None)
            if status == HTTPStatus.UNAUTHORIZED and not is_google:
                status, headers = self._head(url, self._anonymous_token(headers.get("www-authenticate", "")))
        except (OSError, ValueError, HTTPException) as cause:
            return Unknown(because=f"{host} cannot be asked: {_reason(cause)}.")
        if status == HTTPStatus.OK:
            return Image(is_there=True, digest=headers.get("docker-content-digest", ""))
        if status == HTTPStatus.NOT_FOUND or (status == HTTPStatus.UNAUTHORIZED and host == HUB):
            return Image(is_there=False)
        if status in _CLOSED:
            return Unknown(because=f"{host} does not show {reference} to you, but it may show it to the machine.")
        return Unknown(because=f"{host} answered {status}.")

    def _anonymous_token(self, challenge: str) -> str | None:
        """Return the token that the registry gives to anonymous callers. Raise ValueError for a malformed answer."""
        parameters = dict(_CHALLENGE.findall(challenge))
        realm = parameters.pop("realm", "")
        if urlsplit(realm).scheme not in ("http", "https"):
            return None
        with _opener(realm).open(f"{realm}?{urlencode(parameters)}", timeout=self._timeout) as answer:
            tree: Mapping[str, Any] = json.loads(answer.read(1 << 20))
        if not isinstance(tree, dict):
            raise ValueError("its token service sent a malformed answer")  # noqa: TRY004  what a server sent is a value
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
    """Return the host, the repository and the tag or digest, by docker's rules.

    The default host is Docker Hub, and the default tag is `latest`.
    """
    match = _REFERENCE.fullmatch(reference)
    if match is None:
        return HUB, reference, "latest"
    first, _, rest = match["path"].partition("/")
    is_host = bool(rest) and (set(first) & set(".:") or first == "localhost")
    host, path = (first, rest) if is_host else (HUB, match["path"])
    if host in ("docker.io", "index.docker.io"):
        host = HUB
    if host == HUB and "/" not in path:
        path = f"library/{path}"
    return host, path, match["digest"] or match["tag"] or "latest"


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirects, because a token must not be sent to another host."""

    def redirect_request(self, *_: object) -> None:
        return None


def _opener(url: str) -> urllib.request.OpenerDirector:
    return opener(url, _NoRedirects())


def opener(url: str, *handlers: urllib.request.BaseHandler) -> urllib.request.OpenerDirector:
    """Return an opener for the URL. Plain HTTP is used only for the emulator, which no proxy may come between."""
    direct = [urllib.request.ProxyHandler({})] if url.startswith("http://") else []
    return urllib.request.build_opener(*handlers, *direct)


def _reason(cause: BaseException) -> str:
    inner = getattr(cause, "reason", cause)
    return str(getattr(inner, "strerror", None) or inner or type(cause).__name__)
