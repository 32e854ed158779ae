"""An exported log has what explains a boot, and nothing that is private."""

from __future__ import annotations

from pathlib import Path

import pytest

from tpudeploy.boot_log.export import redact, report

REAL = Path(__file__).parent / "data" / "boot_e2b_v5e1_util095_oom.log"


@pytest.mark.parametrize(
    ("line", "private", "rest"),
    [
        ("non-default args: {'api_key': ['sk-abc'], 'max_model_len': 8192}", "sk-abc", "'max_model_len': 8192"),
        ("HF_TOKEN=hello docker run", "hello", "docker run"),
        ("Authorization: Bearer abcdef", "abcdef", "Authorization"),
        ("token hf_ABCDEFGHIJKLMNOP is invalid", "hf_ABCDEFGHIJKLMNOP", "is invalid"),
        ("as vllm@my-project.iam.gserviceaccount.com", "my-project", "as ACCOUNT"),
        ("projects/my-project/secrets/key", "my-project", "secrets/key"),
        ("from gs://our-weights/llama", "our-weights", "/llama"),
        ("us-docker.pkg.dev/my-project/vllm/vllm-tpu:v0.32.0", "my-project", "vllm-tpu:v0.32.0"),
        ("connect to 10.128.0.7:8476 failed", "10.128.0.7", ":8476 failed"),
        ("host t1v-n-1.us-east5-b.c.my-project.internal", "my-project", "us-east5-b"),
        ("gemma-5f3a-0-1 is up", "gemma-5f3a-0-1", "machine-1 is up"),
    ],
)
def test_what_is_private_is_replaced_and_the_rest_of_its_line_stays(line: str, private: str, rest: str) -> None:
    text = redact(line, {"gemma-5f3a-0-1": "machine-1"})
    assert private not in text
    assert rest in text


def test_a_name_within_another_name_does_not_break_it() -> None:
    names = {"gemma": "deployment", "gemma.team": "host", "": "nothing"}
    assert redact("gemma.team and gemma", names) == "host and deployment"
    assert redact("gemma.team and gemma", dict(reversed(names.items()))) == "host and deployment"


def test_a_report_has_its_facts_and_each_log_under_its_title() -> None:
    text = report(["tpudeploy", "gemma"], {"gemma on slice-a": "one\n\n", "b": "two"}, {"slice-a": "machine-1"})
    assert text == "tpudeploy\ngemma\n\n== gemma on machine-1\none\n\n== b\ntwo\n"


def test_a_real_log_keeps_every_line_and_its_cause() -> None:
    log = REAL.read_text(encoding="utf-8")
    text = report(["tpudeploy"], {"one": log}, {})
    assert len(text.splitlines()) == len(log.splitlines()) + 3
    assert "Attempting to reserve 384.11M" in text
    assert "version 0.26.1rc1" in text
