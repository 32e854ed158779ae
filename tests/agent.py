"""An agent before a person's project: the SDK's real client, in memory, and the person who may be asked."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from anyio.from_thread import BlockingPortal, start_blocking_portal
from command_line import CommandLine
from mcp import Client
from mcp.client.session import ClientRequestContext
from mcp.types import ElicitRequestFormParams, ElicitRequestParams, ElicitResult, TextContent

from tpudeploy.cli.context import Context
from tpudeploy.cli.terminal import Terminal
from tpudeploy.config.trust import Trust
from tpudeploy.domain.errors import Interrupted
from tpudeploy.emulator import VirtualClock
from tpudeploy.features.agents.project import Project
from tpudeploy.features.agents.server import server
from tpudeploy.features.agents.session import AgentSession
from tpudeploy.ports import Workers


class Gate:
    """While it is shut, no time passes for what runs in the background."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.is_open = True

    def shut(self) -> None:
        self.is_open = False

    def open(self) -> None:
        with self.changed:
            self.is_open = True
            self.changed.notify_all()


class Paced:
    """The user's clock, for one call. `stop` ends its sleeps, as the clock on the wall does."""

    def __init__(self, world: VirtualClock, gate: Gate) -> None:
        self._world = world
        self._gate = gate
        self._is_stopped = False

    def now(self) -> float:
        return self._world.now()

    def sleep(self, seconds: float) -> None:
        with self._gate.changed:
            self._gate.changed.wait_for(lambda: self._is_stopped or self._gate.is_open or not seconds)
        if self._is_stopped:
            raise Interrupted("Interrupted. Work in progress is saved.")
        self._world.sleep(seconds)

    def stop(self) -> None:
        with self._gate.changed:
            self._is_stopped = True
            self._gate.changed.notify_all()

    def workers(self) -> AbstractContextManager[Workers]:
        return self._world.workers()


@dataclass(frozen=True, kw_only=True)
class Answered:
    """What a tool answered: `document` is its structured content, `text` what a model reads."""

    is_error: bool
    document: Mapping[str, Any]
    text: str


@dataclass(kw_only=True)
class Agent:
    """What the model at the other end can do, call by call."""

    client: Client
    portal: BlockingPortal
    gate: Gate
    questions: list[str] = field(default_factory=list)
    heard: list[str] = field(default_factory=list)

    def call(self, tool: str, **arguments: Any) -> Answered:
        response = self.portal.call(self.client.call_tool, tool, arguments)
        (content,) = response.content
        assert isinstance(content, TextContent)
        self.heard.append(response.model_dump_json())
        return Answered(is_error=response.is_error, document=response.structured_content or {}, text=content.text)

    def document(self, tool: str, **arguments: Any) -> Mapping[str, Any]:
        """The document of a call that must succeed."""
        answered = self.call(tool, **arguments)
        assert not answered.is_error, answered.text
        return answered.document

    def whole(self, tool: str, **arguments: Any) -> Mapping[str, Any]:
        """The document of a call that must succeed, whatever its size."""
        return self.document(tool, max_bytes=1_000_000, **arguments)

    def ended(self) -> Mapping[str, Any]:
        """The last operation, once it has ended; polled as an agent does. All its events are in it."""
        after, events = 0, list[Any]()
        while True:
            polled = self.whole("operation", after=after, wait_seconds=30)
            after, events = polled["last_event"], [*events, *polled["events"]]
            if polled["state"] != "running":
                return {**polled, "events": events}

    def hears(self, kind: str) -> None:
        """Poll the last operation until it has told an event of this kind."""
        after, answer = 0, set[str]()
        while kind not in answer:
            polled = self.document("operation", after=after, wait_seconds=30)
            assert polled["state"] == "running", polled
            after, answer = polled["last_event"], answer | {event["type"] for event in polled["events"]}

    def tools(self) -> list[dict[str, Any]]:
        listed = self.portal.call(self.client.list_tools)
        return [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in listed.tools]

    def read(self, uri: str) -> str:
        (content,) = self.portal.call(self.client.read_resource, uri).contents
        return str(content.model_dump()["text"])


Answers = Callable[[], ElicitResult]


def says(**answers: bool) -> Answers:
    return lambda: ElicitResult(action="accept", content=dict(answers))


def turns_away(action: Any) -> Answers:
    return lambda: ElicitResult(action=action)


@contextmanager
def connected(
    at: CommandLine,
    *,
    allow_writes: bool = True,
    person: Answers | None = None,
    max_cost: float | None = None,
    mode: str = "auto",
    allow_env: Iterable[str] = (),
) -> Iterator[Agent]:
    """An agent in the user's folder. Without a `person`, its client cannot ask anybody."""
    gate, requests = Gate(), list[str]()

    async def ask(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        assert isinstance(params, ElicitRequestFormParams)
        requests.append(params.message)
        assert person is not None
        return person()

    stack = ExitStack()
    context = Context(
        terminal=Terminal.of_process(no_color=True),
        clock=at.clock,
        patience=at.patience,
        folder=at.folder,
        backend=None,
        parallelism=8,
        at_exit=stack,
        trust=Trust(allowed=frozenset(allow_env)),
    )
    session = AgentSession(Project(context=context, clock=lambda: Paced(at.clock, gate)), max_cost=max_cost)
    agents_server = server(session, allow_writes=allow_writes)
    client = Client(agents_server, mode=mode, elicitation_callback=None if person is None else ask)
    portal = stack.enter_context(start_blocking_portal())
    stack.enter_context(portal.wrap_async_context_manager(client))
    try:
        yield Agent(client=client, portal=portal, gate=gate, questions=requests)
    finally:
        session.close()
        stack.close()  # without what a test raised: the SDK would bury it in groups
