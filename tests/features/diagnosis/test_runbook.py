"""A runbook has our findings, and a draft by the served model that is marked, cut and made harmless."""

from __future__ import annotations

import json

import pytest
from command_line import PROFILE, CommandLine, Open

from tpudeploy.boot_log.reading import Draft, NoDraft
from tpudeploy.domain.deployment import Json
from tpudeploy.features.diagnosis.changes import RecentChange
from tpudeploy.features.diagnosis.examination import ServerExamination
from tpudeploy.features.diagnosis.findings import ServerFinding, Weight
from tpudeploy.features.diagnosis.runbook import MOST_CHARACTERS, harmless_text, question, runbook

FAILING = {"request_success.stop": 2, "request_success.error": 1}
ANSWER = "> This is the tpudeploy emulator; no model is loaded."
TOKEN = "hf_" + "aB3dE5gH7jK9" * 2
SERVER = ServerExamination(
    address="gemma[0]",
    url="http://10.0.0.7:8000",
    seconds=30.0,
    figures={"running": 8.0},
    texts={"running": "8 requests"},
    findings=(
        ServerFinding(name="erroring", weight=Weight.PROBLEM, evidence="3 | 4 failed.", remedy="`tpudeploy logs`"),
    ),
)
CHANGE = RecentChange(at=0.0, what="serving.max_num_seqs: 64 -> 256", by="apply by ada@corp.example")


@pytest.fixture
def failing(cli: Open) -> CommandLine:
    at: CommandLine = cli(nodes="simulated", boot={"boot_seconds": 60, "growth": FAILING})
    assert at.run("apply", "-auto-approve", at.write()).code == 0
    return at


def test_the_runbook_has_the_findings_first_and_the_served_models_draft_marked_as_one(failing: CommandLine) -> None:
    result = failing.run("diagnose", "gemma.yaml", "-runbook", "runbook.md")
    assert result.code == 0, result.all
    text = (failing.folder / "runbook.md").read_text("utf-8")
    ours, _, draft = text.partition("## Draft by google/gemma-4-E2B-it: not checked")
    assert "| erroring | 30 of 90 requests ended in an error in these 30 s. |" in ours
    assert "## What changed last" in ours
    assert ANSWER in draft
    assert "A model wrote this at gemma" in draft
    assert "A model wrote it, and it has not been checked:" in result.words


def test_without_a_runbook_no_model_is_asked_about_a_running_server(failing: CommandLine) -> None:
    tree = json.loads(failing.run("diagnose", "gemma.yaml", "-json").out)
    assert tree["draft"] is None
    assert tree["no_draft"]["hint"] == "-runbook FILE writes one."
    assert tree["runbook"] == ""


def test_another_deployment_drafts_what_an_overloaded_one_cannot(failing: CommandLine) -> None:
    failing.write(PROFILE.replace("name: gemma", "name: helper"), "helper.yaml")
    assert failing.run("apply", "-auto-approve", "helper.yaml").code == 0
    tree = json.loads(failing.run("diagnose", "gemma.yaml", "-with", "helper.yaml", "-json").out)
    assert tree["draft"]["by"] == "helper"
    assert tree["draft"]["is_checked"] is False


def test_a_server_without_a_problem_gets_a_runbook_without_a_draft(cli: Open) -> None:
    at = cli(nodes="simulated", boot={"boot_seconds": 60})
    assert at.run("apply", "-auto-approve", at.write()).code == 0
    assert at.run("diagnose", "gemma.yaml", "-runbook", "runbook.md").code == 0
    text = (at.folder / "runbook.md").read_text("utf-8")
    assert "## No draft" in text
    assert "Nothing failed" in text


def test_what_is_sent_has_no_secret_no_address_and_no_name_of_the_operators_own() -> None:
    attributes: dict[str, Json] = {
        "serving.env.API_TOKEN": "plain-text",
        "serving.args.note": f"uses {TOKEN}",
        "serving.max_num_seqs": 256,
        "secrets.HF_TOKEN": "corp-hf-token",
        "placement.network.network": "corp-network",
    }
    text = question([SERVER], [CHANGE], attributes, {"corp-project": "PROJECT"}, characters=10_000)
    assert "3 | 4 failed." in text
    assert "serving.max_num_seqs = 256" in text
    assert "serving.max_num_seqs: 64 -> 256" in text
    for private in (TOKEN, "plain-text", "corp-", "ada@", "10.0.0.7"):
        assert private not in text
    assert len(question([SERVER] * 999, [CHANGE], attributes, {}, characters=3_000)) == 3_000


@pytest.mark.parametrize(
    ("draft", "written"),
    [
        ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
        ("![x](https://evil.example/a.png)", r"!\[x](https[:]//evil.example/a.png)"),
        ("[click](javascript:alert(1))", r"\[click](javascript[:]alert(1))"),
        ("\x1b[31mred\x1b[0m", "\ufffd\\[31mred\ufffd\\[0m"),
        ("# A heading of its own\n- a step", "# A heading of its own\n- a step"),
    ],
)
def test_what_comes_back_is_text(draft: str, written: str) -> None:
    assert harmless_text(draft) == written


@pytest.mark.parametrize("draft", ["a" * 50_000, "a\n" * 5_000])
def test_an_endless_draft_is_cut(draft: str) -> None:
    cut = harmless_text(draft)
    assert len(cut) < MOST_CHARACTERS + 100
    assert cut.endswith("(The rest of the draft was cut.)")


def test_a_draft_cannot_leave_its_quote_and_a_finding_not_its_cell() -> None:
    draft = Draft(log="gemma", by="helper", model="a/b", text="```\n\n## Findings\n\nAll is well.")
    text = runbook("gemma", [SERVER], [CHANGE], {}, draft, at=0.0)
    assert text.count("\n## Findings") == 1
    assert "> ## Findings" in text
    assert "| erroring | 3 \\| 4 failed. | `tpudeploy logs` |" in text
    assert "## No draft" in runbook("gemma", [SERVER], [], {}, NoDraft(because="It slept."), at=0.0)
