"""Container registries: one HEAD request for a manifest, as docker makes it, shows whether an image exists.

It is written from the protocol. That Google's registries accept an access token as a bearer token is unverified.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode, urlsplit

from tpudeploy.adapters.http_budget import Budget, BudgetMeter, HttpResponse, Unanswered, fetch, is_public, is_remote
from tpudeploy.domain.facts import Unknown
from tpudeploy.domain.project_facts import Image
from tpudeploy.domain.strict_json import parse

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
_MOST_BYTES = 1 << 20
NAME_SECONDS = 5.0  # for the look-up of a name; without an answer, the run continues unpinned
# The hosts of token services that are not the registry's own, as each registry's challenge names it (WWW-Authenticate
# of https://HOST/v2/). A challenge is a text of whoever answers, so it may name no other host.
_TOKEN_HOSTS = {
    HUB: "auth.docker.io",  # docs.docker.com/reference/api/registry/auth
    "registry.gitlab.com": "gitlab.com",  # docs.gitlab.com/administration/packages/container_registry
}


class Registry:
    """Reads container registries.

    `base` returns the URL of a registry for its host name. `token` returns a token for Google's registries, or None.
    `allow` returns whether an IP address may be asked.
    """

    def __init__(
        self,
        base: Callable[[str], str],
        token: Callable[[], str | None],
        *,
        timeout: float,
        allow: Callable[[str], bool] = is_remote,
    ) -> None:
        self._base = base
        self._token = token
        self._timeout = timeout
        self._allow = allow

    def image(self, reference: str) -> Image | Unknown:
        """Return whether the image exists, or `Unknown` with the reason. Raises only `errors.CloudError` of `token`.

        Docker Hub gives the same answer for private images and for absent ones. To a machine without an account,
        both are absent.
        """
        host, repository, version = parts(reference)
        base = self._base(host)
        url = f"{base}/v2/{repository}/manifests/{version}"
        is_google = _GOOGLE.fullmatch(host) is not None
        token = self._token() if is_google else None
        meter = Budget(seconds=self._timeout, size=_MOST_BYTES).begin()  # one for all of the exchange
        try:
            reply = self._head(url, token, meter)
            if reply.status == HTTPStatus.UNAUTHORIZED and not is_google:
                challenge = reply.headers.get("www-authenticate", "")
                reply = self._head(url, self._anonymous_token(challenge, base, host, meter), meter)
        except (Unanswered, ValueError) as cause:
            return Unknown(because=f"{host} cannot be asked: {cause}.")
        status = reply.status
        if status == HTTPStatus.OK:
            return Image(exists=True, digest=reply.headers.get("docker-content-digest", ""))
        if status == HTTPStatus.NOT_FOUND or (status == HTTPStatus.UNAUTHORIZED and host == HUB):
            return Image(exists=False)
        if status in _CLOSED:
            return Unknown(because=f"{host} does not show {reference} to you, but it may show it to the machine.")
        return Unknown(because=f"{host} {reply.outcome}.")

    def _anonymous_token(self, challenge: str, base: str, host: str, meter: BudgetMeter) -> str | None:
        """Return the token that the registry gives to anonymous callers.

        Raise `Unanswered`, or ValueError for a malformed answer and for a token service that is not this registry's.
        """
        parameters = dict(_CHALLENGE.findall(challenge))
        realm = parameters.pop("realm", "")
        if urlsplit(realm).scheme not in ("http", "https"):
            return None
        if not is_of_registry(realm, base, host):
            raise ValueError(
                f"it names {urlsplit(realm).netloc or realm} for its tokens, which is not a host of its own"
            )
        reply = fetch(
            f"{realm}?{urlencode(parameters)}", meter, allow=self._allow if realm.startswith(f"{base}/") else is_public
        )
        tree: Mapping[str, Any] = parse(reply.body)
        if not isinstance(tree, dict):
            raise ValueError("its token service sent a malformed answer")  # noqa: TRY004  what a server sent is a value
        return str(tree.get("token") or tree.get("access_token") or "") or None

    def _head(self, url: str, token: str | None, meter: BudgetMeter) -> HttpResponse:
        """Ask for a manifest. A redirect is not followed, because a token must not be sent to another host."""
        headers = {"Accept": _ACCEPT, **({"Authorization": f"Bearer {token}"} if token else {})}
        return fetch(url, meter, method="HEAD", headers=headers, allow=self._allow)


def is_of_registry(realm: str, base: str, host: str) -> bool:
    """Return whether a token service belongs to this registry: it is below its URL, or on its known second host."""
    return realm.startswith(f"{base}/") or urlsplit(realm)[:2] == ("https", _TOKEN_HOSTS.get(host))


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
