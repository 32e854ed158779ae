"""No secret in profile, plan, state, events, script, logs: a canary is looked for in every byte that was written."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import PROFILE, CommandLine, Open

from tpudeploy.emulator.machine.machine import Machine

CANARY = "canary-4f1e9c"
HUB, KEY = f"{CANARY}-hub", f"{CANARY}-key"
KEYED = PROFILE.replace("  HF_TOKEN: hf-token\n", "  HF_TOKEN: hf-token\n  VLLM_API_KEY: vllm-key\n").replace(
    "secrets:", '  setup: ["pip install transformers"]\nhealth: {timeout: 5m}\nsecrets:'
)
COMMANDS = (
    ("validate", "gemma.yaml"),
    ("plan", "-out", "gemma.plan", "gemma.yaml"),
    ("show", "gemma.plan", "--json"),
    ("apply", "-auto-approve", "gemma.yaml"),
    ("apply", "-auto-approve", "--json", "gemma.yaml"),
    ("status", "gemma.yaml"),
    ("status", "--json", "gemma.yaml"),
    ("ci", "plan", "gemma.yaml", "-artifacts", "planned"),
    ("ci", "plan", "gemma.yaml", "-artifacts", "restarted", "-set", "serving.max_model_len=8192"),
    ("ci", "drift", "gemma.yaml"),
    ("query", "gemma.yaml", "Say hello."),
    *(("render", "gemma.yaml", what) for what in ("argv", "docker", "serve", "startup-script", "request", "profile")),
)
# How a boot can end, and the exit code of the apply that meets it.
BOOTS = {
    "it serves": ({}, HUB, KEY, 0),
    "the secrets end in a newline": ({}, f"{HUB}\n", f"{KEY}\n", 0),
    "the engine dies": ({"crash": "program-allocation"}, HUB, KEY, 1),
    "a setup step fails": ({"setup_fails": True}, HUB, KEY, 1),
    "it never gets healthy": ({"hang": True}, HUB, KEY, 1),
    "nobody can reach it": ({"reachable": False}, HUB, KEY, 0),
}
# Where it runs: one host, and several hosts at either API.
_OVER_HOSTS = KEYED.replace("type: v6e-1", "type: v5p-16").replace(
    "[us-east5-a, us-east5-b, europe-west4-a]", "[us-east5-a]"
)
PLACES = {
    "one host": KEYED,
    "several hosts": _OVER_HOSTS,
    "a group of instances": _OVER_HOSTS.replace("placement:\n", "placement:\n  backend: gce-instance\n"),
}


@pytest.mark.parametrize(
    ("name", "place"), [*((name, "one host") for name in BOOTS), *(("it serves", each) for each in [*PLACES][1:])]
)
def test_no_secret_is_written_anywhere_however_the_boot_ends(cli: Open, name: str, place: str) -> None:
    boot, hub, key, code = BOOTS[name]
    at = cli(nodes="real", boot=boot, secrets={"hf-token": hub, "vllm-key": key})
    at.write(PLACES[place])
    heard = []
    for command in COMMANDS:
        result = at.run(*command)
        heard.append(result.all)
        if command[0] == "apply":
            assert result.code == code, result.all
    outputs = list(_outputs(at, heard))
    assert sum(b"hf-token" in text for _, text in outputs) > 5, "the search must reach where secrets are named"
    assert not [(where, text) for where, text in outputs if any(spelling in text for spelling in _spellings())]
    if not boot:
        assert _environment(at)["HF_TOKEN"] == HUB
        assert _environment(at)["VLLM_API_KEY"] == KEY
    destroyed = at.run("destroy", "-auto-approve", "gemma.yaml")
    assert destroyed.code == 0
    assert CANARY not in destroyed.all


@pytest.mark.parametrize("key", [f"{KEY}\nX-Other: 1", f"{KEY}-ключ"])
def test_a_key_that_no_header_takes_is_refused_without_being_shown(cli: Open, key: str) -> None:
    at = cli(secrets={"hf-token": HUB, "vllm-key": key}, boot={"guest_attributes": False})
    at.write(KEYED)
    applied = at.run("apply", "-auto-approve", "gemma.yaml")
    assert applied.code == 1
    assert "vllm-key contains a character that is not allowed in an HTTP header" in applied.words
    assert CANARY not in applied.all


def _outputs(at: CommandLine, heard: list[str]) -> Iterator[tuple[str, bytes]]:
    """Everything that any part of it wrote, said or sent, but the container's environment."""
    yield "the terminal", "\n".join(heard).encode()
    for folder in (at.folder, at.emulator._folder):
        yield from ((str(path), path.read_bytes()) for path in _files(folder))
    yield "the requests", repr(at.emulator.requests).encode()
    for slice_ in at.emulator._cloud.slices.values():
        yield "the queued resource", json.dumps(slice_.body).encode()
    for node in at.emulator._cloud.nodes.values():
        yield "the node's metadata", json.dumps(node.spec).encode()
    for instance in at.emulator._cloud.instances.values():
        yield "the instance", json.dumps(instance.body).encode()
    for part in at.emulator._cloud.group_parts.values():
        yield "the policy or the template of a group", json.dumps(part.body).encode()
    for group in at.emulator._cloud.groups.values():
        yield "the group", json.dumps(group.body).encode()
    for hosts in at.emulator._cloud.hosts.values():
        for host in hosts:
            yield "the guest attributes", repr(host.guest_attributes).encode()
            yield "the console", host.log().encode()


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def _spellings() -> Iterator[bytes]:
    """The canary, and each way it can stand inside base64."""
    yield CANARY.encode()
    for shift in range(3):
        whole = base64.b64encode(b" " * shift + CANARY.encode())
        yield whole[4:-4]


def _environment(at: CommandLine) -> dict[str, str]:
    machine = next(host for hosts in at.emulator._cloud.hosts.values() for host in hosts)
    assert isinstance(machine, Machine)
    (container,) = machine._node.daemon.containers()
    return dict(container.environment)
