"""What looks like a credential is an error wherever it stands, and is never repeated in what is said about it."""

from __future__ import annotations

import pytest
from config.sources import SMALL, problems

from tpudeploy.config.tokens import masked

_HF = "hf_" + "aBcDeFgHiJkLmNoPqRsTuVwXyZ01234567"
_SERVING = 'serving: {image: "vllm/vllm-tpu:v0.32.0"}\n'

TOKENS = [
    _HF,
    "hf_" + "x" * 34,
    "ghp_" + "a1B2" * 9,
    "github_pat_" + "a1B2_" * 9,
    "AIza" + "Sy-_" * 8 + "abc",
    "sk-proj-" + "a1B2" * 6,
    "ya29." + "a0-_" * 8,
    "AKIA" + "ABCD1234EFGH5678",
    "xoxb-" + "123456789012",
]


def where(token: str) -> dict[str, str]:
    serving = "serving: {{image: x/y:1, {}}}\n"
    return {
        "a comment": f"# {token}\n",
        "an unknown key": f"{token}: 1\n",
        "a longer text": f'health: {{prompt: "say {token}, please"}}\n',
        "a label": f"placement: {{labels: {{team: {token}}}}}\n",
        "a block of text": f"health:\n  prompt: |\n    two lines\n    {token}\n",
        "an argument": serving.format(f"args: {{served_model_name: {token}}}"),
        "a deep argument": serving.format(f"args: {{hf_overrides: {{a: [{{b: {token}}}]}}}}"),
        "a variable": serving.format(f"env: {{A: {token}}}"),
        "a setup step": serving.format(f'setup: ["curl -H {token} x"]'),
        "a choice": f"health: {{via: {token}}}\n",
        "a secret's name": f"secrets: {{HF_TOKEN: {token}}}\n",
        "broken YAML": f"health: [{token}\n",
    }


@pytest.mark.parametrize("token", TOKENS)
@pytest.mark.parametrize("place", list(where("")))
def test_a_credential_is_found_and_not_repeated(token: str, place: str) -> None:
    line = where(token)[place]
    text = SMALL.replace(_SERVING, "") + line if "serving" in line else SMALL + line
    diagnostics = problems(text)
    (credential,) = [d for d in diagnostics if d.code == "TPU1030"]
    assert credential.location is not None
    assert credential.location.width == len(token)
    assert token not in repr(diagnostics)


@pytest.mark.parametrize("token", TOKENS)
def test_a_credential_in_an_argument_is_found_and_not_repeated(token: str) -> None:
    diagnostics = problems(SMALL, sets=[f"health.prompt={token}"])
    assert [d.code for d in diagnostics] == ["TPU1030"]
    assert str(diagnostics[0].location) == "--set:1:15"
    assert token not in repr(diagnostics)


def test_a_credential_filled_in_from_the_environment_is_found_and_not_repeated() -> None:
    diagnostics = problems(SMALL + 'health: {prompt: "${env:T}"}\n', environment={"T": _HF})
    assert [d.code for d in diagnostics] == ["TPU1030"]
    assert diagnostics[0].path == "health.prompt"
    assert _HF not in repr(diagnostics)


def test_a_credential_filled_in_where_it_is_wrong_in_another_way_is_not_repeated() -> None:
    diagnostics = problems(SMALL + "health: \n  via: ${env:T}\n  timeout: ${env:T}\n", environment={"T": _HF})
    assert "TPU1030" in {d.code for d in diagnostics}
    assert _HF not in repr(diagnostics)


def test_a_credential_behind_an_escape_is_found() -> None:
    diagnostics = problems(SMALL + f'health: {{prompt: "\\x68{_HF[1:]}"}}\n')
    assert [d.code for d in diagnostics] == ["TPU1030"]


def test_a_credential_of_a_base_is_found_though_an_overlay_replaces_it() -> None:
    base = {"b.yaml": f"health:\n  prompt: {_HF}\n"}
    (diagnostic,) = problems(SMALL + "extends: b.yaml\nhealth: {prompt: hello}\n", others=base)
    assert str(diagnostic.location) == "b.yaml:2:11"


def test_no_line_of_a_private_key_is_repeated() -> None:
    body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC"
    key = f"-----BEGIN PRIVATE KEY-----\n    {body}\n    -----END PRIVATE KEY-----"
    diagnostics = problems(SMALL + f"health:\n  prompt: |\n    {key}\n  via: {body}\n")
    assert [d.code for d in diagnostics if d.code == "TPU1030"] == ["TPU1030"]
    assert "BEGIN" not in repr(diagnostics)
    assert body not in masked(key)


@pytest.mark.parametrize(
    "word",
    [
        "pip install hf_transfer hf_xet",
        "hf_overrides",
        "/mnt/hf_cache2/models",
        "my_hf_quantization_config",
        "task-scheduler-v2-disk-0123456789",
        "sk-learn-some-long-package-name",
        "ghp_short",
        "AIzawa",
        "a revision: 0123456789abcdef0123456789abcdef01234567",
        "hf_… ghp_… AIza…",
    ],
)
def test_words_of_the_field_are_no_credentials(word: str) -> None:
    assert masked(word) == word
