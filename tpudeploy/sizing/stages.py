"""Pipeline stages: the layers of each, as a model of its own of which weights and cache are counted.

The first stage also has the input table, the last one the output table. The layers are divided as vLLM divides them
(distributed/utils.py, get_pp_indices; from memory): the layers that are left over go to stages from the last but one
backwards. That tpu_inference's own models divide them alike is unverified.
"""

from __future__ import annotations

from dataclasses import replace

from tpudeploy.domain.model import LanguageModel


def can_be_split(model: LanguageModel) -> bool:
    """Return whether all layers are of one kind, so that it is known what a number of them takes."""
    if model.answer is not None:
        return False  # what the engine loads is not divided here
    counts = {kind.layers for kind in model.attention} | {part.layers for part in model.feed_forward}
    if model.experts is not None:
        counts.add(model.experts.layers)
    return counts == {model.layers} and model.vision is None and not model.per_layer_width


def stages(model: LanguageModel, count: int) -> tuple[LanguageModel, ...]:
    """Return the part of the model that each stage holds. Only a model that `can_be_split` has several stages."""
    if count == 1 or not can_be_split(model):
        return (model,)
    layers = layers_per_stage(model.layers, count)
    return tuple(
        _stage(model, layers[number], has_table=number in (0, count - 1)) for number in range(count) if layers[number]
    )


def layers_per_stage(layers: int, count: int) -> tuple[int, ...]:
    """Return the number of layers of each stage, in order."""
    each, remaining = divmod(layers, count)
    # The last stage has the output table, so it gets no more.
    return tuple(each + (1 <= count - 1 - number <= remaining) for number in range(count))


def _stage(model: LanguageModel, layers: int, *, has_table: bool) -> LanguageModel:
    """Return a model of these layers, with one table or none: an input and an output that are tied are one each."""
    return replace(
        model,
        layers=layers,
        vocabulary=model.vocabulary if has_table else 0,
        is_tied=True,
        attention=tuple(replace(kind, layers=layers, cached=layers) for kind in model.attention),
        feed_forward=tuple(replace(part, layers=layers) for part in model.feed_forward),
        experts=None if model.experts is None else replace(model.experts, layers=layers),
        norms=model.norms * layers // model.layers,
    )
