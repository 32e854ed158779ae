"""Streams of real bytes through the real routers: none fails that a replica on the list could have served."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import pytest
from ports import free_port
from real_time import DEADLINE, until
from streams import Load, Stream, running

from tpudeploy.adapters.local_routers import LocalRouters, find_program, holder
from tpudeploy.adapters.vllm_client import BadAnswer, VllmClient
from tpudeploy.catalog.routers import ROUTERS
from tpudeploy.domain.router import Router, RouterHost, RouterKind
from tpudeploy.domain.task import TASKS, Task
from tpudeploy.node.router_configuration import RETRIED_BYTES

pytestmark = pytest.mark.waits

REPLICA = Path(__file__).with_name("replica.py")
ROUTER = Path(__file__).with_name("router_here.py")
NAME = "gemma"
KEY = "a key for tests"
CLIENTS = 6


class Place:
    """A project's folder with an endpoint document, the process of its router, and replicas."""

    def __init__(self, folder: Path, kind: RouterKind, at_exit: ExitStack) -> None:
        self.port = free_port()
        self.router = Router(
            kind=kind, host=RouterHost.LOCAL, address="127.0.0.1", port=self.port, policy=None, model="gemma"
        )
        self.folder = folder
        self._at_exit = at_exit
        command = [sys.executable, str(ROUTER)]
        self.routers = LocalRouters(folder / ".tpudeploy" / "routers", command=command, folder=folder)
        at_exit.callback(self.remove)

    def start_replica(self, *, drops: bool = False) -> Replica:
        return self._at_exit.enter_context(Replica(drops=drops))

    def publish(self, *replicas: Replica) -> None:
        rows = [{"replica": i, "slice": each.name, "url": each.url} for i, each in enumerate(replicas)]
        document = {"url": self.router.url, "replicas": rows, "router": self.router.to_dict()}
        file = self.folder / "endpoints" / f"{NAME}.json"
        file.parent.mkdir(exist_ok=True)
        beside = file.with_suffix(".new")
        beside.write_text(json.dumps(document))
        beside.replace(file)

    def serve(self, *replicas: Replica) -> None:
        """Start the router before these replicas, and return once it answers."""
        self.publish(*replicas)
        assert self.routers.keep(NAME) == ""
        until(lambda: self.read().ended == "done", "the router answers", log=self.log)

    def read(self, key: str = KEY) -> Stream:
        """Read one stream through the router."""
        return Load(port=self.port, model="gemma", key=key).read_stream()

    def move(self) -> None:
        """Let the next document name another port."""
        self.port = free_port()
        self.router = replace(self.router, port=self.port)

    def remove(self) -> None:
        (self.folder / "endpoints" / f"{NAME}.json").unlink(missing_ok=True)
        until(lambda: holder(self.routers.folder(NAME)) is None, "the router has ended")

    def kill_router(self) -> None:
        """Kill the program with its descendants: they are in a session that the router's process began for it."""
        process = holder(self.routers.folder(NAME))
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
        assert children
        for child in children:
            os.killpg(int(child), signal.SIGKILL)

    def status(self) -> dict[str, Any]:
        """Return what the router's process says of itself."""
        status: dict[str, Any] = json.loads((self.routers.folder(NAME) / "status.json").read_text())
        return status

    def log(self) -> str:
        return (self.routers.folder(NAME) / "router.log").read_text(errors="replace")


class Replica:
    """The process of one replica."""

    def __init__(self, *, drops: bool = False) -> None:
        self.port = free_port()
        self.name = f"gemma-{self.port}"
        self.url = f"http://127.0.0.1:{self.port}"
        command = [sys.executable, str(REPLICA), str(self.port), KEY, *(["drops"] if drops else [])]
        self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        until(lambda: answers(self.port), "the replica answers")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture(params=[kind.value for kind in RouterKind])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    facts = ROUTERS[RouterKind(request.param)]
    if find_program(facts.program) is None:
        pytest.skip(f"{facts.program} is not installed: {facts.install}")
    with ExitStack() as at_exit:
        yield Place(tmp_path, RouterKind(request.param), at_exit)


