"""Holds the flag table and what we write against the parser of a real vLLM: set VLLM_PYTHON to a Python that has it."""

from __future__ import annotations

import json
import os
import random
import shlex
import subprocess
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from oracle.real_vllm import PROBE, parse

import tpudeploy as td
from tpudeploy.catalog import releases
from tpudeploy.catalog.flags import Flag, Inexpressible, Style, ValueType, express, find, names

VLLM_PYTHON = os.environ.get("VLLM_PYTHON", "")

pytestmark = pytest.mark.skipif(not VLLM_PYTHON, reason="VLLM_PYTHON names no Python that has vLLM")

# What a command line, argparse, vLLM's own parser, a shell or JSON could take for something else.
TEXTS = (
    *("", " ", "-", "--", "---", "-x", "-1", "-0.5", "-O3", "-O", "-tp", "-tp=2", "-h", "--port", "--port=1"),
    *("--help=all", "--a.b", "--a.b c", "-a.b=c", "-a b", "--model", "--config", "--config=x.yaml", "--a_b=c_d"),
    *("a b", "a.b", "a_b", "=x", "a=b", "a,b", "@file", "%s", "#", "serve", "'\"`$HOME\\", "line\nbreak", "\x01"),
    *("ünï ☃ 🙂", "16k", "16K", "25.6k", "25.6K", " 16k ", "auto", "AUTO", "None", "null", "true", "nan", "inf"),
    *("1e400", "0x10", "1_000", "+5", "{}", " {} ", '{"a": 1}', '{"a": 80m}', '{"a": NaN}', "{broken}", '["*"]'),
)
NUMBERS = (0, 1, -1, 16, 2**70, 0.5, -0.5, -0.0, 4.0, 1e-7, 1e300, 0.1 + 0.2, float("nan"), float("inf"))
LISTS: tuple[list[Any], ...] = (
    *([], ["a"], ["a", "b"], ["-a"], ["a", "-b"], ["-1", "-2"], ["-", "a"], ["a", "--"], ["--"], ["a", "-0.5"]),
    *(["a b", "", "c=d"], ["*", "ü"], [1, 2], [-1, 2], [1, -2], [0.5, 1], [True], [None], [["a"]], [{"a": "b"}]),
)
MAPPINGS: tuple[dict[str, Any], ...] = (
    {},
    {"image": 4, "audio": 1},
    {"z": 1, "a": {"deep": [1, 2.5, -1e-7, None, True, "-x", "--y.z", "1k", "ü ☃", "line\nbreak", "'\"\\ \x01", {}]}},
    {"n": 2**70, "-": "-", "a.b": "c", "80m": "80m", "": ""},
    {"bad": float("inf")},
)
PROFILES = Path(__file__).parents[2] / "profiles"
SAMPLES: tuple[Any, ...] = (*TEXTS, *NUMBERS, True, False, *LISTS, *MAPPINGS)

SIZES = {"16k": 16_000, "16K": 16_384, "25.6k": 25_600, " 16k ": 16_000, "auto": -1, "AUTO": -1}


def ask(commands: Iterable[tuple[str, ...]]) -> list[dict[str, Any]]:
    """What vLLM makes of each list of words: what changed, and what it is without any."""
    unset, *answers = parse(VLLM_PYTHON, [(), *commands])
    return [answer | {"unset": unset["unset"]} for answer in answers]


def flags() -> Iterator[Flag]:
    for name in names():
        flag = find(name)
        assert flag is not None
        yield flag


def read_word(flag: Flag, value: Any) -> Any:
    """What one value means to the flag, written independently of how we spell it."""
    return _READERS.get(flag.value_type, str)(value)


def _braced(value: Any) -> bool:
    return isinstance(value, str) and (value.strip()[:1], value.strip()[-1:]) == ("{", "}")


def _size(value: Any) -> int:
    return SIZES.get(value) or int(value)


