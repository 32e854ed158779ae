"""How a rehearsal looks at a request while it waits: what Google lists of it, and what it answers to a repetition.

Nothing is requested here but the recorded request once more, under the same name and request id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tpudeploy.adapters.google import lists, typed_reads
from tpudeploy.adapters.google.connect import CloudConnection
from tpudeploy.adapters.google.safe_read import pages, safe_read_optional
from tpudeploy.adapters.google.translate import Absent, Exists, PreconditionFailed, translate_errors
from tpudeploy.domain import errors
from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.facts import Unknown
from tpudeploy.domain.slices import SliceRef
from tpudeploy.features.rehearsal import FactFinding, compare, not_seen
from tpudeploy.features.rehearsal.reads import look_safely
from tpudeploy.features.rehearsal.recorder import Recorder
from tpudeploy.features.rehearsal.redaction import Exchange

_QUEUES = frozenset({"CREATING", "ACCEPTED", "WAITING_FOR_RESOURCES", "PENDING"})
_SENT_EARLIER = "The request was sent by an earlier run."
_WAITING = frozenset({"ACCEPTED", "WAITING_FOR_RESOURCES", "PENDING"})


class WaitingRequest:
    """One request of a rehearsal that is to be looked at before it is granted."""

    def __init__(self, connection: CloudConnection, ref: SliceRef, recorder: Recorder) -> None:
        self._connection = connection
        self._ref = ref
        self._recorder = recorder

    @property
    def is_instance(self) -> bool:
        return self._ref.backend is Backend.GCE_INSTANCE

    def state(self) -> str:
        """Return Google's state, "" where it lists none. Raise `errors.CloudError`."""
        item = self._get()
        if item is None:
            return ""
        return str(item.get("status", "")) if self.is_instance else str(item.get("state", {}).get("state", ""))

    def is_waiting(self) -> bool:
        """Return whether it is listed as waiting for capacity. An instance may wait without being listed."""
        return self.state() in _WAITING

    def was_granted(self) -> bool:
        """Return whether its machine is being created, or is there."""
        return self.state() not in {"", *_QUEUES}

    def look(self) -> Iterator[FactFinding]:
        """Yield what is seen of each fact about a waiting request."""
        for fact, see in self._looks().items():
            yield look_safely(fact, see)

    def look_at_deletion(self, seconds: float, most: float) -> FactFinding:
        """Return what is seen once it was deleted, after this time."""
        fact = "insert-deletion" if self.is_instance else "queue-deletion"
        answer = safe_read_optional("look for it", self._get)
        if isinstance(answer, Unknown):
            return not_seen(fact, answer.because)
        is_gone = answer is None
        observation = (
            f"Gone {seconds / 60:.0f} min after the deletion was requested." if is_gone else "It is still listed."
        )
        return compare(fact, is_as_believed=is_gone and seconds <= most, observation=observation)

    def _looks(self) -> Mapping[str, Callable[[], FactFinding]]:
        if self.is_instance:
            return {
                "insert-listed": self._instance_state,
                "insert-open": self._insert_open,
                "insert-by-request-id": self._by_request_id,
                "insert-repeat": self._repeat_insert,
            }
        return {
            "queue-listed": self._compare_list,
            "queue-disk": self._disk,
            "queue-no-node": self._no_node,
            "queue-repeat": self._repeat_queue,
        }

    def _get(self) -> Mapping[str, Any] | None:
        ref = self._ref
        try:
            with translate_errors(f"look at {ref.name}"):
                if self.is_instance:
                    calls = self._connection.collection("compute", "v1", "instances")
                    call = calls.get(project=ref.project, zone=ref.zone, instance=ref.name)
                else:
                    calls = self._connection.collection("tpu", "v2alpha1", "projects", "locations", "queuedResources")
                    call = calls.get(name=f"{lists.parent_of(ref.project, ref.zone)}/queuedResources/{ref.name}")
                item: dict[str, Any] = call.execute(num_retries=0)
                return item
        except Absent:
            return None

    def _original(self) -> Exchange | None:
        return self._recorder.last_create("instances" if self.is_instance else "queuedResources")

    def _compare_list(self) -> FactFinding:
        fact = "queue-listed"
        items, _ = lists.list_all(
            self._connection, "queuedResources", lists.parent_of(self._ref.project, self._ref.zone)
        )
        item = next((each for each in items if lists.zone_and_id(each["name"])[1] == self._ref.name), None)
        original = self._original()
        if item is None:
            return compare(fact, is_as_believed=False, observation="The list does not have it.")
        if original is None:
            return not_seen(fact, _SENT_EARLIER)
        missing = [path for path, value in _leaves(original.body) if not _has(item, path, value)]
        observation = (
            f"The list does not show {', '.join(missing)}." if missing else "The list shows all that was sent."
        )
        return compare(fact, is_as_believed=not missing, observation=observation)

    def _disk(self) -> FactFinding:
        item = self._get() or {}
        specs = item.get("tpu", {}).get("nodeSpec", ())
        sizes = [spec.get("node", {}).get("bootDiskConfig", {}).get("diskSizeGb") for spec in specs]
        return compare("queue-disk", is_as_believed=all(sizes) and bool(sizes), observation=f"It shows {sizes} GB.")

    def _no_node(self) -> FactFinding:
        node = typed_reads.get_node(self._connection, self._ref.project, self._ref.zone, self._ref.name)
        state = "" if node is None else str(node.get("state"))
        return compare(
            "queue-no-node", is_as_believed=node is None, observation=f"It has one, {state}." if state else "None."
        )

    def _repeat_queue(self) -> FactFinding:
        original = self._original()
        if original is None:
            return not_seen("queue-repeat", _SENT_EARLIER)
        query = _query(original)
        calls = self._connection.collection("tpu", "v2alpha1", "projects", "locations", "queuedResources")
        call = calls.create(
            parent=lists.parent_of(self._ref.project, self._ref.zone),
            queuedResourceId=query["queuedResourceId"],
            requestId=query["requestId"],
            body=original.body,
        )
        return self._send_again("queue-repeat", call, original)

    def _repeat_insert(self) -> FactFinding:
        original = self._original()
        if original is None:
            return not_seen("insert-repeat", _SENT_EARLIER)
        query = _query(original)
        calls = self._connection.collection("compute", "v1", "instances")
        call = calls.insert(
            project=self._ref.project, zone=self._ref.zone, requestId=query["requestId"], body=original.body
        )
        return self._send_again("insert-repeat", call, original)

    def _send_again(self, fact: str, call: Any, original: Exchange) -> FactFinding:
        try:
            with translate_errors("repeat the request"):
                operation: dict[str, Any] = call.execute(num_retries=0)
        except Exists as cause:
            return compare(fact, is_as_believed=True, observation=f"409: {cause}")
        except (Absent, PreconditionFailed) as cause:
            return compare(fact, is_as_believed=False, observation=str(cause))
        except (errors.Refused, errors.Denied) as refused:
            return compare(fact, is_as_believed=False, observation=refused.message)
        is_same = operation.get("name") == (original.reply or {}).get("name")
        return compare(fact, is_as_believed=is_same, observation=f"{'The same' if is_same else 'Another'} operation.")

    def _instance_state(self) -> FactFinding:
        state = self.state()
        observation = f"It is listed as {state}." if state else "No instance is listed."
        return compare("insert-listed", is_as_believed=state == "PENDING", observation=observation)

    def _insert_open(self) -> FactFinding:
        original = self._original()
        name = (original.reply or {}).get("name") if original is not None else None
        if name is None:
            return not_seen("insert-open", _SENT_EARLIER)
        calls = self._connection.collection("compute", "v1", "zoneOperations")
        call = calls.get(project=self._ref.project, zone=self._ref.zone, operation=name)
        operation: dict[str, Any] = call.execute(num_retries=0)
        status = str(operation.get("status"))
        return compare("insert-open", is_as_believed=status != "DONE", observation=f"The operation is {status}.")

    def _by_request_id(self) -> FactFinding:
        original = self._original()
        if original is None:
            return not_seen("insert-by-request-id", _SENT_EARLIER)
        id_ = _query(original)["requestId"]
        calls = self._connection.collection("compute", "v1", "zoneOperations")
        request = calls.list(project=self._ref.project, zone=self._ref.zone, filter=f'clientOperationId = "{id_}"')
        names = [item.get("name") for page in pages(calls, request) for item in page.get("items", ())]
        is_found = (original.reply or {}).get("name") in names
        return compare(
            "insert-by-request-id", is_as_believed=is_found, observation=f"{len(names)} operations are found by it."
        )


def _query(exchange: Exchange) -> Mapping[str, str]:
    """Return the parameters in the URL of a request."""
    return {name: values[-1] for name, values in parse_qs(urlsplit(exchange.url).query).items()}


def _leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Yield each value of a request that Google should show again, with its path."""
    match value:
        case Mapping():
            for key, each in value.items():
                yield from _leaves(each, (*path, str(key)))
        case list():
            for index, each in enumerate(value):
                yield from _leaves(each, (*path, str(index)))
        case _ if value not in (None, False, "", 0):  # Google leaves out what is empty
            yield ".".join(path), value


def _has(item: Any, path: str, value: Any) -> bool:
    for word in path.split("."):
        if isinstance(item, list):
            item = item[int(word)] if int(word) < len(item) else None
        else:
            item = item.get(word) if isinstance(item, Mapping) else None
    # A network or an account is shown by its full path.
    return item == value or str(item).rpartition("/")[2] == str(value)
