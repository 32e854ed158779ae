"""From one HTTP request to one reply: find the method, apply the trouble of the scenario, carry it out, log it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qs, parse_qsl, unquote, urlsplit

from tpudeploy.emulator import (
    create_request,
    discovery,
    field_mask,
    listings,
    nodes,
    operations,
    queued_resources,
    refusals,
    storage_api,
    texts,
    wire,
)
from tpudeploy.emulator.cloud import Cloud
from tpudeploy.emulator.compute_engine import operations as operations_of_compute
from tpudeploy.emulator.compute_engine import texts as compute_texts
from tpudeploy.emulator.http_server import HttpRequest, Reply
from tpudeploy.emulator.services import methods, registries, secret_manager
from tpudeploy.emulator.trouble import Trouble
from tpudeploy.emulator.wire import ApiCall

Method = Callable[[Cloud, ApiCall], dict[str, Any]]

# The methods of Cloud TPU that are served.
METHODS: Mapping[str, Method] = {
    "queuedResources.create": queued_resources.create,
    "queuedResources.delete": queued_resources.delete,
    "queuedResources.get": queued_resources.get,
    "queuedResources.list": queued_resources.list_,
    "queuedResources.reset": queued_resources.reset,
    "nodes.delete": nodes.delete,
    "nodes.get": nodes.get,
    "nodes.getGuestAttributes": nodes.get_guest_attributes,
    "nodes.list": nodes.list_,
    "nodes.patch": nodes.patch,
    "nodes.start": nodes.start,
    "nodes.stop": nodes.stop,
    "operations.cancel": operations.cancel,
    "operations.delete": operations.delete,
    "operations.get": operations.get,
    "operations.list": operations.list_,
    "acceleratorTypes.get": listings.get_type,
    "acceleratorTypes.list": listings.list_types,
    "runtimeVersions.get": listings.get_runtime,
    "runtimeVersions.list": listings.list_runtimes,
    "locations.get": listings.get_location,
    "locations.list": listings.list_locations,
}
# (HTTP method, whether the path names one resource) -> the verb of the standard methods.
_STANDARD_VERBS = {
    ("GET", True): "get",
    ("GET", False): "list",
    ("POST", False): "create",
    ("PATCH", True): "patch",
    ("DELETE", True): "delete",
}
BANNER = "tpudeploy emulator of the Cloud TPU API: nothing here is real, nothing is billed.\n"
_ERRORS = 400
_REASONS = {400: "invalid", 403: "forbidden", 404: "notFound", 429: "rateLimitExceeded"}  # Compute Engine's


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """One line of the log. `verdict`: the HTTP status, with Google's name for it, and how the connection was cut."""

    method: str
    path: str
    verdict: str

    @property
    def resource(self) -> str:
        """Return the path without its query."""
        return self.path.partition("?")[0]


def method_names() -> tuple[str, ...]:
    """Return the names of all methods that are served, by which a row of trouble can name them."""
    neighbours = (f"{method.service}.{method.name}" for method in methods.METHODS)
    return (*METHODS, *neighbours, *storage_api.METHODS)


