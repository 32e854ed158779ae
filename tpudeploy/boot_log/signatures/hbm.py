"""Too little HBM: for weights, for the cache, for programs, while they are compiled."""

from __future__ import annotations

import re
from math import ceil, floor

from tpudeploy.boot_log.settings import EngineFacts, parse_size
from tpudeploy.boot_log.signatures.row import Signature
from tpudeploy.sizing import advice, search
from tpudeploy.sizing.numbers import parse_number
from tpudeploy.sizing.programs import room_beside

_GIB, _MIB = 2**30, 2**20
# Above this share programs have no room: no boot with more is published (tpu_inference issue 2333).
_MOST_UTILIZATION = 0.98


def _weights(match: re.Match[str], facts: EngineFacts) -> str:
    """Return the remedy by used > utilization x limit; the limit follows from the two that the line names."""
    used, cap = parse_number(match["used"]), parse_number(match["cap"])
    present = parse_number(match["now"]) or facts.utilization
    if not used or not cap:
        return _larger_slice(facts)
    assumed = f" (if it is {present:.2f} now, the default)"
    now = f" (now {present:.2f})" if match["now"] else facts.present_utilization or assumed
    limit = cap / present
    # As `size` and `validate` say with a profile: one request has to fit beside the weights.
    needed = max(ceil(100 * used / limit + 1) / 100, _least_utilization(facts))
    if needed <= _most_utilization(facts):
        return (
            f"Set serving.hbm_utilization to {needed:.2f} or more{now}: the weights take {used:.2f} GiB of "
            f"{limit:.2f}. The cache comes on top, and compiled programs need room beside both: `tpudeploy size` "
            f"computes it. {_larger_slice(facts)}"
        )
    larger = _larger_slice(facts).removeprefix("Or t")
    return f"No utilization helps: the weights alone take {used:.2f} GiB of {limit:.2f}. T{larger}"


def _no_room(_: re.Match[str], facts: EngineFacts) -> str:
    higher = _higher_utilization(facts)
    return f"{f'{higher}, or take' if higher else 'Take'} a smaller or quantized checkpoint. {_larger_slice(facts)}"


def _most_utilization(facts: EngineFacts) -> float:
    """Return the largest share that leaves room for programs, as `size` and `validate` compute it with a profile."""
    if facts.budget is None:
        return _MOST_UTILIZATION
    return min(_MOST_UTILIZATION, search.largest_utilization(facts.budget))


def _least_utilization(facts: EngineFacts) -> float:
    """Return the utilization that `size` and `validate` advise with a profile, or 0.0."""
    ways = () if facts.budget is None or facts.budget.holds_a_request else advice.remedies(facts.budget)
    alone = [way for way in ways if way.settings.keys() == {search.UTILIZATION_KEY}]
    return alone[0].budget.engine.utilization if alone else 0.0


def _higher_utilization(facts: EngineFacts) -> str:
    """Return the advice to raise the utilization, with the least value that fits; "" where none does."""
    present, most = facts.utilization, _most_utilization(facts)
    if facts.budget is None or facts.budget.holds_a_request:  # the estimate was wrong, so it cannot name the value
        is_higher = present + 0.01 < most
        return f"Raise serving.hbm_utilization{facts.present_utilization}, to {most:.2f} at most" if is_higher else ""
    least = _least_utilization(facts)
    return f"Raise serving.hbm_utilization to {least:.2f}{facts.present_utilization}" if least > present else ""


def _lower_utilization(facts: EngineFacts, missing: float, most: float = 1.0) -> str:
    """Return the advice to lower the utilization by the bytes that are missing on a chip; "" where it cannot be.

    `most`: the value that `size` names for a program of that size, whether or not there is a profile.
    """
    chip = facts.chip_bytes
    if not chip or missing <= 0:
        return ""
    # A hundredth more than is missing: what is loaded after this program is not known.
    if not facts.present_utilization:  # neither log nor profile tells the value that is to be lowered
        return f"lower serving.hbm_utilization by {ceil(100 * missing / chip + 1) / 100:.2f} or more"
    lower = min(floor(100 * (facts.utilization - missing / chip) - 1) / 100, _most_utilization(facts), most)
    return f"lower serving.hbm_utilization to {lower:.2f}{facts.present_utilization}" if lower > 0 else ""


