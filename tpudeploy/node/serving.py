"""What docker and the process in the container get: argument lists, joined into shell text only at the very end."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

from tpudeploy.domain.deployment import Container, Deployment, Json

# Each step has a bash of its own, so that no text of it (a comment, an open quote, a here-document, `exit 0`) can
# swallow what comes after. No variable is used, because any name could be one of the profile's. The last line takes
# back what bash itself writes into the environment.
AFTER_SETUP = (
    'until [ "$1" = 0 ]; do /bin/bash -c -- "$2" || exit; set -- "$(($1 - 1))" "${@:3}"; done; '
    'exec /usr/bin/env -u PWD -u OLDPWD -u SHLVL -u _ "${@:2}"'
)

# Variables that bash overwrites or drops when it starts (found by asking bash 5.2). A profile that sets one gets its
# own value all the same: it is handed on as an argument of `env`.
BASH_WRITES = re.compile(
    "BASH.*|COMP_WORDBREAKS|EPOCH.*|HISTCMD|IFS|LINENO|OLDPWD|OPT.*|PPID|PS[0-4]|PWD|S?RANDOM|SECONDS|SHELLOPTS|SHLVL|_"
)


def command(container: Container) -> tuple[str, ...]:
    """What the image runs: `vllm serve …`, or with setup steps, those first; the first that fails ends it."""
    if not container.setup:
        return container.serve
    kept = {name: value for name, value in container.environment.items() if BASH_WRITES.fullmatch(name)}
    steps = container.setup
    return ("/bin/bash", "-c", AFTER_SETUP, "bash", str(len(steps)), *steps, *_assignments(kept), *container.serve)


def docker_run(container: Container) -> tuple[str, ...]:
    """The whole docker command. A secret is named only: docker's client takes its value from its own environment."""
    mounts = (word for host, inside in container.volumes for word in ("-v", f"{host}:{inside}"))
    return (*before_volumes(container), *mounts, *after_volumes(container))


def before_volumes(container: Container) -> tuple[str, ...]:
    return ("docker", "run", "-d", "--name", container.name, "--privileged", "--net=host")


def after_volumes(container: Container) -> tuple[str, ...]:
    shm = () if container.shm_size is None else ("--shm-size", container.shm_size)
    plain = (word for text in _assignments(container.environment) for word in ("-e", text))
    secret = (word for ref in container.secrets for word in ("-e", ref.variable))
    return (*shm, *plain, *secret, container.image, *command(container))


def docker_shell(container: Container) -> str:
    """`docker_run` as one shell command; the secrets must be exported where it is pasted."""
    return shlex.join(docker_run(container))


def serve_shell(container: Container) -> str:
    """The same process for a shell that is already inside the container; its secrets must be exported there."""
    environment = ("env", *_assignments(container.environment)) if container.environment else ()
    return shlex.join((*environment, *command(container)))


def served_model(deployment: Deployment) -> str:
    """The name that clients ask for: the first `--served-model-name`, else the model itself."""
    words = deployment.container.serve
    for word, following in zip(words, (*words[1:], ""), strict=True):
        flag, _, value = word.partition("=")
        if flag == "--served-model-name":
            return value or following
    return deployment.model_id


def loaded_model(deployment: Deployment) -> str:
    """What `vllm serve` is given to load: a path where the weights are a copy, else the model itself."""
    words = deployment.container.serve
    return words[2] if words[:2] == ("vllm", "serve") and len(words) > 2 else deployment.model_id  # noqa: PLR2004 - `vllm serve MODEL`


def argument(deployment: Deployment, name: str) -> Json:
    """One of `serving.args`, in either spelling; None where it is not written."""
    written = (f"serving.args.{name}", f"serving.args.{name.replace('_', '-')}")
    return next((deployment.attributes[path] for path in written if path in deployment.attributes), None)


def _assignments(environment: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(f"{name}={value}" for name, value in environment.items())
