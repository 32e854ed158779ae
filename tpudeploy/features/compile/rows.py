"""Make the row of a model of the engine's answers: what they have in common once, the weights by number of chips."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_LENGTH = 2_048  # of a config that names none
_REQUESTS = 256
# Settings of a profile that are arguments of the engine; the others are its environment variables.
_ATTENTION_DP = {"sharding": {"sharding_strategy": {"enable_dp_attention": True}}}
_ARGUMENTS = ("dtype", "runner")
# IndivisibleError is JAX's: an array cannot be divided by the chips.
_THE_ENGINES = ("ValidationError", "ValueError", "NotImplementedError", "AssertionError", "IndivisibleError")
# PyTorch's of an array without content, and vLLM's of a class that it could not import.
_NOT_OF_THE_MODEL = ("meta tensor", "failed to be inspected")
_ANOTHER_MODEL = 0.1


def question(config: Mapping[str, Any], settings: Mapping[str, Any], chips: int, *, hbm_bytes: int) -> dict[str, Any]:
    """Return what child.py is asked about a model with these settings of a profile, on this number of chips."""
    longest = position(config)
    most = longest - 2 if "Roberta" in config["architectures"][0] else longest
    args: dict[str, Any] = {
        "max_model_len": min(_LENGTH, most),
        "max_num_seqs": _REQUESTS,
        "max_num_batched_tokens": _LENGTH,
    }
    args |= {name: settings[name] for name in _ARGUMENTS if name in settings}
    if "enable_dp_attention" in settings:
        args["additional_config"] = _ATTENTION_DP
    return {
        "chip": "v6e",
        "hbm_bytes": hbm_bytes,
        "tensor_parallel_size": chips,
        "config": config,
        "env": {name: value for name, value in settings.items() if name.isupper()},
        "args": args,
    }


def compact(model: Mapping[str, Any], each: Mapping[int, Mapping[str, Any]], count: int | str) -> dict[str, Any]:
    """Return the row of a model from its answers by number of chips, and the parameters that Transformers counts."""
    row: dict[str, Any] = {name: model[name] for name in ("id", "settings", "source", "config")}
    answers, uneven = without_uneven({chips: one["answer"] for chips, one in each.items() if "answer" in one})
    refusals = {**uneven, **_refusals(each)}
    if not answers:
        return {**row, "refusal": next(iter(refusals.values()), "")}
    first = answers[min(answers)]
    parameters = count if isinstance(count, int) else first["parameters"]
    refusal = _refusal_of_class(model["config"], first, parameters)
    if refusal:
        return {**row, "refusal": refusal}
    facts = _facts(model["config"], first, parameters)
    weights = {str(chips): int(answer["weights_bytes_per_chip"]) for chips, answer in answers.items()}
    layers = attention(next((one for one in answers.values() if one.get("layers")), first), _text(model["config"]))
    extra = {"refusals": {str(chips): words for chips, words in refusals.items()}, **_extra(model["config"], first)}
    return {**row, **facts, "weights": weights, **layers, **{name: value for name, value in extra.items() if value}}


def _refusals(each: Mapping[int, Mapping[str, Any]]) -> dict[int, str]:
    refused = {chips: one["refusal"] for chips, one in each.items() if "refusal" in one}
    return {chips: plain(words) for chips, words in refused.items() if is_the_engines(words)}


def _refusal_of_class(config: Mapping[str, Any], answer: Mapping[str, Any], parameters: int) -> str:
    """Return why the class by which the engine runs the model would load another one, or ""."""
    loaded = answer["parameters"]
    if not config.get("quantization_config") and abs(loaded / parameters - 1) > _ANOTHER_MODEL:
        words = f"the engine runs {answer['architecture']} by a class of {loaded:,} parameters"
        return f"{words}; the checkpoint has {parameters:,}"
    if not loads(config, answer):
        words = f"{answer['architecture']} does not read a checkpoint quantized with {answer['quantization']}"
        return f"{words}: its weights stay in {answer['dtype']}"
    return ""


def _facts(config: Mapping[str, Any], answer: Mapping[str, Any], parameters: int) -> dict[str, Any]:
    text = _text(config)
    return {
        "architecture": config["architectures"][0],
        "implementation": answer["implementation"],
        "layers": layers_of(text),
        "hidden": answer["hidden"],
        "vocabulary": answer["vocabulary"],
        "max_position": position(config),
        "heads": heads_of(text),
        "parameters": parameters,
        "active": active(config, parameters, experts_of(text)),
        "checkpoint_bytes": answer["parameter_bytes"] if config.get("quantization_config") else 2 * parameters,
    }


def _extra(config: Mapping[str, Any], answer: Mapping[str, Any]) -> dict[str, Any]:
    bits = {"fp8": "fp8", "compressed-tensors": "fp8"}.get(answer["quantization"], "int4")
    return {
        "experts": experts_of(_text(config)),
        "is_multimodal": answer["is_multimodal"],
        "is_pooling": answer["runner"] == "pooling",
        "linear_dtype": bits if answer["quantization"] else "",
    }


def _text(config: Mapping[str, Any]) -> Mapping[str, Any]:
    text: Mapping[str, Any] = config.get("text_config", config)
    return text


def without_uneven(answers: Mapping[int, Any]) -> tuple[dict[int, Any], dict[int, str]]:
    """Return the answers, and apart from them those whose layers have fewer KV heads than on one chip.

    A class that divides its heads itself has weights of all of them in the engine, which divides no model: it cannot
    run on several chips.
    """
    heads = {
        chips: max((layer.get("num_kv_heads") or 0 for layer in one.get("layers", ())), default=0)
        for chips, one in answers.items()
    }
    own = heads.get(min(heads, default=0), 0)
    # On more chips the engine may pad the heads of a part to as many as there are: the weights are wrong all the same.
    least = min((chips for chips, each in heads.items() if 0 < each < own), default=max(heads, default=0) + 1)
    is_uneven = {chips: chips >= least for chips in heads}
    words = "its layers have KV heads for a part of the model, and weights for all of it"
    return (
        {chips: one for chips, one in answers.items() if not is_uneven[chips]},
        {chips: words for chips, wrong in is_uneven.items() if wrong},
    )


def loads(config: Mapping[str, Any], answer: Mapping[str, Any]) -> bool:
    """Return whether a quantized checkpoint is kept in fewer bits: a class that ignores the method cannot read it."""
    full = 2 * answer["parameters"]
    return (
        not config.get("quantization_config") or answer["parameter_bytes"] < full or answer["implementation"] == "vllm"
    )


def is_the_engines(refusal: str) -> bool:
    """Return whether the engine refuses the model, and not the stand-ins of child.py or a package that is missing."""
    kind = refusal.partition(":")[0]
    return kind in _THE_ENGINES and not any(words in refusal for words in _NOT_OF_THE_MODEL)


def plain(refusal: str) -> str:
    """Return the engine's words, without the class of the error and what pydantic adds."""
    text = refusal.partition("Value error, ")[2] or refusal.partition(":")[2]
    return " ".join(text.partition(" [type=")[0].split())[:400].rstrip(".:") or "an assertion in its code fails"


