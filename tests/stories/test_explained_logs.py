"""`logs --explain` and `size` give the same advice, and no remedy contradicts the log it is read from."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from command_line import PROFILE, CommandLine, Open

DATA = Path(__file__).parents[1] / "boot_log" / "data"
OUT_OF_MEMORY = next(DATA.glob("*oom*")).read_text("utf-8")
V5E = PROFILE.replace("v6e-1", "v5litepod-1").replace(
    "max_model_len", "hbm_utilization: 0.95\n  max_num_batched_tokens: 4096\n  max_model_len"
)
ENGINE = "(EngineCore pid=187) ERROR 11-22 10:03:20 [core.py:1349] "


def explained(cli: Open, log: str, profile: str | None = None) -> str:
    at: CommandLine = cli()
    (at.folder / "boot.log").write_text(log, "utf-8")
    profiles = [] if profile is None else [at.write(profile)]
    result = at.run("logs", *profiles, "--file", "boot.log", "--explain", "-json")
    (reading,) = json.loads(result.out)["logs"]
    remedy: str = reading["cause"]["remedy"]
    return remedy


def diagnostics(cli: Open, profile: str) -> dict[str, Any]:
    at: CommandLine = cli()
    result = at.run("size", at.write(profile), "-json")
    return {each["code"]: each for each in json.loads(result.out)["diagnostics"]}


def test_a_real_boot_without_room_for_programs_is_advised_as_size_advises_it(cli: Open) -> None:
    """With the profile and without: the number is that with which boots are known to succeed."""
    advised = re.match(r"hbm_utilization: ([\d.]+) leaves enough", diagnostics(cli, V5E)["TPU2105"]["hint"])
    assert advised is not None
    for profile in (None, V5E):
        assert f"lower serving.hbm_utilization to {advised[1]} (now 0.95)" in explained(cli, OUT_OF_MEMORY, profile)


def _exceeds(used: float, cap: float, share: float) -> str:
    return (
        f"{ENGINE}ValueError: total_hbm_used_gb={used:.2f}GiB exceeds total_hbm_limit_cap_gb={cap:.2f}GiB by "
        f"{used - cap:.2f}GiB. Please consider increasing --gpu-memory-utilization from {share} to a larger value.\n"
    )


def test_the_utilization_that_weights_need_is_that_of_size(cli: Open) -> None:
    low = PROFILE.replace("max_model_len", "hbm_utilization: 0.2\n  max_model_len")
    advised = re.match(r"hbm_utilization: ([\d.]+) is enough", diagnostics(cli, low)["TPU2101"]["hint"])
    assert advised is not None
    remedy = explained(cli, _exceeds(8.97, 6.25, 0.2), low)
    assert f"Set serving.hbm_utilization to {advised[1]} or more (now 0.20)" in remedy


@pytest.mark.parametrize(
    ("used", "cap", "share", "says"),
    [
        (20.0, 15.62, 0.5, "Set serving.hbm_utilization to 0.66 or more (now 0.50)"),
        (30.9, 28.74, 0.92, "No utilization helps: the weights alone take 30.90 GiB of 31.24"),
        (61.5, 62.5, 0.5, "Set serving.hbm_utilization to"),  # four chips are counted together
        (48.09, 28.74, 0.92, "No utilization helps"),
    ],
)
def test_no_utilization_helps_is_computed_with_the_numbers_in_the_line(
    cli: Open, used: float, cap: float, share: float, says: str
) -> None:
    assert says in explained(cli, _exceeds(used, cap, share))


def test_a_length_that_was_refused_is_not_advised(cli: Open) -> None:
    """By the profile's arithmetic it fits, and the engine said no: then the engine's own estimate counts."""
    log = (
        f"{ENGINE}ValueError: To serve at least one request with the models's max seq len (16384), (4.5 GiB KV cache is "
        "needed, which is larger than the available KV cache memory (3.2 GiB). Based on the available memory, the "
        "estimated maximum model length is 9312.\n"
    )
    assert "Set serving.max_model_len to 9312 or less (now 16384)" in explained(cli, log, PROFILE)


def test_block_tables_beyond_scalar_memory_are_explained_in_either_wording_of_the_compiler(cli: Open) -> None:
    words = "Allocation (size=2097152) would exceed memory (size=1048576) :: #allocation11 [shape = 'u8[2097152]{0}', "
    died = f"{ENGINE}jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: {words}space=smem, size = 0x200000, scoped]\n"
    assert "block tables must fit into 1 MB" in explained(cli, died)


def test_a_block_size_that_was_not_written_is_not_to_be_removed(cli: Open) -> None:
    died = f"{ENGINE}jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Ran out of memory in memory space smem. Used 1.31M of 1.00M.\n"
    flags = "(APIServer pid=1) INFO 11-22 10:00:05 [utils.py:233] non-default args: "
    assert "Remove serving.block_size" not in explained(cli, f"{flags}{{'max_num_seqs': 512}}\n{died}")
    assert "Remove serving.block_size" in explained(cli, f"{flags}{{'block_size': 16}}\n{died}")


def test_a_plugin_that_fails_to_load_is_not_what_a_server_died_of(cli: Open) -> None:
    plugin = "ERROR 11-22 10:00:03 [__init__.py:72] "
    log = (
        f"{plugin}Failed to load plugin lora_resolver\n{plugin}Traceback (most recent call last):\n"
        f"{plugin}ModuleNotFoundError: No module named 'lora_resolver'\n"
        "pydantic_core._pydantic_core.ValidationError: 1 validation error for ParallelConfig\n"
        "  Value error, data_parallel_external_lb can only be set when data_parallel_size > 1 [type=value_error]\n"
    )
    assert "data_parallel_external_lb can only be set" in explained(cli, log)


@pytest.mark.parametrize("carrier", ["[pod/vllm-0/vllm] ", "Nov 22 10:03:20 t1v-n-1 docker[4711]: "])
def test_a_log_that_kubectl_or_the_journal_printed_is_read(cli: Open, carrier: str) -> None:
    log = (
        "pydantic_core._pydantic_core.ValidationError: 1 validation error for CacheConfig\n"
        "block_size\n  Input should be greater than 0 [type=greater_than, input_value=-1, input_type=int]\n"
    )
    assert "block_size: Input should be greater" in explained(
        cli, "".join(f"{carrier}{line}\n" for line in log.splitlines())
    )
