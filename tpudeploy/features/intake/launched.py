"""Take into a draft what shell text starts: a container, its engine, and the slice that the text creates for it."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence

from tpudeploy import catalog
from tpudeploy.features.intake.docker_run import ContainerOptions, mount_of
from tpudeploy.features.intake.draft import ProfileDraft
from tpudeploy.features.intake.engine_args import why_unknown
from tpudeploy.features.intake.launch import GcloudSlice, Launch, find_launches
from tpudeploy.features.intake.shell import Word, read_commands
from tpudeploy.features.intake.source import Note, Stop

_STARTED = "tpudeploy starts the container with the machine's network and its TPUs, and keeps it running"
# Options of docker that say how a container is run, not what it is.
_UNNEEDED = frozenset(
    {
        *(
            "net",
            "network",
            "ipc",
            "pid",
            "restart",
            "gpus",
            "runtime",
            "device",
            "ulimit",
            "cap-add",
            "cap-drop",
            "pull",
        ),
        *(
            "security-opt",
            "log-driver",
            "log-opt",
            "platform",
            "hostname",
            "user",
            "stop-timeout",
            "stop-signal",
            "name",
        ),
        *(
            "memory",
            "cpus",
            "cpuset-cpus",
            "oom-score-adj",
            "group-add",
            "label",
            "expose",
            "attach",
            "workdir",
            "health-cmd",
        ),
    }
)
_READ = frozenset({"env-file", "env", "volume", "mount", "publish", "shm-size", "entrypoint", "tmpfs"})
_SWITCHES: Mapping[str, str] = {"d": "-d", "i": "-i", "t": "-t", "P": "-P", "q": "-q", "x": "-x"}
_PORT = re.compile(
    r"(?:(?P<address>[0-9]+\.[0-9.]+|\[[^\]]*\]):)?(?:(?P<host>[0-9]+):)?(?P<container>[0-9]+)(?:/(?P<protocol>\w+))?"
)
_DEFAULT_PORT, _LINE = 8000, 60
_IMAGE_HAS_IT = re.compile(r"install\b.*\b(?:vllm|vllm-tpu|torch_xla|torch-xla|jax|libtpu|torch|requirements)\b|apt")


def take_text(draft: ProfileDraft, text: str, environment: Mapping[str, str] | None = None) -> None:
    """Take what shell text starts. Raise Stop where it cannot be read, or starts no server.

    `environment` are the variables that its shell has.
    """
    launches = find_launches(text, environment)
    for note in launches.notes:
        draft.note(note.subject, note.reason)
    for request in launches.slices:
        take_slice(draft, request)
    servers = launches.servers
    if not servers:
        _take_bare_container(draft, launches.launches)
        return
    first = servers[0]
    take_server(draft, first, [each for each in launches.launches if each.arguments is None])
    for other in servers[1:]:
        if other.arguments != first.arguments:
            line = 1 + text.count("\n", 0, other.at.start)
            draft.note(f"`{other.at.text} …` on line {line}", "it starts another server: a profile has one")


def _take_bare_container(draft: ProfileDraft, launches: Sequence[Launch]) -> None:
    """Take a container whose image has the words of the engine from a variable. Raise Stop for another one."""
    first = next((each for each in launches if each.container is not None), None)
    hint = "what is read is `docker run`, `vllm serve`, and `python -m vllm.entrypoints.openai.api_server`"
    if first is None or first.container is None:
        raise Stop("There is no command that starts vLLM", hint=hint)
    take_container(draft, first.container)
    words = {name: word.text.strip().removeprefix(">") for name, word in _variables(first.container).items()}
    if not take_arguments_variable(draft, words):
        raise Stop("This container starts no vLLM", first.at.start, first.at.end, hint=hint)


def take_server(draft: ProfileDraft, server: Launch, others: list[Launch], *, is_contained: bool = False) -> None:
    """Take one server. One that starts by itself runs in the container that another command started."""
    container = server.container or next((each.container for each in others), None)
    if container is not None:
        take_container(draft, container)
    for name, word in server.variables.items():
        draft.add_variable(name, word)
    draft.add_arguments(server.arguments or ())
    if container is not None:
        publish(draft, container.all("publish"))
    setup = []
    for command in server.setup:
        if _IMAGE_HAS_IT.search(command):
            draft.leave(
                [textwrap.shorten(command, _LINE, placeholder="…")], "the image has the engine and its libraries"
            )
        else:
            setup.append(command)
    if setup and (container is not None or is_contained):
        draft.set(("serving", "setup"), setup)
    elif setup:
        draft.leave(setup, "add it to serving.setup if the server needs it")


def take_container(draft: ProfileDraft, container: ContainerOptions) -> None:
    draft.set_image(container.image)
    if (name := container.last("name")) is not None:
        draft.set_name(name.text)
    for variable, value in _variables(container).items():
        draft.add_variable(variable, value if value.text or value.end else None)
    if (size := container.last("shm-size")) is not None:
        draft.set(("serving", "shm_size"), size.text)
    _take_mounts(draft, container)
    options = [f"--{name}" for name in container.options if name in _UNNEEDED]
    switches = [_SWITCHES.get(name, f"--{name}") for name in container.switches]
    draft.leave([*options, *switches], _STARTED)
    for word in container.all("env-file"):
        draft.note(f"`--env-file {word.text}`", "variables of another file are not read: write serving.env and secrets")
    for option in container.options.keys() - _READ - _UNNEEDED:
        draft.note(f"`--{option} {container.all(option)[0].text}`", "a profile has nothing for it")


def _take_mounts(draft: ProfileDraft, container: ContainerOptions) -> None:
    for word in container.all("volume"):
        take_volume(draft, word)
    for word in container.all("mount"):
        kind, source, target = mount_of(word)
        if kind == "tmpfs":
            draft.note(f"`--mount {word.text}`", "write serving.shm_size for a file system in memory")
        else:
            draft.add_volume(source, target, origin=f"`--mount {word.text}`")


def _variables(container: ContainerOptions) -> dict[str, Word]:
    """Return the variables of a container; one without a value, which docker takes from its caller, has no place."""
    launches: dict[str, Word] = {}
    for word in container.all("env"):
        name, equals, value = word.text.partition("=")
        launches[name] = (
            Word(text=value, start=word.start, end=word.end, unknown=word.unknown) if equals else Word(text="")
        )
    return launches


def take_arguments_variable(draft: ProfileDraft, variables: Mapping[str, str]) -> bool:
    """Take the words of the engine from a variable, as images have it whose entrypoint reads one: VLLM_ARGS."""
    for name, text in variables.items():
        if name.endswith("ARGS") and "--model" in text:
            commands = read_commands(text)
            draft.settings.pop(("serving", "env", name), None)
            draft.notes = [note for note in draft.notes if note.subject != name]
            draft.add_arguments(commands[0].words if commands else ())
            return True
    return False


def take_volume(draft: ProfileDraft, word: Word) -> None:
    """Take a volume as docker and compose write it: HOST:CONTAINER[:OPTIONS]."""
    if word.unknown and re.search(r"[$`<]", word.text.rpartition(":")[2]):
        draft.note(f"`{word.text}`", why_unknown(word, "serving.volumes"))
        return
    text = re.sub(r":(?:ro|rw|z|Z|cached|delegated|consistent|nocopy|rshared|rslave|rprivate)(?:,\w+)*$", "", word.text)
    host, colon, container = text.rpartition(":")
    if not colon:
        draft.add_volume("", container, origin=f"`{word.text}`")
        return
    draft.add_volume(host, container)


def publish(draft: ProfileDraft, ports: tuple[Word, ...]) -> None:
    """Take the port of the endpoint: the one of the host that leads to the server's own."""
    own = draft.settings.get(("serving", "port"), _DEFAULT_PORT)
    for word in ports:
        match = _PORT.fullmatch(word.text)
        if word.unknown or match is None:
            draft.note(
                f"`-p {word.text}`", why_unknown(word, "serving.port") if word.unknown else "it's no single port"
            )
        elif int(match["container"]) != own:
            draft.note(f"`-p {word.text}`", f"the server listens on {own}, and a profile publishes no other port")
        elif match["host"] and int(match["host"]) != own:
            draft.set(
                ("serving", "port"),
                int(match["host"]),
                f"published as {word.text}: the container has the machine's network",
            )
        if match is not None and match["address"] and match["address"] not in ("0.0.0.0", "[::]"):  # noqa: S104 - an address to compare with
            draft.note(
                f"`-p {word.text}`",
                "the endpoint is the machine's own address; placement.network and the firewall limit who reaches it",
            )


