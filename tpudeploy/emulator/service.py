"""From one HTTP request to one reply: route, trouble, deed, log."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qs, parse_qsl, unquote, urlsplit

from tpudeploy.emulator import (
    asked,
    discovery,
    listings,
    nodes,
    operations,
    partial,
    queued_resources,
    refusals,
    secrets,
    services,
    texts,
    wire,
)
from tpudeploy.emulator.call import Call
from tpudeploy.emulator.cloud import Cloud
from tpudeploy.emulator.server import Reply
from tpudeploy.emulator.services import registry
from tpudeploy.emulator.storage import api as storage
from tpudeploy.emulator.trouble import Trouble

Route = tuple[str, str, str, str]
Deed = Callable[[Cloud, Call], dict[str, Any]]
TroubledDeed = Callable[[Cloud, Call, Mapping[str, Trouble]], dict[str, Any]]

# (HTTP method, collection, "one" resource or the "all" of it, verb) -> method name, deed.
ROUTES: Mapping[Route, tuple[str, Deed]] = {
    ("GET", "queuedResources", "one", ""): ("queuedResources.get", queued_resources.get),
    ("POST", "queuedResources", "one", "reset"): ("queuedResources.reset", queued_resources.reset),
    ("GET", "nodes", "one", ""): ("nodes.get", nodes.get),
    ("DELETE", "nodes", "one", ""): ("nodes.delete", nodes.delete),
    ("PATCH", "nodes", "one", ""): ("nodes.patch", nodes.patch),
    ("POST", "nodes", "one", "start"): ("nodes.start", nodes.start),
    ("POST", "nodes", "one", "stop"): ("nodes.stop", nodes.stop),
    ("POST", "nodes", "one", "getGuestAttributes"): ("nodes.getGuestAttributes", nodes.get_guest_attributes),
    ("GET", "operations", "one", ""): ("operations.get", operations.get),
    ("GET", "operations", "all", ""): ("operations.list", operations.list_),
    ("POST", "operations", "one", "cancel"): ("operations.cancel", operations.cancel),
    ("DELETE", "operations", "one", ""): ("operations.delete", operations.delete),
    ("GET", "acceleratorTypes", "one", ""): ("acceleratorTypes.get", listings.get_type),
    ("GET", "acceleratorTypes", "all", ""): ("acceleratorTypes.list", listings.list_types),
    ("GET", "runtimeVersions", "one", ""): ("runtimeVersions.get", listings.get_runtime),
    ("GET", "runtimeVersions", "all", ""): ("runtimeVersions.list", listings.list_runtimes),
    ("GET", "locations", "one", ""): ("locations.get", listings.get_location),
    ("GET", "locations", "all", ""): ("locations.list", listings.list_locations),
}
TROUBLED: Mapping[Route, tuple[str, TroubledDeed]] = {
    ("GET", "queuedResources", "all", ""): ("queuedResources.list", queued_resources.list_),
    ("GET", "nodes", "all", ""): ("nodes.list", nodes.list_),
    ("POST", "queuedResources", "all", ""): ("queuedResources.create", queued_resources.create),
    ("DELETE", "queuedResources", "one", ""): ("queuedResources.delete", queued_resources.delete),
}
BANNER = "tpudeploy emulator of the Cloud TPU API: nothing here is real, nothing is billed.\n"
_SECRETS = "v1"
_ERRORS = 400
_REASONS = {400: "invalid", 403: "forbidden", 404: "notFound", 429: "rateLimitExceeded"}  # Compute Engine's


@dataclass(frozen=True, slots=True)
class Request:
    """One line of the log. `verdict`: the HTTP status, with Google's name for it, and how the connection was cut."""

    method: str
    path: str
    verdict: str

    @property
    def resource(self) -> str:
        """The path without its query."""
        return self.path.partition("?")[0]


