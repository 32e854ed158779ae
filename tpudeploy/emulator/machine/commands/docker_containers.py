"""docker's subcommands that start, end and follow containers."""

from __future__ import annotations

import math
from collections.abc import Callable

from tpudeploy.emulator.machine.commands.call import Call, Outcome, done, failed
from tpudeploy.emulator.machine.commands.docker_words import read
from tpudeploy.emulator.machine.docker import run_options
from tpudeploy.emulator.machine.docker.container import Container
from tpudeploy.emulator.machine.docker.daemon import DaemonError


def run(call: Call, words: tuple[str, ...]) -> Outcome:
    options = run_options.parse(words)
    daemon = call.node.daemon
    notice = ""
    if options.image not in daemon.images:
        notice = f"Unable to find image '{options.image}' locally\n"
        try:
            daemon.pull(options.image)
        except DaemonError as error:
            return failed(125, f"{notice}docker: Error response from daemon: {error}\n")
    try:
        container = daemon.create(options, ("docker", "run", *words), call.asked.environment)
    except DaemonError as error:
        return failed(125, f"{notice}docker: Error response from daemon: {error}\n")
    daemon.catch_up()
    if "detach" in options.switches:
        return Outcome(0, f"{container.id}\n".encode(), notice.encode())
    return _attached(call, container)


def _attached(call: Call, container: Container) -> Outcome:
    _await_end(call, container)
    outcome = Outcome(container.exit_code or 0, container.log())
    if "rm" in container.options.switches:
        call.node.daemon.remove(container)
    return outcome


def _await_end(call: Call, container: Container) -> None:
    call.node.sleepers.wait(math.inf, woken=lambda: not container.is_running)


def remove(call: Call, words: tuple[str, ...]) -> Outcome:
    asked = read(words, switches="force=f volumes=v")
    force = "force" in asked.options

    def one(container: Container) -> None:
        if container.is_running and not force:
            raise DaemonError(f'cannot remove container "/{container.name}": container is running: stop it first')
        call.node.daemon.remove(container)

    return _each(call, asked.targets, one, absent_is_fine=force)


def stop(call: Call, words: tuple[str, ...]) -> Outcome:
    return _each(call, read(words, values="time=t").targets, Container.stop)


def start(call: Call, words: tuple[str, ...]) -> Outcome:
    def one(container: Container) -> None:
        if not container.is_running:
            container.stop()
            container.start()
            call.node.daemon.catch_up()

    return _each(call, read(words).targets, one)


def _each(
    call: Call, names: tuple[str, ...], deed: Callable[[Container], None], *, absent_is_fine: bool = False
) -> Outcome:
    if not names:
        raise run_options.UsageError("requires at least 1 argument.")
    output, errors, code = "", "", 0
    for name in names:
        try:
            deed(call.node.daemon.find(name))
            output += f"{name}\n"
        except DaemonError as error:
            errors += f"Error response from daemon: {error}\n"
            absent = str(error).startswith("No such container")
            code = code if absent and absent_is_fine else 1
    return Outcome(code, output.encode(), errors.encode())


def logs(call: Call, words: tuple[str, ...]) -> Outcome:
    asked = read(words, switches="follow=f", values="tail=n")
    container = call.node.daemon.find(asked.target)
    if "follow" in asked.options:
        _await_end(call, container)
    lines = container.log().splitlines(keepends=True)
    tail = asked.value("tail") or "all"
    if tail != "all" and not tail.isdecimal():
        raise DaemonError(f"invalid value for `tail`: {tail}")
    return Outcome(0, b"".join(lines if tail == "all" else lines[len(lines) - min(int(tail), len(lines)) :]))


def wait(call: Call, words: tuple[str, ...]) -> Outcome:
    container = call.node.daemon.find(read(words).target)
    _await_end(call, container)
    return done(f"{container.exit_code}\n")
