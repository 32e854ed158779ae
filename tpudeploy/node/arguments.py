"""The profile's keys as `vllm serve` words and environment variables: what is not written adds nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tpudeploy.catalog import flags
from tpudeploy.config.owned import FLAG_OF_KEY, VARIABLE_OF_KEY
from tpudeploy.config.schema import ProfileSpec, ServingSpec
from tpudeploy.node.mirror import INSIDE

_SERVED_NAME = "served-model-name"


def serve(spec: ProfileSpec, *, tensor_parallel_size: int, commit: str | None = None) -> tuple[str, ...]:
    """`vllm serve MODEL …`, in full. Keys first, then `args` in the order they were written.

    `commit` is what the model's revision is pinned to. Of a mirror, the model is a folder, which has no revision;
    clients still ask for `model.id`.
    """
    words = ["vllm", "serve", spec.model.id if spec.model.mirror is None else INSIDE]
    decided = {"tensor_parallel_size": tensor_parallel_size, "revision": commit or spec.model.revision}
    for name, value in _flags(spec, decided):
        # The parser has refused what the engine of this image does not take: the choices are not checked again, and a
        # flag that the table lacks belongs to an image of another version.
        flag = flags.find(name) or flags.guess(name, value)
        words += flags.express(flags.with_any_choice(flag), value)
    return tuple(words)


def environment(serving: ServingSpec) -> dict[str, str]:
    """What the keys of `serving` stand for in the container's environment."""
    written = {name: getattr(serving, str(key)) for (_, key), name in VARIABLE_OF_KEY.items()}
    return {name: str(value) for name, value in written.items() if value is not None}


def _flags(spec: ProfileSpec, decided: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    for (section, key), flag in FLAG_OF_KEY.items():
        if flag == "revision" and spec.model.mirror is not None:
            continue
        yield flag, decided.get(str(key), getattr(getattr(spec, str(section)), str(key)))
    if spec.model.mirror is not None and not any(_is(name, _SERVED_NAME) for name in spec.serving.args):
        yield _SERVED_NAME, spec.model.id
    yield from spec.serving.args.items()


def _is(written: str, name: str) -> bool:
    flag = flags.find(written)
    return flag is not None and flag.name == name
