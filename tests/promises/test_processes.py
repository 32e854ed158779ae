"""Real processes, real signals, seconds of real time: what a kill and a Ctrl-C leave behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from command_line import PROFILE
from real_time import DEADLINE, until

from tpudeploy.cli.interrupts import _FOR_THE_LOCK as FOR_THE_LOCK
from tpudeploy.cli.interrupts import _FOR_THE_STEP as FOR_THE_STEP
from tpudeploy.emulator import Emulator, running
from tpudeploy.emulator.http_server import HttpRequest, Reply

pytestmark = pytest.mark.waits

IN_A_BUCKET = ("--backend", "gs://states/team")
NEVER = 100 * DEADLINE  # seconds to a reply that a run must not wait for
# How long an interrupted run waits for its step, and then for its lock, is seconds: too few for a busy machine. Here it
# waits for what is to come until it comes, and keeps to its own limit for what never does.
PROGRAM = """
from tpudeploy.cli import interrupts, main
interrupts._FOR_THE_STEP, interrupts._FOR_THE_LOCK = {step}, {lock}
main.run()
"""
# Each phase of a slice outlasts two polls, so that each is seen.
TIMINGS = {"queued": 1.5, "waiting": 1.5, "provisioning": 3.0, "boot": 1.0, "deleting": 0.3}


@pytest.fixture
def emulator() -> Iterator[Emulator]:
    with running(scenario={"nodes": "simulated", "timings": TIMINGS}) as emulator:
        yield emulator


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "gemma.yaml").write_text(PROFILE, encoding="utf-8")
    (tmp_path / "second.yaml").write_text(PROFILE.replace("name: gemma", "name: second"), encoding="utf-8")
    return tmp_path


def test_killed_outright_a_rerun_ends_with_one_slice_and_destroy_with_none(emulator: Emulator, folder: Path) -> None:
    with command(emulator, folder, "apply", "-auto-approve", "gemma.yaml") as run:
        heard(run, "Provisioning")
        run.kill()
        assert run.wait(DEADLINE) == -signal.SIGKILL
    assert ended(emulator, folder, "apply", "-auto-approve", "gemma.yaml") == 0
    assert states(emulator) == ["ACTIVE"]
    assert ended(emulator, folder, "destroy", "-auto-approve", "gemma.yaml") == 0
    assert states(emulator) == []


def test_killed_outright_with_the_state_in_a_bucket_a_rerun_goes_on_once_the_lock_is_freed(
    emulator: Emulator, folder: Path
) -> None:
    apply = ("apply", "-auto-approve", *IN_A_BUCKET, "gemma.yaml")
    with command(emulator, folder, *apply) as run:
        heard(run, "Provisioning")
        run.kill()
        assert run.wait(DEADLINE) == -signal.SIGKILL
    for lock in locks(emulator):  # there is one if it died in the middle of a step
        assert ended(emulator, folder, *apply) == 10
        assert ended(emulator, folder, "force-unlock", "-force", lock, *IN_A_BUCKET) == 0
    assert ended(emulator, folder, *apply) == 0
    assert states(emulator) == ["ACTIVE"]
    assert ended(emulator, folder, "destroy", "-auto-approve", *IN_A_BUCKET, "gemma.yaml") == 0
    assert states(emulator) == []


@pytest.mark.parametrize("where", [(), IN_A_BUCKET], ids=["in a folder", "in a bucket"])
@pytest.mark.parametrize("profiles", [("gemma.yaml",), ("gemma.yaml", "second.yaml")])
def test_ctrl_c_ends_every_deployment_saved_with_130_and_the_lock_free(
    emulator: Emulator, folder: Path, profiles: tuple[str, ...], where: tuple[str, ...]
) -> None:
    emulator.script({"fault": "wait-for-ever"})  # else the queue moves while a busy machine handles the signal
    with command(emulator, folder, "apply", "-auto-approve", *where, *profiles) as run:
        heard(run, "Queued in", times=len(profiles))
        run.send_signal(signal.SIGINT)
        result = run.communicate(timeout=DEADLINE)[0]
    assert run.returncode == 130, result
    assert "Interrupted. Work in progress is saved." in result
    assert "Traceback" not in result
    assert states(emulator) == ["WAITING_FOR_RESOURCES"] * len(profiles)
    assert locks(emulator) == []
    assert ended(emulator, folder, "destroy", "-auto-approve", *where, *profiles) == 0
    assert states(emulator) == []


@pytest.mark.exhaustive
@pytest.mark.parametrize("where", [(), IN_A_BUCKET], ids=["in a folder", "in a bucket"])
def test_many_who_apply_at_once_buy_one_slice_and_who_is_kept_out_says_so(
    emulator: Emulator, folder: Path, where: tuple[str, ...], *, whole: bool
) -> None:
    """0: it serves. 10: the lock was held. 11: somebody else had done it, or begun it, meanwhile."""
    with ExitStack() as stack:
        apply = ("apply", "-auto-approve", *where, "gemma.yaml")
        runs = [stack.enter_context(command(emulator, folder, *apply)) for _ in range(16 if whole else 4)]
        answer = [run.communicate(timeout=DEADLINE)[0] for run in runs]
        codes = [run.returncode for run in runs]
    assert 0 in codes, answer
    assert set(codes) <= {0, 10, 11}, answer
    assert all("is locked" in output for output, code in zip(answer, codes, strict=True) if code == 10)
    assert states(emulator) == ["ACTIVE"]
    assert creates(emulator) == 1
    assert locks(emulator) == []


CREATE = "queuedResources.create"


def test_an_interrupted_run_waits_less_than_five_seconds_for_its_step_and_its_lock() -> None:
    """No clock measures it on a busy machine: this is all that a run waits for, and the stories below see it end."""
    assert FOR_THE_STEP + FOR_THE_LOCK < 5


@pytest.mark.parametrize(
    ("number", "where", "profiles"),
    [
        (signal.SIGINT, (), ("gemma.yaml",)),
        (signal.SIGTERM, IN_A_BUCKET, ("gemma.yaml",)),
        (signal.SIGTERM, (), ("gemma.yaml", "second.yaml")),
        (signal.SIGINT, IN_A_BUCKET, ("gemma.yaml", "second.yaml")),
    ],
    ids=["one, in a folder", "one, in a bucket", "two, in a folder", "two, in a bucket"],
)
def test_a_google_call_that_does_not_return_keeps_nobody_waiting_and_what_it_did_is_found(
    emulator: Emulator, folder: Path, number: signal.Signals, profiles: tuple[str, ...], where: tuple[str, ...]
) -> None:
    emulator.script({"fault": "slow", "method": CREATE, "seconds": NEVER, "times": len(profiles)})
    with command(emulator, folder, "apply", "-auto-approve", *where, *profiles, step=FOR_THE_STEP) as run:
        heard(run, "Requesting", times=len(profiles))
        until(lambda: len(states(emulator)) == len(profiles))
        run.send_signal(number)
        result = run.communicate(timeout=DEADLINE)[0]
    assert run.returncode == 130, result
    assert "no new step starts, and the progress is saved" in result
    assert result.count("Still outstanding: ") == len(profiles)
    assert "Run the same command again to continue" in result
    assert "Traceback" not in result
    assert locks(emulator) == []
    assert ended(emulator, folder, "apply", "-auto-approve", *where, *profiles) == 0
    assert states(emulator) == ["ACTIVE"] * len(profiles)
    assert creates(emulator) == len(profiles)


def test_of_two_deployments_one_whose_call_does_not_return_keeps_nobody_waiting(
    emulator: Emulator, folder: Path
) -> None:
    """The other one is between two steps, and what is interrupted is a wait for both."""
    emulator.script({"fault": "slow", "method": CREATE, "name": "second-*", "seconds": NEVER, "times": 1})
    two = ("gemma.yaml", "second.yaml")
    with command(emulator, folder, "apply", "-auto-approve", *two, step=FOR_THE_STEP) as run:
        heard(run, "Provisioning")
        run.send_signal(signal.SIGINT)
        result = run.communicate(timeout=DEADLINE)[0]
    assert run.returncode == 130, result
    assert result.count("Still outstanding: ") == 2
    assert ended(emulator, folder, "apply", "-auto-approve", "gemma.yaml", "second.yaml") == 0
    assert states(emulator) == ["ACTIVE"] * 2
    assert creates(emulator) == 2


def test_a_step_that_ends_within_moments_is_waited_for_and_nothing_new_begins(
    emulator: Emulator, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two places were to be asked: the second is not, and the reply of the first is not lost."""
    is_asked, may_reply = threading.Event(), threading.Event()
    answer = emulator._server.answer

    def answer_late(request: HttpRequest) -> Reply:
        if "queuedResourceId" in request.target:
            is_asked.set()
            may_reply.wait(DEADLINE)
        return answer(request)

    monkeypatch.setattr(emulator._server, "answer", answer_late)
    (folder / "gemma.yaml").write_text(PROFILE.replace("requests: 1", "requests: 2"), encoding="utf-8")
    with command(emulator, folder, "apply", "-auto-approve", "gemma.yaml") as run:
        assert is_asked.wait(DEADLINE)
        run.send_signal(signal.SIGINT)
        heard(run, "no new step starts")
        may_reply.set()
        result = run.communicate(timeout=DEADLINE)[0]
    assert run.returncode == 130, result
    assert creates(emulator) == 1
    (attempt,) = state(folder)["records"][0]["attempts"]
    assert attempt["operation"], "the reply was read, and saved"
    assert f"Still outstanding: {attempt['name']} (us-east5-a, spot)" in result


