"""A closed loop against the stand-in, computed step by step: streams that each send the next request once answered.

The product's load client requests it instead of sending all prompts, so that a cell has the same figures at any speed
of the emulator's time and under any load of this machine. The scheduler is that of vLLM's V1 engine, as far as needed
here: requests that decode first, chunks of prompts in the rest of the step's budget, first come, first served.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import ceil
from typing import Any

from tpudeploy.emulator.machine.vllm.performance import API_SECONDS, Performance

_MOST_STREAMS, _MOST_TOKENS = 8192, 1 << 20
_MOST_STEPS = 2_000_000


@dataclass(slots=True)
class LoopRequest:
    """One request of a stream: the time it was sent, the rest of its prompt in tokens, its first and last step."""

    stream: int
    turn: int
    sent_at: float
    rest: int
    first: int = -1
    last: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopOffer:
    """What a load client asks for, in the words of its own offer."""

    streams: int
    context: int
    output: int
    requests: int
    window_seconds: float
    least_seconds: float
    seed: int

    @classmethod
    def read(cls, body: Mapping[str, Any]) -> LoopOffer:
        """Raise KeyError, TypeError or ValueError for another body."""
        offer = cls(
            streams=int(body["streams"]),
            context=int(body["context"]),
            output=int(body["output"]),
            requests=int(body["requests"]),
            window_seconds=float(body["window_seconds"]),
            least_seconds=float(body["least_seconds"]),
            seed=int(body["seed"]),
        )
        if not 1 <= offer.streams <= _MOST_STREAMS or not 1 <= offer.context + offer.output <= _MOST_TOKENS:
            raise ValueError("streams and tokens are out of range")
        return offer


@dataclass(slots=True)
class _Loop:
    performance: Performance
    offer: LoopOffer
    factor: float
    now: float = 0.0
    steps: list[float] = field(default_factory=list)
    arriving: list[tuple[float, int, LoopRequest]] = field(default_factory=list)
    waiting: deque[LoopRequest] = field(default_factory=deque)
    prefills: deque[LoopRequest] = field(default_factory=deque)
    ending: list[tuple[int, int, LoopRequest]] = field(default_factory=list)
    answers: list[LoopRequest] = field(default_factory=list)
    count: int = 0
    context: int = 0  # tokens in the cache of the requests that decode
    warming: int = 0
    measured: int = 0
    began: float | None = None
    ended: float | None = None

    def play(self) -> None:
        capacity = self.performance.at_once(self.offer.context + self.offer.output)
        if capacity < 1:
            return  # not one request fits: the engine would wait for ever
        self.warming = self.offer.streams
        for stream in range(self.offer.streams):
            self._send(stream, 0, 0.0)
        while (self.arriving or self.waiting or self.prefills or self.ending) and len(self.steps) < _MOST_STEPS:
            self._receive()
            while self.waiting and len(self.prefills) + len(self.ending) < capacity:
                self.prefills.append(self.waiting.popleft())
            self._step()

    def _send(self, stream: int, turn: int, moment: float) -> None:
        self.count += 1
        request = LoopRequest(stream, turn, moment, self.offer.context)
        heappush(self.arriving, (moment + API_SECONDS / 2, self.count, request))

    def _receive(self) -> None:
        is_idle = not (self.waiting or self.prefills or self.ending)
        if is_idle and self.arriving:
            self.now = max(self.now, self.arriving[0][0])
        while self.arriving and self.arriving[0][0] <= self.now:
            self.waiting.append(heappop(self.arriving)[2])

    def _step(self) -> None:
        performance, decoding = self.performance, len(self.ending)
        budget = max(0, performance.batched_tokens - decoding * (1 + performance.proposed))
        computed, complete = 0, []
        while self.prefills and budget > computed:
            request = self.prefills[0]
            part = min(request.rest, budget - computed)
            request.rest -= part
            computed += part
            if request.rest == 0:
                complete.append(self.prefills.popleft())
        self.now += performance.step_seconds(computed, decoding, self.context) * self.factor
        self.steps.append(self.now)
        place = len(self.steps) - 1
        self.context += round(decoding * performance.tokens_per_step)
        for request in complete:
            request.first = place
            later = ceil((self.offer.output - 1) / performance.tokens_per_step)
            request.last = place + later
            self.context += self.offer.context + 1
            self.count += 1
            heappush(self.ending, (request.last, self.count, request))
        while self.ending and self.ending[0][0] <= place:
            self._end(heappop(self.ending)[2])
        if not self.ending:
            self.context = 0

    def _end(self, request: LoopRequest) -> None:
        moment = self.now + API_SECONDS / 2
        self.context = max(0, self.context - self.offer.context - self.offer.output)
        self.answers.append(request)
        if request.turn == 0:
            self.warming -= 1
            if self.warming == 0:
                self.began = moment
        elif self.began is not None:
            self.measured += 1
        if self.began is not None and self.ended is None:
            self._close_if_enough(moment)
        if self.ended is None:
            self._send(request.stream, request.turn + 1, moment)

    def _close_if_enough(self, moment: float) -> None:
        assert self.began is not None
        seconds = moment - self.began
        is_full = self.measured >= self.offer.requests and seconds >= self.offer.least_seconds
        if is_full or seconds >= self.offer.window_seconds:
            self.ended = moment


def play(performance: Performance, offer: LoopOffer, moment: float) -> dict[str, Any]:
    """Return the observations of a load client from `moment` on, in seconds since then.

    `steps` are the moments at which pieces of answers arrive, `answers` are [turn, sent, first step, last step]. A
    server of several ranks spreads the streams over them. The ranks work alike, so one of them is computed.
    """
    ranks = min(performance.ranks, offer.streams)
    share = LoopOffer(
        streams=-(-offer.streams // ranks),
        context=offer.context,
        output=offer.output,
        requests=-(-offer.requests // ranks),
        window_seconds=offer.window_seconds,
        least_seconds=offer.least_seconds,
        seed=offer.seed,
    )
    loop = _Loop(performance, share, performance.factor(moment, offer.seed, share.streams))
    loop.play()
    answers = [
        [request.turn, round(request.sent_at, 6), request.first, request.last]
        for rank in range(ranks)
        for request in loop.answers
        if request.stream * ranks + rank < offer.streams
    ]
    window = None if loop.began is None or loop.ended is None else [loop.began, loop.ended]
    steps = [round(step + API_SECONDS / 2, 6) for step in loop.steps]
    return {"window": window, "steps": steps, "answers": answers, "seconds": steps[-1] if steps else 0.0}


def first_token_seconds(performance: Performance, tokens: int, running: int) -> float:
    """Return how long the first token takes of a prompt that is computed beside other requests."""
    seconds, rest = API_SECONDS, tokens
    while rest > 0:
        part = min(rest, max(1, performance.batched_tokens - running))
        seconds += performance.step_seconds(part, running - 1, tokens * (running - 1))
        rest -= part
    return seconds
