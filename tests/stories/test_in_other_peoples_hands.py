"""In other people's hands: a profile, an agent or a pull request that is after what the operator can read.

Three attackers, a section each: who wrote the profile, the agent at the other end of `mcp`, and who may write in the
repository. Each looks for canaries that no command and no tool may carry out, in whatever it prints, answers or writes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from agent import Agent, connected
from command_line import PROFILE, Open
from stories.canaries import CANARY, NUMBER, VARIABLES, Payload, of_environment, of_files, plant
from workflow import Both

from tpudeploy.cli.commands import COMMANDS, command
from tpudeploy.cli.parsers import parser_of, verbs_of
from tpudeploy.domain.errors import ProfileInvalid
from tpudeploy.domain.pins import NONE
from tpudeploy.loading import Profile
from tpudeploy.serialization import pinfile

Sampled = Callable[[Iterable[Payload], int], list[Payload]]
P = "p.yaml"
# Every command that reads profiles, with what else it needs.
WORDS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "validate": tuple(("--format", form, P) for form in ("text", "json", "github", "sarif", "junit")),
    "size": ((P,), ("--json", "--sweep", P)),
    "compile": ((P, "-python", "/nowhere/python"),),
    "render": tuple((P, what) for what in ("startup-script", "docker", "serve", "argv", "request", "profile")),
    "doctor": ((P,), ("--json", P)),
    "zones": ((P,), ("--json", P)),
    "plan": ((P,), ("--json", P), ("-out", "saved.plan", P)),
    "apply": (("-auto-approve", P), ("-auto-approve", "--json", P)),
    "destroy": (("-auto-approve", "--json", P),),
    "ci": (("plan", P, "-artifacts", "kept"), ("apply", P), ("drift", P), ("bench", P, "-max-cost", "1")),
    "gc": (("--json", P),),
    "drift": ((P,), ("--json", P)),
    "status": ((P,), ("--json", P)),
    "output": ((P,), ("--json", P)),
    "cost": ((P,), ("--json", P)),
    "logs": ((P,),),
    "verify": ((P,),),
    "metrics": ((P,),),
    "query": ((P, "Hi."),),
    "bench": ((P, "--concurrency", "1"),),
    "compare": ((P, "--ab", "serving.block_size=16,32"),),
    "recommend": (
        ("--users", "4", "--context", "128", "--output", "128", P),
        ("--users", "4", "--context", "128", "--output", "128", "--json", "--model", "Qwen/Qwen3-8B", P),
    ),
    "alerts": ((P,),),
    "diagnose": ((P,), (P, "--json")),
    "chat": ((P,),),
    "tune": ((P, "-dry-run"), (P, "--json", "-dry-run")),
    "support-bundle": ((P,),),
    "import": (("gemma[0]", "us-east5-a/q", P),),
    # It reads its profiles, and ends at what is no port.
    "dashboard": (("-port", "none", P),),
}


@pytest.fixture
def outside(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> Path:
    """A folder beside the project, which is none of its author's business."""
    folder: Path = tmp_path.parent / f"{tmp_path.name}-outside"
    folder.mkdir()
    return folder


@pytest.fixture
def sampled(request: pytest.FixtureRequest) -> Sampled:
    """One payload in twenty, others for each `turn`: over all commands each is met. `make exhaustive` takes all."""
    is_whole = "exhaustive" in request.config.getoption("markexpr")
    return lambda payloads, turn: [p for n, p in enumerate(payloads) if is_whole or n % 20 == turn % 20]


def _files(folder: Path) -> Iterator[tuple[str, str]]:
    """Every file below a folder that was written there, links and what was planted apart."""
    for path in sorted(folder.rglob("*")):
        if (
            path.is_file()
            and not path.is_symlink()
            and path.relative_to(folder).parts[0] not in {".env", ".git", ".s.yaml"}
        ):
            yield str(path), path.read_bytes().decode("utf-8", "replace")


def _is_carried_out(text: str) -> bool:
    return CANARY in text or NUMBER in text


# A hostile profile.


