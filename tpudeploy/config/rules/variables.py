"""Check `serving.env` and `secrets`: valid names, each set in one place, and no secret among the plain values."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tpudeploy.catalog import flags
from tpudeploy.catalog import variables as engine_variables
from tpudeploy.config import codes
from tpudeploy.config.diagnose import quoted
from tpudeploy.config.keys import VARIABLE_OF_KEY
from tpudeploy.config.nodes import Path, dotted
from tpudeploy.config.rules.server import ENV, Server
from tpudeploy.config.rules.violation import Violation, is_set
from tpudeploy.config.schema import ProfileSpec
from tpudeploy.config.trust import looks_secret

_SECRETS: Path = ("secrets",)
# jax _src/xla_bridge.py: the platforms to try, in order. `proxy` is Pathways'.
_PLATFORMS, _WITH_TPU = "JAX_PLATFORMS", frozenset({"tpu", "proxy"})
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ID = r"[A-Za-z0-9_-]{1,255}"
_REFERENCE = re.compile(rf"{_ID}|projects/[a-z0-9.:-]+/secrets/{_ID}/versions/[A-Za-z0-9_-]{{1,63}}")
# Variables that are credentials wherever they occur.
_CREDENTIALS = frozenset(
    {
        "AWS_SECRET_ACCESS_KEY",
        "GITHUB_TOKEN",
        "HF_TOKEN",
        "HUGGINGFACE_TOKEN",
        "HUGGING_FACE_HUB_TOKEN",
        "OPENAI_API_KEY",
        "VLLM_API_KEY",
        "WANDB_API_KEY",
    }
)


def names(profile: ProfileSpec) -> Iterator[Violation]:
    for section, entries in ((ENV, profile.serving.env), (_SECRETS, profile.secrets)):
        for name in entries:
            if not _NAME.fullmatch(name):
                message = f"{quoted(name)} is not a valid name of an environment variable"
                hint = "letters, digits and underscores, not beginning with a digit"
                yield Violation(codes.VARIABLE_NAME, (*section, name), message, hint, is_key=True)


def misspelt(server: Server) -> Iterator[Violation]:
    """Report a variable that the engine does not read, if its name is close to one that it reads, or was one."""
    version = server.release
    for name in server.profile.serving.env:
        path = (*ENV, name)
        is_removed = name.startswith("VLLM_") and not engine_variables.is_read(name, version)
        removal = flags.removal(name, version) if is_removed else None
        closest = engine_variables.closest_variable(name, version)
        if removal is not None:
            message = f"The engine reads no variable {quoted(name)} any more; vLLM {removal.last} did"
            yield Violation(codes.VARIABLE_REMOVED, path, message, removal.instead, is_key=True, is_warning=True)
        elif closest is not None:
            message, hint = f"The engine does not read a variable {quoted(name)}", _spelling(server.profile, closest)
            doubtful = server.is_doubtful
            yield Violation(codes.VARIABLE_MISSPELT, path, message, hint, is_key=True, is_warning=doubtful)


def readable(server: Server) -> Iterator[Violation]:
    """Report a value that the engine refuses when it reads the variable."""
    for name, value in server.profile.serving.env.items():
        path = (*ENV, name)
        if name == _PLATFORMS and value and not _WITH_TPU & set(value.lower().split(",")):
            message = f"{name} {quoted(value)} hides the TPU from the engine"
            yield Violation(codes.VARIABLE_VALUE, path, message, "leave it out: the engine finds its devices")
        expected = engine_variables.expected_instead(name, value, server.release)
        if expected is not None:
            message = f"The engine cannot read {quoted(value)} from {name}"
            yield Violation(codes.VARIABLE_VALUE, path, message, f"write {expected}", is_warning=server.is_doubtful)


def _spelling(profile: ProfileSpec, variable: str) -> str:
    """Return what to write instead of a misspelled name: the key of the format that sets the variable, if any."""
    key = next((dotted(key) for key, name in VARIABLE_OF_KEY.items() if name == variable), None)
    if key is not None:
        return f"write `{key}` instead, which sets {variable}"
    return f"{variable} is already set" if variable in profile.serving.env else f'did you mean "{variable}"?'


def one_place_each(profile: ProfileSpec) -> Iterator[Violation]:
    env, secrets = profile.serving.env, profile.secrets
    for name in secrets.keys() & env.keys():
        yield _twice(name, (*ENV, name), (*_SECRETS, name))
    for key, name in VARIABLE_OF_KEY.items():
        for section, entries in ((ENV, env), (_SECRETS, secrets)):
            if name in entries and is_set(profile, key):
                yield _twice(name, (*section, name), key)


def no_secret_in_env(profile: ProfileSpec) -> Iterator[Violation]:
    for name in profile.serving.env.keys() - profile.secrets.keys():  # `one_place_each` reports those of both
        hint = f"write `secrets: {{{name}: NAME}}`, with the name of a Secret Manager secret"
        if name in _CREDENTIALS:
            message = f"{name} is a secret, and `env` takes plain values only"
            yield Violation(codes.SECRET_IN_ENV, (*ENV, name), message, hint, is_key=True)
        elif _is_secret(name) and name not in profile.serving.plain_env:
            message = f"{quoted(name)} looks like the name of a secret, and `env` takes plain values only"
            hint += f"; if its value is not a secret, write `plain_env: [{name}]` beside `env`"
            yield Violation(codes.SECRET_IN_ENV, (*ENV, name), message, hint, is_key=True)


def _is_secret(name: str) -> bool:
    return looks_secret(name) and not engine_variables.is_setting(name)


def references(profile: ProfileSpec) -> Iterator[Violation]:
    for name, secret in profile.secrets.items():
        if not _REFERENCE.fullmatch(secret):
            message = f"{quoted(secret)} is not a valid name of a secret"
            hint = "write the secret's id, or projects/P/secrets/S/versions/V"
            yield Violation(codes.SECRET_REFERENCE, (*_SECRETS, name), message, hint)


def _twice(name: str, path: Path, other: Path) -> Violation:
    message = f"{dotted(other)} already sets {name}"
    return Violation(codes.VARIABLE_TWICE, path, message, "keep one of them", also=other, is_key=True)