def _too_long(match: re.Match[str], facts: EngineFacts) -> str:
    """Return the remedy by the profile's size, where it is known, which is more exact than vLLM's own estimate."""
    refused, estimate = int(match["asked"]), parse_number(match["longest"])
    planned = 0 if facts.budget is None else advice.longest(facts.budget)
    # A length that was refused is no advice, whatever computes it.
    lengths = [length for length in (planned, int(estimate or 0)) if 0 < length < refused]
    higher = _higher_utilization(facts)
    other = f", or {higher[0].lower()}{higher[1:]}" if higher else ""
    ways = () if facts.budget is None or facts.budget.holds_a_request else advice.remedies(facts.budget)
    if any(way.settings.keys() == {search.KV_TYPE_KEY} for way in ways):
        other += f", or set serving.kv_cache_dtype to {search.SMALL_KV_TYPE}"
    if lengths:
        return f"Set serving.max_model_len to {lengths[0]} or less (now {match['asked']}){other}."
    return f"Lower serving.max_model_len{other}."


def _program(match: re.Match[str], facts: EngineFacts) -> str:
    """Return the remedy for a program: its missing bytes must come from the cache, or from fewer sequences."""
    needed, free = parse_size(match["wanted"]), parse_size(match["free"])
    is_largest = "structured_decode" in (match["program"] or "")
    lower, fewer = "", "lower serving.max_num_seqs"
    if needed and free is not None:
        chip = facts.chip_bytes if is_largest and facts.budget is None else None
        arrays = int(needed) // _MIB * _MIB  # the rest is the program itself, as in 384.11M
        most = room_beside(arrays).utilization(int(chip)) if chip else 1.0
        lower = _lower_utilization(facts, needed - free, most)
    seqs = facts.flag("max_num_seqs")
    if is_largest and seqs and needed and free:
        fitting = max(1, int(seqs * free / needed))
        fewer = f"lower serving.max_num_seqs to {fitting} (now {seqs}: {needed / seqs / _MIB:.2f} MiB for each)"
    if not facts.chip_bytes:
        lower = "lower serving.hbm_utilization"
    plain = "drop speculative decoding (serving.args.speculative_config)" if facts.is_speculative else ""
    return f"Compiled programs need room beside weights and cache: {_either(lower, fewer, plain)}."


def _compiling(match: re.Match[str], facts: EngineFacts) -> str:
    over, tokens = parse_size(match["over"]), facts.flag("max_num_batched_tokens")
    half = f" to {tokens // 2} (now {tokens})" if tokens and tokens > 1 else ""
    lower = _lower_utilization(facts, over) if over else ""
    return f"A program's temporaries do not fit: {_either(f'lower serving.max_num_batched_tokens{half}', lower)}."


def _array(match: re.Match[str], facts: EngineFacts) -> str:
    """Return the remedy: the log does not say whether weights or cache ask for it."""
    needed, free = parse_size(match["wanted"]), parse_size(match["free"])
    lower = _lower_utilization(facts, needed - free) if needed and free is not None else ""
    smaller = "take a smaller or quantized checkpoint"
    return (
        f"While weights are loaded, {smaller}; afterwards, "
        f"{lower or 'lower serving.hbm_utilization'}. {_larger_slice(facts)}"
    )


def _either(*ways: str) -> str:
    return "; or ".join(way for way in ways if way)


def _in_place(match: re.Match[str], facts: EngineFacts) -> str:
    needed, size = parse_size(match["wanted"]), parse_size(match["has"])
    needs = f" ({needed / _GIB:.2f} GiB, and it has {size / _GIB:.2f})" if needed and size else ""
    return (
        f"Weights are quantized in place, which needs more than the chip has{needs}. Do not quantize while loading: "
        "remove serving.args.additional_config.quantization, or serve a checkpoint that is quantized already. "
        f"{_larger_slice(facts, needed)}"
    )


def _loading(match: re.Match[str], facts: EngineFacts) -> str:
    return f"Take a smaller or already quantized checkpoint. {_larger_slice(facts, parse_size(match['wanted']))}"


def _tables(_: re.Match[str], facts: EngineFacts) -> str:
    """Return the remedy: larger blocks make smaller tables, and only a size that the profile writes can be removed."""
    why = "block tables must fit into 1 MB"
    length = facts.flag("max_model_len")
    shorter = f"lower serving.max_model_len (now {length})" if length else "lower serving.max_model_len"
    fewer = f"{shorter} or serving.max_num_seqs"
    if facts.flags and facts.flag("block_size") is None:
        return f"{fewer[0].upper()}{fewer[1:]}, or set a serving.block_size larger than the platform's own: {why}."
    return (
        "Remove serving.block_size, so that the platform chooses one that fits; or set a larger one, or "
        f"{fewer}: {why}."
    )


