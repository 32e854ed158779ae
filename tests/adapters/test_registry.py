"""A registry is asked as docker asks it; whatever it answers is an image, none, or a reason not to know."""

from __future__ import annotations

import hashlib
import json
import re
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from answering import answering, http
from command_line import PROFILE
from endless import Drip, endless
from real_time import DEADLINE

import tpudeploy as td
from tpudeploy.adapters.http_budget import is_public
from tpudeploy.adapters.registry import HUB, Registry, is_of_registry, parts
from tpudeploy.domain.facts import Unknown
from tpudeploy.domain.pins import PinKind
from tpudeploy.domain.project_facts import Image
from tpudeploy.pins import names

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
        assert asking(url).image(NAME) == Image(exists=True, digest=DIGEST)
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
        assert asking(url).image(NAME) == Image(exists=True)
    assert b"scope=repository%3Avllm%2Fvllm-tpu%3Apull" in requests[0]
    assert b"Authorization" not in requests[0]


@pytest.mark.parametrize("status", ["404 Not Found", "401 Unauthorized"])
def test_docker_hub_says_the_same_of_what_is_private_and_what_is_not_there(status: str) -> None:
    with answering({PATH: reply(status)}) as url:
        assert asking(url).image(NAME) == Image(exists=False)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (reply("403 Forbidden"), "does not show"),
        (reply("429 Too Many Requests"), "answered 429"),
        (reply("500 Oops"), "answered 500"),
        (reply("307 Temporary Redirect", "Location: http://127.0.0.1:9/elsewhere"), "answered 307"),
        (
            reply("401 Unauthorized", 'WWW-Authenticate: Bearer realm="http://127.0.0.1:9/token"'),
            "not a host of its own",
        ),
        (reply("401 Unauthorized", 'WWW-Authenticate: Bearer realm="file:///etc/passwd"'), None),
        (b"", "cannot be asked"),
        (b"gibberish\r\n\r\n", "cannot be asked"),
    ],
)
def test_whatever_else_it_answers_is_a_reason_not_to_know(answer: bytes, words: str | None) -> None:
    with answering({PATH: answer}) as url:
        image = asking(url).image(NAME)
    if words is None:  # no token was to be had, and Docker Hub shows nothing
        assert image == Image(exists=False)
    else:
        assert isinstance(image, Unknown)
        assert words in image.because


@pytest.mark.parametrize(
    ("host", "base", "realm", "is_asked"),
    [
        ("ghcr.io", "https://ghcr.io", "https://ghcr.io/token", True),
        ("registry.example:5000", "https://registry.example:5000", "https://registry.example:5000/auth", True),
        (HUB, f"https://{HUB}", "https://auth.docker.io/token", True),
        ("registry.gitlab.com", "https://registry.gitlab.com", "https://gitlab.com/jwt/auth", True),
        (HUB, f"https://{HUB}", "http://auth.docker.io/token", False),
        (HUB, f"https://{HUB}", "https://auth.docker.io.evil.example/token", False),
        (HUB, f"https://{HUB}", "https://auth.docker.io@evil.example/token", False),
        ("ghcr.io", "https://ghcr.io", "https://auth.docker.io/token", False),
        ("ghcr.io", "https://ghcr.io", "http://ghcr.io/token", False),
        ("ghcr.io", "https://ghcr.io", "https://ghcr.io:8443/token", False),
        ("ghcr.io", "https://ghcr.io", "https://169.254.169.254/computeMetadata/v1/", False),
        ("evil.example", "https://evil.example", "http://metadata.google.internal/", False),
        ("evil.example", "https://evil.example", "https://10.0.0.1/", False),
        ("ghcr.io", "http://127.0.0.1:9/registry/ghcr.io", "http://127.0.0.1:9/other/internal", False),
    ],
)
def test_a_challenge_sends_no_one_to_another_host(host: str, base: str, realm: str, *, is_asked: bool) -> None:
    assert is_of_registry(realm, base, host) is is_asked


