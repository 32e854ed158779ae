"""Survey what Google offers before any request. Each fact is read by itself, in parallel; some are cached on disk."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from tpudeploy.adapters.google import access, billing, network, quotas
from tpudeploy.adapters.google.connect import Connection
from tpudeploy.adapters.google.offers import offers
from tpudeploy.adapters.google.safe_read import SafeReader, safe_read
from tpudeploy.adapters.google.typed_reads import runtime_versions
from tpudeploy.adapters.registry import Registry
from tpudeploy.adapters.state import disk
from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.deployment import Deployment, Provisioning
from tpudeploy.domain.errors import StateError
from tpudeploy.domain.facts import Facts, Limit, Offers, Prices, Rate, Unknown, Use
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

    def __init__(self, connection: Connection, clock: Clock, folder: Path) -> None:
        self._connection = connection
        self._clock = clock
        self._cache = Cache(folder, source=connection.emulator_host or _REAL)

    def facts(self, project: str | None, *, refresh: bool = False) -> Facts:
        unavailable = self.lacking(project)
        connection, in_project = self._connection, project or ""
        with ThreadPoolExecutor() as pool:
            hardware = pool.submit(self._offers, in_project, unavailable, refresh=refresh)
            prices = pool.submit(self._prices, unavailable, refresh=refresh)
            if unavailable is not None:
                return Facts(offers=hardware.result(), limits=unavailable, uses=unavailable, prices=prices.result())
            limits = pool.submit(_limits, connection, in_project)
            uses = pool.submit(_uses, connection, in_project)
            return Facts(offers=hardware.result(), limits=limits.result(), uses=uses.result(), prices=prices.result())

    def quota(self, project: str | None) -> Facts:
        unavailable = self.lacking(project)
        skipped = Unknown(because="It was not requested.")
        if unavailable is not None or project is None:
            return Facts(offers=skipped, limits=unavailable or skipped, uses=unavailable or skipped, prices=skipped)
        limits, uses = _limits(self._connection, project), _uses(self._connection, project)
        return Facts(offers=skipped, limits=limits, uses=uses, prices=skipped)

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

    def _offers(self, project: str, unavailable: Unknown | None, *, refresh: bool) -> Offers | Unknown:
        def read() -> Offers:
            current = offers(self._connection, project, now=self._clock.now())
            if not current.silent:  # an incomplete answer is not cached
                self._cache.store(name, _dump_offers(current))
            return current

        name = f"offers-{project.replace(':', '_')}"
        cached = self._cache.get(name, _load_offers) if project else None
        if cached is not None and not refresh and self._is_fresh(cached):
            return cached
        offers_now = safe_read("list the zones", read, role="roles/tpu.viewer") if unavailable is None else unavailable
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


def _image(connection: Connection, reference: str) -> Image | Unknown:
    registry = Registry(connection.registry, connection.token, timeout=connection.timeout)
    return safe_read(f"look up {reference}", lambda: registry.image(reference))


def _runtimes(
    connection: Connection, deployment: Deployment, pool: ThreadPoolExecutor, unavailable: Unknown | None
) -> Mapping[Zone, Future[frozenset[str] | Unknown]]:
    """Read the runtime versions of each zone where the TPU API may be asked. An instance has an image family."""

    def read(zone: Zone) -> frozenset[str] | Unknown:
        return unavailable or runtime_versions(connection, deployment.project or "", zone)

    places = (candidate.place for candidate in deployment.candidates)
    zones = dict.fromkeys(place.zone for place in places if place.backend is Backend.QUEUED_RESOURCE)
    return {zone: pool.submit(read, zone) for zone in zones}


def _limits(connection: Connection, project: str) -> tuple[Limit, ...] | Unknown:
    role = "roles/serviceusage.serviceUsageViewer"
    return safe_read("read the quota", lambda: quotas.limits(connection, project), role=role)


def _uses(connection: Connection, project: str) -> tuple[Use, ...] | Unknown:
    return safe_read("list what is held", lambda: quotas.uses(connection, project), role="roles/tpu.viewer")


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


class Cache:
    """Caches values in one folder. `source` is where they come from; values of another source are ignored."""

    def __init__(self, folder: Path, *, source: str) -> None:
        self._folder = folder
        self._source = source

    def get(self, name: str, load: Callable[[Mapping[str, Any]], T]) -> T | None:
        """Return the cached value of this name, or None where it is absent or cannot be parsed."""
        try:
            tree = json.loads((self._folder / f"{name}.json").read_text(encoding="utf-8"))
            return load(tree["reading"]) if tree["source"] == self._source else None
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None  # the value is read again from its source, and the file is overwritten

    def store(self, name: str, value: Mapping[str, Any]) -> None:
        """Store a value, best effort: if it cannot be stored, the next run reads it again from its source."""
        text = json.dumps({"source": self._source, "reading": value}, ensure_ascii=False)
        with suppress(OSError, StateError):
            disk.replace(self._folder / f"{name}.json", text)
            disk.hide_from_git(self._folder)


def is_fresh(read_at: float, now: float, *, most: float) -> bool:
    """Return whether a value is younger than `most` seconds. A time in the future is not trusted."""
    return 0 <= now - read_at < most
