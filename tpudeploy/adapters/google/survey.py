"""Survey what Google offers before any request. Each fact is read by itself, in parallel; some are cached on disk."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

from tpudeploy.adapters.google import access, billing, network, quotas
from tpudeploy.adapters.google.connect import CloudConnection
from tpudeploy.adapters.google.offers import OFFERS, offers
from tpudeploy.adapters.google.safe_read import SafeReader, safe_read
from tpudeploy.adapters.google.typed_reads import runtime_versions
from tpudeploy.adapters.registry import NAME_SECONDS, Registry
from tpudeploy.adapters.state import disk
from tpudeploy.catalog.backends import BACKENDS
from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.deployment import Deployment, Provisioning
from tpudeploy.domain.errors import StateError
from tpudeploy.domain.facts import ApiFacts, Facts, Offers, Prices, QuotaLimit, Rate, Unknown, Use
from tpudeploy.domain.names import Zone
from tpudeploy.domain.project_facts import Image, ProjectFacts
from tpudeploy.ports import Clock

_DAY = 86400.0
_THREADS = 16
_PARTS = 3
_REAL = "googleapis.com"
R = TypeVar("R", Offers, Prices)


class GoogleSurvey:
    """See `ports.Survey`. Hardware and prices are cached in `folder` for a day; quota and its use are always read."""

    def __init__(self, connection: CloudConnection, clock: Clock, folder: disk.Folder) -> None:
        self._connection = connection
        self._clock = clock
        self._cache = SurveyCache(folder, source=connection.emulator_host or _REAL)

    def facts(self, project: str | None, backends: Iterable[Backend], *, refresh: bool = False) -> Facts:
        unavailable = self.lacking(project)
        with ThreadPoolExecutor() as parts, ThreadPoolExecutor(_THREADS) as pool:
            prices = parts.submit(self._prices, unavailable, refresh=refresh)
            apis = {
                backend: parts.submit(self._api_facts, project or "", backend, pool, unavailable, refresh=refresh)
                for backend in backends
            }
            return Facts(apis={backend: future.result() for backend, future in apis.items()}, prices=prices.result())

    def quota(self, project: str | None, backends: Iterable[Backend]) -> Facts:
        unavailable = self.lacking(project)
        skipped = Unknown(because="It was not requested.")
        with ThreadPoolExecutor(_THREADS) as pool:
            reader = SafeReader(pool, unavailable)
            quota = {backend: _quota(self._connection, project or "", backend, reader) for backend in backends}
            apis = {
                backend: ApiFacts(offers=skipped, limits=limits.result(), uses=uses.result())
                for backend, (limits, uses) in quota.items()
            }
        return Facts(apis=apis, prices=skipped)

    def project_facts(self, deployment: Deployment) -> ProjectFacts:
        unavailable = self.lacking(deployment.project)
        # There are two pools, because a part waits for reads of its own, and these must not wait for the part's thread.
        with ThreadPoolExecutor(_PARTS) as parts, ThreadPoolExecutor(_THREADS) as pool:
            reader = SafeReader(pool, unavailable)
            access_facts = parts.submit(access.read, self._connection, deployment, reader)
            wiring = parts.submit(network.read, self._connection, deployment, reader)
            image = parts.submit(_image, self._connection, deployment.container.image)
            runtimes = _runtimes(self._connection, deployment, pool, unavailable)
            return ProjectFacts(
                access=access_facts.result(),
                wiring=wiring.result(),
                image=image.result(),
                runtimes={zone: future.result() for zone, future in runtimes.items()},
            )

    def lacking(self, project: str | None) -> Unknown | None:
        own = safe_read("find Google credentials", self._connection.project)
        if isinstance(own, Unknown):
            return own
        hint = "Set placement.project, or GOOGLE_CLOUD_PROJECT."
        return None if project else Unknown(because="No project is named.", hint=hint, needs_person=True)

    def _api_facts(
        self,
        project: str,
        backend: Backend,
        pool: ThreadPoolExecutor,
        unavailable: Unknown | None,
        *,
        refresh: bool,
    ) -> ApiFacts:
        limits, uses = _quota(self._connection, project, backend, SafeReader(pool, unavailable))
        hardware = self._offers(project, backend, unavailable, refresh=refresh)
        return ApiFacts(offers=hardware, limits=limits.result(), uses=uses.result())

    def _offers(
        self, project: str, backend: Backend, unavailable: Unknown | None, *, refresh: bool
    ) -> Offers | Unknown:
        def read() -> Offers:
            current = offers(self._connection, project, backend, now=self._clock.now())
            if not current.silent:  # an incomplete answer is not cached
                self._cache.store(name, _dump_offers(current))
            return current

        source = OFFERS[backend]
        name = f"{source.cache}-{project.replace(':', '_')}"
        cached = self._cache.get(name, _load_offers) if project else None
        if cached is not None and not refresh and self._is_fresh(cached):
            return cached
        offers_now = (
            safe_read(source.action, read, role=BACKENDS[backend].viewer_role) if unavailable is None else unavailable
        )
        return _or_stale(cached, offers_now)

    def _prices(self, unavailable: Unknown | None, *, refresh: bool) -> Prices | Unknown:
        def read() -> Prices:
            current = Prices(rates=billing.rates(self._connection), read_at=self._clock.now())
            self._cache.store("prices", _dump_prices(current))
            return current

        cached = self._cache.get("prices", _load_prices)
        if cached is not None and not refresh and self._is_fresh(cached):
            return cached
        prices_now = safe_read("read the billing catalogue", read) if unavailable is None else unavailable
        return _or_stale(cached, prices_now)

    def _is_fresh(self, cached: Offers | Prices) -> bool:
        return is_fresh(cached.read_at, self._clock.now(), most=_DAY)


def _or_stale(cached: R | None, current: R | Unknown) -> R | Unknown:
    """Return the current value, or the cached one with the reason why the current value cannot be read."""
    if cached is not None and isinstance(current, Unknown):
        return replace(cached, stale=current)
    return current


def _image(connection: CloudConnection, reference: str) -> Image | Unknown:
    timeout = min(connection.timeout, NAME_SECONDS)
    registry = Registry(connection.registry, connection.token, timeout=timeout, allow=connection.may_be_registry)
    return safe_read(f"look up {reference}", lambda: registry.image(reference))


def _runtimes(
    connection: CloudConnection, deployment: Deployment, pool: ThreadPoolExecutor, unavailable: Unknown | None
) -> Mapping[Zone, Future[frozenset[str] | Unknown]]:
    """Read the runtime versions of each zone where an API that lists them may be asked."""

    def read(zone: Zone) -> frozenset[str] | Unknown:
        return unavailable or runtime_versions(connection, deployment.project or "", zone)

    places = (candidate.place for candidate in deployment.candidates)
    zones = dict.fromkeys(place.zone for place in places if BACKENDS[place.backend].lists_runtimes)
    return {zone: pool.submit(read, zone) for zone in zones}


def _quota(
    connection: CloudConnection, project: str, backend: Backend, reader: SafeReader
) -> tuple[Future[tuple[QuotaLimit, ...] | Unknown], Future[tuple[Use, ...] | Unknown]]:
    """Read the limits at one API, and their use, in parallel."""
    limits = reader.read(
        f"read the quota of {BACKENDS[backend].api}",
        lambda: quotas.limits(connection, project, backend),
        role="roles/serviceusage.serviceUsageViewer",
    )
    uses = reader.read(
        f"list what uses the quota of {BACKENDS[backend].api}",
        lambda: quotas.uses(connection, project, backend),
        role=BACKENDS[backend].viewer_role,
    )
    return limits, uses


def _dump_offers(value: Offers) -> dict[str, Any]:
    return {"read_at": value.read_at, "types": {zone: list(types) for zone, types in value.types.items()}}


def _load_offers(tree: Mapping[str, Any]) -> Offers:
    """Return the offers in a tree. Raise ValueError, KeyError, TypeError or AttributeError if it is malformed."""
    types = {Zone.parse(zone): tuple(map(str, types)) for zone, types in tree["types"].items()}
    return Offers(types=types, read_at=float(tree["read_at"]))


def _dump_prices(value: Prices) -> dict[str, Any]:
    return {"read_at": value.read_at, "rates": [[r.generation, r.region, r.provisioning, r.usd] for r in value.rates]}


def _load_prices(tree: Mapping[str, Any]) -> Prices:
    """Return the prices in a tree. Raise as `offers` does."""
    rates = tuple(
        Rate(generation=str(generation), region=str(region), provisioning=Provisioning(model), usd=float(usd))
        for generation, region, model, usd in tree["rates"]
    )
    return Prices(rates=rates, read_at=float(tree["read_at"]))


T = TypeVar("T")


class SurveyCache:
    """Caches values in one folder. `source` is where they come from; values of another source are ignored."""

    def __init__(self, folder: disk.Folder, *, source: str) -> None:
        self._folder = folder
        self._source = source

    def get(self, name: str, load: Callable[[Mapping[str, Any]], T]) -> T | None:
        """Return the cached value of this name, or None where it is absent or cannot be parsed."""
        try:
            tree = json.loads(self._folder.read(f"{name}.json"))
            return load(tree["reading"]) if tree["source"] == self._source else None
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None  # the value is read again from its source, and the file is overwritten

    def store(self, name: str, value: Mapping[str, Any]) -> None:
        """Store a value, best effort: if it cannot be stored, the next run reads it again from its source."""
        text = json.dumps({"source": self._source, "reading": value}, ensure_ascii=False)
        with suppress(OSError, StateError):
            self._folder.replace(f"{name}.json", text)
            self._folder.hide_from_git()


def is_fresh(read_at: float, now: float, *, most: float) -> bool:
    """Return whether a value is younger than `most` seconds. A time in the future is not trusted."""
    return 0 <= now - read_at < most
