"""Boot logs that people met: the cause of each, its remedy, and what the remedy does when it is applied."""

from __future__ import annotations

import codecs
import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from command_line import PROFILE, command

from tpudeploy.boot_log.read import read
from tpudeploy.boot_log.reading import Cause
from tpudeploy.boot_log.settings import EngineFacts
from tpudeploy.boot_log.signatures import SIGNATURES
from tpudeploy.catalog import flags, variables
from tpudeploy.config.keys import all_keys

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


# The settings that produced each message, beside those of PROFILE; without a row, the remedy names none.
PRODUCED: dict[str, dict[str, Any]] = {
    "hybrid.log": {"serving.max_num_seqs": 256},
    "l01b.log": {"serving.hbm_utilization": 0.93},
    "l03.log": {"serving.image": "vllm/vllm-tpu:v0.18.0"},
    "l04.log": {"serving.env.TPU_WORKER_HOSTNAMES": "WARNING: could not determine"},
    "l06.log": {"tpu.type": "v4-8"},
    "l08.log": {"serving.image": "vllm/vllm-tpu:v0.18.0"},
    "l09.log": {"serving.dtype": "bfloat16"},
    "l14.log": {},
    "l15.log": {"serving.max_model_len": 32768},
    "l18.log": {"serving.args.disable_log_requests": True},
    "l20.log": {"serving.env.TPU_WORKER_ID": "0", "serving.env.TPU_WORKER_HOSTNAMES": "a"},
    "l22.log": {"serving.kv_cache_dtype": "fp8_e5m2"},
    "mla.log": {},
    "vmem.log": {"serving.block_size": 256},
    "x1-cloudlogging.jsonl": {"serving.hbm_utilization": 0.95},
}
# What a remedy says in words and not as a value. None: the setting is left out.
IN_WORDS: dict[str, dict[str, Any]] = {
    "l01b.log": {"serving.hbm_utilization": 0.83},
    "l03.log": {"serving.image": "vllm/vllm-tpu:v0.32.0"},
    "l04.log": {"serving.env.TPU_WORKER_HOSTNAMES": None},
    "l06.log": {"tpu.type": "v6e-1"},
    "l08.log": {"serving.image": "vllm/vllm-tpu:v0.32.0"},
    "l14.log": {"serving.args.limit_mm_per_prompt": {"image": 1}},
    "l15.log": {"serving.max_model_len": 8192},
    "l18.log": {"serving.args.disable_log_requests": None},
    "l20.log": {"serving.env.TPU_WORKER_ID": None, "serving.env.TPU_WORKER_HOSTNAMES": None},
    "mla.log": {
        "serving.env.NEW_MODEL_DESIGN": "1",
        "serving.args.additional_config": {"sharding": {"sharding_strategy": {"enable_dp_attention": True}}},
    },
    "vmem.log": {"serving.block_size": 128},
}
SETTING = re.compile(r"\b(?:serving|tpu|model|health|placement|lifecycle)\.[A-Za-z_.]*[A-Za-z_]")
VALUE = re.compile(
    rf"(?P<key>{SETTING.pattern})(?: from \S+)? to (?P<value>\"\d+\"|(?:\d[\d.]*\d|\d|auto|fp8|float16)\b)"
)
KEYS = {".".join(map(str, key)) for key in all_keys()}


def values_of(remedy: str) -> dict[str, Any]:
    """Return the settings to which a remedy gives a value; of alternatives to each other, the first."""
    matches = list(VALUE.finditer(remedy))[:1]
    return {match["key"]: yaml.safe_load(match["value"]) for match in matches}


def profile_with(folder: Path, settings: dict[str, Any]) -> str:
    profile = yaml.safe_load(PROFILE)
    for key, value in settings.items():
        *parents, name = key.split(".")
        section = profile
        for parent in parents:
            section = section.setdefault(parent, {})
        if value is not None:
            section[name] = value
    (folder / "p.yaml").write_text(yaml.safe_dump(profile), encoding="utf-8")
    return "p.yaml"


