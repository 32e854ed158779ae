"""Print the paths that `vllm serve` registers, for each line `[flags, task, variables]`; its guarded prefixes first."""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

# vLLM lives in another Python than the one that type-checks.
from vllm.entrypoints.launchers.app import build_app  # type: ignore[import-not-found] # as above
from vllm.entrypoints.launchers.cli_args import make_arg_parser  # type: ignore[import-not-found] # as above
from vllm.entrypoints.serve.middleware.authenticate import GUARDED_PREFIX  # type: ignore[import-not-found] # as above
from vllm.utils.argparse_utils import FlexibleArgumentParser  # type: ignore[import-not-found] # as above


def walk(routes: Iterable[Any]) -> Iterator[str]:
    """Yield the path of each route, also of routers that FastAPI includes lazily."""
    for route in routes:
        path = getattr(route, "path", None)
        if path is not None:
            yield path
        else:
            yield from walk(route.original_router.routes)


def paths(flags: Sequence[str], task: str, variables: Mapping[str, str]) -> list[str]:
    """Return the paths of a server; `score` is a classification with one label."""
    args = make_arg_parser(FlexibleArgumentParser()).parse_args(["--model", "model", *flags])
    name = "classify" if task == "score" else task
    config = SimpleNamespace(
        get_pooling_task=lambda _tasks: None if name == "generate" else name,
        hf_config=SimpleNamespace(num_labels=1 if task == "score" else 2),
    )
    with patch.dict(os.environ, variables):
        return sorted(set(walk(build_app(args, (name,), config).routes)))


if __name__ == "__main__":
    print(json.dumps(GUARDED_PREFIX))
    # A process each: vLLM adds some routes to routers that outlive the app.
    with multiprocessing.get_context("fork").Pool(1, maxtasksperchild=1) as pool:
        for answer in pool.starmap(paths, map(json.loads, sys.stdin), chunksize=1):
            print(json.dumps(answer))
