"""One deployment as it stands and as it is wanted: what docker gets, what the machine boots, what its chips hold."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence

from tpudeploy.domain.budget import HbmBudget
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.frozen import frozen
from tpudeploy.node import serving

_CONTEXT = 2


@frozen
class Holding:
    """What a deployment's chips hold, and in how many seconds it starts cold."""

    kv_cache_tokens: int
    weights_bytes_per_chip: int
    kv_bytes_per_chip: int
    start_seconds: float


@frozen
class Revision:
    """`docker` and `script` are lines of a unified diff, without its head; of a new deployment, `docker` is all new.

    `is_compared`: what stands could be rendered too. `before` and `after` are None where nobody can size it.
    """

    name: str
    is_compared: bool
    docker: tuple[str, ...] = ()
    script: tuple[str, ...] = ()
    before: Holding | None = None
    after: Holding | None = None


def revision(name: str, before: Deployment | None, after: Deployment | None) -> Revision:
    """Of two resolved deployments, scripts included. Either may be None: not there yet, or to be removed."""
    docker = _difference(_docker(before), _docker(after))
    return Revision(
        name=name,
        is_compared=before is not None,
        docker=docker,
        script=_difference(_script(before), _script(after)) if before is not None and after is not None else (),
        before=_holding(before),
        after=_holding(after),
    )


def shell_lines(words: Iterable[str]) -> tuple[str, ...]:
    """A command as a person writes it over several lines: an option and its value on each."""
    lines: list[list[str]] = []
    for word in words:
        last = lines[-1] if lines else []
        takes = len(last) == 1 and last[0].startswith("-") and "=" not in last[0]
        goes_on = takes or not any(w.startswith("-") for w in last)
        if last and goes_on and not word.startswith("-"):
            last.append(word)
        else:
            lines.append([word])
    joined = [shlex.join(line) for line in lines]
    return tuple(f"{'  ' if n else ''}{line}" for n, line in enumerate(joined))


def _docker(of: Deployment | None) -> Sequence[str]:
    return () if of is None else shell_lines(serving.docker_run(of.container))


def _script(of: Deployment | None) -> Sequence[str]:
    return () if of is None else str(of.startup_script).splitlines()


def _difference(before: Sequence[str], after: Sequence[str]) -> tuple[str, ...]:
    from difflib import unified_diff

    return tuple(unified_diff(before, after, lineterm="", n=_CONTEXT))[2:]  # the first two name files


def _holding(of: Deployment | None) -> Holding | None:
    if of is None or not isinstance(of.budget, HbmBudget):
        return None
    budget = of.budget
    return Holding(
        kv_cache_tokens=budget.kv_cache_tokens,
        weights_bytes_per_chip=budget.weights_bytes_per_chip,
        kv_bytes_per_chip=budget.kv_bytes_per_chip,
        start_seconds=budget.start.cold_seconds,
    )