def _is_quantized(_: re.Match[str], facts: EngineFacts) -> bool:
    """Return False where the log shows its flags, and none of them quantizes while loading."""
    is_in_config = "quantization" in str(facts.flags.get("additional_config", ""))
    return not facts.flags or is_in_config or "quantization" in facts.flags


def _is_not_quantized(match: re.Match[str], facts: EngineFacts) -> bool:
    return not _is_quantized(match, facts)


def _larger_slice(facts: EngineFacts, needed: float | None = None) -> str:
    """Return the smallest slice that would do, if a profile tells it; tensor parallelism shares the weights."""
    ways = () if facts.budget is None else advice.remedies(facts.budget)
    slices = [way for way in ways if search.TYPE_KEY in way.settings]
    if slices:
        doubt = "" if advice.has_limit(slices[0].budget.accelerator) else ", whose HBM limit is not recorded"
        return f"Or take tpu.type {slices[0].settings[search.TYPE_KEY]}{doubt}."
    chip = "a chip with more HBM" if needed else "a slice with more chips (tensor_parallel_size shares the weights)"
    return f"Or take {chip}."


def _pools(match: re.Match[str], facts: EngineFacts) -> str:
    """Return the remedy for a model with states beside its cache: each request holds one, whatever its length."""
    present, requests = parse_number(match["now"]) or 0.0, int(match["requests"])
    needed = int(match["blocks"]) * int(match["layers"]) * int(match["block_bytes"])
    room = (parse_number(match["room"]) or 0.0) * _GIB
    fitting = int(requests * room / needed) if needed else 0
    # Half of what has room without any cache: attention needs a cache as well.
    fewer = f"to {max(1, fitting // 2)} " if 0 < fitting < requests else ""
    most = _most_utilization(facts)
    higher = f", or raise serving.hbm_utilization (now {present:.2f}, {most:.2f} at most)" if present < most else ""
    return (
        f"Lower serving.max_num_seqs {fewer}(now {requests}: their states alone take {needed / _GIB:.2f} GiB, and "
        f"{room / _GIB:.2f} GiB are free){higher}. {_larger_slice(facts)}"
    )


