"""No answer of a tool fills an agent's context by itself: it stays below 4 KB, and says what is missing and how to get it."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from agent import Agent, Answered, connected, says
from command_line import PROFILE, CommandLine, Open

from tpudeploy.features.agents.aliases import ALIASES
from tpudeploy.features.agents.shortening import MOST_BYTES, shortened, shortened_text, size
from tpudeploy.features.agents.tools import READING, WRITING
from tpudeploy.features.benchmark import runfile

GRID = """\
version: 1
name: many
base: gemma.yaml
models: [google/gemma-4-E2B-it, google/gemma-4-E4B-it, Qwen/Qwen3-4B, google/gemma-4-26B-A4B-it]
slices: [v6e-1, v6e-4]
settings: {serving.padding_gap: [0, 256, 512], serving.max_num_seqs: [64, 128, 256]}
cells: {concurrency: [1, 8], context: [128, 1024], output: [64], window: 1s}
budget: 2000
"""
DEPLOYMENTS, RUNS = 14, 40
ALL = [f"team-{number:02d}.yaml" for number in range(DEPLOYMENTS)]
LONG = "x" * 50_000
# What each tool is called with in a project of many deployments, runs and zones: the most that it can say of it.
CALLS: Mapping[str, Mapping[str, Any]] = {
    "validate": {"profiles": ALL},
    "size": {"profile": "gemma.yaml", "sweep": True},
    "render": {"profile": "gemma.yaml", "what": "startup-script"},
    "doctor": {"profile": "gemma.yaml"},
    "zones": {"profiles": ALL},
    "plan": {"profiles": ALL},
    "status": {},
    "memory_layout": {"profile": "gemma.yaml"},
    "output": {"name": "gemma"},
    "gc_list": {},
    "drift": {"profiles": ALL},
    "logs": {"profile": "gemma.yaml", "contains": "e"},
    "diagnose": {"profile": "gemma.yaml"},
    "verify": {"profile": "gemma.yaml"},
    "metrics": {"profile": "gemma.yaml"},
    "query": {"profile": "gemma.yaml", "prompt": "Say hello.", "max_tokens": 4000},
    "explain": {"code": "STOCKOUT"},
    "runs": {},
    "run": {"run_id": "RUN-00"},
    "compare": {"run_ids": [f"RUN-{number:02d}" for number in range(6)]},
    "recommend": {"profile": "gemma.yaml", "users": 4, "context": 1024, "output": 128},
    "recommend_models": {
        "profiles": ["gemma.yaml"],
        "models": ["Qwen/Qwen3-8B", "Qwen/Qwen3-32B", "google/gemma-4-31B-it"],
        "users": 4,
        "context": 1024,
        "output": 128,
    },
    "ab_propose": {"profile": "gemma.yaml", "flag": "serving.padding_gap=0,512"},
    "ab_result": {"ab_id": LONG},
    "campaign_result": {"name": LONG},
    "tune_result": {"tune_id": LONG},
    "campaign_propose": {"grid": "grid.yaml"},
    "campaign": {"proposal_id": LONG},
    "tune_propose": {"profile": "gemma.yaml", "max_cost": 20},
    "tune": {"proposal_id": LONG},
    "cost": {"group_by": "slice"},
    "draft_profile": {"model": "google/gemma-4-E2B-it"},
    "alerts": {"profiles": ALL, "form": "dashboard"},
    "get_help": {},
    "bench": {"profile": "gemma.yaml", "concurrency": [1, 2, 4, 8], "context": [16, 32, 64], "output": [2, 4]},
    "operation": {},
    "cancel": {},
    "apply": {"plan_id": LONG},
    "destroy": {"plan_id": LONG},
    "ab": {"ab_id": LONG},
    "report_host": {"address": LONG},
}


@pytest.fixture
def at(cli: Open) -> CommandLine:
    """A project with many deployments and runs, of which one serves."""
    at: CommandLine = cli(nodes="real")
    for number, name in enumerate(ALL):
        at.write(PROFILE.replace("name: gemma", f"name: team-{number:02d}"), name)
    at.write(GRID, "grid.yaml")
    assert at.run("apply", "-auto-approve", at.write()).code == 0
    sweep = ("-concurrency", "1,2,4,8", "-context", "16,64,256", "-output", "8", "-window", "0.05s")
    at.run("bench", "gemma.yaml", *sweep)
    own = at.folder / ".tpudeploy"
    (file,) = (own / "runs").glob("*.json")
    run = runfile.loads(file.read_text(encoding="utf-8"), source=str(file))
    for number in range(RUNS):
        other = replace(run, id=f"RUN-{number:02d}", began_at=run.began_at + 60 * number)
        (own / "runs" / f"{other.id}.json").write_text(runfile.dumps(other), encoding="utf-8")
    state = (own / "state" / "gemma.json").read_text(encoding="utf-8")
    for number in range(DEPLOYMENTS):
        name = f"team-{number:02d}"
        text = state.replace('"gemma"', f'"{name}"').replace("gemma-", f"{name}-")
        (own / "state" / f"{name}.json").write_text(text, encoding="utf-8")
    return at


def test_no_answer_of_any_tool_is_larger_than_4_kb_and_a_shorter_one_says_how_to_get_the_whole(
    at: CommandLine,
) -> None:
    shortened_ones, names = set(), {tool.name for tool in (*READING, *WRITING)}
    assert names == set(CALLS), "a tool without a row here"
    with connected(at, person=says(approve=True)) as agent:
        for name, arguments in CALLS.items():
            answered = agent.call(name, **arguments)
            _is_small(answered, name)
            cut = answered.document.get("left_out")
            if cut is None or name in {tool.name for tool in WRITING if not tool.is_reading}:
                continue
            shortened_ones.add(name)
            assert cut["parts"], name
            assert f"`{name}`" in cut["hint"], name
            if not answered.is_error:
                _is_whole(agent, name, arguments, cut)
    assert shortened_ones >= {"runs", "run", "zones", "plan", "render", "status", "logs", "alerts", "compare"}


def _is_small(answered: Answered, name: str) -> None:
    assert len(answered.text.encode()) < 4096, name
    assert len(json.dumps(answered.document, ensure_ascii=False).encode()) < 4096, name


def _is_whole(agent: Agent, name: str, arguments: Mapping[str, Any], cut: Mapping[str, Any]) -> None:
    """Do what the hint says: the answer is whole then, and as large as it was said to be."""
    most = int(cut["hint"].rpartition("max_bytes=")[2].rstrip("."))
    whole = agent.document(name, **{**arguments, "max_bytes": most})
    assert "left_out" not in whole, name
    assert size(whole) > MOST_BYTES, name


def test_a_list_that_is_too_long_names_every_entry_before_it_gives_details_of_one(at: CommandLine) -> None:
    with connected(at) as agent:
        runs = agent.document("runs")
        deployments = agent.document("status")["deployments"]
    assert len(runs["runs"]) >= 15
    assert all({"id", "began_at"} <= run.keys() for run in runs["runs"])
    assert "runs: " in runs["left_out"]["parts"][0]
    assert f" of {RUNS + 1} entries" in runs["left_out"]["parts"][0]
    assert [each["name"] for each in deployments][:3] == ["gemma", "team-00", "team-01"]


def test_a_huge_argument_makes_no_huge_answer(at: CommandLine) -> None:
    with connected(at) as agent:
        calls: Mapping[str, dict[str, Any]] = {
            "explain": {"code": LONG},
            "plan": {"profiles": [f"{LONG}.yaml"]},
            "size": {"profile": "gemma.yaml", "set": [f"serving.{LONG[:3000]}=1"]},
            "validate": {"profiles": ["gemma.yaml"] * 500},
            "output": {"name": LONG},
            LONG[:30]: {},
            "zones": {"profiles": [], LONG: 1},
        }
        for tool, arguments in calls.items():
            _is_small(agent.call(tool, **arguments), tool)


def test_an_alias_is_as_short_and_its_hint_names_the_tool(at: CommandLine) -> None:
    with connected(at) as agent:
        answered = agent.call("list_benchmarks")
    assert ALIASES["list_benchmarks"].tool == "runs"
    assert "call `runs` with" in answered.document["left_out"]["hint"]


def test_any_document_is_cut_to_any_limit_and_keeps_its_keys() -> None:
    for seed in range(60):
        rng = random.Random(seed)
        document = {f"key{index}": _anything(rng, 4) for index in range(rng.randrange(1, 12))}
        for most in (1000, 4000):
            cut = shortened(document, most, "Call `runs` with max_bytes={bytes}.")
            assert size(cut) <= most, seed
            assert set(document) <= set(cut), seed
            assert ("left_out" in cut) == (size(document) > most), seed


def _anything(rng: random.Random, depth: int) -> Any:
    kind = rng.random()
    if not depth or kind < 0.3:
        return rng.choice([1, 2.5, None, True, "a" * rng.randrange(40), "words " * rng.randrange(300), 'ü"\n' * 90])
    if kind < 0.65:
        return [_anything(rng, depth - 1) for _ in range(rng.randrange(12))]
    return {f"key{index}": _anything(rng, depth - 1) for index in range(rng.randrange(9))}


def test_of_a_long_text_the_beginning_and_the_end_stay() -> None:
    text = "first line\n" + "middle\n" * 2000 + "Plan: 1 to add, 2 to destroy."
    cut = shortened_text(text, 1000)
    assert len(cut.encode()) <= 1000
    assert cut.startswith("first line\n")
    assert cut.endswith("Plan: 1 to add, 2 to destroy.")
    assert "characters left out" in cut
