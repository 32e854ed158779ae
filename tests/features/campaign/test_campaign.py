"""A campaign at the command line: every cell is measured once, on as few slices as the grid needs, wherever it is killed."""

from __future__ import annotations

import json
from random import Random

import pytest
from command_line import PROFILE, CommandLine, Open
from features.campaign.outcome import assert_each_cell_is_measured_once, assert_ledger_is_the_bill, document
from other_process import holding

from tpudeploy import Workspace

GRID = """\
version: 1
name: small
base: gemma.yaml
models: [google/gemma-4-E2B-it, google/gemma-4-E4B-it, Qwen/Qwen3-4B]
slices: [v6e-1, v6e-4]
settings:
  serving.padding_gap: [0, 512]
cells: {concurrency: [1], context: [16], output: [2], window: 1s}
chips: 12
budget: 80
"""
TWO = GRID.replace(", Qwen/Qwen3-4B]", "]").replace(
    "slices: [v6e-1, v6e-4]\nsettings:\n  serving.padding_gap: [0, 512]\n", ""
)
# 12,000 cells of a minute each, under a budget of $20.
MANY_FOR_LITTLE = f"concurrency: {list(range(1, 1001))}, context: [16], output: [2]}}\nchips: 12\nbudget: 20\n"
BUCKET = ("--backend", "gs://states/team")
SAMPLE, ALL = 3, 20  # kills


@pytest.fixture
def at(cli: Open) -> CommandLine:
    at: CommandLine = cli(boot={"boot_seconds": 5})
    at.write()
    at.write(GRID, "grid.yaml")
    at.write(TWO, "two.yaml")
    return at


def test_six_deployments_with_two_flags_take_two_slices_which_are_deleted_at_the_end(at: CommandLine) -> None:
    run = at.run("campaign", "grid.yaml", "-auto-approve")
    assert run.code == 0, run.all
    assert "12 servers, 12 cells" in run.words
    assert "12 of 12 cells measured, 0 failed, 0 left." in run.words
    assert len(at.emulator.bill()) == 2, "every model and flag on a slice is a change in place"
    assert at.emulator.billed() == ()
    assert_each_cell_is_measured_once(at, 12)
    assert_ledger_is_the_bill(at)
    again = at.run("campaign", "grid.yaml", "-auto-approve")
    assert (again.code, "Nothing is left to measure." in again.words) == (0, True)
    assert len(at.emulator.bill()) == 2


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=[] if seed < SAMPLE else pytest.mark.long) for seed in range(ALL)]
)
def test_killed_at_any_instant_it_resumes_and_leaves_nothing(at: CommandLine, seed: int) -> None:
    draw = Random(seed)
    where = BUCKET if seed % 2 else ()
    for _ in range(2):
        at.left_or_killed(draw.uniform(5, 900), "campaign", "grid.yaml", "-auto-approve", *where)
        at.clock.sleep(draw.uniform(1, 120))
    run = at.run("campaign", "grid.yaml", "-auto-approve", *where)
    assert run.code == 0, run.all
    assert at.emulator.billed() == ()
    assert_each_cell_is_measured_once(at, 12, *where)
    assert_ledger_is_the_bill(at, *where)


def test_a_preempted_lane_hunts_again_and_continues(cli: Open) -> None:
    preemption = {"fault": "preempt", "name": "small-v6e-1-*", "after": 240, "times": 2}
    at = cli(boot={"boot_seconds": 5}, trouble=[preemption])
    at.write()
    at.write(GRID.replace("slices: [v6e-1, v6e-4]", "slices: [v6e-1]"), "grid.yaml")
    run = at.run("campaign", "grid.yaml", "-auto-approve")
    assert run.code == 0, run.all
    assert len(at.emulator.bill()) == 3, "two slices were lost"
    assert at.emulator.billed() == ()
    assert_each_cell_is_measured_once(at, 6)
    assert_ledger_is_the_bill(at, late=130.0)


def test_a_server_that_fails_is_recorded_and_stops_nothing(cli: Open) -> None:
    crash = {"fault": "boot", "type": "v6e-1", "crash": "program-allocation"}
    at = cli(boot={"boot_seconds": 5}, trouble=[crash])
    at.write()
    at.write(TWO.replace("chips: 12", "slices: [v6e-1, v6e-4]\nchips: 12"), "grid.yaml")
    run = at.run("campaign", "grid.yaml", "-auto-approve")
    assert run.code == 0, run.all
    assert "2 of 4 cells measured, 2 failed, 0 left." in run.words
    failures = {server["label"]: server["failure"] for server in document(at, "campaign", "show", "small")["servers"]}
    assert failures["E2B, v6e-4"] is None
    assert "RESOURCE_EXHAUSTED" in failures["E2B, v6e-1"]
    assert at.emulator.billed() == ()
    assert "2 failed before (-retry), 0 to measure" in at.run("campaign", "grid.yaml", "-auto-approve").words
    again = at.run("campaign", "grid.yaml")
    assert (again.code, "Nothing is left to measure" in again.words) == (0, True), "nothing is asked for nothing"


