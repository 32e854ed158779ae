"""An exported log has what explains a boot, and nothing that is private."""

from __future__ import annotations

from pathlib import Path

import pytest

from tpudeploy.boot_log.export import redact, report

REAL = Path(__file__).parent / "data" / "boot_e2b_v5e1_util095_oom.log"


# What the keys of services begin with, one example for each.
KEYS = (
    "glrt- glsa_ gsk_ r8_ xai- pplx- nvapi- npm_ pypi- dckr_pat_ shpat_ dop_v1_ sk_live_ rk_test_ whsec_ hvs. "
    "abc.atlasv1. lin_api_ ntn_ secret_ NRAK- AGE-SECRET-KEY- dp.pt. SG. key- dapi sq0atp- xapp- tskey-auth- 1//0"
)


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
        ("proxy http://alice:s3cr3t@proxy.acme.com:3128 used", "alice", ":3128 used"),
        ("proxy http://alice:s3cr3t@proxy.acme.com:3128 used", "acme", "proxy http://"),
        ("GET https://huggingface.co/x?token=abc1&sig=zzz9&page=1", "zzz9", "https://huggingface.co/x?"),
        ("https://storage.googleapis.com/our-w/f?X-Goog-Signature=0011aabb", "0011aabb", "googleapis.com"),
        ("https://storage.googleapis.com/our-w/f?X-Goog-Signature=0011aabb", "our-w", "/f?"),
        ("Authorization: Basic dXNlcjpwYXNz", "dXNlcjpwYXNz", "Authorization"),
        ("{'x-api-key': 'topsecret', 'Accept': '*/*'}", "topsecret", "'Accept': '*/*'"),
        ("Cookie: session=abcdef; other=1", "abcdef", "Cookie"),
        ("AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG vllm serve", "K7MDENG", "vllm serve"),
        ("environ({'SHELL': '/bin/bash', 'DB': 'postgres://u:p@db/x'})", "postgres", "environ"),
        ('declare -x SMTP="mail.acme.com"', "mail", "declare -x SMTP="),
        ("startup-script: + OUR_DB=db.acme.com:5432", "acme", "OUR_DB="),
        ('"private_key_id": "abcdef0123", "type": "service_account"', "abcdef0123", "service_account"),
        ('"project_id": "acme-prod", "zone": "us-east5-b"', "acme-prod", "us-east5-b"),
        ("gcloud --project acme-prod compute", "acme-prod", "compute"),
        ("consumer 'project:acme-prod'", "acme-prod", "consumer"),
        ("eu.gcr.io/acme-prod/img:1", "acme-prod", "/img:1"),
        ("HTTPSConnectionPool(host='models.acme.io', port=443)", "acme", "port=443"),
        ("NameResolutionError: Failed to resolve 'models.acme.io'", "acme", "Failed to resolve"),
        ("pulled from registry.acme.internal/team/img", "acme", "/team/img"),
        ("from 2001:db8::1 at 16:03:09", "2001:db8", "16:03:09"),
        (r"prompt: 'My \'plan\'', params: SamplingParams(n=1)", "plan", "SamplingParams(n=1)"),
        ("messages=[{'role': 'user', 'content': 'hello there'}]", "hello", "messages="),
        ("key 8f3Kd9sLq2Vb7Xm4Zp1Rt6Yw0Nc5Hj3Gf8Du2Ea9 of it", "8f3Kd9sLq2", "of it"),
        ("/home/alice/work is full", "alice", "/work is full"),
        ("vllm serve --hf-token abcd --port 8000", "abcd", "--port 8000"),
        ("password: 12345", "12345", "password"),
        ("AccountName=x;AccountKey=abcdEFGH0123==;EndpointSuffix=y", "abcdEFGH", "EndpointSuffix=y"),
        ("Endpoint=sb://x;SharedAccessKey=abcdEFGH0123=", "abcdEFGH", "Endpoint"),
        ("POST https://hooks.slack.com/services/T0/B0/XXXXXXXX failed", "XXXXXXXX", "failed"),
        ("POST https://discord.com/api/webhooks/123/tokentoken 404", "tokentoken", "404"),
        ("POST https://ntfy.sh/our-topic", "our-topic", "POST"),
        ("GET https://models.acme.io/v1/chat/completions 200", "acme", "/v1/chat/completions 200"),
        ("https://chat.googleapis.com/v1/spaces/A/messages?key=abcdef&x=1", "abcdef", "x=1"),
        ("https://api.telegram.org/bot123456789:AAabcdefghijklmnop/sendMessage", "AAabcdef", "https"),
        ("curl -u me:topsecret https://example.com", "topsecret", "curl"),
        ("machine h login me password topsecret", "topsecret", "machine h"),
        ("db.acme.com:5432:db:user:topsecret", "topsecret", ":5432:"),
        *((f"got {prefix}abcdefghijklmnop0123 here", "abcdefghijklmnop", "here") for prefix in KEYS.split()),
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


@pytest.mark.parametrize(
    "line",
    [
        "non-default args: {'max_num_batched_tokens': 2048, 'tokenizer_mode': 'auto', 'api_key': None, 'tokens': 16}",
        "TPU KV cache size: 1,152,000 tokens, Maximum concurrency for 16,384 tokens per request: 70.31x",
        "max_num_batched_tokens=2048 num_tokens: 16, skip_tokenizer_init=False",
        "image sha256:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff",
        "VLLM_XLA_CACHE_PATH=/root/.cache/vllm/xla_cache",
        "Error loading program 'jit_step_fun_v2_ABCdefghijklmnopqrstuvwxyz0123456789': Attempting to reserve 384.11M",
        'File "/usr/local/lib/python3.12/site-packages/vllm/v1/engine/core.py", line 1, in run',
        "HTTPConnectionPool(host='metadata.google.internal', port=80): Max retries exceeded",
        "Starting vLLM server on http://0.0.0.0:8000 at 16:03:09, pid=7; std::string",
        "See https://docs.vllm.ai/en/latest/x.html and https://huggingface.co/google/gemma-4-E2B-it",
    ],
)
def test_what_explains_a_boot_stays(line: str) -> None:
    assert redact(line, {}) == line
