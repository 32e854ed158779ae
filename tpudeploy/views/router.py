"""The text of `render PROFILE router`: what the router reads, how it is run, and a systemd unit for it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator

from tpudeploy.catalog.routers import ROUTERS
from tpudeploy.domain.router import RoutedReplica, Router
from tpudeploy.node.router_configuration import configuration


def rendered(
    router: Router, replicas: Iterable[RoutedReplica], name: str, *, program: str, folder: str, backend: str
) -> str:
    """Return the files of the router of the deployment `name`, its command, and a unit.

    `program` runs tpudeploy, in the project's `folder` and with the states in `backend`, "" for that folder.
    """
    return "\n".join(_lines(router, tuple(replicas), name, program=program, folder=folder, backend=backend))


def _lines(
    router: Router, replicas: tuple[RoutedReplica, ...], name: str, *, program: str, folder: str, backend: str
) -> Iterator[str]:
    facts, new = ROUTERS[router.kind], configuration(router, replicas, name)
    option = f" --backend {shlex.quote(backend)}" if backend else ""
    yield f"# {name}: {router.kind} at {router.url}, with {len(replicas)} replicas that take requests now."
    if replicas:
        yield f"# Their addresses are as endpoints/{name}.json has them, not confirmed: `tpudeploy router` asks Google."
    yield f"# Install it: {facts.install}"
    yield f"# `tpudeploy router {name}{option}` writes these files, keeps their list of replicas current, and runs it:"
    yield f"# {shlex.join(new.command)}"
    for path, text in new.files.items():
        yield f"\n# ---- {path} ----"
        yield text.removesuffix("\n")
    yield f"\n# ---- /etc/systemd/system/tpudeploy-router-{name}.service ----"
    yield f"""\
[Unit]
Description=The router of {name}
After=network-online.target
Wants=network-online.target

[Service]
WorkingDirectory={folder.replace("%", "%%")}
ExecStart={program} router {name}{option}
Restart=always
RestartSec=5
# Only tpudeploy gets the signal: it lets the router end its responses.
KillMode=mixed
TimeoutStopSec=200

[Install]
WantedBy=multi-user.target"""
