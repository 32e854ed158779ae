"""Changes over several replicas: each one takes no requests before something is done to it, while the others serve."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from clients import Reader, Router, load, lost_nothing, replica_urls
from command_line import PROFILE, CommandLine, Open

from tpudeploy.domain.patience import Patience

pytestmark = pytest.mark.polls_every_second("clients ask whenever time passes: they are many")

MINUTE, HOUR = 60.0, 3600.0
HELD = Patience().held
APPLY = ("apply", "-auto-approve", "gemma.yaml")
TWO, THREE = PROFILE + "replicas: 2\n", PROFILE + "replicas: 3\n"


def _deployed(cli: Open, text: str, **scenario: Any) -> CommandLine:
    at: CommandLine = cli(**{"boot": {"boot_seconds": 60}, **scenario})
    at.write(text)
    applied = at.run(*APPLY)
    assert applied.code == 0, applied.all
    return at


def _routers(at: CommandLine) -> list[Router]:
    return [Router(at=at, each=2), Router(at=at, each=2, holds=HELD)]


def test_a_changed_flag_restarts_one_replica_after_the_other_and_loses_no_request(cli: Open) -> None:
    at = _deployed(cli, THREE)
    at.write(THREE.replace("16384", "8192"))
    planned = at.run("plan", "gemma.yaml")
    assert planned.words.count("the slice is kept, and the other replicas serve until the server is back") == 3
    drain = "it stops taking new requests and completes in-flight ones, for at most 15m 0s; 2 others serve meanwhile"
    assert drain in planned.words
    assert "replicas out of service at one time: at most 1 (lifecycle.max_unavailable)" in planned.words
    routers, lengths = _routers(at), Counter[int]()
    at.clock.on_advance.append(lambda: lengths.update([len(replica_urls(at))]))
    with load(at, *routers):
        applied = at.run(*APPLY)
        assert applied.code == 0, applied.all
        at.clock.sleep(MINUTE)
    lost_nothing(routers, at_least=300)
    assert set(lengths) == {2, 3}, "at most one at a time"
    assert {a["spec"]["serving.max_model_len"] for r in at.state()["records"] for a in r["attempts"]} == {8192}
    assert len(replica_urls(at)) == 3
    assert at.run("plan", "gemma.yaml", "-detailed-exitcode").code == 0


def test_fewer_replicas_drain_the_one_that_leaves_and_more_touch_no_other(cli: Open) -> None:
    at = _deployed(cli, TWO)
    routers, before = _routers(at), json.dumps(at.state()["records"][0]["attempts"])
    with load(at, *routers):
        grown = at.run(*APPLY, "-set", "replicas=3")
        assert grown.code == 0, grown.all
        assert len(replica_urls(at)) == 3
        assert "2 others serve meanwhile" in at.run("plan", "gemma.yaml").words
        shrunk = at.run(*APPLY)
        assert shrunk.code == 0, shrunk.all
        at.clock.sleep(MINUTE)
    lost_nothing(routers, at_least=200)
    assert len(at.slices) == 2
    assert json.dumps(at.state()["records"][0]["attempts"]) == before


def test_a_replica_that_is_destroyed_by_its_address_completes_its_streams_and_no_more_time_is_spent(cli: Open) -> None:
    at = _deployed(cli, THREE, boot={"boot_seconds": 60, "token_seconds": 10})
    streams = [Reader(at, 30, url=replica_urls(at)[1])]  # five minutes
    began = at.clock.now()
    assert "for at most 15m 0s; 2 others serve meanwhile" in at.run("plan", "-destroy", *_of(1)).words
    removed = at.run("destroy", "-auto-approve", *_of(1))
    assert removed.code == 0, removed.all
    streams[0].join()
    assert not streams[0].error
    assert began + 5 * MINUTE <= at.clock.now() < began + 10 * MINUTE
    began = at.clock.now()
    removed = at.run("destroy", "-auto-approve", *_of(2))
    assert removed.code == 0, removed.all
    assert at.clock.now() < began + 5 * MINUTE, "nothing ran there"
    assert len(replica_urls(at)) == 1


def _of(replica: int) -> tuple[str, ...]:
    return ("-target", f"gemma[{replica}]", "gemma.yaml")


def test_the_drain_of_a_destroyed_replica_has_the_limit_of_its_profile(cli: Open) -> None:
    at = _deployed(cli, TWO + "lifecycle: {drain_timeout: 2m}\n", boot={"boot_seconds": 60, "token_seconds": 10})
    stream, began = Reader(at, 60, url=replica_urls(at)[1]), at.clock.now()
    assert "for at most 2m 0s; another replica serves meanwhile" in at.run("plan", "-destroy", *_of(1)).words
    removed = at.run("destroy", "-auto-approve", *_of(1))
    assert removed.code == 0, removed.all
    stream.join()
    assert stream.error, "ten minutes are more than the profile gives it"
    assert began + 2 * MINUTE <= stream.ended_at < began + 4 * MINUTE


def test_a_change_that_fails_at_one_replica_is_not_carried_to_the_others(cli: Open) -> None:
    at = _deployed(cli, TWO, boot={"setup_fails": True, "boot_seconds": 60})
    at.write(TWO.replace("  max_model_len", '  setup: ["pip install broken"]\n  max_model_len'))
    routers = _routers(at)
    with load(at, *routers):
        changed = at.run(*APPLY)
        at.clock.sleep(MINUTE)
    assert changed.code == 13, changed.all
    lost_nothing(routers, at_least=50)
    assert len(replica_urls(at)) == 2, "the first one serves as before"
    changes = [a["change"] for record in at.state()["records"] for a in record["attempts"]]
    assert sum(change is not None for change in changes) == 1
    at.write(TWO.replace("16384", "8192"))
    with load(at, *routers):
        repaired = at.run(*APPLY)
    assert repaired.code == 0, repaired.all
    lost_nothing(routers, at_least=100)
    assert len(replica_urls(at)) == 2


def test_a_run_killed_between_the_list_and_the_act_resumes_and_loses_no_request(cli: Open) -> None:
    at = _deployed(cli, TWO)
    at.write(TWO.replace("16384", "8192"))
    routers, seconds = _routers(at), 30.0
    with load(at, *routers):
        at.killed(seconds, *APPLY)
        assert len(replica_urls(at)) == 1, "one has left the list"
        assert {a["boot"]["server"] for r in at.state()["records"] for a in r["attempts"]} == {
            a["boot"]["server"] for a in at.state()["records"][0]["attempts"]
        }, "and nothing was done to it"
        waiting = "waits until gemma[0] serves (lifecycle.max_unavailable: 1)"
        assert f"change {waiting}" in at.run("status", "gemma.yaml").words
        assert f"it {waiting}" in at.run("plan", "gemma.yaml").words
        at.clock.sleep(20 * MINUTE)
        resumed = at.run(*APPLY)
        assert resumed.code == 0, resumed.all
        at.clock.sleep(MINUTE)
    lost_nothing(routers, at_least=100)
    assert len(replica_urls(at)) == 2


def test_a_preemption_with_a_notice_loses_no_request_and_its_successor_is_requested_before_the_end(cli: Open) -> None:
    at = _deployed(cli, TWO)
    routers, began, notice = _routers(at), at.clock.now(), 2 * MINUTE
    (first,) = [a["name"] for a in at.state()["records"][0]["attempts"]]
    requested: list[bool] = []

    def on_advance() -> None:
        now = at.clock.now()
        if first in at.slices and not requested and now >= began + 10 * MINUTE:
            requested.append(False)
            at.emulator.preempt(first, notice=notice)
        if requested == [False] and len(at.slices) == 3:
            requested[0] = now < began + 10 * MINUTE + notice
        if now >= began + HOUR:
            raise KeyboardInterrupt

    at.clock.on_advance.append(on_advance)
    with load(at, *routers):
        assert at.run(*APPLY, "-watch").code == 130
    lost_nothing(routers, at_least=100)
    assert requested == [True], "while the machine was still up"
    assert first not in at.slices
    assert len(replica_urls(at)) == 2


def test_a_replica_takes_no_requests_before_google_ends_its_run(cli: Open) -> None:
    ending = TWO.replace("[spot]", "[flex-start]\n  max_run_duration: 2h")
    at = _deployed(cli, ending.replace("replicas: 2", "replicas: 1"))
    at.clock.sleep(HOUR)
    at.write(ending)
    routers, ends, lengths = _routers(at), at.clock.now() + 2 * HOUR, Counter[int]()

    def on_advance() -> None:
        lengths[len(replica_urls(at))] += 1
        if at.clock.now() >= ends:
            raise KeyboardInterrupt

    assert at.run(*APPLY).code == 0
    at.clock.on_advance.append(on_advance)
    with load(at, *routers):
        assert at.run("apply", "-auto-approve", "-watch", "gemma.yaml").code == 130
    lost_nothing(routers, at_least=200)
    assert set(lengths) == {1, 2}
    assert at.state()["next_attempt"] >= 3, "a run ended, and its replica was requested again"
