"""`docker` as a startup script calls it: a row for each subcommand."""

from __future__ import annotations

import fnmatch
import json
import math
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tpudeploy.emulator.machine import Unsupported
from tpudeploy.emulator.machine.commands import CommandCall, CommandResult, failure, success
from tpudeploy.emulator.machine.docker import daemon, inspection, run_options
from tpudeploy.emulator.machine.docker.container import DockerContainer
from tpudeploy.emulator.machine.docker.daemon import DaemonError
from tpudeploy.emulator.machine.docker.run_options import DockerUsageError, OptionTable, UnknownFlag

VERSION = "27.5.1"
DEFAULT_ROW = "{{.ID}}   {{.Image}}   {{.Command}}   {{.CreatedAt}}   {{.Status}}   {{.Ports}}   {{.Names}}"


def docker(call: CommandCall) -> CommandResult:
    words = call.words
    if words[:1] in {("image",), ("container",)} and len(words) > 1:
        words = (" ".join(words[:2]), *words[2:])
    name = words[0] if words else ""
    name = ALIASES.get(name, name)
    if name not in SUBCOMMANDS:
        raise Unsupported(f"`{name}`")
    try:
        return SUBCOMMANDS[name](call, words[1:])
    except Unsupported as cause:
        raise Unsupported(f"{cause} of `{name}`") from cause
    except DaemonError as error:
        return failure(1, f"Error response from daemon: {error}\n")
    except DockerUsageError as error:
        return failure(125, f"docker: {error}\n")


@dataclass(frozen=True, slots=True)
class Words:
    """A subcommand's words: `options` by their long names with every value, then the names they apply to."""

    options: Mapping[str, tuple[str, ...]]
    targets: tuple[str, ...]

    @property
    def target(self) -> str:
        if len(self.targets) != 1:
            raise DockerUsageError(f"requires exactly 1 argument, not {len(self.targets)}.")
        return self.targets[0]

    def value(self, name: str) -> str | None:
        """Return the last value of an option; None where the option is absent."""
        return self.options[name][-1] if name in self.options else None


def read(words: Sequence[str], switches: str = "", values: str = "") -> Words:
    """Return the words by their meaning.

    `switches` and `values` name the options that the stand-in honours, each with its letter, as in "all=a quiet=q".
    Raise Unsupported for any other, DockerUsageError for a missing value.
    """
    pairs = [word.partition("=")[::2] for word in f"{switches} {values}".split()]
    valued = {word.partition("=")[0] for word in values.split()}
    table = OptionTable(
        letters={letter: name for name, letter in pairs if letter},
        switches={name for name, _ in pairs} - valued,
        values=valued,
    )
    options: dict[str, tuple[str, ...]] = {}
    targets: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not word.startswith("-") or word == "-":
            targets.append(word)
            continue
        try:
            for name, value in table.read(word, rest):
                options[name] = (*options.get(name, ()), value)
        except UnknownFlag as unknown:
            raise Unsupported(f"`{unknown.flag}`") from unknown
    return Words(options, tuple(targets))


def pull(call: CommandCall, words: tuple[str, ...]) -> CommandResult:
    image = read(words, switches="quiet=q").target
    call.node.daemon.pull(image)
    return success(f"Status: Downloaded newer image for {image}\n{image}\n")


def login(call: CommandCall, words: tuple[str, ...]) -> CommandResult:
    order = read(words, switches="password-stdin", values="username=u password=p")
    registry = (order.targets or ("index.docker.io",))[0].removeprefix("https://").rstrip("/")
    by_pipe = "password-stdin" in order.options
    password = call.command.stdin.decode().strip() if by_pipe else order.value("password")
    if order.value("username") != "oauth2accesstoken" or password != call.node.token:
        raise DaemonError(f"Get https://{registry}/v2/: denied: Unauthenticated request.")
    call.node.daemon.registries.add(registry)
    return success("Login Succeeded\n")


def image_inspect(call: CommandCall, words: tuple[str, ...]) -> CommandResult:
    order = read(words, values="format=f")
    image = order.target
    if image not in call.node.daemon.images:
        return failure(1, f"Error response from daemon: No such image: {image}\n")
    folder, slash, name = image.partition("@")[0].rpartition("/")
    tree = {
        "Id": f"sha256:{zlib.crc32(image.encode()):064x}",
        "RepoTags": [image],
        "RepoDigests": [f"{folder}{slash}{name.partition(':')[0]}@sha256:{daemon.digest(image)}"],
    }
    template = order.value("format")
    return success((json.dumps([tree]) if template is None else inspection.fill(template, tree)) + "\n")


