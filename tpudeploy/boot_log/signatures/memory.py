"""HBM that does not suffice: for weights, for the cache, for programs, while they are compiled."""

from __future__ import annotations

import re
from math import ceil, floor

from tpudeploy.boot_log.said import Said, number, size
from tpudeploy.boot_log.signatures.row import Signature, always
from tpudeploy.domain.budget import HbmBudget
from tpudeploy.sizing import advice
from tpudeploy.sizing.programs import program_room, room_beside

_GIB, _MIB = 2**30, 2**20
# Above this share nothing is left for programs: no boot with more is published (tpu_inference issue 2333).
_MOST_UTILIZATION = 0.98
# jit_structured_decode_fn's arrays: logits in bfloat16 and float32 (sizing/programs.py).
_LOGIT_BYTES = 6


def _weights(found: re.Match[str], said: Said) -> str:
    """Used > utilization x limit; the limit follows from the two that the line names."""
    used, cap, now = number(found["used"]), number(found["cap"]), number(found["now"]) or said.utilization
    if not used or not cap:
        return _larger_slice(said)
    limit = cap / now
    # As `size` and `validate` say with a profile: one request has to fit beside the weights.
    needed = max(ceil(100 * used / limit + 1) / 100, _least_utilization(said))
    if needed <= _most_utilization(said):
        return (
            f"Set serving.hbm_utilization to {needed:.2f} or more (now {now:.2f}): the weights take {used:.2f} GiB of "
            f"{limit:.2f}. The cache comes on top, and compiled programs need room beside both: `tpudeploy size` "
            f"computes it. {_larger_slice(said)}"
        )
    larger = _larger_slice(said).removeprefix("Or t")
    return f"No utilization helps: the weights alone take {used:.2f} GiB of {limit:.2f}. T{larger}"


def _no_room(_: re.Match[str], said: Said) -> str:
    raised = _raised(said)
    return f"{f'{raised}, or take' if raised else 'Take'} a smaller or quantized checkpoint. {_larger_slice(said)}"


def _most_utilization(said: Said) -> float:
    """Return the largest share that leaves room for programs, as `size` and `validate` reckon with a profile."""
    budget = said.budget
    if budget is None:
        return _MOST_UTILIZATION
    room = program_room(budget.model, budget.engine)
    return min(_MOST_UTILIZATION, room.utilization(budget.hbm_bytes_per_chip))


def _least_utilization(said: Said) -> float:
    """Return the utilization that `size` and `validate` advise with a profile, or 0.0."""
    ways = () if said.budget is None or said.budget.holds_a_request else advice.remedies(said.budget)
    alone = [way for way in ways if way.settings.keys() == {advice.UTILIZATION_KEY}]
    return alone[0].budget.engine.utilization if alone else 0.0


def _raised(said: Said) -> str:
    """Return the advice to raise the utilization, with the least value that fits; "" where none does."""
    now, most = said.utilization, _most_utilization(said)
    if (
        said.budget is None or said.budget.holds_a_request
    ):  # where it did not fit after all, no estimate names the value
        return f"Raise serving.hbm_utilization (now {now:.2f}, {most:.2f} at most)" if now + 0.01 < most else ""
    least = _least_utilization(said)
    return f"Raise serving.hbm_utilization to {least:.2f} (now {now:.2f})" if least > now else ""


def _lowered(said: Said, missing: float, most: float = 1.0) -> str:
    """Return the advice to lower the utilization by the bytes that are missing on a chip; "" where it cannot be.

    `most`: what `size` names for a program of that size, whether or not there is a profile.
    """
    chip = said.chip_bytes
    if not chip or missing <= 0:
        return ""
    # A hundredth more than is missing: what is loaded after this program is not known.
    lower = min(floor(100 * (said.utilization - missing / chip) - 1) / 100, _most_utilization(said), most)
    return f"lower serving.hbm_utilization to {lower:.2f} (now {said.utilization:.2f})" if lower > 0 else ""


def _too_long(found: re.Match[str], said: Said) -> str:
    """VLLM's own estimate; the profile's size, where it is known, says more exactly."""
    asked, estimate = int(found["asked"]), number(found["longest"])
    lengths = [_longest(said.budget), 0 if estimate is None else int(estimate)]
    # What was refused is no advice, whoever computes it.
    longest = next((length for length in lengths if 0 < length < asked), 0)
    raised = _raised(said)
    other = f", or {raised[0].lower()}{raised[1:]}" if raised else ""
    if longest:
        return f"Set serving.max_model_len to {longest} or less (now {found['asked']}){other}."
    return f"Lower serving.max_model_len{other}."


def _program(found: re.Match[str], said: Said) -> str:
    """What is wanted beyond what is free must come from the cache: by a lower utilization, or fewer sequences."""
    wanted, free = size(found["wanted"]), size(found["free"])
    seqs, is_largest = said.flag("max_num_seqs"), "structured_decode" in (found["program"] or "")
    chip = said.chip_bytes if is_largest and wanted and said.budget is None else None
    arrays = int(wanted or 0) // _MIB * _MIB  # the rest is the program itself, as in 384.11M
    most = room_beside(arrays).utilization(int(chip)) if chip else 1.0
    ways = [_lowered(said, wanted - free, most)] if wanted and free is not None else []
    if is_largest and seqs and wanted and free:
        fitting = max(1, int(seqs * free / wanted))
        ways.append(f"lower serving.max_num_seqs to {fitting} (now {seqs}: {_LOGIT_BYTES} B x vocabulary for each)")
    else:
        ways.append("lower serving.max_num_seqs")
    if said.is_speculative:
        ways.append("drop speculative decoding (serving.args.speculative_config)")
    return f"Compiled programs need room beside weights and cache: {'; or '.join(way for way in ways if way)}."


