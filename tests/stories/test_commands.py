"""The commands beside plan, apply and destroy, as a person uses them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import PROFILE, Open
from goldens import assert_golden, hold

from tpudeploy import Profile, Report, Workspace
from tpudeploy.adapters import assets
from tpudeploy.cli.commands import COMMANDS
from tpudeploy.cli.main import main
from tpudeploy.domain.serialization import to_json
from tpudeploy.operations.explanations import explanations

SHIPPED = Path(__file__).parents[2] / "profiles"


def test_init_lists_writes_and_never_overwrites(cli: Open) -> None:
    at = cli()
    listed = at.run("init", "-from", "list")
    assert listed.out.split() == sorted(assets.profiles())
    assert at.run("init").code == 0
    profile = at.folder / "gemma4-e2b-v6e1.yaml"
    profile.write_text("mine", encoding="utf-8")
    again = at.run("init")
    assert again.code == 1
    assert "is not overwritten" in again.err
    assert profile.read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize("name", sorted(assets.profiles()))
def test_every_shipped_profile_is_valid_once_written_here(cli: Open, name: str) -> None:
    at = cli()
    assert at.run("init", "-from", name, "mine.yaml").code == 0
    validated = at.run("validate", "mine.yaml")
    assert validated.code == 0, validated.all
    assert "mine.yaml: valid" in validated.out
    first, _, _ = (at.folder / "mine.yaml").read_text(encoding="utf-8").partition("\n")
    assert (at.folder / first.rpartition("$schema=")[2]).is_file()


def test_the_schema_that_editors_use_is_the_one_that_is_printed(cli: Open) -> None:
    hold(SHIPPED / "profile.schema.json", cli().run("schema").out)


@pytest.mark.parametrize("what", ["startup-script", "docker", "serve", "argv", "profile"])
def test_render_shows_what_would_be_sent_and_run(cli: Open, what: str) -> None:
    at = cli()
    profile = at.write()
    rendered = at.run("render", profile, what)
    assert rendered.code == 0, rendered.all
    assert_golden(f"render/{what}", rendered.out, folder=at.folder)


def test_render_request_is_the_body_with_the_script_in_it(cli: Open) -> None:
    at = cli()
    profile = at.write()
    body = json.loads(at.run("render", profile, "request").out)
    metadata = body["tpu"]["nodeSpec"][0]["node"]["metadata"]
    assert metadata.pop("startup-script").strip() == at.run("render", profile, "startup-script").out.strip()
    assert_golden("render/request", json.dumps(body, indent=2) + "\n")


def test_what_is_rendered_is_utf_8_whatever_the_terminal_is_set_to(tmp_path: Path) -> None:
    (tmp_path / "gemma.yaml").write_text(PROFILE.replace("  max_model_len", "  env: {A: 模}\n  max_model_len"), "utf-8")
    command = [sys.executable, "-m", "tpudeploy", "render", "gemma.yaml", "docker"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    process = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=True)
    assert "-e A=模" in process.stdout.decode("utf-8").replace("'", "")


def test_a_rendered_profile_is_a_profile_for_the_same_deployment(cli: Open) -> None:
    at = cli()
    profile = at.write()
    at.write(at.run("render", profile, "profile").out, "resolved.yaml")
    for what in ("argv", "request", "startup-script"):
        assert at.run("render", "resolved.yaml", what).out == at.run("render", profile, what).out
    assert at.run("apply", "-auto-approve", profile).code == 0
    assert at.run("plan", "resolved.yaml", "-detailed-exitcode").code == 0


BAD = PROFILE.replace("16384", "many").replace("v6e-1", "v6e-7")


@pytest.mark.parametrize("format_", ["text", "json", "github", "sarif", "junit"])
def test_validate_tells_other_programs_what_it_found(cli: Open, format_: str) -> None:
    at = cli()
    result = at.run("validate", at.write(BAD), at.write(PROFILE, "open.yaml"), "missing.yaml", "-format", format_)
    assert result.code == 1
    assert_golden(f"validate/{format_}", result.out + result.err, folder=at.folder)


def test_explain_knows_every_code_there_is(cli: Open) -> None:
    at = cli()
    for code, text in explanations().items():
        result = at.run("explain", code)
        assert result.code == 0
        assert result.out == f"{code}  {text}\n"
        assert len(text) > 20


def test_a_code_may_be_written_in_small_letters(cli: Open) -> None:
    assert cli().run("explain", "tpu1201").code == 0


def test_output_and_query_speak_to_the_endpoint(cli: Open) -> None:
    at = cli()
    profile = at.write()
    assert at.run("apply", "-auto-approve", profile).code == 0
    published = json.loads(at.run("output", "gemma", "-json").out)
    assert published["url"].startswith("http://")
    assert at.run("output", "gemma").out.startswith(
        f'endpoint   = "{published["url"]}"\ngeneration = 1\nsince      = "'
    )

    answered = at.run("query", profile, "Say hello.")
    assert answered.code == 0, answered.all
    assert answered.out == "This is the tpudeploy emulator; no model is loaded.\n"
    assert "1 prompt + 9 completion tokens" in answered.err
    tree = json.loads(at.run("query", profile, "Say hello.", "-json").out)
    assert tree["answer"] == answered.out.strip()
    assert tree["completion_tokens"] == 9
    assert tree["format"] == "tpudeploy.query/1"


def test_status_as_json_says_what_the_text_says(cli: Open) -> None:
    at = cli()
    profile = at.write()
    before = json.loads(at.run("status", profile, "-json").out)
    assert before["deployments"][0]["replicas"][0]["state"] == "nothing"
    assert at.run("apply", "-auto-approve", profile).code == 0
    tree = json.loads(at.run("status", profile, "-json").out)
    assert tree["format"] == "tpudeploy.status/1"
    (replica,) = tree["deployments"][0]["replicas"]
    assert (replica["state"], replica["cloud"], replica["boot"]) == ("serving", "ACTIVE", "serving")
    assert replica["serving"] is True


def test_status_tells_each_phase_as_it_comes(cli: Open) -> None:
    at = cli(boot={"boot_seconds": 600}, trouble=[{"fault": "hidden", "seconds": 70}])
    profile = at.write()
    assert at.run("apply", "-auto-approve", "-timeout", "1s", profile).code == 12
    options: dict[tuple[str, str, str], None] = {}
    for _ in range(60):
        tree = json.loads(at.run("status", profile, "-json").out)
        (replica,) = tree["deployments"][0]["replicas"]
        options[replica["state"], replica["cloud"], replica["boot"]] = None
        at.clock.sleep(15)
    assert list(options) == [
        ("waiting", "create RUNNING", ""),
        ("hidden", "create DONE", ""),
        ("waiting", "PROVISIONING", ""),
        ("waiting", "ACTIVE, node CREATING", ""),
        *(("up", "ACTIVE", phase) for phase in ("booted", "docker", "image", "secrets", "starting")),
        ("serving", "ACTIVE", "serving"),
    ]


def test_status_without_profiles_tells_of_everything_that_has_a_state_here(cli: Open) -> None:
    at = cli()
    assert at.run("status").out == "Nothing is deployed from this folder.\n"
    other = at.write(PROFILE.replace("name: gemma", "name: other"), "other.yaml")
    assert at.run("apply", "-auto-approve", at.write(), other).code == 0
    result = at.run("status").words
    assert "gemma[0] up" in result
    assert "other[0] up" in result
    assert at.run("destroy", "-auto-approve", other).code == 0
    assert at.run("status").out.startswith("gemma[0]  up"), "nothing stands for what was destroyed"
    assert at.run("destroy", "-auto-approve", "gemma.yaml").code == 0
    assert at.run("status").out == "Nothing is deployed from this folder.\n"


def test_status_without_profiles_names_the_model_and_the_address_that_google_reports(cli: Open) -> None:
    at = cli()
    assert at.run("apply", "-auto-approve", at.write()).code == 0
    url = json.loads((at.folder / "endpoints" / "gemma.json").read_text("utf-8"))["url"]
    (at.folder / "endpoints" / "gemma.json").unlink()
    result = at.run("status")
    rows = dict(line.strip().split(maxsplit=1) for line in result.out.splitlines() if line.startswith("  "))
    assert (rows["model"], rows["endpoint"]) == ("google/gemma-4-E2B-it", url)


def test_status_says_the_phase_of_a_start_once(cli: Open) -> None:
    at = cli(nodes="simulated", timings={"boot": 400.0})
    profile = at.write()
    assert at.run("apply", "-auto-approve", profile).code == 0
    changed = at.write(PROFILE.replace("16384", "8192"))
    assert at.run("apply", "-auto-approve", "-timeout", "20s", changed).code == 1  # it still starts
    lines = at.run("status", changed).out.splitlines()
    (boot,) = (line.split(maxsplit=1)[1] for line in lines if line.startswith("  boot"))
    assert boot.startswith("booted, at least ")


@pytest.mark.parametrize("command", [("apply",), ("destroy",)])
def test_events_as_json_are_one_object_a_line(cli: Open, command: tuple[str, ...]) -> None:
    at = cli(trouble=[{"fault": "stockout", "zone": "us-east5-a"}])
    profile = at.write()
    if command == ("destroy",):
        assert at.run("apply", "-auto-approve", profile).code == 0
    result = at.run(*command, "-auto-approve", "-json", profile)
    assert result.code == 0, result.all
    _, plan, *events, report = (json.loads(line) for line in result.out.splitlines())
    assert (plan["format"], report["format"]) == ("tpudeploy.plan/1", "tpudeploy.report/1")
    assert {event["v"] for event in events} == {1}
    kinds = [event["type"] for event in events]
    assert kinds.index("change_started") == kinds.count("pinned")
    assert kinds[-1] == "change_done"
    assert all(event["line"] for event in events)
    if command == ("apply",):
        (refused,) = (event for event in events if event["type"] == "not_granted")
        assert refused["kind"] == "stockout"


def test_a_failure_as_json_names_its_code_and_what_to_do(cli: Open) -> None:
    at = cli(trouble=[{"fault": "api-off"}])
    result = at.run("apply", "-auto-approve", "-json", at.write())
    assert result.code == 1
    *_, last, report = (json.loads(line) for line in result.out.splitlines())
    assert (last["type"], last["code"]) == ("change_failed", "TPU5003")
    assert "gcloud services enable" in last["hint"]
    assert report["outcomes"][0]["error"]["code"] == "TPU5003"


def test_results_of_the_library_are_what_the_command_line_prints(cli: Open) -> None:
    at = cli()
    profile = at.folder / at.write()
    with Workspace.open(at.folder, clock=at.clock, patience=at.patience) as workspace:
        plan = workspace.plan([Profile.load(profile)])
        assert json.loads(at.run("plan", "gemma.yaml", "-json").out) == plan.to_dict()
        report = workspace.apply(plan)
        endpoints = [to_json(endpoint) for endpoint in report.endpoints]
        assert endpoints != []
        stands = [status.to_dict() for status in workspace.status([Profile.load(profile)])]
    again = json.loads(at.run("apply", "gemma.yaml", "-auto-approve", "-json").out.splitlines()[-1])
    # A run that changes nothing probes nothing.
    unprobed = [{**endpoint, "reached_from": ""} for endpoint in endpoints]
    assert again == {**Report(outcomes=(), unchanged=("gemma",)).to_dict(), "endpoints": unprobed}
    assert json.loads(at.run("status", "gemma.yaml", "-json").out)["deployments"] == stands


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("-speed=0", "is not a speed"),
        ("-speed=nan", "is not a speed"),
        ("-port=70000", "is not a port"),
        ("-port=x", "is not a port"),
    ],
)
def test_an_emulator_that_cannot_be_is_a_usage_error(cli: Open, option: str, message: str) -> None:
    result = cli().run("emulator", "start", option)
    assert result.code == 1
    assert message in result.err


def test_what_a_flag_says_a_variable_can_say(cli: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    at = cli()
    at.write(), at.write("serving: {port: 9000}\n", "overlay.yaml")
    monkeypatch.chdir("/")
    monkeypatch.setenv("TPUDEPLOY_CHDIR", str(at.folder))
    monkeypatch.setenv("TPUDEPLOY_FILE", "overlay.yaml")
    monkeypatch.setenv("TPUDEPLOY_SET", "serving.max_num_seqs=8\nserving.max_model_len=4096")
    assert main(["render", "gemma.yaml", "serve", "-set", "serving.max_model_len=2048"]) == 0
    words = at.capture.readouterr().out.replace(" \\\n ", "").split()
    assert words[-6:] == ["--max-model-len", "2048", "--max-num-seqs", "8", "--port", "9000"]


def test_git_sees_the_profile_and_not_the_state(cli: Open) -> None:
    at = cli()
    subprocess.run(["git", "init", "--quiet"], cwd=at.folder, check=True)
    assert at.run("apply", "-auto-approve", at.write()).code == 0
    result = subprocess.run(
        ["git", "status", "--porcelain", "-uall"], cwd=at.folder, capture_output=True, text=True, check=True
    )
    assert "gemma.yaml" in result.stdout
    assert ".tpudeploy" not in result.stdout


def test_version_names_the_flags_it_knows(cli: Open) -> None:
    at = cli()
    assert at.run("version").out.startswith("tpudeploy ")
    assert "vLLM" in at.run("version").out
    assert "\nTo upgrade: " in at.run("version").out
    assert at.run("--version").out == at.run("version").out


def test_help_shows_every_command_and_every_command_has_help(cli: Open) -> None:
    at = cli()
    assert_golden("help", at.run("help").out)
    for name in COMMANDS:
        result = at.run(name, "-h")
        assert result.code == 0
        assert result.out.startswith(f"usage: tpudeploy {name}")
        assert at.run("help", name).out == result.out


@pytest.mark.parametrize(
    ("words", "listed"),
    [
        ("state mv", "SRC"),
        ("state rm", "--dry-run"),
        ("ci apply", "--accept"),
        ("emulator run", "--scenario"),
        ("bench report", "--profile"),
    ],
)
def test_a_verb_has_a_page_of_its_own(cli: Open, words: str, listed: str) -> None:
    at = cli()
    page = at.run(*words.split(), "--help")
    assert page.out.startswith(f"usage: tpudeploy {words} ")
    assert listed in page.out
    assert at.run("help", *words.split()).out == page.out
    name, verb = words.split()
    assert f"\n    {verb}" in at.run(name, "--help").out
    assert listed not in at.run(name, "--help").out


@pytest.mark.parametrize("columns", [60, 80, 120, 200])
def test_help_fits_the_width_of_the_terminal(cli: Open, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    at = cli()
    for words in ((), ("state",), ("state", "rm"), ("apply",)):
        lines = at.run(*words, "--help").out.splitlines()
        assert max(map(len, lines)) <= columns, words
    assert max(map(len, at.run("--help").out.splitlines())) > columns * 0.6 or columns > 120


def test_help_is_refused_where_the_environment_asks_for_json(cli: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TPUDEPLOY_JSON", "1")
    result = cli().run("help")
    assert result.code == 1
    assert json.loads(result.out)["message"] == "Help is text and has no JSON form."


@pytest.mark.parametrize("words", ["help -json", "-json", "help plan -json", "plan -h -json", "-json --help plan"])
def test_help_as_json_is_refused_as_a_document(cli: Open, words: str) -> None:
    at = cli()
    result = at.run(*words.split())
    assert result.code == 1
    error = json.loads(result.out)
    assert error["message"] == "Help is text and has no JSON form."
