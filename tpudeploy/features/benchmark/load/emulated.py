"""EmulatedLoad: implements `ports.LoadDriver` for the emulator's stand-in, in the emulator's time.

At 120 times the speed, a real client's own delay of 10 ms would count as 1.2 s, and no cell could be trusted. So the
stand-in computes what a client would observe in the whole cell, and this one waits for that long. The figures follow as
from any observation. The load is real where the stand-in answers at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tpudeploy.adapters.vllm_client import BadAnswer, NoAnswer, VllmClient
from tpudeploy.domain.errors import QueryFailed
from tpudeploy.features.benchmark.measure import figures, of_client
from tpudeploy.features.benchmark.offer import Observation, Offer, RequestRecord
from tpudeploy.features.benchmark.ports import LoadDriver
from tpudeploy.features.benchmark.run import Evidence, Measured, Slo
from tpudeploy.ports import Clock


class EmulatedLoad:
    """See `ports.LoadDriver`. `real` drives the load where the server is no stand-in, or answers at once."""

    def __init__(self, url: str, clock: Clock, real: LoadDriver, *, api_key: str | None = None) -> None:
        self._client = VllmClient(url, api_key=api_key)
        self._clock = clock
        self._real = real

    def stop(self) -> None:
        """Stop the real load. The clock, which is stopped with it, ends the wait for an emulated one."""
        self._real.stop()

    def check(self) -> None:
        self._real.check()

    def measure(self, offer: Offer, slo: Slo) -> Measured:
        streams, context, output = offer.point.sizes
        body = {
            "streams": streams,
            "context": context,
            "output": output,
            "requests": offer.requests,
            "window_seconds": offer.window_seconds,
            "least_seconds": offer.least_seconds,
            "seed": offer.seed,
        }
        try:
            loop = self._client.emulated_loop(body)
        except NoAnswer:
            loop = None  # a real load says what a server that does not answer does
        except BadAnswer as cause:
            raise QueryFailed(f"The stand-in at {self._client.url} did not answer: {cause}") from cause
        if loop is None:
            return self._real.measure(offer, slo)
        observation = observation_of(loop, offer)
        seconds = observation.seconds
        is_cut = offer.most_seconds is not None and seconds > offer.most_seconds
        self._clock.sleep(seconds if offer.most_seconds is None else min(seconds, offer.most_seconds))
        if is_cut or observation.window is None:
            return Measured(figures=None, evidence=Evidence(), errors={}, seconds=seconds, is_cut=True)
        return Measured(figures=figures(observation, slo), evidence=of_client(observation), errors={}, seconds=seconds)


def observation_of(loop: Mapping[str, Any], offer: Offer) -> Observation:
    """Return the stand-in's account of a cell as an observation."""
    _, context, output = offer.point.sizes
    steps: Sequence[float] = loop["steps"]
    answers = tuple(
        RequestRecord(
            turn=turn,
            sent_at=sent_at,
            ended_at=steps[last],
            arrivals=tuple(steps[first : last + 1]),
            prompt_tokens=context,
            output_tokens=output,
        )
        for turn, sent_at, first, last in loop["answers"]
    )
    window = loop["window"]
    return Observation(
        answers=answers,
        window=None if window is None else (window[0], window[1]),
        lags=(),
        cpu_share=0.0,
        seconds=float(loop["seconds"]),
    )
