"""The commands that a startup script runs in a container of Ray, with a real bash as in a container, and a real Ray.

RAY names the `ray` command of an environment with Ray (`pip install ray`), e.g. RAY=/tmp/ray/bin/ray.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from node.containers import container

from tpudeploy.node import serving

TEMPLATE = Path(__file__).parents[2] / "templates/boot/cluster.sh"
_HEAD, _WORKER, _PORT = "127.0.0.2", "127.0.0.3", 24_567  # Ray takes 127.0.0.1 for the address of the machine
_PATIENCE = 40.0  # real seconds


def snippet(name: str) -> str:
    """Return one of the texts that the template passes to a container, as bash reads it."""
    text = TEMPLATE.read_text(encoding="utf-8")
    texts = re.search(r"^start_in_container=.*?^print\(.*?\n", text, re.DOTALL | re.MULTILINE)
    assert texts is not None
    words = ["bash", "-c", f'{texts[0]}\nprintf %s "${name}"']
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def await_that(claim: Callable[[], bool]) -> None:
    end = time.monotonic() + _PATIENCE
    while not claim():
        assert time.monotonic() < end
        time.sleep(0.1)


class Inside:
    """Processes of their own, with a first process that prints to a file and reaps nothing, as in a container."""

    def __init__(self, folder: Path) -> None:
        self.log = folder / "log"
        script = "mount -t tmpfs none /tmp && exec sleep 600"
        words = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", "bash", "-c", script]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(words, stdout=log, stderr=log)
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        await_that(lambda: bool(children.read_text().split()))
        self.first = children.read_text().split()[0]
        await_that(lambda: Path(f"/proc/{self.first}/cmdline").read_bytes().startswith(b"sleep"))

    def run(self, name: str, *words: str) -> str:
        command = ["nsenter", "-t", self.first, "--pid", "--mount", "bash", "-c", snippet(name), name, *words]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=_PATIENCE).stdout


@pytest.fixture
def inside(tmp_path: Path) -> Iterator[Inside]:
    can_unshare = shutil.which("unshare") and shutil.which("nsenter") and os.geteuid() == 0
    if (
        not can_unshare
        or subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", "true"], check=False).returncode
    ):
        pytest.skip("processes of their own need root and unshare")
    world = Inside(tmp_path)
    yield world
    world.process.kill()
    world.process.wait()


def test_a_server_in_a_container_prints_to_its_log_and_ends_with_all_that_it_started(inside: Inside) -> None:
    assert inside.run("state_in_container") == "false unknown"
    inside.run("start_in_container", "bash", "-c", 'echo "two  words"; sleep 600 & exec sleep 600')
    await_that(lambda: inside.log.read_text() == "two  words\n")
    assert inside.run("state_in_container") == "true 0"
    inside.run("stop_in_container")
    assert inside.run("state_in_container") == "false unknown"
    inside.run("stop_in_container")


def test_a_server_that_ends_by_itself_leaves_its_exit_code_and_another_one_starts(inside: Inside) -> None:
    inside.run("start_in_container", "bash", "-c", "exit 7")
    await_that(lambda: inside.run("state_in_container") == "false 7")
    inside.run("start_in_container", "sleep", "600")
    assert inside.run("state_in_container") == "true 0"


@pytest.mark.exhaustive
@pytest.mark.skipif(
    "RAY" not in os.environ,
    reason="python3 -m venv /tmp/ray && /tmp/ray/bin/pip install ray; then set RAY=/tmp/ray/bin/ray",
)
def test_a_real_ray_takes_the_words_and_lists_its_hosts(tmp_path: Path) -> None:
    ray = Path(os.environ["RAY"])
    words = [str(ray), *serving.command(container(hosts=2, setup=()))[1:]]
    python = [str(ray.with_name("python3")), "-c", snippet("nodes_in_container")]
    small = ["--num-cpus=1", "--object-store-memory=80000000"]

    def nodes() -> list[str]:
        listed = subprocess.run(python, check=False, capture_output=True, text=True, timeout=_PATIENCE)
        return [line.split()[0] for line in listed.stdout.splitlines()]

    with (tmp_path / "ray.log").open("wb") as log:
        head = [*words, "--head", f"--port={_PORT}", f"--node-ip-address={_HEAD}", *small]
        worker = [*words, f"--address={_HEAD}:{_PORT}", f"--node-ip-address={_WORKER}", *small]
        processes = [subprocess.Popen(head, stdout=log, stderr=log)]
        try:
            await_that(lambda: nodes() == [_HEAD])
            processes.append(subprocess.Popen(worker, stdout=log, stderr=log))
            await_that(lambda: nodes() == [_HEAD, _WORKER])
            processes[1].terminate()
            await_that(lambda: nodes() == [_HEAD])
        finally:
            for process in processes:
                process.terminate()
            for process in processes:
                process.wait(_PATIENCE)
