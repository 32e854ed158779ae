"""How a rehearsal looks at an instance that runs: when Google ends its run, and how it is listed and changed.

Nothing is changed here. The one change that is sent has a wrong fingerprint and the labels that the instance has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tpudeploy.adapters.google.body import moment
from tpudeploy.adapters.google.compute_engine.instances import ComputeEngine
from tpudeploy.adapters.google.connect import Connection
from tpudeploy.adapters.google.rehearsal_reads import look_safely
from tpudeploy.adapters.google.safe_read import safe_read
from tpudeploy.adapters.google.translate import Absent, Precondition, translate_errors
from tpudeploy.domain.facts import Unknown
from tpudeploy.domain.orphans import is_label_of_ours
from tpudeploy.domain.slices import SliceRef
from tpudeploy.ports import Clock
from tpudeploy.rehearsal.findings import Finding, compare, not_seen

_GOOGLES = "goog-"  # as in node/node_facts.py
_UNUSED_NAMESPACE = "tpudeploy-unused/"
_WRONG_FINGERPRINT = "AAAAAAAAAAA="


class RunningInstance:
    """One instance of a rehearsal."""

    def __init__(self, connection: Connection, ref: SliceRef, clock: Clock) -> None:
        self._connection = connection
        self._ref = ref
        self._clock = clock

    def look_at_run(self) -> Finding:
        """Return whether Google shows when it ends the run."""
        return look_safely("instance-run", self._run)

    def look(self) -> Iterator[Finding]:
        """Yield what is seen of the other facts about an instance that is up."""
        yield look_safely("instance-listed", self._listed)
        yield look_safely("instance-labels", self._labels)
        yield look_safely("instance-attributes-absent", self._absent_attributes)
        yield look_safely("instance-fingerprint", self._fingerprint)

    def look_at_end(self, seconds_late: float) -> Finding:
        """Return whether Google has deleted the instance, this time after the end of its run."""
        item = safe_read("look for it", self._get)
        if isinstance(item, Unknown):
            return not_seen("instance-run-end", item.because)
        observation = (
            f"Deleted within {max(0.0, seconds_late):.0f} s of the end of its run."
            if item is None
            else f"It is {item.get('status')} {seconds_late:.0f} s after the end of its run."
        )
        return compare("instance-run-end", is_as_believed=item is None, observation=observation)

    def is_absent(self) -> bool:
        """Return whether the instance is certainly gone."""
        return safe_read("look for it", self._get) is None

    def run_end(self) -> float | None:
        """Return when Google ends the run, in seconds since the epoch. Raise `errors.CloudError`."""
        return moment(self._shown_end())

    def _shown_end(self) -> str | None:
        item = self._get() or {}
        end: str | None = item.get("resourceStatus", {}).get("scheduling", {}).get("terminationTimestamp")
        return end

    def _run(self) -> Finding:
        end = self._shown_end()
        observation = f"It ends at {end}." if end else "No end is shown."
        return compare("instance-run", is_as_believed=bool(end), observation=observation)

    def _listed(self) -> Finding:
        listing = ComputeEngine(self._connection, self._clock).list_marked(self._ref.project, [self._ref.zone])
        is_listed = any(resource.ref.name == self._ref.name for resource in listing.resources)
        is_whole = not listing.looked_in  # where one list is not answered, each zone is listed by itself
        observation = "Listed." if is_listed else "Not listed."
        return compare("instance-listed", is_as_believed=is_listed and is_whole, observation=observation)

    def _labels(self) -> Finding:
        item = self._get()
        if item is None:
            return not_seen("instance-labels", "The instance is absent.")
        more = sorted(key for key in item.get("labels", {}) if not is_label_of_ours(key))
        is_as_believed = all(key.startswith(_GOOGLES) for key in more)
        observation = f"It also has {', '.join(more)}." if more else "It has those that were sent."
        return compare("instance-labels", is_as_believed=is_as_believed, observation=observation)

    def _absent_attributes(self) -> Finding:
        fact = "instance-attributes-absent"
        call = self._instances().getGuestAttributes(**self._path(), queryPath=_UNUSED_NAMESPACE)
        try:
            with translate_errors("read the guest attributes"):
                call.execute(num_retries=0)
        except Absent as cause:
            return compare(fact, is_as_believed=True, observation=f"404: {cause}")
        except Precondition as cause:
            return compare(fact, is_as_believed=False, observation=str(cause))
        return compare(fact, is_as_believed=False, observation="An answer without values.")

    def _fingerprint(self) -> Finding:
        fact, item = "instance-fingerprint", self._get()
        if item is None:
            return not_seen(fact, "The instance is absent.")
        body = {"labels": item.get("labels", {}), "labelFingerprint": _WRONG_FINGERPRINT}
        try:
            with translate_errors("send a wrong fingerprint"):
                self._instances().setLabels(**self._path(), body=body).execute(num_retries=0)
        except Precondition as cause:
            return compare(fact, is_as_believed=True, observation=f"Refused: {cause}")
        return compare(fact, is_as_believed=False, observation="It was taken.")

    def _get(self) -> Mapping[str, Any] | None:
        try:
            with translate_errors(f"look at {self._ref.name}"):
                item: dict[str, Any] = self._instances().get(**self._path()).execute(num_retries=0)
                return item
        except Absent:
            return None

    def _path(self) -> dict[str, str]:
        return {"project": self._ref.project, "zone": self._ref.zone, "instance": self._ref.name}

    def _instances(self) -> Any:
        return self._connection.collection("compute", "v1", "instances")
