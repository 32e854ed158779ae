"""A profile in memory, with settings laid over it, and what becomes of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tpudeploy.config.parse import parse
from tpudeploy.config.reader import Unreadable
from tpudeploy.domain.budget import HbmBudget
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import Diagnostic
from tpudeploy.planning.resolve import resolve_without_script
from tpudeploy.sizing.checks import check

BASE = """\
version: 1
name: gemma
model: {id: google/gemma-4-E2B-it}
tpu: {type: v6e-1}
serving:
  image: vllm/vllm-tpu:v0.32.0
  max_model_len: 16384
  max_num_batched_tokens: 4096
  args: {disable_chunked_mm_input: true}
secrets: {VLLM_API_KEY: vllm-key}
placement: {zones: [us-east5-b], provisioning: [spot]}
"""


class OneFile:
    """A reader of one text."""

    def read(self, path: str) -> bytes:
        if path != "gemma.yaml":
            raise Unreadable("does not exist", missing=True)
        return BASE.encode()

    def resolve(self, base: str, relative: str) -> str:  # noqa: ARG002 - there is one folder
        return relative


def deployment(settings: Mapping[str, Any] | None = None, config: Mapping[str, Any] | None = None) -> Deployment:
    """`settings` maps dotted paths to values; `config` is a Hugging Face config for the model."""
    sets = [f"{path}={json.dumps(value)}" for path, value in (settings or {}).items()]
    profile = parse("gemma.yaml", OneFile(), overlays=[], sets=sets, environment={})
    return resolve_without_script(profile, project=None, config_json=None if config is None else json.dumps(config))


def diagnostics_of(
    settings: Mapping[str, Any] | None = None, config: Mapping[str, Any] | None = None
) -> list[Diagnostic]:
    return list(check([deployment(settings, config)]))


def budget(settings: Mapping[str, Any] | None = None, config: Mapping[str, Any] | None = None) -> HbmBudget:
    sized_budget = deployment(settings, config).budget
    assert isinstance(sized_budget, HbmBudget), sized_budget
    return sized_budget