def test_no_stream_fails_but_those_that_a_killed_replica_had_begun(place: Place) -> None:
    first, second, third = (place.start_replica() for _ in range(3))
    place.serve(first, second)
    assert place.read(key="another").ended == "status 401"

    load = Load(port=place.port, model="gemma", key=KEY)
    with running(load, clients=CLIENTS):
        until(lambda: served_by(load, first), "the first replica serves", log=place.log)
        place.publish(second, third)
        until(lambda: served_by(load, third), "the third replica serves", log=place.log)
        until(
            lambda: all(stream.ended for stream in served_by(load, first)),
            "the first replica has drained",
            log=place.log,
        )
        drained = len(served_by(load, first))
        first.process.kill()
        until(lambda: len(load.streams) > drained + 10 * CLIENTS, "the others serve on", log=place.log)
        assert not load.failures, place.log()
        assert len(served_by(load, first)) == drained

        third.process.kill()
        before = len(load.streams)
        until(lambda: len(load.streams) > before + 10 * CLIENTS, "the second replica serves on", log=place.log)
    assert set(load.failures) <= {"cut off"}, (load.failures, place.log())
    # Each client had one stream open when the replica was killed.
    assert load.failures.total() <= CLIENTS, (load.failures, place.log())
    assert not [stream for stream in load.failed if stream in served_by(load, second)], (load.failures, place.log())
    assert place.routers.keep(NAME) == "", "a replica that dies is no fault of the router"

    place.kill_router()
    until(lambda: place.read().ended == "done", "the router answers again", log=place.log)
    assert "ended with exit code" in place.routers.keep(NAME)
    assert place.routers.keep(NAME) == "", "it is reported once"

    place.remove()
    assert f"{NAME} has no endpoint any more." in place.log()


def test_a_request_that_arrives_in_parts_goes_to_another_replica_when_one_drops_it(place: Place) -> None:
    place.publish(place.start_replica(), place.start_replica(drops=True))
    assert place.routers.keep(NAME) == ""
    until(lambda: answers(place.port), "the router listens", log=place.log)
    until(lambda: place.read().ended == "done", "the router answers", log=place.log)
    for _ in range(4):
        assert "data: [DONE]" in in_parts(place.port), place.log()


