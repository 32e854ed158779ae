"""The server as a client starts it: a process, whose stdout is the protocol's alone."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import anyio
import pytest
from command_line import PROFILE, Open
from mcp import Client
from mcp.client.session import ClientRequestContext
from mcp.client.stdio import StdioServerParameters
from mcp.types import ElicitRequestParams, ElicitResult
from real_time import DEADLINE

from tpudeploy.emulator import Emulator, running
from tpudeploy.features.agents.tools import READING, WRITING

TPUDEPLOY = str(Path(sys.executable).with_name("tpudeploy"))
# What a client of the older protocol says first.
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}


@pytest.fixture
def emulator(tmp_path: Path) -> Iterator[Emulator]:
    """Google, in real time, and slow to grant."""
    (tmp_path / "gemma.yaml").write_text(PROFILE + "lifecycle: {end: 24h}\n", encoding="utf-8")
    with running(scenario={"nodes": "simulated", "timings": {"waiting": 600.0}}) as emulator:
        yield emulator


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_real_client_plans_applies_and_destroys_once_a_person_says_yes(
    tmp_path: Path, emulator: Emulator, mode: str
) -> None:
    answers = [ElicitResult(action="decline"), ElicitResult(action="accept", content={"approve": True})]
    requests = list[str]()

    async def ask(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        requests.append(params.message)
        return answers.pop(0)

    async def session() -> None:
        started = StdioServerParameters(
            command=TPUDEPLOY,
            args=["mcp", "--allow-writes", "--max-cost", "100"],
            cwd=tmp_path,
            env=emulator.environment,
        )
        async with Client(started, mode=mode, elicitation_callback=ask) as client:

            async def document(tool: str, **arguments: Any) -> dict[str, Any]:
                answered = await client.call_tool(tool, arguments)
                assert not answered.is_error, answered.content
                return dict(answered.structured_content or {})

            listed = await client.list_tools()
            assert {tool.name for tool in listed.tools} == {tool.name for tool in (*READING, *WRITING)}
            plan = await document("plan", profiles=["gemma.yaml"])
            await document("apply", plan_id=plan["plan_id"], wait="accepted")
            after, state = 0, "running"
            while state == "running":
                polled = await document("operation", after=after, wait_seconds=30)
                after, state = polled["last_event"], polled["state"]
            assert state == "succeeded"
            removal = await document("plan", profiles=["gemma.yaml"], destroy=True)
            refused = await client.call_tool("destroy", {"plan_id": removal["plan_id"]})
            assert refused.is_error
            (name,) = (name for zone in emulator.live().values() for name in zone)
            assert (await document("destroy", plan_id=removal["plan_id"]))["does"] == "destroy"
            assert len(requests) == 2
            assert all(name in question for question in requests)

    anyio.run(session)


@pytest.mark.parametrize(
    ("ended_by", "code", "message"),
    [(signal.SIGTERM, 130, "the progress is saved"), (signal.SIGKILL, -signal.SIGKILL, "")],
)
def test_stdout_holds_the_protocol_and_a_server_that_is_ended_at_work_leaves_what_was_begun_in_the_state(
    tmp_path: Path, emulator: Emulator, ended_by: signal.Signals, code: int, message: str
) -> None:
    """A client that is still there keeps stdin open: nothing else would end it."""
    with ExitStack() as stack:
        server = stack.enter_context(
            subprocess.Popen(
                [TPUDEPLOY, "mcp", "--allow-writes", "--max-cost", "100"],
                cwd=tmp_path,
                env=emulator.environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
        assert server.stdin is not None
        assert server.stdout is not None
        assert server.stderr is not None
        tell(server.stdin, HELLO, READY)
        assert hear(server.stdout)["serverInfo"]["name"] == "tpudeploy"
        tell(server.stdin, call(2, "plan", profiles=["gemma.yaml"]))
        plan_id = hear(server.stdout)["structuredContent"]["plan_id"]
        tell(server.stdin, call(3, "apply", plan_id=plan_id))
        assert hear(server.stdout)["structuredContent"]["state"] == "running"
        after, answer = 0, set[str]()
        while "requested" not in answer or not any(emulator.live().values()):
            tell(server.stdin, call(4 + after, "operation", after=after, wait_seconds=1))
            polled = hear(server.stdout)["structuredContent"]
            after, answer = polled["last_event"], answer | {event["type"] for event in polled["events"]}
        server.send_signal(ended_by)
        assert server.wait(timeout=DEADLINE) == code
        assert server.stdout.read() == ""
        assert message in server.stderr.read()
    state = json.loads((tmp_path / ".tpudeploy" / "state" / "gemma.json").read_text(encoding="utf-8"))
    assert state["goal"] is not None
    (attempt,) = state["records"][0]["attempts"]
    assert {attempt["name"]} >= {name for zone in emulator.live().values() for name in zone}


def test_a_client_that_goes_ends_its_server(tmp_path: Path, emulator: Emulator) -> None:
    ended = subprocess.run(
        [TPUDEPLOY, "mcp"],
        cwd=tmp_path,
        env=emulator.environment,
        input=json.dumps(HELLO) + "\n",
        capture_output=True,
        text=True,
        check=True,
        timeout=DEADLINE,
    )
    (line,) = ended.stdout.splitlines()
    assert json.loads(line)["result"]["serverInfo"]["name"] == "tpudeploy"
    assert ended.stderr == ""


def test_settings_that_are_wrong_are_said_before_a_client_waits_for_an_answer(tmp_path: Path) -> None:
    (tmp_path / "tpudeploy.toml").write_text("backend = 7\n", encoding="utf-8")
    ended = subprocess.run(
        [TPUDEPLOY, "mcp"], cwd=tmp_path, input="", capture_output=True, text=True, check=False, timeout=DEADLINE
    )
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith("Error: backend must be text [TPU1203]\n  on tpudeploy.toml:1:1")


def test_without_the_sdk_it_says_what_to_install(cli: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    result = cli().run("mcp")
    assert (result.code, result.out) == (1, "")
    assert " 'mcp>=2.3'\n" in result.err


def tell(stdin: IO[str], *messages: object) -> None:
    for message in messages:
        stdin.write(json.dumps(message) + "\n")
    stdin.flush()


def call(number: int, tool: str, **arguments: object) -> dict[str, object]:
    params = {"name": tool, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


def hear(stdout: IO[str]) -> dict[str, Any]:
    """The next result; each line is a message of the protocol."""
    while True:
        message = json.loads(stdout.readline())
        if "result" in message:
            return dict(message["result"])
