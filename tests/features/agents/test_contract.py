"""What a server promises an agent: names, schemas, hints. Held whole, because prompts and policies are written for it."""

from __future__ import annotations

from typing import Any

import pytest
from agent import connected
from command_line import Open
from goldens import assert_golden

from tpudeploy.features.agents.tools import READING, WRITING

TAKEN = """
profiles profile emulated colleague name code form type sweep prompt max_tokens run_id run_ids users ttft_seconds usd_per_month
destroy refresh_only target replace start plan_id wait timeout_seconds operation_id after wait_seconds
max_bytes set shipped what contains last grid retry proposal_id by max_cost limit_ttft limit_tpot axes questions count models
concurrency context output window_seconds duration_seconds flag repeats ab_id tune_id address group_by system model command fix_script
"""
WRITES = {tool.name for tool in WRITING}


def test_the_contract_is_what_it_was(cli: Open) -> None:
    """Each tool by its arguments (`?`: may be left out), the keys that its answer always has, and its hints."""
    with connected(cli()) as agent:
        lines = sorted(contract_line(tool) for tool in agent.tools())
        resources = [r.uri for r in agent.portal.call(agent.client.list_resources).resources]
        templates = agent.portal.call(agent.client.list_resource_templates).resource_templates
    lines += [*resources, *(template.uri_template for template in templates)]
    assert_golden("mcp/tools", "\n".join(lines) + "\n")


def contract_line(tool: dict[str, Any]) -> str:
    takes, returns = tool["inputSchema"], tool["outputSchema"]
    required = takes.get("required", [])
    arguments = [
        f"{name}{'' if name in required else '?'} {type_text(value)}" for name, value in takes["properties"].items()
    ]
    hints = ", ".join(name for name, value in tool["annotations"].items() if value)
    return f"{tool['name']}({'; '.join(arguments)}) -> {' '.join(returns['required'])}  [{hints}]"


def type_text(schema: dict[str, Any]) -> str:
    if "anyOf" in schema:
        return "|".join(map(type_text, schema["anyOf"]))
    if "enum" in schema:
        return f"({', '.join(schema['enum'])})"
    return f"{type_text(schema['items'])}[]" if schema["type"] == "array" else str(schema["type"])


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_server_only_reads_unless_a_person_said_otherwise(cli: Open, mode: str) -> None:
    at = cli()
    with connected(at, mode=mode) as agent:
        all_of_it = {tool["name"]: tool for tool in agent.tools()}
    with connected(at, mode=mode, allow_writes=False) as agent:
        reading = {tool["name"]: tool for tool in agent.tools()}
        refused = agent.call("destroy", plan_id="plan-1-00000000")
    assert refused.is_error
    assert reading == {name: tool for name, tool in all_of_it.items() if name not in WRITES}
    assert all(tool["annotations"]["readOnlyHint"] for tool in reading.values())


def test_what_can_end_something_says_so(cli: Open) -> None:
    with connected(cli()) as agent:
        destructive = {t["name"] for t in agent.tools() if t["annotations"].get("destructiveHint")}
    assert destructive == {"ab", "apply", "campaign", "destroy", "report_host", "tune"}


def test_no_tool_takes_a_secret_or_a_persons_yes(cli: Open) -> None:
    with connected(cli()) as agent:
        names = {name for tool in agent.tools() for name in tool["inputSchema"]["properties"]}
    assert names == set(TAKEN.split())


def test_every_tool_has_one_row() -> None:
    names = [tool.name for tool in (*READING, *WRITING)]
    assert len(names) == len(set(names))


def test_every_tool_refuses_an_argument_that_it_does_not_have(cli: Open) -> None:
    with connected(cli()) as agent:
        for tool in agent.tools():
            assert tool["inputSchema"]["additionalProperties"] is False, tool["name"]
            refused = agent.call(tool["name"], overrides={"tpu.type": "v6e-8"})
            assert refused.is_error, tool["name"]
            assert (refused.document["code"], refused.document["exit_code"]) == ("TPU0002", 1)
            assert f"The tool `{tool['name']}` has no argument `overrides`." in refused.text
            assert all(f"`{name}`" in refused.text for name in tool["inputSchema"]["properties"])


@pytest.mark.parametrize(
    ("tool", "arguments", "hint"),
    [
        ("plan", {"profile": ["gemma.yaml"]}, "Did you mean `profiles` instead of `profile`?"),
        ("size", {"profile": "gemma.yaml", "sweeps": True}, "Did you mean `sweep` instead of `sweeps`?"),
        ("operation", {"operationId": None}, "Did you mean `operation_id` instead of `operationId`?"),
    ],
)
def test_an_unknown_argument_is_refused_with_the_nearest_name(
    cli: Open, tool: str, arguments: dict[str, object], hint: str
) -> None:
    at = cli()
    at.write()
    with connected(at) as agent:
        assert hint in agent.call(tool, **arguments).text


def test_a_plan_with_settings_that_the_tool_would_drop_is_not_made(cli: Open) -> None:
    at = cli()
    at.write()
    with connected(at) as agent:
        refused = agent.call("plan", profiles=["gemma.yaml"], overrides=["tpu.type=v6e-8"])
    assert refused.is_error
    assert "plan_id" not in refused.document
    assert (
        "It takes `profiles`, `destroy`, `replace`, `start`, `refresh_only`, `target`, `set`, `max_bytes`."
        in refused.text
    )


def test_an_argument_of_the_wrong_type_is_an_error_in_our_own_form(cli: Open) -> None:
    with connected(cli()) as agent:
        refused = agent.call("recommend", profile="gemma.yaml", users=0, context=1024, output=128)
    assert refused.is_error
    assert refused.document["code"] == "TPU0002"
    assert "`users`: Input should be greater than or equal to 1." in refused.text