def _json(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value


_READERS: dict[ValueType, Callable[[Any], Any]] = {
    ValueType.INT: int,
    ValueType.SIZE: _size,
    ValueType.SIZE_OR_AUTO: _size,
    ValueType.FLOAT: float,
    ValueType.OBJECT: _json,
    ValueType.ARRAY: _json,
    ValueType.TEXT_OR_OBJECT: lambda value: _json(value) if isinstance(value, dict) or _braced(value) else str(value),
    ValueType.KEYWORD: lambda value: str(value).lower().replace("-", "_"),
}


def read(flag: Flag, value: Any) -> Any:
    if isinstance(value, bool):
        return value
    if flag.name == "device-ids":  # one word, which vLLM takes apart
        parts = [part.strip() for part in str(value).split(",")]
        return [int(part) if part.isdigit() else part for part in parts]
    if flag.style in (Style.WORDS, Style.REPEATED):
        return [read_word(flag, item) for item in (value if isinstance(value, list) else [value])]
    return read_word(flag, value)


def as_vllm_says_none(value: Any) -> Any:
    """Of an option that may be absent, vLLM reads the words `` and `None` as absent."""
    if isinstance(value, list):
        return [as_vllm_says_none(item) for item in value]
    return None if value in ("", "None") else value


def agrees(flag: Flag, value: Any, answer: dict[str, Any]) -> bool:
    key = flag.name.replace("-", "_")
    values = answer.get("read")
    if values is None or not set(values) <= {key, "seed"} or (key != "seed" and values.get("seed") != 7):
        return False  # refused, or the words reached another option
    ours, theirs = read(flag, value), values.get(key, answer["unset"].get(key))
    if theirs == ours:
        return isinstance(theirs, bool) == isinstance(ours, bool)
    is_set = isinstance(ours, list) and theirs == sorted(set(ours))
    return is_set or bool(theirs == as_vllm_says_none(ours))


def expressible(samples: Iterable[Any], among: Iterable[Flag]) -> Iterator[tuple[Flag, Any, tuple[str, ...]]]:
    for flag in among:
        for value in (*samples, *flag.choices, *(choice.upper().replace("_", "-") for choice in flag.choices)):
            try:
                yield flag, value, express(flag, value)
            except Inexpressible:
                continue


def disagreements(cases: Iterable[tuple[Flag, Any, tuple[str, ...]]]) -> list[object]:
    cases = list(cases)
    # Another flag behind it shows whether the words end where they should.
    answers = ask((*words, *(() if flag.name == "seed" else ("--seed", "7"))) for flag, _, words in cases)
    return [
        (flag.name, value, words, answer)
        for (flag, value, words), answer in zip(cases, answers, strict=True)
        if not agrees(flag, value, answer)
    ]


def test_the_file_of_the_release_is_what_the_engine_says() -> None:
    probe = subprocess.run([VLLM_PYTHON, "-I", str(PROBE), "tables"], stdout=subprocess.PIPE, check=True)
    document = json.loads(probe.stdout)
    shipped = releases.find(document["release"])

    assert document["problems"] == []
    assert shipped is not None
    assert {**document, "removed": shipped["removed"], "problems": []} == {**shipped, "problems": []}


def test_vllm_reads_every_flag_as_it_was_meant_or_we_refused_it() -> None:
    # Their words mean more than themselves to vLLM: see the last two tests.
    apart = {"config", "lora-modules"}

    assert disagreements(expressible(SAMPLES, (flag for flag in flags() if flag.name not in apart))) == []


def test_vllm_reads_arbitrary_text_as_it_was_meant() -> None:
    rng = random.Random(32)
    alphabet = "--__..==  ,,aZ0{}\"'\\$`\n\tüé☃🙂[]:@%#/"
    texts = ["".join(rng.choices(alphabet, k=rng.randrange(1, 8))) for _ in range(400)]
    some = [find(name) for name in ("chat-template", "api-key", "middleware", "hf-token", "pt-load-map-location")]
    mappings = [{text: [text, {"x": text}]} for text in texts]
    lists = [[a, b] for a, b in zip(texts, reversed(texts), strict=True)]

    assert disagreements(expressible([*texts, *lists, *mappings], [flag for flag in some if flag])) == []


def test_no_flag_refuses_every_sample() -> None:
    output = {flag.name for flag, _, _ in expressible(SAMPLES, flags())}

    assert output == set(names())


def test_an_alias_is_the_same_option_to_vllm() -> None:
    pairs = [(flag, alias) for flag in flags() for alias in flag.aliases]
    answers = ask((("--" if len(alias) > 5 else "-") + alias, *_anything(flag)) for flag, alias in pairs)

    assert [next(iter(answer["read"])) for answer in answers] == [flag.name.replace("-", "_") for flag, _ in pairs]


def _anything(flag: Flag) -> tuple[str, ...]:
    """Some value that no option has by default, without the flag."""
    if flag.style in (Style.TOGGLE, Style.SWITCH):
        return ()
    samples = {ValueType.OBJECT: {"a": 1}, ValueType.FLOAT: 0.125, ValueType.INT: 77, ValueType.TEXT: "abc"}
    return express(flag, samples[flag.value_type])[1:]


def test_lora_modules_are_text_or_mappings() -> None:
    flag = find("lora_modules")
    assert flag is not None

    [answer] = ask([express(flag, ["sql=/lora/sql", {"name": "chat", "path": "/lora/a,b=c"}])])

    modules = answer["read"]["lora_modules"]
    assert [(module["name"], module["path"]) for module in modules] == [("sql", "/lora/sql"), ("chat", "/lora/a,b=c")]


def test_a_config_file_is_opened_by_vllm(tmp_path: Path) -> None:
    flag = find("config")
    assert flag is not None
    (tmp_path / "serve.yaml").write_text("max-num-seqs: 12\n", encoding="utf-8")

    [answer] = ask([express(flag, str(tmp_path / "serve.yaml"))])

    assert answer["read"] == {"max_num_seqs": 12}


def test_turbo_stable_is_the_command_it_was_published_as() -> None:
    published = shlex.split("""
        --tensor-parallel-size 4 --dtype bfloat16 --kv-cache-dtype fp8 --gpu-memory-utilization 0.90 --block-size 32
        --max-model-len 16384 --max-num-seqs 256 --max-num-batched-tokens 4096
        --speculative-config '{"method": "ngram", "num_speculative_tokens": 3}' --enable-prefix-caching
        --disable_chunked_mm_input --safetensors-load-strategy prefetch --limit-mm-per-prompt '{"image":4,"audio":1}'
        --enable-auto-tool-choice --tool-call-parser gemma4 --reasoning-parser gemma4 --trust-remote-code
    """)
    ours: dict[str, Any] = {
        "tensor_parallel_size": 4,
        "dtype": "bfloat16",
        "kv_cache_dtype": "fp8",
        "gpu_memory_utilization": 0.90,
        "block_size": 32,
        "max_model_len": 16384,
        "max_num_seqs": 256,
        "max_num_batched_tokens": 4096,
        "speculative_config": {"method": "ngram", "num_speculative_tokens": 3},
        "enable_prefix_caching": True,
        "disable_chunked_mm_input": True,
        "safetensors_load_strategy": "prefetch",
        "limit_mm_per_prompt": {"image": 4, "audio": 1},
        "enable_auto_tool_choice": True,
        "tool_call_parser": "gemma4",
        "reasoning_parser": "gemma4",
        "trust_remote_code": True,
    }
    words = [word for key, value in ours.items() if (flag := find(key)) for word in express(flag, value)]

    theirs, mine = ask([tuple(published), tuple(words)])

    assert mine["read"] == theirs["read"] == ours


def test_the_lines_to_paste_give_vllm_the_profile_s_arguments(tmp_path: Path) -> None:
    """The lines of `render serve` run in a bash whose `vllm` writes down its words, as it does for setup and secrets."""
    recorder = '#!/bin/bash\nprintf "%s\\0" "$@" >"$RECORD"\n'
    for program, text in (("vllm", recorder), ("pip", "#!/bin/sh\n")):
        (tmp_path / program).write_text(text, encoding="utf-8")
        (tmp_path / program).chmod(0o755)
    pasted = []
    for path in sorted(PROFILES.glob("*.yaml")):
        lines = td.Workspace.open(tmp_path).render(path, "serve").text
        record = tmp_path / f"{path.stem}.words"
        environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "RECORD": str(record), "HF_TOKEN": "token"}
        subprocess.run(["/bin/bash", "-c", lines], env=environment, check=True, timeout=30)
        serve, _, *arguments = record.read_text(encoding="utf-8").split("\0")[:-1]
        assert serve == "serve"
        pasted.append(tuple(arguments))

    assert len(pasted) > 5
    assert not [answer["error"] for answer in ask(pasted) if "error" in answer]
