"""Compares the table of paths with the routes of a real vLLM: set VLLM_PYTHON to a Python that has it."""

from __future__ import annotations

import os
import subprocess
from typing import Any

import pytest
from oracle.real_vllm import ask

from tpudeploy.catalog import api_paths

VLLM_PYTHON = os.environ.get("VLLM_PYTHON", "")
TASKS = ("generate", "embed", "token_embed", "classify", "score", "token_classify")
SETTINGS: tuple[tuple[tuple[str, ...], dict[str, str]], ...] = (
    ((), {}),
    (("disable-fastapi-docs",), {}),
    (("enable-tokenizer-info-endpoint", "enable-fault-tolerance", "tokens-only"), {}),
    ((), {"VLLM_ALLOW_RUNTIME_LORA_UPDATING": "1"}),
    ((), {"VLLM_SERVER_DEV_MODE": "1"}),
)

pytestmark = pytest.mark.skipif(not VLLM_PYTHON, reason="VLLM_PYTHON names no Python that has vLLM")


def test_the_paths_that_answer_without_the_key_are_those_of_the_engine() -> None:
    version = "import importlib.metadata as m; print(m.version('vllm').partition('+')[0])"
    release = subprocess.check_output([VLLM_PYTHON, "-c", version], text=True).strip()
    cases = [(flags, task, variables) for task in TASKS for flags, variables in SETTINGS]
    rows: list[Any] = [([f"--{flag}" for flag in flags], task, variables) for flags, task, variables in cases]
    prefixes, *answers = ask(VLLM_PYTHON, "dump_api_paths.py", rows)
    assert tuple(prefixes) == api_paths.guarded_prefixes(release)
    for (flags, task, variables), paths in zip(cases, answers, strict=True):
        groups = list(api_paths.served(release, frozenset({task}), flags, variables))
        named = {path for runs in (True, False) for path in api_paths.open_paths(groups, release, runs_model=runs)}
        below = tuple(f"{path}/" for path in named)
        unguarded = {path for path in paths if not path.startswith((*prefixes, *below))}
        assert named == unguarded, (task, flags, variables)