class EmulatedService:
    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        cloud.answer = self.answer
        self.requests: list[LoggedRequest] = []

    def answer(self, request: HttpRequest) -> Reply:
        try:
            reply = self._reply(request)
        except wire.ApiError as refusal:
            reply = _error(refusal.status)
        if request.path.startswith("/compute/"):
            reply = _without_status(reply)
        name = _error_name(reply.body) if isinstance(reply.body, Mapping) and reply.http >= _ERRORS else ""
        verdict = " ".join(word for word in (str(reply.http or ""), name, reply.cut) if word)
        self.requests.append(LoggedRequest(request.method, request.target, verdict))
        return reply

    def _reply(self, request: HttpRequest) -> Reply:
        if (stored := storage_api.parse_request(request.method, request.target, request.body)) is not None:
            return self._storage(stored)
        path = unquote(request.path).lstrip("/")
        version, _, rest = path.partition("/")
        if not rest:
            return Reply(http=200, body=BANNER)
        if version in discovery.VERSIONS and rest.startswith("projects/"):
            return self._tpu(request, version, rest)
        if version == "v1" and request.method == "GET" and rest.endswith(":access"):
            return Reply(http=200, body=secret_manager.access(self._cloud.scenario, rest.removesuffix(":access")))
        match = methods.find_method(request.method, path)
        if match is not None:
            return self._neighbour(*match, path, request)
        if version not in discovery.VERSIONS and methods.is_googles(request.method, path):
            raise self._unsupported(f"{request.method} {request.path}")
        raise wire.refuse(5, f"The requested URL {request.path} was not found on this server.")

    def _unsupported(self, what: str) -> wire.ApiError:
        """Return the refusal of a method that Google has and the emulator does not."""
        self._cloud.unsupported.append(what)
        return wire.refuse(12, f"The emulator does not serve {what}.")

    def _storage(self, stored: storage_api.StorageRequest) -> Reply:
        name = stored.name or stored.bucket
        call = ApiCall(
            version="", method=stored.method, name=name, project="", zone="-", query=stored.query, body=None, service=""
        )

        def carry_out(call: ApiCall) -> Reply:
            with self._cloud.storage_lock:
                return storage_api.answer(self._cloud.objects, stored, call.troubles)

        return self._play(call, carry_out)

    def _neighbour(
        self, method: methods.ServiceMethod, names: Mapping[str, str], path: str, request: HttpRequest
    ) -> Reply:
        """Answer a call of another service than Cloud TPU."""
        many = parse_qs(urlsplit(request.target).query)
        body = _parse_json(request.body)
        if method.document is not None:
            _check_call(method.document, request.method, path, many, body)
        call = ApiCall(
            version="",
            method=f"{method.service}.{method.name}",
            name=path.partition(":")[0],
            project=names.get("project", ""),
            zone=names.get("zone", "") or create_request.only_zone(body),
            query={**{key: values[-1] for key, values in many.items()}, **names},
            body=body,
            service=method.service,
            many=many,
        )

        def carry_out(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
            body, document = method.answer(cloud, call), method.document
            if document is None:
                return body
            schema = discovery.response_schema(document, request.method, path)
            return field_mask.select_fields(call.query, body, schema, document)

        reply = self._play(call, lambda call: self._carry_out(call, carry_out))
        if method.name == "regionOperations.wait" and reply.http < _ERRORS:
            reply = replace(reply, seconds=max(reply.seconds, operations_of_compute.seconds_left(self._cloud, call)))
        # It replies as slowly as neighbours do, unless a row of trouble makes it slower still.
        scenario = self._cloud.scenario
        if not method.is_control:
            jitter = scenario.jitter_of(call.method, self._cloud.calls[call.method])
            reply = replace(reply, seconds=max(reply.seconds, jitter.vary(scenario.timings.neighbour)))
        if method.service == "registry":
            return registries.add_digest_header(reply)
        return reply

    def _tpu(self, request: HttpRequest, version: str, rest: str) -> Reply:
        path, name = f"{version}/{rest}", rest.partition(":")[0]
        query, body = dict(parse_qsl(urlsplit(request.target).query)), _parse_json(request.body)
        method = _method_name(request.method, rest)
        if method not in METHODS:
            if discovery.has_method(version, request.method, path):
                raise self._unsupported(f"{request.method} /{path}")
            raise wire.refuse(5, f"The requested URL /{path} was not found on this server.")
        discovery.check_query(version, request.method, path, query)
        words = name.split("/")
        zone = words[3] if len(words) > 3 else "-"  # noqa: PLR2004  projects/P/locations/Z
        call = ApiCall(version=version, method=method, name=name, project=words[1], zone=zone, query=query, body=body)

        def carry_out(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
            schema = discovery.response_schema(version, request.method, path)
            return field_mask.select_fields(query, METHODS[method](cloud, call), schema, version)

        return self._play(call, lambda call: self._carry_out(call, carry_out))

    def _play(self, call: ApiCall, carry_out: Callable[[ApiCall], Reply]) -> Reply:
        """Return the reply to this call after the trouble that strikes it and its connection."""
        with self._cloud.lock:
            self._cloud.age()
            troubles = self._find_troubles(call)
            reply = _play_connection(replace(call, troubles=troubles), carry_out)
        return replace(reply, seconds=troubles["slow"].settings["seconds"] if "slow" in troubles else 0.0)

    def _find_troubles(self, call: ApiCall) -> Mapping[str, Trouble]:
        """Count the call, and return the rows of trouble that strike it."""
        calls = self._cloud.calls
        place = (call.method, call.project, call.zone)
        calls[call.method] += 1
        calls[place] += 1
        pattern = create_request.pattern(call.body)
        facts = {"api": call.service, "method": call.method, "zone": call.zone, "name": call.resource_id, **pattern}
        return self._cloud.striking(facts, {"call": calls[call.method], "attempt": calls[place]})

    def _carry_out(self, call: ApiCall, method: Method) -> Reply:
        """Return what the scenario says instead, or what the method answers."""
        status = refusals.immediate_refusal(call, self._cloud.scenario.project.apis_off)
        if status is not None:
            return _error(status)
        try:
            reply = Reply(http=200, body=method(self._cloud, call))
        except wire.ApiError as refusal:
            return _error(refusal.status)
        if "already-exists" in call.troubles:
            name = f"{call.name}/{call.resource_id}"
            of_compute = call.service == "compute"
            return _error((compute_texts.status if of_compute else texts.status)("already-exists", {"name": name}))
        return reply


def _play_connection(call: ApiCall, carry_out: Callable[[ApiCall], Reply]) -> Reply:
    """Return the reply, or what the trouble of the scenario makes of the connection."""
    if (row := call.troubles.get("connection-refused")) is not None:
        return Reply(http=0, body="", cut=_cut(row))
    reply = carry_out(call)
    if (row := call.troubles.get("lost-reply")) is not None:
        return replace(reply, cut=_cut(row))
    if "failed-reply" in call.troubles and reply.http < _ERRORS:
        return _error(texts.status("unavailable", {}))
    return reply


def _check_call(document: str, http: str, path: str, query: Mapping[str, Any], body: Any) -> None:
    """Raise ApiError for a parameter or a field that Google's description of a neighbour does not have."""
    discovery.check_query(document, http, path, query)
    schema = discovery.request_schema(document, http, path)
    if schema is not None:
        discovery.accept(body or {}, schema, document, at="request")


def _error_name(body: Mapping[str, Any]) -> str:
    """Return Google's name for an error: a status, or Cloud Storage's older reason."""
    error = body["error"]
    return str(error.get("status") or next((row["reason"] for row in error.get("errors", ())), ""))


def _method_name(http: str, rest: str) -> str:
    """Return the name of the method at a path below the version, e.g. `nodes.get`; "" where none can be there."""
    name, _, verb = rest.partition(":")
    words = name.split("/")
    if "" in words:
        return ""
    is_one = len(words) % 2 == 0
    if not verb:
        verb = _STANDARD_VERBS.get((http, is_one), "")
    elif http != "POST" or not is_one or verb in _STANDARD_VERBS.values():
        return ""
    return f"{words[-2] if is_one else words[-1]}.{verb}"


def _parse_json(body: bytes) -> Any:
    try:
        return json.loads(body) if body else None
    except ValueError as cause:
        raise wire.refuse(3, f"Invalid JSON payload received. {cause}") from cause


def _without_status(reply: Reply) -> Reply:
    """Return a reply of Compute Engine, which gives no canonical status in its errors, but a reason."""
    if reply.http < _ERRORS or not isinstance(reply.body, Mapping):
        return reply
    error = {k: v for k, v in reply.body["error"].items() if k in ("code", "message")}
    reason = {"message": error["message"], "domain": "global", "reason": _REASONS.get(reply.http, "backendError")}
    return replace(reply, body={"error": {**error, "errors": reply.body["error"].get("errors", [reason])}})


def _error(status: wire.RpcStatus) -> Reply:
    return Reply(http=status.http, body=status.error_body())


def _cut(row: Trouble) -> str:
    return "close" if row.settings["close"] else "reset"
