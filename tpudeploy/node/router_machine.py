"""The VM of a router, as a deployment of one ordinary machine: attributes, startup script, list of replicas.

It is requested, observed, replaced and released as a slice is, by the same steps. The list of replicas is a value of
its metadata that changes while it runs.

Why: decision 75 in docs/decisions.md.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from tpudeploy.catalog import routers
from tpudeploy.catalog.routers import ROUTERS
from tpudeploy.domain.accelerator import AcceleratorType
from tpudeploy.domain.budget import Unsized
from tpudeploy.domain.deployment import API_KEY, Candidate, Deployment, Json, Lifecycle, Provisioning, Script
from tpudeploy.domain.diagnostics import Location
from tpudeploy.domain.ending import EndCause
from tpudeploy.domain.names import Zone
from tpudeploy.domain.router import RoutedReplica, Router, RouterHost, RouterKind
from tpudeploy.domain.state import Attempt, State
from tpudeploy.node import render
from tpudeploy.node.fingerprint import server_print
from tpudeploy.node.own_end import sees_all_requests
from tpudeploy.node.router_configuration import Configuration, configuration

LIST_KEY = "tpudeploy-replicas"  # of the metadata: the text of the file that the router reads
_DISK_GIB = 10
# From the grant to a completion through the router: a boot of a minute, and the download of a program.
_START_SECONDS = 900.0
_ANY_ADDRESS = "0.0.0.0"  # noqa: S104 - the firewall of the network decides who reaches the VM
# Attributes of the replicas that the VM has too.
_SHARED = (
    *("placement.project", "placement.network.", "placement.service_account", "placement.labels."),
    *(EndCause.END, EndCause.HOURS),
)


def router_machine(deployment: Deployment, router: Router, templates: Mapping[str, str]) -> Deployment:
    """Return the VM that runs the router of `deployment`."""
    machine, attributes = router.machine, dict(_attributes(deployment, router))
    key = deployment.container.api_key
    secrets = () if key is None else (key,)

    def render_script() -> str:
        return _script(deployment, router, templates, server_print(attributes))

    return replace(
        deployment,
        replicas=1,
        accelerator=AcceleratorType(
            name=machine,
            generation="",
            topology="",
            chips=1,
            hosts=1,
            host_ram_gib=routers.MACHINES[machine].memory_gib,
            machine_type=machine,
            backends=(routers.BACKEND,),
        ),
        runtimes={routers.BACKEND: routers.IMAGE_FAMILY},
        boot_disk_gib=_DISK_GIB,
        candidates=tuple(_candidate(machine, place.zone) for place in deployment.candidates),
        max_parallel_requests=1,
        reservation=None,
        max_run_seconds=None,
        container=replace(deployment.container, port=router.port, secrets=secrets, hosts=1),
        health=replace(deployment.health, timeout_seconds=_START_SECONDS),
        lifecycle=Lifecycle(
            prevent_destroy=False,
            create_before_destroy=True,
            ignore_changes=(),
            drain_seconds=deployment.lifecycle.drain_seconds,
            end=deployment.lifecycle.end,
            idle=deployment.lifecycle.idle if sees_all_requests(deployment) else None,
            hours=deployment.lifecycle.hours,
        ),
        compile_cache=None,
        mirror=None,
        router=None,
        startup_script=Script(render_script),
        attributes=attributes,
        budget=Unsized(because="a router loads no model"),
        origins=dict(_origins(deployment, attributes)),
    )


def machine_near(machine: Deployment, state: State) -> Deployment:
    """Return the VM with the places to request it in: where it is, then where replicas are, then all of the profile."""
    zones = [attempt.zone for attempt in state.router.attempts]
    zones += [each.zone for each in sorted(state.slice_attempts, key=lambda attempt: attempt.granted_at is None)]
    zones += [candidate.zone for candidate in machine.candidates]
    return replace(
        machine, candidates=tuple(_candidate(machine.accelerator.machine_type, zone) for zone in dict.fromkeys(zones))
    )


def machine_of(machine: Deployment, attempt: Attempt) -> Deployment:
    """Return the VM as this one was made: while another one replaces it, it serves at its own port."""
    router = router_on(attempt)
    port = machine.container.port if router is None else router.port
    return replace(machine, container=replace(machine.container, port=port))


def router_on(attempt: Attempt, address: str = "") -> Router | None:
    """Return the router on a VM, as the VM was made, or None if that is not known."""
    spec = attempt.spec
    port = spec.get("vm.port")
    if not isinstance(port, int):
        return None
    return Router(
        kind=RouterKind(str(spec["vm.router"])),
        host=RouterHost.VM,
        address=address,
        port=port,
        policy=str(spec["vm.policy"]),
        model=str(spec["vm.model"]),
        machine=str(spec["vm.machine"]),
    )


def list_text(router: Router, replicas: Iterable[RoutedReplica], name: str) -> str:
    """Return the list of replicas as the router of the deployment `name` reads it on its VM."""
    new = _configuration(router, replicas, name)
    return new.files[new.list_path]


def _configuration(router: Router, replicas: Iterable[RoutedReplica], name: str) -> Configuration:
    return configuration(replace(router, address=_ANY_ADDRESS), replicas, name)


def _candidate(machine: str, zone: Zone) -> Candidate:
    return Candidate(
        zone=zone,
        provisioning=Provisioning.ON_DEMAND,
        usd_per_chip_hour=routers.usd_per_hour(machine, zone.region),
        backend=routers.BACKEND,
    )


def _attributes(deployment: Deployment, router: Router) -> Iterator[tuple[str, Json]]:
    """Yield what the VM is made of. Another value of `vm` is another VM; labels and tags are updated."""
    for path, value in deployment.attributes.items():
        if path.startswith(_SHARED) or (path == EndCause.IDLE and sees_all_requests(deployment)):
            yield path, value
    facts = ROUTERS[router.kind]
    yield "placement.backend", routers.BACKEND.value
    yield "vm.machine", router.machine
    yield "vm.image", routers.IMAGE_FAMILY
    yield "vm.router", router.kind.value
    yield "vm.program", facts.requirement or f"{facts.packages[0]} of {routers.IMAGE_FAMILY}"
    yield "vm.port", router.port
    yield "vm.policy", router.policy or facts.policies[0]
    yield "vm.model", router.model
    if deployment.container.api_key is not None:
        yield "vm.api_key", deployment.container.api_key.secret


_WRITTEN_AS = {
    "vm.machine": "router.machine",
    "vm.router": "router.kind",
    "vm.port": "router.port",
    "vm.policy": "router.policy",
    "vm.api_key": f"secrets.{API_KEY}",
}


def _origins(deployment: Deployment, attributes: Mapping[str, Json]) -> Iterator[tuple[str, Location]]:
    for path in attributes:
        origin = deployment.origin(_WRITTEN_AS.get(path, path))
        if origin is not None:
            yield path, origin


def _script(deployment: Deployment, router: Router, templates: Mapping[str, str], spec: str) -> str:
    facts, new = ROUTERS[router.kind], _configuration(router, (), deployment.name)
    fixed = {path: text for path, text in new.files.items() if path != new.list_path}
    key = deployment.container.api_key
    values = {
        "spec": shlex.quote(spec),
        "name": shlex.quote(deployment.name),
        "port": router.port,
        "patience": math.ceil(_START_SECONDS),
        **render.question_values(deployment, () if key is None else (key,)),
        "packages": [shlex.quote(package) for package in facts.packages],
        "requirement": shlex.quote(facts.requirement),
        "command": [shlex.quote(word) for word in new.command],
        "files": {shlex.quote(path): shlex.quote(text) for path, text in fixed.items()},
        "list_path": shlex.quote(new.list_path),
        "reloads": bool(new.reloaded),
    }
    return render.template("router.sh.j2", tuple(templates.items())).render(templates=templates, **values)