def test_the_budget_is_a_wall_and_the_next_run_continues_behind_a_higher_one(cli: Open) -> None:
    at = cli(
        boot={"boot_seconds": 5}, trouble=[{"fault": "preempt", "name": "small-v6e-4-*", "after": 240, "times": 1}]
    )
    at.write()
    at.write(GRID.replace("slices: [v6e-1, v6e-4]", "slices: [v6e-4]").replace("budget: 80", "budget: 9"), "grid.yaml")
    run = at.run("campaign", "grid.yaml", "-auto-approve")
    assert run.code == 13, run.all
    assert "Continue with: tpudeploy campaign grid.yaml" in run.words
    assert at.emulator.billed() == ()
    assert len(at.emulator.bill()) == 1
    at.write(GRID.replace("slices: [v6e-1, v6e-4]", "slices: [v6e-4]"), "grid.yaml")
    assert at.run("campaign", "grid.yaml", "-auto-approve").code == 0
    assert_each_cell_is_measured_once(at, 6)
    assert_ledger_is_the_bill(at, late=130.0)


def test_nothing_is_requested_without_a_yes(at: CommandLine) -> None:
    run = at.run("campaign", "grid.yaml")
    assert run.code == 1
    assert "pass -auto-approve" in run.words
    assert "about $" in run.words
    assert at.requested_zones() == []
    assert "There is no campaign `small`" in at.run("campaign", "show", "small").words


def test_events_are_json_lines_that_end_with_the_result(at: CommandLine) -> None:
    run = at.run("campaign", "two.yaml", "-auto-approve", "-json")
    assert run.code == 0, run.all
    lines = [json.loads(line) for line in run.out.splitlines()]
    assert lines[0]["format"] == "tpudeploy.events/1"
    assert lines[1]["format"] == "tpudeploy.campaign_proposal/1"
    progress = [line for line in lines if line.get("type") == "campaign_progress"]
    assert sum(line["state"] in {"measured", "doubted"} for line in progress if line["streams"]) == 2
    assert (progress[-1]["done"], progress[-1]["total"]) == (2, 2)
    assert lines[-1]["format"] == "tpudeploy.campaign/1"


def tables(text: str) -> list[list[list[str]]]:
    """The rows of each table of a Markdown text, without its head."""
    blocks = [block.splitlines() for block in text.split("\n\n") if block.startswith("|")]
    return [[row.strip("| ").split(" | ") for row in block[2:]] for block in blocks]


def test_the_article_has_no_empty_table_no_ids_and_all_that_repeats_it(at: CommandLine) -> None:
    grid = (
        GRID.replace("window: 1s", "window: 1s, repeats: 2").replace(", Qwen/Qwen3-4B]", "]").replace("[0, 512]", "[0]")
    )
    at.write(grid, "grid.yaml")
    assert at.run("campaign", "grid.yaml", "-auto-approve").code == 0
    at.write(
        "instance_type,model,model_server,output_tokens_per_second,ntpot_milliseconds,queries_per_second\n"
        "ct6e-standard-4t,google/gemma-4-E2B-it,vllm,5120,14,20\n",
        "giq.csv",
    )
    assert at.run("bench", "import", "giq.csv").code == 0
    assert at.run("campaign", "report", "small", "-o", "report.md").code == 0
    text = (at.folder / "report.md").read_text("utf-8")
    assert (
        "The best of E2B, v6e-4 beside figures of others: GKE Inference Quickstart, giq.csv; measured by Google" in text
    )
    figures, _, methods = text.partition("## Methods")
    assert all(rows and all(any(cell != "-" for cell in row[1:]) for row in rows) for rows in tables(text))
    assert "small-" not in figures
    assert "| streams | E2B, v6e-1 | E2B, v6e-4 | E4B, v6e-1 | E4B, v6e-4 |" in figures.replace(
        "E4B, v6e-1 | E2B, v6e-4", "E2B, v6e-4 | E4B, v6e-1"
    )
    assert "95 % intervals over repeats" in figures
    assert "| model | v6e-1 | v6e-4 |" in figures
    assert "published" in figures
    assert "On the emulator" in figures
    assert all(
        words in methods
        for words in ("image vllm/vllm-tpu:v0.32.0@sha256:", "repeats: 2", "model:", "google/gemma-4-E2B-it@")
    )
    assert at.run("campaign", "report", "small", "-o", "report.html").code == 0
    page = (at.folder / "report.html").read_text("utf-8")
    assert 'data-chart="0"' in page, "the same charts as of runs"
    assert "script-src &#39;sha256-" in page
    assert page.startswith("<!DOCTYPE html>")
    assert page.count("<table") == len(tables(text))


