"""FORMATS: the same rules in the forms that Prometheus, its operator and Google read; and how metrics are collected."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from tpudeploy.core.alerts.rules import group
from tpudeploy.core.alerts.watched import SCRAPE_SECONDS, Watched
from tpudeploy.domain.errors import UsageError

Document: TypeAlias = dict[str, Any]

# Every sample is paid for: what no rule and no panel reads is left on the machine.
UNREAD = "python_gc_.*|.*_created|http_request_duration_.*|http_(request|response)_size_bytes.*"


def rules(all_of: Sequence[Watched]) -> list[Document]:
    """A file for Prometheus' `rule_files`."""
    return [{"groups": [group(of).to_dict() for of in all_of]}]


def prometheus_rule(all_of: Sequence[Watched]) -> list[Document]:
    """What the Prometheus operator takes: one resource a deployment."""
    return [_resource("monitoring.coreos.com/v1", "PrometheusRule", of) for of in all_of]


def managed_prometheus(all_of: Sequence[Watched]) -> list[Document]:
    """What Google's managed rule evaluator takes: one resource a deployment.

    GlobalRules, because a `Rules` sees only what was collected in its own cluster and namespace
    (docs.cloud.google.com/stackdriver/docs/managed-prometheus/rules-managed), and a TPU machine is in none.
    """
    return [_resource("monitoring.googleapis.com/v1", "GlobalRules", of) for of in all_of]


def ops_agent(all_of: Sequence[Watched]) -> list[Document]:
    """`/etc/google-cloud-ops-agent/config.yaml` of the machine. Raise `errors.UsageError` for several deployments.

    Google documents the agent for machines of Compute Engine; that it runs on those of Cloud TPU is UNVERIFIED.
    """
    if len(all_of) > 1:
        raise UsageError("An Ops Agent watches the one server of its machine.", hint="Name one profile.")
    (of,) = all_of
    receiver = {"type": "prometheus", "config": {"scrape_configs": [scrape(of)]}}
    pipelines = {"vllm": {"receivers": ["vllm"]}}
    return [{"metrics": {"receivers": {"vllm": receiver}, "service": {"pipelines": pipelines}}}]


def scrape(of: Watched) -> Document:
    """From the machine itself, by the address that vLLM binds: it knows no IPv6, which `localhost` may be."""
    return {
        "job_name": of.job,
        "scrape_interval": f"{SCRAPE_SECONDS}s",
        "metrics_path": "/metrics",
        "static_configs": [{"targets": [f"127.0.0.1:{of.port}"]}],
        "metric_relabel_configs": [{"source_labels": ["__name__"], "regex": UNREAD, "action": "drop"}],
    }


def _resource(version: str, kind: str, of: Watched) -> Document:
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": f"vllm-{of.name}", "labels": {"app.kubernetes.io/managed-by": "tpudeploy"}},
        "spec": {"groups": [group(of).to_dict()]},
    }


FORMATS: Mapping[str, Callable[[Sequence[Watched]], list[Document]]] = {
    "rules": rules,
    "prometheusrule": prometheus_rule,
    "gmp": managed_prometheus,
    "ops-agent": ops_agent,
}
