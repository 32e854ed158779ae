"""A command line of docker or vllm becomes a valid profile, with a list of what it doesn't have, or an error at a place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import command
from drafts import SECRETS, at, init

import tpudeploy as td
from tpudeploy import Workspace

HUB = "-v ~/.cache/huggingface:/root/.cache/huggingface"
GPU = f"docker run --runtime nvidia --gpus all {HUB} --ipc=host"
TPU = "docker run --privileged --net=host vllm/vllm-tpu:v0.32.0"
ROWS: dict[str, tuple[str, dict[str, Any], tuple[str, ...]]] = {
    "docker of the TPU image": (
        (
            "sudo docker run -it --rm --privileged --net=host --shm-size 16G -v /dev/shm:/dev/shm -e HF_HOME=/dev/shm "
            "vllm/vllm-tpu:v0.32.0 vllm serve Qwen/Qwen3-8B --tensor-parallel-size 4 --max-model-len 8192"
        ),
        {
            "model.id": "Qwen/Qwen3-8B",
            "tpu.type": "v6e-4",
            "serving.image": "vllm/vllm-tpu:v0.32.0",
            "serving.tensor_parallel_size": 4,
            "serving.max_model_len": 8192,
            "serving.shm_size": "16G",
            "serving.volumes./dev/shm": "/dev/shm",
            "serving.env.HF_HOME": "/dev/shm",
            "lifecycle.end": "24h",
        },
        ("`--net`, `-i`, `-t`, `--rm`, `--privileged`: tpudeploy starts the container",),
    ),
    "vllm serve, flags by alias, underscore and unit": (
        (
            "vllm serve meta-llama/Llama-3.1-8B-Instruct -tp 8 --max_model_len=16k --kv-cache-dtype fp8 "
            "--gpu-memory-utilization .9 --enable-prefix-caching --no-enable-chunked-prefill --dtype bfloat16 --seed 42"
        ),
        {
            "tpu.type": "v6e-8",
            "serving.tensor_parallel_size": 8,
            "serving.max_model_len": "16k",
            "serving.kv_cache_dtype": "fp8",
            "serving.hbm_utilization": 0.9,
            "serving.dtype": "bfloat16",
            "serving.args.enable_prefix_caching": True,
            "serving.args.enable_chunked_prefill": False,
            "serving.args.seed": 42,
        },
        (),
    ),
    "the engine's variables have keys of their own": (
        (
            "VLLM_XLA_CACHE_PATH=/dev/shm/xla VLLM_TPU_BUCKET_PADDING_GAP=512 vllm serve google/gemma-4-E2B-it "
            """--limit-mm-per-prompt '{"image":4,"audio":1}' --disable-chunked-mm-input --max-model-len 4096"""
        ),
        {
            "serving.xla_cache_path": "/dev/shm/xla",
            "serving.padding_gap": 512,
            "serving.args.limit_mm_per_prompt": {"image": 4, "audio": 1},
            "serving.args.disable_chunked_mm_input": True,
        },
        (),
    ),
    "the module of the OpenAI server": (
        (
            "python3 -u -m vllm.entrypoints.openai.api_server --model=Qwen/Qwen2.5-7B-Instruct --host 0.0.0.0 --port 9000 "
            '--served-model-name qwen gpt-4 --chat-template "/tmpl/x y.jinja"'
        ),
        {
            "serving.port": 9000,
            "serving.args.served_model_name": ["qwen", "gpt-4"],
            "serving.args.chat_template": "/tmpl/x y.jinja",
        },
        ("`--host`: the server listens on all addresses",),
    ),
    "a GPU image, and a port of the host": (
        (
            f"{GPU} --env 'HUGGING_FACE_HUB_TOKEN=<secret>' -p 8080:8000 vllm/vllm-openai:latest "
            "--model Qwen/Qwen2.5-7B-Instruct"
        ),
        {
            "serving.port": 8080,
            "serving.volumes./var/lib/tpudeploy/hf": "/root/.cache/huggingface",
            "secrets.HF_TOKEN": "hf-token",
        },
        ("`vllm/vllm-openai:latest`: it's an image for GPUs", "HUGGING_FACE_HUB_TOKEN: it's written as HF_TOKEN"),
    ),
    "GPUs that no slice has as many chips as": (
        f"{GPU} vllm/vllm-openai:v0.10.1 unsloth/Llama-3.3-70B-Instruct --tensor-parallel-size 2 --max-model-len 8192",
        {"tpu.type": "v6e-8", "serving.tensor_parallel_size": None},
        ("`--tensor-parallel-size 2`: all 8 chips of v6e-8 share the model instead",),
    ),
    "a shell in the container": (
        (
            f'{TPU} bash -c "pip install git+https://github.com/huggingface/transformers && '
            'vllm serve google/gemma-4-E2B-it --max-model-len 4096"'
        ),
        {
            "model.id": "google/gemma-4-E2B-it",
            "serving.setup": ["pip install git+https://github.com/huggingface/transformers"],
        },
        (),
    ),
    "quotes, dollars and spaces": (
        (
            """docker run -itd --name My_Server -e A="b c" -e 'Q=it'"'"'s $5' -v "/data dir:/models" """
            """vllm/vllm-tpu:v0.31.0 bash -lc 'vllm serve Qwen/Qwen3-4B --max-num-seqs 128'"""
        ),
        {
            "name": "my-server",
            "serving.env.A": "b c",
            "serving.env.Q": "it's $$5",
            "serving.volumes./data dir": "/models",
            "serving.max_num_seqs": 128,
        },
        (),
    ),
    "an entrypoint": (
        (
            "docker run --entrypoint python3 -e PJRT_DEVICE=TPU -e CUDA_VISIBLE_DEVICES=0 vllm/vllm-tpu:v0.32.0 -m "
            "vllm.entrypoints.openai.api_server --model=Qwen/Qwen3-8B --max-model-len 4096"
        ),
        {"model.id": "Qwen/Qwen3-8B", "serving.env": None},
        ("`PJRT_DEVICE`: the image or the runtime", "`CUDA_VISIBLE_DEVICES`: it's for GPUs"),
    ),
    "flags that are gone, unknown or inexpressible": (
        (
            "vllm serve Qwen/Qwen3-8B --swap-space 4 --foo-bar 3 --compilation-config.nothing 3 --root-path /x "
            "--device tpu --disable-log-requests --max-model-len 4096"
        ),
        {"serving.args": None},
        (
            "`--swap-space`: vLLM 0.32.0 has no such flag any more; 0.17.1 had it",
            "`--foo-bar`: vLLM 0.32.0 has no such flag",
            "`--compilation-config.nothing`",
            "`--root-path`",
            "`--device`",
            "`--disable-log-requests`",
        ),
    ),
    "variables that the text sets, and some that it doesn't": (
        (
            "export TP=4 LEN=4096\nvllm serve Qwen/Qwen3-8B --tensor-parallel-size $TP --max-model-len ${LEN} "
            "--max-num-seqs $SEQS --max-num-batched-tokens ${BATCH:-2048}"
        ),
        {
            "serving.tensor_parallel_size": 4,
            "serving.max_model_len": 4096,
            "serving.max_num_batched_tokens": 2048,
            "serving.max_num_seqs": None,
        },
        ("`--max-num-seqs`: its value depends on $SEQS, which the source doesn't set",),
    ),
    "gcloud's --command, podman, wrappers and redirections": (
        (
            "nohup sudo -E env HF_HOME=/data numactl --cpunodebind=0 vllm serve Qwen/Qwen3-8B --max-model-len 4k "
            "> log.txt 2>&1 &"
        ),
        {"serving.env.HF_HOME": "/data", "serving.max_model_len": "4k"},
        (),
    ),
    "a command of a TPU VM": (
        (
            'gcloud compute tpus tpu-vm ssh my-tpu --zone us-east5-b --command="docker run --net host '
            'vllm/vllm-tpu:v0.32.0 vllm serve Qwen/Qwen3-32B --tensor-parallel-size 8"'
        ),
        {"model.id": "Qwen/Qwen3-32B", "tpu.type": "v6e-8"},
        (),
    ),
    "a model that the catalogue doesn't know": (
        "vllm serve someone/unknown-model-7b --tensor-parallel-size 4 --max-model-len 4096",
        {"tpu.type": "v6e-4", "serving.tensor_parallel_size": 4},
        ("`v6e-4`: whether it holds the model isn't known",),
    ),
    "an array of words": (
        'ARGS=(--max-model-len 4096 --seed 7)\nARGS+=(--dtype bfloat16)\nvllm serve Qwen/Qwen3-8B "${ARGS[@]}"',
        {"serving.max_model_len": 4096, "serving.args.seed": 7, "serving.dtype": "bfloat16"},
        (),
    ),
    "a length that the slice cannot hold finds a larger slice": (
        "vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 131072",
        {"serving.max_model_len": 131072, "tpu.type": "v6e-4"},
        (),
    ),
    "stages of two GPUs, and a variable without a name": (
        (f"{GPU} -e =x vllm/vllm-openai:latest --model Qwen/Qwen3-8B --pipeline-parallel-size 2 --max_model_len 40960"),
        {"tpu.type": "v6e-4", "serving.args": None},
        ("`--pipeline-parallel-size 2`: all 4 chips of v6e-4 share the model instead", "isn't the name of a variable"),
    ),
    "a mount, an address and a file of variables": (
        (
            "docker run --env-file .env -p 127.0.0.1:8000:8000 --mount type=bind,source=/mnt/models,target=/models "
            "ghcr.io/me/vllm-tpu:v0.32.0 vllm serve /models/llama --max-model-len 4096"
        ),
        {"serving.image": "ghcr.io/me/vllm-tpu:v0.32.0", "serving.volumes./mnt/models": "/models"},
        ("`--env-file .env`", "`-p 127.0.0.1:8000:8000`"),
    ),
}


@pytest.mark.parametrize("row", ROWS)
def test_a_command_becomes_a_valid_profile(tmp_path: Path, capsys: pytest.CaptureFixture[str], row: str) -> None:
    text, keys, notes = ROWS[row]
    profile, printed = init(tmp_path, capsys, "-from-command", text)
    assert {key: at(profile, key) for key in keys} == keys
    for note in notes:
        assert note in printed
        assert note[:20] in (tmp_path / "p.yaml").read_text(encoding="utf-8")


STOPS: dict[str, tuple[str, str, str]] = {
    "an open quote": ('vllm serve "Qwen/Qwen3-8B', "The quote that opens here isn't closed", "           ^"),
    "an option of docker": (
        "docker run --foo bar vllm/vllm-tpu vllm serve a/b",
        "no option `--foo`",
        "           ^^^^^",
    ),
    "no server": ("docker run alpine sleep 1", "This container starts no vLLM", "^^^^^^"),
    "no command of ours": ("ls -la", "no command that starts vLLM", "^"),
    "no image": ("docker run --rm -it", "without an image", "                ^^^"),
    "a model that isn't known": ("vllm serve $MODEL --port 1", "the source doesn't set", "           ^^^^^^"),
    "a placeholder": ("vllm serve <your-model>", "still to be filled in", "           ^^^^^^^^^^^^"),
    "weights of another engine": ("vllm serve me/Llama-GGUF", "GGUF", "           ^^^^^^^^^^^^^"),
    "a relative folder": ("vllm serve ./weights", "required form", "           ^^^^^^^^^"),
    "an open here-document": ("cat <<EOF\nx", "has no line `EOF`", "^"),
    "an open bracket": ("vllm serve $(cat x", "isn't closed", "            ^"),
}


@pytest.mark.parametrize("row", STOPS)
def test_what_cannot_be_read_is_an_error_at_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], row: str
) -> None:
    text, message, caret = STOPS[row]
    result = command(tmp_path, capsys, "init", "-from-command", text, "p.yaml")
    assert (result.code, result.out) == (1, "")
    assert message in result.err
    assert f"| {caret}" in result.err
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x" * 2_000_000, "larger than"),
        ("A=aaaaaaaaaaaaaaaa\n" + "A=$A$A$A$A\n" * 40 + "vllm serve $A", "more than 65,536 characters"),
        ("vllm serve m/m " + "a " * 30_000, "more than 20,000 words"),
        ("vllm serve ${A:-" * 60, "nested deeper than 20"),
        ("bash -c " * 3 + "'" + "bash -c " * 3 + '"vllm serve a/b"' + "'", "no command that starts vLLM"),
        ("vllm serve \x00", "Control character"),
        ("", "nothing to make a profile from"),
    ],
)
def test_a_hostile_command_ends_in_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, message: str
) -> None:
    result = command(tmp_path, capsys, "init", "-from-command", text)
    if text:
        assert result.code == 1, result.all[:500]
        assert message in result.all


LEAKS = (
    (
        f"docker run -e HF_TOKEN={SECRETS[0]} -e DB_PASSWORD='{SECRETS[2]}' vllm/vllm-tpu:v0.32.0 vllm serve Qwen/Qwen3-8B "
        f"--api-key {SECRETS[1]} --max-model-len 4096"
    ),
    (
        f"export HF_TOKEN={SECRETS[0]}\nT=$HF_TOKEN\nvllm serve Qwen/Qwen3-8B --hf-token $T --max-model-len 4096 "
        f"--middleware x.{SECRETS[0]}"
    ),
    (
        f"docker run -e WEIRD={SECRETS[0]} -e HEADER='Authorization: Bearer {SECRETS[1]}' vllm/vllm-tpu:v0.32.0 vllm serve "
        f"Qwen/Qwen3-8B --max-model-len 4096 --foo={SECRETS[0]} {SECRETS[0]}"
    ),
    f'vllm serve Qwen/Qwen3-8B --api-key "{SECRETS[1]}" "unclosed',
    f"docker run -e DB_PASSWORD={SECRETS[2]} --nope vllm/vllm-tpu vllm serve a/b",
    f"docker run -e HF_TOKEN {SECRETS[0]} -e HF_TOKEN={SECRETS[0]}",
    f"vllm serve {SECRETS[0]}",
    (
        f"docker run -e API_KEY={SECRETS[2]} -e COPY={SECRETS[2]} vllm/vllm-tpu:v0.32.0 vllm serve Qwen/Qwen3-8B "
        f"--max-model-len 4096 --served-model-name {SECRETS[2]} x"
    ),
    (
        f"docker run -v https://me:{SECRETS[2]}@host/x:/data vllm/vllm-tpu:v0.32.0 vllm serve Qwen/Qwen3-8B "
        f"--download-dir https://me:{SECRETS[2]}@host"
    ),
    f"curl -H 'Authorization: Bearer {SECRETS[1]}' x | bash -c 'vllm serve Qwen/Qwen3-8B --max-model-len 4k'",
    (
        f"pip install git+https://user:{SECRETS[2]}@github.com/x/y && docker run vllm/vllm-tpu:v0.32.0 bash -c "
        f"'pip install git+https://user:{SECRETS[2]}@github.com/x/y && vllm serve Qwen/Qwen3-8B --max-model-len 4k'"
    ),
)


@pytest.mark.parametrize("text", LEAKS)
@pytest.mark.parametrize("as_json", [False, True])
def test_the_value_of_a_secret_is_nowhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, as_json: bool
) -> None:
    result = command(tmp_path, capsys, "init", "-from-command", text, "p.yaml", *(["-json"] if as_json else []))
    assert "bug in tpudeploy" not in result.all, result.all
    text_of_file = "".join(path.read_text(encoding="utf-8") for path in tmp_path.iterdir() if path.name == "p.yaml")
    for secret in SECRETS:
        assert secret not in result.all + text_of_file
        assert secret[3:14] not in result.all + text_of_file


def test_an_existing_file_is_kept_and_nothing_is_written_beside_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "p.yaml").write_text("mine", encoding="utf-8")
    result = command(tmp_path, capsys, "init", "-from-command", "vllm serve Qwen/Qwen3-8B", "p.yaml")
    assert result.code == 1
    assert [path.name for path in tmp_path.iterdir()] == ["p.yaml"]


def test_options_say_the_model_and_the_slice_that_the_command_does_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("-from-command", "vllm serve $MODEL --max-model-len 4096", "-model", "Qwen/Qwen3-8B", "-type", "v6e-8")
    profile, _ = init(tmp_path, capsys, *words)
    assert (at(profile, "model.id"), at(profile, "tpu.type")) == ("Qwen/Qwen3-8B", "v6e-8")


def test_the_library_and_the_document_have_the_same_profile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = "docker run --net host -e HF_TOKEN vllm/vllm-tpu:v0.32.0 vllm serve Qwen/Qwen3-8B --max-model-len 4096"
    printed = command(tmp_path, capsys, "init", "-from-command", line, "p.yaml", "-json")
    document = json.loads(printed.out)
    with td.Workspace.open(tmp_path) as workspace:
        drafted = workspace.draft_profile(command=line)
    assert document == {**drafted.to_dict(), "file": str(tmp_path / "p.yaml")}
    assert (tmp_path / "p.yaml").read_text(encoding="utf-8") == drafted.profile
    assert td.Profile.from_text(drafted.profile).model.id == drafted.model


@pytest.mark.parametrize(
    ("model", "slice_type"),
    [
        ("google/gemma-4-E2B-it", "v6e-1"),
        ("Qwen/Qwen3-32B", "v6e-4"),
        ("google/gemma-4-31B-it", "v6e-4"),
        ("meta-llama/Llama-3.3-70B-Instruct", "v6e-8"),
    ],
)
def test_a_model_alone_gets_the_smallest_slice_that_fits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], model: str, slice_type: str
) -> None:
    profile, printed = init(tmp_path, capsys, "-model", model)
    assert (at(profile, "model.id"), at(profile, "tpu.type")) == (model, slice_type)
    assert at(profile, "lifecycle.end") == "24h"
    assert f"{model} on {slice_type}" in printed


@pytest.mark.parametrize(
    "form",
    [
        ("-from", "gemma4-31b-v6e8"),
        ("-model", "Qwen/Qwen3-8B"),
        ("-model", "Qwen/Qwen3-8B", "-type", "v5e-8"),
        ("-from-command", "docker run vllm/vllm-tpu:v0.32.0 vllm serve Qwen/Qwen3-8B"),
        ("-from-file", str(Path(__file__).parent / "sources" / "sky-any-of.yaml")),
    ],
    ids=" ".join,
)
def test_every_form_limits_the_search_to_what_is_the_default_for_its_slice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], form: tuple[str, ...]
) -> None:
    profile, _ = init(tmp_path, capsys, *form)
    limit = profile["placement"].pop("max_search_price_per_hour")
    default = Workspace.open(tmp_path).deployment(td.Profile.from_text(json.dumps(profile)), offline=True)
    assert limit == default.search_usd_per_hour
    assert default.first_requests == 3


def test_a_model_that_cannot_be_sized_is_refused_in_the_words_of_the_sizing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = command(tmp_path, capsys, "init", "-model", "someone/something-7b")
    assert result.code == 13
    assert (
        "someone/something-7b cannot be sized, because the catalogue does not know someone/something-7b" in result.err
    )
    assert not [*tmp_path.iterdir()]
    profile, _ = init(tmp_path, capsys, "-model", "someone/something-7b", "-type", "v6e-4")
    assert at(profile, "tpu.type") == "v6e-4"
