"""Every command with --json: one document on stdout, which the schema that the product ships describes to the last key.

apply, destroy, --watch and --follow print streams, whose lines have one schema. What stops a command is a document too.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command_line import PROFILE, Open, Result
from strict_schema import lines, strict
from workflow import Both

from tpudeploy.cli.commands import COMMANDS

TPUDEPLOY = str(Path(sys.executable).with_name("tpudeploy"))
VLLM_RESULT = (Path(__file__).parent / "data" / "vllm_result.json").read_text(encoding="utf-8")
# What each command line answers while gemma.yaml serves: the kind of its document, and its exit code.
SERVING: tuple[tuple[str, int, tuple[str, ...]], ...] = (
    ("files", 0, ("init", "mine.yaml")),
    ("profiles", 0, ("init", "-from", "list")),
    ("diagnostics", 0, ("validate", "gemma.yaml")),
    ("diagnostics", 1, ("validate", "gemma.yaml", "missing.yaml", "broken.yaml")),
    ("size", 0, ("size", "gemma.yaml", "-sweep")),
    ("size", 0, ("size", "gemma.yaml", "-set", "model.id=some/body")),
    *(("render", 0, ("render", "gemma.yaml", what)) for what in ("startup-script", "argv", "request", "profile")),
    ("doctor", 0, ("doctor", "gemma.yaml")),
    ("diagnosis", 0, ("diagnose", "gemma.yaml")),
    ("zones", 0, ("zones", "gemma.yaml")),
    ("plan", 0, ("plan", "gemma.yaml")),
    ("plan", 2, ("plan", "gemma.yaml", "-set", "serving.max_model_len=8192", "-detailed-exitcode", "-pin")),
    ("plan", 13, ("plan", "-destroy", "gemma.yaml", "-set", "lifecycle.prevent_destroy=true")),
    ("plan", 0, ("plan", "gemma.yaml", "-out", "gemma.tfplan")),
    ("plan", 0, ("show", "gemma.tfplan")),
    ("plan", 0, ("drift", "gemma.yaml")),
    ("show", 0, ("show",)),
    ("ci", 0, ("ci", "plan", "gemma.yaml")),
    ("ci", 0, ("ci", "drift", "gemma.yaml")),
    ("ci", 0, ("ci", "apply", "gemma.yaml", "-resume")),
    ("ci", 0, ("ci", "apply", "gemma.yaml")),
    ("gc", 0, ("gc",)),
    ("rehearsal", 0, ("rehearse", "-dry-run", "-max-cost", "5")),
    ("rehearsal", 0, ("rehearse", "-auto-approve")),
    ("status", 0, ("status",)),
    ("status", 0, ("status", "gemma.yaml", "-details", "-timeline")),
    ("files", 0, ("status", "-html", "page.html")),
    ("output", 0, ("output", "gemma")),
    ("output", 0, ("output", "gemma.yaml", "endpoint")),
    ("outputs", 0, ("output",)),
    ("logs", 0, ("logs", "gemma.yaml")),
    ("logs", 0, ("logs", "-explain", "-ask", "-file", "boot.log", "-with", "gemma.yaml")),
    ("verify", 0, ("verify", "gemma.yaml")),
    ("accuracy", 0, ("verify", "gemma.yaml", "-accuracy", "arithmetic", "-questions", "4")),
    ("metrics", 0, ("metrics", "gemma.yaml")),
    ("query", 0, ("query", "gemma.yaml", "Hello")),
    ("run", 0, ("bench", "import", "result.json", "-type", "v6e-1")),
    ("report-host", 0, ("report-host", "gemma[0]", "-description", "Its sums differ.", "-dry-run")),
    ("runs", 0, ("bench", "list")),
    ("files", 0, ("bench", "report", "agent-e2b-v6e-1", "-out", "report.html")),
    ("runs", 0, ("compare", "-published")),
    ("comparison", 0, ("compare", "agent-e2b-v6e-1", "agent-e2b-v6e-4")),
    ("operating", 0, ("recommend", "-run", "agent-e2b-v6e-1")),
    ("recommendation", 0, ("recommend", "gemma.yaml", "-users", "4", "-context", "1024", "-output", "128")),
    (
        "model-recommendations",
        0,
        ("recommend", "gemma.yaml", "-model", "a/b", "-users", "4", "-context", "1024", "-output", "128"),
    ),
    ("tune", 0, ("tune", "gemma.yaml", "-dry-run", "-max-cost", "20")),
    ("alerts", 0, ("alerts", "gemma.yaml")),
    ("cost", 0, ("cost", "-group-by", "day")),
    ("alerts", 0, ("alerts", "gemma.yaml", "-format", "dashboard", "-out", "dashboard.json")),
    ("state-list", 0, ("state", "list")),
    ("state-show", 0, ("state", "show", "gemma")),
    ("state-history", 0, ("state", "history")),
    ("state", 0, ("state", "pull")),
    ("state-change", 0, ("state", "push", "state.json")),
    ("state-change", 0, ("state", "rm", "gemma", "-dry-run")),
    ("state-change", 0, ("state", "mv", "gemma", "chat")),
    ("state-change", 0, ("state", "mv", "chat", "gemma")),
    ("explanation", 0, ("explain", "TPU1201")),
    ("explanations", 0, ("explain",)),
    ("completion", 0, ("completion", "bash")),
    ("version", 0, ("version",)),
    ("version", 0, ("-version",)),
)
# What each of them answers where it cannot do what is asked, and its exit code.
STOPPED: tuple[tuple[int, tuple[str, ...]], ...] = (
    (1, ("init", "-from", "nothing-like-it")),
    (1, ("validate", "gemma.yaml", "-format", "sarif")),
    *((1, (command, "broken.yaml")) for command in ("size", "doctor", "zones", "plan", "drift", "gc", "status")),
    (1, ("render", "broken.yaml", "docker")),
    (1, ("show", "broken.yaml")),
    (1, ("ci", "plan", "broken.yaml")),
    (11, ("ci", "apply", "gemma.yaml")),
    (1, ("compile", "gemma.yaml", "-python", "/nowhere/python")),
    (1, ("learn", "-python", "/nowhere/python")),
    (1, ("output", "gemma")),
    (1, ("output", "gemma", "endpont")),
    (1, ("logs", "gemma.yaml")),
    (1, ("verify", "gemma.yaml")),
    (1, ("metrics", "gemma.yaml")),
    (1, ("query", "gemma.yaml", "Hello")),
    (1, ("bench", "show", "nothing")),
    (1, ("bench", "report", "nothing")),
    (1, ("compare", "nothing")),
    (1, ("recommend", "gemma.yaml")),
    (1, ("alerts", "broken.yaml")),
    (1, ("import", "gemma", "no-such-slice")),
    (1, ("state", "show", "gemma")),
    (1, ("state", "remove", "gemma")),
    (1, ("force-unlock", "nobodys", "-force")),
    (1, ("emulator", "run")),
    (1, ("router", "no_name")),
    (1, ("dashboard", "-port", "none")),
    (1, ("schema", "plans")),
    (1, ("explain", "TPU9999")),
    (1, ("tune", "broken.yaml")),
    (1, ("support-bundle", "broken.yaml")),
    (1, ("chat", "gemma.yaml")),
    (1, ("completion", "tcsh")),
    (1, ("mcp", "-no-such-option")),
    (1, ("version", "too-many")),
    (1, ("no-such-command",)),
)


def document(result: Result) -> Any:
    """The one document on stdout."""
    return json.loads(result.out)


def test_every_command_answers_with_a_document_of_its_schema(cli: Open) -> None:
    at = cli(nodes="real")
    at.write()
    at.write("version: 1\n", "broken.yaml")
    at.write(VLLM_RESULT, "result.json")
    at.write("INFO 08-01 12:00:00 Starting\nValueError: no\n", "boot.log")
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    at.write(at.run("state", "pull").out, "state.json")
    for kind, code, words in SERVING:
        result = at.run(*words, "-json")
        assert result.code == code, f"{words}\n{result.all}"
        tree = document(result)
        assert tree["format"] == f"tpudeploy.{kind}/{2 if kind == 'state' else 1}", words
        strict(at, kind).validate(tree)
    printed = json.loads(at.run("schema", "profile", "-json").out)
    assert printed["$schema"]


def test_what_stops_a_command_is_a_document_with_its_exit_code(cli: Open) -> None:
    at = cli()
    at.write()
    at.write("version: 1\n", "broken.yaml")
    error = strict(at, "error")
    for code, words in STOPPED:
        result = at.run(*words, "-json")
        tree = document(result)
        error.validate(tree)
        assert (result.code, tree["exit_code"]) == (code, code), words
        assert tree["message"] in result.err or tree["diagnostics"], words
    assert document(at.run("plan", "broken.yaml", "-json"))["diagnostics"][0]["location"]["file"].endswith(
        "broken.yaml"
    )


def test_no_command_is_without_a_document() -> None:
    commands = (
        {words[0] for _, _, words in SERVING}
        | {words[0] for _, words in STOPPED}
        | {"apply", "destroy", "up", "campaign", "schema"}  # streams, and what prints schemas
    )
    assert commands >= set(COMMANDS)


def test_the_variable_asks_for_documents_as_the_flag_does(cli: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    at = cli()
    monkeypatch.setenv("TPUDEPLOY_JSON", "1")
    assert document(at.run("version"))["format"] == "tpudeploy.version/1"
    assert document(at.run("version", "-no-such-option"))["code"] == "TPU0002"


def test_a_bug_of_ours_is_a_document_too(cli: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    at = cli()
    monkeypatch.setattr("tpudeploy.workspace.Workspace.open", lambda *_, **__: 1 / 0)
    result = at.run("status", "-json")
    tree = document(result)
    strict(at, "error").validate(tree)
    assert (result.code, tree["exit_code"], tree["code"]) == (70, 70, "TPU0070")
    assert "ZeroDivisionError" in tree["message"]
    assert "tpudeploy-bug-" in tree["hint"]


def test_what_gc_would_remove_and_why_it_did_not_are_one_document(cli: Open) -> None:
    at = cli()
    assert at.run("apply", "-auto-approve", at.write(), "-wait", "accepted").code == 0
    (at.folder / ".tpudeploy" / "state" / "gemma.json").unlink()
    refused = at.run("gc", "-json", "-foreign")
    tree = document(refused)
    strict(at, "gc").validate(tree)
    assert (refused.code, tree["report"], tree["error"]["code"]) == (1, None, "TPU3003")
    assert [stray["goes"] for stray in tree["strays"]] == [True]
    removed = document(at.run("gc", "-json", "-foreign", "-auto-approve"))
    strict(at, "gc").validate(removed)
    assert removed["report"]["outcomes"]
    assert removed["error"] is None


def test_an_import_answers_with_the_slice_as_the_state_has_it(cli: Open) -> None:
    at = cli()
    assert at.run("apply", "-auto-approve", at.write(), "-wait", "accepted").code == 0
    (name,) = at.slices
    assert at.run("state", "rm", "gemma", "-auto-approve", "-force", "-json").code == 0
    imported = document(at.run("import", "gemma[0]", name, "-foreign", "-json"))
    strict(at, "import").validate(imported)


@pytest.mark.parametrize("words", [("status", "-watch"), ("logs", "gemma.yaml", "-follow")], ids=" ".join)
def test_what_watches_prints_a_stream_of_json_lines(cli: Open, words: tuple[str, ...]) -> None:
    at = cli(nodes="real")
    assert at.run("apply", "-auto-approve", at.write()).code == 0
    result = at.run(*words, "-json")
    assert result.code == 0, result.all
    event = strict(at, "events")
    first, *rest = lines(result)
    assert first["type"] == "version"
    assert {line["type"] for line in rest} == {"status" if words[0] == "status" else "log_line"}
    for line in (first, *rest):
        event.validate(line)


def test_the_emulator_prints_a_document_and_leaves_stdout_to_the_command_that_it_runs(tmp_path: Path) -> None:
    (tmp_path / "gemma.yaml").write_text(PROFILE, encoding="utf-8")
    run = [TPUDEPLOY, "emulator", "run", "--json", "--", TPUDEPLOY, "plan", "--json", "gemma.yaml"]
    process = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert json.loads(process.stdout)["format"] == "tpudeploy.plan/1"
    assert json.loads(process.stdout)["fingerprint"]


def test_nothing_is_asked_in_the_middle_of_a_document(cli: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    at = cli()
    at.write()
    for stream in ("stdin", "stdout"):
        monkeypatch.setattr(f"sys.{stream}.isatty", lambda: True)
    result = at.run("apply", "-json", "gemma.yaml")
    assert result.code == 1
    assert lines(result)[-1]["code"] == "TPU3003"


def test_the_fingerprint_of_a_plan_is_the_one_that_an_approval_holds(pipeline: Both) -> None:
    at, here = pipeline
    here.on_pull_request()
    result = document(at.run("ci", "plan", "gemma.yaml", "-json"))
    strict(at, "ci").validate(result)
    plan = document(at.run("plan", "gemma.yaml", "-json"))
    assert plan["fingerprint"] == result["plan"]["fingerprint"]
    assert plan["fingerprint"] in here.comment()


def test_what_a_pipeline_applied_is_a_document_with_its_report(pipeline: Both) -> None:
    at, here = pipeline
    here.on_pull_request()
    assert at.run("ci", "plan", "gemma.yaml").code == 0
    here.on_push()
    result = at.run("ci", "apply", "gemma.yaml", "-json")
    tree = document(result)
    strict(at, "ci").validate(tree)
    assert result.code == 0
    assert [outcome["error"] for outcome in tree["report"]["outcomes"]] == [None]


def test_output_takes_a_profile_or_a_name_and_prints_all_or_one(cli: Open) -> None:
    at = cli()
    assert "No deployment of this project has an endpoint." in at.run("output").err
    assert at.run("apply", "-auto-approve", at.write()).code == 0
    assert at.run("apply", "-auto-approve", at.write(PROFILE.replace("name: gemma", "name: other"), "o.yaml")).code == 0
    whole = at.run("output", "gemma").out
    assert [line.split()[0] for line in whole.splitlines()] == ["endpoint", "generation", "since", "replicas"]
    assert at.run("output", "gemma.yaml").out == whole
    url = at.run("output", "gemma.yaml", "endpoint").out
    assert url.startswith("http://")
    assert url == at.run("output", "gemma", "url").out
    assert url.strip() in whole
    everything = at.run("output").out
    assert everything.count("endpoint ") == 2
    assert f"# gemma\n{whole}" in everything
    assert "# other\n" in everything
    assert document(at.run("output", "gemma", "generation", "-json")) == {
        "format": "tpudeploy.output/1",
        "name": "gemma",
        "generation": 1,
    }
    assert "Did you mean `endpoint`?" in at.run("output", "gemma", "endpont").err
    assert "Did you mean `gemma`?" in at.run("output", "gema").err
