"""Another flag on a slice that serves: the chip is kept, the container restarted, and a bad change undone."""

from __future__ import annotations

import http.client
import json
from urllib.parse import urlsplit

import pytest
from command_line import PROFILE, CommandLine, Open
from real_time import DEADLINE

from tpudeploy import Profile, Workspace, errors

SHORTER = PROFILE.replace("16384", "8192")
# Where the scenario says that setup steps fail.
BAD = PROFILE.replace("  max_model_len", '  setup: ["pip install broken"]\n  max_model_len')


def test_a_flag_change_keeps_request_and_node_and_restarts_the_container_once(cli: Open) -> None:
    at = cli(nodes="real", boot={"boot_seconds": 60})
    profile = _served(at)
    before = _node(at)
    at.write(SHORTER)
    planned = at.run("plan", profile)
    assert "↻ gemma[0]" in planned.out
    assert "will be restarted in place: the slice is kept" in planned.out
    assert "down for about" in planned.out
    began = at.clock.now()
    changed = at.run("apply", "-auto-approve", profile)
    assert changed.code == 0, changed.all
    assert at.clock.now() - began < 180
    assert _node(at) == before
    assert (_containers(at), _resets(at)) == (2, 0)
    assert "'max_model_len': '8192'" in _log(at)
    assert at.run("plan", profile, "-detailed-exitcode").code == 0
    assert at.run("drift", profile).code == 0


def test_a_bad_change_is_undone_and_the_run_says_so(cli: Open) -> None:
    at = cli(nodes="real", boot={"setup_fails": True, "boot_seconds": 60})
    profile = _served(at)
    before, endpoint = _node(at), (at.folder / "endpoints" / "gemma.json").read_text()
    at.write(BAD)
    changed = at.run("apply", "-auto-approve", profile)
    assert changed.code == 13, changed.all
    assert (
        "gemma[0] runs the previous server again, because the change failed: The container ended (exit code "
        in changed.err
    )
    assert "a setup step failed" in changed.err
    assert "The previous server serves on the same chips" in changed.err
    assert (_node(at), _resets(at)) == (before, 0)
    assert (at.folder / "endpoints" / "gemma.json").read_text() == endpoint
    assert "completion tokens" in at.run("query", profile, "Say hello.").all

    planned = at.run("plan", profile, "-detailed-exitcode")
    assert planned.code == 2
    assert "↻ gemma[0]" in planned.out
    assert "1 to restart" in planned.out
    at.write()
    taken_back = at.run("apply", "-auto-approve", profile)
    assert taken_back.code == 0, taken_back.all
    assert at.run("plan", profile, "-detailed-exitcode").code == 0
    assert _containers(at) == 3


@pytest.mark.long
def test_a_reboot_after_a_change_brings_up_the_changed_server(cli: Open) -> None:
    at = cli(nodes="real", timings={"reset": 60})
    profile = _served(at)
    at.write(SHORTER)
    assert at.run("apply", "-auto-approve", profile).code == 0
    _reset(at)
    assert _models(at) == 8192
    assert at.run("plan", profile, "-detailed-exitcode").code == 0
    assert at.run("drift", profile).code == 0
    assert _watchers_hear(at, profile)


@pytest.mark.long
def test_a_reboot_after_an_undone_change_brings_up_the_server_before(cli: Open) -> None:
    at = cli(nodes="real", boot={"setup_fails": True}, timings={"reset": 60})
    profile = _served(at)
    at.write(BAD)
    assert at.run("apply", "-auto-approve", profile).code == 13
    started = _containers(at)
    _reset(at)
    assert _containers(at) == started + 1, "what failed is not tried again by a reboot"
    assert "completion tokens" in at.run("query", profile, "Say hello.").all
    assert "serving.setup" in at.run("plan", profile).out
    at.write(SHORTER)
    assert at.run("apply", "-auto-approve", profile).code == 0
    assert _models(at) == 8192


def test_a_change_that_fails_before_the_old_server_is_stopped_stops_nothing(cli: Open) -> None:
    at = cli(nodes="real", secrets={"hf-token": "made-up"})
    profile = _served(at)
    at.write(PROFILE.replace("HF_TOKEN: hf-token", "HF_TOKEN: hf-other"))
    changed = at.run("apply", "-auto-approve", profile)
    assert changed.code == 13, changed.all
    assert "projects/emulated/secrets/hf-other/versions/latest does not exist" in changed.err.lower()
    assert _containers(at) == 1
    assert "completion tokens" in at.run("query", profile, "Say hello.").all


