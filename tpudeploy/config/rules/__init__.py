"""Rules between keys, as functions of the typed profile or of its server: the same for YAML and for Python.

RULES and SERVER_RULES have every rule, in the order of the format. Add a rule there. Where a value was refused, its key
counts as set, and "" or the default stands in for it (`config/check.py`): one wrong value hides no other problem.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

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
from tpudeploy.config.rules.server import Server
from tpudeploy.config.rules.violation import Violation
from tpudeploy.config.schema import ProfileSpec
from tpudeploy.domain.engine import Engine

RULES: tuple[Callable[[ProfileSpec], Iterator[Violation]], ...] = (
    model.loadable,
    model.mounted,
    chips.known_type,
    chips.one_slice,
    chips.own_runtime,
    chips.vllm_support,
    placement.backend_serves,
    image.other_hardware,
    image.no_server,
    image.floating_tag,
    image.release_without_v,
    variables.names,
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
SERVER_RULES: tuple[Callable[[Server], Iterator[Violation]], ...] = (
    chips.parallelism,
    chips.over_hosts,
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
    variables.misspelt,
    variables.readable,
)


def violations(profile: ProfileSpec, engine: Engine | None = None) -> Iterator[Violation]:
    """Yield what every rule says. `engine` is that of the image, if more is known of it than its name and tag tell."""
    server = Server(profile, engine)
    for rule in RULES:
        yield from rule(profile)
    for server_rule in SERVER_RULES:
        yield from server_rule(server)