@pytest.mark.parametrize(
    ("change", "line", "words"),
    [
        (("chips: 12", "chps: 12"), "chps: 12", 'did you mean "chips"'),
        (("serving.padding_gap", "serving.paddin_gap"), "serving.paddin_gap: [0, 512]", 'Unknown key "paddin_gap"'),
        (("v6e-4]", "v6e-3]"), "slices: [v6e-1, v6e-3]", 'There is no accelerator type "v6e-3"'),
        (("slices: [v6e-1, v6e-4]", "slices: []"), "slices: []", "The grid is empty"),
        (
            ("concurrency: [1], context: [16], output: [2], window: 1s}\nchips: 12\nbudget: 80\n", MANY_FOR_LITTLE),
            "budget: 20",
            "and the budget is $20.00",
        ),
        (("budget: 80", "budget: 80\nend: 5m"), "end: 5m", "and the campaign ends after 5m"),
        (("base: gemma.yaml", "base: other.yaml"), "", "other.yaml"),
        (("chips: 12", "accuracy: no-such.jsonl"), "accuracy: no-such.jsonl", "no-such.jsonl"),
        (
            ("context: [16]", "context: [999999]"),
            "models: [google",
            "No cell of the grid can run: gemma-4-E2B-it, v6e-1, padding_gap 0: no load fits",
        ),
        (
            ("[0, 512]", "[0, 512]\n  placement.zones: [[asia-east1-c]]"),
            "budget: 80",
            "some places of v6e-1 have no known price, so no budget holds it; name others in placement.zones",
        ),
        (
            ("[0, 512]", f"[0, 512]\n  serving.max_num_seqs: {list(range(1, 1000))}"),
            "  serving.max_num_seqs: [1, 2, 3",
            "and a campaign has at most 1,000",
        ),
        (
            ("[0, 512]", f"[0, 512]\n  serving.max_num_seqs: {list(range(1, 19000))}"),
            "  serving.max_num_seqs: [1, 2, 3",
            "The grid has 227,988 servers",
        ),
    ],
    ids=[
        "a misspelt key",
        "a misspelt setting",
        "no such slice",
        "an empty list",
        "the budget",
        "the end",
        "no base",
        "no questions",
        "no cell can run",
        "no known price",
        "more servers than can be sized",
        "more combinations than can be made",
    ],
)
def test_a_grid_that_cannot_be_is_an_error_with_its_line(
    at: CommandLine, change: tuple[str, str], line: str, words: str
) -> None:
    at.write(GRID.replace(*change), "grid.yaml")
    run = at.run("campaign", "grid.yaml", "-auto-approve")
    assert run.code == 1
    assert words in run.words
    assert line[:60] in run.err
    assert at.requested_zones() == []


def test_a_grid_of_an_untrusted_project_is_not_read(at: CommandLine) -> None:
    (at.folder / "tpudeploy.toml").write_text("untrusted = true\n", encoding="utf-8")
    run = at.run("campaign", "grid.yaml", "-auto-approve")
    assert run.code == 1
    assert "this project is untrusted" in run.words
    assert at.requested_zones() == []


def test_what_cannot_run_is_listed_before_with_its_reason_and_its_line(at: CommandLine) -> None:
    at.write(GRID.replace("Qwen/Qwen3-4B", "google/gemma-4-26B-A4B-it").replace("chips: 12", "chips: 1"), "grid.yaml")
    run = at.run("campaign", "grid.yaml")
    assert "v6e-4 has 4 chips, and `chips` is 1 (grid.yaml:9)" in run.words
    assert "26B-A4B, v6e-1, padding_gap 0; 26B-A4B, v6e-1, padding_gap 512: " in run.words
    assert "for them and the KV cache. (grid.yaml:5)" in run.words


def test_two_runs_of_one_campaign_measure_nothing_twice(at: CommandLine) -> None:
    """The second one says who runs it; or it waits, and finds everything measured."""
    with holding(at.folder / ".tpudeploy", "_campaign-small", who="ada"):
        second = at.run("campaign", "two.yaml", "-auto-approve")
        assert second.code == 10
        assert "The campaign small is already run by ada (process" in second.words
        assert "-lock-timeout" in second.words
        assert not at.slices
    assert at.run("campaign", "two.yaml", "-auto-approve").code == 0
    assert_each_cell_is_measured_once(at, 2)


