"""Campaigns beside the states: `.tpudeploy/campaigns/NAME.json`, or `campaigns/NAME.json` in the bucket."""

from __future__ import annotations

from collections.abc import Callable

from tpudeploy.adapters import records
from tpudeploy.domain import errors
from tpudeploy.features.campaign.record import CampaignRecord
from tpudeploy.serialization import sealed
from tpudeploy.wiring import Adapters

_FORMAT = "tpudeploy.campaign-record/1"


class StoredCampaigns:
    """The records of campaigns, each by its name."""

    def __init__(self, adapters: Adapters) -> None:
        self._store = adapters.records("campaigns")

    def place(self, name: str) -> str:
        return self._store.place(name)

    def keep(self, record: CampaignRecord, prove: Callable[[], None]) -> CampaignRecord:
        """Write a record and return it. Raise `errors.StateError` where it cannot be written, and as `prove` does."""
        self._store.keep(record.name, sealed.dumps(record, _FORMAT), prove=prove)
        return record

    def read(self, name: str) -> CampaignRecord | None:
        """Return the record of a campaign, or None before it began. Raise `errors.RunUnreadable`."""
        return self._read(name) if name in self._store.ids() else None

    def find(self, name: str) -> CampaignRecord:
        """Return the record of a campaign, by its name or the beginning of it. Raise `errors.UsageError`."""
        hint = "`tpudeploy campaign GRID.yaml` begins one."
        return self._read(records.find_id(self._store.ids(), name, "campaign", hint=hint))

    def _read(self, name: str) -> CampaignRecord:
        try:
            return sealed.loads(CampaignRecord, self._store.read(name), _FORMAT)
        except ValueError as cause:
            raise errors.RunUnreadable(f"{self.place(name)} is not a readable campaign: {cause}.") from cause
