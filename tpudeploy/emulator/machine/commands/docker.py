"""`docker` as a startup script calls it: the table of its subcommands, and those about images and registries."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping

from tpudeploy.emulator.machine.commands import docker_containers, docker_views
from tpudeploy.emulator.machine.commands.call import Call, Outcome, done, failed
from tpudeploy.emulator.machine.commands.docker_words import read
from tpudeploy.emulator.machine.docker import daemon, inspection, run_options
from tpudeploy.emulator.machine.docker.daemon import DaemonError
from tpudeploy.emulator.machine.unsupported import Unsupported

VERSION = "27.5.1"


def docker(call: Call) -> Outcome:
    words = call.asked.words
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
        return failed(1, f"Error response from daemon: {error}\n")
    except run_options.UsageError as error:
        return failed(125, f"docker: {error}\n")


def pull(call: Call, words: tuple[str, ...]) -> Outcome:
    image = read(words, switches="quiet=q").target
    call.node.daemon.pull(image)
    return done(f"Status: Downloaded newer image for {image}\n{image}\n")


def login(call: Call, words: tuple[str, ...]) -> Outcome:
    asked = read(words, switches="password-stdin", values="username=u password=p")
    registry = (asked.targets or ("index.docker.io",))[0].removeprefix("https://").rstrip("/")
    by_pipe = "password-stdin" in asked.options
    password = call.asked.given.decode().strip() if by_pipe else asked.value("password")
    if asked.value("username") != "oauth2accesstoken" or password != call.node.token:
        raise DaemonError(f"Get https://{registry}/v2/: denied: Unauthenticated request.")
    call.node.daemon.registries.add(registry)
    return done("Login Succeeded\n")


def image_inspect(call: Call, words: tuple[str, ...]) -> Outcome:
    asked = read(words, values="format=f")
    if asked.target not in call.node.daemon.images:
        return failed(1, f"Error response from daemon: No such image: {asked.target}\n")
    name, digest = asked.target.partition("@")[0].rpartition("/"), daemon.digest(asked.target)
    repository = f"{name[0]}{name[1]}{name[2].partition(':')[0]}"
    tree = {
        "Id": f"sha256:{zlib.crc32(asked.target.encode()):064x}",
        "RepoTags": [asked.target],
        "RepoDigests": [f"{repository}@sha256:{digest}"],
    }
    template = asked.value("format")
    return done((json.dumps([tree]) if template is None else inspection.fill(template, tree)) + "\n")


def version(call: Call, words: tuple[str, ...]) -> Outcome:  # noqa: ARG001 - one signature for the table
    read(words)
    return done(f"Client:\n Version:    {VERSION}\n\nServer:\n Engine:\n  Version:  {VERSION}\n")


def client_version(call: Call, words: tuple[str, ...]) -> Outcome:  # noqa: ARG001 - one signature for the table
    return done(f"Docker version {VERSION}, the emulator's stand-in\n")


ALIASES = {
    "-v": "--version",
    "container inspect": "inspect",
    "container rm": "rm",
    "image pull": "pull",
}
# What rendered scripts, and the tests of emulated machines, call. A subcommand that nobody calls is no stand-in's.
SUBCOMMANDS: Mapping[str, Callable[[Call, tuple[str, ...]], Outcome]] = {
    "--version": client_version,
    "image inspect": image_inspect,
    "inspect": docker_views.inspect,
    "login": login,
    "logs": docker_containers.logs,
    "ps": docker_views.ps,
    "pull": pull,
    "rm": docker_containers.remove,
    "run": docker_containers.run,
    "start": docker_containers.start,
    "stop": docker_containers.stop,
    "version": version,
    "wait": docker_containers.wait,
}
