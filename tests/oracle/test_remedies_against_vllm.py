"""Applies each remedy of a boot log to the setting that produced it, and asks a real vLLM for its configuration.

Set VLLM_PYTHON to a Python that has it. tests/field/test_boot_logs.py holds the same settings against `validate`.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from field.test_boot_logs import (
    BESIDE,
    EXAMPLES,
    IN_WORDS,
    PRODUCED,
    VALUE,
    profile_with,
    remedy_of,
    values_of,
)
from oracle.real_vllm import ask

import tpudeploy as td
from tpudeploy.node.serving import serve

VLLM_PYTHON = os.environ.get("VLLM_PYTHON", "")

pytestmark = pytest.mark.skipif(not VLLM_PYTHON, reason="VLLM_PYTHON names no Python that has vLLM")

CASES: dict[str, dict[str, Any]] = {
    **{log: before | values_of(remedy_of(log)) | IN_WORDS.get(log, {}) for log, before in PRODUCED.items()},
    **{name: BESIDE.get(name, {}) | values_of(remedy) for name, remedy in EXAMPLES.items() if VALUE.search(remedy)},
}


def _words(folder: Path, settings: dict[str, Any]) -> tuple[str, ...]:
    profile = td.Profile.load(folder / profile_with(folder, settings))
    return serve(profile, tensor_parallel_size=1)[3:]  # without `vllm serve MODEL`


@cache
def _refusals(folder: Path) -> dict[str, str | None]:
    commands = [_words(folder, settings) for settings in CASES.values()]
    return dict(zip(CASES, ask(VLLM_PYTHON, "configure_with_vllm.py", commands), strict=True))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("remedies")


@pytest.mark.parametrize("name", CASES)
def test_the_engine_accepts_what_a_remedy_makes_of_the_setting_that_failed(name: str, folder: Path) -> None:
    assert _refusals(folder)[name] is None
