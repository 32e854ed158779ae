"""The published endpoint of a deployment, checked to be the server that its profile declares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from tpudeploy.adapters.vllm_client import BadAnswer, NoAnswer
from tpudeploy.config.profile import Profile
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.errors import QueryFailed, UsageError
from tpudeploy.domain.names import address
from tpudeploy.domain.router import Router, published_router
from tpudeploy.domain.state import Attempt, State
from tpudeploy.domain.task import TASKS
from tpudeploy.node.fingerprint import server_print
from tpudeploy.reconcile.desired import desired_attributes
from tpudeploy.workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedServer:
    """A replica that takes requests: its address, its server's URL, and its slice, None where the state has none."""

    address: str
    url: str
    attempt: Attempt | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """An endpoint. `attempt` is the slice that clients are sent to, None where the state has none.

    Behind a `router`, clients are sent to all of `servers`, and `url` is the router's.
    """

    deployment: Deployment
    url: str
    api_key: str | None
    state: State | None
    attempt: Attempt | None
    servers: tuple[PublishedServer, ...]
    router: Router | None


def published_endpoint(workspace: Workspace, profile: Profile) -> Endpoint:
    """Return the published endpoint of a profile. Raise as `Workspace.confirmed_endpoint` does."""
    deployment = workspace.deployment(profile, script=False)
    document = workspace.confirmed_endpoint(profile)
    state = workspace.adapters.states.read(deployment.name).state
    return Endpoint(
        deployment=deployment,
        url=str(document["url"]),
        api_key=workspace.adapters.probe.key(deployment),
        state=state,
        attempt=serving_attempt(state),
        servers=tuple(_servers(deployment.name, document, state)),
        router=_router(deployment.name, document),
    )


def _servers(name: str, document: Mapping[str, Any], state: State | None) -> Iterator[PublishedServer]:
    attempts = {} if state is None else {attempt.name: attempt for attempt in state.attempts}
    for row in document.get("replicas", []):
        # Earlier versions wrote no URL.
        if "url" in row:
            yield PublishedServer(
                address=address(name, row["replica"]), url=row["url"], attempt=attempts.get(row["slice"])
            )


def _router(name: str, document: Mapping[str, Any]) -> Router | None:
    try:
        return published_router(document)
    except ValueError as cause:
        raise QueryFailed(f"The endpoint document of {name} cannot be read: {cause}.") from cause


def no_endpoint(name: str) -> QueryFailed:
    return QueryFailed(f"{name} has no endpoint yet.", hint="Run `tpudeploy apply` first.")


def check_declared(deployment: Deployment, attempt: Attempt | None, name: str, *, hint: str) -> None:
    """Raise `errors.UsageError` where the server is not the one that the profile declares."""
    if attempt is not None and not runs_as_declared(deployment, attempt):
        raise UsageError(f"The server of {name} is not the one that its profile declares.", hint=hint)


def serving_attempt(state: State | None) -> Attempt | None:
    """Return the slice that clients are sent to; in states without that record, the first that has served."""
    if state is None:
        return None
    served = [a for a in state.slice_attempts if a.holds_slice and a.is_announced]
    published = (attempt for attempt in served if attempt.name == state.published)
    return next(published, served[0] if served else None)


def runs_as_declared(deployment: Deployment, attempt: Attempt) -> bool:
    """Return whether the slice's server is the one that the profile declares now."""
    return attempt.boot.server == server_print(desired_attributes(deployment, attempt))


def require_completions(deployment: Deployment, purpose: str) -> None:
    """Raise `errors.UsageError` for a server that completes no prompts. `purpose` is what can then not be done."""
    facts = TASKS[deployment.task.task]
    if not facts.completions:
        raise UsageError(
            f"{deployment.name} serves {facts.serves}, by {deployment.task.because}: it completes no prompts, so "
            f"{purpose}.",
            hint=f'`tpudeploy query {deployment.name}.yaml "a text"` sends it a request.',
        )


def no_answer(url: str, cause: NoAnswer | BadAnswer, *, hint: str = "") -> QueryFailed:
    """Return the error for an address that did not answer; `hint` is for others than a missing key."""
    wants_key = isinstance(cause, BadAnswer) and cause.status == HTTPStatus.UNAUTHORIZED
    key_hint = "It requires an API key: set VLLM_API_KEY."
    return QueryFailed(f"{url} did not answer: {cause}.", hint=key_hint if wants_key else hint)
