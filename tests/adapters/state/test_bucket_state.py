"""What a bucket promises beyond the contract: replies that are lost, locks that outlive their holders, zombies."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from adapters.state.places import BUCKET, LOST_CALLS, PREFIX, InBucket, in_bucket
from adapters.state.samples import EMPTY, FULL, GRANTED, REFUSED

from tpudeploy import Workspace
from tpudeploy.adapters.state.bucket_locks import LEASE_SECONDS
from tpudeploy.domain import errors
from tpudeploy.domain.lock import Lease
from tpudeploy.ports import StateBackend

INSERT, GET, LIST, DELETE = (f"storage.objects.{name}" for name in ("insert", "get", "list", "delete"))
LATER = replace(EMPTY, serial=1)
WEEK = 7 * 86400.0


@pytest.fixture
def bucket(tmp_path: Path) -> Iterator[InBucket]:
    with in_bucket(tmp_path) as bucket:
        yield bucket


@pytest.fixture(params=LOST_CALLS)
def lost_reply(request: pytest.FixtureRequest) -> Mapping[str, Any]:
    return LOST_CALLS[request.param]


def count_requests(bucket: InBucket, method: str, name: str = "") -> int:
    return sum(r.method == method and name in r.path for r in bucket.emulator.requests)


def test_a_lock_whose_making_went_unanswered_is_ours_and_keeps_nobody_out(
    bucket: InBucket, lost_reply: Mapping[str, Any]
) -> None:
    bucket.emulator.script({**lost_reply, "method": INSERT, "times": 1})
    backend = bucket.reopen()
    lease = backend.lock("gemma", "apply")
    assert bucket.reopen().holder("gemma") == lease.info
    backend.unlock(lease)
    assert bucket.get("state/gemma.lock") is None


def test_a_write_that_went_unanswered_is_made_once(bucket: InBucket, lost_reply: Mapping[str, Any]) -> None:
    backend = bucket.reopen()
    first = backend.write("gemma", EMPTY, over="")
    bucket.emulator.script({**lost_reply, "method": INSERT, "times": 1})
    second = backend.write("gemma", LATER, over=first)
    assert bucket.reopen().read("gemma").version == second
    assert backend.write("gemma", FULL, over=second) != second


def test_a_write_that_went_unanswered_and_met_another_one_is_a_conflict(bucket: InBucket) -> None:
    zombie = bucket.reopen()
    first = zombie.write("gemma", EMPTY, over="")
    bucket.emulator.script({"fault": "unavailable", "method": INSERT, "times": 1})
    bucket.clock.on_advance.append(once(lambda: bucket.reopen().write("gemma", FULL, over=first)))
    with pytest.raises(errors.StateConflict):
        zombie.write("gemma", LATER, over=first)
    assert bucket.reopen().read("gemma").state == FULL


def test_an_unlock_that_went_unanswered_leaves_the_lock_free(bucket: InBucket, lost_reply: Mapping[str, Any]) -> None:
    backend = bucket.reopen()
    lease = backend.lock("gemma", "apply")
    bucket.emulator.script({**lost_reply, "method": DELETE, "times": 1})
    backend.unlock(lease)
    bucket.reopen().lock("gemma", "apply")


def test_whatever_is_read_is_asked_for_again(bucket: InBucket, lost_reply: Mapping[str, Any]) -> None:
    backend = bucket.reopen()
    backend.write("gemma", FULL, over="")
    backend.publish("gemma", {"url": "http://one"})
    backend.record(GRANTED)
    bucket.emulator.script({**lost_reply, "method": GET, "times": 2})
    bucket.emulator.script({**lost_reply, "method": LIST, "times": 2})
    assert backend.read("gemma").state == FULL
    assert backend.names() == ("gemma",)
    bucket.emulator.script({**lost_reply, "method": "storage.*", "times": 1})
    assert backend.published("gemma") == {"url": "http://one"}
    assert backend.history() == (GRANTED,)


def test_a_lock_that_is_freed_while_we_look_who_holds_it_is_taken(bucket: InBucket) -> None:
    holder = bucket.reopen()
    lease = holder.lock("gemma", "apply")
    bucket.emulator.script({"fault": "slow", "method": INSERT, "times": 1, "seconds": 5})
    bucket.clock.on_advance.append(once(lambda: holder.unlock(lease)))
    next_lease = bucket.reopen().lock("gemma", "destroy")
    assert bucket.reopen().holder("gemma") == next_lease.info


def test_a_lock_stays_while_its_holder_may_live_and_says_whose_it_is_and_how_to_free_it(bucket: InBucket) -> None:
    lease = bucket.reopen().lock("gemma", "apply")
    bucket.clock.sleep(LEASE_SECONDS - 60)
    with pytest.raises(
        errors.StateLocked, match=r"me@.*`apply`.* for 0:14:00; its last heartbeat was 0:14:00"
    ) as caught:
        bucket.reopen().lock("gemma", "apply")
    assert caught.value.exit_code == 10
    assert caught.value.holder == lease.info
    assert "taken over 15 min after its last heartbeat" in caught.value.hint
    assert f"tpudeploy force-unlock {lease.info.id}" in caught.value.hint
    assert bucket.reopen().force_unlock(lease.info.id) == "gemma"
    bucket.reopen().lock("gemma", "apply")


def test_a_lock_that_nobody_renews_is_taken_over_and_says_whose_it_was(bucket: InBucket) -> None:
    dead = bucket.reopen().lock("gemma", "apply")
    bucket.clock.sleep(LEASE_SECONDS)
    backend = bucket.reopen()
    lease = backend.lock("gemma", "destroy")
    assert lease.expired == dead.info
    assert bucket.reopen().holder("gemma") == lease.info
    with pytest.raises(errors.StateLocked):
        bucket.reopen().lock("gemma", "apply")
    backend.unlock(lease)
    assert bucket.get("state/gemma.lock") is None


def test_a_lock_that_is_renewed_is_not_taken_over(bucket: InBucket) -> None:
    alive = bucket.reopen()
    lease = alive.lock("gemma", "apply")
    for _ in range(3):
        bucket.clock.sleep(LEASE_SECONDS - 60)
        alive.prove(lease)
        with pytest.raises(errors.StateLocked):
            bucket.reopen().lock("gemma", "apply")


@pytest.mark.parametrize("ahead", [-WEEK, -LEASE_SECONDS, LEASE_SECONDS, WEEK])
def test_a_machine_whose_clock_is_wrong_takes_no_lock_too_soon_and_none_too_late(
    bucket: InBucket, ahead: float
) -> None:
    """The bucket's clock alone counts: neither the holder's, in the lock, nor the taker's."""
    bucket.open_at(ahead).adapters.states.lock("gemma", "apply")
    bucket.clock.sleep(LEASE_SECONDS - 60)
    for skew in (0.0, ahead, -ahead):
        with pytest.raises(errors.StateLocked):
            bucket.open_at(skew).adapters.states.lock("gemma", "apply")
    bucket.clock.sleep(60)
    assert bucket.open_at(-ahead).adapters.states.lock("gemma", "apply").expired is not None


