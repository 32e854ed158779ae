"""Public recipes as profiles: each is valid or refused, sized or not, and started with the recipe's flags.

The file beside each recipe names its source and says what is right. A row that has `settings` changes these keys.
"""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

import pytest
from command_line import command

FOLDER = Path(__file__).parent / "recipes"
GCE = "placement.backend=gce-instance"


@dataclass(frozen=True, kw_only=True)
class Row:
    """What is right of a recipe. `says` is in what `validate` prints, `never` is not.

    `fits`: True, False, None (unsized), or "bounds". `flags` and `variables` are those of the recipe's own command.
    """

    settings: tuple[str, ...] = ()
    code: int = 0
    says: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    fits: bool | str | None = None
    unsized: tuple[str, ...] = ()
    flags: str = ""
    variables: tuple[str, ...] = ()


ROWS = {
    "m6-dstack": Row(fits=True, flags="--tensor-parallel-size 4 --max-model-len 4096 --port 8000"),
    "r01-gemma4-31b-v6e8": Row(
        fits=True,
        flags="--tensor-parallel-size 8 --max-model-len 16384 --disable-chunked-mm-input --enable-auto-tool-choice "
        "--tool-call-parser gemma4",
        variables=("HF_HOME=/dev/shm",),
    ),
    "r04-llama31-8b-v6e1": Row(
        fits=True,
        flags="--tensor-parallel-size 1 --max-model-len 2048 --max-num-batched-tokens 1024 --max-num-seqs 128 "
        "--gpu-memory-utilization 0.98 --seed 42 --no-enable-prefix-caching --async-scheduling",
        variables=("HF_HOME=/dev/shm",),
    ),
    "r05-qwen25-32b-v6e4": Row(
        fits=True,
        never=("the catalogue does not know",),
        flags="--tensor-parallel-size 4 --max-model-len 4096 --max-num-batched-tokens 2048 --max-num-seqs 128 "
        "--gpu-memory-utilization 0.98 --seed 42",
        variables=("VLLM_USE_V1=1",),
    ),
    "r08-qwen3-4b-v6e1": Row(
        fits=True,
        flags="--tensor-parallel-size 1 --max-model-len 4096 --max-num-batched-tokens 1024 --max-num-seqs 128 "
        "--gpu-memory-utilization 0.98 --seed 42",
        variables=("HF_HOME=/dev/shm",),
    ),
    "r10-gemma4-31b-tpu7x4": Row(
        settings=(GCE,),
        unsized=("USE_BATCHED_RPA_KERNEL",),
        flags="--tensor-parallel-size 2 --data-parallel-size 4 --max-model-len 1524 --max-num-seqs 256 "
        "--max-num-batched-tokens 16384 --kv-cache-dtype fp8 --gpu-memory-utilization 0.9 --block-size 256 --seed 42 "
        "--no-enable-prefix-caching --async-scheduling",
        variables=("TPU_MULTIPROCESS_DP=1", "USE_BATCHED_RPA_KERNEL=1", "VLLM_ENGINE_READY_TIMEOUT_S=1800"),
    ),
    "r12-qwen3coder480-tpu7x4": Row(
        settings=(GCE,),
        never=("the catalogue does not know",),
        unsized=("USE_BATCHED_RPA_KERNEL",),
        flags="--tensor-parallel-size 8 --max-model-len 10240 --max-num-batched-tokens 8192 --max-num-seqs 512 "
        "--gpu-memory-utilization 0.8 --block-size 256 --kv-cache-dtype fp8 --enable-expert-parallel "
        "--no-enable-prefix-caching --async-scheduling --download-dir /data --seed 42",
        variables=("MODEL_IMPL_TYPE=vllm",),
    ),
    "r13-qwen3embed-v6e4": Row(
        never=("the catalogue does not know",),
        fits=True,
        flags="--tensor-parallel-size 4 --max-model-len 16384 --max-num-batched-tokens 8192 "
        "--gpu-memory-utilization 0.7 --enable-chunked-prefill --runner pooling",
    ),
    "r15-quickstart-v6e1": Row(fits=True, flags="--tensor-parallel-size 1 --max-model-len 2048 --download-dir /tmp"),
    "r17-issue2333-31b-v6e4": Row(
        unsized=("USE_BATCHED_RPA_KERNEL", "quantization"),
        flags="--tensor-parallel-size 4 --max-model-len 16384 --kv-cache-dtype fp8 --block-size 256",
        variables=("MODEL_IMPL_TYPE=flax_nnx",),
    ),
    "r19-pd": Row(
        says=("TPU2124", "prefill half", "cannot express the pair"),
        fits="bounds",
        flags="--tensor-parallel-size 4 --max-model-len 4096",
        variables=("TPU_KV_TRANSFER_PORT=9100",),
    ),
    "r11-qwen3-32b-tpu7x1": Row(
        settings=(GCE,),
        never=("did you mean",),
        unsized=("USE_BATCHED_RPA_KERNEL", "quantization"),
        flags="--tensor-parallel-size 2 --max-model-len 9216 --max-num-seqs 135 --block-size 256 --download-dir /data",
        variables=("LAYOUT_Q_PROJ_AS_NDH=1",),
    ),
    "m2-issue1850": Row(code=1, says=("[TPU1310]", "write `async_scheduling: false`", "no release before has it")),
    "r06-qwen25vl-7b-v6e1": Row(
        code=1,
        says=("[TPU1310]", "write structured_outputs_config: {backend: …}", "latest is a newer build"),
        never=("kda_decode_backend",),
    ),
    "r07-qwen3-32b-v6e4": Row(
        code=1,
        says=("[TPU1310]", "leave it out: not logging requests is the default now"),
        never=("enable_log_requests",),
    ),
    "r22-sky-name": Row(code=1, says=('did you mean "v6e-4"?',)),
    "r23-xpk-tpu7x-8": Row(
        code=1,
        says=("4 chips on one machine, from $48.00/h", "8 chips on 2 machines, from $96.00/h", "[TPU1308]"),
        never=("TPU1302",),
    ),
    "m4-v4": Row(code=1, says=("Unsupported tpu_version=4",), never=("is valid",)),
}