def test_a_run_that_waited_for_another_leaves_out_what_that_one_measured(at: CommandLine) -> None:
    with Workspace.open(at.folder, clock=at.clock) as workspace:
        proposal = workspace.campaign_propose("two.yaml", folder=at.folder)
        assert proposal.plan.cells_left == 2
        assert at.run("campaign", "two.yaml", "-auto-approve").code == 0
        bill = len(at.emulator.bill())
        assert workspace.campaign(proposal, folder=at.folder).cells_left == 0
    assert_each_cell_is_measured_once(at, 2)
    assert len(at.emulator.bill()) == bill, "no slice was requested for it"


TWO_SLICES = TWO.replace("chips: 12\n", "slices: [v6e-1, v6e-4]\n")


def most_chips_at_once(at: CommandLine) -> int:
    bill = at.emulator.bill()
    sizes = [(row.began, row.ended or row.began, 4 if "v6e-4" in row.name else 1) for row in bill]
    return max(sum(size for began, ended, size in sizes if began <= moment < ended) for moment, _, _ in sizes)


@pytest.mark.parametrize(("limit", "most"), [(4, 4), (8, 5)], ids=["room for one slice", "room for both"])
def test_without_chips_lanes_fill_the_quota_of_their_generation(cli: Open, limit: int, most: int) -> None:
    quota = [{"class": "preemptible", "limit": limit, "region": "us-east5"}]
    at = cli(boot={"boot_seconds": 5}, quota=quota)
    at.write(PROFILE.replace(", europe-west4-a]", "]"))
    at.write(TWO_SLICES, "grid.yaml")
    run = at.run("campaign", "grid.yaml", "-auto-approve")
    assert run.code == 0, run.all
    assert f"at the same time: {limit} v6e chips (Google's quota)" in run.words
    assert most_chips_at_once(at) == most
    assert_each_cell_is_measured_once(at, 4)


def test_a_slice_above_the_quota_of_every_place_cannot_run_unless_the_grid_sets_a_limit_of_its_own(cli: Open) -> None:
    at = cli(quota=[{"class": "preemptible", "limit": 2, "zone": "*"}])
    at.write()
    at.write(TWO_SLICES, "grid.yaml")
    run = at.run("campaign", "grid.yaml")
    assert "v6e-4 has 4 chips, and Google's quota is 2 (`chips` sets a limit of your own) (grid.yaml:6)" in run.words
    assert "2 servers, 2 cells" in run.words
    at.write(TWO_SLICES + "chips: 12\n", "grid.yaml")
    assert "4 servers, 4 cells" in at.run("campaign", "grid.yaml").words


def test_a_quota_that_cannot_be_read_limits_nothing_and_is_said(cli: Open) -> None:
    at = cli(project={"apis_off": ["serviceusage.googleapis.com"]})
    at.write()
    at.write(TWO_SLICES, "grid.yaml")
    run = at.run("campaign", "grid.yaml")
    assert "Google's quota is unknown, so it limits no lane: " in run.words
    assert "(Google's quota)" not in run.words
    assert "chips: N sets a limit of your own" in run.words


def test_an_edit_of_the_base_profile_while_it_runs_changes_no_cell_and_is_said(at: CommandLine) -> None:
    text = (at.folder / "gemma.yaml").read_text("utf-8")

    def edit() -> None:
        if at.requested_zones():
            at.write(text.replace("max_model_len: 16384", "max_model_len: 8192"))

    at.clock.on_advance.append(edit)
    run = at.run("campaign", "two.yaml", "-auto-approve")
    at.clock.on_advance.remove(edit)
    assert run.code == 0, run.all
    assert run.words.count("gemma.yaml was edited. This campaign continues with the profile as it was") == 1
    logs = " ".join(at.run("bench", "show", each["id"], "-json").out for each in document(at, "bench", "list")["runs"])
    assert ("16384" in logs, "8192" in logs) == (True, False)
    again = at.run("campaign", "two.yaml", "-auto-approve")
    assert again.code == 1
    assert "gemma.yaml was edited since small began, and 2 cells of it were measured before." in again.words
    assert "give the grid another name" in again.words
    at.write(text)
    assert "Nothing is left to measure." in at.run("campaign", "two.yaml").words


def test_an_edit_before_anything_is_measured_and_one_that_changes_no_server_are_taken(at: CommandLine) -> None:
    at.left_or_killed(30.0, "campaign", "two.yaml", "-auto-approve")
    text = (at.folder / "gemma.yaml").read_text("utf-8").replace("max_model_len: 16384", "max_model_len: 8192")
    at.write(text)
    run = at.run("campaign", "two.yaml", "-auto-approve")
    assert run.code == 0, run.all
    at.write(f"{text}# a comment\n")
    assert "Nothing is left to measure." in at.run("campaign", "two.yaml").words
