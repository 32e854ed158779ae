"""What a server promises an agent: names, schemas, hints. Held whole, because prompts and policies are written for it."""

from __future__ import annotations

import json

import pytest
from agent import connected
from desk import Open
from goldens import assert_golden

from tpudeploy.cli.mcp.tools import READING, WRITING

TAKEN = """
profiles profile colleague name code form type sweep prompt max_tokens run_id run_ids users ttft_seconds usd_per_month
destroy refresh_only target replace plan_id wait timeout_seconds operation_id after wait_seconds
concurrency context output window_seconds duration_seconds flag repeats ab_id
"""
WRITES = {tool.name for tool in WRITING}


def test_the_contract_is_what_it_was(desk: Open) -> None:
    with connected(desk()) as agent:
        told = {
            "tools": agent.tools(),
            "instructions": agent.client.instructions,
            "resources": [r.uri for r in agent.portal.call(agent.client.list_resources).resources],
            "templates": [
                t.uri_template for t in agent.portal.call(agent.client.list_resource_templates).resource_templates
            ],
        }
    assert_golden("mcp/contract.json", json.dumps(told, indent=1, ensure_ascii=False) + "\n")


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_server_only_reads_unless_a_person_said_otherwise(desk: Open, mode: str) -> None:
    at = desk()
    with connected(at, mode=mode) as agent:
        all_of_it = {tool["name"]: tool for tool in agent.tools()}
    with connected(at, mode=mode, allow_writes=False) as agent:
        reading = {tool["name"]: tool for tool in agent.tools()}
        refused = agent.call("destroy", plan_id="plan-1-00000000")
    assert refused.is_error
    assert reading == {name: tool for name, tool in all_of_it.items() if name not in WRITES}
    assert all(tool["annotations"]["readOnlyHint"] for tool in reading.values())


def test_what_can_end_something_says_so(desk: Open) -> None:
    with connected(desk()) as agent:
        destructive = {t["name"] for t in agent.tools() if t["annotations"].get("destructiveHint")}
    assert destructive == {"ab", "apply", "destroy"}


def test_no_tool_takes_a_secret_or_a_persons_yes(desk: Open) -> None:
    with connected(desk()) as agent:
        taken = {name for tool in agent.tools() for name in tool["inputSchema"]["properties"]}
    assert taken == set(TAKEN.split())


def test_every_tool_has_one_row() -> None:
    names = [tool.name for tool in (*READING, *WRITING)]
    assert len(names) == len(set(names))