@pytest.mark.exhaustive
@pytest.mark.parametrize("command", WORDS)
def test_a_hostile_profile_carries_nothing_out_through_any_command(
    cli: Open, outside: Path, monkeypatch: pytest.MonkeyPatch, sampled: Sampled, command: str
) -> None:
    at = cli()
    plant(at, outside, monkeypatch)
    carried = []
    for payload in sampled(chain(of_environment(), of_files(outside)), list(WORDS).index(command)):
        at.write(payload.text, P)
        overlay = () if payload.overlay is None else ("-f", payload.overlay)
        # One of a command's forms for each payload, in turn: the forms differ behind the door that profiles come in by.
        forms = WORDS[command]
        words = forms[len(payload.name) % len(forms)]
        result = at.run(command, *words, *overlay, *(() if command == "ci" else ("--untrusted",)))
        assert result.code != 70, result.all
        # What a profile asks for of its own may stand in what is said of it: a path, not what lies there.
        if _is_carried_out(result.all.replace(f"nope-{CANARY}", "")):
            carried.append((payload.name, result.all))
    assert not carried
    assert not [name for name, text in _files(at.folder) if name != str(at.folder / P) and _is_carried_out(text)]


def test_every_command_that_reads_profiles_is_attacked() -> None:
    def takes_profiles(name: str) -> bool:
        parsers = (parser_of(name, verb) for verb in ("", *verbs_of(command(name))))
        return any("--untrusted" in parser.option_names for parser in parsers)

    assert {name for name in COMMANDS if takes_profiles(name)} == set(WORDS)


