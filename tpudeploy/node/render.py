"""Render a deployment and the templates into the startup script. adapters/assets.py reads the templates.

Only `startup.sh.j2` and `router.sh.j2` are jinja2 templates. The files of `boot/` are plain bash,
which is included as it is.

Why: decision 50 in docs/decisions.md.
"""

from __future__ import annotations

import hashlib
import json
import math
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from threading import Lock

from jinja2 import DictLoader, Environment, StrictUndefined, Template

from tpudeploy.domain import errors
from tpudeploy.domain.deployment import CompileCache, Container, Deployment, OwnFile, OwnKey, SecretRef
from tpudeploy.domain.task import TASKS, Completing, TaskTrial
from tpudeploy.node import serving

# A metadata value of Compute Engine holds 262,144 bytes (compute v1, `Metadata.items.value`).
MAX_SCRIPT_BYTES = 262_144
# Linux passes no longer argument or variable to a process (MAX_ARG_STRLEN includes a final NUL).
MAX_WORD_BYTES = 131_071
# An upper bound of the templates' size, so that they need not be read to know that a script fits.
TEMPLATE_BYTES = 77_824
# Quoting, or JSON, makes at most six bytes of one, and no word of a profile is in the script more than three times.
_GROWTH = 18
_PER_WORD = 8
# The ports of Ray's head, one for each version of the container: above those of Ray's own processes (10002 to 19999),
# and below those that Linux gives to connections.
_RAY_PORTS = range(20_000, 30_000)
_compiling = Lock()


def startup_script(deployment: Deployment, templates: Mapping[str, str], spec: str) -> str:
    """Return the script that Google runs at every boot. `spec` is the fingerprint of the server that it starts.

    Raise `errors.ConfigError` for a size that Google or Linux would refuse.
    """
    templates = {**templates, **{file.path: file.text for file in _own(deployment, OwnKey.TEMPLATE)}}
    script = template("startup.sh.j2", tuple(templates.items())).render(
        templates=templates, **_values(deployment, spec)
    )
    _check_words(deployment)
    if _size(script) > MAX_SCRIPT_BYTES:
        texts = (*_profile_words(deployment), *((file.path, file.text) for file in deployment.own_files))
        longest_words = sorted(texts, key=lambda pair: _size(pair[1]), reverse=True)[:3]
        sizes = ", ".join(f"`{key}` ({_size(word):,} bytes)" for key, word in longest_words)
        raise errors.ConfigError(
            f"The startup script takes {_size(script):,} bytes; Google takes at most {MAX_SCRIPT_BYTES:,}.",
            hint=f"Shorten, or move into a file of the image, a mounted volume or a bucket: {sizes}.",
        )
    return script


def template(name: str, texts: tuple[tuple[str, str], ...]) -> Template:
    """Return a compiled template. Compiling takes a hundred times as long as rendering, and a fleet renders hundreds.

    The lock keeps the threads of a fleet from compiling the same template side by side.
    """
    with _compiling:
        return _compile(name, texts)