def test_of_forty_who_find_one_expired_lock_one_has_it(bucket: InBucket) -> None:
    bucket.reopen().lock("gemma", "apply")
    bucket.clock.sleep(LEASE_SECONDS)
    gate, views = Barrier(40), [bucket.reopen() for _ in range(40)]

    def take(backend: StateBackend) -> Lease | None:
        gate.wait(60)
        try:
            return backend.lock("gemma", "apply")
        except errors.StateLocked:
            return None

    with ThreadPoolExecutor(40) as pool:
        leases = [lease for lease in pool.map(take, views) if lease is not None]
    assert len(leases) == 1
    assert leases[0].expired is not None
    assert bucket.reopen().holder("gemma") == leases[0].info


def test_whose_lease_was_taken_over_writes_and_publishes_nothing_and_frees_nothing(bucket: InBucket) -> None:
    zombie = bucket.reopen()
    version = zombie.write("gemma", EMPTY, over="")
    lease = zombie.lock("gemma", "apply")
    bucket.clock.sleep(LEASE_SECONDS)
    next_lease = bucket.reopen().lock("gemma", "apply")
    for deed in (
        lambda: zombie.write("gemma", LATER, over=version),
        lambda: zombie.delete("gemma", over=version),
        lambda: zombie.publish("gemma", {"url": "http://10.0.0.1:8000"}),
        lambda: zombie.prove(lease),
    ):
        with pytest.raises(errors.StateConflict, match="lost the lock"):
            deed()
    zombie.unlock(lease)
    assert bucket.reopen().holder("gemma") == next_lease.info
    assert bucket.get("endpoints/gemma.json") is None
    assert bucket.reopen().read("gemma").version == version


