"""The default search space of a tuning: what `size` and vLLM's own auto_tune.sh vary, if it can help this load.

Of vLLM's benchmarks/auto_tune (0.32): max_num_seqs, max_num_batched_tokens and the utilization, in a full grid.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tpudeploy.domain.budget import HbmBudget
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.errors import UsageError
from tpudeploy.features.ab_test.arms import split_values
from tpudeploy.features.benchmark.offer import Point
from tpudeploy.features.tune.search import Axis, Settings
from tpudeploy.sizing.serve import ServingAnswer, can_serve

_SERVING = "serving."
_UTILIZATION = "serving.hbm_utilization"
_SEQUENCES = "serving.max_num_seqs"
# What changes the most comes first: the other keys are then raced around it.
_VALUES: Mapping[str, tuple[str, ...]] = {
    "serving.args.speculative_config": ("null", '{"method": "ngram", "num_speculative_tokens": 3}'),
    "serving.kv_cache_dtype": ("auto", "fp8"),
    _UTILIZATION: ("0.90", "0.92", "0.95"),
    "serving.max_num_batched_tokens": ("2048", "4096", "8192"),
    _SEQUENCES: ("64", "128", "256", "512"),
    "serving.padding_gap": ("0", "512"),
    "serving.block_size": ("32", "64", "128"),
}
_SPLIT = ("serving.tensor_parallel_size", "serving.data_parallel_size")
_HINT = "Write --try PATH=A,B, e.g. --try serving.max_num_seqs=128,256."


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppedAxis:
    """What is not measured, and why."""

    name: str
    why: str


def default_axes(base: Deployment, points: Sequence[Point]) -> tuple[tuple[Axis, ...], tuple[DroppedAxis, ...]]:
    """Return the axes that can help this load, and those that cannot. Some choices may equal the profile."""
    dropped = [DroppedAxis(name="enable_prefix_caching", why="the prompts of the load share no prefix to be cached")]
    values = dict(_VALUES)
    if _has_room(base, points):
        del values[_UTILIZATION]
        dropped.append(DroppedAxis(name="hbm_utilization", why="the KV cache holds the whole load already"))
    streams = max(point.sizes[0] for point in points)
    values[_SEQUENCES], unused = _useful_sequences(values[_SEQUENCES], streams)
    if unused:
        why = f"{', '.join(unused)} only pad: the load has {streams} streams"
        dropped.append(DroppedAxis(name="max_num_seqs", why=why))
    split = Axis(name="tensor x data parallel", choices=tuple(_splits(base)))
    return (split, *(axis_of(path, choices) for path, choices in values.items())), tuple(dropped)


def axis_of(path: str, values: Iterable[str]) -> Axis:
    """Return an axis of one key. The profile as it is written is its first choice."""
    return Axis(name=path.removeprefix(_SERVING).removeprefix("args."), choices=((), *(((path, v),) for v in values)))


def written_axes(texts: Iterable[str]) -> tuple[Axis, ...]:
    """Parse PATH=A,B… for each axis. Raise `errors.UsageError`."""
    axes = []
    for text in texts:
        path, equals, rest = text.partition("=")
        values = [part.strip() for part in split_values(rest) if part.strip()]
        if not equals or not path.strip() or not values:
            raise UsageError(f"`{text}` does not name a key with values.", hint=_HINT)
        axes.append(axis_of(path.strip(), values))
    names = [axis.name for axis in axes]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"{twice} is named twice.", hint="Write all its values in one --try.")
    return tuple(axes)


def without(axis: Axis, settings: Iterable[Settings]) -> Axis:
    """Return the axis without these choices."""
    unwanted = set(settings)
    choices = tuple(choice for choice in axis.choices if choice not in unwanted or not choice)
    return Axis(name=axis.name, choices=choices, recompiles=axis.recompiles)


def _has_room(base: Deployment, points: Sequence[Point]) -> bool:
    """Return whether all requests of each cell fit at once, whatever `max_num_seqs` says."""
    budget = base.budget
    if not isinstance(budget, HbmBudget):
        return False
    answers = []
    for point in points:
        users, context, output = point.sizes
        answers.append(can_serve(budget, users=users, context=context, output=output))
    return all(
        answer.service is ServingAnswer.FITS or answer.at_once >= budget.engine.max_num_seqs for answer in answers
    )


def _useful_sequences(values: Sequence[str], streams: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    enough = [value for value in values if int(value) >= streams]
    unused = tuple(enough[1:])
    return tuple(value for value in values if value not in unused), unused


def _splits(base: Deployment) -> Iterator[Settings]:
    """Yield the ways to split the chips: the profile's, and each power of two of copies."""
    yield ()
    devices, copies = base.accelerator.devices, 1
    while copies <= devices and base.accelerator.hosts == 1:
        if devices % copies == 0:
            yield tuple(sorted(zip(_SPLIT, (str(devices // copies), str(copies)), strict=True)))
        copies *= 2
