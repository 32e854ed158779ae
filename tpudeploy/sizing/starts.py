"""The time that a start should take, cold and with a warm compile cache: measured seconds a graph, times the graphs.

Measured: the boot log of Gemma 4 E2B on one v6e chip (667 s from container to first answer, no cache), by group. Warm:
857 s fell to 497 s on one v5e chip; weights, tracing and the API server's own warm-up remain.
"""

from __future__ import annotations

from tpudeploy.domain.compilation import CompilePlan, GraphGroup, PredictedStart
from tpudeploy.domain.model import LanguageModel
from tpudeploy.sizing.weights import checkpoint_bytes

_GIB = 1024**3
# Seconds of one graph: the log's duration of a group by its number of graphs; in the log's order.
_SECONDS = {
    "sample": 18.48 / 24,
    "gather_logprobs": 14.66 / 6,
    "compute_and_gather_prompt_logprobs": 18.79 / 7,
    "backbone": 189.22 / 9,
    "input_embeddings_merger": 6.48 / 18,
    "input_embeddings_merger_text_only": 6.48 / 18,
    "backbone with embeds": 163.71 / 9,
    "_substitute_placeholder_token_fn": 8 / 70,
    "select_from_array [select all logits]": 8 / 44,
    "compute_logits": 3.2 / 6,
    "structured_decode": 13 / 6,
}
_ORDER = {name: place for place, name in enumerate(_SECONDS)}  # what the log does not show comes last
_OTHER_SECONDS = 97 / 181  # the mean of all but the backbones, for groups that the log does not show
_PROCESS_SECONDS = 83  # container start to the first weight: imports, devices, configuration
_READY_SECONDS = 62  # engine ready to first answer: the API server warms up its processors
_SECONDS_PER_GIB = (9 + 50) / 9.54  # weights: downloaded in 9 s, loaded in 50 s
_WARM = 497 / 857
_BASIS = "seconds per graph and GiB of Gemma 4 E2B on one v6e chip; warm by the ratio measured on one v5e chip"


def predict_start(model: LanguageModel, plan: CompilePlan) -> PredictedStart:
    """Return the time of a start by its parts, in seconds."""
    weights = checkpoint_bytes(model) / _GIB * _SECONDS_PER_GIB
    names = sorted(plan.graphs, key=lambda name: _ORDER.get(name, len(_ORDER)))
    groups = tuple(GraphGroup(count=plan.graphs[name], seconds=_SECONDS.get(name, _OTHER_SECONDS)) for name in names)
    cold = _PROCESS_SECONDS + weights + sum(g.count * g.seconds for g in groups) + _READY_SECONDS
    return PredictedStart(
        cold_seconds=cold,
        warm_seconds=cold * _WARM,
        basis=_BASIS,
        process_seconds=_PROCESS_SECONDS,
        weights_seconds=weights,
        groups=groups,
        ready_seconds=_READY_SECONDS,
    )
