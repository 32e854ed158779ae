"""What an agent is told is what the command line prints with --json; and what it may name is inside the project."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from agent import connected
from command_line import PROFILE, CommandLine, Open, Result

from tpudeploy.domain.errors import UsageError
from tpudeploy.features.agents.answers import ToolDocument
from tpudeploy.features.agents.strict import as_tool_result

TOOLS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "validate": ({"profiles": ["gemma.yaml"]}, ("validate", "--format", "json", "gemma.yaml")),
    "size": ({"profile": "gemma.yaml", "sweep": True}, ("size", "--json", "--sweep", "gemma.yaml")),
    "zones": ({"profiles": ["gemma.yaml"], "type": "v6e-4"}, ("zones", "--json", "--type", "v6e-4", "gemma.yaml")),
    "doctor": ({"profile": "gemma.yaml"}, ("doctor", "--json", "gemma.yaml")),
    "status": ({"profiles": ["gemma.yaml"]}, ("status", "--json", "gemma.yaml")),
    "output": ({"name": "gemma"}, ("output", "--json", "gemma")),
    "gc_list": ({}, ("gc", "--json")),
    "drift": ({"profiles": ["gemma.yaml"]}, ("drift", "--json", "gemma.yaml")),
    "logs": ({"profile": "gemma.yaml"}, ("logs", "--json", "gemma.yaml")),
    "verify": ({"profile": "gemma.yaml"}, ("verify", "--json", "gemma.yaml")),
    "metrics": ({"profile": "gemma.yaml"}, ("metrics", "--json", "gemma.yaml")),
    "compare": (
        {"run_ids": ["agent-e2b-v6e-1", "agent-e2b-v6e-4"]},
        ("compare", "--json", "agent-e2b-v6e-1", "agent-e2b-v6e-4"),
    ),
    "recommend": (
        {"profile": "gemma.yaml", "users": 4, "context": 1024, "output": 128},
        ("recommend", "--json", "--users", "4", "--context", "1024", "--output", "128", "gemma.yaml"),
    ),
    "recommend_models": (
        {"profiles": ["gemma.yaml"], "models": ["Qwen/Qwen3-8B"], "users": 4, "context": 1024, "output": 128},
        (
            *("recommend", "--json", "--users", "4", "--context", "1024", "--output", "128"),
            *("gemma.yaml", "--model", "Qwen/Qwen3-8B"),
        ),
    ),
    "query": ({"profile": "gemma.yaml", "prompt": "Hi."}, ("query", "--json", "gemma.yaml", "Hi.")),
}


def document(result: Result) -> Any:
    """What a command printed; of a stream, its last line."""
    return json.loads(result.out if result.out.startswith("{\n") else result.out.splitlines()[-1])


@pytest.fixture
def serving(cli: Open) -> CommandLine:
    at: CommandLine = cli(nodes="real")
    assert at.run("apply", "-auto-approve", at.write()).code == 0
    return at


@pytest.mark.instant("both answers are held together to the last field, and some count the seconds since an event")
def test_a_tool_answers_what_the_command_prints(serving: CommandLine) -> None:
    with connected(serving, allow_writes=False) as agent:
        for tool, (arguments, words) in TOOLS.items():
            printed = document(serving.run(*words))
            answer = agent.whole(tool, **arguments)
            assert answer == {key: printed[key] for key in answer}, tool
        details = document(serving.run("status", "--details", "--json", "gemma.yaml"))["details"]
        assert agent.whole("memory_layout", profile="gemma.yaml")["details"] == details
        assert json.loads(agent.read("tpudeploy://deployments")) == document(serving.run("show", "--json"))
        one = json.loads(agent.read("tpudeploy://deployments/gemma"))
        assert [state["deployment"] for state in one["states"]] == ["gemma"]


def test_alert_rules_are_the_file_that_the_command_prints_with_what_it_says_beside_it(cli: Open) -> None:
    at = cli()
    result = at.run("alerts", "--format", "gmp", "--ttft", "3", at.write())
    with connected(at) as agent:
        answer = agent.whole("alerts", profiles=["gemma.yaml"], form="gmp", ttft_seconds=3)
    assert answer["text"].rstrip("\n") == result.out.rstrip("\n")
    assert answer["remarks"] == result.err.splitlines()


def test_a_code_is_explained_and_a_wrong_one_is_an_error_with_what_was_meant(cli: Open) -> None:
    with connected(cli()) as agent:
        assert agent.document("explain", code="STOCKOUT")["code"] == "stockout"
        wrong = agent.call("explain", code="stockoux")
    assert wrong.is_error
    assert wrong.document["exit_code"] == 1
    assert wrong.text == "Error: No code `stockoux`. [TPU0002]\n  Did you mean `stockout`?"


def test_every_problem_of_a_profile_comes_with_its_line(cli: Open) -> None:
    at = cli()
    at.write(PROFILE.replace("v6e-1", "v9e-1").replace("16384", "soon"))
    with connected(at) as agent:
        refused = agent.call("plan", profiles=["gemma.yaml"])
    assert refused.is_error
    assert {d["path"] for d in refused.document["diagnostics"]} == {"tpu.type", "serving.max_model_len"}
    assert "gemma.yaml:6" in refused.text


@pytest.mark.parametrize(
    "path", ["../mine.yaml", "/etc/hosts", ".env.yaml", "notes.txt", "away.yaml", "loop.yaml", "\0"]
)
@pytest.mark.parametrize("tool", ["validate", "plan", "status"])
def test_what_is_no_profile_of_the_project_is_not_read(cli: Open, tmp_path: Path, tool: str, path: str) -> None:
    at = cli()
    at.folder = tmp_path / "project"
    at.folder.mkdir()
    for name in ("../mine.yaml", ".env.yaml", "notes.txt"):
        (at.folder / name).write_text("canary: 4f1e9c\n", encoding="utf-8")
    (at.folder / "away.yaml").symlink_to(tmp_path / "mine.yaml")
    (at.folder / "loop.yaml").symlink_to("loop.yaml")
    with connected(at) as agent:
        refused = agent.call(tool, profiles=[path])
    assert refused.is_error
    assert "is not a profile in this project" in refused.text
    assert "4f1e9c" not in refused.text


def test_a_folder_is_its_profiles_and_leads_nowhere_else(cli: Open, tmp_path: Path) -> None:
    at = cli()
    at.folder = tmp_path / "project"
    (at.folder / "all").mkdir(parents=True)
    at.write(name="all/gemma.yaml")
    (tmp_path / "mine.yaml").write_text(PROFILE, encoding="utf-8")
    (at.folder / "all" / "away.yaml").symlink_to(tmp_path / "mine.yaml")
    with connected(at) as agent:
        checked = agent.document("validate", profiles=["all"])
    assert [row["file"] for row in checked["profiles"]] == ["all/gemma.yaml"]


def test_arguments_that_do_not_fit_are_refused_before_anything_is_done(cli: Open) -> None:
    at = cli()
    with connected(at) as agent:
        assert agent.call("query", profile="gemma.yaml", prompt="", max_tokens=5).is_error
        assert agent.call("query", profile="gemma.yaml", prompt="Hi", max_tokens=0).is_error
        refused = agent.call("status", profiles=[at.write()], token="hf_x")
        assert refused.is_error
        assert "hf_x" not in refused.text


def test_a_resource_that_is_not_there_says_so(cli: Open) -> None:
    with connected(cli()) as agent, pytest.raises(Exception, match="Nothing is deployed as `llama`"):
        agent.read("tpudeploy://deployments/llama")


HOSTILE = "\x1b[2J\u202eevil\u0085\u200b"


def test_nothing_that_hides_or_reorders_text_reaches_a_model() -> None:
    """Whatever a tool returns or raises, by the one door that makes answers."""
    returned = as_tool_result(lambda: {HOSTILE: [{"a": HOSTILE}]}, ToolDocument)()

    def refuse() -> dict[str, object]:
        raise UsageError(HOSTILE, hint=HOSTILE)

    refused = as_tool_result(refuse, ToolDocument)()
    for answer in (returned, refused):
        text = answer.model_dump_json() + repr(answer.structured_content) + str(answer.content)
        assert not set(text) & set(HOSTILE) - set("[2Jevil")
        assert "\\u202e" not in text
        assert "\\x1b" not in text
        assert "\\u001b" not in text
    assert (returned.is_error, refused.is_error) == (False, True)


def test_nor_does_it_by_the_name_of_a_file(cli: Open) -> None:
    at = cli()
    with connected(at) as agent:
        refused = agent.call("validate", profiles=[f"{HOSTILE}.yaml"])
    assert refused.document["valid"] is False
    assert not set(refused.text + repr(refused.document)) & set(HOSTILE) - set("[2Jevil")
