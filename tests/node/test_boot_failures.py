"""How a boot fails: bounded, and with its cause."""

from __future__ import annotations

from pathlib import Path

import pytest

from node.bench import Bench
from node.boots import cause_of_failure, script
from node.containers import container, deployment


def test_says_so_when_docker_cannot_be_installed(bench: Bench) -> None:
    bench.without = ("docker",)
    assert "could not install docker.io" in cause_of_failure(bench, container(), ("apt-get", "update", [(100, "")]))


def test_starts_a_docker_that_sleeps_and_gives_up_on_a_dead_one(bench: Bench) -> None:
    assert "did not answer within 120 s" in cause_of_failure(bench, container(), ("docker", "version", [(1, "")]))
    assert bench.calls("systemctl start docker")


def test_gives_up_at_once_on_an_image_that_does_not_exist(bench: Bench) -> None:
    cause = cause_of_failure(
        bench, container(), ("docker", "pull", [(1, "manifest for x:y not found: manifest unknown")])
    )
    assert "cannot be pulled: manifest for x:y not found" in cause
    assert len(bench.calls("docker pull")) == 1


def test_gives_up_on_a_registry_that_stays_away(bench: Bench) -> None:
    assert "could not be pulled in 6 attempts: i/o timeout" in cause_of_failure(
        bench, container(), ("docker", "pull", [(1, "i/o timeout")])
    )


def test_a_container_that_ends_is_noticed_with_its_cause(bench: Bench) -> None:
    log = (
        "INFO 08-07 starting\n"
        "(EngineCore pid=187) ERROR 08-07 20:40:29 [core.py:1349] jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Ran out of memory on HBM.\n"
        "(EngineCore pid=187) For simplicity, JAX has removed its internal frames.\n"
        "(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above.\n"
    )
    cause = cause_of_failure(
        bench,
        container(),
        ("curl", "/health", [(0, "")]),
        ("docker", "inspect -f", [(0, "true 0\n"), (0, "false 1\n")]),
        ("docker", "logs", [(0, log)]),
    )
    assert cause.startswith("The container ended (exit code 1): ")
    assert cause.endswith("): jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Ran out of memory on HBM.")


@pytest.mark.parametrize(
    ("log", "cause"),
    [
        ("usage: vllm serve\nvllm: error: unrecognized arguments: --x\n", "vllm: error: unrecognized arguments: --x"),
        ("a\nValueError: too long\nRuntimeError: Engine core initialization failed.\n", "ValueError: too long"),
        ("  assert n % tp == 0\nAssertionError\nRuntimeError: Engine core initialization failed.\n", "AssertionError"),
        ("ERROR: Could not find a version\n\n", "ERROR: Could not find a version"),
        ("", "it printed nothing"),
        ("RESOURCE_EXHAUSTED " + "é" * 9000, "RESOURCE_EXHAUSTED "),
    ],
)
def test_the_cause_is_the_line_that_says_why(bench: Bench, log: str, cause: str) -> None:
    output = cause_of_failure(
        bench,
        container(),
        ("curl", "/health", [(0, "")]),
        ("docker", "inspect -f", [(0, "false 1\n")]),
        ("docker", "logs", [(0, log)]),
    )
    assert output == f"The container ended (exit code 1): {cause}"


def test_a_cause_that_the_engine_breaks_over_several_lines_is_reported_whole(bench: Bench) -> None:
    log = Path(__file__).parents[1] / "boot_log/data/boot_e2b_v5e1_util095_oom.log"
    cause = cause_of_failure(
        bench,
        container(),
        ("curl", "/health", [(0, "")]),
        ("docker", "inspect -f", [(0, "false 1\n")]),
        ("docker", "logs", [(0, log.read_text(encoding="utf-8"))]),
    )
    assert "RESOURCE_EXHAUSTED: E0101: RuntimeProgramAllocationFailure: Error loading program" in cause
    assert "Attempting to reserve 384.11M at the bottom of memory." in cause
    assert "There are 346.77M free" in cause
    assert "-----" not in cause


def test_docker_run_that_is_refused_says_why(bench: Bench) -> None:
    assert "docker run failed: no such device" in cause_of_failure(
        bench, container(), ("docker", "run", [(125, "docker:\nno such device\n")])
    )


def test_waits_no_longer_than_the_profile_allows(bench: Bench) -> None:
    cause = cause_of_failure(
        bench,
        deployment(timeout=60),
        ("curl", "/health", [(0, "")]),
        ("docker", "logs", [(0, "x Precompile backbone\n")]),
    )
    assert cause == "The server was not healthy within 60 s; it was at: x Precompile backbone"
    assert sum(bench.sleeps()) <= 95  # the last word of the report is written twice, 10 s apart


def test_milestones_of_the_boot_are_reported_when_they_change(bench: Bench) -> None:
    bench.rules += [
        ("curl", "/health", [(0, "")] * 4 + [(200, "")]),
        ("docker", "logs", [(0, "Checkpoint size: 9 GiB"), (0, "Checkpoint size: 9 GiB"), (0, "Init kv-cache | 15")]),
    ]
    assert bench.run(script(container())).returncode == 0
    details = [detail for _, detail in bench.moves()]
    assert details[-4:-1] == ["Starting the container", "Checkpoint size: 9 GiB", "Init kv-cache | 15"]


def test_a_healthy_server_that_completes_nothing_is_a_failure(bench: Bench) -> None:
    rule = ("curl", "completions", [(500, '{"error":{"message":"broken","code":500}}')])
    assert "a completion failed (HTTP 500): broken" in cause_of_failure(bench, container(), rule)


def test_a_script_that_breaks_says_where(bench: Bench) -> None:
    bench.root.mkdir()
    (bench.root / "dev").touch()  # and so no folder for a volume
    assert "broke at its line" in cause_of_failure(bench, container())
