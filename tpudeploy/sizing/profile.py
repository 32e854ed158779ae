"""A profile's settings as EngineSettings, every default decided as vLLM decides it; or why they cannot be sized."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

from tpudeploy import catalog
from tpudeploy.catalog import _engine_models, families, flags, quantization
from tpudeploy.catalog.engines import identify
from tpudeploy.catalog.families import answers
from tpudeploy.catalog.tasks import resolve_task
from tpudeploy.config.schema import ProfileSpec, ServingSpec
from tpudeploy.domain.accelerator import AcceleratorType
from tpudeploy.domain.budget import UTILIZATION, EngineSettings, HbmBudget, Speculation, Unsized
from tpudeploy.domain.engine import Engine, EngineKind
from tpudeploy.domain.model import EngineRefusal, Implementation, LanguageModel, NotCovered, PartlyCovered
from tpudeploy.sizing.advice import fit_length
from tpudeploy.sizing.budget import compute_budget, impossible
from tpudeploy.sizing.least import weights_at_least, weights_of
from tpudeploy.sizing.unsized import (
    UnsizedQuantity,
    UnsizedSetting,
    of_engine,
    of_task,
    out_of_range,
    unknown_effects,
    unknown_memory,
)

# vLLM 0.32.0 engine/arg_utils.py get_batch_defaults, for the API server; its rows for TPU are never reached.
_SEQS, _BATCHED_TOKENS = 256, 2_048
_ON = {"1", "true"}
_IMPLEMENTATIONS = frozenset(Implementation)
# Flags with which the model is another one, or a part of it is not on the chips.
_HIDES_WEIGHTS = frozenset({"hf-overrides", "cpu-offload-gb", "offload-backend"})
# Flags and variables with which weights are quantized as they are loaded.
_REQUANTIZES = frozenset(
    {
        "quantization",
        "quantization-config",
        "BF16_LINEAR_REQUANTIZE_PATTERNS",
        "MOE_REQUANTIZE_WEIGHT_DTYPE",
    }
)

Settings = Mapping[str, Any]


def size(
    spec: ProfileSpec,
    *,
    config_json: str | None = None,
    engine: Engine | None = None,
    tensors: Mapping[str, int] | None = None,
) -> HbmBudget | Unsized:
    """Return the budget of a profile. `config_json` is the text of `model.config`, where the profile names one.

    `engine` is that of its image, where more is known of it than the image's name and tag say, and `tensors` are the
    elements of the checkpoint by type, where the hub listed them.
    """
    image = engine if engine is not None else identify(spec.serving.image)
    source = _ModelSource(spec.model.id, config_json, tuple(sorted((tensors or {}).items())))
    return _size(spec.serving, source, spec.tpu.type, image)


class _ModelSource(NamedTuple):
    """What a profile, its files and the hub say of its model."""

    model_id: str
    config_json: str | None
    tensors: tuple[tuple[str, int], ...]


def _size(serving: ServingSpec, source: _ModelSource, type_name: str, image: Engine) -> HbmBudget | Unsized:
    budget = _size_exactly(serving, source.model_id, type_name, source.config_json, image)
    if isinstance(budget, HbmBudget) or budget.is_impossible or budget.at_least is not None:
        return budget
    kind = catalog.accelerator_type(type_name)
    return budget if kind is None else _with_least(budget, serving, source, kind)


def _with_least(budget: Unsized, serving: ServingSpec, source: _ModelSource, kind: AcceleratorType) -> Unsized:
    """Return why there is no budget, with what the weights weigh at least and what these chips hold of them.

    Neither is known where settings make the model another one, or keep a part of it in the machine's memory.
    """
    settings = flag_values(serving)
    if _HIDES_WEIGHTS & {name for name, value in settings.items() if value}:
        return budget
    is_requantized = bool(_REQUANTIZES & {*settings, *serving.env}) or "quantization" in str(
        settings.get("additional-config", "")
    )
    config = families.config_of(source.config_json)
    least = budget.least or weights_at_least(
        budget.model, source.model_id, config, dict(source.tensors), is_requantized=is_requantized
    )
    if least is None:
        return budget
    hbm = catalog.generation(kind.generation).most_bytes
    return replace(budget, least=least, most=int(kind.devices * hbm * (serving.hbm_utilization or UTILIZATION)))


def _size_exactly(
    serving: ServingSpec, model_id: str, type_name: str, config_json: str | None, image: Engine
) -> HbmBudget | Unsized:
    kind = catalog.accelerator_type(type_name)
    if kind is None:
        raise KeyError(type_name)  # the parser has refused unknown types
    settings = flag_values(serving)
    try:
        model, partly, question = _model(model_id, config_json, answer_settings(serving, settings), image)
    except NotCovered as refusal:
        engine = _engine_without_model(serving, settings, kind)
        return Unsized(because=str(refusal), engine=engine, is_refused=isinstance(refusal, EngineRefusal))
    task = resolve_task(model_id, settings, families.config_of(config_json))
    of_settings = (
        *(*partly, *of_engine(image.kind), *of_task(task, settings, model)),
        *unknown_effects(settings, serving.env, model, question),
    )
    unknown = (*of_settings, *unknown_memory(kind))
    partial = replace(_without_unknown(unknown, model), lacks_limit_alone=bool(unknown) and not of_settings)
    try:
        engine = replace(engine_of(serving, settings, kind, model), release=image.release or "")
    except (AttributeError, TypeError, ValueError) as cause:
        return replace(partial, because=f"a setting is not of the form that vLLM takes ({cause})")
    because = out_of_range(engine)
    if because:
        return replace(partial, because=because)
    is_auto = serving.max_model_len == "auto"
    if unknown:
        return _bounds(partial, {each.effect for each in unknown}, engine, kind, is_auto=is_auto)
    if config_json is None and model.answer is None and model is families.find_model(model_id):
        budget = _budget_of_catalogue(model_id, type_name, engine)
    else:
        budget = compute_budget(model, kind, engine)
    return fit_length(budget) if is_auto else budget


def _without_unknown(unknown: Collection[UnsizedSetting], model: LanguageModel) -> Unsized:
    """Return why these settings cannot be sized; the model is certain unless one of them makes it another."""
    effects = {each.effect for each in unknown}
    is_other_model = UnsizedQuantity.MODEL in effects
    return Unsized(
        because=" and ".join(each.why for each in unknown),
        settings=tuple(dict.fromkeys(each.name for each in unknown if each.name)),
        model=None if is_other_model else model,
        least=None if effects & {UnsizedQuantity.MODEL, UnsizedQuantity.WEIGHTS} else weights_of(model),
    )


def _bounds(
    partial: Unsized,
    effects: Collection[UnsizedQuantity],
    engine: EngineSettings,
    kind: AcceleratorType,
    *,
    is_auto: bool,
) -> Unsized:
    """Return `partial` with what is certain in spite of settings that have these effects."""
    model, has_layout = partial.model, UnsizedQuantity.LAYOUT not in effects
    if model is None:
        return partial
    because = impossible(model, kind, engine, has_layout=has_layout)
    if because:
        return replace(partial, because=because, is_impossible=True, settings=(), engine=engine)
    partial = replace(partial, engine=engine, has_layout=has_layout)
    if set(effects) != {UnsizedQuantity.ADDS}:
        return partial
    base = compute_budget(model, kind, engine)
    base = fit_length(base) if is_auto else base
    return replace(partial, at_least=base) if isinstance(base, HbmBudget) else partial


def _engine_without_model(serving: ServingSpec, settings: Settings, kind: AcceleratorType) -> EngineSettings | None:
    """Return the engine for a model that is not known, or None where a default depends on the model."""
    if not isinstance(serving.max_model_len, int) or serving.max_num_batched_tokens is None:
        return None
    try:
        engine = engine_of(serving, settings, kind, None)
    except (AttributeError, TypeError, ValueError):
        return None
    return None if out_of_range(engine) else engine


@lru_cache(maxsize=256)
def _budget_of_catalogue(model_id: str, type_name: str, engine: EngineSettings) -> HbmBudget | Unsized:
    """Return the budget by names of the catalogue: a fleet is many deployments of few kinds."""
    model, kind = families.find_model(model_id), catalog.accelerator_type(type_name)
    assert model is not None
    assert kind is not None
    return compute_budget(model, kind, engine)


def _model(
    model_id: str, config_json: str | None, choices: Mapping[str, object], image: Engine
) -> tuple[LanguageModel, tuple[UnsizedSetting, ...], Collection[str]]:
    """Return the model, the part of it that is not covered, and the settings with which the engine was asked about it.

    Raise NotCovered with the reason, EngineRefusal with the words of tpu-inference if that is what the image has.
    """
    answer = _answer(model_id, config_json, choices)
    if answer is not None:
        answer = answers.of_release(answer, image.release)
        if answer.model is None:
            raise _refusal(answer.refusal, image)
        return answer.model, (), tuple(answer.settings)
    config = families.fields_of(model_id) if config_json is None else families.config_of(config_json)
    partly: tuple[UnsizedSetting, ...] = ()
    try:
        model = language_model(model_id, config_json)
    except PartlyCovered as refusal:
        effect = UnsizedQuantity.ADDS if refusal.only_adds else UnsizedQuantity.WEIGHTS
        model, partly = refusal.model, (UnsizedSetting(name="", effect=effect, why=str(refusal)),)
    word = str(choices.get("MODEL_IMPL_TYPE", "")).lower()
    implementation = Implementation(word) if word in _IMPLEMENTATIONS else model.implementation
    words = quantization.refusal(config, model, implementation, image.release)
    if words:
        raise _refusal(words, image)
    return families.run_by(model, implementation), partly, ()


def _refusal(words: str, image: Engine) -> NotCovered:
    is_asked = image.kind is EngineKind.TPU_INFERENCE
    return (EngineRefusal if is_asked else NotCovered)(f"{_engine_models.RELEASE} refuses it: {words}")


def answer_settings(serving: ServingSpec, settings: Settings) -> Mapping[str, object]:
    """Return the settings of a profile that decide whether and how the engine takes a checkpoint, by name."""
    tree: object = settings
    for name in ("additional-config", "sharding", "sharding_strategy", "enable_dp_attention"):
        tree = tree.get(name) if isinstance(tree, Mapping) else None
    is_dp = tree is True
    return {**serving.env, "dtype": serving.dtype, "enable_dp_attention": is_dp}


def _answer(model_id: str, config_json: str | None, choices: Mapping[str, object]) -> answers.ModelAnswer | None:
    """Return what the engine answered about this model, the one that it is made of, or one of its shapes, or None."""
    if config_json is None:
        return answers.answer_for(model_id, choices) or _answer_of_base(model_id, choices)
    config = families.config_of(config_json)
    answer = answers.answer_of_config(config, choices)
    if answer is None or answer.model is None:
        return answer
    length = families.position_of(config) or answer.model.max_position
    return replace(answer, model=replace(answer.model, name=model_id, max_position=length))


def _answer_of_base(model_id: str, choices: Mapping[str, object]) -> answers.ModelAnswer | None:
    """Return what the engine answered about the model of a copy; of a quantized one, only that it refuses the base."""
    variant = families.variant(model_id)
    answer = None if variant is None else answers.answer_for(variant.base, choices)
    if answer is None or variant is None or (answer.model is not None and variant.fields):
        return None
    model = None if answer.model is None else families.as_copy(answer.model, model_id, variant.base)
    return replace(answer, model=model)


def language_model(model_id: str, config_json: str | None) -> LanguageModel:
    """Return the catalogue's model, or the one that `model.config` describes. Raise NotCovered, with the reason."""
    if config_json is not None:
        return families.from_text(model_id, config_json)
    model = families.find_model(model_id)
    if model is None:
        raise NotCovered(f"the catalogue does not know {model_id}, and model.config names no config")
    return model