@pytest.mark.parametrize("name", ROWS)
def test_a_public_recipe_is_understood(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = ROWS[name]
    words = [f"{name}.yaml", *(word for setting in row.settings for word in ("-set", setting))]
    (tmp_path / f"{name}.yaml").write_bytes((FOLDER / f"{name}.yaml").read_bytes())

    validated = command(tmp_path, capsys, "validate", *words)
    assert validated.code == row.code, validated.all
    for text in row.says:
        assert text in validated.all
    for text in row.never:
        assert text not in validated.all
    if row.code:
        return

    size = json.loads(command(tmp_path, capsys, "size", *words, "-json").out)
    because = size.get("cannot_size_because", "")
    if row.fits == "bounds":
        assert size["at_least"]["fits"] is True
    else:
        assert size["fits"] is row.fits
    assert bool(because) == (row.fits is not True)
    for text in row.unsized:
        assert text in because

    rendered = command(tmp_path, capsys, "render", words[0], "docker", *words[1:])
    assert rendered.code == 0, rendered.all
    started = shlex.split(rendered.out.replace("\\\n", " "))
    assert is_within(shlex.split(row.flags), started), started
    for variable in row.variables:
        assert variable in started


def test_every_recipe_has_a_row_and_its_source() -> None:
    assert {path.stem for path in FOLDER.glob("*.yaml")} == set(ROWS)
    assert all((FOLDER / f"{name}.yaml.md").read_text().startswith("Source: ") for name in ROWS)


def test_the_fp8_checkpoint_of_a_known_model_is_sized(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = "r12-qwen3coder480-tpu7x4"
    (tmp_path / f"{name}.yaml").write_bytes((FOLDER / f"{name}.yaml").read_bytes())
    words = (f"{name}.yaml", "-set", GCE, "-set", "serving.env.USE_BATCHED_RPA_KERNEL=null", "-json")
    size = json.loads(command(tmp_path, capsys, "size", *words).out)
    on_each_of_eight_devices = size["at_least"]["weights_bytes_per_chip"] / 2**30
    assert 55 < on_each_of_eight_devices < 65  # 480 billion, a byte each
    assert size["at_least"]["precision"]["weights"] == "fp8"


def is_within(flags: list[str], words: list[str]) -> bool:
    """Return whether each flag, with its value if it has one, is among the words, as `--flag value` or `--flag=value`."""
    text = f" {' '.join(words)} ".replace("=", " ")
    pairs: list[list[str]] = []
    for word in flags:
        if word.startswith("--"):
            pairs.append([word])
        else:
            pairs[-1].append(word)
    return all(f" {' '.join(pair)} " in text for pair in pairs)


@pytest.mark.parametrize("name", ROWS)
def test_text_json_and_exit_code_give_one_verdict(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / f"{name}.yaml").write_bytes((FOLDER / f"{name}.yaml").read_bytes())
    words = [f"{name}.yaml", *(word for setting in ROWS[name].settings for word in ("-set", setting))]
    validated = command(tmp_path, capsys, "validate", *words)
    sized, document = (command(tmp_path, capsys, "size", *words, *more) for more in ((), ("-json",)))
    assert sized.code == document.code, sized.all
    assert bool(sized.code) is bool(validated.code), sized.all
    is_said_to_fit = bool(re.search(r"  fits$", sized.out, re.MULTILINE))
    assert is_said_to_fit is (json.loads(document.out).get("fits") is True), sized.out
