"""What a start needs is fetched side by side: the first part that fails ends the others, and is the cause that is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from node.bench import Bench
from node.boots import cause_of_failure, payload, script, with_secrets
from node.containers import container

NEVER = "a call that nobody makes"
needs_proc = pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="looks at processes through /proc")


def test_secrets_are_read_while_the_image_is_pulled(bench: Bench) -> None:
    bench.rules += [
        ("docker", "pull", [(0, "sha256:1", "secretmanager")]),
        ("curl", "secretmanager", [(200, payload("x1"))]),
    ]
    result = bench.run(script(with_secrets()))
    assert result.returncode == 0, result.stdout
    assert len(bench.calls("docker pull")) == 1


@needs_proc
def test_a_secret_that_may_not_be_read_ends_the_pull_and_is_the_cause(bench: Bench) -> None:
    cause = cause_of_failure(
        bench,
        with_secrets(),
        ("docker", "pull", [(0, "", NEVER)]),
        ("curl", "secretmanager", [(403, "{}", "docker")]),
    )
    assert "may not read secret" in cause
    assert not _running(bench.folder)


def test_an_image_that_is_here_is_not_pulled_and_the_secrets_are_read_all_the_same(bench: Bench) -> None:
    bench.rules.append(("curl", "secretmanager", [(200, payload("x1"))]))
    assert bench.run(script(with_secrets())).returncode == 0
    bench.rules.append(("docker", "image inspect", [(0, "[]")]))
    result = bench.run(script(with_secrets()))
    assert result.returncode == 0
    assert "image: It is here already" in result.stdout
    assert len(bench.calls("docker pull")) == 1


def test_a_pull_tells_how_many_of_the_layers_are_here(bench: Bench) -> None:
    begun = "".join(f"{n}: Pulling fs layer\n" for n in range(9))
    layers = "".join(f"{n}: Waiting\n{n}: Download complete\n{n}: Pull complete\n" for n in range(9))
    bench.rules.append(
        ("docker", "pull", [(0, f"v1: Pulling from x/y\nb: Already exists\n{begun}{layers}Status: ok\n")])
    )
    assert bench.run(script(container())).returncode == 0
    assert bench.attributes()["pulled"] == ["100"], "the boot was over before another report was due"


def test_a_pull_that_stalls_twice_is_given_up_while_there_is_time_to_say_so(bench: Bench) -> None:
    cause = cause_of_failure(bench, container(), ("docker", "pull", [(124, "")]))
    assert cause.startswith("The image could not be pulled: it took longer than 20 s, twice.")
    assert len(bench.calls("docker pull")) == 2


def test_a_disk_that_is_full_is_the_cause_though_nothing_can_be_written_there(bench: Bench) -> None:
    full = "failed to register layer: write /usr/lib/x.so: no space left on device"
    assert full in cause_of_failure(bench, container(), ("docker", "pull", [(1, full)]))


def test_without_a_network_the_machine_says_what_it_could_not_reach(bench: Bench) -> None:
    away = "dial tcp: lookup registry-1.docker.io: no such host"
    cause = cause_of_failure(
        bench, with_secrets(), ("docker", "pull", [(1, away)]), ("curl", "secretmanager", [(0, "")])
    )
    assert away in cause or "000 is no connection" in cause


def test_a_part_that_breaks_says_where(bench: Bench) -> None:
    (bench.root / "var/lib/tpudeploy/boot/pulled").mkdir(parents=True)
    cause = cause_of_failure(bench, container())
    assert "broke at its line" in cause
    assert "(Pulling the image)" in cause


def test_each_part_says_how_long_it_took(bench: Bench) -> None:
    bench.rules.append(("curl", "secretmanager", [(200, payload("x1"))]))
    result = bench.run(script(with_secrets()))
    assert "image: done in " in result.stdout
    assert "secrets: done in " in result.stdout


def _running(folder: Path) -> list[str]:
    """The shims of this bench that still run."""
    lines = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = process.joinpath("cmdline").read_text().split("\0")
        except OSError:
            continue
        if str(folder) in words:
            lines.append(" ".join(words))
    return lines


def test_each_start_leaves_its_timeline_beside_the_log_and_the_last_in_a_guest_attribute(bench: Bench) -> None:
    assert bench.run(script(container())).returncode == 0
    bench.rules.append(("docker", "run", [(125, "no such device")]))
    assert bench.run(script(container(), spec="other")).returncode != 0
    # Two starts within one second have the same timeline, so there may be one of a failed start or two.
    first, *failed = bench.attributes()["timeline"]
    noted = [line.split()[0] for line in first.splitlines()]
    assert noted == ["booted", "docker", "image", "image", "starting", "serving"]
    assert [timeline.splitlines()[-1].split()[0] for timeline in failed] in (["starting"], ["starting"] * 2)
    starts = (bench.root / "var/log/tpudeploy/starts.log").read_text().splitlines()
    # The change failed, and then the server before it, which was tried again.
    assert [line.split()[1] for line in starts] == ["abc123", "other", "abc123"]