def test_the_token_of_another_address_is_neither_asked_for_nor_passed_on() -> None:
    requests: list[bytes] = []

    def manifest(request: bytes) -> bytes:
        requests.append(request)
        return reply("401 Unauthorized", f'WWW-Authenticate: Bearer realm="{other}/internal",service="x"')

    def internal(request: bytes) -> bytes:
        requests.append(request)
        return http('{"access_token": "INTERNAL-SECRET"}')

    with answering({"/internal": internal}) as other, answering({PATH: manifest}) as url:
        image = asking(url).image(NAME)
    assert isinstance(image, Unknown)
    assert "not a host of its own" in image.because
    assert len(requests) == 1


@pytest.mark.parametrize("number", ["127.0.0.1", "169.254.169.254", "[::1]"])
def test_an_image_of_this_machine_or_of_the_metadata_server_is_not_asked_for(number: str) -> None:
    image = Registry(lambda host: f"https://{host}", lambda: None, timeout=DEADLINE).image(f"{number}:9/a/b")
    assert isinstance(image, Unknown)
    assert "cannot be the registry of this profile" in image.because


def test_a_registry_and_a_token_service_that_do_not_end_are_reasons_not_to_know() -> None:
    with endless(Drip(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n"), every=0.02) as url:
        image = Registry(lambda _: url, lambda: None, timeout=0.2).image(NAME)
    assert isinstance(image, Unknown)
    assert "timed out" in image.because


@pytest.mark.parametrize("answer", ["[]", "7", "{", '{"token": ""}', "[" * 300_000])
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
        assert asking(url, token="mine").image(image) == Image(exists=True)
    assert (b"Authorization: Bearer mine" in requests[0]) is is_sent


PRIVATE = ("10.1.2.3", "172.16.0.9", "192.168.1.1", "100.64.0.1", "fd00::1", "127.0.0.1", "169.254.169.254")


@pytest.mark.parametrize("door", ["pin", "plan"])
@pytest.mark.parametrize("number", ["10.1.2.3", "192.168.1.1", "127.0.0.1"])
def test_a_registry_inside_the_network_is_not_asked_for_an_untrusted_profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: str, door: str
) -> None:
    monkeypatch.delenv("TPU_EMULATOR_HOST", raising=False)
    monkeypatch.setattr(socket, "create_connection", lambda *_, **__: pytest.fail("it was asked"))
    text = re.sub(r"image: \S+", f"image: {number}:5000/a/b:1", PROFILE)
    (tmp_path / "gemma.yaml").write_text(text, "utf-8")
    profile = td.Profile.load(tmp_path / "gemma.yaml", untrusted=True, folder=tmp_path)
    with td.Workspace.open(tmp_path, project="p") as workspace:
        if door == "plan":
            workspace.deployment(profile)
        else:
            workspace.note_trust([profile])
        (image,) = [name for name in names(profile) if name.kind is PinKind.IMAGE]
        answer = workspace.adapters.sources.look_up(image)
    assert isinstance(answer, Unknown)
    assert "cannot be the registry of this profile" in answer.because


@pytest.mark.parametrize("number", PRIVATE)
def test_no_private_address_is_a_public_one(number: str) -> None:
    assert not is_public(number)


def test_a_trusted_profile_may_name_a_registry_of_its_own_network(tmp_path: Path) -> None:
    (tmp_path / "gemma.yaml").write_text(PROFILE, "utf-8")
    with td.Workspace.open(tmp_path, project="p") as workspace:
        workspace.deployment(td.Profile.load(tmp_path / "gemma.yaml"))
        assert workspace.adapters.connection.may_be_registry("10.1.2.3")
        assert not workspace.adapters.connection.may_be_registry("127.0.0.1")


def test_a_proxy_does_not_open_the_way_to_a_private_address(monkeypatch: pytest.MonkeyPatch) -> None:
    with answering({}) as proxy:
        monkeypatch.setenv("https_proxy", proxy)
        registry = Registry(lambda host: f"https://{host}", lambda: None, timeout=DEADLINE, allow=is_public)
        image = registry.image("10.1.2.3:5000/a/b")
    assert isinstance(image, Unknown)
    assert "cannot be the registry of this profile" in image.because


CONFIG = b'{"config": {"Labels": {"org.opencontainers.image.version": "0.31.0"}}}'
CONFIG_DIGEST = f"sha256:{hashlib.sha256(CONFIG).hexdigest()}"
MANIFEST = f'{{"config": {{"digest": "{CONFIG_DIGEST}"}}}}'
INDEX = json.dumps(
    {
        "manifests": [
            {"digest": f"sha256:{letter * 64}", "platform": {"os": "linux", "architecture": architecture}}
            for letter, architecture in (("c", "arm64"), ("b", "amd64"))
        ]
    }
)
OF_DIGEST = f"vllm/vllm-tpu@{DIGEST}"
ROOT = "/v2/vllm/vllm-tpu"
BLOB = f"{ROOT}/blobs/{CONFIG_DIGEST}"


@pytest.mark.parametrize(
    "pages",
    [
        {f"{ROOT}/manifests/{DIGEST}": http(MANIFEST)},
        {f"{ROOT}/manifests/{DIGEST}": http(INDEX), f"{ROOT}/manifests/sha256:{'b' * 64}": http(MANIFEST)},
    ],
    ids=["one platform", "several platforms"],
)
def test_labels_are_read_from_the_configuration_of_the_image_for_linux_on_amd64(pages: dict[str, bytes]) -> None:
    with answering({**pages, BLOB: http(CONFIG.decode())}) as url:
        assert asking(url).labels(OF_DIGEST) == {"org.opencontainers.image.version": "0.31.0"}


@pytest.mark.parametrize(
    ("manifest", "blob", "words"),
    [
        (http(MANIFEST), http('{"config": {}}'), "another digest"),
        (http(MANIFEST), reply("307 Temporary Redirect", "Location: http://127.0.0.1:9/blob"), "without TLS"),
        (
            http(MANIFEST),
            reply("307 Temporary Redirect", "Location: https://127.0.0.1:9/blob"),
            "cannot be the registry",
        ),
        (http(MANIFEST), reply("404 Not Found"), "answered 404"),
        (http('{"config": {"digest": "sha256:../../etc"}}'), b"", "names no configuration"),
        (http('{"config": 7}'), b"", "names no configuration"),
        (http('{"manifests": [7, {"platform": {"os": "windows"}}]}'), b"", "not for linux/amd64"),
        (http("[]"), b"", "malformed"),
        (http("no JSON"), b"", "cannot be asked"),
        (reply("401 Unauthorized"), b"", "answered 401"),
    ],
)
def test_whatever_else_is_sent_for_labels_is_a_reason_not_to_know(manifest: bytes, blob: bytes, words: str) -> None:
    with answering({f"{ROOT}/manifests/{DIGEST}": manifest, BLOB: blob}) as url:
        answer = asking(url).labels(OF_DIGEST)
    assert isinstance(answer, Unknown)
    assert words in answer.because


def test_one_anonymous_token_serves_for_the_manifest_and_the_configuration() -> None:
    requests: list[bytes] = []

    def only_with_token(page: str) -> Callable[[bytes], bytes]:
        def answer(request: bytes) -> bytes:
            challenge = f'WWW-Authenticate: Bearer realm="{url}/token",service="s"'
            return http(page) if b"Authorization: Bearer t0k3n" in request else reply("401 Unauthorized", challenge)

        return answer

    def token(request: bytes) -> bytes:
        requests.append(request)
        return http('{"token": "t0k3n"}')

    pages = {f"{ROOT}/manifests/{DIGEST}": only_with_token(MANIFEST), BLOB: only_with_token(CONFIG.decode())}
    with answering({**pages, "/token": token}) as url:
        assert asking(url).labels(OF_DIGEST) == {"org.opencontainers.image.version": "0.31.0"}
    assert len(requests) == 1
