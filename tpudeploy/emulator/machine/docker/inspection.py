"""What `docker inspect` and `docker ps` print of a container, and the part of Go's templates that scripts use."""

from __future__ import annotations

import json
import re
import time
from typing import Any

from tpudeploy.emulator.machine import Unsupported
from tpudeploy.emulator.machine.docker.container import DockerContainer

FIELD = re.compile(r"\{\{\s*(json\s+)?((?:\.\w*)+)\s*\}\}")
MISSING = "<no value>"
MAPS = ("Labels",)  # elsewhere docker's client refuses an unknown field


def stamp(moment: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(moment))


def inspect(container: DockerContainer) -> dict[str, Any]:
    options = container.options
    code = container.exit_code
    return {
        "Id": container.id,
        "Name": f"/{container.name}",
        "Created": stamp(container.created),
        "Image": options.image,
        "State": {
            "Status": "running" if code is None else "exited",
            "Running": code is None,
            "Paused": False,
            "Restarting": False,
            "OOMKilled": False,
            "Dead": False,
            "ExitCode": code or 0,
            "Error": "",
            "StartedAt": stamp(container.created),
        },
        "RestartCount": 0,
        "Config": {
            "Image": options.image,
            "Cmd": list(options.command),
            "Env": [f"{name}={value}" for name, value in container.environment.items()],
            "Labels": dict(label.partition("=")[::2] for label in options.flags.get("label", ())),
        },
        "HostConfig": {
            "Binds": list(options.volumes),
            "NetworkMode": "host" if options.on_host_network else "bridge",
            "Privileged": "privileged" in options.switches,
        },
    }


def row(container: DockerContainer) -> dict[str, Any]:
    """Return the fields of one line of `docker ps`."""
    return {
        "ID": container.id[:12],
        "Image": container.options.image,
        "Command": json.dumps(" ".join(container.options.command)),
        "CreatedAt": stamp(container.created),
        "Status": "Up" if container.is_running else f"Exited ({container.exit_code})",
        "State": "running" if container.is_running else "exited",
        "Ports": "",
        "Names": container.name,
    }


def fill(template: str, tree: dict[str, Any]) -> str:
    """Return the template with its fields filled in. Raise Unsupported for anything but the stand-in's fields."""

    def value(match: re.Match[str]) -> str:
        path = [part for part in match[2].split(".") if part]
        reached: Any = tree
        for part in path:
            if not isinstance(reached, dict) or (part not in reached and path[-2:-1] not in ([name] for name in MAPS)):
                raise Unsupported(f"the field `{match[2]}`")
            reached = reached.get(part, MISSING)
        return json.dumps(reached) if match[1] else _as_go_prints(reached)

    if "{{" in FIELD.sub("", template):
        raise Unsupported(f"the template `{template}`")
    filled = FIELD.sub(value, template)
    return filled.replace("\\t", "\t").replace("\\n", "\n")


def _as_go_prints(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case list():
            return f"[{' '.join(map(str, value))}]"
        case dict():
            return f"map[{' '.join(f'{key}:{_as_go_prints(inner)}' for key, inner in sorted(value.items()))}]"
        case _:
            return str(value)
