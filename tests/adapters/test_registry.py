"""A registry is asked as docker asks it; whatever it answers is an image, none, or a reason not to know."""

from __future__ import annotations

import socket

import pytest
from answering import answering, http
from real_time import DEADLINE

from tpudeploy.adapters.registry import HUB, Registry, parts
from tpudeploy.domain.facts import Unknown
from tpudeploy.domain.project_facts import Image

NAME = "vllm/vllm-tpu:v0.32.0"
PATH = "/v2/vllm/vllm-tpu/manifests/v0.32.0"
DIGEST = "sha256:" + "a" * 64


def asking(url: str, token: str | None = None) -> Registry:
    return Registry(lambda _: url, lambda: token, timeout=DEADLINE)


def reply(status: str, *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", *headers, "Content-Length: 0", "Connection: close"]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("vllm/vllm-tpu:nightly", (HUB, "vllm/vllm-tpu", "nightly")),
        ("vllm/vllm-tpu", (HUB, "vllm/vllm-tpu", "latest")),
        ("ubuntu", (HUB, "library/ubuntu", "latest")),
        ("docker.io/library/ubuntu:24.04", (HUB, "library/ubuntu", "24.04")),
        ("us-docker.pkg.dev/p/r/i:v1", ("us-docker.pkg.dev", "p/r/i", "v1")),
        ("localhost:5000/i", ("localhost:5000", "i", "latest")),
        ("host:5000/a/b:c", ("host:5000", "a/b", "c")),
        (f"vllm/vllm-tpu@{DIGEST}", (HUB, "vllm/vllm-tpu", DIGEST)),
        (f"vllm/vllm-tpu:v1@{DIGEST}", (HUB, "vllm/vllm-tpu", DIGEST)),
    ],
)
def test_a_reference_is_read_by_dockers_rules(reference: str, expected: tuple[str, str, str]) -> None:
    assert parts(reference) == expected


def test_an_image_is_there_with_its_digest_and_nothing_is_pulled() -> None:
    requests: list[bytes] = []

    def tell(request: bytes) -> bytes:
        requests.append(request)
        return reply("200 OK", f"Docker-Content-Digest: {DIGEST}")

    with answering({PATH: tell}) as url:
        assert asking(url).image(NAME) == Image(is_there=True, digest=DIGEST)
    assert requests[0].startswith(b"HEAD ")
    assert b"application/vnd.oci.image.index.v1+json" in requests[0]


def test_a_registry_that_wants_a_token_of_anybody_gets_one() -> None:
    requests: list[bytes] = []

    def manifest(request: bytes) -> bytes:
        challenge = f'Bearer realm="{url}/token",service="registry.docker.io",scope="repository:vllm/vllm-tpu:pull"'
        has_token = b"Authorization: Bearer t0k3n" in request
        return reply("200 OK") if has_token else reply("401 Unauthorized", f"WWW-Authenticate: {challenge}")

    def token(request: bytes) -> bytes:
        requests.append(request)
        return http('{"token": "t0k3n"}')

    with answering({PATH: manifest, "/token": token}) as url:
        assert asking(url).image(NAME) == Image(is_there=True)
    assert b"scope=repository%3Avllm%2Fvllm-tpu%3Apull" in requests[0]
    assert b"Authorization" not in requests[0]


@pytest.mark.parametrize("status", ["404 Not Found", "401 Unauthorized"])
def test_docker_hub_says_the_same_of_what_is_private_and_what_is_not_there(status: str) -> None:
    with answering({PATH: reply(status)}) as url:
        assert asking(url).image(NAME) == Image(is_there=False)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (reply("403 Forbidden"), "does not show"),
        (reply("429 Too Many Requests"), "answered 429"),
        (reply("500 Oops"), "answered 500"),
        (reply("307 Temporary Redirect", "Location: http://127.0.0.1:9/elsewhere"), "answered 307"),
        (reply("401 Unauthorized", 'WWW-Authenticate: Bearer realm="http://127.0.0.1:9/token"'), "Connection refused"),
        (reply("401 Unauthorized", 'WWW-Authenticate: Bearer realm="file:///etc/passwd"'), None),
        (b"", "cannot be asked"),
        (b"gibberish\r\n\r\n", "cannot be asked"),
    ],
)
def test_whatever_else_it_answers_is_a_reason_not_to_know(answer: bytes, words: str | None) -> None:
    with answering({PATH: answer}) as url:
        image = asking(url).image(NAME)
    if words is None:  # no token was to be had, and Docker Hub shows nothing
        assert image == Image(is_there=False)
    else:
        assert isinstance(image, Unknown)
        assert words in image.because


@pytest.mark.parametrize("answer", ["[]", "7", "{", '{"token": ""}'])
def test_a_token_service_that_gives_none_is_a_reason_not_to_know(answer: str) -> None:
    def manifest(_: bytes) -> bytes:
        return reply("401 Unauthorized", f'WWW-Authenticate: Bearer realm="{url}/token"')

    with answering({"/v2/a/b/manifests/latest": manifest, "/token": http(answer)}) as url:
        assert isinstance(Registry(lambda _: url, lambda: None, timeout=DEADLINE).image("ghcr.io/a/b"), Unknown)


def test_nobody_there_is_a_reason_not_to_know() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    image = asking(f"http://127.0.0.1:{port}").image(NAME)
    assert isinstance(image, Unknown)
    assert "Connection refused" in image.because


@pytest.mark.parametrize(("image", "is_sent"), [("us-docker.pkg.dev/p/r/i:v1", True), ("evil.example/p/r/i:v1", False)])
def test_the_persons_own_token_goes_to_googles_registries_alone(image: str, *, is_sent: bool) -> None:
    requests: list[bytes] = []

    def tell(request: bytes) -> bytes:
        requests.append(request)
        return reply("200 OK")

    with answering({"/v2/p/r/i/manifests/v1": tell}) as url:
        assert asking(url, token="mine").image(image) == Image(is_there=True)
    assert (b"Authorization: Bearer mine" in requests[0]) is is_sent
