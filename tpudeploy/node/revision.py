"""The revision of a deployment: its docker command, startup script and sizing, before and after a change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import unified_diff

from tpudeploy.domain.budget import HbmBudget
from tpudeploy.domain.deployment import Deployment
from tpudeploy.node import serving
from tpudeploy.node.shell import shell_lines

_CONTEXT = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """What a deployment's chips hold, and the seconds of a cold start."""

    kv_cache_tokens: int
    weights_bytes_per_chip: int
    kv_bytes_per_chip: int
    start_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """`docker` and `script` are lines of a unified diff, without its head. A new deployment's `docker` lines are new.

    `is_compared`: the current deployment could be rendered too. `before` and `after` are None if it cannot be sized.
    """

    name: str
    is_compared: bool
    docker: tuple[str, ...] = ()
    script: tuple[str, ...] = ()
    before: Holding | None = None
    after: Holding | None = None


def revision(name: str, before: Deployment | None, after: Deployment | None) -> Revision:
    """Compare two resolved deployments with their scripts. Either is None if it does not exist, or is to be deleted."""
    docker = _difference(_docker(before), _docker(after))
    script: tuple[str, ...] = ()
    if before is not None and after is not None:
        script = _difference(str(before.startup_script).splitlines(), str(after.startup_script).splitlines())
    return Revision(
        name=name,
        is_compared=before is not None,
        docker=docker,
        script=script,
        before=_holding(before),
        after=_holding(after),
    )


def _docker(deployment: Deployment | None) -> Sequence[str]:
    if deployment is None:
        return ()
    container = deployment.container
    server = () if container.hosts == 1 else shell_lines(serving.docker_exec(container))
    return (*shell_lines(serving.docker_run(container)), *server)


def _difference(before: Sequence[str], after: Sequence[str]) -> tuple[str, ...]:
    return tuple(unified_diff(before, after, lineterm="", n=_CONTEXT))[2:]  # the first two name files


def _holding(deployment: Deployment | None) -> Holding | None:
    if deployment is None or not isinstance(deployment.budget, HbmBudget):
        return None
    budget = deployment.budget
    return Holding(
        kv_cache_tokens=budget.kv_cache_tokens,
        weights_bytes_per_chip=budget.weights_bytes_per_chip,
        kv_bytes_per_chip=budget.kv_bytes_per_chip,
        start_seconds=budget.start.cold_seconds,
    )
