"""Another flag on a slice that serves: the chip is kept, the container restarted, and a bad change undone."""

from __future__ import annotations

import http.client
import json

from desk import PROFILE, Desk, Open

SHORTER = PROFILE.replace("16384", "8192")


def test_a_flag_change_keeps_request_and_node_and_restarts_the_container_once(desk: Open) -> None:
    at = desk(nodes="real", boot={"boot_seconds": 60})
    profile = _served(at)
    before = _node(at)
    at.write(SHORTER)
    planned = at.run("plan", profile)
    assert "↻ gemma[0]" in planned.out
    assert "will be restarted in place: the chips stay" in planned.out
    assert "nothing serves for about" in planned.out
    began = at.clock.now()
    changed = at.run("apply", "-auto-approve", profile)
    assert changed.code == 0, changed.all
    assert at.clock.now() - began < 180
    assert _node(at) == before
    assert (_containers(at), _resets(at)) == (2, 0)
    assert "'max_model_len': '8192'" in _log(at)
    assert at.run("plan", profile, "-detailed-exitcode").code == 0
    assert at.run("drift", profile).code == 0


def _served(at: Desk, text: str = PROFILE) -> str:
    profile = at.write(text)
    applied = at.run("apply", "-auto-approve", profile)
    assert applied.code == 0, applied.all
    return profile


def _name(at: Desk) -> str:
    (name,) = at.slices
    return name


def _node(at: Desk) -> tuple[str, str]:
    """The node's name and Google's own number of it: another machine has another."""
    host, _, port = at.emulator.host.partition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=10)
    try:
        connection.request("GET", f"/v2alpha1/projects/emulated/locations/us-east5-a/nodes/{_name(at)}")
        node = json.loads(connection.getresponse().read())
    finally:
        connection.close()
    return node["name"], node["id"]


def _log(at: Desk) -> str:
    return at.emulator.log(_name(at))


def _containers(at: Desk) -> int:
    """How many were ever started."""
    return _log(at).count("Starting the container")


def _resets(at: Desk) -> int:
    return sum(r.method == "POST" and r.path.split("?")[0].endswith(":reset") for r in at.emulator.requests)