@pytest.mark.parametrize("profiles", [("gemma.yaml",), ("gemma.yaml", "second.yaml")])
def test_an_interrupt_while_an_intent_is_saved_requests_nothing_and_withdraws_it(
    emulator: Emulator, folder: Path, monkeypatch: pytest.MonkeyPatch, profiles: tuple[str, ...]
) -> None:
    writes, may_save = threading.Semaphore(0), threading.Event()
    answer = emulator._server.answer

    def answer_late(request: HttpRequest) -> Reply:
        if request.method == "POST" and b'"state": "requested"' in request.body:
            writes.release()
            may_save.wait(DEADLINE)
        return answer(request)

    monkeypatch.setattr(emulator._server, "answer", answer_late)
    apply = ("apply", "-auto-approve", *IN_A_BUCKET, *profiles)
    with command(emulator, folder, *apply) as run:
        assert all(writes.acquire(timeout=DEADLINE) for _ in profiles)
        run.send_signal(signal.SIGINT)
        heard(run, "no new step starts")
        may_save.set()
        result = run.communicate(timeout=DEADLINE)[0]
    assert run.returncode == 130, result
    assert "Requesting" not in result
    assert "Still outstanding" not in result
    assert creates(emulator) == 0
    assert locks(emulator) == []
    assert all(not one["records"][0]["attempts"] for one in stored_states(emulator))
    assert ended(emulator, folder, *apply) == 0
    assert creates(emulator) == len(profiles)