def version(call: CommandCall, words: tuple[str, ...]) -> CommandResult:  # noqa: ARG001 - one signature for the table
    read(words)
    return success(f"Client:\n Version:    {VERSION}\n\nServer:\n Engine:\n  Version:  {VERSION}\n")


def client_version(call: CommandCall, words: tuple[str, ...]) -> CommandResult:  # noqa: ARG001 - one signature for the table
    return success(f"Docker version {VERSION}, the emulator's stand-in\n")


def run(call: CommandCall, words: tuple[str, ...]) -> CommandResult:
    options = run_options.parse(words)
    node = call.node
    notice = ""
    try:
        if options.image not in node.daemon.images:
            notice = f"Unable to find image '{options.image}' locally\n"
            node.daemon.pull(options.image)
        container = node.daemon.create(options, ("docker", "run", *words), call.command.environment)
    except DaemonError as error:
        return failure(125, f"{notice}docker: Error response from daemon: {error}\n")
    node.daemon.catch_up()
    if "detach" in options.switches:
        return CommandResult(0, f"{container.id}\n".encode(), notice.encode())
    _await_end(call, container)
    outcome = CommandResult(container.exit_code or 0, container.log())
    if "rm" in options.switches:
        node.daemon.remove(container)
    return outcome


def execute(call: CommandCall, words: tuple[str, ...]) -> CommandResult:
    """Stand in for the commands that startup scripts run in a container of Ray, by the name that they give bash as $0.

    Nothing of the words is run: the server's are read for what they ask of the stand-in.
    """
    match words[1:]:
        case ["python3", "-c", script] if "ray.nodes()" in script:
            verb, rest = _NODES, list[str]()
        case [_, "-c", _, verb, *rest] if verb in _IN_CONTAINER:
            pass
        case _:
            raise Unsupported("this command")
    container = call.node.daemon.find(words[0])
    if not container.is_running:
        raise DaemonError(f"container {container.id} is not running")
    if container.program != "ray":
        raise Unsupported("a container without Ray")
    return _IN_CONTAINER[verb](call, container, tuple(rest))


def _nodes(call: CommandCall, container: DockerContainer, words: tuple[str, ...]) -> CommandResult:  # noqa: ARG001 - one signature for the table
    return success("".join(f"{node}\n" for node in call.node.daemon.ray_nodes(container)))


def _start_server(call: CommandCall, container: DockerContainer, words: tuple[str, ...]) -> CommandResult:
    call.node.daemon.start_server(container, words)
    call.node.daemon.catch_up()
    return success("")


def _server_state(call: CommandCall, container: DockerContainer, words: tuple[str, ...]) -> CommandResult:  # noqa: ARG001 - one signature for the table
    server = call.node.daemon.server_of(container)
    if server is None:
        return success("false unknown")
    return success("true 0" if server.is_running else f"false {server.exit_code}")


def _stop_server(call: CommandCall, container: DockerContainer, words: tuple[str, ...]) -> CommandResult:  # noqa: ARG001 - one signature for the table
    server = call.node.daemon.server_of(container)
    if server is not None:
        server.stop()
    return success("")


_NODES = "tpudeploy-nodes"
_IN_CONTAINER: Mapping[str, Callable[[CommandCall, DockerContainer, tuple[str, ...]], CommandResult]] = {
    _NODES: _nodes,
    "tpudeploy-start": _start_server,
    "tpudeploy-state": _server_state,
    "tpudeploy-stop": _stop_server,
}


def _await_end(call: CommandCall, container: DockerContainer) -> None:
    call.node.sleepers.wait(math.inf, woken=lambda: not container.is_running)


def remove(call: CommandCall, words: tuple[str, ...]) -> CommandResult:
    order = read(words, switches="force=f volumes=v")
    force = "force" in order.options

    def remove_one(container: DockerContainer) -> None:
        if container.is_running and not force:
            raise DaemonError(f'cannot remove container "/{container.name}": container is running: stop it first')
        call.node.daemon.remove(container)

    return _for_each(call, order.targets, remove_one, absent_is_fine=force)


def stop(call: CommandCall, words: tuple[str, ...]) -> CommandResult:
    return _for_each(call, read(words, values="time=t").targets, DockerContainer.stop)


