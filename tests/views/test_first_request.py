"""The lines after an apply can be pasted: curl's has the body that vLLM takes, the SDK's address ends in /v1."""

from __future__ import annotations

import ast
import json
import shlex

import pytest
from command_line import PROFILE

import tpudeploy as td
from tpudeploy.loading import sized
from tpudeploy.views.first_request import first_request

KEY = PROFILE.replace("secrets:\n", "secrets:\n  VLLM_API_KEY: vllm-key\n")
NAMED = PROFILE.replace("serving:\n", "serving:\n  args: {served_model_name: \"it's $(a) 'name'\"}\n")


@pytest.mark.parametrize(("text", "model"), [(PROFILE, ""), (KEY, ""), (NAMED, "it's $(a) 'name'")])
def test_both_lines_are_whole_for_their_language(text: str, model: str) -> None:
    deployment = sized(td.Profile.from_text(text))
    curl, sdk = first_request(deployment, "http://10.0.0.1:8000")
    words = shlex.split(curl)
    assert words[:2] == ["curl", "http://10.0.0.1:8000/v1/chat/completions"]
    assert json.loads(words[-1])["model"] == (model or deployment.model_id)
    constants = [node.value for node in ast.walk(ast.parse(sdk)) if isinstance(node, ast.Constant)]
    assert "http://10.0.0.1:8000/v1" in constants
    assert (model or deployment.model_id) in constants
    has_key = text == KEY
    assert ("Authorization: Bearer $VLLM_API_KEY" in words) == has_key
    assert ("os.environ['VLLM_API_KEY']" in sdk) == has_key


def test_an_embedding_server_gets_its_own_call() -> None:
    text = PROFILE.replace("google/gemma-4-E2B-it", "Qwen/Qwen3-Embedding-8B")
    text = text.replace("  max_model_len: 16384\n", "  max_model_len: 8192\n  args: {runner: pooling}\n")
    curl, sdk = first_request(sized(td.Profile.from_text(text)), "http://10.0.0.1:8000")
    assert "/v1/embeddings" in curl
    assert ".embeddings.create(" in sdk
