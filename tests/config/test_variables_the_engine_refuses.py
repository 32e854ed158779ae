"""Flags that refuse what the profile itself sets, and what is known of a model whose configuration is named."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import command

BASE = "version: 1\nname: gemma\nmodel: {id: google/gemma-4-E2B-it}\ntpu: {type: v6e-1}\n"
CHECK = "fail_on_environ_validation: true"


@pytest.mark.parametrize(
    ("serving", "refused"),
    [
        (f"padding_gap: 16, args: {{{CHECK}}}", "VLLM_TPU_BUCKET_PADDING_GAP"),
        (f"xla_cache_bucket: gs://b/c, args: {{{CHECK}}}", "VLLM_XLA_CACHE_PATH"),
        (f"env: {{VLLM_TPU_BUCKET_PADDING_GAP: '16'}}, args: {{{CHECK}}}", "VLLM_TPU_BUCKET_PADDING_GAP"),
        (f"env: {{VLLM_SOMETHING_ELSE_ENTIRELY: '1'}}, args: {{{CHECK}}}", "VLLM_SOMETHING_ELSE_ENTIRELY"),
        (f"args: {{{CHECK}}}", ""),
        ("padding_gap: 16", ""),
    ],
)
def test_variables_that_the_engine_refuses_by_its_own_flag_are_an_error(
    serving: str, refused: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = f"{BASE}serving: {{image: 'vllm/vllm-tpu:v0.32.0', {serving}}}\n"
    (tmp_path / "p.yaml").write_text(text, encoding="utf-8")
    validated = command(tmp_path, capsys, "validate", "p.yaml")
    assert validated.code == (1 if refused else 0), validated.all
    assert f"--fail-on-environ-validation refuses {refused}" in validated.all or not refused


@pytest.mark.parametrize(("length", "code"), [("", 1), ("max_model_len: 4096, ", 1), ("max_model_len: auto, ", 1)])
def test_a_threshold_above_the_models_length_is_an_error(
    length: str, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (
        f"{BASE}serving: {{image: 'vllm/vllm-tpu:v0.32.0', {length}args: {{long_prefill_token_threshold: 500000}}}}\n"
    )
    (tmp_path / "p.yaml").write_text(text, encoding="utf-8")
    assert command(tmp_path, capsys, "validate", "p.yaml").code == code


def test_a_model_whose_configuration_is_named_is_not_asked_to_name_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = BASE.replace("{id: google/gemma-4-E2B-it}", "{id: acme/foo, config: config.json}")
    (tmp_path / "p.yaml").write_text(f"{text}serving: {{image: 'vllm/vllm-tpu:v0.32.0'}}\n", encoding="utf-8")
    (tmp_path / "config.json").write_text('{"model_type": "foo"}', encoding="utf-8")
    checked = command(tmp_path, capsys, "validate", "p.yaml")
    assert "TPU2120" in checked.all
    assert "Name the model's config.json" not in checked.all
