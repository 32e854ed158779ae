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

VERSION = "27.5.1"


def docker(call: Call) -> Outcome:
    words = call.asked.words
    if words[:1] in {("image",), ("container",), ("system",)} and len(words) > 1:
        words = (" ".join(words[:2]), *words[2:])
    name = words[0] if words else ""
    name = ALIASES.get(name, name)
    if name not in SUBCOMMANDS:
        return failed(1, f"docker: '{name}' is not a docker command that the emulator knows.\nSee 'docker --help'\n")
    try:
        return SUBCOMMANDS[name](call, words[1:])
    except DaemonError as error:
        return failed(1, f"Error response from daemon: {error}\n")
    except (run_options.UsageError, inspection.TemplateError) as error:
        return failed(125, f"docker: {error}\n")


def pull(call: Call, words: tuple[str, ...]) -> Outcome:
    image = read(words).target
    call.node.daemon.pull(image)
    return done(f"Status: Downloaded newer image for {image}\n{image}\n")


def login(call: Call, words: tuple[str, ...]) -> Outcome:
    asked = read(words, p="password")
    registry = (asked.targets or ("index.docker.io",))[0].removeprefix("https://").rstrip("/")
    by_pipe = "password-stdin" in asked.options
    given = call.asked.given.decode().strip() if by_pipe else asked.options.get("password")
    if asked.options.get("username") != "oauth2accesstoken" or given != call.node.token:
        raise DaemonError(f"Get https://{registry}/v2/: denied: Unauthenticated request.")
    call.node.daemon.registries.add(registry)
    return done("Login Succeeded\n")


def logout(call: Call, words: tuple[str, ...]) -> Outcome:
    for registry in read(words).targets:
        call.node.daemon.registries.discard(registry)
    return done("")


def image_inspect(call: Call, words: tuple[str, ...]) -> Outcome:
    asked = read(words, f="format")
    if asked.target not in call.node.daemon.images:
        return failed(1, f"Error response from daemon: No such image: {asked.target}\n")
    name, digest = asked.target.partition("@")[0].rpartition("/"), daemon.digest(asked.target)
    repository = f"{name[0]}{name[1]}{name[2].partition(':')[0]}"
    tree = {
        "Id": f"sha256:{zlib.crc32(asked.target.encode()):064x}",
        "RepoTags": [asked.target],
        "RepoDigests": [f"{repository}@sha256:{digest}"],
    }
    template = asked.options.get("format")
    return done((json.dumps([tree]) if template is None else inspection.fill(template, tree)) + "\n")


def images(call: Call, words: tuple[str, ...]) -> Outcome:  # noqa: ARG001 - one signature for the table
    return done("".join(f"{image}\n" for image in sorted(call.node.daemon.images)))


def remove_image(call: Call, words: tuple[str, ...]) -> Outcome:
    call.node.daemon.images.difference_update(read(words).targets)
    return done("")


def prune(call: Call, words: tuple[str, ...]) -> Outcome:  # noqa: ARG001 - one signature for the table
    used = {container.options.image for container in call.node.daemon.containers()}
    call.node.daemon.images.intersection_update(used)
    return done("Total reclaimed space: 0B\n")


def version(call: Call, words: tuple[str, ...]) -> Outcome:  # noqa: ARG001 - one signature for the table
    return done(f"Docker version {VERSION}, the emulator's stand-in\n")


def about(call: Call, words: tuple[str, ...]) -> Outcome:
    template = read(words, f="format").options.get("format")
    facts = {"ServerVersion": VERSION, "Name": call.node.instance, "Containers": len(call.node.daemon.containers())}
    if template is not None:
        return done(inspection.fill(template, facts) + "\n")
    return done("".join(f"{key}: {value}\n" for key, value in facts.items()))


ALIASES = {
    "--version": "version",
    "-v": "version",
    "container inspect": "inspect",
    "container rm": "rm",
    "image ls": "images",
    "image pull": "pull",
    "image rm": "rmi",
}
SUBCOMMANDS: Mapping[str, Callable[[Call, tuple[str, ...]], Outcome]] = {
    "image inspect": image_inspect,
    "image prune": prune,
    "images": images,
    "info": about,
    "inspect": docker_views.inspect,
    "kill": docker_containers.kill,
    "login": login,
    "logout": logout,
    "logs": docker_containers.logs,
    "ps": docker_views.ps,
    "pull": pull,
    "restart": docker_containers.restart,
    "rm": docker_containers.remove,
    "rmi": remove_image,
    "run": docker_containers.run,
    "start": docker_containers.start,
    "stop": docker_containers.stop,
    "system prune": prune,
    "version": version,
    "wait": docker_containers.wait,
}
