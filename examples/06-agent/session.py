"""What an agent does with `tpudeploy mcp`, call by call, without a model: plan, apply, poll, ask, and a person's yes.

    tpudeploy emulator run -- python examples/06-agent/session.py

`mcp.json` beside it is how a client is told to start the server. Elsewhere than on the emulator this costs money.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
from mcp import Client
from mcp.client.session import ClientRequestContext
from mcp.client.stdio import StdioServerParameters
from mcp.types import ElicitRequestParams, ElicitResult

HERE = Path(__file__).parent
PROFILE = "gemma4-e2b-v6e1.yaml"


async def main() -> None:
    with TemporaryDirectory() as project:
        shutil.copy(HERE.parents[1] / "profiles" / PROFILE, project)
        settings = json.loads((HERE / "mcp.json").read_text(encoding="utf-8"))["mcpServers"]["tpudeploy"]
        server = StdioServerParameters(**settings, cwd=project, env=dict(os.environ))
        async with Client(server, elicitation_callback=person) as client:
            await session(client)


async def session(client: Client) -> None:
    plan = await tool(client, "plan", profiles=[PROFILE])
    print(plan["text"].splitlines()[-1])
    await tool(client, "apply", plan_id=plan["plan_id"])
    report = await to_its_end(client)
    print(f"It serves at {report['endpoints'][0]['url']}.")
    answer = await tool(client, "query", profile=PROFILE, prompt="Are you there?", max_tokens=32)
    print(f"It says: {answer['answer']}")
    removal = await tool(client, "plan", profiles=[PROFILE], destroy=True)
    await tool(client, "destroy", plan_id=removal["plan_id"])
    await to_its_end(client)
    print("It is gone.")


async def tool(client: Client, name: str, **arguments: Any) -> dict[str, Any]:
    """The document of a tool. What a model would read of an error ends this session."""
    answered = await client.call_tool(name, arguments)
    if answered.is_error:
        raise SystemExit(f"{name}: {answered.content}")
    return dict(answered.structured_content or {})


async def to_its_end(client: Client) -> dict[str, Any]:
    """Polls what runs in the background; its report."""
    after = 0
    while True:
        polled = await tool(client, "operation", after=after, wait_seconds=30)
        after = polled["last_event"]
        for event in polled["events"]:
            print(f"  {event['line']}")
        if polled["state"] != "running":
            if polled["error"] is not None:
                raise SystemExit(polled["error"]["message"])
            return dict(polled["result"])


async def person(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:  # noqa: ARG001 - the SDK hands it in
    """Whom the client asks before anything ends. No model can answer in their place."""
    print(params.message)
    return ElicitResult(action="accept", content={"approve": True})


if __name__ == "__main__":
    anyio.run(main)
