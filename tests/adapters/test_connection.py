"""Who we are to Google, by whatever credentials are found; a token server on loopback stands in for Google's."""

from __future__ import annotations

import json
from pathlib import Path
from threading import Thread, current_thread
from typing import Any

import pytest
from answering import answering, http
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from endless import Drip, endless
from google.auth.exceptions import DefaultCredentialsError, TransportError
from real_time import DEADLINE

from tpudeploy.adapters.google.access import _members
from tpudeploy.adapters.google.connect import CloudConnection
from tpudeploy.adapters.google.translate import translate_read_errors
from tpudeploy.domain import errors
from tpudeploy.emulator.http_server import HttpRequest, HttpServer, Reply

ACCOUNT = "robot@p.iam.gserviceaccount.com"


def robot(url: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> CloudConnection:
    """Signed in as a service account whose tokens `url` gives."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    login = {"type": "service_account", "project_id": "p", "client_email": ACCOUNT, "private_key": pem}
    file = folder / "key.json"
    file.write_text(json.dumps({**login, "token_uri": f"{url}/token"}), encoding="utf-8")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
    monkeypatch.delenv("GOOGLE_CLOUD_PROJECT", raising=False)
    return CloudConnection(emulator_host=None, timeout=DEADLINE)


def test_credentials_that_are_good_say_who_we_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with answering({"/token": http('{"access_token": "t", "expires_in": 3600}')}) as url:
        connection = robot(url, tmp_path, monkeypatch)
        assert connection.project() == "p"
        assert connection.identity() == ACCOUNT
        assert connection.token() == "t"


def test_credentials_that_are_good_no_longer_say_how_to_sign_in_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    response = http('{"error": "invalid_grant", "error_description": "expired"}', status="400 Bad Request")
    with answering({"/token": response}) as url, pytest.raises(errors.Denied, match="invalid_grant") as caught:
        robot(url, tmp_path, monkeypatch).identity()
    assert "gcloud auth application-default login" in caught.value.hint


def test_missing_credentials_are_looked_for_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "none.json"))
    connection = CloudConnection(emulator_host=None, timeout=DEADLINE)
    with pytest.raises(errors.Denied) as first:
        connection.project()
    (tmp_path / "none.json").write_text("{}", encoding="utf-8")
    with pytest.raises(errors.Denied) as second:
        connection.identity()
    assert second.value is first.value


def test_connections_belong_to_requests_and_not_to_threads() -> None:
    """A thread that ends leaves no connection behind, and the next one opens none."""
    connections: set[Thread] = set()  # the server has a thread for each

    def reply_to(_: HttpRequest) -> Reply:
        connections.add(current_thread())
        return Reply(http=200, body={})

    server = HttpServer(0, reply_to)
    connection = CloudConnection(emulator_host=f"127.0.0.1:{server.port}", timeout=DEADLINE)

    def ask() -> None:
        connection.collection("tpu", "v2alpha1", "projects", "locations").list(name="projects/p").execute()
        with connection.typed_tpu() as client:
            list(client.list_nodes(parent="projects/p/locations/-", timeout=DEADLINE))

    try:
        for _ in range(20):
            thread = Thread(target=ask)
            thread.start()
            thread.join()
        assert len(connections) == 2  # one by each of Google's two clients
    finally:
        connection.close()
        server.close()


@pytest.mark.parametrize(
    "answer",
    [
        http("[" * 200_000),
        http("[]"),
        http("7"),
        http("<html>"),
        http("["),
        http('"\\ud800"'),
        b"HTTP/9.9 200 OK\r\n\r\n",
    ],
    ids=lambda answer: repr(answer[-16:]),
)
def test_a_reply_in_another_form_is_a_fault(answer: bytes) -> None:
    with answering({"/v2alpha1/projects/p/locations": answer}) as url:
        connection = CloudConnection(emulator_host=url.removeprefix("http://"), timeout=DEADLINE)
        try:
            locations = connection.collection("tpu", "v2alpha1", "projects", "locations")
            with pytest.raises(errors.Fault), translate_read_errors("list the zones"):
                locations.list(name="projects/p").execute()
        finally:
            connection.close()


def test_two_versions_of_a_service_are_two_services() -> None:
    connection = CloudConnection(emulator_host="127.0.0.1:9", timeout=DEADLINE)
    try:
        newer, older = (connection.collection("serviceusage", version, "services") for version in ("v1beta1", "v1"))
        assert hasattr(older, "batchGet")
        assert not hasattr(newer, "batchGet")
        assert "/v1/" in older.get(name="projects/1/services/tpu.googleapis.com").uri
        assert "/v1beta1/" in newer.get(name="projects/1/services/tpu.googleapis.com").uri
    finally:
        connection.close()


def test_a_grant_under_a_condition_is_not_taken_for_one() -> None:
    grant = {"role": "roles/secretmanager.secretAccessor", "members": ["user:a@b.c"]}
    assert list(_members({"bindings": [grant]})) == ["user:a@b.c"]
    assert not list(_members({"bindings": [{**grant, "condition": {"expression": "request.time < x"}}]}))
    assert not list(_members({"bindings": [{**grant, "role": "roles/secretmanager.viewer"}]}))


def test_the_search_for_credentials_ends_where_a_metadata_server_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Google's own client has a timeout for each read alone, so one that sends a byte a moment has no end."""
    found: list[Exception] = []

    def default(*, request: Any, **_: object) -> None:
        head = b"HTTP/1.1 200 OK\r\nMetadata-Flavor: Google\r\nContent-Length: 999\r\n\r\n"
        with endless(Drip(head, b"a"), every=0.01) as url:
            try:
                request(url=url, method="GET", timeout=DEADLINE)
            except TransportError as cause:
                found.append(cause)
        raise DefaultCredentialsError("none")  # type: ignore[no-untyped-call]  # google-auth annotates no constructor

    monkeypatch.setattr("google.auth.default", default)
    with pytest.raises(errors.Denied):
        CloudConnection(emulator_host=None, timeout=0.2).project()
    assert "timed out" in str(found[0]).lower()