class Service:
    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self.requests: list[Request] = []

    def answer(self, method: str, target: str, body: bytes) -> Reply:
        try:
            reply = self._reply(method, target, body)
        except wire.Refusal as refusal:
            reply = _error(refusal.status)
        except OSError as cause:  # ours, not the client's socket: it must be seen
            raise RuntimeError(f"the emulator failed at {method} {target}") from cause
        name = _named(reply.body) if isinstance(reply.body, Mapping) and reply.http >= _ERRORS else ""
        verdict = " ".join(word for word in (str(reply.http or ""), name, reply.cut) if word)
        self.requests.append(Request(method, target, verdict))
        return reply

    def _reply(self, method: str, target: str, body: bytes) -> Reply:
        if (ask := storage.asked(method, target, body)) is not None:
            return self._storage(ask)
        path, query = urlsplit(target).path, dict(parse_qsl(urlsplit(target).query))
        version, _, rest = unquote(path).lstrip("/").partition("/")
        if not rest:
            return Reply(http=200, body=BANNER)
        if version == _SECRETS and method == "GET" and rest.endswith(":access"):
            return Reply(http=200, body=secrets.answer(self._cloud.scenario, rest.removesuffix(":access")))
        other = services.find(method, unquote(path).lstrip("/"))
        if other is not None:
            return self._neighbour(*other, unquote(path), target, _parsed(body))
        if version in discovery.VERSIONS:
            return self._tpu(_route(method, rest), version, rest, query, _parsed(body))
        if services.is_googles(method, unquote(path).lstrip("/")):
            raise self._unsupported(f"{method} {path}")
        raise wire.refuse(5, f"The requested URL {path} was not found on this server.")

    def _unsupported(self, what: str) -> wire.Refusal:
        """Return the refusal of a method that Google has and the emulator does not."""
        self._cloud.unsupported.append(what)
        return wire.refuse(12, f"The emulator does not serve {what}.")

    def _storage(self, ask: storage.Asked) -> Reply:
        name = ask.name or ask.bucket
        call = Call(
            version="",
            method=ask.method,
            name=name,
            project="",
            zone="-",
            query=ask.query,
            body=None,
            service="storage",
        )

        def carry_out(troubles: Mapping[str, Trouble]) -> Reply:
            with self._cloud.storage_lock:
                return storage.played(self._cloud.objects, ask, troubles)

        return self._play(call, carry_out)

    def _neighbour(self, of: services.Method, named: Mapping[str, str], path: str, target: str, body: Any) -> Reply:
        """A call of another service than Cloud TPU."""
        if of.document is not None:
            _check(of.document, of.http, path.lstrip("/"), urlsplit(target).query, body)
        many = parse_qs(urlsplit(target).query)
        call = Call(
            version="",
            method=f"{of.service}.{of.name}",
            name=path.lstrip("/").partition(":")[0],
            project=named.get("project", ""),
            zone="",
            query={**{key: values[-1] for key, values in many.items()}, **named},
            body=body,
            service=of.service,
            many=many,
        )

        def carry_out(troubles: Mapping[str, Trouble]) -> Reply:
            return self._answered(call, troubles, lambda: of.deed(self._cloud, call))

        reply = self._slowed(call, self._play(call, carry_out))
        if of.service == "registry":
            return registry.dressed(reply)
        return reply if of.service != "compute" else _without_status(reply)

    def _slowed(self, call: Call, reply: Reply) -> Reply:
        """Let a neighbour reply as slowly as neighbours do, unless a row of trouble makes it slower still."""
        scenario = self._cloud.scenario
        jitter = scenario.jitter_of(call.method, self._cloud.calls[call.method])
        return replace(reply, seconds=max(reply.seconds, jitter.vary(scenario.timings.neighbour)))

    def _tpu(self, route: Route, version: str, rest: str, query: Mapping[str, str], body: Any) -> Reply:
        name, path = rest.partition(":")[0], f"{version}/{rest}"
        known = ROUTES.get(route) or TROUBLED.get(route)
        if known is None and discovery.has_method(version, route[0], path):
            raise self._unsupported(f"{route[0]} /{path}")
        if known is None:
            raise wire.refuse(5, f"The requested URL /{path} was not found on this server.")
        discovery.check_query(version, route[0], path, query)
        words = name.split("/")
        zone = words[3] if len(words) > 3 else "-"  # noqa: PLR2004  projects/P/locations/Z
        call = Call(version=version, method=known[0], name=name, project=words[1], zone=zone, query=query, body=body)

        def carry_out(troubles: Mapping[str, Trouble]) -> Reply:
            return self._answered(call, troubles, lambda: self._done(route, call, troubles))

        return self._play(call, carry_out)

    def _play(self, call: Call, carry_out: Callable[[Mapping[str, Trouble]], Reply]) -> Reply:
        with self._cloud.lock:
            self._cloud.age()
            troubles = self._troubles(call)
            reply = _troubled(troubles, carry_out)
        seconds = troubles["slow"].told()["seconds"] if "slow" in troubles else 0.0
        return replace(reply, seconds=seconds)

    def _troubles(self, call: Call) -> Mapping[str, Trouble]:
        """Counts the call, then asks the scenario."""
        calls = self._cloud.calls
        calls[call.method] += 1
        calls[call.method, call.project, call.zone] += 1
        counts = {"call": calls[call.method], "attempt": calls[call.method, call.project, call.zone]}
        named = call.query.get("queuedResourceId") or call.name.rpartition("/")[2]
        facts = {"method": call.method, "zone": call.zone, "name": named}
        return self._cloud.striking(facts | asked.pattern(call.body), counts)

    def _answered(self, call: Call, troubles: Mapping[str, Trouble], deed: Callable[[], dict[str, Any]]) -> Reply:
        """What the scenario says instead, or what the deed does."""
        status = refusals.at_once(call, troubles, self._cloud.scenario.project.apis_off)
        reply = _done(deed) if status is None else _error(status)
        if "already-exists" in troubles and reply.http < _ERRORS:
            named = f"{call.name}/{call.query.get('queuedResourceId', '')}"
            return _error(texts.status("already-exists", {"name": named}))
        return reply

    def _done(self, route: Route, call: Call, troubles: Mapping[str, Trouble]) -> dict[str, Any]:
        if route in TROUBLED:
            return partial.selected(call, TROUBLED[route][1](self._cloud, call, troubles))
        return partial.selected(call, ROUTES[route][1](self._cloud, call))