def test_the_payloads_reach_what_they_are_after_where_the_author_is_trusted(
    cli: Open, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = cli()
    plant(at, outside, monkeypatch)
    at.write(PROFILE.replace("  max_model_len: 16384", '  env: {B: "${env:REGION_NOTE}"}'), P)
    assert VARIABLES["REGION_NOTE"] in at.run("render", P, "startup-script").out
    at.write(f"extends: {outside / 'fine.yaml'}\n{PROFILE}", P)
    assert CANARY in at.run("render", P, "profile").out


def test_an_untrusted_profile_may_still_extend_its_own_project_from_a_folder_of_it(cli: Open) -> None:
    at = cli()
    (at.folder / "team").mkdir()
    (at.folder / "tpudeploy.toml").write_text("untrusted = true\n", encoding="utf-8")
    at.write(PROFILE, "base.yaml")
    at.write("extends: ../base.yaml\nname: chat\n", "team/chat.yaml")
    assert at.run("validate", "team/chat.yaml").code == 0


@pytest.mark.parametrize("switch", ["the option", "the variable", "the settings", "ci"])
def test_whoever_runs_a_command_can_say_that_its_author_is_not_trusted(
    cli: Open, outside: Path, monkeypatch: pytest.MonkeyPatch, switch: str
) -> None:
    at = cli()
    plant(at, outside, monkeypatch)
    at.write(PROFILE.replace("  max_model_len: 16384", '  env: {B: "${env:REGION_NOTE}"}'), P)
    if switch == "the variable":
        monkeypatch.setenv("TPUDEPLOY_UNTRUSTED", "1")
    if switch == "the settings":
        (at.folder / "tpudeploy.toml").write_text("untrusted = true\n", encoding="utf-8")
    words = ("ci", "plan", P) if switch == "ci" else ("plan", P)
    refused = at.run(*words, *(["-untrusted"] if switch == "the option" else []))
    assert refused.code == 1
    assert "This profile is untrusted and may not read the environment variable REGION_NOTE [TPU1113]" in refused.all
    assert "--allow-env REGION_NOTE" in refused.all


@pytest.mark.parametrize("how", ["the option", "the variable"])
def test_the_operator_allows_a_variable_by_its_name_and_no_other(
    cli: Open, outside: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    at = cli()
    plant(at, outside, monkeypatch)
    words = ("--allow-env", "REGION_NOTE") if how == "the option" else ()
    if how == "the variable":
        monkeypatch.setenv("TPUDEPLOY_ALLOW_ENV", "OTHER\nREGION_NOTE")
    at.write(PROFILE.replace("16384", '16384\n  env: {B: "${env:REGION_NOTE}"}'), P)
    assert at.run("ci", "plan", P, *words).code == 0
    at.write(PROFILE.replace("16384", '16384\n  env: {B: "${env:REGION_NOTE}${env:DEPLOY_TOKEN}"}'), P)
    refused = at.run("ci", "plan", P, *words)
    assert refused.code == 1
    assert "may not read the environment variable DEPLOY_TOKEN" in refused.words
    assert CANARY not in refused.all


def test_no_file_of_the_project_can_allow_a_variable(cli: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    at = cli()
    monkeypatch.setenv("REGION_NOTE", CANARY)
    at.write(PROFILE.replace("16384", '16384\n  env: {B: "${env:REGION_NOTE}"}'), P)
    (at.folder / "tpudeploy.toml").write_text('untrusted = false\nallow_env = ["REGION_NOTE"]\n', encoding="utf-8")
    assert "Unknown setting" in at.run("ci", "plan", P).err
    (at.folder / "tpudeploy.toml").write_text("untrusted = false\n", encoding="utf-8")
    assert at.run("ci", "plan", P).code == 1


@pytest.mark.parametrize("value", ["hunter2", "5", "", None])
def test_a_refusal_does_not_say_whether_a_variable_is_set(
    cli: Open, monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    at = cli()
    if value is not None:
        monkeypatch.setenv("REGION_NOTE", value)
    at.write(PROFILE.replace("v6e-1", '"${env:REGION_NOTE:-v6e-1}"'), P)
    refused = at.run("validate", "--untrusted", "--format", "json", P)
    (diagnostic,) = json.loads(refused.out)["profiles"][0]["diagnostics"]
    assert (diagnostic["code"], diagnostic["message"]) == (
        "TPU1113",
        "This profile is untrusted and may not read the environment variable REGION_NOTE",
    )


def test_settings_that_are_a_link_out_of_the_project_are_not_read(cli: Open, outside: Path) -> None:
    at = cli()
    (outside / "credentials.toml").write_text(f"{CANARY} = 1\n", encoding="utf-8")
    (at.folder / "tpudeploy.toml").symlink_to(outside / "credentials.toml")
    refused = at.run("ci", "plan", at.write())
    assert refused.code == 1
    assert "`tpudeploy.toml` is a link that leads out of the project" in refused.err
    assert CANARY not in refused.all


def test_a_lock_file_that_is_a_link_out_of_the_project_is_not_read(cli: Open, outside: Path) -> None:
    at = cli()
    (outside / "theirs.json").write_text(json.dumps({"format": CANARY}), encoding="utf-8")
    (at.folder / "tpudeploy.lock.json").symlink_to(outside / "theirs.json")
    refused = at.run("ci", "plan", at.write())
    assert refused.code == 1
    assert "tpudeploy.lock.json is a link that leads out of the project" in refused.err
    assert CANARY not in refused.all


def test_states_above_a_repository_do_not_open_what_lies_beside_it(cli: Open, outside: Path) -> None:
    """A runner's home has states of its own; a repository is checked out below it."""
    at = cli()
    (at.folder / ".tpudeploy" / "state").mkdir(parents=True)
    (at.folder / "secret.yaml").write_text(f"health: {{prompt: {CANARY}}}\n", encoding="utf-8")
    (at.folder / "repository" / ".git").mkdir(parents=True)
    at.write(f"extends: ../secret.yaml\n{PROFILE}", "repository/p.yaml")
    refused = at.run("validate", "--untrusted", "repository/p.yaml")
    assert refused.code == 1
    assert "lies outside the project" in refused.err
    assert CANARY not in refused.all


def test_a_link_that_is_put_in_place_after_the_look_is_not_followed(
    tmp_path: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The look and the opening are two moments; between them the author's other process swaps the file."""
    (outside / "keys.yaml").write_text(f"health: {{prompt: {CANARY}}}\n", encoding="utf-8")
    (tmp_path / P).write_text(f"extends: base.yaml\n{PROFILE}", encoding="utf-8")
    base = tmp_path / "base.yaml"
    base.write_text("replicas: 1\n", encoding="utf-8")
    look = os.path.realpath

    def looks_and_swaps(path: Any, **how: Any) -> Any:
        facts = look(path, **how)
        if str(path).endswith("base.yaml") and not base.is_symlink():
            base.unlink()
            base.symlink_to(outside / "keys.yaml")
        return facts

    monkeypatch.setattr(os.path, "realpath", looks_and_swaps)
    with pytest.raises(ProfileInvalid) as refused:
        Profile.load(tmp_path / P, untrusted=True)
    assert CANARY not in repr(refused.value.diagnostics)


# A profile of one's own: what comes from the environment is not read out by messages.


def test_no_message_quotes_a_value_of_the_environment_whoever_wrote_the_profile(
    cli: Open, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = cli()
    plant(at, outside, monkeypatch)
    quoted = []
    for number, payload in enumerate(of_environment()):
        at.write(payload.text, P)
        result = at.run("validate", "--format", ("text", "json")[number % 2], P)
        if result.code and _is_carried_out(result.all):
            quoted.append((payload.name, result.all))
    assert not quoted


def test_a_message_shows_the_reference_in_the_place_of_the_value(cli: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    at = cli()
    monkeypatch.setenv("KIND", "hunter2")
    at.write(PROFILE.replace("v6e-1", "${env:KIND}"), P)
    result = at.run("validate", P)
    assert 'There is no accelerator type "${env:KIND}"' in result.err
    monkeypatch.setenv("KIND", "v6e-7")
    assert "v6e-7" not in at.run("validate", P).all


def test_a_file_outside_the_project_is_named_and_not_read_out(cli: Open, outside: Path) -> None:
    at = cli()
    for name, text in {
        "shadow": f"root:$6${CANARY}:19000:0\nbin:*:{CANARY}\n",
        "keys.yaml": f"{CANARY}: 1\nserving: {{dtype: {CANARY}, {CANARY}: 2}}\n",
        "broken.yaml": f"a: [{CANARY}\n",
        "latin1": f"{CANARY}\xff\n",
    }.items():
        (outside / name).write_bytes(text.encode("latin1"))
        at.write(f"extends: {outside / name}\n{PROFILE}", P)
        for form in ("text", "json", "github", "sarif", "junit"):
            result = at.run("validate", "--format", form, P)
            assert result.code == 1
            assert str(outside / name) in result.all
            assert CANARY not in result.all
    assert "Unknown key" in at.run("validate", P, "--set", "nothing=1").err


@pytest.mark.parametrize("value", ["ghp_" + "a1B2" * 9, "prefix" + "ghp_" + "a1B2" * 9, "hf_" + "aB3" * 11])
@pytest.mark.parametrize("text", ["x${env:INNOCUOUS}", "${env:INNOCUOUS}x", "${env:INNOCUOUS:-}", "$$${env:INNOCUOUS}"])
def test_a_credential_in_a_variable_is_seen_in_the_middle_of_a_word(
    cli: Open, monkeypatch: pytest.MonkeyPatch, value: str, text: str
) -> None:
    at = cli()
    monkeypatch.setenv("INNOCUOUS", value)
    at.write(PROFILE.replace("16384", f'16384\n  env: {{B: "{text}"}}'), P)
    refused = at.run("validate", P)
    assert refused.code == 1
    assert "[TPU1030]" in refused.err
    assert value not in refused.all


@pytest.mark.parametrize("name", ["GITHUB_TOKEN", "DB_PASSWORD", "api_key", "clientSecret", "MYTOKEN"])
def test_a_variable_that_is_named_like_a_secret_is_read_by_no_profile_unless_it_is_allowed(
    cli: Open, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    at = cli()
    monkeypatch.setenv(name, "harmless-after-all")
    at.write(PROFILE.replace("16384", f'16384\n  env: {{B: "x${{env:{name}}}"}}'), P)
    refused = at.run("validate", P)
    assert refused.code == 1
    assert f"Environment variable {name} looks like a secret" in refused.err
    assert "harmless-after-all" not in refused.all
    assert at.run("validate", P, "--allow-env", name).code == 0


@pytest.mark.parametrize("name", ["MY_TOKEN", "DB_PASSWORD", "CACHE_KEY", "clientSecret"])
def test_a_name_like_a_secrets_under_env_is_refused_with_the_way_to_secrets_or_allowed_by_name(
    cli: Open, name: str
) -> None:
    at = cli()
    at.write(PROFILE.replace("16384", f"16384\n  env: {{{name}: harmless}}"), P)
    refused = at.run("validate", P)
    assert refused.code == 1
    assert f"secrets: {{{name}: NAME}}" in refused.err
    at.write(PROFILE.replace("16384", f"16384\n  env: {{{name}: harmless}}\n  plain_env: [{name}]"), P)
    assert at.run("validate", P).code == 0
    assert f"{name}=harmless" in at.run("render", P, "docker").out


@pytest.mark.parametrize(
    "name", ["TOKENIZERS_PARALLELISM", "MAX_TOKENS", "HF_HUB_DISABLE_IMPLICIT_TOKEN", "MONKEY", "PWD"]
)
def test_a_setting_whose_name_only_resembles_a_secrets_is_none(cli: Open, name: str) -> None:
    at = cli()
    at.write(PROFILE.replace("16384", f'16384\n  env: {{{name}: "1"}}'), P)
    assert at.run("validate", P).code == 0


# A hostile agent.

NEEDED: Mapping[str, Any] = {
    "flag": "serving.block_size=16,32",
    "users": 4,
    "context": 128,
    "output": 128,
    "prompt": "Hi.",
    "run_id": "nope",
    "run_ids": ["nope", "neither"],
    "ab_id": "nope",
    "code": "TPU1000",
    "name": "gemma",
    "plan_id": "nope",
    "proposal_id": "nope",
    "tune_id": "nope",
    "grid": "nope.yaml",
    "what": "docker",
    "max_cost": 5,
}


def _arguments(tool: Mapping[str, Any], **hostile: Any) -> dict[str, Any]:
    """What a tool must be given, the profile among it, and a hostile value in one place."""
    schema = tool["inputSchema"]
    arguments = {key: NEEDED[key] for key in schema.get("required", ()) if key in NEEDED}
    properties = schema["properties"]
    arguments |= {"profile": P} if "profile" in properties else {}
    arguments |= {"profiles": [P]} if "profiles" in properties else {}
    return {**arguments, **hostile}


@pytest.mark.exhaustive
def test_a_hostile_profile_carries_nothing_out_to_an_agent(
    cli: Open, outside: Path, monkeypatch: pytest.MonkeyPatch, sampled: Sampled
) -> None:
    at = cli()
    plant(at, outside, monkeypatch)
    with connected(at, allow_writes=True) as agent:
        tools = [tool for tool in agent.tools() if tool["inputSchema"]["properties"].keys() & {"profile", "profiles"}]
        assert len(tools) > 12
        for turn, tool in enumerate(tools):
            payloads = [payload for payload in chain(of_environment(), of_files(outside)) if payload.overlay is None]
            for payload in sampled(payloads, turn):
                at.write(payload.text, P)
                answered = agent.call(tool["name"], **_arguments(tool))
                assert not _is_carried_out(_without(payload, answered.text)), (tool["name"], payload.name)
        assert not [output for output in agent.heard if _is_carried_out(output.replace(f"nope-{CANARY}", ""))]
    assert not [name for name, text in _files(at.folder) if name != str(at.folder / P) and _is_carried_out(text)]


def _without(payload: Payload, text: str) -> str:
    """An answer, but for the paths that the profile itself names."""
    return text.replace(f"nope-{CANARY}", "") if CANARY in payload.text else text


def test_a_hostile_agent_gets_nothing_by_any_argument_of_any_tool(
    cli: Open, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = cli()
    plant(at, outside, monkeypatch)
    at.write(PROFILE, P)
    (outside / "endpoint.json").write_text(json.dumps({"url": f"http://{CANARY}"}), encoding="utf-8")
    (at.folder / "endpoints").mkdir()
    beside = f"../{outside.name}"
    hostile = [
        *("${env:REGION_NOTE}", "x${env:DEPLOY_TOKEN}", "$DEPLOY_TOKEN", "${env:REGION_NOTE:-x}"),
        *(str(outside / "keys.yaml"), f"{beside}/keys.yaml", "linked/keys.yaml", "chain.yaml", "linked", beside),
        *(str(outside / "endpoint"), f"../{beside}/endpoint", f"{beside}/endpoint"),
        *("/etc/shadow", ".git/config", ".env", "p.yaml\0", "\ud800".encode("utf-8", "replace").decode(), "-", "", "~"),
        *("tpu.type=${env:REGION_NOTE},v6e-1", "tpu.type=v6e-1,x${env:DB_PASSWORD}", "extends=a,b"),
        *(f"model.config={outside / 'config.json'},b", f"extends={outside / 'keys.yaml'},b"),
        *("serving.env.B=x${env:DEPLOY_TOKEN},y", "serving.block_size=${env:PORT_NUMBER},16"),
    ]
    with connected(at, allow_writes=True) as agent:
        for tool in agent.tools():
            for key in _texts(tool):
                for value in hostile:
                    _attack(agent, tool, key, value)
        for uri in (f"tpudeploy://deployments/{beside}/endpoint", "tpudeploy://runs/..%2F..%2Fendpoint"):
            with pytest.raises(Exception) as refused:  # noqa: PT011 - the SDK's own, whichever it is
                agent.read(uri)
            assert CANARY not in str(refused.value)
        assert len(agent.heard) > 400
        assert not [output for output in agent.heard if _is_carried_out(output)]
    assert not [name for name, text in _files(at.folder) if _is_carried_out(text)]


def _texts(tool: Mapping[str, Any]) -> list[str]:
    """The arguments of a tool that take text, or a list of texts."""
    properties: Mapping[str, Any] = tool["inputSchema"]["properties"]
    return [key for key, schema in properties.items() if '"string"' in json.dumps(schema)]


def _attack(agent: Agent, tool: Mapping[str, Any], key: str, value: str) -> None:
    is_list = '"array"' in json.dumps(tool["inputSchema"]["properties"][key])
    for argument in ([value], [P, value]) if is_list else (value,):
        agent.call(tool["name"], **_arguments(tool, **{key: argument}))


def test_an_agent_reads_no_variable_by_an_ab_that_it_proposes(cli: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    at = cli()
    at.write(PROFILE, P)
    monkeypatch.setenv("SECRET", "hunter2")
    with connected(at, allow_writes=False) as agent:
        answered = agent.call("ab_propose", profile=P, flag="tpu.type=${env:SECRET},v6e-1")
    assert answered.is_error
    assert "This profile is untrusted and may not read the environment variable SECRET" in answered.text
    assert "hunter2" not in str(answered)


@pytest.mark.parametrize("door", ["ci", "mcp", "-untrusted"])
def test_a_file_outside_the_project_is_refused_with_what_can_be_done_at_that_door(
    cli: Open, outside: Path, door: str
) -> None:
    at = cli()
    at.write(f"extends: {outside / 'fine.yaml'}\n{PROFILE}", P)
    if door == "mcp":
        with connected(at, allow_writes=False) as agent:
            answer = agent.call("validate", profiles=[P]).text
    else:
        answer = at.run(*(["ci", "plan", P] if door == "ci" else ["validate", P, door])).words
    assert "lies outside the project, and this profile is untrusted" in answer
    assert "keep a copy inside the project; `ci` and `mcp` open no other file" in answer


def test_a_person_can_allow_an_agent_a_variable_by_its_name(cli: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    at = cli()
    monkeypatch.setenv("REGION_NOTE", "a-note")
    at.write(PROFILE.replace("16384", '16384\n  env: {B: "${env:REGION_NOTE}"}'), P)
    with connected(at, allow_writes=False, allow_env=("REGION_NOTE",)) as agent:
        assert agent.document("validate", profiles=[P])["valid"]


# A hostile writer of the repository.


@pytest.mark.parametrize("reference", ["${env:DEPLOY_TOKEN}", "x${env:DB_PASSWORD}", "${env:REGION_NOTE:-x}"])
def test_a_pull_request_carries_no_variable_of_the_runner_into_its_comment(
    pipeline: Both, outside: Path, monkeypatch: pytest.MonkeyPatch, reference: str
) -> None:
    at, here = pipeline
    plant(at, outside, monkeypatch)
    for place in ("env: {B: '%s'}", "setup: ['echo %s']", "dtype: '%s'"):
        at.write(PROFILE.replace("16384", f"16384\n  {place % reference}"))
        result = at.run("ci", "plan", "gemma.yaml", "-artifacts", "kept")
        assert result.code == 1
        assert not _is_carried_out(result.all + here.summary + here.comment())
        assert "TPU1113" in here.comment()


def test_a_pull_request_carries_no_file_of_the_runner_into_its_comment(
    pipeline: Both, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at, here = pipeline
    plant(at, outside, monkeypatch)
    for path in (outside / "keys.yaml", "chain.yaml", "linked/shadow", ".git/config", ".env"):
        at.write(f"extends: {path}\n{PROFILE}")
        result = at.run("ci", "plan", "gemma.yaml", "-artifacts", "kept")
        assert result.code == 1
        assert not _is_carried_out(result.all + here.summary + here.comment())
        assert "TPU1106" in here.comment()


# What a repository contains besides profiles: git checks out links as their author made them.

RC = "alias ls=ls\n"
# Where a link, a FIFO or a folder is planted, and whether it leads to the home's file or to the home.
PLANTS = {
    "endpoints/.gemma.json.new": "file",
    "endpoints/gemma.json": "file",
    "endpoints": "home",
    ".tpudeploy": "home",
    ".tpudeploy/state": "home",
    ".tpudeploy/state/gemma.lock": "file",
    ".tpudeploy/state/gemma.json": "file",
    ".tpudeploy/state/.gemma.json.new": "file",
    ".tpudeploy/state/earlier": "home",
    ".tpudeploy/zones-emulated.jsonl": "file",
    ".tpudeploy/ledger-emulated.jsonl": "file",
    ".tpudeploy/pins.lock": "file",
    ".tpudeploy/facts": "home",
    ".tpudeploy/.gitignore": "file",
    "tpudeploy.lock.json": "inside",
}


def _plant(place: Path, leads_to: str, outside: Path) -> Path:
    """Plant a link, and return the file that it must not change."""
    victim = outside / "rc"
    victim.write_text(RC, encoding="utf-8")
    (outside / "state").mkdir(exist_ok=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    if leads_to == "inside":  # reading through a link within the project is allowed
        victim = place.with_name("rc")
        victim.write_text(pinfile.dumps(NONE), encoding="utf-8")
    place.symlink_to({"file": victim, "home": outside, "inside": victim}[leads_to])
    return victim


@pytest.mark.parametrize("place", PLANTS)
def test_a_link_in_a_repository_changes_nothing_outside_of_it_and_refuses_before_anything_is_requested(
    cli: Open, outside: Path, place: str
) -> None:
    at = cli()
    victim = _plant(at.folder / place, PLANTS[place], outside)
    before = victim.read_text(encoding="utf-8")
    files = sorted(outside.rglob("*"))
    first = at.run("apply", "-untrusted", "-auto-approve", at.write())
    at.run("destroy", "-untrusted", "-auto-approve", "gemma.yaml")
    assert victim.read_text(encoding="utf-8") == before
    assert sorted(outside.rglob("*")) == files
    if first.code:
        assert "is a link" in first.err, first.all
        assert not at.requested_zones()


def test_a_link_in_place_of_endpoints_is_named_though_nothing_is_to_change(cli: Open, outside: Path) -> None:
    at = cli(nodes="simulated")
    path = at.write()
    assert at.run("apply", "-auto-approve", path).code == 0
    (at.folder / "endpoints").rename(at.folder / "before")
    (at.folder / "endpoints").symlink_to(outside)
    second = at.run("apply", "-auto-approve", path)
    assert second.code == 1, second.all
    assert "No changes." in second.out
    assert "endpoints/gemma.json cannot be written: `endpoints` is a link." in second.words
    assert not list(outside.iterdir())


@pytest.mark.parametrize(
    "words",
    [
        ("plan", "gemma.yaml", "-out", "{}"),
        ("alerts", "gemma.yaml", "-out", "{}"),
        ("status", "gemma.yaml", "-html", "{}"),
        ("init", "{}"),
        ("ci", "plan", "gemma.yaml", "-artifacts", "{}"),
    ],
    ids=lambda words: words[0],
)
@pytest.mark.parametrize("link", ["out", "folder/out"])
def test_an_output_that_the_operator_names_follows_no_link_of_the_repository(
    cli: Open, outside: Path, words: tuple[str, ...], link: str
) -> None:
    at = cli()
    at.write()
    victim = _plant(at.folder / link.partition("/")[0], "home" if "/" in link else "file", outside)
    (outside / "out").write_text(RC, encoding="utf-8")
    files = sorted(outside.rglob("*"))
    refused = at.run(*(word.format(link) for word in words))
    assert refused.code in {1, 2}, refused.all
    assert victim.read_text(encoding="utf-8") == (outside / "out").read_text(encoding="utf-8") == RC
    assert sorted(outside.rglob("*")) == files


def test_an_untrusted_project_keeps_its_states_at_home(cli: Open, outside: Path) -> None:
    at = cli()
    at.write()
    (at.folder / "tpudeploy.toml").write_text(f'backend = "../{outside.name}"\n', encoding="utf-8")
    refused = at.run("apply", "-untrusted", "-auto-approve", "gemma.yaml")
    assert refused.code == 1
    assert "lies outside the project" in refused.err
    assert not list(outside.iterdir())
    assert not at.requested_zones()


# Others on the same machine.


def test_what_lies_in_the_projects_own_folder_is_readable_by_its_owner_alone(cli: Open) -> None:
    at = cli()
    was = os.umask(0o022)
    try:
        at.write()
        for words in (
            ("plan", "-pin", "gemma.yaml", "-out", "saved.plan"),
            ("apply", "-auto-approve", "gemma.yaml"),
            ("zones", "gemma.yaml"),
            ("apply", "-auto-approve", "gemma.yaml", "-set", "serving.max_model_len=8192"),
        ):
            assert at.run(*words).code == 0, words
        modes = _modes(at.folder / ".tpudeploy")
        assert {path.name for path in modes} >= {
            "state",
            "gemma.json",
            "gemma.lock",
            "earlier",
            "zones-emulated.jsonl",
            "facts",
        }
        assert {path: mode for path, mode in modes.items() if mode & 0o077} == {}
        assert _mode(at.folder / "saved.plan") == 0o600
        # Clients that are somebody else read where a deployment answers; the lock file is committed.
        assert _mode(at.folder / "endpoints" / "gemma.json") == _mode(at.folder / "tpudeploy.lock.json") == 0o644
    finally:
        os.umask(was)


def test_a_folder_that_an_earlier_version_left_open_is_closed_by_the_next_write(cli: Open, outside: Path) -> None:
    at = cli()
    at.write()
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    (outside / "theirs").write_text("theirs", encoding="utf-8")
    (outside / "theirs").chmod(0o644)
    (at.folder / ".tpudeploy" / "link").symlink_to(outside / "theirs")
    for path in _modes(at.folder / ".tpudeploy"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    assert at.run("destroy", "-auto-approve", "gemma.yaml").code == 0
    assert {path: mode for path, mode in _modes(at.folder / ".tpudeploy").items() if mode & 0o077} == {}
    assert _mode(outside / "theirs") == 0o644


def test_a_backend_folder_of_ones_own_keeps_its_modes(cli: Open) -> None:
    at = cli()
    shared = at.folder / "shared"
    shared.mkdir()
    shared.chmod(0o770)
    assert at.run("apply", "-auto-approve", at.write(), "--backend", "shared").code == 0
    assert _mode(shared) == 0o770


def _modes(folder: Path) -> dict[Path, int]:
    return {path: _mode(path) for path in (folder, *folder.rglob("*")) if not path.is_symlink()}


def _mode(path: Path) -> int:
    return path.stat().st_mode & 0o777
