"""List the names by which other agents for TPUs know a tool. A call by one of them is a call of the tool itself.

They are accepted, and named in the tool's description, but not listed. Source: the servers of
github.com/xbill9/gemma4-dev at 4cf2d8b, whose 40 agents share these names. `save_hf_token` has no row, because no tool
takes a secret, and `manage_vllm_docker` none, because a change is a plan that is applied.

Why: decision 92 in docs/decisions.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Alias:
    """Another name of a tool. `values` are arguments that it stands for; a call may give others."""

    tool: str
    values: Mapping[str, Any]


def _rows() -> Mapping[str, Alias]:
    names = {name: Alias(tool=tool, values={}) for tool, own in _NAMES.items() for name in own.split()}
    return {**names, **_WITH_VALUES}


_NAMES: Mapping[str, str] = {
    "zones": "get_zones_with_available_quota find_tpu find_tpu_vm find_zones check_tpu_availability "
    "probe_zone_capacity estimate_deployment_cost estimate_cost",
    "status": "get_status get_system_status list_queued_resources describe_queued_resource get_reservation_status "
    "list_tpu_vm_instances list_tpu_instances describe_tpu_instance get_vllm_endpoint get_endpoint "
    "get_deployed_endpoint get_tpu_vm_endpoint wait_for_vllm_ready",
    "verify": "settings get_settings get_model_details get_active_models",
    "metrics": "get_metrics",
    "memory_layout": "get_memory_layout",
    "logs": "log_lines get_logs get_vllm_logs get_vllm_docker_logs get_tpu_system_logs get_tpu_vm_serial_log "
    "get_cloud_logging_logs",
    "diagnose": "analyze_cloud_logging",
    "query": "query_with_stats query_model query_model_with_stats query_gemma4 query_queued_gemma4 "
    "query_queued_gemma4_with_stats",
    "runs": "list_benchmarks",
    "compare": "compare_benchmarks",
    "alerts": "generate_alerts",
    "validate": "validate_profile",
    "draft_profile": "init",
    "render": "get_deployment_config",
    "get_help": "help",
    "bench": "run_benchmark run_vllm_benchmark",
    "apply": "create_tpu_queued_resource create_tpu_vm_instance create_tpu_instance manage_queued_resource",
    "destroy": "destroy_queued_resource destroy_tpu_vm_instance destroy_tpu_instance",
    "operation": "get_operation",
}
_HEALTH: Mapping[str, Any] = {"prompt": "What is the capital of France? Answer in one word.", "max_tokens": 16}
_WITH_VALUES: Mapping[str, Alias] = {
    "verify_model_health": Alias(tool="query", values=_HEALTH),
    "get_vllm_deployment_config": Alias(tool="render", values={"what": "gcloud"}),
    "get_deployment_command": Alias(tool="render", values={"what": "gcloud"}),
    "get_vllm_tpu_deployment_config": Alias(tool="render", values={"what": "gke"}),
}
ALIASES = _rows()


def other_names(tool: str) -> tuple[str, ...]:
    """Return the other names of a tool."""
    return tuple(name for name, alias in ALIASES.items() if alias.tool == tool)