def _troubled(troubles: Mapping[str, Trouble], carry_out: Callable[[Mapping[str, Trouble]], Reply]) -> Reply:
    """What the connection makes of it."""
    if (row := troubles.get("connection-refused")) is not None:
        return Reply(http=0, body="", cut=_cut(row))
    reply = carry_out(troubles)
    if (row := troubles.get("lost-reply")) is not None:
        return replace(reply, cut=_cut(row))
    if "failed-reply" in troubles and reply.http < _ERRORS:
        return _error(texts.status("unavailable", {}))
    return reply


def _check(document: str, http: str, path: str, query: str, body: Any) -> None:
    """Raise Refusal for a parameter or a field that Google's description of a neighbour does not have."""
    discovery.check_query(document, http, path, parse_qs(query))
    schema = discovery.request(document, http, path)
    if schema is not None:
        discovery.accept(body or {}, schema, document, at="request")


def _named(body: Mapping[str, Any]) -> str:
    """Google's name for an error: a status, or Cloud Storage's older reason."""
    error = body["error"]
    return str(error.get("status") or next((row["reason"] for row in error.get("errors", ())), ""))


def _route(method: str, rest: str) -> Route:
    name, _, verb = rest.partition(":")
    words = name.split("/")
    if words[0] != "projects" or "" in words:
        return method, "", "", verb
    one = len(words) % 2 == 0
    return method, words[-2] if one else words[-1], "one" if one else "all", verb


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body) if body else None
    except ValueError as cause:
        raise wire.refuse(3, f"Invalid JSON payload received. {cause}") from cause


def _done(deed: Callable[[], dict[str, Any]]) -> Reply:
    try:
        return Reply(http=200, body=deed())
    except wire.Refusal as refusal:
        return _error(refusal.status)


def _without_status(reply: Reply) -> Reply:
    """Compute Engine names no canonical status in its errors, but a reason."""
    if reply.http < _ERRORS or not isinstance(reply.body, Mapping):
        return reply
    error = {k: v for k, v in reply.body["error"].items() if k in ("code", "message")}
    reason = {"message": error["message"], "domain": "global", "reason": _REASONS.get(reply.http, "backendError")}
    return replace(reply, body={"error": {**error, "errors": [reason]}})


def _error(status: wire.Status) -> Reply:
    return Reply(http=status.http, body=status.error_body())


def _cut(row: Trouble) -> str:
    return "close" if row.told()["close"] else "reset"
