"""A whole session of an agent: it finds a place, plans, applies, asks, looks, and is refused what nobody said yes to."""

from __future__ import annotations

from agent import connected, turns_away
from command_line import PROFILE, Open

CANARY = "canary-4f1e9c"
KEYED = PROFILE.replace("  HF_TOKEN: hf-token\n", "  HF_TOKEN: hf-token\n  VLLM_API_KEY: vllm-key\n")


def test_an_agent_deploys_a_model_and_cannot_take_it_away_by_itself(cli: Open) -> None:
    at = cli(
        nodes="real",
        secrets={"hf-token": f"{CANARY}-hub", "vllm-key": f"{CANARY}-key"},
        trouble=[{"fault": "stockout", "zone": "us-east5-a", "times": 99}],
    )
    at.write(KEYED + "lifecycle: {end: 24h}\n")
    with connected(at, person=turns_away("decline"), max_cost=100.0) as agent:
        (table,) = agent.document("zones", profiles=["gemma.yaml"])["tables"]
        assert {row["zone"] for row in table["pairs"]} >= {"us-east5-a", "us-east5-b"}
        assert agent.document("doctor", profile="gemma.yaml")["counts"]["fail"] == 0
        assert agent.document("size", profile="gemma.yaml")["fits"]

        plan = agent.document("plan", profiles=["gemma.yaml"])
        assert not plan["needs_consent"]
        agent.document("apply", plan_id=plan["plan_id"])
        ended = agent.ended()
        assert ended["state"] == "succeeded"
        assert "us-east5-a" in " ".join(event["line"] for event in ended["events"])
        (endpoint,) = ended["result"]["endpoints"]
        assert endpoint["zone"] == "us-east5-b"

        assert agent.document("output", name="gemma")["url"] == endpoint["url"]
        assert agent.document("query", profile="gemma.yaml", prompt="Say hello.")["completion_tokens"] > 0
        (now,) = agent.document("metrics", profile="gemma.yaml")["replicas"]
        assert now["address"] == "gemma[0]"
        (machine,) = agent.document("memory_layout", profile="gemma.yaml")["details"]
        assert {share["name"] for share in machine["memory"]} >= {"weights", "KV cache"}
        assert agent.document("verify", profile="gemma.yaml")["holds"]

        sweep = {"concurrency": [1], "context": [16], "output": [2], "window_seconds": 0.05}
        agent.document("bench", profile="gemma.yaml", **sweep)
        (cell,) = agent.ended()["result"]["cells"]
        assert cell["figures"]["requests"] > 0

        refused = agent.call(
            "destroy", plan_id=agent.document("plan", profiles=["gemma.yaml"], destroy=True)["plan_id"]
        )
        assert refused.is_error
        assert len(agent.questions) == 1
        (deployment,) = agent.document("status", profiles=["gemma.yaml"])["deployments"]
        assert deployment["name"] == "gemma"
        answer = "\n".join([*agent.heard, agent.read("tpudeploy://deployments/gemma"), *agent.questions])
    assert list(at.slices.values()) == ["ACTIVE"]
    assert "hf-token" in answer, "secrets are named"
    assert CANARY not in answer