def test_the_second_signal_ends_it_at_once_with_the_intent_in_the_state(emulator: Emulator, folder: Path) -> None:
    emulator.script({"fault": "slow", "method": CREATE, "seconds": NEVER, "times": 1})
    with command(emulator, folder, "apply", "-auto-approve", "gemma.yaml") as run:
        heard(run, "Requesting")
        until(lambda: bool(states(emulator)))
        run.send_signal(signal.SIGINT)
        heard(run, "no new step starts")
        run.send_signal(signal.SIGTERM)
        result = run.communicate(timeout=DEADLINE)[0]
    assert run.returncode == 130, result
    assert "Interrupted twice: stopped at once." in result
    (attempt,) = state(folder)["records"][0]["attempts"]
    assert attempt["life"] == {"state": "requested"}
    assert ended(emulator, folder, "apply", "-auto-approve", "gemma.yaml") == 0
    assert creates(emulator) == 1


def test_a_bucket_that_does_not_answer_keeps_nobody_waiting_either(emulator: Emulator, folder: Path) -> None:
    limits = {"step": FOR_THE_STEP, "lock": FOR_THE_LOCK}
    with command(emulator, folder, "apply", "-auto-approve", *IN_A_BUCKET, "gemma.yaml", **limits) as run:
        heard(run, "Queued in")
        emulator.script({"fault": "slow", "method": "storage.*", "seconds": NEVER})
        until(lambda: bool(locks(emulator)))
        run.send_signal(signal.SIGINT)
        result = run.communicate(timeout=DEADLINE)[0]
    assert run.returncode == 130, result
    assert "its lock may remain in the bucket" in result
    emulator._cloud.troubles.clear()
    for lock in locks(emulator):  # there is one if its deletion was not even heard
        assert ended(emulator, folder, "force-unlock", "-force", lock, *IN_A_BUCKET) == 0
    assert ended(emulator, folder, "destroy", "-auto-approve", *IN_A_BUCKET, "gemma.yaml") == 0
    assert states(emulator) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_destroy_that_is_interrupted_says_what_is_still_there_and_goes_on(
    emulator: Emulator, folder: Path, number: signal.Signals
) -> None:
    assert ended(emulator, folder, "apply", "-auto-approve", "gemma.yaml") == 0
    emulator.script({"fault": "slow", "method": "queuedResources.delete", "seconds": NEVER, "times": 1})
    with command(emulator, folder, "destroy", "-auto-approve", "gemma.yaml", step=FOR_THE_STEP) as run:
        heard(run, "Destroying")
        until(lambda: states(emulator) != ["ACTIVE"])
        run.send_signal(number)
        result = run.communicate(timeout=DEADLINE)[0]
    assert run.returncode == 130, result
    assert "abandoned, deletion pending" in result
    assert ended(emulator, folder, "destroy", "-auto-approve", "gemma.yaml") == 0
    assert states(emulator) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_plan_ends_at_the_first_signal(emulator: Emulator, folder: Path, number: signal.Signals) -> None:
    emulator.script({"fault": "slow", "method": "queuedResources.list", "seconds": NEVER})
    with command(emulator, folder, "plan", "gemma.yaml") as run:
        until(lambda: any(r.resource.endswith("/queuedResources") for r in emulator.requests))
        run.send_signal(number)
        result = run.communicate(timeout=DEADLINE)[0]
    assert run.returncode == 130, result
    assert "Interrupted" in result
    assert not (folder / ".tpudeploy").exists()