def test_a_long_prompt_goes_to_another_replica_when_one_drops_it(place: Place) -> None:
    place.publish(place.start_replica(), place.start_replica(drops=True))
    assert place.routers.keep(NAME) == ""
    until(lambda: answers(place.port), "the router listens", log=place.log)
    until(lambda: place.read().ended == "done", "the router answers", log=place.log)
    for _ in range(4):
        assert "data: [DONE]" in in_parts(place.port, prompt="word " * (RETRIED_BYTES // 6)), place.log()


def in_parts(port: int, *, prompt: str = "Hello") -> str:
    """Send a completion whose body follows its head, as many clients do, and return the response."""
    body = json.dumps({"model": "gemma", "prompt": prompt, "stream": True, "max_tokens": 8})
    head = (
        f"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {KEY}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", port), timeout=DEADLINE) as client:
        client.sendall(head.encode())
        # What the router has of it by now, it may have sent on. No event says so.
        time.sleep(0.1)
        client.sendall(body.encode())
        return b"".join(iter(lambda: client.recv(65536), b"")).decode()


def test_a_router_whose_process_was_killed_is_taken_over_and_serves_all_the_time(place: Place) -> None:
    first, second = place.start_replica(), place.start_replica()
    place.serve(first)
    load = Load(port=place.port, model="gemma", key=KEY)
    with running(load, clients=CLIENTS):
        process = holder(place.routers.folder(NAME))
        assert process is not None
        os.kill(process, signal.SIGKILL)
        until(lambda: holder(place.routers.folder(NAME)) is None, "its process is gone")
        place.publish(first, second)
        until(lambda: place.routers.keep(NAME) == "" and holder(place.routers.folder(NAME)), "another one runs it")
        until(lambda: served_by(load, second), "it has the list of now", log=place.log)
    if place.router.kind is not RouterKind.ENVOY:
        # Envoy ends with the process that started it. The next process starts it again.
        assert not load.failures, (load.failures, place.log())
    assert "another process listens" not in place.log()


def test_a_list_on_which_all_replicas_are_others_loses_no_request(place: Place) -> None:
    first, second = place.start_replica(), place.start_replica()
    place.serve(first)
    load = Load(port=place.port, model="gemma", key=KEY)
    with running(load, clients=CLIENTS):
        place.publish(second)
        until(lambda: served_by(load, second), "the other replica serves", log=place.log)
        before = time.monotonic()
        until(
            lambda: last_began(served_by(load, first)) < time.monotonic() - 5, "the first one has left", log=place.log
        )
        until(lambda: last_began(served_by(load, second)) > before, "the other one serves on", log=place.log)
    assert not load.failures, (load.failures, place.log())


def test_a_router_that_moves_to_another_port_answers_at_both_for_a_while(place: Place) -> None:
    replica = place.start_replica()
    place.serve(replica)
    load = Load(port=place.port, model="gemma", key=KEY)
    with running(load, clients=CLIENTS):
        place.move()
        place.publish(replica)
        until(lambda: place.read().ended == "done", "the router answers at its new port", log=place.log)
        before = len(load.streams)
        until(lambda: len(load.streams) > before + CLIENTS, "and at the previous one", log=place.log)
    assert not load.failures, (load.failures, place.log())


@pytest.mark.parametrize("host", [RouterHost.VM, RouterHost.OWN])
def test_a_router_that_moves_elsewhere_answers_here_for_a_while(place: Place, host: RouterHost) -> None:
    replica = place.start_replica()
    place.serve(replica)
    load = Load(port=place.port, model="gemma", key=KEY)
    with running(load, clients=CLIENTS):
        place.router = replace(place.router, host=host, address="192.0.2.1")
        place.publish(replica)
        before = len(load.streams)
        until(lambda: len(load.streams) > before + 2 * CLIENTS, "the router here answers", log=place.log)
    assert not load.failures, (load.failures, place.log())
    assert "192.0.2.1" not in place.log(), "it starts no router at that address"


def test_a_router_with_another_policy_is_back_at_its_port_within_seconds(place: Place) -> None:
    place.serve(place.start_replica())
    load = Load(port=place.port, model="gemma", key=KEY)
    with running(load, clients=CLIENTS):
        place.router = replace(place.router, policy="random")
        place.publish(place.start_replica())
        changed = time.monotonic()
        until(
            lambda: any(stream.ended == "done" and stream.began > changed + 10 for stream in tuple(load.streams)),
            "the router answers again",
            log=place.log,
        )
    if place.router.kind is RouterKind.HAPROXY:
        # A reload hands the port over.
        assert not load.failures, (load.failures, place.log())
    assert "another process listens" not in place.log()


def test_a_router_that_fails_after_it_took_over_gives_way_to_the_previous_one(place: Place, tmp_path: Path) -> None:
    kinds = tuple(RouterKind)
    kind = kinds[(kinds.index(place.router.kind) + 1) % len(kinds)]
    path = find_program(ROUTERS[kind].program)
    if path is None:
        pytest.skip(f"{ROUTERS[kind].program} is not installed: {ROUTERS[kind].install}")
    fragile = tmp_path / "bin" / ROUTERS[kind].program
    fragile.parent.mkdir()
    fragile.write_text(f'#!/bin/sh\ncase "$PWD" in */trial) exec {path} "$@" ;; esac\nexit 3\n')
    fragile.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{fragile.parent}{os.pathsep}{os.environ['PATH']}")
        replica = place.start_replica()
        place.serve(replica)
    before = place.router
    place.router = replace(place.router, kind=kind)
    place.publish(replica)
    until(lambda: "takes over at" in place.log(), "the other program has taken over", log=place.log)
    until(lambda: "is back at" in place.log(), "the previous settings come back", log=place.log)
    until(lambda: place.read().ended == "done", "the previous one answers", log=place.log)
    status = place.status()
    assert status["router"] == before.to_dict()
    assert f"{kind} ended with exit code 3" in status["problem"]
    assert f"{kind} ended with exit code 3" in place.routers.keep(NAME)
    assert place.log().count("takes over at") == 1


@pytest.mark.long
def test_a_router_of_another_kind_takes_over_the_port(place: Place) -> None:
    kinds = tuple(RouterKind)
    kind = kinds[(kinds.index(place.router.kind) + 1) % len(kinds)]
    facts = ROUTERS[kind]
    if find_program(facts.program) is None:
        pytest.skip(f"{facts.program} is not installed: {facts.install}")
    replica = place.start_replica()
    place.serve(replica)
    place.router = replace(place.router, kind=kind)
    place.publish(replica)
    until(lambda: facts.program in place.log(), "the other program runs", log=place.log)
    until(lambda: place.read().ended == "done", "it answers", log=place.log)
    assert "another process listens" not in place.log()
    assert place.routers.keep(NAME) == ""


def test_a_router_whose_next_program_cannot_start_keeps_serving(place: Place, tmp_path: Path) -> None:
    kinds = tuple(RouterKind)
    kind = kinds[(kinds.index(place.router.kind) + 1) % len(kinds)]
    broken = tmp_path / "bin" / ROUTERS[kind].program
    broken.parent.mkdir()
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{broken.parent}{os.pathsep}{os.environ['PATH']}")
        first, second = place.start_replica(), place.start_replica()
        place.serve(first)
    load, before = Load(port=place.port, model="gemma", key=KEY), place.router
    with running(load, clients=CLIENTS):
        place.router = replace(place.router, kind=kind)
        place.publish(first, second)
        until(lambda: "program ended with exit code 3" in place.log(), "the next program has failed", log=place.log)
        until(lambda: served_by(load, second), "the previous one has the list of now", log=place.log)
        status = place.status()
        assert status["router"] == before.to_dict()
        assert f"{kind} does not take over from {place.router.url} yet" in status["problem"]
        place.router = before
        place.publish(second)
        until(lambda: place.status()["router"] == before.to_dict(), "it is the router again", log=place.log)
    assert not load.failures, (load.failures, place.log())


def test_no_one_changes_the_servers_of_smg_and_no_key_is_in_its_command_line(tmp_path: Path) -> None:
    facts = ROUTERS[RouterKind.SMG]
    if find_program(facts.program) is None:
        pytest.skip(f"{facts.program} is not installed: {facts.install}")
    with ExitStack() as at_exit:
        place = Place(tmp_path, RouterKind.SMG, at_exit)
        place.serve(place.start_replica())
        process = json.loads((place.routers.folder(NAME) / "program.json").read_text())["pid"]
        words = Path(f"/proc/{process}/cmdline").read_text().split("\0")
        assert not [word for word in words if "key" in word], words
        for key in ("", KEY, *words):
            connection = http.client.HTTPConnection("127.0.0.1", place.port, timeout=DEADLINE)
            headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
            connection.request("POST", "/workers", '{"url": "http://127.0.0.1:1"}', headers)
            with closing(connection), connection.getresponse() as response:
                assert response.status == 401, key


def test_a_router_does_not_share_its_port_with_another_process(place: Place) -> None:
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        other.bind(("127.0.0.1", place.port))
        other.listen()
        place.publish(place.start_replica())
        place.routers.keep(NAME)
        until(lambda: f"another process listens at {place.router.url}" in place.routers.keep(NAME), "it is reported")
    until(lambda: place.read().ended == "done", "the router answers", log=place.log)


@pytest.mark.parametrize("task", [Task.EMBED, Task.SCORE, Task.CLASSIFY, Task.POOL])
def test_a_router_passes_on_the_requests_of_the_tasks_that_its_row_names(place: Place, task: Task) -> None:
    place.serve(place.start_replica())
    client = VllmClient(f"http://127.0.0.1:{place.port}", api_key=KEY)
    if task in ROUTERS[place.router.kind].tasks:
        assert client.prove(TASKS[task].trials[0], "gemma", "Say hello.").values == (0.5,)
    else:
        with pytest.raises(BadAnswer, match="404"):
            client.prove(TASKS[task].trials[0], "gemma", "Say hello.")


def test_the_reply_of_rerank_comes_through_wherever_scores_do(place: Place) -> None:
    """Of smg, its 1.13.0 sends the request on, and answers 500 because it cannot read vLLM's reply."""
    place.serve(place.start_replica())
    with closing(http.client.HTTPConnection("127.0.0.1", place.port, timeout=DEADLINE)) as connection:
        body = json.dumps({"model": "gemma", "query": "a", "documents": ["a"]})
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {KEY}"}
        connection.request("POST", "/rerank", body, headers)
        response = connection.getresponse()
        text = response.read().decode()
    if Task.SCORE in ROUTERS[place.router.kind].tasks:
        assert json.loads(text)["results"][0]["relevance_score"] == 0.5
    else:
        assert response.status == 500
        assert "rerank" in text


def served_by(load: Load, replica: Replica) -> list[Stream]:
    return [stream for stream in tuple(load.streams) if stream.source == str(replica.port)]


def last_began(streams: list[Stream]) -> float:
    return max((stream.began for stream in streams), default=0.0)


def answers(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0