@cache
def _compile(name: str, texts: tuple[tuple[str, str], ...]) -> Template:
    environment = Environment(
        loader=DictLoader(dict(texts)),
        undefined=StrictUndefined,
        autoescape=False,  # noqa: S701 -- bash, not HTML: every word of a profile is shell-quoted below
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(name)


def check_size(deployment: Deployment, templates: Callable[[], Mapping[str, str]]) -> None:
    """Raise as `startup_script` does, but faster: a script that is certainly short enough is not rendered."""
    most = longest(deployment)
    if most > MAX_WORD_BYTES:  # else no word of it can be as long
        _check_words(deployment)
    if most > MAX_SCRIPT_BYTES:
        startup_script(deployment, templates(), "")


def longest(deployment: Deployment) -> int:
    """Return an upper bound of the script's size in bytes."""
    container, mirror, cache = deployment.container, deployment.mirror, deployment.compile_cache
    texts = [container.name, container.image, container.shm_size or "", deployment.model_id, deployment.health.prompt]
    texts += [*container.serve, *container.setup]
    secrets = ((ref.variable, ref.secret) for ref in container.secrets)
    for pair in (*container.environment.items(), *container.volumes, *secrets):
        texts += pair
    texts += [] if mirror is None else [mirror.bucket.name, mirror.bucket.prefix, mirror.folder]
    texts += [] if cache is None else [cache.bucket.name, cache.bucket.prefix, cache.key, cache.digest, cache.folder]
    for file in deployment.own_files:
        texts += [file.path, file.text]
    # Each word also has its own line, its flag, and the quotes around it.
    return TEMPLATE_BYTES + _GROWTH * (_size("".join(texts)) + _PER_WORD * len(texts))


def _values(deployment: Deployment, spec: str) -> dict[str, object]:
    container, mirror = deployment.container, deployment.mirror
    return {
        "spec": shlex.quote(spec),
        "name": shlex.quote(container.name),
        "image": shlex.quote(container.image),
        "port": container.port,
        "patience": math.ceil(deployment.health.timeout_seconds),
        **question_values(deployment, container.secrets),
        "host_paths": [shlex.quote(host) for host, _ in container.volumes],
        "docker_run": tuple(_docker_run(container)),
        "hosts": container.hosts,
        **_cluster_values(container),
        "own_scripts": any(file.key is not OwnKey.TEMPLATE for file in deployment.own_files),
        "own_before": tuple(_script_words(deployment, OwnKey.BEFORE)),
        "own_after": tuple(_script_words(deployment, OwnKey.AFTER)),
        # A script has only the parts that its deployment uses.
        "cached": deployment.compile_cache is not None,
        "mirrored": mirror is not None,
        **_cache_values(deployment.compile_cache),
        "mirror_bucket": shlex.quote("" if mirror is None else mirror.bucket.name),
        "mirror_prefix": shlex.quote("" if mirror is None else mirror.bucket.prefix),
        "mirror_folder": shlex.quote("" if mirror is None else mirror.folder),
    }


def question_values(deployment: Deployment, secrets: Iterable[SecretRef]) -> dict[str, object]:
    """Return the values with which a script reads these secrets, and sends its own machine a real request."""
    refs, facts = tuple(secrets), TASKS[deployment.task.task]
    requests = tuple(facts.requests)
    return {
        "question_paths": [shlex.quote(request.path) for request in requests],
        "questions": [shlex.quote(_question(deployment, request)) for request in requests],
        "asked": shlex.quote(facts.noun),
        "proof": shlex.quote(facts.verb),
        "secret_variables": [shlex.quote(ref.variable) for ref in refs],
        "secret_resources": [shlex.quote(_resource(ref)) for ref in refs],
    }


def _own(deployment: Deployment, key: OwnKey) -> Iterator[OwnFile]:
    return (file for file in deployment.own_files if file.key is key)


def _script_words(deployment: Deployment, key: OwnKey) -> Iterator[str]:
    for file in _own(deployment, key):
        yield f"{shlex.quote(file.path)} {shlex.quote(file.text)}"


def _cluster_values(container: Container) -> dict[str, object]:
    """Return the values of Ray on several hosts; none for one host."""
    if container.hosts == 1:
        return {}

    # Docker only names the secrets, so a secret of another resource is the only change that its words do not show.
    words = (*serving.docker_run(container), *(ref.secret for ref in container.secrets))
    digest = hashlib.sha256("\0".join(words).encode()).hexdigest()
    return {
        "cluster": shlex.quote(digest[:16]),
        "ray_port": _RAY_PORTS[int(digest, 16) % len(_RAY_PORTS)],
        "server": [shlex.quote(word) for word in serving.server(container)],
    }


def _cache_values(cache: CompileCache | None) -> dict[str, object]:
    """Return the values of the compile cache. Without one they are empty."""
    return {
        "cache_bucket": shlex.quote("" if cache is None else cache.bucket.name),
        "cache_prefix": shlex.quote("" if cache is None else cache.bucket.prefix),
        "cache_key": shlex.quote("" if cache is None else cache.key),
        "cache_folder": shlex.quote("" if cache is None else cache.folder),
        "image_digest": shlex.quote("" if cache is None else cache.digest),
    }


def _docker_run(container: Container) -> Iterator[str]:
    """Yield the words of `serving.docker_run`, quoted, with `$root` before every host path."""
    yield from map(shlex.quote, serving.before_volumes(container))
    for host, inside in container.volumes:
        yield '-v "$root"' + shlex.quote(f"{host}:{inside}")
    yield from map(shlex.quote, serving.after_volumes(container))


def _question(deployment: Deployment, request: Completing | TaskTrial) -> str:
    return json.dumps(request.body(serving.served_model(deployment), deployment.health.prompt))


def _resource(ref: SecretRef) -> str:
    """Return the version of a secret. If it names no project, the script adds the machine's own."""
    resource = ref.secret if "/" in ref.secret else f"secrets/{ref.secret}"
    return resource if "/versions/" in resource else f"{resource}/versions/latest"


def _check_words(deployment: Deployment) -> None:
    for key, word in _profile_words(deployment):
        if _size(word) > MAX_WORD_BYTES:
            raise errors.ConfigError(
                f"`{key}` takes {_size(word):,} bytes; Linux passes at most {MAX_WORD_BYTES:,} in one word.",
                hint="Put the text into a file of the image or of a mounted volume, and name the file.",
            )


def _profile_words(deployment: Deployment) -> Iterator[tuple[str, str]]:
    """Yield the words of the script that a user can shorten, with the profile's keys."""
    container = deployment.container
    yield from ((f"serving.setup[{index}]", step) for index, step in enumerate(container.setup))
    yield from ((f"serving.env.{name}", f"{name}={value}") for name, value in container.environment.items())
    flag = "model.id"
    for word in container.serve:
        if word.startswith("--"):
            flag = f"serving.args.{word[2:].partition('=')[0].replace('-', '_')}"
        yield flag, word
    for request in TASKS[deployment.task.task].requests:
        yield "health.prompt", _question(deployment, request)


def _size(text: str) -> int:
    return len(text.encode())
