"""Checks of a chip's HBM: weights, KV cache, and the room for compiled programs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tpudeploy import catalog
from tpudeploy.catalog.checkpoints import least_of_parameters, parameters_in_name
from tpudeploy.domain.budget import UTILIZATION, HbmBudget, Unsized
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import Diagnostic
from tpudeploy.sizing.advice import best_copies, best_stages, longest
from tpudeploy.sizing.checks.check import (
    bounded,
    check_for,
    engine_of,
    error,
    gib,
    lacks_limit_alone,
    model_of,
    sized,
    warning,
    ways_out,
)
from tpudeploy.sizing.kv import bytes_per_token, least_block_size, scalar_memory_refusal, vector_memory_refusal
from tpudeploy.sizing.programs import certain_bytes
from tpudeploy.sizing.programs import program_room as room_for_programs
from tpudeploy.sizing.search import budget_with


@check_for(
    "TPU2101",
    "The weights do not fit",
    "A chip's share of the weights is larger than hbm_utilization x its HBM. vLLM would stop with "
    '"total_hbm_used_gb=… exceeds total_hbm_limit_cap_gb=…". The message names what\'s enough, in this order: a '
    "larger share, a shorter max_model_len, a slice with more chips to share the weights.",
    "tpu: {type: v6e-4}",
)
def weights_too_large(deployment: Deployment) -> Iterator[Diagnostic]:
    budget = bounded(deployment)
    if budget is None:
        yield from _weights_beyond_chips(deployment)
    if budget is None or _weights_fit(budget):
        return
    cap = int(budget.hbm_bytes_per_chip * budget.engine.utilization)
    message = (
        f"{budget.model.name} does not fit: {_least(deployment)}{gib(budget.weights_bytes_per_chip)} of weights a "
        f"chip, and {gib(cap)} for them and the KV cache."
    )
    yield error(deployment, message, path="tpu.type", hint=ways_out(deployment, budget))


def _weights_beyond_chips(deployment: Deployment) -> Iterator[Diagnostic]:
    """Yield an error where the least that the weights weigh is more than all chips hold together."""
    budget = deployment.budget
    if not isinstance(budget, Unsized) or budget.least is None or not budget.exceeds_chips:
        return
    message = (
        f"{deployment.model_id} does not fit: its weights take {gib(budget.least.size)} or more "
        f"({budget.least.source}), and {deployment.accelerator.name} has {gib(budget.most)} for them and the KV cache."
    )
    yield error(deployment, message, path="tpu.type", hint=_large_enough(deployment, budget.least.size))


def _large_enough(deployment: Deployment, least: int) -> str:
    """Return the smallest slice of this generation that may hold the weights."""
    generation = catalog.generation(deployment.accelerator.generation)
    share = UTILIZATION * generation.most_bytes
    fitting = [kind for kind in generation.types if kind.devices * share > least]
    if not fitting:
        return f"No slice of {generation.name} holds that: name a smaller or a quantized checkpoint."
    smallest = min(fitting, key=lambda kind: kind.devices)
    return f"{smallest.name} is the smallest slice of {generation.name} that may hold them."


@check_for(
    "TPU2130",
    "The model's name tells of more parameters than the chips hold",
    "The model isn't in the catalog. Its name states a number of parameters, such as 405B. Even at four bits "
    "each, the smallest quantization on TPU, they wouldn't fit. A name proves nothing, so this is a warning. "
    "`tpudeploy plan` reads the checkpoint's real size from the hub; model.config gives its shapes.",
    "tpu: {type: v6e-8}",
)
def large_by_name(deployment: Deployment) -> Iterator[Diagnostic]:
    budget, billions = deployment.budget, parameters_in_name(deployment.model_id)
    if not isinstance(budget, Unsized) or budget.model is not None or budget.least is not None or not billions:
        return
    least = least_of_parameters(billions * 1e9)
    most = UTILIZATION * deployment.accelerator.devices * _hbm_bytes(deployment)
    if least.size > most:
        message = (
            f"By its name, {deployment.model_id} has {billions:g} billion parameters: even with 4 bits each they take "
            f"{gib(least.size)} or more, and {deployment.accelerator.name} has {gib(int(most))}."
        )
        yield warning(deployment, message, path="tpu.type", hint=_large_enough(deployment, least.size))


def _hbm_bytes(deployment: Deployment) -> int:
    return catalog.generation(deployment.accelerator.generation).most_bytes


@check_for(
    "TPU2102",
    "No memory is left for the KV cache",
    'The weights fit, but not even the shortest request fits beside them. vLLM would stop with "No available '
    'memory for the cache blocks". Give vLLM a larger share of HBM, or take more chips.',
    "serving: {hbm_utilization: 0.92}",
)
def no_cache_left(deployment: Deployment) -> Iterator[Diagnostic]:
    budget = bounded(deployment)
    if budget is None or budget.holds_a_request or not _weights_fit(budget) or longest(budget):
        return
    rest = int(budget.hbm_bytes_per_chip * budget.engine.utilization) - budget.weights_bytes_per_chip
    weights = f"{_least(deployment)}{gib(budget.weights_bytes_per_chip)} of weights a {budget.accelerator.device_noun}"
    message = f"Beside {weights}, {_most(deployment)}{gib(rest)} is left: no KV cache."
    yield error(deployment, message, path="serving.hbm_utilization", hint=ways_out(deployment, budget))


@check_for(
    "TPU2103",
    "max_model_len is larger than the KV cache",
    "vLLM starts only if the KV cache holds one request of full length plus one block. Otherwise it stops with "
    '"To serve at least one request with the model\'s max seq len …". The message names the largest length for '
    "this cache.",
    "serving: {max_model_len: 8192}",
)
def length_beyond_cache(deployment: Deployment) -> Iterator[Diagnostic]:
    budget = bounded(deployment)
    if budget is None or budget.holds_a_request or not longest(budget):
        return
    length, blocks = budget.engine.max_model_len, budget.blocks_per_request
    message = (
        f"One request of max_model_len {length:,} takes {blocks:,} blocks of {budget.block_size} and one is set aside: "
        f"the KV cache has {_most(deployment)}{budget.num_blocks:,}."
    )
    yield error(deployment, message, path="serving.max_model_len", hint=ways_out(deployment, budget))


def _weights_fit(budget: HbmBudget) -> bool:
    return budget.weights_bytes_per_chip < budget.hbm_bytes_per_chip * budget.engine.utilization


def _least(deployment: Deployment) -> str:
    """Return the words before the bytes that `bounded` takes: "" where they are exact."""
    return "at least " if sized(deployment) is None else ""


def _most(deployment: Deployment) -> str:
    """Return the words before the bytes that `bounded` leaves: "" where they are exact."""
    return "at most " if sized(deployment) is None else ""


@check_for(
    "TPU2105",
    "Too little room for compiled programs",
    "vLLM fills hbm_utilization of HBM with weights and KV cache and reserves nothing for its compiled programs. "
    "They need the rest. Without enough of it, the boot fails after minutes with "
    '"RuntimeProgramAllocationFailure". Measured on one v5e chip: 0.95 failed where 0.92 booted. The largest '
    "program is structured decoding, with up to max_num_seqs x vocabulary x 6 bytes, or the backbone of the "
    "largest token bucket. It depends on the release's libtpu: since tpu-inference 0.32, a vocabulary with a "
    "power-of-two size, such as Gemma 4's, takes a third of that.",
    "serving: {hbm_utilization: 0.92}",
)
def program_room(deployment: Deployment) -> Iterator[Diagnostic]:
    budget, path = bounded(deployment), "serving.hbm_utilization"
    if budget is None or not budget.holds_a_request:
        return
    room = room_for_programs(budget.model, budget.engine)
    rest = budget.free_bytes_per_chip + budget.program_bytes_per_chip
    certain = certain_bytes(budget.model, budget.engine, budget.accelerator.generation)
    if rest >= max(room.proven, certain):
        return
    remainder = f"{_most(deployment)}{gib(rest, 2)} a {budget.accelerator.device_noun}"
    share = f"hbm_utilization {budget.engine.utilization:g} leaves {remainder}"
    hint = _lower_utilization(deployment, budget, room.utilization(budget.hbm_bytes_per_chip))
    if rest < certain:
        message = f"{share} for compiled programs, which need {gib(room.needed, 2)}: the boot would fail."
        yield error(deployment, message, path=path, hint=hint)
        return
    if rest < room.needed:
        doubt = f", which are estimated to need {gib(room.needed, 2)}: the boot may fail."
    else:
        doubt = f"; boots are known to succeed with {gib(room.proven, 2)}."
    yield warning(deployment, f"{share} for compiled programs{doubt}", path=path, hint=hint)


def _lower_utilization(deployment: Deployment, budget: HbmBudget, utilization: float) -> str:
    """Return the utilization that leaves enough, if the KV cache still holds a request then."""
    lower = budget_with(budget, utilization=utilization) if utilization > 0 else None
    if lower is not None and lower.holds_a_request:
        return f"hbm_utilization: {utilization:g} leaves enough; fewer max_num_seqs need less."
    return ways_out(deployment, budget)


@check_for(
    "TPU2107",
    "Tensor parallelism beyond the KV heads copies the cache",
    "A chip holds whole KV heads. With more chips than KV heads, several chips hold copies of the same head: they "
    "add no room for tokens, only what their share of the weights frees. Copies of the whole model "
    "(data_parallel_size) add room where one fits.",
    "serving: {tensor_parallel_size: 1, data_parallel_size: 4}",
)
def copied_cache(deployment: Deployment) -> Iterator[Diagnostic]:
    """Yield nothing where only some layers are copied and the weights need the devices: there is nothing better."""
    budget = bounded(deployment) if lacks_limit_alone(deployment) else sized(deployment)
    if budget is None or not budget.holds_a_request:
        return
    heads, ranks, noun = min(budget.model.kv_heads), budget.engine.tensor_parallel, budget.accelerator.device_noun
    copies = best_copies(budget) if heads < ranks else None
    stages = best_stages(budget) if heads < ranks else None
    if heads >= ranks or (copies is None and stages is None and max(budget.model.kv_heads) >= ranks):
        return
    most = _most(deployment)
    message = (
        f"Layers with {heads} KV head{'s' if heads > 1 else ''} are cached {ranks // heads} times over {ranks} "
        f"{noun}s: {budget.kv_bytes_per_token_per_chip:,} bytes a token on each, "
        f"{most}{budget.kv_cache_tokens:,} tokens in all."
    )
    hint = f"No split into copies has more room: the weights need these {noun}s."
    if copies is not None:
        split = f"tensor_parallel_size {copies.engine.tensor_parallel} x data_parallel_size"
        hint = f"{split} {copies.engine.data_parallel} would hold {most}{copies.kv_cache_tokens:,}."
    elif stages is not None:
        split = f"tensor_parallel_size {stages.engine.tensor_parallel} with args.pipeline_parallel_size"
        hint = f"{split} {stages.engine.pipeline_parallel} would hold {most}{stages.kv_cache_tokens:,}."
    yield warning(deployment, message, path="serving.tensor_parallel_size", hint=hint)


@check_for(
    "TPU2108",
    "An fp8 KV cache saves nothing here",
    "Keys and values are packed into words of four bytes. With one KV head per chip, four one-byte values replace"
    " two two-byte values; half of them are padding. Measured on Gemma 4 E2B: the same number of blocks in both "
    "types, but 2 to 6 % less throughput in fp8.",
    "serving: {kv_cache_dtype: auto}",
)
def idle_fp8(deployment: Deployment) -> Iterator[Diagnostic]:
    model, engine = model_of(deployment), engine_of(deployment)
    has_layout = isinstance(deployment.budget, HbmBudget) or deployment.budget.has_layout
    if model is None or engine is None or not has_layout or not engine.kv_dtype.startswith("fp8"):
        return
    in_fp8, plain = bytes_per_token(model, engine), bytes_per_token(model, replace(engine, kv_dtype="auto"))
    if plain <= in_fp8:
        message = (
            f"kv_cache_dtype {engine.kv_dtype} buys nothing here: {in_fp8:,} bytes a token and chip, "
            f"and {plain:,} in {engine.dtype}."
        )
        hint = "Leave it out: it costs accuracy and a little speed."
        yield warning(deployment, message, path="serving.kv_cache_dtype", hint=hint)


@check_for(
    "TPU2132",
    "Attention heads for which the compiler has no room in vector memory",
    "Without a chip, libtpu refused the attention kernel for these heads on a chip and this many tokens a step. "
    "No boot was seen to end so. In smaller steps the kernel takes less.",
    "serving: {max_num_batched_tokens: 512}",
)
def many_heads(deployment: Deployment) -> Iterator[Diagnostic]:
    model, engine = model_of(deployment), engine_of(deployment)
    if model is None or engine is None:
        return
    refusal = vector_memory_refusal(model, engine, deployment.accelerator.generation)
    if refusal is not None:
        heads = max(model.kv_heads) // engine.tensor_parallel
        message = (
            f"The compiler may refuse the attention kernel of {heads} KV heads a chip in steps of {refusal.tokens:,} "
            f'tokens or more: "{refusal.words}"'
        )
        hint = "Lower serving.max_num_batched_tokens: with 512, the kernel of 32 KV heads compiles."
        yield warning(deployment, message, path="serving.max_num_batched_tokens", hint=hint)


@check_for(
    "TPU2111",
    "block_size bypasses the guard of scalar memory",
    "Block tables have to fit into one MiB of scalar memory. Without block_size in the profile, the platform "
    "chooses large enough blocks. With it, vLLM uses the value as is. If it's too small, the boot ends with \"Ran "
    'out of memory in memory space smem". Remove it, or set at least the size in the message.',
    "serving: {block_size: 128}",
)
def small_block(deployment: Deployment) -> Iterator[Diagnostic]:
    engine = engine_of(deployment)
    if engine is None or engine.block_size is None:
        return
    least = least_block_size(engine)
    if engine.block_size < least:
        load = f"{engine.max_num_seqs} requests of {engine.max_model_len:,} tokens"
        message = f"block_size {engine.block_size} is below the {least} that {load} need: their block tables "
        hint = "Leave it out: vLLM then chooses."
        refusal = scalar_memory_refusal(engine)
        if refusal:
            message += f'fill scalar memory. The compiler refuses: "{refusal}".'
            yield error(deployment, message, path="serving.block_size", hint=hint)
        else:
            message += "may not fit in scalar memory."
            yield warning(deployment, message, path="serving.block_size", hint=hint)
