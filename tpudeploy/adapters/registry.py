"""Container registries: one HEAD request for a manifest, as docker makes it, shows whether an image exists.

The labels of an image are in its configuration, a blob that the manifest names: no layer is read. A blob counts only
if its bytes have the digest that was asked for, so it does not matter which host a redirect leads to.

It is written from the protocol. That Google's registries accept an access token as a bearer token is unverified.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from hashlib import sha256
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
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_MOVED = {HTTPStatus.FOUND, HTTPStatus.SEE_OTHER, HTTPStatus.TEMPORARY_REDIRECT, HTTPStatus.PERMANENT_REDIRECT}
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
        host, _, version = parts(reference)
        meter = Budget(seconds=self._timeout, size=_MOST_BYTES).begin()  # one for all of the exchange
        try:
            reply, _ = self._exchange(reference, f"manifests/{version}", meter, method="HEAD")
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

    def labels(self, reference: str) -> Mapping[str, str] | Unknown:
        """Return the labels of an image, or `Unknown` with the reason. Raises only `errors.CloudError` of `token`.

        The image is named by its digest. Of one for several platforms, the labels are those of linux/amd64.
        """
        host, _, digest = parts(reference)
        meter = Budget(seconds=self._timeout, size=_MOST_BYTES).begin()
        try:
            reply, token = self._exchange(reference, f"manifests/{digest}", meter)
            platform = _amd64(_object(reply))
            if platform:
                reply, token = self._exchange(reference, f"manifests/{platform}", meter, token=token)
            config = _digest_at(_object(reply), "config")
            reply, _ = self._exchange(reference, f"blobs/{config}", meter, token=token)
            if reply.status in _MOVED:  # to where the registry keeps its blobs: the token stays here
                reply = fetch(_https(reply.headers.get("location", "")), meter, allow=is_public)
            text = _object(reply)
            if f"sha256:{sha256(reply.body).hexdigest()}" != config:
                raise ValueError("the configuration that it sent has another digest")  # noqa: TRY301 - as all the others
            tree = text.get("config")
        except (Unanswered, ValueError) as cause:
            return Unknown(because=f"{host} cannot be asked: {cause}.")
        labels = tree.get("Labels") if isinstance(tree, dict) else None
        return {str(key): str(value) for key, value in labels.items()} if isinstance(labels, dict) else {}

    def _exchange(
        self, reference: str, path: str, meter: BudgetMeter, *, method: str = "GET", token: str | None = None
    ) -> tuple[HttpResponse, str | None]:
        """Send one request to a repository, and return the reply and the token that it took.

        A registry other than Google's that wants a token is sent the anonymous one. Raise as `_anonymous_token` does.
        """
        host, repository, _ = parts(reference)
        base = self._base(host)
        url = f"{base}/v2/{repository}/{path}"
        is_google = _GOOGLE.fullmatch(host) is not None
        token = self._token() if is_google else token
        reply = self._send(method, url, token, meter)
        if reply.status == HTTPStatus.UNAUTHORIZED and not is_google and token is None:
            token = self._anonymous_token(reply.headers.get("www-authenticate", ""), base, host, meter)
            reply = self._send(method, url, token, meter)
        return reply, token

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

    def _send(self, method: str, url: str, token: str | None, meter: BudgetMeter) -> HttpResponse:
        """Send one request. A redirect is not followed, because a token must not be sent to another host."""
        headers = {"Accept": _ACCEPT, **({"Authorization": f"Bearer {token}"} if token else {})}
        return fetch(url, meter, method=method, headers=headers, allow=self._allow)


def _object(reply: HttpResponse) -> Mapping[str, Any]:
    """Return the JSON object in a reply. Raise ValueError for any other reply."""
    if reply.status != HTTPStatus.OK:
        raise ValueError(f"it {reply.outcome}")
    tree = parse(reply.body)
    if not isinstance(tree, dict):
        raise ValueError("it sent a malformed answer")  # noqa: TRY004  what a server sent is a value
    return tree


def _amd64(manifest: Mapping[str, Any]) -> str:
    """Return the digest of the manifest for linux/amd64 in one for several platforms, or "" if it is for one."""
    if not isinstance(manifest.get("manifests"), list):
        return ""
    for each in manifest["manifests"]:
        platform = each.get("platform") if isinstance(each, dict) else None
        if isinstance(platform, dict) and (platform.get("os"), platform.get("architecture")) == ("linux", "amd64"):
            return _digest_at({"": each}, "")
    raise ValueError("the image is not for linux/amd64")


def _digest_at(tree: Mapping[str, Any], key: str) -> str:
    digest = tree[key].get("digest") if isinstance(tree.get(key), dict) else None
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
        raise ValueError("its manifest names no configuration")
    return digest


def _https(location: str) -> str:
    if urlsplit(location).scheme != "https":
        raise ValueError("it redirects to an address without TLS")
    return location


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
