"""Check `serving.env` and `secrets`: valid names, each set in one place, and no secret among the plain values."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tpudeploy.catalog import flags
from tpudeploy.catalog import variables as engine_variables
from tpudeploy.config import codes
from tpudeploy.config.diagnose import problem, quoted, warning
from tpudeploy.config.keys import VARIABLE_OF_KEY
from tpudeploy.config.nodes import Entry, MapNode, Path, ScalarNode, dotted, find, key_location
from tpudeploy.config.rules import look
from tpudeploy.config.rules.image import severity_of_tables
from tpudeploy.config.trust import looks_secret
from tpudeploy.domain.diagnostics import Diagnostic

_ENV: Path = ("serving", "env")
_PLAIN: Path = ("serving", "plain_env")
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


def names(root: MapNode) -> Iterator[Diagnostic]:
    for section in (_ENV, _SECRETS):
        for name, entry in look.entries(root, section).items():
            if not _NAME.fullmatch(name):
                message = f"{quoted(name)} is not a valid name of an environment variable"
                hint = "letters, digits and underscores, not beginning with a digit"
                yield problem(codes.VARIABLE_NAME, message, entry.key, path=(*section, name), hint=hint)


def misspelt(root: MapNode) -> Iterator[Diagnostic]:
    """Report a variable that the engine does not read, if its name is close to one that it reads, or was one."""
    version = look.release(root)
    for name, entry in look.entries(root, _ENV).items():
        is_removed = name.startswith("VLLM_") and not engine_variables.is_read(name, version)
        removal = flags.removal(name, version) if is_removed else None
        if removal is not None:
            message = f"The engine reads no variable {quoted(name)} any more; vLLM {removal.last} did"
            yield warning(codes.VARIABLE_REMOVED, message, entry.key, path=(*_ENV, name), hint=removal.instead)
            continue
        closest = engine_variables.closest_variable(name, version)
        if closest is not None:
            message = f"The engine does not read a variable {quoted(name)}"
            hint = _spelling(root, closest)
            severity = severity_of_tables(root)
            yield problem(codes.VARIABLE_MISSPELT, message, entry.key, path=(*_ENV, name), hint=hint, severity=severity)


def readable(root: MapNode) -> Iterator[Diagnostic]:
    """Report a value that the engine refuses when it reads the variable."""
    for name, entry in look.entries(root, _ENV).items():
        node = entry.value
        # The schema reports a value that is no text.
        if not isinstance(node, ScalarNode) or not isinstance(node.value, str):
            continue
        if name == _PLATFORMS and node.value and not _WITH_TPU & set(node.value.lower().split(",")):
            message = f"{name} {quoted(node.value)} hides the TPU from the engine"
            hint = "leave it out: the engine finds its devices"
            yield problem(codes.VARIABLE_VALUE, message, node.at, path=(*_ENV, name), hint=hint)
        expected = engine_variables.expected_instead(name, node.value, look.release(root))
        if expected is not None:
            message = f"The engine cannot read {quoted(node.value)} from {name}"
            hint, severity = f"write {expected}", severity_of_tables(root)
            yield problem(codes.VARIABLE_VALUE, message, node.at, path=(*_ENV, name), hint=hint, severity=severity)


def _spelling(root: MapNode, variable: str) -> str:
    """Return what to write instead of a misspelled name: the key of the format that sets the variable, if any."""
    key = next((dotted(key) for key, name in VARIABLE_OF_KEY.items() if name == variable), None)
    if key is not None:
        return f"write `{key}` instead, which sets {variable}"
    is_set = variable in look.entries(root, _ENV)
    return f"{variable} is already set" if is_set else f'did you mean "{variable}"?'


def one_place_each(root: MapNode) -> Iterator[Diagnostic]:
    env, secrets = look.entries(root, _ENV), look.entries(root, _SECRETS)
    for name in secrets.keys() & env.keys():
        yield _twice(name, (*_ENV, name), env[name], (*_SECRETS, name), root)
    for key, name in VARIABLE_OF_KEY.items():
        for section, entries in ((_ENV, env), (_SECRETS, secrets)):
            if name in entries and find(root, key) is not None:
                yield _twice(name, (*section, name), entries[name], key, root)


def no_secret_in_env(root: MapNode) -> Iterator[Diagnostic]:
    secrets, plain = look.entries(root, _SECRETS), set(look.texts(root, _PLAIN).values())
    for name, entry in look.entries(root, _ENV).items():
        if name in secrets:  # `one_place_each` reports it
            continue
        hint = f"write `secrets: {{{name}: NAME}}`, with the name of a Secret Manager secret"
        if name in _CREDENTIALS:
            message = f"{name} is a secret, and `env` takes plain values only"
            yield problem(codes.SECRET_IN_ENV, message, entry.key, path=(*_ENV, name), hint=hint)
        elif looks_secret(name) and name not in plain and not engine_variables.is_setting(name):
            message = f"{quoted(name)} looks like the name of a secret, and `env` takes plain values only"
            hint += f"; if its value is not a secret, write `plain_env: [{name}]` beside `env`"
            yield problem(codes.SECRET_IN_ENV, message, entry.key, path=(*_ENV, name), hint=hint)


def references(root: MapNode) -> Iterator[Diagnostic]:
    for name, entry in look.entries(root, _SECRETS).items():
        node = entry.value
        if isinstance(node, ScalarNode) and isinstance(node.value, str) and not _REFERENCE.fullmatch(node.value):
            hint = "write the secret's id, or projects/P/secrets/S/versions/V"
            message = f"{quoted(node.value)} is not a valid name of a secret"
            yield problem(codes.SECRET_REFERENCE, message, node.at, path=(*_SECRETS, name), hint=hint)


def _twice(name: str, path: Path, entry: Entry, other: Path, root: MapNode) -> Diagnostic:
    message = f"{dotted(other)} already sets {name}"
    also = key_location(root, other)
    return problem(codes.VARIABLE_TWICE, message, entry.key, path=path, hint="keep one of them", also=also)
