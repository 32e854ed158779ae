"""The docker command, the process in the container, and the arguments of `vllm serve`, as argument lists.

shell.py makes shell text of them. A key that is absent from the profile adds no argument.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tpudeploy.catalog import engines, flags
from tpudeploy.config.keys import FLAG_OF_KEY, VARIABLE_OF_KEY
from tpudeploy.config.schema import ProfileSpec, ServingSpec
from tpudeploy.domain.deployment import Container, Deployment, Json

# The folder of mirrored weights in the container. It is the same for every mirror, so that a change of the bucket
# changes no argument of the server.
MIRROR_FOLDER = "/tpudeploy/weights"
_SERVED_NAME = "served-model-name"
# Each step has its own bash, so that no text of it (a comment, an open quote, a here-document, `exit 0`) affects the
# next one. No variable is used, because any name could be one of the profile's. The last line removes what bash itself
# writes into the environment.
AFTER_SETUP = (
    'until [ "$1" = 0 ]; do /bin/bash -c -- "$2" || exit; set -- "$(($1 - 1))" "${@:3}"; done; '
    'exec /usr/bin/env -u PWD -u OLDPWD -u SHLVL -u _ "${@:2}"'
)

# Variables that bash 5.2 overwrites or drops when it starts (observed). The value of a profile is passed as an argument
# of `env` instead.
BASH_WRITES = re.compile(
    "BASH.*|COMP_WORDBREAKS|EPOCH.*|HISTCMD|IFS|LINENO|OLDPWD|OPT.*|PPID|PS[0-4]|PWD|S?RANDOM|SECONDS|SHELLOPTS|SHLVL|_"
)


# The command of the container on several hosts; the startup script adds how it finds the others.
_RAY = ("ray", "start", "--block", "--disable-usage-stats")
# The server of several hosts is started by a bash, whose own variables are removed.
_WITHOUT_BASH = ("/usr/bin/env", "-u", "PWD", "-u", "OLDPWD", "-u", "SHLVL", "-u", "_")


def command(container: Container) -> tuple[str, ...]:
    """Return the image's command after the setup steps, if there are any. A failed step ends it.

    It is `vllm serve …`, or on several hosts Ray, in which the head then starts `server`.
    """
    process = container.serve if container.hosts == 1 else _RAY
    if not container.setup:
        return process
    steps = container.setup
    bash = ("/bin/bash", "-c", AFTER_SETUP, "bash", str(len(steps)))
    return (*bash, *steps, *_overwritten(container), *process)


def server(container: Container) -> tuple[str, ...]:
    """Return the command of the server in the head's container, for a slice of several hosts."""
    return (*_WITHOUT_BASH, *_overwritten(container), *container.serve)


def _overwritten(container: Container) -> tuple[str, ...]:
    """Return the profile's variables that bash overwrites, as arguments of `env`."""
    overwritten = {name: value for name, value in container.environment.items() if BASH_WRITES.fullmatch(name)}
    return _assignments(overwritten)


def docker_run(container: Container) -> tuple[str, ...]:
    """Return the docker command. It only names secrets: docker's client reads their values from its environment."""
    mounts = (word for host, inside in container.volumes for word in ("-v", f"{host}:{inside}"))
    return (*before_volumes(container), *mounts, *after_volumes(container))


def before_volumes(container: Container) -> tuple[str, ...]:
    return ("docker", "run", "-d", "--name", container.name, "--privileged", "--net=host")


def after_volumes(container: Container) -> tuple[str, ...]:
    shm = () if container.shm_size is None else ("--shm-size", container.shm_size)
    plain = (word for text in _assignments(container.environment) for word in ("-e", text))
    secret = (word for ref in container.secrets for word in ("-e", ref.variable))
    return (*shm, *plain, *secret, container.image, *command(container))


def docker_exec(container: Container) -> tuple[str, ...]:
    """Return the command that starts the server in the head's container, for a slice of several hosts."""
    return ("docker", "exec", container.name, *container.serve)