def start(call: CommandCall, words: tuple[str, ...]) -> CommandResult:
    def start_one(container: DockerContainer) -> None:
        if not container.is_running:
            container.stop()
            container.start()
            call.node.daemon.catch_up()

    return _for_each(call, read(words).targets, start_one)


def _for_each(
    call: CommandCall,
    names: tuple[str, ...],
    action: Callable[[DockerContainer], None],
    *,
    absent_is_fine: bool = False,
) -> CommandResult:
    if not names:
        raise DockerUsageError("requires at least 1 argument.")
    output, errors, code = "", "", 0
    for name in names:
        try:
            action(call.node.daemon.find(name))
            output += f"{name}\n"
        except DaemonError as error:
            errors += f"Error response from daemon: {error}\n"
            absent = str(error).startswith("No such container")
            code = code if absent and absent_is_fine else 1
    return CommandResult(code, output.encode(), errors.encode())


def logs(call: CommandCall, words: tuple[str, ...]) -> CommandResult:
    order = read(words, switches="follow=f", values="tail=n")
    container = call.node.daemon.find(order.target)
    if "follow" in order.options:
        _await_end(call, container)
    lines = container.log().splitlines(keepends=True)
    tail = order.value("tail") or "all"
    if tail != "all" and not tail.isdecimal():
        raise DaemonError(f"invalid value for `tail`: {tail}")
    first = 0 if tail == "all" else max(0, len(lines) - int(tail))
    return CommandResult(0, b"".join(lines[first:]))


def wait(call: CommandCall, words: tuple[str, ...]) -> CommandResult:
    container = call.node.daemon.find(read(words).target)
    _await_end(call, container)
    return success(f"{container.exit_code}\n")


def ps(call: CommandCall, words: tuple[str, ...]) -> CommandResult:
    order = read(words, switches="all=a quiet=q", values="filter=f format")
    containers = [c for c in call.node.daemon.containers() if c.is_running or "all" in order.options]
    containers = [c for c in containers if _passes(c, order.options.get("filter", ()))]
    if "quiet" in order.options:
        return success("".join(f"{container.id[:12]}\n" for container in containers))
    template = order.value("format") or DEFAULT_ROW
    heading = "" if "format" in order.options else "CONTAINER ID   IMAGE   COMMAND   CREATED   STATUS   PORTS   NAMES\n"
    return success(heading + "".join(f"{inspection.fill(template, inspection.row(c))}\n" for c in containers))


def _passes(container: DockerContainer, filters: Sequence[str]) -> bool:
    for text in filters:
        kind, _, pattern = text.partition("=")
        match kind:
            case "name":
                passes = re.search(pattern, container.name) is not None
            case "status":
                passes = inspection.row(container)["State"] == pattern
            case "ancestor":
                passes = container.options.image == pattern
            case "label":
                passes = bool(fnmatch.filter(container.options.flags.get("label", ()), pattern + "*"))
            case _:
                raise DaemonError(f"invalid filter '{kind}'")
        if not passes:
            return False
    return True


def inspect(call: CommandCall, words: tuple[str, ...]) -> CommandResult:
    order = read(words, values="format=f")
    existing = {name for c in call.node.daemon.containers() for name in (c.name, c.id, c.id[:12])}
    absent = [name for name in order.targets if name not in existing]
    if absent:
        nothing = b"\n" if "format" in order.options else b"[]\n"
        return CommandResult(1, nothing, "".join(f"Error: No such object: {name}\n" for name in absent).encode())
    trees = [inspection.inspect(call.node.daemon.find(name)) for name in order.targets]
    template = order.value("format")
    if template is not None:
        return success("".join(f"{inspection.fill(template, tree)}\n" for tree in trees))
    return success(json.dumps(trees, indent=4) + "\n")


ALIASES = {
    "-v": "--version",
    "container inspect": "inspect",
    "container rm": "rm",
    "image pull": "pull",
}
# What rendered scripts, and the tests of emulated machines, call. No other subcommand has a stand-in.
SUBCOMMANDS: Mapping[str, Callable[[CommandCall, tuple[str, ...]], CommandResult]] = {
    "--version": client_version,
    "exec": execute,
    "image inspect": image_inspect,
    "inspect": inspect,
    "login": login,
    "logs": logs,
    "ps": ps,
    "pull": pull,
    "rm": remove,
    "run": run,
    "start": start,
    "stop": stop,
    "version": version,
    "wait": wait,
}
