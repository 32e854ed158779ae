"""Clients that read one stream after another from one address, and what became of each stream."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

DONE = "data: [DONE]"


@dataclass(kw_only=True)
class Stream:
    """`ended` is "done", or why it failed; "" while it is under way. `source` is the `id` of its last event."""

    began: float
    source: str = ""
    tokens: int = 0
    ended: str = ""


@dataclass(kw_only=True)
class Load:
    """The streams of several clients, each with one stream open at a time."""

    port: int
    model: str
    key: str = ""
    max_tokens: int = 8
    streams: list[Stream] = field(default_factory=list)
    is_over: threading.Event = field(default_factory=threading.Event)

    @property
    def failed(self) -> list[Stream]:
        return [stream for stream in tuple(self.streams) if stream.ended not in {"", "done"}]

    @property
    def failures(self) -> Counter[str]:
        """Count the failed streams by cause."""
        return Counter(stream.ended for stream in self.failed)

    def read_streams(self) -> None:
        """Read one stream after another until the load is over."""
        while not self.is_over.is_set():
            self.read_stream()

    def read_stream(self) -> Stream:
        stream = Stream(began=time.monotonic())
        self.streams.append(stream)
        stream.ended = self._read(stream)
        return stream

    def _read(self, stream: Stream) -> str:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        headers = {"content-type": "application/json"}
        if self.key:
            headers["authorization"] = f"Bearer {self.key}"
        # Each prompt has another beginning: smg sends those with the same one to the same replica.
        prompt = {"prompt": f"{stream.began}: say hello.", "max_tokens": self.max_tokens, "ignore_eos": True}
        body = json.dumps({"model": self.model, "stream": True, **prompt})
        try:
            connection.request("POST", "/v1/completions", body, headers)
            response = connection.getresponse()
            if response.status != http.client.OK:
                return f"status {response.status}"
            for line in response:
                text = line.decode().strip()
                if text == DONE:
                    return "done"
                event = json.loads(text.removeprefix("data: ")) if text.startswith("data: ") else {}
                # smg ends a stream that it has to break off with an event of its own.
                if "error" in event:
                    break
                stream.source, stream.tokens = event.get("id", stream.source), stream.tokens + bool(event)
        except (OSError, http.client.HTTPException) as failure:
            is_begun = stream.tokens or isinstance(failure, http.client.IncompleteRead)
            return "cut off" if is_begun else f"no answer ({type(failure).__name__})"
        finally:
            connection.close()
        return "cut off"


@contextmanager
def running(load: Load, *, clients: int) -> Iterator[Load]:
    """Keep `clients` streams open while the context lasts, and wait for their ends."""
    threads = [threading.Thread(target=load.read_streams) for _ in range(clients)]
    for thread in threads:
        thread.start()
    try:
        yield load
    finally:
        load.is_over.set()
        for thread in threads:
            thread.join()