def position(config: Mapping[str, Any]) -> int:
    text = config.get("text_config", config)
    return int(text.get("max_position_embeddings") or text.get("max_target_positions") or _LENGTH)


def layers_of(text: Mapping[str, Any]) -> int:
    return int(text.get("num_hidden_layers") or text["encoder_layers"])


def heads_of(text: Mapping[str, Any]) -> int:
    return int(text.get("num_attention_heads") or text["encoder_attention_heads"])


def experts_of(text: Mapping[str, Any]) -> dict[str, int] | None:
    count = text.get("num_experts") or text.get("num_local_experts") or text.get("n_routed_experts")
    if not count:
        return None
    return {
        "layers": layers_of(text) - int(text.get("first_k_dense_replace") or 0),
        "count": int(count),
        "width": int(text.get("moe_intermediate_size") or text["intermediate_size"]),
        "per_token": int(text["num_experts_per_tok"]),
    }


def active(config: Mapping[str, Any], whole: int, experts: Mapping[str, int] | None) -> int:
    """Return the parameters that each token is multiplied with in the layers: no tables, and the experts it visits."""
    text = config.get("text_config", config)
    tables = 1 if config.get("tie_word_embeddings", text.get("tie_word_embeddings", False)) else 2
    rest = whole - tables * text["vocab_size"] * (text.get("hidden_size") or text["d_model"])
    if experts is not None:
        idle = (experts["count"] - experts["per_token"]) * 3 * text["hidden_size"] * experts["width"]
        rest -= experts["layers"] * idle
    return int(rest)


def attention(answer: Mapping[str, Any], text: Mapping[str, Any]) -> dict[str, Any]:
    """Return the layers that are cached by their kind, and those with a recurrent state."""
    kinds, states, is_latent = [], [], False
    for layer in answer.get("layers", ()):
        if "Mamba" in layer["kind"]:
            states.append({"layers": layer["count"], "slot_bytes": layer["own_bytes"]})
            continue
        is_latent = is_latent or "kv_lora_rank" in text
        kinds.append([layer["count"], layer["num_kv_heads"], layer["head_size"], layer.get("sliding_window")])
    if not kinds:
        heads = heads_of(text)
        return {"attention": [[layers_of(text), heads, answer["hidden"] // heads, None]], "is_encoder": True}
    parts = {"attention": kinds, "states": states, "is_latent": is_latent}
    return {name: value for name, value in parts.items() if value}
