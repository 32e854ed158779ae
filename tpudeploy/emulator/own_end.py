"""A machine deletes its own request once the end in its metadata has come, with the identity of its service account.

Whether Google's APIs accept that from a TPU VM's own account is unverified; a scenario denies it with
`project: {denied_machine_permissions: [tpu.nodes.delete]}`.
"""

from __future__ import annotations

from tpudeploy.catalog.backends import BACKENDS
from tpudeploy.emulator.cloud import Cloud
from tpudeploy.emulator.http_server import HttpRequest, Reply
from tpudeploy.emulator.records import ChipRequest, Host, QueuedResource
from tpudeploy.emulator.scriptless import Scriptless

_AGAIN = 60.0  # seconds after which a machine that is still there tries again
_LOOK = 300.0  # it may not have served yet, and then its end comes later
_REFUSED = 400
_ROWS = {row.service: row for row in BACKENDS.values()}


def call(cloud: Cloud, method: str, host: str, target: str) -> Reply:
    """Return what an API answers a machine, which can only delete.

    The deletion begins with the next request of anybody: a machine never waits for the cloud's lock, since its holder
    may be waiting for that machine to stop.
    """
    row = _ROWS[host]
    needed = row.group_deletion_permissions if "/instanceGroupManagers/" in target else row.deletion_permissions
    denied = [p for p in needed if p in cloud.scenario.project.denied_machine_permissions]
    if method != "DELETE":
        return _refusal(404, "Method not found.")
    if denied:
        return _refusal(403, f"Permission '{denied[0]}' denied on resource '{target.partition('?')[0]}'.")
    request = HttpRequest(method=method, target=target)

    def delete(_now: float) -> None:
        cloud.answer(request)

    cloud.agenda.add(cloud.clock.now(), delete)
    return Reply(http=200, body={"done": False})


def watch(cloud: Cloud, request: ChipRequest, host: Host | None) -> None:
    """Let a simulated machine end itself. Real scripts do by themselves (templates/boot/end.sh)."""
    if not isinstance(host, Scriptless) or host.ends_at() is None:
        return

    def look(at: float) -> None:
        end = host.ends_at()
        if end is None:
            return
        if at >= end:
            name, target = host.request_to_delete()
            status = call(cloud, "DELETE", name, target).http
            host.note_end(status)
            if status < _REFUSED:
                nodes = cloud.nodes_of(request) if isinstance(request, QueuedResource) else ()
                cloud.own_ends |= {request.name, *(node.name for node in nodes)}
        # A test's clock may have jumped over many attempts: the first of them does what all of them would.
        cloud.later(request, max(at, cloud.clock.now()) + _AGAIN if at >= end else min(end, at + _LOOK), look)

    cloud.later(request, cloud.clock.now(), look)


def _refusal(status: int, message: str) -> Reply:
    return Reply(http=status, body={"error": {"code": status, "message": message}})
