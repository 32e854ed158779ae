"""CHECKS: what is worth saying of a deployment that is well-formed. One file, one check, one row here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from tpudeploy.core.checks import open_endpoint
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import Diagnostic


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """`code` is stable and what `find` yields; `meaning` is what `tpudeploy explain` says."""

    code: str
    meaning: str
    find: Callable[[Deployment], Iterator[Diagnostic]]


# In the order in which they are told.
CHECKS: tuple[Check, ...] = (
    Check(code=open_endpoint.CODE, meaning=open_endpoint.MEANING, find=open_endpoint.find),
)


def check(deployments: Iterable[Deployment]) -> tuple[Diagnostic, ...]:
    """Everything that the checks have to say."""
    return tuple(d for deployment in deployments for row in CHECKS for d in row.find(deployment))
