"""FORMATS: the rules in the formats of Prometheus, its operator and Google, and the collection of metrics, as YAML."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import yaml

from tpudeploy.domain.errors import UsageError
from tpudeploy.features.alerts.rules import group
from tpudeploy.features.alerts.watched import SCRAPE_SECONDS, Watched

Document: TypeAlias = dict[str, Any]

_WIDE = 1 << 20  # an expression stays on its line
# Every sample costs money, so metrics that no rule and no panel reads are not collected.
UNREAD = "python_gc_.*|.*_created|http_request_duration_.*|http_(request|response)_size_bytes.*"


def rules(deployments: Sequence[Watched]) -> list[Document]:
    """Return a file for Prometheus' `rule_files`."""
    return [{"groups": [group(deployment) for deployment in deployments]}]


def prometheus_rule(deployments: Sequence[Watched]) -> list[Document]:
    """Return resources for the Prometheus operator, one per deployment."""
    return [_resource("monitoring.coreos.com/v1", "PrometheusRule", deployment) for deployment in deployments]


def managed_prometheus(deployments: Sequence[Watched]) -> list[Document]:
    """Return resources for Google's managed rule evaluator, one per deployment.

    The kind is GlobalRules, because a `Rules` sees only metrics of its own cluster and namespace
    (docs.cloud.google.com/stackdriver/docs/managed-prometheus/rules-managed), and a TPU machine is in none.
    """
    return [_resource("monitoring.googleapis.com/v1", "GlobalRules", deployment) for deployment in deployments]


def ops_agent(deployments: Sequence[Watched]) -> list[Document]:
    """Return the machine's `/etc/google-cloud-ops-agent/config.yaml`. Raise `errors.UsageError` for several.

    Google documents the agent for machines of Compute Engine; that it runs on those of Cloud TPU is UNVERIFIED.
    """
    if len(deployments) > 1:
        raise UsageError("An Ops Agent watches the one server of its machine.", hint="Name one profile.")
    (deployment,) = deployments
    receiver = {"type": "prometheus", "config": {"scrape_configs": [scrape(deployment)]}}
    pipelines = {"vllm": {"receivers": ["vllm"]}}
    return [{"metrics": {"receivers": {"vllm": receiver}, "service": {"pipelines": pipelines}}}]


def scrape(deployment: Watched) -> Document:
    """Return the scrape configuration on the machine. It uses IPv4, because vLLM does not bind IPv6."""
    return {
        "job_name": deployment.job,
        "scrape_interval": f"{SCRAPE_SECONDS}s",
        "metrics_path": "/metrics",
        "static_configs": [{"targets": [f"127.0.0.1:{deployment.port}"]}],
        "metric_relabel_configs": [{"source_labels": ["__name__"], "regex": UNREAD, "action": "drop"}],
    }


def _resource(version: str, kind: str, deployment: Watched) -> Document:
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": f"vllm-{deployment.name}", "labels": {"app.kubernetes.io/managed-by": "tpudeploy"}},
        "spec": {"groups": [group(deployment)]},
    }


FORMATS: Mapping[str, Callable[[Sequence[Watched]], list[Document]]] = {
    "rules": rules,
    "prometheusrule": prometheus_rule,
    "gmp": managed_prometheus,
    "ops-agent": ops_agent,
}


def documents(what: str, trees: Sequence[Mapping[str, Any]]) -> str:
    """Return the trees as YAML documents, separated by `---`, under a comment that says what they are."""
    texts = (
        yaml.safe_dump(tree, sort_keys=False, allow_unicode=True, width=_WIDE, default_flow_style=False)
        for tree in trees
    )
    return f"# {what}\n" + "---\n".join(texts)


def dashboard_text(tree: Mapping[str, Any]) -> str:
    return json.dumps(tree, indent=2, ensure_ascii=False) + "\n"
