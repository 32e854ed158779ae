"""A key guards some paths of a server: plan, `explain` and the docs name the ones that stay open."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from command_line import PROFILE, Open

from tpudeploy.catalog import api_paths
from tpudeploy.domain.task import Task

KEYED = PROFILE.replace("  HF_TOKEN: hf-token\n", "  VLLM_API_KEY: vllm-key\n")
PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "api-key.md"
EVERYWHERE = ("/invocations", "/tokenize", "/metrics", "/load", "/version", "/health", "/ping")
PATH = re.compile(r"(?<=[ `])/[a-z][a-z0-9_./]*[a-z0-9]")


@pytest.mark.parametrize(
    ("layer", "present", "absent"),
    [
        (
            "placement: {network: {external_ip: true}}",
            ("/docs", "/generative_scoring", "/kv_event_sources"),
            ("/score", "/sleep", "/adapters", "/v1/models"),
        ),
        ("placement: {network: {external_ip: false}}", ("/generative_scoring",), ()),
        ("model: {id: BAAI/bge-m3}", ("/pooling", "/score", "/rerank"), ("/classify", "/generative_scoring")),
        ("model: {id: BAAI/bge-reranker-v2-m3}", ("/pooling", "/score", "/classify"), ("/generative_scoring",)),
        ("model: {id: Qwen/Qwen3-Reranker-4B}", ("/score", "/classify", "/generative_scoring"), ()),
        ("serving: {env: {VLLM_SERVER_DEV_MODE: '1'}}", ("/sleep", "/collective_rpc"), ()),
        ("serving: {env: {VLLM_SERVER_DEV_MODE: '0'}}", (), ("/sleep",)),
        ("serving: {env: {VLLM_ALLOW_RUNTIME_LORA_UPDATING: 'true'}}", ("/adapters",), ()),
        ("serving: {args: {disable_fastapi_docs: true}}", (), ("/docs", "/openapi.json")),
        ("serving: {args: {disable_fastapi_docs: false}}", ("/docs",), ()),
        ("serving: {args: {enable_tokenizer_info_endpoint: true}}", ("/tokenizer_info",), ()),
        ("serving: {image: 'vllm/vllm-tpu:v0.30.0'}", ("/docs",), ("/kv_event_sources",)),
    ],
)
def test_a_plan_names_the_paths_that_answer_without_the_key(
    cli: Open, layer: str, present: tuple[str, ...], absent: tuple[str, ...]
) -> None:
    at = cli()
    profile, overlay = at.write(KEYED), at.write(f"{layer}\n", "layer.yaml")
    words = at.run("plan", profile, "-f", overlay).words
    warning = words.partition(
        "requires its API key only on paths that begin with /v1, /v2, /inference, /cohere. [TPU2010]"
    )[2]
    paths = set(PATH.findall(warning.partition("put a proxy in front")[0]))
    assert paths >= {*EVERYWHERE, *present}, words
    assert not paths & set(absent)


@pytest.mark.parametrize(("release", "prefixes"), [("0.26.0", "/v1, /v2, /inference."), ("0.21.0", "/v1.")])
def test_the_guard_is_that_of_the_images_release(cli: Open, release: str, prefixes: str) -> None:
    at = cli()
    text = KEYED.replace("vllm-tpu:v0.32.0", f"vllm-tpu:v{release}")
    assert f"requires its API key only on paths that begin with {prefixes}" in at.run("plan", at.write(text)).words


def test_explain_and_the_docs_name_every_path_that_is_open(cli: Open) -> None:
    at = cli()
    groups = list(api_paths.served(None, api_paths.words_of(Task.UNKNOWN), (), {}))
    paths = {path for runs in (True, False) for path in api_paths.open_paths(groups, None, runs_model=runs)}
    page = at.run("explain", "TPU2001").words
    assert paths <= set(PATH.findall(page))
    assert all(prefix in page for prefix in api_paths.guarded_prefixes())
    text = PAGE.read_text(encoding="utf-8")
    assert paths <= set(PATH.findall(text))
    assert {prefix for _, prefixes in api_paths.GUARDED for prefix in prefixes} <= set(PATH.findall(text))
    for group in api_paths.GROUPS:
        setting = group.variable or group.flag.replace("-", "_") or group.unless.replace("-", "_")
        assert setting in text, group