def _compiling(found: re.Match[str], said: Said) -> str:
    over, tokens = size(found["over"]), said.flag("max_num_batched_tokens")
    halved = f" to {tokens // 2} (now {tokens})" if tokens and tokens > 1 else ""
    ways = [f"lower serving.max_num_batched_tokens{halved}", _lowered(said, over) if over else ""]
    return f"A program's temporaries do not fit: {'; or '.join(way for way in ways if way)}."


def _in_place(found: re.Match[str], said: Said) -> str:
    wanted, has = size(found["wanted"]), size(found["has"])
    needs = f" ({wanted / _GIB:.2f} GiB, and it has {has / _GIB:.2f})" if wanted and has else ""
    return (
        f"Weights are quantized in place, which needs more than the chip has{needs}. Do not quantize while loading: "
        "remove serving.args.additional_config.quantization, or serve a checkpoint that is quantized already. "
        f"{_larger_slice(said, wanted)}"
    )


def _loading(found: re.Match[str], said: Said) -> str:
    return f"Take a smaller or already quantized checkpoint. {_larger_slice(said, size(found['wanted']))}"


def _tables(_: re.Match[str], said: Said) -> str:
    """Block tables are smaller with larger blocks; only a size that the profile writes can be removed."""
    why = "block tables must fit into 1 MB"
    if said.flags and said.flag("block_size") is None:
        return f"Lower serving.max_num_seqs, or set a serving.block_size larger than the platform's own: {why}."
    return (
        "Remove serving.block_size, so that the platform chooses one that fits; or set a larger one, or lower "
        f"serving.max_num_seqs: {why}."
    )


def _is_quantized(_: re.Match[str], said: Said) -> bool:
    """Return False where the log shows its flags, and none of them quantizes while loading."""
    return (
        not said.flags or "quantization" in str(said.flags.get("additional_config", "")) or "quantization" in said.flags
    )


def _is_not_quantized(found: re.Match[str], said: Said) -> bool:
    return not _is_quantized(found, said)


def _longest(budget: HbmBudget | None) -> int:
    return 0 if budget is None else advice.longest(budget)


def _larger_slice(said: Said, wanted: float | None = None) -> str:
    """The smallest slice that would do, where a profile lets us know; tensor parallelism shares the weights."""
    ways = () if said.budget is None else advice.remedies(said.budget)
    kinds = [way.settings[advice.TYPE_KEY] for way in ways if advice.TYPE_KEY in way.settings]
    if kinds:
        return f"Or take tpu.type {kinds[0]}."
    chip = "a chip with more HBM" if wanted else "a slice with more chips (tensor_parallel_size shares the weights)"
    return f"Or take {chip}."


ROWS: tuple[Signature, ...] = (
    Signature(
        name="weights-exceed-hbm",
        what="The weights do not fit into the share of HBM that the engine may use",
        pattern=(
            r"total_hbm_used_gb=(?P<used>[\d.]+)GiB exceeds total_hbm_limit_cap_gb=(?P<cap>[\d.]+)GiB"
            r"(?:.*?--gpu-memory-utilization from (?P<now>\d\.\d+|\d) )?"
        ),
        remedy=_weights,
        example=(
            "ValueError: total_hbm_used_gb=48.09GiB exceeds total_hbm_limit_cap_gb=28.74GiB by "
            "19.35GiB. Please consider "
            "increasing --gpu-memory-utilization from 0.92 to a larger value."
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
            r"RuntimeProgramAllocationFailure(?:.*?program '(?P<program>[^']*)')?"
            r"(?:.*?Attempting to (?:reserve|allocate) (?P<wanted>[\d.]+ ?[KMGT]?))?"
            r"(?:.*?There are (?P<free>[\d.]+ ?[KMGT]?))?"
        ),
        remedy=_program,
        example=(
            "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: E0101: RuntimeProgramAllocationFailure: "
            "Error loading program "
            "'jit_structured_decode_fn': Attempting to reserve 384.11M at the bottom of memory. That was not possible. "
            "There are 346.77M free, 0B reserved, and 346.77M reservable."
        ),
    ),
    Signature(
        name="hbm-temporaries",
        what="Quantizing the weights in place needs more HBM than the chip has",
        pattern=r"HLO temporaries \((?P<wanted>[\d.]+ ?[KMGT]?i?B?)\).*?exceeds.*?HBM \((?P<has>[\d.]+ ?[KMGT]?i?B?)\)",
        remedy=_in_place,
        example=(
            "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Ran out of memory on HBM, the total "
            "memory required for HLO "
            "temporaries (16.23G) exceeds available HBM (15.75G)."
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
        pattern=r"Ran out of memory in memory space hbm(?:.*?Exceeded hbm capacity by (?P<over>[\d.]+ ?[KMGT]?))?",
        remedy=_compiling,
        example=(
            "RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space "
            "hbm. Used 33.10G of "
            "31.24G hbm. Exceeded hbm capacity by 1.86G."
        ),
    ),
    Signature(
        name="no-room-in-kernel",
        what="An attention kernel's tables do not fit into the chip's small memories",
        pattern=r"Ran out of memory in memory space (?P<space>vmem|smem)",
        remedy=_tables,
        example="RESOURCE_EXHAUSTED: Ran out of memory in memory space smem. Used 1.31M of 1.00M smem.",
    ),
    Signature(
        name="compiling-side-by-side",
        what="Compiling several programs at once failed",
        pattern=r"Compilation failed: .*NUM_PRECOMPILE_WORKERS",
        remedy=always("Set serving.env.NUM_PRECOMPILE_WORKERS to 1: slower, and one at a time."),
        example="RuntimeError: Compilation failed: out of memory. Try setting NUM_PRECOMPILE_WORKERS=1",
    ),
)