def flag_values(serving: ServingSpec) -> dict[str, Any]:
    """Return `args` by canonical flag name; JSON that was written as text is read."""
    values: dict[str, Any] = {}
    for name, value in serving.args.items():
        flag = flags.find(name)
        if flag is None or value is None:
            continue
        if flag.style is flags.Style.JSON and isinstance(value, str):
            values[flag.name] = json.loads(value)
        else:
            values[flag.name] = value
    return values


def engine_of(
    serving: ServingSpec, settings: Settings, kind: AcceleratorType, model: LanguageModel | None
) -> EngineSettings:
    """Return the engine that `vllm serve` makes of these settings on that slice.

    Without a model the profile has to name both `max_model_len` and `max_num_batched_tokens`.
    """
    length = serving.max_model_len if isinstance(serving.max_model_len, int) else 0
    length = length or (0 if model is None else model.max_position)
    speculation = _speculation(settings)
    seqs, batched = _batch(serving, settings, model, length)
    data = serving.data_parallel_size or 1
    stages = int(settings.get("pipeline-parallel-size") or 1)
    additional = settings.get("additional-config", {})
    override = settings.get("num-gpu-blocks-override")
    is_eager = settings.get("enforce-eager") is True or serving.env.get("SKIP_JAX_PRECOMPILE", "0").lower() in _ON
    return EngineSettings(
        tensor_parallel=serving.tensor_parallel_size or max(1, kind.devices // (data * stages)),
        data_parallel=data,
        pipeline_parallel=stages,
        # `auto` is the checkpoint's type, and every model here is published in bfloat16.
        dtype="bfloat16" if serving.dtype in (None, "auto") else serving.dtype,
        kv_dtype=serving.kv_cache_dtype or "auto",
        utilization=serving.hbm_utilization or UTILIZATION,
        block_size=serving.block_size,
        blocks_override=None if override is None else int(override),
        max_model_len=length,
        max_num_seqs=seqs,
        max_num_batched_tokens=batched,
        padding_gap=serving.padding_gap or 0,
        extra_token_buckets=tuple(map(int, additional.get("compilation_sizes", ()))),
        min_token_bucket=int(serving.env.get("MIN_TOKEN_BUCKET", "16")),
        attention_buckets=_attention_buckets(serving.env),
        speculation=speculation,
        is_multimodal=model is not None and model.is_multimodal and not _is_text_alone(settings),
        is_async=settings.get("async-scheduling", speculation is None) is True,
        is_expert_parallel=settings.get("enable-expert-parallel") is True,
        is_vision_replicated=additional.get("mm-encoder-tp-mode") == "data",
        is_precompiled=not is_eager,
        has_prefix_caching=settings.get("enable-prefix-caching") is not False,
    )


def _batch(serving: ServingSpec, settings: Settings, model: LanguageModel | None, length: int) -> tuple[int, int]:
    """Return the requests and the tokens of one step (arg_utils.py)."""
    doubled = 2 if settings.get("performance-mode") == "throughput" else 1
    seqs = serving.max_num_seqs or _SEQS * doubled
    tokens = serving.max_num_batched_tokens
    if tokens is None:
        tokens = _BATCHED_TOKENS * doubled
        if settings.get("enable-chunked-prefill") is False:
            tokens = max(tokens, length)
        if model is not None and model.is_prefix_lm and model.is_multimodal:
            tokens = max(tokens, *model.item_tokens.values())
        tokens = min(tokens, seqs * length)
    return (seqs if serving.max_num_seqs else min(seqs, tokens)), tokens


def _speculation(settings: Settings) -> Speculation | None:
    config = settings.get("speculative-config")
    if not config:
        return None
    return Speculation(method=str(config.get("method", "")), tokens=int(config.get("num_speculative_tokens", 0)))


def _is_text_alone(settings: Settings) -> bool:
    """Return whether every modality is turned off: one without a limit is not (tpu_runner.py load_model)."""
    if settings.get("language-model-only") is True:
        return True
    limits = settings.get("limit-mm-per-prompt", {}).values()
    counts = [limit.get("count", 1) if isinstance(limit, Mapping) else limit for limit in limits]
    return bool(counts) and not any(counts)


def _attention_buckets(env: Mapping[str, str]) -> tuple[int, ...] | None:
    if env.get("ATTN_BUCKETIZED_NUM_REQS", "0").lower() not in _ON:
        return None
    return tuple(int(size) for size in env.get("ATTN_CUSTOM_NUM_REQS_BUCKETS", "").split(",") if size.strip())
