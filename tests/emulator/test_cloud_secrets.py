"""The slice of Secret Manager that a client's pre-flight sees, through Google's discovery client."""

from __future__ import annotations

from base64 import b64decode
from typing import Any

import pytest
from emulator.cloud_world import World, new_client, refused, world


def read(w: World, secret: str) -> str:
    with new_client(w.emulator, "secretmanager", "v1") as client:
        response = client.projects().secrets().versions().access(name=secret).execute()
    return b64decode(response["payload"]["data"]).decode()


def test_a_scenario_s_secret_is_read() -> None:
    with world(secrets={"token": "made-up"}) as w:
        assert read(w, "projects/p/secrets/token/versions/latest") == "made-up"


def test_without_a_list_every_secret_exists() -> None:
    with world() as w:
        assert "emulator" in read(w, "projects/p/secrets/any/versions/3")


@pytest.mark.parametrize(
    ("secret", "http", "status"), [("absent", 404, "NOT_FOUND"), ("closed", 403, "PERMISSION_DENIED")]
)
def test_a_missing_or_closed_secret_says_so(secret: str, http: int, status: str) -> None:
    settings: dict[str, Any] = {"secrets": {"token": "made-up"}, "denied_secrets": ["closed"]}
    with world(**settings) as w, refused(http, status):
        read(w, f"projects/p/secrets/{secret}/versions/latest")
