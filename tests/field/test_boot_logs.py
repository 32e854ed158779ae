"""Boot logs that people met: the cause of each, its remedy, and what the remedy does when it is applied."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from command_line import PROFILE, command

from tpudeploy.boot_log.read import read
from tpudeploy.boot_log.reading import Cause

FOLDER = Path(__file__).parent / "logs"
OOM = (Path(__file__).parents[1] / "boot_log" / "data" / "boot_e2b_v5e1_util095_oom.log").read_text(encoding="utf-8")
WRAPPER = (
    "(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}"
)
FLAGS = "(APIServer pid=1) INFO 11-20 20:39:00 [x.py:10] non-default args: {}"


class Answer(NamedTuple):
    """By the sidecar of a log: its cause, words that the remedy has, and words that it must not have."""

    signature: str
    says: tuple[str, ...]
    never: tuple[str, ...] = ()


ANSWERS: dict[str, Answer] = {
    "hybrid.log": Answer("pools-exceed-hbm", ("serving.max_num_seqs", "256", "hbm_utilization (now 0.90")),
    "l01b.log": Answer("no-room-for-program", ("lower serving.hbm_utilization",), ("0.92",)),
    "l03.log": Answer("torchax-bug", ("newer serving.image", "another model")),
    "l04.log": Answer("worker-hostnames", ("TPU_WORKER_HOSTNAMES", "serving.env")),
    "l06.log": Answer("generation-unsupported", ("tpu.type",)),
    "l08.log": Answer("kernel-not-compiled", ("newer serving.image",)),
    "l09.log": Answer("quantization-dtype", ("serving.dtype", "float16", "leave it out", "newer serving.image")),
    "l11.log": Answer("runtime-topology", ("--privileged", "--net=host", "broken")),
    "l14.log": Answer("kernel-vmem", ("newer serving.image", "smaller images"), ("block_size", "1 MB")),
    "l15.log": Answer("no-room-in-kernel", ("max_model_len", "larger one")),
    "l18.log": Answer("flag-refused", ("profile",)),
    "l20.log": Answer("worker-addresses", ("4", "TPU_WORKER_HOSTNAMES")),
    "l22.log": Answer("kv-dtype-of-checkpoint", ("serving.kv_cache_dtype", "fp8 or auto")),
    "mla.log": Answer("mla-switches", ("Set both", "NEW_MODEL_DESIGN", "enable_dp_attention"), ("drop",)),
    "vmem.log": Answer("kernel-vmem", ("newer serving.image", "smaller serving.block_size"), ("1 MB",)),
    "x1-cloudlogging.jsonl": Answer("no-room-for-program", ("to 0.92 (now 0.95)",)),
}


def _cause(text: str) -> Cause:
    cause = read(text).cause
    assert cause is not None
    return cause


def test_every_log_has_its_answer() -> None:
    assert {path.name for path in FOLDER.iterdir() if path.suffix != ".md"} == ANSWERS.keys()


@pytest.mark.parametrize("name", ANSWERS)
def test_a_log_of_the_field_has_the_remedy_of_its_cause(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = ANSWERS[name]
    told = command(tmp_path, capsys, "logs", "-file", str(FOLDER / name), "-explain", "-json")
    cause = json.loads(told.out)["logs"][0]["cause"]
    assert cause["signature"] == answer.signature
    assert all(words in cause["remedy"] for words in answer.says), cause["remedy"]
    assert not any(words in cause["remedy"] for words in answer.never), cause["remedy"]


# The remedy as a change of the profile, for each log that has one; it must be valid, and not what failed.
APPLIED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "hybrid.log": ({"serving.max_num_seqs": 256}, {"serving.max_num_seqs": 24}),
    "l01b.log": ({"serving.hbm_utilization": 0.93}, {"serving.hbm_utilization": 0.83}),
    "l04.log": ({"serving.env.TPU_WORKER_HOSTNAMES": "WARNING: could not determine"}, {}),
    "l09.log": ({"serving.dtype": "bfloat16"}, {"serving.dtype": "float16"}),
    "l14.log": ({}, {"serving.args.limit_mm_per_prompt": {"image": 1}}),
    "l15.log": ({"serving.max_model_len": 32768}, {"serving.max_model_len": 8192}),
    "l22.log": ({}, {"serving.kv_cache_dtype": "fp8"}),
    "mla.log": (
        {},
        {
            "serving.env.NEW_MODEL_DESIGN": "1",
            "serving.args.additional_config": {"sharding": {"sharding_strategy": {"enable_dp_attention": True}}},
        },
    ),
    "vmem.log": ({"serving.block_size": 256}, {"serving.block_size": 128}),
    "x1-cloudlogging.jsonl": ({"serving.hbm_utilization": 0.95}, {"serving.hbm_utilization": 0.92}),
}


@pytest.mark.parametrize("name", APPLIED)
def test_a_remedy_that_is_applied_is_valid_and_is_not_what_failed(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, after = APPLIED[name]
    assert before != after
    (tmp_path / "p.yaml").write_text(PROFILE, encoding="utf-8")
    settings = [word for key, value in after.items() for word in ("--set", f"{key}={json.dumps(value)}")]
    validated = command(tmp_path, capsys, "validate", "p.yaml", *settings)
    assert validated.code == 0, validated.all


# One line each, as programs write it, and the cause that it is.
LINES: tuple[tuple[str, str], ...] = (
    ("Killed", "host-memory"),
    ("/bin/bash: line 1:    12 Killed                  vllm serve google/gemma-4-E2B-it", "host-memory"),
    ("Instance my-vm was preempted.", "machine-preempted"),
    ("compute.instances.preempted: Instance was preempted", "machine-preempted"),
    (
        "ERROR: Could not find a version that satisfies the requirement vllm-tpu==0.99 (from versions: 0.1)",
        "pip-failed",
    ),
    (
        "  Value error, something unheard of [type=value_error, input_value=ArgsKwargs((), {}), input_type=ArgsKwargs]",
        "configuration-refused",
    ),
    ("RuntimeError: No CUDA GPUs are available", "cuda-image"),
    ('docker: could not select device driver "" with capabilities: [[gpu]].', "cuda-image"),
    ("ValueError: gptq quantization is currently not supported in tpu.", "quantization-unsupported"),
    ("ModuleNotFoundError: No module named 'terratorch'", "package-missing"),
    ("RuntimeError: TPU initialization failed: open(/dev/accel0): Device or resource busy", "chip-in-use"),
    ("RuntimeError: Unable to initialize backend 'tpu': INTERNAL: Couldn't mmap: again", "runtime-topology"),
    ("RuntimeError: Unable to initialize backend 'tpu': INTERNAL: Failed to open libtpu.so", "runtime-missing"),
    ("RuntimeError: Unable to initialize backend 'tpu': INTERNAL: something else", "runtime-failed"),
    ("ValueError: Current node has no TPU available. current_node_resource={'CPU': 1}", "ray-placement"),
    (
        "OSError: [Errno 98] error while attempting to bind on address ('0.0.0.0', 8000): address already in use",
        "port-taken",
    ),
    ("AttributeError: 'View' object has no attribute '_elem'", "torchax-bug"),
    ("jax.errors.JaxRuntimeError: INTERNAL: Mosaic failed to compile TPU kernel: Bad lhs type", "kernel-not-compiled"),
    ("RuntimeError: unable to write to file </torch_1_2>: No space left on device (28)", "shared-memory"),
    ("OSError: [Errno 28] No space left on device", "disk-full"),
    ("ssl.SSLCertVerificationError: [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed", "hub-unreachable"),
    ("TimeoutError: Timed out waiting for engines to send initial message on input socket.", "engine-timeout"),
    ("FileNotFoundError: [Errno 2] No such file or directory: '/models/gemma'", "path-missing"),
)


@pytest.mark.parametrize(("line", "signature"), LINES, ids=[line[:40] for line, _ in LINES])
def test_a_line_alone_is_its_cause(line: str, signature: str) -> None:
    assert _cause(f"{line}\n").signature == signature
    assert _cause(f"an ordinary line\n{line}\n{WRAPPER}\n").signature == signature


def test_a_tail_that_points_above_asks_for_more_of_the_log() -> None:
    cause = _cause(WRAPPER)
    assert "missing from this log" in cause.remedy
    assert "Read the whole log" in cause.remedy


def test_the_line_that_names_the_metadata_server_is_the_cause_of_a_refused_connection() -> None:
    log = (
        "WARNING 11-20 20:39:00 [x.py:10] Failed to reach http://metadata.google.internal/computeMetadata/v1/instance\n"
        "(EngineCore pid=1) ERROR 11-20 20:39:01 [core.py:1] ConnectionRefusedError: [Errno 111] Connection refused\n"
        f"{WRAPPER}\n"
    )
    assert _cause(log).signature == "metadata-unreachable"


def _moment(second: int) -> str:
    return f"2026-08-07T23:{second // 60:02d}:{second % 60:02d}.5Z"


LINES_OF_BOOT = OOM.rstrip("\n").split("\n")
FORMS = {
    "cloud logging, newest first": "\n".join(
        json.dumps({"textPayload": line, "timestamp": _moment(n)}) for n, line in reversed([*enumerate(LINES_OF_BOOT)])
    ),
    "cloud logging, an array": json.dumps(
        [
            {"jsonPayload": {"message": line}, "timestamp": _moment(n)}
            for n, line in reversed([*enumerate(LINES_OF_BOOT)])
        ],
        indent=2,
    ),
    "docker logs -t": "\n".join(f"2026-08-07T23:10:35.123456789Z {line}" for line in LINES_OF_BOOT),
    "docker's own file": "\n".join(
        json.dumps({"log": f"{line}\n", "stream": "stderr", "time": _moment(n)}) for n, line in enumerate(LINES_OF_BOOT)
    ),
    "journalctl -o short": "\n".join(f"Aug 07 23:10:35 host docker[12]: {line}" for line in LINES_OF_BOOT),
    "journalctl -o short-precise": "\n".join(
        f"Aug 07 23:10:35.123456 host docker[12]: {line}" for line in LINES_OF_BOOT
    ),
    "journalctl -o json": "\n".join(
        json.dumps({"MESSAGE": [*line.encode()], "__REALTIME_TIMESTAMP": str(10**15 + n)})
        for n, line in enumerate(LINES_OF_BOOT)
    ),
    "kubectl logs --prefix": "\n".join(f"[pod/vllm-abc/vllm] {line}" for line in LINES_OF_BOOT),
    "a kubelet's file": "\n".join(f"2026-08-07T23:10:35.123456789Z stderr F {line}" for line in LINES_OF_BOOT),
    "colors": "\n".join(f"\x1b[1;36m{line}\x1b[0m" for line in LINES_OF_BOOT),
    "Windows line ends and a byte order mark": "\ufeff" + "\r\n".join(LINES_OF_BOOT),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_log_is_read_in_whatever_form_it_was_exported(form: str) -> None:
    plain, exported = _cause(OOM), _cause(FORMS[form])
    assert (exported.signature, exported.remedy) == (plain.signature, plain.remedy)
    assert exported.line.text == plain.line.text


def test_a_setting_that_the_log_does_not_show_is_not_printed_as_a_reading() -> None:
    failure = "RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Exceeded hbm capacity by 1.86G."
    memory = "INFO 08-07 20:38:50 [x.py:1] Init model | hbm=[(8.97, 31.24)]GiB"
    unset = FLAGS.replace("{}", "{'max_num_seqs': 8}")
    assert "by 0.07 or more" in _cause(f"{memory}\n{failure}\n").remedy
    assert "the default is 0.92" in _cause(f"{unset}\n{memory}\n{failure}\n").remedy
    flags = FLAGS.replace("{}", "{'gpu_memory_utilization': 0.95}")
    assert "(now 0.95)" in _cause(f"{flags}\n{memory}\n{failure}\n").remedy
