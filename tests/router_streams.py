"""Clients that read one stream after another through a router, and what became of each stream."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

KEY = "a key for tests"
DONE = "data: [DONE]"


class HasPort(Protocol):
    port: int


@dataclass(kw_only=True)
class Stream:
    """`ended` is "done", or why not. `replica` is the port of the server that answered, "" for none."""

    began: float
    replica: str = ""
    ended: str = ""


@dataclass
class Load:
    """The streams of several clients. `failures` are counted by cause."""

    port: int
    streams: list[Stream] = field(default_factory=list)
    is_over: threading.Event = field(default_factory=threading.Event)

    @property
    def failures(self) -> Counter[str]:
        return Counter(stream.ended for stream in self.streams if stream.ended not in {"", "done"})

    def failures_of(self, replica: HasPort) -> list[Stream]:
        return [stream for stream in self.served_by(replica) if stream.ended not in {"", "done"}]

    def under_way(self, replica: HasPort) -> list[Stream]:
        return [stream for stream in self.served_by(replica) if not stream.ended]

    def served_by(self, replica: HasPort) -> list[Stream]:
        return [stream for stream in tuple(self.streams) if stream.replica == str(replica.port)]


@contextmanager
def load(port: int, *, clients: int) -> Iterator[Load]:
    """Keep `clients` streams open through the router at `port` while the context lasts."""
    running = Load(port)
    threads = [threading.Thread(target=_read_streams, args=(running,)) for _ in range(clients)]
    for thread in threads:
        thread.start()
    try:
        yield running
    finally:
        running.is_over.set()
        for thread in threads:
            thread.join()


def stream(port: int, key: str = KEY) -> Stream:
    """Read one stream."""
    one = Stream(began=time.monotonic())
    _read(one, port, key)
    return one


def _read_streams(running: Load) -> None:
    while not running.is_over.is_set():
        one = Stream(began=time.monotonic())
        running.streams.append(one)
        _read(one, running.port, KEY)


def _read(one: Stream, port: int, key: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    try:
        # Each prompt has another beginning: smg sends those with the same one to the same replica.
        body = {"model": "gemma", "prompt": f"{one.began}: say hello.", "max_tokens": 8, "stream": True}
        connection.request("POST", "/v1/completions", json.dumps(body), headers)
        response = connection.getresponse()
        if response.status != http.client.OK:
            one.ended = f"status {response.status}"
            return
        for line in response:
            text = line.decode().strip()
            if text == DONE:
                one.ended = "done"
                return
            event = json.loads(text.removeprefix("data: ")) if text.startswith("data: ") else {}
            # smg ends a stream that it has to break off with an event of its own.
            if "error" in event:
                break
            one.replica = event.get("id", one.replica)
        one.ended = "cut off"
    except http.client.IncompleteRead:
        one.ended = "cut off"
    except OSError as failure:
        one.ended = "cut off" if one.replica else f"no answer ({type(failure).__name__})"
    except http.client.HTTPException as failure:
        one.ended = f"no answer ({type(failure).__name__})"
    finally:
        connection.close()
