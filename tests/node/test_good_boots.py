"""What the startup script does on a machine where all goes well, through real bash; docker, curl and sleep are stood in for."""

from __future__ import annotations

from pathlib import Path

from node.answers import Rule
from node.bench import CHAT, Bench
from node.boots import payload, script, with_secrets
from node.containers import container
from tpudeploy.node import serving

HEALTHY_AFTER: Rule = ("curl", "/health", [(0, ""), (503, ""), (200, "")])


def test_ends_well_once_a_prompt_was_completed(bench: Bench) -> None:
    bench.rules.append(HEALTHY_AFTER)
    boot = bench.run(script(container()))
    assert (boot.returncode, boot.stderr) == (0, "")
    result = bench.attributes()
    assert list(dict(bench.moves())) == ["booted", "docker", "image", "starting", "serving"]
    assert result["phase"] == ["booted", "serving"]
    assert result["spec"] == ["abc123"]
    assert result["answer"] == [CHAT]
    assert (bench.root / "var/log/tpudeploy/startup.log").read_text() == boot.stdout


def test_docker_gets_the_container_with_host_paths_under_the_root(bench: Bench) -> None:
    assert bench.run(script(container())).returncode == 0
    [run] = bench.calls("docker run")
    expected = serving.docker_run(container())
    assert run.argv == [word.replace("/dev/shm:", f"{bench.root}/dev/shm:") for word in expected]
    assert (bench.root / "dev/shm").is_dir()


def test_a_second_boot_removes_the_container_and_keeps_the_image(bench: Bench) -> None:
    assert bench.run(script(container())).returncode == 0
    bench.rules.append(("docker", "image inspect", [(0, "[]")]))
    assert bench.run(script(container())).returncode == 0
    assert len(bench.calls("docker pull")) == 1
    assert [call.argv[-1] for call in bench.calls("docker rm -f")].count("vllm-gemma4") >= 2


def test_another_spec_pulls_again_and_removes_the_container_under_its_old_name(bench: Bench) -> None:
    assert bench.run(script(container())).returncode == 0
    bench.rules.append(("docker", "image inspect", [(0, "[]")]))
    assert bench.run(script(container(name="renamed"), spec="other")).returncode == 0
    assert len(bench.calls("docker pull")) == 2
    assert [call.argv[-1] for call in bench.calls("docker rm -f")][-2:] == ["renamed", "vllm-gemma4"]


def test_removes_the_lock_that_a_killed_libtpu_left(bench: Bench) -> None:
    lock = bench.root / "tmp/libtpu_lockfile"
    lock.parent.mkdir(parents=True)
    lock.touch()
    assert bench.run(script(container())).returncode == 0
    assert not lock.exists()


def test_installs_docker_where_there_is_none(bench: Bench) -> None:
    bench.without = ("docker",)
    assert bench.run(script(container())).returncode == 0
    assert "docker.io" in bench.calls("apt-get")[-1].argv


def test_pulls_again_after_a_fault(bench: Bench) -> None:
    bench.rules.append(("docker", "pull", [(1, "TLS handshake timeout"), (1, "toomanyrequests"), (0, "sha256:1")]))
    assert bench.run(script(container())).returncode == 0
    assert bench.sleeps()[:2] == [5, 10]


def test_logs_in_to_artifact_registry_with_the_machines_own_token(bench: Bench) -> None:
    assert bench.run(script(container(image="europe-docker.pkg.dev/p/r/vllm:1"))).returncode == 0
    [login] = bench.calls("docker login")
    assert login.stdin.strip() == "ya29.bench"
    assert login.argv[-1] == "https://europe-docker.pkg.dev"
    assert login.env["DOCKER_CONFIG"].startswith(f"{bench.root}/run/")
    assert not Path(login.env["DOCKER_CONFIG"]).exists()


def test_does_not_log_in_elsewhere(bench: Bench) -> None:
    assert bench.run(script(container())).returncode == 0
    assert not bench.calls("docker login")


def test_a_base_model_is_asked_without_a_chat_template(bench: Bench) -> None:
    bench.rules += [
        ("curl", "/v1/chat/completions", [(400, "no chat template")]),
        ("curl", "/v1/completions", [(200, '{"id":1}')]),
    ]
    assert bench.run(script(container())).returncode == 0
    assert bench.attributes()["answer"] == ['{"id":1}']


def test_probes_and_asks_the_loopback_address_by_number(bench: Bench) -> None:
    assert bench.run(script(container(port=8123))).returncode == 0
    local = [call.argv[-1] for call in bench.calls("curl") if ":8123" in call.line]
    assert local[-2:] == ["http://127.0.0.1:8123/health", "http://127.0.0.1:8123/v1/chat/completions"]


def test_serves_where_guest_attributes_are_refused(bench: Bench) -> None:
    bench.rules.append(("curl", "guest-attributes/", [(403, "")]))
    result = bench.run(script(container()))
    assert result.returncode == 0
    assert result.stdout.count("Guest attributes cannot be written here") == 1


def test_without_systemd_the_server_comes_up_and_the_log_says_what_is_missing(bench: Bench) -> None:
    result = bench.run(script(container()))
    assert result.returncode == 0
    assert "This machine does not run systemd, so a change is seen only at the next boot" in result.stdout


def test_every_call_of_curl_is_bounded(bench: Bench) -> None:
    bench.rules.append(("curl", "secretmanager", [(200, payload("x1"))]))
    assert bench.run(script(with_secrets())).returncode == 0
    assert all("--max-time" in call.argv for call in bench.calls("curl"))
