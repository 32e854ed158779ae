"""Deployments boot on a bench: the script, a fair payload, and a boot that must fail."""

from __future__ import annotations

import base64
import json

from node.answers import Rule
from node.bench import Bench
from node.containers import HF_TOKEN, container, deployment
from tpudeploy.adapters import assets
from tpudeploy.domain.deployment import Container, Deployment, SecretRef
from tpudeploy.node import render


def script(target: Deployment | Container, spec: str = "abc123") -> str:
    return render.startup_script(
        target if isinstance(target, Deployment) else deployment(target), assets.templates(), spec
    )


def payload(value: str) -> str:
    """What Secret Manager answers for a secret with this value."""
    data = base64.b64encode(value.encode()).decode()
    return json.dumps(
        {"name": "projects/1/secrets/s/versions/3", "payload": {"data": data, "dataCrc32c": "7"}}, indent=2
    )


def with_secrets(*refs: SecretRef) -> Container:
    return container(secrets=refs or (HF_TOKEN,))


def cause_of_failure(bench: Bench, target: Deployment | Container, *rules: Rule) -> str:
    """Boot, expecting failure; the cause that the machine reports."""
    bench.rules.extend(rules)
    result = bench.run(script(target))
    assert result.returncode != 0, result.stdout + result.stderr
    assert bench.attributes()["phase"][-1] == "failed"
    return bench.attributes()["detail"][-1]
