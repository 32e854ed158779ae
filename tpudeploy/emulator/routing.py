"""What a stand-in of a router does: read the servers of a list, and send a request on to one of them.

It tries another server where one does not accept the connection, as the real routers do.
"""

from __future__ import annotations

import http.client
import re
from collections.abc import Iterator, Mapping, Sequence

from tpudeploy.emulator.http_server import HttpRequest, Reply

# The servers of a list, by the file that has it: those of HAProxy, smg and Envoy.
LISTS: Mapping[str, re.Pattern[str]] = {
    "haproxy.cfg": re.compile(r"^ +server \S+ (?P<host>[0-9.]+):(?P<port>[0-9]+)", re.MULTILINE),
    "workers.json": re.compile(r'"url": "http://(?P<host>[0-9.]+):(?P<port>[0-9]+)"'),
    "endpoints/replicas.json": re.compile(r'"address": "(?P<host>[0-9.]+)",\s*"port_value": (?P<port>[0-9]+)'),
}
_TIMEOUT = 60.0  # real seconds
_OF_CONNECTION = frozenset(("connection", "content-length", "host", "transfer-encoding"))


def servers_of(path: str, text: str) -> tuple[tuple[str, int], ...]:
    """Return the addresses and ports in the text of a list. Raise KeyError for a file of no known router."""
    return tuple((match["host"], int(match["port"])) for match in LISTS[path].finditer(text))


def send_on(request: HttpRequest, servers: Sequence[tuple[str, int]], *, first: int) -> Reply:
    """Return the answer of the first server that accepts the connection, in turn from the number `first` on."""
    start = first % max(1, len(servers))
    headers = {name: value for name, value in request.headers.items() if name not in _OF_CONNECTION}
    for host, port in (*servers[start:], *servers[:start]):
        connection = http.client.HTTPConnection(host, port, timeout=_TIMEOUT)
        try:
            connection.request(request.method, request.target, request.body or None, headers)
            response = connection.getresponse()
        except OSError:
            connection.close()
            continue
        content_type = response.getheader("Content-Type", "text/plain")
        if content_type.startswith("text/event-stream"):
            return Reply(http=response.status, body=_chunks(connection, response), content_type=content_type)
        body = response.read()
        connection.close()
        return Reply(http=response.status, body=body, content_type=content_type)
    return Reply(http=503, body="no server is available to handle this request")


def _chunks(connection: http.client.HTTPConnection, response: http.client.HTTPResponse) -> Iterator[bytes]:
    try:
        while chunk := response.read1(65536):
            yield chunk
    finally:
        connection.close()