def served_model(deployment: Deployment) -> str:
    """Return the model name for clients: the first `--served-model-name`, or the model itself."""
    return served_name(deployment.container.serve, deployment.model_id)


def served_name(words: tuple[str, ...], model_id: str) -> str:
    """Return the model name for clients of the server that these words start."""
    for word, following in zip(words, (*words[1:], ""), strict=True):
        flag, _, value = word.partition("=")
        if flag == "--served-model-name":
            return value or following
    return model_id


def loaded_model(deployment: Deployment) -> str:
    """Return the model that `vllm serve` loads: a path if the weights are a copy, or the model itself."""
    words = deployment.container.serve
    return words[2] if words[:2] == ("vllm", "serve") and len(words) > 2 else deployment.model_id  # noqa: PLR2004 - `vllm serve MODEL`


def argument(deployment: Deployment, name: str) -> Json:
    """Return a value of `serving.args`, in either spelling, or None if the profile does not set it."""
    spellings = (f"serving.args.{name}", f"serving.args.{name.replace('_', '-')}")
    return next((deployment.attributes[path] for path in spellings if path in deployment.attributes), None)


def _assignments(environment: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(f"{name}={value}" for name, value in environment.items())


def serve(spec: ProfileSpec, *, tensor_parallel_size: int, commit: str | None = None) -> tuple[str, ...]:
    """Return `vllm serve MODEL …` in full: the keys first, then `args` in the order of the profile.

    `commit` is the pinned revision of the model. A mirrored model is a folder, which has no revision; clients still
    request `model.id`.
    """
    words = ["vllm", "serve", spec.model.id if spec.model.mirror is None else MIRROR_FOLDER]
    if spec.model.mirror is None:
        words += _words("revision", commit or spec.model.revision)
    words += _words("tensor-parallel-size", tensor_parallel_size)
    words += _of_keys(spec.serving)
    if spec.model.mirror is not None and not _names_model(spec.serving):
        words += _words(_SERVED_NAME, spec.model.id)
    return (*words, *_of_arguments(spec.serving))


def _words(name: str, value: object) -> tuple[str, ...]:
    # The parser has refused values that the engine of this image does not accept, so they are not checked again. A
    # flag that is not in the table belongs to an image of another version.
    flag = flags.find(name) or flags.guess(name, value)
    return flags.express(flags.with_any_choice(flag), value)


def _of_keys(serving: ServingSpec) -> tuple[str, ...]:
    """Return the flags of the keys of `serving`; the deployment decides that of `tensor_parallel_size`."""
    keys = [(key, flag) for (section, key), flag in FLAG_OF_KEY.items() if section == "serving"]
    values = ((flag, getattr(serving, str(key))) for key, flag in keys if key != "tensor_parallel_size")
    return tuple(word for flag, value in values for word in _words(flag, value))


def _of_arguments(serving: ServingSpec) -> tuple[str, ...]:
    return tuple(word for name, value in serving.args.items() for word in _words(name, value))


def _names_model(serving: ServingSpec) -> bool:
    """Return whether the arguments say by which name clients request the model."""
    arguments = [flags.find(name) for name in serving.args]
    return any(flag is not None and flag.name == _SERVED_NAME for flag in arguments)


def environment_of_keys(serving: ServingSpec) -> Mapping[str, str]:
    """Return the environment variables for the keys of `serving`."""
    values = {name: getattr(serving, str(key)) for (_, key), name in VARIABLE_OF_KEY.items()}
    variable = engines.cache_variable(serving.image)
    if variable != engines.CACHE_VARIABLE:
        # Another engine's own default is not on the volume for compiled programs.
        values[variable] = values.pop(engines.CACHE_VARIABLE) or engines.DEFAULT_CACHE
    return {name: str(value) for name, value in values.items() if value is not None}
