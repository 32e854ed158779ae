"""Which addresses may get a prompt or an API key: those that Google reports for the slices of a deployment.

The endpoint document is a file of the project, so everyone who can write there could name any server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from tpudeploy.domain import errors
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.router import Router, RouterHost, published_router
from tpudeploy.domain.slices import Slice
from tpudeploy.domain.state import Attempt
from tpudeploy.engine.retry import retry_on_fault
from tpudeploy.node.router_machine import router_on
from tpudeploy.ports import World

_LOCALHOST = "127.0.0.1"
_LOOK_SECONDS = 5.0  # between two looks at the slices for a list of replicas that is not confirmed yet


def confirmed_urls(
    world: World, name: str, *, project: str | None = None, budget: float | None = None
) -> frozenset[str]:
    """Return the URLs of the slices in a deployment's state, at the addresses that Google reports for them now.

    With `project`, a slice in another one is left out: its owner need not be the user. `budget` is as in
    `retry_on_fault`. Raise `errors.StateError`, `errors.Fault` or `errors.Denied`.
    """
    state = world.state.read(name).state
    attempts = [] if state is None else [a for a in state.attempts if project in {None, a.project}]
    if not attempts:
        return frozenset()
    refs = [attempt.ref for attempt in attempts]
    listed = retry_on_fault(world, name, lambda: world.cloud.slices(refs), budget=budget)
    slices = {(slice_.zone, slice_.name): slice_ for slice_ in listed}
    return frozenset(
        url
        for attempt in attempts
        if (slice_ := slices.get((attempt.zone, attempt.name))) is not None
        for url in urls_of(attempt, slice_)
    )


def confirmed_document(
    world: World, deployment: Deployment, document: Mapping[str, object], *, is_trusted: bool
) -> Mapping[str, object]:
    """Return an endpoint document without replicas at addresses that only the document names.

    With `is_trusted`, the author of the profile confirms its router and the user's end of a tunnel. Raise
    `errors.QueryFailed` where the address of clients, or of the router, is not confirmed; else as `confirmed_urls`.
    """
    name = deployment.name
    urls = set(confirmed_urls(world, name, project=deployment.project))
    if is_trusted and urls:
        urls.add(f"http://{_LOCALHOST}:{deployment.container.port}")
    router = _published_router(name, document)
    urls |= _router_url(world, name, router, deployment.router if is_trusted else None)
    for url in (str(document["url"]), *(() if router is None else (router.url,))):
        if url not in urls:
            raise _unconfirmed(name, url, is_trusted=is_trusted)
    replicas = document.get("replicas")
    rows = replicas if isinstance(replicas, list) else []
    return {**document, "replicas": [row for row in rows if isinstance(row, dict) and row.get("url") in urls]}


def addresses_now(
    world: World, name: str, document: Mapping[str, object], *, declared: Router | None = None
) -> frozenset[str]:
    """Return the addresses that a deployment has now, whatever its endpoint document says.

    They are those of its slices by Google, this machine's end of a tunnel to them, and its router: one that runs here,
    or the `declared` one of a trusted profile. Google is asked once. Raise as `confirmed_urls`, and
    `errors.QueryFailed` for a router that is not understood.
    """
    urls = confirmed_urls(world, name, budget=0.0)
    state = world.state.read(name).state if urls else None
    ports = set() if state is None else {attempt.port for attempt in state.attempts}
    tunnels = {f"http://{_LOCALHOST}:{port}" for port in ports}
    return urls | tunnels | _router_url(world, name, _published_router(name, document), declared)


def _published_router(name: str, document: Mapping[str, object]) -> Router | None:
    try:
        return published_router(document)
    except ValueError as cause:
        raise errors.QueryFailed(f"The endpoint document of {name} cannot be read: {cause}.") from cause


def _router_url(world: World, name: str, router: Router | None, declared: Router | None) -> set[str]:
    """Return the address of a document's router if it is the declared one or runs here."""
    if router is not None and (router == declared or _is_here(world, name, router)):
        return {router.url}
    return set()


class ConfirmedDocument:
    """Reads an endpoint document without the replicas that only the document names, for a router.

    Google is asked once for each new list, and not again for a while while an address of the list is not confirmed.
    With `on_denied`, a list is used as it is where Google refuses to say: that gets the reason once.
    """

    def __init__(
        self,
        world: World,
        name: str,
        read: Callable[[], Mapping[str, object] | None],
        *,
        on_denied: Callable[[errors.Denied], None] | None = None,
    ) -> None:
        self._world = world
        self._name = name
        self._read = read
        self._on_denied = on_denied
        self._is_denied = False
        self._confirmed: frozenset[str] = frozenset()
        self._error: errors.TpudeployError | None = None
        self._next_look = 0.0

    def __call__(self) -> Mapping[str, object] | None:
        """Return the document, or None. Raise what `confirmed_urls` and the reader raise."""
        document = self._read()
        rows = None if document is None else document.get("replicas")
        if document is None or not isinstance(rows, list):
            return document
        urls = {str(row["url"]) for row in rows if isinstance(row, dict) and "url" in row}
        if not urls <= self._confirmed and self._world.clock.now() >= self._next_look and not self._is_denied:
            self._look()
        if self._is_denied:
            return document
        if self._error is not None:
            raise self._error
        return {**document, "replicas": [r for r in rows if not isinstance(r, dict) or r.get("url") in self._confirmed]}

    def _look(self) -> None:
        self._next_look = self._world.clock.now() + _LOOK_SECONDS
        try:
            self._confirmed, self._error = confirmed_urls(self._world, self._name), None
        except (errors.CloudError, errors.StateError) as error:
            self._error = error
            if isinstance(error, errors.Denied) and self._on_denied is not None:
                self._is_denied = True
                self._on_denied(error)


def _is_here(world: World, name: str, router: Router) -> bool:
    """Return whether this router runs here now, as its process says, at an address that only this machine has."""
    is_local = router.host is RouterHost.LOCAL and router.address == _LOCALHOST
    return is_local and world.routers.is_running(name, router)


def _unconfirmed(name: str, url: str, *, is_trusted: bool) -> errors.QueryFailed:
    """Return the error for an address that only a file names."""
    own = "" if is_trusted else " The router of an untrusted profile is one that runs on this machine or on its VM."
    return errors.QueryFailed(
        f"endpoints/{name}.json names {url}, and neither a slice of {name} nor its router has this address now. No "
        "request was sent there.",
        hint=f"Delete that file, and `tpudeploy apply` publishes the address of the slice that serves.{own}",
    )


def urls_of(attempt: Attempt, slice_: Slice) -> Iterator[str]:
    """Yield the URLs of a slice at the addresses that Google reports for it, the external one first."""
    router = router_on(attempt)
    port = slice_.port or (attempt.port if router is None else router.port)
    for host in (slice_.external_ip, slice_.internal_ip):
        if host is not None:
            yield f"http://{host}:{port}"
            # The router on a VM is published at its own port.
            if router is not None:
                yield f"http://{host}:{router.port}"
