"""At the end of an apply, what serves is held against what it was told: quiet where all holds, 13 where it does not."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from command_line import PROFILE, CommandLine, Open

from tpudeploy import Profile, Workspace

MEASURED = PROFILE.replace("max_model_len: 16384", "max_model_len: 32768\n  max_num_batched_tokens: 4096")
SHORTER = {"instead": {"max-model-len": "4096"}}
CLOSED = PROFILE.replace("max_model_len: 16384", "max_model_len: 16384\n  args: {disable_log_stats: true}")


def _asks(at: CommandLine, path: str) -> int:
    return sum(path in request.path for request in at.emulator.requests)


def test_one_line_says_that_all_is_as_planned(cli: Open) -> None:
    at = cli()
    result = at.run("apply", "-auto-approve", at.write(MEASURED))
    assert result.code == 0, result.all
    lines = [line for line in result.err.splitlines() if "Verified: " in line]
    assert lines == [
        "gemma[0]: Verified: KV cache as planned (17,996 blocks, 1,151,744 tokens); 4 declared settings in effect"
    ]
    assert _asks(at, "entries:list") == 0, "API and metrics said it all: Logging was not asked"


def test_a_declared_setting_that_is_not_in_effect_exits_13_and_costs_nothing_else(cli: Open) -> None:
    at = cli(boot=SHORTER)
    result = at.run("apply", "-auto-approve", at.write())
    assert result.code == 13, result.all
    assert "Not in effect: max_model_len is 4096, declared 16384 [api]" in result.err
    assert "gemma[0] does not match its profile: max_model_len is 4096, declared 16384." in result.err
    assert "Not done. Resources: 1 added" in result.out
    assert 'gemma[0] endpoint = "http://' in result.out
    assert list(at.slices.values()) == ["ACTIVE"]
    assert at.state()["goal"] is None, "nothing is left to a re-run"
    assert at.run("output", "gemma").code == 0


def test_a_prediction_that_fails_is_named_and_is_no_failure(cli: Open) -> None:
    at = cli(boot={"kv_blocks": 9000})
    result = at.run("apply", "-auto-approve", at.write(MEASURED))
    assert result.code == 0, result.all
    assert "Not as planned: num_blocks is 9000, planned 18000 (-50.0%) [metrics]" in result.err


def test_of_several_replicas_each_is_asked_and_the_deviating_one_is_named(cli: Open) -> None:
    at = cli(boot=SHORTER)
    result = at.run("apply", "-auto-approve", at.write(PROFILE + "replicas: 2\n"))
    assert result.code == 13
    assert {f"gemma[{n}] does not match its profile" in result.err for n in (0, 1)} == {True}
    verified = at.run("verify", "gemma.yaml", "--json")
    assert verified.code == 13
    rows = json.loads(verified.out)["settings"]
    assert {r["replica"] for r in rows if r["verdict"] == "differs"} == {"gemma[0]", "gemma[1]"}


def test_what_serves_is_asked_though_another_replica_fails(cli: Open) -> None:
    at = cli(boot=SHORTER, trouble=[{"fault": "stockout", "attempt": "2-"}])
    alone = PROFILE.replace("[us-east5-a, us-east5-b, europe-west4-a]", "[us-east5-a]") + "replicas: 2\n"
    result = at.run("apply", "-auto-approve", "-timeout", "30m", at.write(alone))
    assert result.code == 13, result.all
    assert "was not granted in time" in result.err
    assert result.err.count("Not in effect: max_model_len is 4096") == 1


def test_a_model_that_cannot_be_sized_is_held_against_what_its_profile_says(cli: Open) -> None:
    at = cli(boot=SHORTER)
    result = at.run("apply", "-auto-approve", at.write(PROFILE.replace("google/gemma-4-E2B-it", "somebody/new-model")))
    assert result.code == 13, result.all
    assert "Not in effect: max_model_len is 4096, declared 16384 [api]" in result.err


def test_what_cannot_be_read_is_said_and_is_no_alarm(cli: Open) -> None:
    at = cli()
    result = at.run("apply", "-auto-approve", at.write(CLOSED))
    assert result.code == 0, result.all
    assert "metrics reported nothing (they have no vllm:cache_config_info)" in result.err
    assert "Not" not in next(line for line in result.err.splitlines() if "Verified: " in line)


def test_an_endpoint_that_is_out_of_reach_is_no_alarm(cli: Open) -> None:
    at = cli(boot={"reachable": False})
    result = at.run("apply", "-auto-approve", at.write())
    assert result.code == 0, result.all
    assert "Nothing verified: api and metrics reported nothing (it cannot be reached from here)" in result.err


def test_the_log_is_read_where_only_the_log_can_tell(cli: Open) -> None:
    at = cli()
    at.write(PROFILE.replace("v6e-1", "v6e-4"))
    result = at.run("apply", "-auto-approve", "gemma.yaml")
    assert result.code == 0, result.all
    assert _asks(at, "entries:list") == 1, "how many chips share a layer stands nowhere else"


def test_a_setting_that_is_ignored_is_held_against_what_was_applied(cli: Open) -> None:
    at = cli()
    ignoring = PROFILE + "lifecycle: {ignore_changes: [serving.max_model_len, placement.labels]}\n"
    assert at.run("apply", "-auto-approve", at.write(ignoring)).code == 0
    at.write(ignoring.replace("16384", "8192").replace("[spot]", "[spot]\n  network: {tags: [search]}"))
    result = at.run("apply", "-auto-approve", "gemma.yaml")
    assert result.code == 0, result.all
    assert "Verified: 4 declared settings in effect" in result.err


def test_the_same_apply_says_13_again_until_it_does_what_it_was_told(cli: Open) -> None:
    at = cli(boot=SHORTER)
    profile = at.write()
    apply = ("apply", "-auto-approve", profile)
    assert at.run(*apply).code == 13
    planned = at.run("plan", profile, "-detailed-exitcode")
    assert planned.code == 2, "an apply has something to do"
    assert "An apply verifies it again, and exits with 13 until it does" in planned.out
    assert at.run("plan", profile).code == 0
    for _ in range(2):
        before = len(at.emulator.requests)
        again = at.run(*apply)
        assert again.code == 13, again.all
        assert "No changes. The engine of gemma did not run with its profile's settings" in again.out
        assert "gemma[0] does not match its profile: max_model_len is 4096, declared 16384." in again.err
        assert not [r for r in at.emulator.requests[before:] if r.method not in {"GET", "POST"}]
    assert json.loads(at.run(*apply, "-json").out.splitlines()[-1])["not_in_effect"][0]["exit_code"] == 13
    _start_as_told(at)
    mended = at.run(*apply)
    assert mended.code == 0, mended.all
    assert at.run("plan", profile, "-detailed-exitcode").code == 0
    assert "Verified: 4 declared settings in effect" in mended.err
    requests = len(at.emulator.requests)
    assert at.run(*apply).out.startswith("No changes. The running deployment matches the profile.")
    assert not any("/v1/models" in r.path for r in at.emulator.requests[requests:])


def test_a_profile_that_says_what_is_in_effect_ends_it_too(cli: Open) -> None:
    at = cli(boot=SHORTER)
    assert at.run("apply", "-auto-approve", at.write()).code == 13
    assert at.run("apply", "-auto-approve", at.write(PROFILE.replace("16384", "4096"))).code == 0
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0


def test_an_engine_that_cannot_be_asked_any_more_counts_as_it_was(cli: Open) -> None:
    at = cli(boot=SHORTER)
    assert at.run("apply", "-auto-approve", at.write()).code == 13
    (node,) = at.emulator._cloud.nodes.values()
    node.hosts[0].stop()
    again = at.run("apply", "-auto-approve", "gemma.yaml")
    assert again.code == 13, again.all
    assert "when it was last verified: max_model_len is 4096, declared 16384." in again.err
    assert "It cannot be verified now." in again.err


def test_a_fleet_asks_again_only_where_it_was_otherwise(cli: Open) -> None:
    at = cli(trouble=[{"fault": "boot", "times": 1, **SHORTER}])
    names = ("one", "two", "three")
    profiles = [at.write(PROFILE.replace("name: gemma", f"name: {n}"), f"{n}.yaml") for n in names]
    first = at.run("apply", "-auto-approve", *profiles)
    assert first.code == 13, first.all
    assert (first.err.count("Not in effect"), first.err.count("Verified: ")) == (1, 3), first.err
    again = at.run("apply", "-auto-approve", *profiles)
    assert again.code == 13, again.all
    assert (again.err.count("Not in effect"), again.err.count("Verified: ")) == (1, 1), again.err


def test_a_pipeline_says_13_again_too(cli: Open) -> None:
    at = cli(boot=SHORTER)
    assert at.run("apply", "-auto-approve", at.write()).code == 13
    assert at.run("ci", "apply", "gemma.yaml").code == 13


def _start_as_told(at: CommandLine) -> None:
    """Somebody mends what made the engine do otherwise."""
    (node,) = at.emulator._cloud.nodes.values()
    host: Any = node.hosts[0]
    host._behaviour = replace(host._behaviour, instead={})


def _start_another(at: CommandLine, index: int = 0) -> None:
    """Somebody starts a container anew by hand, with another length."""
    nodes = at.emulator._cloud.nodes
    host: Any = nodes[sorted(nodes)[index]].hosts[0]
    host._behaviour = replace(host._behaviour, **SHORTER)


def test_drift_tells_a_server_that_does_otherwise_apart_and_undoes_nothing(cli: Open) -> None:
    at = cli()
    profile = at.write(PROFILE + "replicas: 2\n")
    assert at.run("apply", "-auto-approve", profile).code == 0
    assert at.run("drift", profile).code == 0
    _start_another(at, index=1)
    result = at.run("drift", profile)
    assert result.code == 2
    assert "# gemma[1] does not run with the applied settings" in result.out
    assert '~ engine.max_model_len = "16384" (applied) -> "4096" (live)' in result.out
    assert "gemma[0]" not in result.out
    assert "-refresh-only` records them" not in result.out, "nothing could write it down"
    assert at.run("plan", profile, "-detailed-exitcode").code == 0, "no plan would undo it"
    assert at.run("plan", profile, "-refresh-only", "-detailed-exitcode").code == 0
    drift = json.loads(at.run("drift", profile, "-json").out)["goals"][0]["drift"]
    assert [(d["address"], d["kind"]) for d in drift] == [("gemma[1]", "not in effect")]


def test_drift_is_against_what_was_applied_not_what_the_profile_says_by_now(cli: Open) -> None:
    at = cli()
    assert at.run("apply", "-auto-approve", at.write()).code == 0
    changed = at.write(PROFILE.replace("16384", "8192"))
    assert at.run("drift", changed).code == 0, "what is meant is no drift"
    _start_another(at)
    assert '= "16384" (applied) -> "4096" (live)' in at.run("drift", changed).out


def test_the_report_and_the_stream_have_it_for_programs(cli: Open) -> None:
    at = cli(boot=SHORTER)
    result = at.run("apply", "-auto-approve", "-json", at.write())
    assert result.code == 13
    lines = [json.loads(line) for line in result.out.splitlines()]
    verified = next(line for line in lines if line["type"] == "verified")
    assert [row["name"] for row in verified["broken"]] == ["max_model_len"]
    report = next(line for line in lines if line["type"] == "report")
    assert [(d["name"], d["result"]) for d in report["deployments"]] == [("gemma", "served")]
    assert report["not_in_effect"][0]["exit_code"] == 13


def test_from_the_library_it_is_in_the_report(cli: Open) -> None:
    at = cli(boot=SHORTER)
    profile = Profile.load(at.folder / at.write())
    with Workspace.open(at.folder, clock=at.clock) as workspace:
        report = workspace.apply(workspace.plan([profile]))
    assert report.failures == ()
    assert report.error is not None
    assert report.error.exit_code == 13


def test_a_real_machine_attests_by_api_metrics_and_log(cli: Open) -> None:
    at = cli(nodes="real", boot={"boot_seconds": 60})
    result = at.run("apply", "-auto-approve", at.write(MEASURED))
    assert result.code == 0, result.all
    assert "KV cache as planned (17,996 blocks, 1,151,744 tokens)" in result.err


def test_a_pipeline_fails_with_it_and_says_so(cli: Open) -> None:
    at = cli(boot=SHORTER)
    at.write()
    _, _, fingerprint = at.run("ci", "apply", "gemma.yaml").err.partition("-accept ")
    result = at.run("ci", "apply", "gemma.yaml", "-accept", fingerprint.split(".")[0])
    assert result.code == 13, result.all
    assert "gemma[0] does not match its profile" in result.err
    assert list(at.slices.values()) == ["ACTIVE"]


def test_what_comes_back_while_it_is_watched_is_asked_again(cli: Open) -> None:
    at = cli(trouble=[{"fault": "preempt", "after": 900, "times": 1}])
    at.killed(4000, "apply", "-auto-approve", "-watch", at.write())
    output = at.capture.readouterr().err
    assert output.count("gemma[0]: Verified: 4 declared settings in effect") == 2, output
