"""The profile's keys as `vllm serve` arguments and environment variables. An absent key adds nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tpudeploy.catalog import flags
from tpudeploy.config.owned import FLAG_OF_KEY, VARIABLE_OF_KEY
from tpudeploy.config.schema import ProfileSpec, ServingSpec

# The folder of mirrored weights in the container. It is the same for every mirror, so that a change of the bucket
# changes no argument of the server.
MIRROR_FOLDER = "/tpudeploy/weights"
_SERVED_NAME = "served-model-name"


def serve(spec: ProfileSpec, *, tensor_parallel_size: int, commit: str | None = None) -> tuple[str, ...]:
    """Return `vllm serve MODEL …` in full: the keys first, then `args` in the order of the profile.

    `commit` is the pinned revision of the model. A mirrored model is a folder, which has no revision; clients still
    request `model.id`.
    """
    words = ["vllm", "serve", spec.model.id if spec.model.mirror is None else MIRROR_FOLDER]
    defaults = {"tensor_parallel_size": tensor_parallel_size, "revision": commit or spec.model.revision}
    for name, value in _flags(spec, defaults):
        # The parser has refused values that the engine of this image does not accept, so they are not checked again. A
        # flag that is not in the table belongs to an image of another version.
        flag = flags.find(name) or flags.guess(name, value)
        words += flags.express(flags.with_any_choice(flag), value)
    return tuple(words)


def environment(serving: ServingSpec) -> dict[str, str]:
    """Return the environment variables for the keys of `serving`."""
    values = {name: getattr(serving, str(key)) for (_, key), name in VARIABLE_OF_KEY.items()}
    return {name: str(value) for name, value in values.items() if value is not None}


def _flags(spec: ProfileSpec, defaults: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    for (section, key), flag in FLAG_OF_KEY.items():
        if flag == "revision" and spec.model.mirror is not None:
            continue
        yield flag, defaults.get(str(key), getattr(getattr(spec, str(section)), str(key)))
    if spec.model.mirror is not None:
        arguments = [flags.find(name) for name in spec.serving.args]
        if not any(flag is not None and flag.name == _SERVED_NAME for flag in arguments):
            yield _SERVED_NAME, spec.model.id
    yield from spec.serving.args.items()