@contextmanager
def command(
    emulator: Emulator, folder: Path, *words: str, step: float = DEADLINE, lock: float = DEADLINE
) -> Iterator[subprocess.Popen[str]]:
    """One command as a process of its own; what it says, data and talk, in one stream."""
    environment = {**os.environ, **emulator.environment, "GOOGLE_CLOUD_PROJECT": "emulated", "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(step=step, lock=lock), *words],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as run:
        try:
            yield run
        finally:
            run.kill()


def ended(emulator: Emulator, folder: Path, *words: str) -> int:
    with command(emulator, folder, *words) as run:
        result = run.communicate(timeout=DEADLINE)[0]
    assert "Traceback" not in result, result
    return run.returncode


def heard(run: subprocess.Popen[str], word: str, *, times: int = 1) -> None:
    """Wait until it says so."""
    assert run.stdout is not None
    answer = []
    for line in run.stdout:
        answer.append(line)
        times -= word in line
        if not times:
            return
    raise AssertionError(f"it never said {word!r}: {answer}")


def creates(emulator: Emulator) -> int:
    return sum(r.method == "POST" and "queuedResourceId" in r.path for r in emulator.requests)


def state(folder: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((folder / ".tpudeploy/state/gemma.json").read_text(encoding="utf-8"))
    return document


def stored_states(emulator: Emulator) -> list[dict[str, Any]]:
    objects = emulator._cloud.objects.under("states", "team/state/")
    return [json.loads(one.content) for one in objects if one.name.endswith(".json")]


def states(emulator: Emulator) -> list[str]:
    return [state for zone in emulator.live().values() for state in zone.values()]


def locks(emulator: Emulator) -> list[str]:
    """Ids of the locks in the bucket."""
    objects = emulator._cloud.objects.under("states", "team/state/")
    return [json.loads(one.content)["id"] for one in objects if one.name.endswith(".lock")]