def test_a_lock_that_says_nothing_can_be_freed_all_the_same(bucket: InBucket) -> None:
    bucket.put("state/gemma.lock", b"?")
    with pytest.raises(errors.StateLocked, match=r"gs://states/team/a/state/gemma\.lock does not say") as caught:
        bucket.reopen().lock("gemma", "apply")
    assert bucket.reopen().force_unlock(caught.value.hint.split()[-1]) == "gemma"
    bucket.reopen().lock("gemma", "apply")


def test_whose_lock_was_taken_away_may_not_write_though_the_state_has_not_moved(bucket: InBucket) -> None:
    zombie = bucket.reopen()
    version = zombie.write("gemma", EMPTY, over="")
    lease = zombie.lock("gemma", "apply")
    bucket.reopen().force_unlock(lease.info.id)
    with pytest.raises(errors.StateConflict, match="lost the lock"):
        zombie.write("gemma", LATER, over=version)
    successor = bucket.reopen()
    next_lease = successor.lock("gemma", "apply")
    with pytest.raises(errors.StateConflict, match="lost the lock"):
        zombie.write("gemma", LATER, over=version)
    zombie.unlock(lease)
    assert bucket.reopen().holder("gemma") == next_lease.info
    successor.write("gemma", FULL, over=version)
    successor.unlock(next_lease)
    assert bucket.reopen().read("gemma").state == FULL


def test_a_long_step_is_heard_of_and_loses_its_lock_as_well(bucket: InBucket) -> None:
    backend = bucket.reopen()
    lease = backend.lock("gemma", "apply")
    version = backend.write("gemma", EMPTY, over="")
    bucket.clock.sleep(60)
    version = backend.write("gemma", LATER, over=version)
    holder = bucket.reopen().holder("gemma")
    assert holder == replace(lease.info, heartbeat=bucket.clock.now())
    bucket.reopen().force_unlock(lease.info.id)
    bucket.clock.sleep(60)
    with pytest.raises(errors.StateConflict, match="lost the lock"):
        backend.write("gemma", FULL, over=version)
    assert bucket.get("state/gemma.lock") is None


def test_a_lock_that_could_not_be_freed_is_ours_at_the_next_step(bucket: InBucket) -> None:
    backend = bucket.reopen()
    lease = backend.lock("gemma", "apply")
    bucket.emulator.script({"fault": "unavailable", "method": DELETE})
    with pytest.raises(errors.Fault):
        backend.unlock(lease)
    bucket.emulator._cloud.troubles.clear()
    with pytest.raises(errors.StateLocked):
        bucket.reopen().lock("gemma", "apply")
    again = backend.lock("gemma", "apply")
    backend.unlock(again)
    assert bucket.get("state/gemma.lock") is None


def test_ctrl_c_in_the_middle_of_locking_leaves_no_lock(bucket: InBucket) -> None:
    workspace = bucket.open()
    bucket.emulator.script({"fault": "lost-reply", "method": INSERT, "times": 1})
    bucket.clock.on_advance.append(once(interrupted))
    with pytest.raises(KeyboardInterrupt):
        workspace.adapters.states.lock("gemma", "apply")
    assert bucket.get("state/gemma.lock") is not None
    workspace.close()
    assert bucket.get("state/gemma.lock") is None