ROWS: tuple[Signature, ...] = (
    Signature(
        name="pools-exceed-hbm",
        what="The states of a hybrid model leave no room for its KV cache",
        pattern=(
            r"Cannot fit both KV pools under gpu_memory_utilization=(?P<now>[\d.]+): the mamba pool needs "
            r"(?P<blocks>\d{1,9}) blocks \(\d+ per request x (?P<requests>\d{1,9}) requests\) across "
            r"(?P<layers>\d{1,6}) layers at (?P<block_bytes>\d{1,15}) B/block.*?of the (?P<room>[\d.]+) GiB available"
        ),
        remedy=_pools,
        # tpu_inference 0.32, hybrid KV pools
        example=(
            "ValueError: Cannot fit both KV pools under gpu_memory_utilization=0.90: the mamba pool needs 1032 blocks "
            "(4 per request x 256 requests) across 24 layers at 2228224 B/block, which leaves nothing of the 10.02 GiB "
            "available for attention."
        ),
    ),
    Signature(
        name="weights-exceed-hbm",
        what="The weights do not fit into the share of HBM that the engine may use",
        pattern=(
            r"total_hbm_used_gb=(?P<used>[\d.]+)GiB exceeds total_hbm_limit_cap_gb=(?P<cap>[\d.]+)GiB"
            r"(?:.*?--gpu-memory-utilization from (?P<now>\d\.\d+|\d) )?"
        ),
        remedy=_weights,
        example=(
            "ValueError: total_hbm_used_gb=48.09GiB exceeds total_hbm_limit_cap_gb=28.74GiB by 19.35GiB. Please "
            "consider increasing --gpu-memory-utilization from 0.92 to a larger value."
        ),
    ),
    Signature(
        name="no-room-for-kv",
        what="Beside the weights nothing is left for the KV cache",
        pattern=r"No available memory for the cache blocks|Cannot auto-fit max_model_len: not enough",
        remedy=_no_room,
        example=(
            "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when "
            "initializing the engine."
        ),
    ),
    Signature(
        name="length-exceeds-kv",
        what="Not one request of max_model_len fits into the KV cache",
        pattern=(
            r"To serve at least one request with the model\w*'s max seq len \((?P<asked>\d+)\)"
            r"(?:.*estimated maximum model length is (?P<longest>\d+))?"
        ),
        remedy=_too_long,
        example=(
            "ValueError: To serve at least one request with the model's max seq len (131072), (4.50 GiB KV cache is "
            "needed, which is larger than the available KV cache memory (3.20 GiB). Based on the available memory, the "
            "estimated maximum model length is 93184."
        ),
    ),
    Signature(
        name="no-room-for-program",
        what="A compiled program does not fit beside weights and cache",
        pattern=(
            r"(?:RuntimeProgramAllocationFailure|Error loading (?=program '))(?:.*?program '(?P<program>[^']*)')?"
            r"(?:.*?Attempting to (?:reserve|allocate) (?P<wanted>[\d.]+ ?[KMGT]?))?"
            r"(?:.*?There are (?P<free>[\d.]+ ?[KMGT]?))?"
        ),
        remedy=_program,
        example=(
            "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: E0101: RuntimeProgramAllocationFailure: Error loading "
            "program 'jit_structured_decode_fn': Attempting to reserve 384.11M at the bottom of memory. That was not "
            "possible. There are 346.77M free, 0B reserved, and 346.77M reservable."
        ),
    ),
    Signature(
        name="no-room-for-array",
        what="An array does not fit into the HBM that is left",
        pattern=(
            r"(?:Error allocating device buffer: Attempting to allocate |Out of memory while trying to allocate "
            r"|Failed to allocate request for |Out of memory allocating )(?P<wanted>[\d.]+ ?[KMGT]?)(?:i?B|\b)"
            r"(?:.*?There are (?P<free>[\d.]+ ?[KMGT]?))?"
        ),
        remedy=_array,
        # libtpu's words, in huggingface/diffusers issue 8358 and pytorch/xla issue 8020; XLA's of other releases
        example=(
            "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Error allocating device buffer: Attempting to allocate "
            "4.39G. That was not possible. There are 2.30G free.; (0x0x0_HBM0)"
        ),
    ),
    Signature(
        name="hbm-temporaries",
        what="Quantizing the weights in place needs more HBM than the chip has",
        pattern=r"HLO temporaries \((?P<wanted>[\d.]+ ?[KMGT]?i?B?)\).*?exceeds.*?HBM \((?P<has>[\d.]+ ?[KMGT]?i?B?)\)",
        remedy=_in_place,
        example=(
            "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Ran out of memory on HBM, the total memory required for "
            "HLO temporaries (16.23G) exceeds available HBM (15.75G)."
        ),
        applies=_is_quantized,
    ),
    Signature(
        name="hbm-temporaries-loading",
        what="A computation needs more HBM for its temporaries than the chip has",
        pattern=r"HLO temporaries \((?P<wanted>[\d.]+ ?[KMGT]?i?B?)\).*?exceeds.*?HBM \((?P<has>[\d.]+ ?[KMGT]?i?B?)\)",
        remedy=_loading,
        example="Ran out of memory on HBM, the total memory required for HLO temporaries (20.1G) exceeds HBM (15.75G).",
        applies=_is_not_quantized,
    ),
    Signature(
        name="no-room-while-compiling",
        what="A program's temporaries do not fit into HBM while it is compiled",
        # The second wording: docs.jax.dev/en/latest/device_memory_profiling.html
        pattern=(
            r"Ran out of memory in memory space hbm(?:.*?Exceeded hbm capacity by (?P<over>[\d.]+ ?[KMGT]?))?"
            r"|Allocation \(size=\d+\) would exceed memory \(size=\d+\).*space=hbm"
        ),
        remedy=_compiling,
        example=(
            "RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space hbm. Used 33.10G "
            "of 31.24G hbm. Exceeded hbm capacity by 1.86G."
        ),
    ),
    Signature(
        name="no-room-in-kernel",
        what="An attention kernel's block tables do not fit into the chip's scalar memory (SMEM)",
        # The second wording: tables of more than a MiB, by libtpu 0.0.48 for an absent chip.
        pattern=(
            r"Ran out of memory in memory space smem"
            r"|Allocation \(size=\d+\) would exceed memory \(size=\d+\).*space=smem"
        ),
        remedy=_tables,
        example="RESOURCE_EXHAUSTED: Ran out of memory in memory space smem. Used 1.31M of 1.00M smem.",
    ),
    Signature(
        name="compiling-side-by-side",
        what="Compiling several programs at once failed",
        pattern=r"Compilation failed: .*NUM_PRECOMPILE_WORKERS",
        remedy='Set serving.env.NUM_PRECOMPILE_WORKERS to "1": slower, and one at a time.',
        example="RuntimeError: Compilation failed: out of memory. Try setting NUM_PRECOMPILE_WORKERS=1",
    ),
)
