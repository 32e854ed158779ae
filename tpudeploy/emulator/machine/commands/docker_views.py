"""docker's subcommands that show containers: ps and inspect."""

from __future__ import annotations

import fnmatch
import json
import re
from collections.abc import Sequence

from tpudeploy.emulator.machine.commands.call import Call, Outcome, done
from tpudeploy.emulator.machine.commands.docker_words import read
from tpudeploy.emulator.machine.docker import inspection
from tpudeploy.emulator.machine.docker.container import Container
from tpudeploy.emulator.machine.docker.daemon import DaemonError

DEFAULT_ROW = "{{.ID}}   {{.Image}}   {{.Command}}   {{.CreatedAt}}   {{.Status}}   {{.Ports}}   {{.Names}}"


def ps(call: Call, words: tuple[str, ...]) -> Outcome:
    asked = read(words, switches="all=a quiet=q", values="filter=f format")
    shown = [
        container
        for container in call.node.daemon.containers()
        if (container.is_running or "all" in asked.options) and _passes(container, asked.options.get("filter", ()))
    ]
    if "quiet" in asked.options:
        return done("".join(f"{container.id[:12]}\n" for container in shown))
    template = asked.value("format") or DEFAULT_ROW
    heading = "" if "format" in asked.options else "CONTAINER ID   IMAGE   COMMAND   CREATED   STATUS   PORTS   NAMES\n"
    return done(heading + "".join(f"{inspection.fill(template, inspection.row(c))}\n" for c in shown))


def _passes(container: Container, filters: Sequence[str]) -> bool:
    facts = inspection.row(container)
    for written in filters:
        kind, _, wanted = written.partition("=")
        match kind:
            case "name":
                passes = re.search(wanted, container.name) is not None
            case "status":
                passes = facts["State"] == wanted
            case "ancestor":
                passes = container.options.image == wanted
            case "label":
                passes = any(fnmatch.fnmatch(label, wanted + "*") for label in container.options.flags.get("label", ()))
            case _:
                raise DaemonError(f"invalid filter '{kind}'")
        if not passes:
            return False
    return True


def inspect(call: Call, words: tuple[str, ...]) -> Outcome:
    asked = read(words, values="format=f")
    known = {name for c in call.node.daemon.containers() for name in (c.name, c.id, c.id[:12])}
    absent = [name for name in asked.targets if name not in known]
    if absent:
        nothing = b"\n" if "format" in asked.options else b"[]\n"
        return Outcome(1, nothing, "".join(f"Error: No such object: {name}\n" for name in absent).encode())
    trees = [inspection.inspect(call.node.daemon.find(name)) for name in asked.targets]
    template = asked.value("format")
    if template is not None:
        return done("".join(f"{inspection.fill(template, tree)}\n" for tree in trees))
    return done(json.dumps(trees, indent=4) + "\n")
