"""How the startup script reads secrets, and where they never appear."""

from __future__ import annotations

import pytest

from node.bench import Bench
from node.boots import cause_of_failure, payload, script, with_secrets
from tpudeploy.domain.deployment import SecretRef

CANARY = "hf-canary-8a41"


@pytest.mark.parametrize(
    ("secret", "requests"),
    [
        ("hf-token", "projects/my-project/secrets/hf-token/versions/latest"),
        ("projects/other/secrets/s/versions/7", "projects/other/secrets/s/versions/7"),
        ("projects/other/secrets/s", "projects/other/secrets/s/versions/latest"),
    ],
)
def test_asks_secret_manager_for_the_version_the_profile_names(bench: Bench, secret: str, requests: str) -> None:
    bench.rules.append(("curl", "secretmanager", [(200, payload("x1"))]))
    assert bench.run(script(with_secrets(SecretRef(variable="A", secret=secret)))).returncode == 0
    [call] = [call for call in bench.calls("curl") if "secretmanager" in call.line]
    assert call.argv[-1] == f"https://secretmanager.googleapis.com/v1/{requests}:access"


@pytest.mark.parametrize("value", [CANARY, "two\nlines", "sp ace $HOME `id` \"q\" 'q' \\", "ключ", "-e X=1"])
def test_a_secret_reaches_docker_by_its_environment_alone(bench: Bench, value: str) -> None:
    bench.rules.append(("curl", "secretmanager", [(200, payload(value))]))
    result = bench.run(script(with_secrets()))
    assert result.returncode == 0
    phases = [phase for phase, _ in bench.moves()]
    assert {"secrets", "image"} < set(phases)
    assert phases[-2:] == ["starting", "serving"]
    for call in bench.calls():
        is_run = call.argv[:2] == ["docker", "run"]
        assert call.env.get("HF_TOKEN") == (value if is_run else None)
        assert value not in call.argv
    assert value not in result.stdout + result.stderr
    assert value not in (bench.root / "var/log/tpudeploy/startup.log").read_text()


def test_tracing_shows_no_secret(bench: Bench) -> None:
    bench.rules.append(("curl", "secretmanager", [(200, payload(CANARY))]))
    traced = script(with_secrets()).replace("set -Eeuo pipefail", "set -xEeuo pipefail")
    result = bench.run(traced)
    assert result.returncode == 0
    output = result.stdout + result.stderr
    assert "+" in output
    assert CANARY not in output
    assert "ya29.bench" not in output
    assert payload(CANARY).split('"data": "')[1][:12] not in output


def test_no_file_holds_a_secret(bench: Bench) -> None:
    bench.rules.append(("curl", "secretmanager", [(200, payload(CANARY))]))
    assert bench.run(script(with_secrets())).returncode == 0
    files = [path for path in bench.root.rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if CANARY in path.read_text()]


@pytest.mark.parametrize("first", [503, 429, 401, 0])
def test_asks_again_when_secret_manager_stumbles(bench: Bench, first: int) -> None:
    bench.rules.append(("curl", "secretmanager", [(first, ""), (200, payload("x1"))]))
    assert bench.run(script(with_secrets())).returncode == 0


@pytest.mark.parametrize(
    ("status", "says"),
    [
        (403, "vm@p.iam.gserviceaccount.com may not read secret projects/my-project/secrets/hf-token"),
        (404, "secrets/hf-token/versions/latest does not exist"),
        (400, "Google says: The version is disabled."),
    ],
)
def test_a_refused_secret_ends_the_boot_at_once(bench: Bench, status: int, says: str) -> None:
    body = '{\n  "error": {\n    "code": 4,\n    "message": "The version is disabled."\n  }\n}'
    assert says in cause_of_failure(bench, with_secrets(), ("curl", "secretmanager", [(status, body)]))
    assert max(bench.sleeps()) <= 10, "only the report waits its turn"
    assert not bench.calls("docker run")


def test_a_missing_role_is_named(bench: Bench) -> None:
    assert "roles/secretmanager.secretAccessor" in cause_of_failure(
        bench, with_secrets(), ("curl", "secretmanager", [(403, "{}")])
    )


def test_gives_up_on_a_secret_manager_that_stays_away(bench: Bench) -> None:
    assert "in 6 attempts (last: HTTP 503" in cause_of_failure(
        bench, with_secrets(), ("curl", "secretmanager", [(503, "")])
    )


def test_a_secret_that_the_container_printed_is_masked_everywhere(bench: Bench) -> None:
    bench.rules.append(("curl", "secretmanager", [(200, payload(CANARY))]))
    rules = [
        ("curl", "/health", [(0, "")]),
        ("docker", "inspect -f", [(0, "false 1\n")]),
        ("docker", "logs", [(0, f"ValueError: {CANARY}\n")]),
    ]
    assert cause_of_failure(bench, with_secrets(), *rules).endswith("ValueError: [secret]")
    assert CANARY not in (bench.root / "var/log/tpudeploy/startup.log").read_text()


def test_an_api_key_is_sent_and_never_shown(bench: Bench) -> None:
    bench.rules.append(("curl", "secretmanager", [(200, payload(CANARY))]))
    result = bench.run(script(with_secrets(SecretRef(variable="VLLM_API_KEY", secret="key"))))
    assert result.returncode == 0
    [ask] = [call for call in bench.calls("curl") if "chat/completions" in call.line]
    assert f"Authorization: Bearer {CANARY}" in ask.stdin.splitlines()
    assert CANARY not in ask.line


def test_a_metadata_server_that_is_away_is_named(bench: Bench) -> None:
    assert "metadata server" in cause_of_failure(bench, with_secrets(), ("curl", "project/project-id", [(500, "")]))