@pytest.mark.parametrize("nodes", ["real", "simulated"])
def test_a_node_that_does_not_hear_is_reset_where_that_is_approved(cli: Open, nodes: str) -> None:
    at = cli(nodes=nodes, boot={"hears_changes": False})
    profile = _served(at)
    before = _node(at)
    at.write(SHORTER)
    changed = at.run("apply", "-auto-approve", profile)
    assert changed.code == 0, changed.all
    assert "Change sent to the node" in changed.err
    assert "Reset requested" in changed.err
    assert (_node(at), _resets(at)) == (before, 1)
    assert at.run("plan", profile, "-detailed-exitcode").code == 0


def test_a_node_that_does_not_hear_runs_on_where_no_reset_is_approved(cli: Open) -> None:
    at = cli(boot={"hears_changes": False})
    profile = _served(at)
    with Workspace.open(at.folder, clock=at.clock) as workspace:
        at.write(SHORTER)
        began = at.clock.now()
        report = workspace.apply(workspace.plan([Profile.load(at.folder / profile)]))
    assert isinstance(report.error, errors.ChangeNotAcknowledged)
    assert 180 <= at.clock.now() - began < 240
    assert "did not pick up the change within 3 min" in report.error.message
    assert "apply -auto-approve" in report.error.hint
    assert _resets(at) == 0
    assert "1 to restart" in at.run("plan", profile).out
    at.killed(150, "apply", "-auto-approve", profile)
    assert _resets(at) == 1, "it was given its three minutes before"
    assert at.run("apply", profile).code == 0
    assert _resets(at) == 1


def test_a_node_that_reports_nothing_may_still_run_the_previous_server(cli: Open) -> None:
    at = cli(boot={"guest_attributes": False})
    profile = _served(at)
    with Workspace.open(at.folder, clock=at.clock) as workspace:
        at.write(SHORTER)
        report = workspace.apply(workspace.plan([Profile.load(at.folder / profile)]))
    assert isinstance(report.error, errors.ChangeNotAcknowledged)
    assert "may still run the previous server" in report.error.message
    assert _resets(at) == 0


@pytest.mark.parametrize("call", ["lost-reply", "failed-reply"])
def test_a_lost_reply_restarts_the_container_once(cli: Open, call: str) -> None:
    at = cli(nodes="real", trouble=[{"fault": call, "method": "nodes.patch", "times": 1}])
    profile = _served(at)
    at.write(SHORTER)
    changed = at.run("apply", "-auto-approve", profile)
    assert changed.code == 0, changed.all
    assert (_containers(at), _resets(at)) == (2, 0)


@pytest.mark.long
def test_two_changes_in_a_row_are_each_taken_over(cli: Open) -> None:
    at = cli(nodes="real")
    profile = _served(at)
    for length in (8192, 4096):
        at.write(PROFILE.replace("16384", str(length)))
        changed = at.run("apply", "-auto-approve", profile)
        assert changed.code == 0, changed.all
        assert _models(at) == length
    assert (_containers(at), _resets(at)) == (3, 0)


@pytest.mark.long
def test_a_change_during_the_compile_of_the_one_before_wins(cli: Open) -> None:
    at = cli(nodes="real", boot={"boot_seconds": 900})
    profile = _served(at)
    at.write(SHORTER)
    at.killed(300, "apply", "-auto-approve", profile)
    at.write(PROFILE.replace("16384", "4096"))
    began = at.clock.now()
    changed = at.run("apply", "-auto-approve", profile)
    assert changed.code == 0, changed.all
    assert at.clock.now() - began < 1200, "nobody waits for what is no longer wanted"
    assert _models(at) == 4096
    assert (_containers(at), _resets(at)) == (3, 0)


@pytest.mark.long
def test_a_killed_run_is_gone_on_with_and_the_container_not_restarted(cli: Open) -> None:
    at = cli(nodes="real", boot={"boot_seconds": 900})
    profile = _served(at)
    at.write(SHORTER)
    at.killed(300, "apply", "-auto-approve", profile)
    resumed = at.run("apply", profile)
    assert resumed.code == 0, resumed.all
    assert _models(at) == 8192
    assert (_containers(at), _resets(at)) == (2, 0)


def test_a_watcher_that_is_killed_while_it_waits_is_back_for_the_next_change(cli: Open) -> None:
    at = cli(nodes="real")
    profile = _served(at)
    at.emulator.kill(_name(at), "tpudeploy-watcher")
    assert _watchers_hear(at, profile)


