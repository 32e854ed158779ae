"""What a startup script would serve, by reading alone: for machines that run none."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from functools import lru_cache
from typing import Any

from tpudeploy.emulator.machine.docker import run_options
from tpudeploy.emulator.machine.docker.serve import find_serve
from tpudeploy.emulator.machine.facts import Behaviour
from tpudeploy.emulator.machine.unsupported import Unsupported
from tpudeploy.emulator.machine.vllm import arguments
from tpudeploy.emulator.machine.vllm.engine import Engine, new_engine

_RUN = re.compile(r"^docker_run=\(\n(.*?)^\)$", re.DOTALL | re.MULTILINE)


def engine_of(script: str, accelerator_type: str, behaviour: Behaviour) -> Engine | None:
    """None where nothing in it starts a server that vLLM's own parser would let live."""
    found = _RUN.search(script)
    if found is None:
        return None
    by_flag = tuple(tuple(of.items()) for of in (behaviour.instead, behaviour.knows, behaviour.paces))
    otherwise = (behaviour.kv_blocks, behaviour.block_size, by_flag)
    engine = _engine(found[1], accelerator_type, *otherwise)
    return None if engine is None else replace(engine, load=behaviour.load)


def has_setup(script: str) -> bool:
    """Whether its container is to do something before it serves."""
    found = _RUN.search(script)
    return found is not None and _has_setup(found[1])


@lru_cache(maxsize=256)
def _has_setup(written: str) -> bool:
    try:
        serve = find_serve(run_options.parse(shlex.split(written)[2:]).command)
    except (ValueError, run_options.UsageError, Unsupported):
        return False
    return serve is not None and serve.has_setup


@lru_cache(maxsize=256)
def _engine(
    written: str,
    accelerator_type: str,
    kv_blocks: int | None,
    block_size: int | None,
    by_flag: tuple[tuple[tuple[str, Any], ...], ...],
) -> Engine | None:
    """A fleet has the same words many times."""
    try:
        options = run_options.parse(shlex.split(written)[2:])
        serve = find_serve(options.command)
        if serve is None:
            return None
        instead, knows, paces = map(dict, by_flag)
        task = {
            "image": options.image,
            "environment": {name: value for name, value in options.environment.items() if value is not None},
            "accelerator_type": accelerator_type,
            "kv_blocks": kv_blocks,
            "block_size": block_size,
            "instead": instead,
            "load": {},
            "knows": knows,
            "paces": paces,
        }
        return new_engine(arguments.parse(serve.words), task)
    except (ValueError, run_options.UsageError, arguments.UsageError, Unsupported):
        return None
