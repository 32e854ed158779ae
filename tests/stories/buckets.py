"""A bucket of the emulated cloud, looked into from outside, and what the machine said of it."""

from __future__ import annotations

import http.client
import json
from urllib.parse import quote

from command_line import CommandLine
from real_time import DEADLINE


def log(at: CommandLine) -> str:
    """What the machine printed while it booted."""
    result = at.run("logs", "gemma.yaml")
    assert result.code == 0, result.all
    return result.out


def objects(at: CommandLine, prefix: str = "") -> dict[str, bytes]:
    """What lies in the bucket, by name."""
    listed = json.loads(_ask(at, "GET", f"/storage/v1/b/bucket/o?prefix={prefix}"))
    names = [row["name"] for row in listed["items"]]
    return {name: _ask(at, "GET", f"/storage/v1/b/bucket/o/{quote(name, safe='')}?alt=media") for name in names}


def upload(at: CommandLine, name: str, content: bytes) -> None:
    _ask(at, "POST", f"/upload/storage/v1/b/bucket/o?uploadType=media&name={quote(name, safe='')}", content)


def _ask(at: CommandLine, method: str, target: str, body: bytes = b"") -> bytes:
    connection = http.client.HTTPConnection(at.emulator.host, timeout=DEADLINE)
    try:
        connection.request(method, target, body)
        answer = connection.getresponse()
        content = answer.read()
        assert answer.status == 200, content
        return content
    finally:
        connection.close()