@pytest.mark.long
@pytest.mark.parametrize("unit", ["tpudeploy-watcher", "tpudeploy-work"])
def test_what_is_killed_in_the_middle_of_a_change_ends_it_all_the_same(cli: Open, unit: str) -> None:
    at = cli(nodes="real", boot={"boot_seconds": 600})
    profile = _served(at)
    at.write(SHORTER)
    at.killed(200, "apply", "-auto-approve", profile)
    at.emulator.kill(_name(at), unit)
    changed = at.run("apply", profile)
    assert changed.code == 0, changed.all
    assert _models(at) == 8192
    assert _resets(at) == 0
    assert _containers(at) == (2 if unit == "tpudeploy-watcher" else 3)


def test_a_metadata_server_that_is_away_for_a_while_is_asked_again(cli: Open) -> None:
    at = cli(nodes="real", boot={"metadata_away": [100, 80]})
    profile = _served(at)
    at.clock.sleep(95)
    at.write(SHORTER)
    changed = at.run("apply", "-auto-approve", profile)
    assert changed.code == 0, changed.all
    assert (_containers(at), _resets(at)) == (2, 0)


def test_a_secret_is_read_afresh_by_a_change(cli: Open) -> None:
    secrets = {"hf-token": "made-up", "vllm-key": "made-up-first"}
    at = cli(nodes="real", secrets=secrets)
    keyed = PROFILE.replace("  HF_TOKEN: hf-token\n", "  HF_TOKEN: hf-token\n  VLLM_API_KEY: vllm-key\n")
    profile = _served(at, keyed)
    at.emulator.secret("vllm-key", "made-up-second")
    at.write(keyed.replace("16384", "8192"))
    changed = at.run("apply", "-auto-approve", profile)
    assert changed.code == 0, changed.all
    assert _status(at, "made-up-first") == 401
    assert _status(at, "made-up-second") == 200


def test_a_chip_that_is_let_go_late_is_waited_for_and_never_held_by_two(cli: Open) -> None:
    at = cli(nodes="real", boot={"chip_busy": 30})
    profile = _served(at)
    at.write(SHORTER.replace("  max_model_len", "  container_name: renamed\n  max_model_len"))
    began = at.clock.now()
    changed = at.run("apply", "-auto-approve", profile)
    assert changed.code == 0, changed.all
    assert "Waiting until nobody holds the chip" in _log(at)
    assert at.clock.now() - began >= 30
    assert "busy" not in _log(at)
    assert _containers(at) == 2


def _served(at: CommandLine, text: str = PROFILE) -> str:
    profile = at.write(text)
    applied = at.run("apply", "-auto-approve", profile)
    assert applied.code == 0, applied.all
    return profile


def _name(at: CommandLine) -> str:
    (name,) = at.slices
    return name


def _node(at: CommandLine) -> tuple[str, str]:
    """The node's name and Google's own number of it: another machine has another."""
    node = json.loads(_call(at, "GET", f"nodes/{_name(at)}"))
    return node["name"], node["id"]


def _call(at: CommandLine, method: str, what: str) -> bytes:
    host, _, port = at.emulator.host.partition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=DEADLINE)
    try:
        connection.request(method, f"/v2alpha1/projects/emulated/locations/us-east5-a/{what}")
        answer = connection.getresponse()
        assert answer.status == 200
        return answer.read()
    finally:
        connection.close()


def _reset(at: CommandLine) -> None:
    """As somebody else does, or Google's maintenance."""
    _call(at, "POST", f"queuedResources/{_name(at)}:reset")
    at.clock.sleep(60)
    at.clock.sleep(60)


def _watchers_hear(at: CommandLine, profile: str) -> bool:
    """Whether the next change is taken over without a reset."""
    resets = _resets(at)
    at.write(PROFILE.replace("16384", "2048"))
    changed = at.run("apply", "-auto-approve", profile)
    assert changed.code == 0, changed.all
    return _models(at) == 2048 and _resets(at) == resets


def _models(at: CommandLine) -> int:
    """The longest prompt and answer that its server takes."""
    _, body = _ask(at, "")
    length: int = json.loads(body)["data"][0]["max_model_len"]
    return length


def _status(at: CommandLine, key: str) -> int:
    return _ask(at, key)[0]


def _ask(at: CommandLine, key: str) -> tuple[int, bytes]:
    where = urlsplit(json.loads((at.folder / "endpoints" / "gemma.json").read_text())["url"])
    connection = http.client.HTTPConnection(where.hostname or "", where.port or 80, timeout=DEADLINE)
    try:
        connection.request("GET", "/v1/models", headers={"Authorization": f"Bearer {key}"} if key else {})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def _log(at: CommandLine) -> str:
    return at.emulator.log(_name(at))


def _containers(at: CommandLine) -> int:
    """How many were ever started."""
    return _log(at).count("Starting the container")


def _resets(at: CommandLine) -> int:
    return sum(r.method == "POST" and r.resource.endswith(":reset") for r in at.emulator.requests)