def remedy_of(name: str) -> str:
    return _cause((FOLDER / name).read_text(encoding="utf-8")).remedy


def test_each_log_whose_remedy_names_a_setting_has_the_profile_that_produced_it() -> None:
    assert {name for name in ANSWERS if SETTING.search(remedy_of(name))} == PRODUCED.keys()


@pytest.mark.parametrize("name", PRODUCED)
def test_a_remedy_that_is_applied_is_valid_and_fits_and_is_not_what_failed(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = PRODUCED[name]
    after = before | values_of(remedy_of(name)) | IN_WORDS.get(name, {})
    assert before != after
    profile = profile_with(tmp_path, after)
    for verb in ("validate", "size"):
        answer = command(tmp_path, capsys, verb, profile)
        assert answer.code == 0, answer.all


EXAMPLES = {
    row.name: row.advice(match, EngineFacts(flags={})) for row in SIGNATURES if (match := row.search(row.example))
}
# What the setting of a remedy needs beside it.
BESIDE: dict[str, dict[str, Any]] = {
    "adapter-rank": {"serving.args.enable_lora": True},
    "item-exceeds-batch": {"serving.max_num_seqs": 8},
}


@pytest.mark.parametrize("name", [name for name, remedy in EXAMPLES.items() if VALUE.search(remedy)])
def test_a_value_that_a_remedy_gives_is_valid(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profile = profile_with(tmp_path, BESIDE.get(name, {}) | values_of(EXAMPLES[name]))
    answer = command(tmp_path, capsys, "validate", profile)
    assert answer.code == 0, answer.all


@pytest.mark.parametrize("name", [name for name, remedy in EXAMPLES.items() if SETTING.search(remedy)])
def test_a_setting_that_a_remedy_names_is_one_of_the_format(name: str) -> None:
    for key in SETTING.findall(EXAMPLES[name]):
        section, _, rest = key.partition(".")
        group, _, flag = rest.partition(".")
        if (section, group) == ("serving", "args") and flag:
            assert flags.find(flag.split(".")[0]) is not None, key
        elif (section, group) == ("serving", "env") and flag:
            assert variables.is_read(flag), key
        else:
            assert key in KEYS, key


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
    # Wordings of other releases, and of other models: jax docs (device_memory_profiling), pytorch/xla test_pallas.py,
    # mesh-transformer-jax issue 237, vLLM model_loader and platforms, moby, jax _src/lib/__init__.py.
    (
        (
            "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Allocation (size=107374182400) would exceed memory "
            "(size=17179869184) :: #allocation7 [shape = 'u8[327680,327680]{1,0:T(8,128)(4,1)}', space=hbm, size = 0xff]"
        ),
        "no-room-while-compiling",
    ),
    (
        "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 2.24GiB.",
        "no-room-for-array",
    ),
    (
        (
            "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Failed to allocate request for 32.00MiB (33554432B) on "
            "device ordinal 0: while running replica 0 and partition 0 of a replicated computation"
        ),
        "no-room-for-array",
    ),
    (
        "jaxlib.xla_extension.XlaRuntimeError: FAILED_PRECONDITION: The program continuator has halted unexpectedly.",
        "core-halted",
    ),
    ("jax.errors.JaxRuntimeError: INTERNAL: Core halted unexpectedly", "core-halted"),
    ("KeyError: 'model.layers.0.mlp.gate_up_proj.weight_scale'", "checkpoint-mismatch"),
    ("ValueError: Bfloat16 is only supported on GPUs with compute capability of at least 8.0.", "cuda-image"),
    (
        (
            'docker: Error response from daemon: failed to resolve reference "us-docker.pkg.dev/p/r/i:t": failed to '
            "authorize: failed to fetch oauth token: unexpected status: 403 Forbidden."
        ),
        "registry-denied",
    ),
    (
        (
            "RuntimeError: jaxlib version 0.7.0 is newer than and incompatible with jax version 0.6.0. Please update your jax "
            "and/or jaxlib packages."
        ),
        "package-missing",
    ),
    (
        (
            "RuntimeError: TPU initialization failed: Invalid --2a886c8_slice_builder_worker_addresses specified. Expected 8 "
            "worker addresses, got 4."
        ),
        "worker-addresses",
    ),
    (
        "RuntimeError: Unable to initialize backend 'tpu': UNKNOWN: TPU initialization failed: No ba16c7433 device found.",
        "no-chips",
    ),
    (
        "safetensors_rust.SafetensorError: Error while deserializing header: MetadataIncompleteBuffer",
        "checkpoint-corrupt",
    ),
    (
        'docker: Error response from daemon: Conflict. The container name "/vllm" is already in use by container "e67".',
        "container-name-conflict",
    ),
    (
        (
            "docker: Error response from daemon: failed to create task for container: mkdir /var/lib/containerd/x: no space "
            "left on device"
        ),
        "disk-full",
    ),
    ("RuntimeError: Cannot find any model weights with `/models/gemma`", "checkpoint-incomplete"),
    ("Value error, LoRA rank 128 is greater than max_lora_rank 16.", "adapter-rank"),
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
    ("vllm serve: error: ambiguous option: --enable-auto could match --enable-auto-tool-choice", "flag-refused"),
    ('KeyError: "invalid reasoning parser: deepseek (chose from { deepseek_r1,qwen3 })"', "unknown-parser"),
    ("NotImplementedError: Speculative decoding method 'medusa' is not supported on TPU", "speculation-unsupported"),
    (
        (
            "jax.errors.JaxRuntimeError: INTERNAL: Accelerator device halted prematurely, perhaps due to an on-device "
            "check-failure. Node 0 halted unexpectedly at tag:pc TensorCoreSequencer:1:0x2b4"
        ),
        "core-halted",
    ),
    (
        (
            "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory "
            "(shm)."
        ),
        "shared-memory",
    ),
    ("Fatal Python error: Segmentation fault", "native-crash"),
    ("*** SIGSEGV received by PID 42 (TID 4300) on cpu 10 from PID 42; stack trace: ***", "native-crash"),
    ("failed: The container ended (exit code 139): Compiling graph 12", "native-crash"),
    ("maintenance-event: TERMINATE_ON_HOST_MAINTENANCE", "machine-stopped"),
    ("systemd[1]: Reached target Power-Off.", "machine-stopped"),
    (
        (
            "google.api_core.exceptions.Forbidden: 403 GET https://storage.googleapis.com/storage/v1/b/w: "
            "vm@p.iam.gserviceaccount.com does not have storage.objects.get access to the Google Cloud Storage object."
        ),
        "bucket-denied",
    ),
    ("ray.exceptions.RayChannelTimeoutError: System error: Timed out waiting for object available", "barrier-timeout"),
    (
        (
            "(APIServer pid=1)   Value error, Total number of attention heads (28) must be divisible by tensor parallel "
            "size (8). [type=value_error, input_value=ArgsKwargs(()), input_type=ArgsKwargs]"
        ),
        "heads-not-divisible",
    ),
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
    "kubectl logs --timestamps --prefix": "\n".join(
        f"[pod/vllm-abc/vllm] 2026-08-07T23:10:35.123456789Z {line}" for line in LINES_OF_BOOT
    ),
    "a pipeline around a kubelet's file": "\n".join(
        f"[2026-08-07T23:10:35.000000000Z] 2026-08-07T23:10:35.1Z stderr F {line}" for line in LINES_OF_BOOT
    ),
    "journalctl -o short-iso": "\n".join(f"2026-08-07T23:10:35+0000 host docker[12]: {line}" for line in LINES_OF_BOOT),
    "rsyslog, with its priority": "\n".join(f"<30>Aug  7 23:10:35 host docker[12]: {line}" for line in LINES_OF_BOOT),
    "a serial console": "\n".join(
        f"[  123.456789] google_metadata_script_runner[1]: startup-script: {line}" for line in LINES_OF_BOOT
    ),
    "seconds alone": "\n".join(f"2026-08-07T23:10:35Z {line}" for line in LINES_OF_BOOT),
    "gcloud logging read": "".join(
        "---\ninsertId: a1\nlogName: projects/p/logs/vllm\nresource:\n  type: gce_instance\n"
        f"textPayload: {json.dumps(line)}\ntimestamp: '{_moment(n)}'\n"
        for n, line in reversed([*enumerate(LINES_OF_BOOT)])
    ),
    "gcloud logging read, of an agent": "".join(
        f"---\ninsertId: a1\njsonPayload:\n  message: {json.dumps(line)}\ntimestamp: '{_moment(n)}'\n"
        for n, line in reversed([*enumerate(LINES_OF_BOOT)])
    ),
    "marks of a terminal": "\n".join(f"\x1b]0;title\x07\x1b[?25l\x1b[1m{line}\x1b(B\x1b[m" for line in LINES_OF_BOOT),
    "marks of a terminal as cat -v writes them": "\n".join(f"^[[36m{line}^[[0m" for line in LINES_OF_BOOT),
    "colors": "\n".join(f"\x1b[1;36m{line}\x1b[0m" for line in LINES_OF_BOOT),
    "Windows line ends and a byte order mark": "\ufeff" + "\r\n".join(LINES_OF_BOOT),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_log_is_read_in_whatever_form_it_was_exported(form: str) -> None:
    plain, exported = _cause(OOM), _cause(FORMS[form])
    assert (exported.signature, exported.remedy) == (plain.signature, plain.remedy)
    assert exported.line.text == plain.line.text


@pytest.mark.parametrize(
    "encode",
    [
        lambda text: gzip.compress(text.encode()),
        lambda text: text.encode("utf-16"),
        lambda text: codecs.BOM_UTF16_BE + text.encode("utf-16-be"),
        lambda text: gzip.compress(text.replace("\n", "\r\n").encode("utf-16")),
        lambda text: codecs.BOM_UTF8 + text.encode(),
    ],
    ids=["gzip", "UTF-16", "UTF-16, big end first", "gzip of a Windows file", "UTF-8 with a mark"],
)
def test_a_log_is_read_in_whatever_bytes_it_was_saved(
    encode: Callable[[str], bytes], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "boot.log").write_bytes(encode(OOM))
    told = command(tmp_path, capsys, "logs", "-file", "boot.log", "-explain", "-json")
    cause = json.loads(told.out)["logs"][0]["cause"]
    assert (cause["signature"], cause["remedy"]) == (_cause(OOM).signature, _cause(OOM).remedy)


def test_a_compressed_log_that_is_cut_is_refused_with_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "boot.log").write_bytes(gzip.compress(OOM.encode())[:2000])
    assert (
        "boot.log` cannot be read: Compressed file ended"
        in command(tmp_path, capsys, "logs", "-file", "boot.log", "-explain").err
    )


def test_a_setting_that_the_log_does_not_show_is_not_printed_as_a_reading() -> None:
    failure = "RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Exceeded hbm capacity by 1.86G."
    memory = "INFO 08-07 20:38:50 [x.py:1] Init model | hbm=[(8.97, 31.24)]GiB"
    unset = FLAGS.replace("{}", "{'max_num_seqs': 8}")
    assert "by 0.07 or more" in _cause(f"{memory}\n{failure}\n").remedy
    assert "the default is 0.92" in _cause(f"{unset}\n{memory}\n{failure}\n").remedy
    flags = FLAGS.replace("{}", "{'gpu_memory_utilization': 0.95}")
    assert "(now 0.95)" in _cause(f"{flags}\n{memory}\n{failure}\n").remedy