def test_a_lock_of_somebody_else_is_left_alone_at_the_end(bucket: InBucket) -> None:
    lease = bucket.reopen().lock("gemma", "apply")
    with bucket.open() as workspace:
        with pytest.raises(errors.StateLocked):
            workspace.adapters.states.lock("gemma", "apply")
        mine = workspace.adapters.states.lock("neighbour", "apply")
        bucket.reopen().force_unlock(mine.info.id)
        other = bucket.reopen().lock("neighbour", "apply")
    assert bucket.reopen().holder("gemma") == lease.info
    assert bucket.reopen().holder("neighbour") == other.info


def test_a_state_that_cannot_be_uploaded_is_kept_here_and_the_error_says_how_to_push_it(bucket: InBucket) -> None:
    backend = bucket.reopen()
    version = backend.write("gemma", EMPTY, over="")
    errored = bucket.folder / ".tpudeploy" / "errored" / "gemma.json"
    for fault, error in (("unavailable", errors.Fault), ("iam-denied", errors.Denied)):
        bucket.emulator.script({"fault": fault, "method": INSERT})
        with pytest.raises(error) as caught:
            backend.write("gemma", FULL, over=version)
        assert f"tpudeploy state push {errored}" in caught.value.hint
        assert json.loads(errored.read_text(encoding="utf-8"))["serial"] == FULL.serial
        assert (errored.parent / ".gitignore").read_text(encoding="utf-8") == "*\n"
        with pytest.raises(error) as later:
            backend.lock("gemma", "apply")
        assert f"tpudeploy state push {errored}" in later.value.hint
        bucket.emulator._cloud.troubles.clear()
    backend.write("gemma", FULL, over=version)
    assert not errored.exists()


def test_a_state_that_can_be_kept_nowhere_is_said_to_be_so(bucket: InBucket) -> None:
    (bucket.folder / ".tpudeploy").write_text("no folder", encoding="utf-8")
    bucket.emulator.script({"fault": "unavailable", "method": INSERT})
    with pytest.raises(errors.Fault) as caught:
        bucket.reopen().write("gemma", FULL, over="")
    assert "could not be saved on this machine either" in caught.value.hint


def test_whoever_may_not_write_is_told_which_role_would_let_them(bucket: InBucket) -> None:
    bucket.emulator.script({"fault": "iam-denied", "method": "storage.*"})
    with pytest.raises(errors.Denied, match=r"'storage\.objects\.get' denied") as caught:
        bucket.reopen().read("gemma")
    assert "roles/storage.objectUser" in caught.value.hint


def test_a_bucket_that_is_not_there_is_no_empty_state(tmp_path: Path) -> None:
    with in_bucket(tmp_path, buckets=["others"]) as bucket:
        backend = bucket.reopen()
        deeds: list[Callable[[], object]] = [
            lambda: backend.read("gemma"),
            lambda: backend.write("gemma", EMPTY, over=""),
            lambda: backend.lock("gemma", "apply"),
            backend.names,
        ]
        for deed in deeds:
            with pytest.raises(errors.StateError, match="There is no bucket gs://states"):
                deed()


def test_a_history_is_bounded_and_keeps_the_latest(bucket: InBucket) -> None:
    objects = bucket.emulator._cloud.objects
    backend = bucket.reopen()
    backend.record(GRANTED)
    (first,) = objects.under(BUCKET, f"{PREFIX}/zones/")
    for n in range(1000):
        name = first.name.replace("-", f"-{n:04}")
        objects._live[BUCKET, name] = replace(first, name=name)
    backend.record(REFUSED)
    history = backend.history()
    assert len(history) == 1000
    assert history[-1] == REFUSED
    assert count_requests(bucket, "GET", "zones") == 1


def test_a_text_that_no_metadata_holds_is_cut(bucket: InBucket) -> None:
    backend = bucket.reopen()
    backend.record(replace(REFUSED, text="\U0001f525" * 5000))
    (trace,) = backend.history()
    assert replace(trace, text=REFUSED.text) == REFUSED
    assert trace.text
    assert set(trace.text) == {"\U0001f525"}


