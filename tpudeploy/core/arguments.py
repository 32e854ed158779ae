"""The profile's keys as `vllm serve` words and environment variables: what is not written adds nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tpudeploy.catalog import flags
from tpudeploy.config.owned import FLAG_OF_KEY, VARIABLE_OF_KEY
from tpudeploy.config.schema import ProfileSpec, ServingSpec


def serve(spec: ProfileSpec, *, tensor_parallel_size: int, commit: str | None = None) -> tuple[str, ...]:
    """`vllm serve MODEL …`, in full. Keys first, then `args` in the order they were written.

    `commit` is what the model's revision is pinned to.
    """
    words = ["vllm", "serve", spec.model.id]
    decided = {"tensor_parallel_size": tensor_parallel_size, "revision": commit or spec.model.revision}
    for name, value in _flags(spec, decided):
        flag = flags.find(name)
        if flag is None:
            raise KeyError(name)  # the parser has refused unknown flags
        words += flags.express(flag, value)
    return tuple(words)


def environment(serving: ServingSpec) -> dict[str, str]:
    """What the keys of `serving` stand for in the container's environment."""
    written = {name: getattr(serving, str(key)) for (_, key), name in VARIABLE_OF_KEY.items()}
    return {name: str(value) for name, value in written.items() if value is not None}


def _flags(spec: ProfileSpec, decided: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    for (section, key), flag in FLAG_OF_KEY.items():
        yield flag, decided.get(str(key), getattr(getattr(spec, str(section)), str(key)))
    yield from spec.serving.args.items()
