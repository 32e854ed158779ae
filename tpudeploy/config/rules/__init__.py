"""Rules between keys: they run over the tree, not the model, so that one wrong value hides no other problem.

RULES has every rule, in the order of the format. Add a rule there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tpudeploy.config.nodes import MapNode
from tpudeploy.config.rules import (
    args,
    chips,
    combinations,
    image,
    model,
    names,
    notify,
    placement,
    ports,
    replicas,
    variables,
)
from tpudeploy.domain.diagnostics import Diagnostic

RULES: tuple[Callable[[MapNode], Iterator[Diagnostic]], ...] = (
    model.loadable,
    model.mounted,
    chips.known_type,
    chips.one_slice,
    chips.own_runtime,
    chips.parallelism,
    chips.over_hosts,
    chips.vllm_support,
    placement.backend_serves,
    image.other_hardware,
    image.no_server,
    image.floating_tag,
    image.release_without_v,
    args.args,
    args.reachable,
    combinations.needs,
    combinations.environ_validation,
    combinations.needs_variable,
    combinations.on_tpu,
    combinations.at_most,
    combinations.without,
    combinations.idle_with_statistics,
    combinations.continue_decode,
    combinations.attention_ranks,
    combinations.sliding_window,
    combinations.speculation,
    combinations.context_parallel,
    combinations.device_ids,
    combinations.shared_tensors,
    variables.names,
    variables.misspelt,
    variables.readable,
    variables.one_place_each,
    variables.no_secret_in_env,
    variables.references,
    placement.flex_start,
    placement.budget_with_end,
    notify.targets,
    placement.run_duration,
    placement.shortest_wait,
    placement.durations,
    placement.reserved,
    placement.reservation_in_reach,
    placement.each_once,
    placement.known_zones,
    replicas.bounds,
    replicas.router_keys_of_host,
    replicas.known_router_policy,
    ports.reserved,
    names.labels,
    names.volumes,
    names.ignored_paths,
)
