"""Say which quantized checkpoints the engine does not load, in its own words: its platform's list, and its classes'.

The lists are those of a release (catalog/releases, `registry`). What the classes make of a scheme was asked of the
engine with models of two layers, for each method and architecture: tpu_inference 0.32.0, on absent chips.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tpudeploy.catalog import releases
from tpudeploy.domain.model import Implementation, LanguageModel

Config = Mapping[str, Any]

# vLLM's names for methods that checkpoints call otherwise (config/model.py, _verify_quantization).
_METHODS = {"awq": "auto_awq", "awq_marlin": "auto_awq", "gptq": "auto_gptq", "gptq_marlin": "auto_gptq"}
# MLX's section names no method, so vLLM takes the checkpoint for one that is not quantized.
MLX = "mlx"


def method_of(section: object, architecture: str = "") -> str:
    """Return the method of a `quantization_config` by vLLM's name, or "" for none."""
    if not isinstance(section, Mapping) or not section:
        return ""
    method = str(section.get("quant_method", "")).lower() or MLX
    if method == "modelopt" and "FP4" in str(section.get("quant_algo", "")).upper():
        return "modelopt_fp4"
    if method == "mxfp4" and architecture.startswith("GptOss"):
        return "gpt_oss_mxfp4"
    return _METHODS.get(method, method)


def is_on_platform(method: str, release: str | None) -> bool:
    """Return whether the platform of a release lists a method, by vLLM's name."""
    return method in ("", MLX, *releases.registry(release)["quantizations"])


def refusal(config: Config, model: LanguageModel, implementation: Implementation, release: str | None) -> str:
    """Return why the engine does not load this quantized checkpoint by this implementation, or ""."""
    section = config.get("quantization_config")
    method, architecture = method_of(section, model.architecture), model.architecture
    if not isinstance(section, Mapping) or not method:
        return ""
    if not is_on_platform(method, release):
        return f"{method} quantization is currently not supported in tpu"
    registry = releases.registry(release)
    is_jax = implementation is Implementation.JAX
    if is_jax and method not in (MLX, *registry.get("jax_quantizations", (method,))):
        methods = ", ".join(registry["jax_quantizations"])
        return f"{method} quantization method not supported. Supported methods are {methods}"
    if method == MLX or (is_jax and architecture in registry.get("jax_unquantized", ())):
        return f"{architecture} does not read a checkpoint quantized with {method}: its weights stay in bfloat16"
    return _of_scheme(section, model, is_jax=is_jax) if method == "compressed-tensors" else ""


def _of_scheme(section: Config, model: LanguageModel, *, is_jax: bool) -> str:
    """Return the refusal of a scheme of compressed-tensors: of eight bits, the plug-in's classes read floats alone."""
    groups = section.get("config_groups")
    rows = [group.get("weights") for group in groups.values() if isinstance(group, Mapping)] if groups else []
    weights = [row for row in rows if isinstance(row, Mapping)]
    is_int8 = any((row.get("num_bits"), row.get("type")) == (8, "int") for row in weights)
    is_float4 = any((row.get("num_bits"), row.get("type")) == (4, "float") for row in weights)
    if is_jax and (is_int8 or is_float4):
        return "this scheme of compressed-tensors is not yet supported in the JAX path"
    return "Unsupported FusedMoe scheme: integers of eight bits" if is_int8 and model.experts is not None else ""