def test_those_who_record_at_the_same_time_lose_nothing(bucket: InBucket) -> None:
    def record(writer: int) -> None:
        backend = bucket.reopen()
        for n in range(20):
            backend.record(replace(REFUSED, at=float(n), kind=f"writer {writer}"))

    with ThreadPoolExecutor(max_workers=3) as pool:
        list(pool.map(record, range(3)))
    traces = sorted((t.kind, t.at) for t in bucket.reopen().history())
    assert traces == [(f"writer {w}", float(n)) for w in range(3) for n in range(20)]


@pytest.mark.parametrize("fault", ["unavailable", "iam-denied"])
def test_a_history_that_cannot_be_reached_is_an_error_of_the_state(bucket: InBucket, fault: str) -> None:
    bucket.emulator.script({"fault": fault, "method": "storage.*"})
    with pytest.raises(errors.StateUnreadable, match="gs://states/team/a/zones/ cannot be read"):
        bucket.reopen().history()
    with pytest.raises(errors.StateError, match=r"gs://states/team/a/zones/.*\.json cannot be written"):
        bucket.reopen().record(GRANTED)


def test_a_step_costs_six_requests_and_opening_none(bucket: InBucket) -> None:
    workspace = bucket.open()
    backend = workspace.adapters.states
    assert sum(count_requests(bucket, method) for method in ("GET", "POST", "DELETE")) == 0
    version = backend.write("gemma", EMPTY, over="")
    began = len(bucket.emulator.requests)
    lease = backend.lock("gemma", "apply")
    backend.read("gemma")
    version = backend.write("gemma", LATER, over=version)
    backend.unlock(lease)
    workspace.close()
    assert len(bucket.emulator.requests) - began <= 6
    assert all("/o" in request.path for request in bucket.emulator.requests), "the bucket itself is not looked up"


@pytest.mark.parametrize(
    ("backend", "words"),
    [
        ("s3://bucket/states", "is not supported"),
        ("gs:/bucket/states", "is not supported"),
        ("GS://bucket", "is not supported"),
        ("https://storage.googleapis.com/bucket", "is not supported"),
        ("gs://", "names no bucket"),
        ("gs:///states", "names no bucket"),
        ("gs://Bucket", "names no bucket"),
        ("gs://b", "names no bucket"),
        ("gs://bucket/a//b", "not a valid name"),
        ("gs://bucket/a*", "not a valid name"),
        ("gs://bucket/a\nb", "not a valid name"),
        (f"gs://bucket/{'x' * 600}", "not a valid name"),
    ],
)
def test_a_backend_that_cannot_be_is_refused_when_it_is_named(backend: str, words: str) -> None:
    with pytest.raises(errors.ConfigError, match=words):
        Workspace.open(backend=backend)


@pytest.mark.parametrize("backend", ["gs://states/team/a", "gs://states/team/a/"])
def test_a_slash_at_the_end_makes_no_other_place(bucket: InBucket, backend: str) -> None:
    bucket.reopen().write("gemma", FULL, over="")
    with Workspace.open(bucket.folder, backend=backend) as workspace:
        assert workspace.adapters.states.names() == ("gemma",)
    with Workspace.open(bucket.folder, backend="gs://states") as elsewhere:
        assert elsewhere.adapters.states.names() == ()


def test_without_googles_library_the_error_says_what_to_install(bucket: InBucket) -> None:
    (bucket.folder / "gemma.yaml").write_text("version: 1\n", encoding="utf-8")
    code = (
        "import sys; sys.modules['google.cloud.storage'] = None; from tpudeploy.cli.main import main\n"
        "sys.exit(main(['status', '--backend', 'gs://states']))"
    )
    process = subprocess.run(
        [sys.executable, "-c", code], cwd=bucket.folder, capture_output=True, text=True, check=False
    )
    assert process.returncode == 1, process.stderr
    assert " 'google-cloud-storage>=3.0'\n" in process.stderr
    assert bucket.emulator.requests == ()


def once(deed: Callable[[], object]) -> Callable[[], None]:
    """As a hook of the clock, at its first step alone: what the deed itself waits for does not call it again."""
    deeds = [deed]

    def hook() -> None:
        if deeds:
            deeds.pop()()

    return hook


def interrupted() -> None:
    raise KeyboardInterrupt
