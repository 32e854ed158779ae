"""Survey: everything that Google tells before anything is asked of it, each fact read by itself, all at once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from tpudeploy.adapters.google import billing, keeping, quotas, surroundings
from tpudeploy.adapters.google.connect import Connection
from tpudeploy.adapters.google.offers import offers
from tpudeploy.adapters.google.told import told
from tpudeploy.adapters.kept import Kept, is_fresh
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.facts import Facts, Limit, Offers, Prices, Unknown, Use
from tpudeploy.domain.surroundings import Surroundings
from tpudeploy.ports import Clock

_DAY = 86400.0
_REAL = "googleapis.com"
R = TypeVar("R", Offers, Prices)


class GoogleSurvey:
    """See `ports.Survey`. Hardware and prices are kept in `folder` for a day; quota and what is held are read anew."""

    def __init__(self, connection: Connection, clock: Clock, folder: Path) -> None:
        self._connection = connection
        self._clock = clock
        self._kept = Kept(folder, source=connection.emulator_host or _REAL)

    def facts(self, project: str | None, *, refresh: bool = False) -> Facts:
        lacking = self.lacking(project)
        connection, in_project = self._connection, project or ""
        with ThreadPoolExecutor() as pool:
            hardware = pool.submit(self._offers, in_project, lacking, refresh=refresh)
            prices = pool.submit(self._prices, lacking, refresh=refresh)
            if lacking is not None:
                return Facts(offers=hardware.result(), limits=lacking, uses=lacking, prices=prices.result())
            limits = pool.submit(_limits, connection, in_project)
            uses = pool.submit(_uses, connection, in_project)
            return Facts(offers=hardware.result(), limits=limits.result(), uses=uses.result(), prices=prices.result())

    def quota(self, project: str | None) -> Facts:
        lacking = self.lacking(project)
        left_out = Unknown(because="Nobody asked.")
        if lacking is not None or project is None:
            return Facts(offers=left_out, limits=lacking or left_out, uses=lacking or left_out, prices=left_out)
        limits, uses = _limits(self._connection, project), _uses(self._connection, project)
        return Facts(offers=left_out, limits=limits, uses=uses, prices=left_out)

    def surroundings(self, deployment: Deployment) -> Surroundings:
        return surroundings.read(self._connection, deployment, lacking=self.lacking(deployment.project))

    def lacking(self, project: str | None) -> Unknown | None:
        own = told("find Google credentials", self._connection.project)
        if isinstance(own, Unknown):
            return own
        hint = "Set placement.project, or GOOGLE_CLOUD_PROJECT."
        return None if project else Unknown(because="No project is named.", hint=hint, needs_person=True)

    def _offers(self, project: str, lacking: Unknown | None, *, refresh: bool) -> Offers | Unknown:
        def read() -> Offers:
            found = offers(self._connection, project, now=self._clock.now())
            if not found.silent:  # what is not whole is not kept
                self._kept.put(name, keeping.offers_tree(found))
            return found

        name = f"offers-{project.replace(':', '_')}"
        known = self._kept.get(name, keeping.offers) if project else None
        return self._anew(known, lacking or (lambda: told("list the zones", read, role="roles/tpu.viewer")), refresh)

    def _prices(self, lacking: Unknown | None, *, refresh: bool) -> Prices | Unknown:
        def read() -> Prices:
            found = Prices(rates=billing.rates(self._connection), read_at=self._clock.now())
            self._kept.put("prices", keeping.prices_tree(found))
            return found

        known = self._kept.get("prices", keeping.prices)
        return self._anew(known, lacking or (lambda: told("read the billing catalogue", read)), refresh)

    def _anew(self, known: R | None, read: Unknown | Callable[[], R | Unknown], refresh: bool) -> R | Unknown:
        """What is known, while it is fresh; else what is read; what is known again where that fails."""
        if known is not None and not refresh and is_fresh(known.read_at, self._clock.now(), most=_DAY):
            return known
        found = read if isinstance(read, Unknown) else read()
        return replace(known, stale=found) if known is not None and isinstance(found, Unknown) else found


def _limits(connection: Connection, project: str) -> tuple[Limit, ...] | Unknown:
    role = "roles/serviceusage.serviceUsageViewer"
    return told("read the quota", lambda: quotas.limits(connection, project), role=role)


def _uses(connection: Connection, project: str) -> tuple[Use, ...] | Unknown:
    return told("list what is held", lambda: quotas.uses(connection, project), role="roles/tpu.viewer")
