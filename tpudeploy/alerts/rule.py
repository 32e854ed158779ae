"""Group and Alert: Prometheus' alert rules as data, from which every format is derived."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from tpudeploy.domain.frozen import frozen


class Severity(StrEnum):
    """`critical` pages someone at once; `warning` can wait until working hours."""

    WARNING = "warning"
    CRITICAL = "critical"


@frozen
class Alert:
    """An alert rule. `expr` is PromQL and must be true for `held_seconds`. Texts may contain Prometheus' templates."""

    name: str
    expr: str
    held_seconds: int
    severity: Severity
    summary: str
    description: str

    def to_dict(self, deployment: str) -> dict[str, Any]:
        return {
            "alert": self.name,
            "expr": self.expr,
            "for": f"{self.held_seconds}s",
            "labels": {"severity": str(self.severity), "deployment": deployment},
            "annotations": {"summary": self.summary, "description": self.description},
        }


@frozen
class Group:
    """The rules of one deployment, evaluated together every `every_seconds`."""

    deployment: str
    every_seconds: int
    rules: tuple[Alert, ...]

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": f"vllm-{self.deployment}",
            "interval": f"{self.every_seconds}s",
            "rules": [rule.to_dict(self.deployment) for rule in self.rules],
        }
