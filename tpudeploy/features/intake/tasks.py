"""Take a task of SkyPilot, or a service or task of dstack, into a draft."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from tpudeploy import catalog
from tpudeploy.config.nodes import ListNode, MapNode, Node, ScalarNode
from tpudeploy.domain.diagnostics import Location
from tpudeploy.features.intake import tree
from tpudeploy.features.intake.draft import ProfileDraft
from tpudeploy.features.intake.launched import take_text
from tpudeploy.features.intake.shell import Word
from tpudeploy.features.intake.source import Stop

_GPUS = re.compile(r"(?i)(?:nvidia|amd|tesla|rtx|[abhlt]\d|gh200|gb\d|mi\d|gaudi|v100|p100|k80|p4\b)")
_SKY_KEYS = frozenset(
    {"run", "setup", "resources", "envs", "secrets", "service", "file_mounts", "num_nodes", "workdir"}
)
_SKY_READ = frozenset({"name", "run", "setup", "resources", "envs", "secrets", "service", "num_nodes", "config"})
_SKY_RESOURCES = frozenset(
    {
        *("accelerators", "accelerator_args", "use_spot", "zone", "region", "infra", "cloud", "disk_size", "ports"),
        *("image_id", "any_of", "ordered", "cpus", "memory", "disk_tier", "instance_type"),
    }
)
_DSTACK_TYPES = frozenset({"service", "task", "dev-environment"})
_DSTACK_READ = frozenset(
    {
        *("type", "name", "image", "env", "commands", "port", "ports", "resources", "spot_policy", "replicas", "model"),
        *(
            "regions",
            "max_duration",
            "volumes",
            "shell",
            "python",
            "https",
            "auth",
            "gateway",
            "backends",
            "privileged",
        ),
        *("entrypoint", "creation_policy", "idle_duration", "max_price", "fleets", "docker", "nvcc"),
    }
)
_LATER = "write it into the profile if you need it"


def is_sky(root: MapNode) -> bool:
    return bool(_SKY_KEYS & set(root.entries)) and ("run" in root.entries or "resources" in root.entries)


def is_dstack(root: MapNode) -> bool:
    return tree.text(root, "type") in _DSTACK_TYPES


def take_sky(draft: ProfileDraft, root: MapNode) -> None:
    """Take a task of SkyPilot."""
    draft.set_name(tree.text(root, "name"))
    resources = tree.at(root, "resources")
    _take_accelerators(draft, tree.at(resources, "accelerators"))
    for option in (*tree.items(resources, "any_of"), *tree.items(resources, "ordered")):
        if draft.kind is None:
            _take_accelerators(draft, tree.at(option, "accelerators"))
    image = tree.text(resources, "image_id")
    if image.startswith("docker:"):
        draft.set_image(Word(text=image))
    _take_sky_place(draft, resources)
    _take_sky_sizes(draft, resources)
    environment = _sky_variables(draft, root)
    run = tree.at(root, "run")
    _take_script(draft, run, tree.text(run), environment)
    if tree.text(root, "setup"):
        draft.leave(["setup"], "the image has the engine; add what else the server needs to serving.setup")
    _take_sky_service(draft, root)
    for key in root.entries:
        if key not in _SKY_READ:
            draft.note(f"`{key}`", "a profile copies no files: name a hub id or a bucket" if "mount" in key else _LATER)
    for key in tree.mapping(resources):
        if key not in _SKY_RESOURCES:
            is_stop = key in ("autostop", "job_recovery")
            draft.note(f"`resources.{key}`", "write lifecycle.idle and lifecycle.end" if is_stop else _LATER)


def _take_sky_place(draft: ProfileDraft, resources: Node | None) -> None:
    if tree.text(resources, "use_spot").lower() == "true":
        draft.set(("placement", "provisioning"), ["spot"])
    parts = tree.text(resources, "infra").split("/")
    zone = tree.text(resources, "zone") or (parts[2] if len(parts) > 2 else "")  # noqa: PLR2004 - cloud/region/zone
    region = tree.text(resources, "region") or (parts[1] if len(parts) > 1 else "")
    zones = [text for each in tree.items(resources, "any_of") if (text := tree.text(each, "zone"))]
    take_zones(draft, [zone] if zone else zones, region)
    version = tree.text(resources, "accelerator_args", "runtime_version")
    if version.startswith("v2-alpha"):
        draft.set(("tpu", "runtime_version"), version)
    cloud = tree.text(resources, "cloud") or parts[0]
    if cloud and cloud.lower() not in ("gcp", "*"):
        draft.note(f"`cloud: {cloud}`", "slices are Google Cloud's")


def _take_sky_sizes(draft: ProfileDraft, resources: Node | None) -> None:
    if (size := tree.number(resources, "disk_size")) is not None:
        draft.set(("tpu", "boot_disk_size"), f"{size}GiB")
    port = next(iter(tree.texts(resources, "ports")), "")
    if port.isdecimal():
        draft.set(("serving", "port"), int(port))


def _sky_variables(draft: ProfileDraft, root: MapNode) -> dict[str, str]:
    environment = {}
    for name, node in tree.mapping(root, "envs").items():
        is_empty = isinstance(node, ScalarNode) and (node.value is None or not node.text)
        if not is_empty:
            environment[name] = tree.text(node)
        _take_variable(draft, name, None if is_empty else tree.text(node), tree.text(root, "run"))
    for name, node in tree.mapping(root, "secrets").items():
        draft.add_secret(name, tree.text(node))
    return environment


def _take_sky_service(draft: ProfileDraft, root: MapNode) -> None:
    replicas = tree.number(root, "service", "replicas") or tree.number(
        root, "service", "replica_policy", "min_replicas"
    )
    if replicas is not None and replicas > 1:
        draft.set(("replicas",), replicas)
    if tree.at(root, "service", "replica_policy", "max_replicas") is not None:
        draft.note("`service.replica_policy`", "write scale: min, max and the load that adds a replica")
    if tree.at(root, "service", "readiness_probe") is not None:
        draft.leave(["service.readiness_probe"], "tpudeploy checks the server by itself; health.timeout limits a start")
    nodes = tree.number(root, "num_nodes")
    if nodes is not None and nodes > 1:
        draft.note(f"`num_nodes: {nodes}`", "a slice of several hosts is one of a larger tpu.type")


def take_dstack(draft: ProfileDraft, root: MapNode) -> None:
    """Take a service or a task of dstack."""
    draft.set_name(tree.text(root, "name"))
    resources = tree.at(root, "resources")
    _take_dstack_gpu(draft, tree.at(resources, "gpu"))
    if image := tree.text(root, "image"):
        draft.set_image(Word(text=image))
    commands = [tree.text(item) for item in tree.items(root, "commands")]
    script = "\n".join(" ".join(line.splitlines()) if "\\" not in line else line for line in commands)
    environment = _dstack_variables(draft, root, script)
    _take_script(draft, tree.at(root, "commands") or root, script, environment)
    _take_dstack_place(draft, root, resources)
    for key in root.entries:
        if key not in _DSTACK_READ:
            draft.note(f"`{key}`", _LATER)
    for key in ("max_price", "idle_duration"):
        if value := tree.text(root, key):
            own = "placement.max_price_per_chip_hour, which is of one chip" if key == "max_price" else "lifecycle.idle"
            draft.note(f"`{key}: {value}`", f"write {own}")


def _dstack_variables(draft: ProfileDraft, root: MapNode, script: str) -> dict[str, str]:
    environment: dict[str, str] = {}
    pairs: list[tuple[str, str | None]] = [
        (name, None if isinstance(node, ScalarNode) and node.value is None else tree.text(node))
        for name, node in tree.mapping(root, "env").items()
    ]
    for item in tree.items(root, "env"):
        name, equals, value = tree.text(item).partition("=")
        pairs.append((name, value if equals else None))
    for variable, own_value in pairs:
        if own_value is not None:
            environment[variable] = own_value
        _take_variable(draft, variable, own_value, script)
    return environment


def _take_dstack_gpu(draft: ProfileDraft, gpu: Node | None) -> None:
    name_node = tree.at(gpu, "name")
    names = [name for name in tree.texts(name_node if name_node is not None else gpu) if name]
    word = names[0] if names else ""
    name, _, count = word.partition(":")
    if name.lower().startswith("tpu:") or name.lower() == "tpu":
        name = count
    if name.lower() in ("tpu", "google", ""):
        return
    take_accelerator(draft, name, gpu)


def _take_dstack_place(draft: ProfileDraft, root: MapNode, resources: Node | None) -> None:
    policy = tree.text(root, "spot_policy")
    models = {"spot": ["spot"], "on-demand": ["on-demand"], "auto": ["spot", "on-demand"]}.get(policy)
    if models is not None:
        draft.set(("placement", "provisioning"), models)
    take_zones(draft, [], *tree.texts(root, "regions"))
    if re.fullmatch(r"[0-9]+[smhd]", duration := tree.text(root, "max_duration")):
        draft.set(("placement", "max_run_duration"), duration)
    if size := tree.text(resources, "shm_size"):
        draft.set(("serving", "shm_size"), size.replace(" ", "").lower())
    disk = re.match(r"([0-9]+)\s*GB", tree.text(resources, "disk") or tree.text(resources, "disk", "size"))
    if disk is not None:
        draft.set(("tpu", "boot_disk_size"), f"{disk[1]}GB")
    port = tree.texts(root, "port") or tree.texts(root, "ports")
    own = port[0].rpartition(":")[2] if port else ""
    if own.isdecimal() and ("serving", "port") not in draft.settings:
        draft.set(("serving", "port"), int(own))
    replicas = tree.text(root, "replicas")
    least = replicas.partition("..")[0]
    if least.isdecimal() and int(least) > 1:
        draft.set(("replicas",), int(least))
    if ".." in replicas:
        draft.note(f"`replicas: {replicas}`", "write scale: min, max and the load that adds a replica")
    for item in tree.items(root, "volumes"):
        volume = tree.text(item) or f"{tree.text(item, 'name')}:{tree.text(item, 'path')}"
        host, _, container = volume.rpartition(":")
        draft.add_volume(host, container, origin=f"volume `{volume}`")


def _take_variable(draft: ProfileDraft, name: str, value: str | None, script: str) -> None:
    """Take a variable of a task; one that its own command is written with is filled in there."""
    is_used = re.search(rf"\$\{{?{re.escape(name)}\b", script) is not None
    word = None if value is None else Word(text=value)
    before = len(draft.notes)
    draft.add_variable(name, word)
    if is_used and ("serving", "env", name) in draft.settings:
        draft.drop_filled(name)
    elif is_used and name not in draft.secrets and word is None:
        del draft.notes[before:]  # what is written with it says so


def _take_script(draft: ProfileDraft, node: Node | None, script: str, environment: Mapping[str, str]) -> None:
    """Take the commands of a task. A place in them is that of the whole text."""
    draft.model_at = None if node is None else node.at
    try:
        take_text(draft, script, environment)
    except Stop as stop:
        raise Stop(stop.message, hint=stop.hint, at=_line_of(node, script, stop)) from stop
    draft.notes = list(dict.fromkeys(draft.notes))


def _line_of(node: Node | None, script: str, stop: Stop) -> Location | None:
    if stop.at is not None or node is None:
        return stop.at
    here = script[stop.start : stop.end].strip()
    place = node.items[0].place if isinstance(node, ListNode) and node.items else node.place
    source = place.source
    offset = source.text.find(here) if here else -1
    return source.location_of(offset, offset + len(here.splitlines()[0])) if offset >= 0 and here else node.at


def _take_accelerators(draft: ProfileDraft, node: Node | None) -> None:
    """Take what SkyPilot's `accelerators` has: a name, NAME:COUNT, or a list or a mapping of them."""
    match node:
        case MapNode():
            names: Iterable[str] = node.entries
        case None:
            return
        case _:
            names = tree.texts(node)
    tpus = [name for name in names if "tpu" in name.lower()]
    if not tpus:
        draft.leave(names, "a TPU slice takes the place of GPUs")
        draft.is_of_gpus = True
        return
    for name in tpus[1:]:
        draft.note(f"`{name}`", "the first slice of the list is taken")
    take_accelerator(draft, tpus[0].rpartition(":")[0] if re.search(r":\d+$", tpus[0]) else tpus[0], node)


def take_accelerator(draft: ProfileDraft, name: str, node: Node | None) -> None:
    """Take an accelerator by the name that another tool has for it. Raise Stop for a slice that is not known."""
    word = name.lower()
    if "tpu" not in word and (_GPUS.match(word) or not re.match(r"v\d", word)):
        draft.leave([name], "a TPU slice takes the place of GPUs")
        draft.is_of_gpus = True
        return
    try:
        draft.set_type(word if word.startswith("tpu7x") else word.removeprefix("tpu-"))
    except Stop as stop:
        raise Stop(stop.message, hint=stop.hint, at=None if node is None else node.at) from stop


def take_zones(draft: ProfileDraft, zones: list[str], *regions: str) -> None:
    choices = [zone for zone in zones if zone] or [
        zone for region in regions for zone in catalog.zones_of_region(region)
    ]
    if choices:
        draft.set(("placement", "zones"), choices)
    elif any(regions):
        draft.note(f"`{', '.join(filter(None, regions))}`", "no zone of it has TPUs; every zone is tried")
