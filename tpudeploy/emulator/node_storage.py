"""Cloud Storage for granted nodes: the same objects and the same trouble that other clients meet.

A node never waits for the cloud's lock: whoever holds it may be waiting for that node to stop.
"""

from __future__ import annotations

import json

from tpudeploy.emulator.cloud import Cloud
from tpudeploy.emulator.machine.web import Response
from tpudeploy.emulator.storage import api


def exchange(cloud: Cloud, method: str, target: str, body: bytes) -> Response:
    """Raise ConnectionResetError where the scenario cuts the connection."""
    ask = api.asked(method, target, body)
    if ask is None:
        return Response(status=404, body=b"Not Found")
    with cloud.storage_lock:
        cloud.calls[ask.method] += 1
        counts = {"call": cloud.calls[ask.method], "attempt": cloud.calls[ask.method]}
        name = (ask.name or ask.bucket).rpartition("/")[2]
        troubles = cloud.striking({"method": ask.method, "zone": "-", "name": name}, counts)
        if "connection-refused" in troubles:
            raise ConnectionResetError
        reply = api.played(cloud.objects, ask, troubles)
    if "lost-reply" in troubles:
        raise ConnectionResetError
    return Response(status=reply.http, body=as_bytes(reply.body), headers={"Content-Type": reply.content_type})


def as_bytes(body: object) -> bytes:
    """JSON is printed as the service prints it: over many lines."""
    if isinstance(body, bytes):
        return body
    return body.encode() if isinstance(body, str) else json.dumps(body, indent=2).encode()
