"""One cell: it opens the streams, keeps each of them busy, and decides when the window begins and ends. One loop."""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from tpudeploy.features.benchmark.load.stream import Stream, clock
from tpudeploy.features.benchmark.offer import Observation, Offer, RequestRecord
from tpudeploy.features.benchmark.prompts import prompts

_PATH = "/v1/completions"
_TICK = 0.01  # seconds; the delay of this timer is the delay of every read
_CONNECT_BATCH = 128  # connections opened together; more would overflow the queue of a server that accepts slowly
_TIMEOUT = 900.0  # seconds; longer than any compilation, so a server that takes longer hangs
_MOST_FAILURES = 3  # in a row; then the stream stops


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointAddress:
    """The address of the endpoint. `headers` has its API key if it requires one."""

    host: str
    port: int
    authority: str
    tls: ssl.SSLContext | None
    headers: Mapping[str, str]


class Requests:
    """The requests of a cell as bytes: all but the few tokens that make one its own is written once."""

    def __init__(self, place: EndpointAddress, offer: Offer) -> None:
        _, context_tokens, output_tokens = offer.point.sizes
        self._prompts = prompts(context_tokens, offer.seed, offer.vocabulary)
        self._number = 0
        settings = {
            "max_tokens": output_tokens,
            "ignore_eos": True,
            "temperature": 0,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        begin = f'{{"model":{json.dumps(offer.model)},"prompt":['
        self._rest = f"{self._prompts.rest}],{json.dumps(settings)[1:]}".encode()
        length = len(begin.encode()) + len(self._prompts.own(0)) + len(self._rest)
        headers = {
            "Host": place.authority,
            "Content-Type": "application/json",
            "Content-Length": str(length),
            **place.headers,
        }
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self._head = f"POST {_PATH} HTTP/1.1\r\n{head}\r\n{begin}".encode()

    def next(self) -> list[bytes]:
        self._number += 1
        return [self._head + self._prompts.own(self._number).encode(), self._rest]


class LoadCell:
    """One cell. `is_stopped` is called at each tick; True ends the cell, which is then cut off."""

    def __init__(self, place: EndpointAddress, offer: Offer, is_stopped: Callable[[], bool]) -> None:
        self._place = place
        self._offer = offer
        self._is_stopped = is_stopped
        self._requests = Requests(place, offer)
        self._answers: list[RequestRecord] = []
        self._measured = 0
        self._count = self._warming = self._working = offer.point.sizes[0]
        self._began: float | None = None
        self._ended: float | None = None
        self._cpu = 0.0
        self._lags: list[float] = []
        self._due = 0.0
        self._is_cut = False
        self._streams: list[Stream] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def observe(self) -> Observation:
        self._over = asyncio.get_running_loop().create_future()
        start = clock()
        self._deadline = None if self._offer.most_seconds is None else start + self._offer.most_seconds
        await self._open()
        for stream in self._streams:
            self._again(stream)
        self._due = clock() + _TICK
        ticker = asyncio.create_task(self._tick())
        try:
            await self._over
        finally:
            ticker.cancel()
            for stream in self._streams:
                stream.close()
        return Observation(
            answers=tuple(self._answers),
            window=None if self._began is None or self._ended is None else (self._began, self._ended),
            lags=tuple(self._lags),
            cpu_share=self._cpu,
            seconds=clock() - start,
            is_cut=self._is_cut,
        )

    async def _open(self) -> None:
        """Open all connections, before the clock runs."""
        self._streams = [Stream(self._end) for _ in range(self._count)]
        for batch in _batches(self._streams, _CONNECT_BATCH):
            await asyncio.gather(*map(self._connect, batch))

    async def _connect(self, stream: Stream) -> None:
        """Connect a stream. One that cannot be connected stays closed."""
        place = self._place
        try:
            await asyncio.get_running_loop().create_connection(lambda: stream, place.host, place.port, ssl=place.tls)
        except OSError as cause:
            stream.refusal = f"no connection: {cause.strerror or cause}"

    def _again(self, stream: Stream) -> None:
        if stream.is_open:
            stream.ask(self._requests.next())
            return
        task = asyncio.get_running_loop().create_task(self._reconnect(stream))
        self._tasks.add(task)  # the loop itself has only a weak reference
        task.add_done_callback(self._tasks.discard)

    async def _reconnect(self, stream: Stream) -> None:
        await self._connect(stream)
        if stream.is_open:
            stream.ask(self._requests.next())
        else:
            stream.refuse()

    def _end(self, stream: Stream, answer: RequestRecord) -> None:
        self._answers.append(answer)
        if answer.turn == 0:
            self._warming -= 1
            if self._warming == 0:
                self._begin()
        elif self._began is not None and not answer.error:
            self._measured += 1
            self._close_if_enough(answer.ended_at - self._began)
        if self._ended is None and not self._is_cut and stream.failures < _MOST_FAILURES:
            self._again(stream)
            return
        self._working -= 1
        if self._working == 0:
            self._finish()

    def _begin(self) -> None:
        self._began = clock()
        self._lags.clear()
        self._cpu_began = time.process_time()

    def _close_if_enough(self, seconds: float) -> None:
        offer = self._offer
        is_full = self._measured >= offer.requests and seconds >= offer.least_seconds
        if is_full or seconds >= offer.window_seconds:
            self._close()

    def _close(self) -> None:
        """End the window. No stream sends another request; those in flight are waited for."""
        if self._ended is None and self._began is not None:
            self._ended = clock()
            self._lags.append(max(self._ended - self._due, 0.0))  # the delay of the timer that has not fired yet
            self._cpu = (time.process_time() - self._cpu_began) / max(self._ended - self._began, 1e-9)

    def _finish(self) -> None:
        self._close()
        if not self._over.done():
            self._over.set_result(None)

    async def _tick(self) -> None:
        while True:
            self._due = clock() + _TICK
            await asyncio.sleep(_TICK)
            now = clock()
            if self._ended is None:
                self._lags.append(max(now - self._due, 0.0))
            if self._began is not None:
                self._close_if_enough(now - self._began)
            if self._is_stopped() or (self._deadline is not None and now >= self._deadline):
                self._cut()
            for stream in self._streams:
                if stream.asked_at is not None and now - stream.asked_at > _TIMEOUT:
                    stream.abort(f"no end within {_TIMEOUT:.0f} seconds")

    def _cut(self) -> None:
        self._is_cut = True
        self._finish()


def _batches(streams: list[Stream], size: int) -> Iterator[list[Stream]]:
    for begin in range(0, len(streams), size):
        yield streams[begin : begin + size]