def take_slice(draft: ProfileDraft, request: GcloudSlice) -> None:
    """Take the slice that gcloud creates."""
    type_word = request.options.get("accelerator-type") or request.options.get("machine-type")
    if type_word is None and "type" in request.options and "topology" in request.options:
        pair = (request.options["type"].text.lower(), request.options["topology"].text)
        set_topology(draft, *pair, start=request.options["type"].start, end=request.options["type"].end)
    elif type_word is not None and not type_word.unknown:
        try:
            draft.set_type(type_word.text, start=type_word.start, end=type_word.end)
        except Stop:
            if "tpu" in type_word.text or re.match(r"v\d", type_word.text):
                raise
    zone = request.options.get("zone")
    if zone is not None and not zone.unknown:
        draft.set(("placement", "zones"), [zone.text])
    elif zone is not None:
        draft.note("`--zone`", f"{why_unknown(zone, 'placement.zones')}; every zone is tried")
    _take_placement(draft, request)


def _take_placement(draft: ProfileDraft, request: GcloudSlice) -> None:
    project, version = (
        request.options.get("project"),
        request.options.get("version") or request.options.get("runtime-version"),
    )
    if project is not None and not project.unknown:
        draft.set(("placement", "project"), project.text)
    if version is not None and not version.unknown:
        draft.set(("tpu", "runtime_version"), version.text)
    if {"spot", "preemptible", "best-effort"} & {*request.switches, *request.options}:
        draft.set(("placement", "provisioning"), ["spot"])
    duration = request.options.get("max-run-duration")
    if duration is not None and re.fullmatch(r"[0-9]+[smhd]", duration.text):
        draft.set(("placement", "max_run_duration"), duration.text)
    model = request.options.get("provisioning-model")
    if model is not None and model.text.lower().replace("_", "-") in ("flex-start", "spot"):
        draft.set(("placement", "provisioning"), [model.text.lower().replace("_", "-")])
    if "reserved" in request.switches or "reservation" in request.options:
        draft.notes.append(Note(subject="`--reserved`", reason="write placement.reservation with its full name"))
    if (account := request.options.get("service-account")) is not None and not account.unknown:
        draft.set(("placement", "service_account"), account.text)


def set_topology(draft: ProfileDraft, generation: str, topology: str, **place: int) -> None:
    """Take a slice by generation and topology. Raise Stop where the catalogue has none."""
    if draft.is_type_given:
        return
    kind = catalog.type_of_topology(generation, topology)
    if kind is None:
        environment = ", ".join(each.topology for each in catalog.types_of(generation))
        hint = (
            f"there are {environment}; --type names a slice instead" if environment else "--type names a slice instead"
        )
        raise Stop(f"The catalogue has no {generation} slice of topology {topology}", **place, hint=hint)  # type: ignore[arg-type]  # start and end
    draft.kind = kind
