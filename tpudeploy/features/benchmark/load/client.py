"""LoadClient: implements `ports.LoadDriver` in one thread with uvloop and httptools.

It is measured (tests/bench/load.py) against a server with known latencies. Of the alternatives, aiohttp measures the
time to the first token at 2,048 streams 10 to 25 % too long, and httpx several times too long; h11 on plain asyncio is
right, with a third of the headroom.
"""

from __future__ import annotations

import resource
import ssl
import threading
from urllib.parse import urlsplit

from tpudeploy.domain import errors
from tpudeploy.features.benchmark.measure import errors as errors_of
from tpudeploy.features.benchmark.measure import figures, of_client
from tpudeploy.features.benchmark.offer import Observation, Offer
from tpudeploy.features.benchmark.run import Evidence, Measured, Slo

_PORTS = {"http": 80, "https": 443}
_SPARE = 64  # open files in addition to the connections


class LoadClient:
    """See `ports.LoadDriver`. `url` is http://host:port, without a path; `api_key` goes with each request."""

    def __init__(self, url: str, *, api_key: str | None = None) -> None:
        self._url = url
        self._headers = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}
        self._stopped = threading.Event()

    def stop(self) -> None:
        self._stopped.set()

    def check(self) -> None:
        try:
            import uvloop  # noqa: F401 - only checks that it is installed

            from tpudeploy.features.benchmark.load import cell  # noqa: F401 - and its requirements
        except ImportError as cause:
            from tpudeploy.adapters.extras import install_command

            raise errors.UsageError(
                f"The load client needs {cause.name}, which is not installed.",
                hint=f"Run: {install_command('bench')}\nOr measure with an installed client: --driver vllm.",
            ) from cause

    def measure(self, offer: Offer, slo: Slo) -> Measured:
        observation = self.observe(offer)
        if self._stopped.is_set():
            raise errors.Interrupted("Interrupted.")
        error_counts = errors_of(observation.answers)
        if observation.is_cut or observation.window is None:
            return Measured(
                figures=None, evidence=Evidence(), errors=error_counts, seconds=observation.seconds, is_cut=True
            )
        return Measured(
            figures=figures(observation, slo),
            evidence=of_client(observation),
            errors=error_counts,
            seconds=observation.seconds,
        )

    def observe(self, offer: Offer) -> Observation:
        """Return the samples of one cell. A cell that `stop` ends is cut off."""
        self.check()
        import uvloop

        from tpudeploy.features.benchmark.load.cell import EndpointAddress, LoadCell

        _make_room(offer.point.sizes[0] + _SPARE)
        where = urlsplit(self._url)
        place = EndpointAddress(
            host=where.hostname or "",
            port=where.port or _PORTS.get(where.scheme, 80),
            authority=where.netloc,
            tls=ssl.create_default_context() if where.scheme == "https" else None,
            headers=self._headers,
        )
        loop = uvloop.new_event_loop()
        try:
            return loop.run_until_complete(LoadCell(place, offer, self._stopped.is_set).observe())
        finally:
            loop.run_until_complete(loop.shutdown_default_executor())  # the threads that resolve names
            loop.close()


def _make_room(files: int) -> None:
    """Raise the limit of open files: each connection is one, and many systems allow only 1,024 by default."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < files:
        most = files if hard == resource.RLIM_INFINITY else min(files, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    if hard != resource.RLIM_INFINITY and hard < files:
        raise errors.UsageError(
            f"{files} files must be open at once, and this system allows {hard}.",
            hint="Raise it (ulimit -Hn, /etc/security/limits.conf), or use fewer streams.",
        )
