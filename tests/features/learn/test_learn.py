"""`learn` runs a child in an engine's Python, checks what comes back, writes one file, and proves it by draws."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import Result, command

from tpudeploy.catalog import releases
from tpudeploy.features import learn
from tpudeploy.features.learn import models, programs, release_file

PROBE = Path(learn.__file__).with_name("probe.py")
_FOLDER = Path(releases.__file__).parent
PROGRAMS = sorted(_FOLDER.glob("libtpu-*.json"))
SHIPPED = sorted(set(_FOLDER.glob("*.json")) - set(PROGRAMS))


class EnginePython:
    """A program that stands in for the Python of an engine: it prints a document, or a line for each line."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "engine-python"

    def prints(self, document: Any, *, answers: str = "") -> str:
        text = document if isinstance(document, str) else json.dumps(document)
        self.path.with_suffix(".json").write_text(text, encoding="utf-8")
        self.path.with_suffix(".answers").write_text(answers, encoding="utf-8")
        case = f'case "$3" in tables) cat {self.path}.json ;; answers) cat {self.path}.answers ;; esac'
        return self.runs(case)

    def loads(self, document: Any, rows: list[str]) -> str:
        """Stand in for an engine whose loader answers these rows to the questions about models."""
        self.path.with_suffix(".json").write_text(json.dumps(document), encoding="utf-8")
        self.path.with_suffix(".rows").write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
        return self.runs(f'case "$3" in tables) cat {self.path}.json ;; *) cat {self.path}.rows ;; esac')

    def runs(self, script: str) -> str:
        self.path.write_text(f"#!/bin/bash\n{script}\n", encoding="utf-8")
        self.path.chmod(0o755)
        return str(self.path)


Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    return lambda *words: command(tmp_path, capsys, "learn", *words)


@pytest.fixture
def engine(tmp_path: Path) -> EnginePython:
    return EnginePython(tmp_path)


def document(**more: Any) -> dict[str, Any]:
    row = {"seed": ["value", "int"], "enable-x": ["toggle", "bool"]}
    head = {"engine": "vllm", "release": "9.1.0", "packages": {"vllm": "9.1.0"}, "problems": []}
    return {**head, "flags": row, "defaults": {}, "values": {}, "variables": {"MAX_JOBS": ""}, **more}


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_shipped_file_is_laid_out_as_learn_writes_it(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    content = release_file.parse(text.encode())
    assert release_file.text(content) == text
    assert release_file.file_name(content) == path.name


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_shipped_programs_are_laid_out_as_learn_writes_them(path: Path) -> None:
    content = json.loads(path.read_text(encoding="utf-8"))
    assert programs.text(content) == path.read_text(encoding="utf-8")
    assert programs.file_name(content) == path.name
    assert set(map(int, content["structured_decode"])) == set(programs.vocabularies())


def test_programs_are_a_file_of_their_libtpu(run: Run, engine: EnginePython, tmp_path: Path) -> None:
    count = len(list(programs.lines()))
    python = engine.prints(
        document(engine="tpu-inference", packages={"libtpu": "9.0.1"}), answers='{"temp": 7}\n' * count
    )
    ran = run("-python", python, "-programs", "-out", ".")
    assert ran.code == 0, ran.err
    content = json.loads((tmp_path / "libtpu-9.0.1.json").read_text(encoding="utf-8"))
    assert set(content["structured_decode"]["262144"].values()) == {7}


@pytest.mark.parametrize(
    ("libtpu", "answer", "message"),
    [
        ("9.0.1", '{"error": "no such topology"}', "was not compiled: no such topology"),
        ("9.0.1", '{"temp": -1}', "was not compiled: no bytes"),
        ("../9", '{"temp": 7}', "names no version of libtpu"),
        (None, '{"temp": 7}', "an environment with libtpu"),
    ],
)
def test_programs_that_are_none_are_no_file(
    run: Run, engine: EnginePython, libtpu: str | None, answer: str, message: str
) -> None:
    count = len(list(programs.lines()))
    python = engine.prints(document(engine="tpu-inference", packages={"libtpu": libtpu}), answers=f"{answer}\n" * count)
    ran = run("-python", python, "-programs", "-out", ".")
    assert ran.code == 1
    assert message in ran.err


def test_a_vllm_without_the_plug_in_has_no_programs(run: Run, engine: EnginePython, tmp_path: Path) -> None:
    ran = run("-python", engine.prints(document(packages={"libtpu": "9.0.1"})), "-programs", "-out", ".")
    assert ran.code == 1
    assert "has vllm 9.1.0, whose programs are not known" in ran.err
    assert not list(tmp_path.glob("libtpu-*"))


LLAMA: dict[str, Any] = {
    "id": "somebody/llama",
    "config": {
        "architectures": ["LlamaForCausalLM"],
        "num_hidden_layers": 2,
        "hidden_size": 256,
        "intermediate_size": 512,
        "num_attention_heads": 8,
        "head_dim": 128,
        "vocab_size": 1024,
        "max_position_embeddings": 2048,
    },
}
# Two layers of 4 x 256 x 1,024 + 3 x 256 x 512, and tables of 2 x 1,024 x 256, split by chips; norms are whole.
_SPLIT, _WHOLE = 2 * (2 * (4 * 256 * 1024 + 3 * 256 * 512) + 2 * 1024 * 256), 2 * 5 * 256
_ANSWER = {"implementation": "flax_nnx", "architecture": "LlamaForCausalLM", "max_model_len": 2048, "dtype": "bfloat16"}
_ANSWER |= {"parameters": 1_000, "parameter_bytes": 2_000, "quantization": "", "is_multimodal": False}
_ANSWER |= {"hidden": 256, "vocabulary": 1024, "runner": "generate", "layers": []}


def loaded(size: int) -> str:
    return json.dumps({"answer": {**_ANSWER, "weights_bytes_per_chip": size}})


def test_the_loaders_weights_are_in_the_file_of_the_release(run: Run, engine: EnginePython, tmp_path: Path) -> None:
    on = {chips: _SPLIT // chips + _WHOLE for chips in (1, 2, 4)}
    refused = json.dumps({"refusal": "ValueError: 8 heads are too few"})
    python = engine.loads(document(engine="tpu-inference"), [*map(loaded, on.values()), refused])
    (tmp_path / "list").write_text(json.dumps({**LLAMA, "settings": {"dtype": "bfloat16"}}), encoding="utf-8")

    ran = run("-python", python, "-models", "list", "-out", ".")

    assert ran.code == 0, ran.err
    assert "Weights by rule: 0 of 3 differ." in ran.out
    weights = json.loads((tmp_path / "tpu-inference-9.1.0.json").read_text(encoding="utf-8"))["weights"]
    sizes: dict[str, Any] = {str(chips): size for chips, size in on.items()}
    assert weights == {"somebody/llama dtype=bfloat16": {**sizes, "8": "8 heads are too few"}}


def test_weights_that_are_not_those_of_our_rule_fail_the_command(
    run: Run, engine: EnginePython, tmp_path: Path
) -> None:
    python = engine.loads(document(engine="tpu-inference"), [loaded(7)] * 4)
    (tmp_path / "list").write_text(json.dumps(LLAMA), encoding="utf-8")
    ran = run("-python", python, "-models", "list")
    assert ran.code == 1
    assert "Weights by rule: 4 of 4 differ." in ran.out
    assert f"somebody/llama on 1 chips: 7 bytes, by our rule {_SPLIT + _WHOLE:,}" in ran.out


def test_a_loader_that_lacks_a_module_is_said_and_answers_nothing(
    run: Run, engine: EnginePython, tmp_path: Path
) -> None:
    python = engine.loads(document(engine="tpu-inference"), ['{"refusal": "ImportError: no timm"}'] * 4)
    (tmp_path / "list").write_text(json.dumps(LLAMA), encoding="utf-8")
    ran = run("-python", python, "-models", "list", "-out", ".")
    assert ran.code == 1
    assert "Not asked: somebody/llama on 1 chips: ImportError: no timm" in ran.err
    assert "weights" not in json.loads((tmp_path / "tpu-inference-9.1.0.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no JSON", "Line 1 of the list is not JSON"),
        ('{"id": "a/b", "config": {}}', "Line 1 of the list is not a model"),
        ('{"id": "a/b", "config": {"architectures": ["X"]}, "settings": 1}', "Line 1 of the list is not a model"),
        (json.dumps(LLAMA), "gave 1 answers to 4 questions"),
    ],
)
def test_a_list_of_models_is_checked(run: Run, engine: EnginePython, tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "list").write_text(text, encoding="utf-8")
    ran = run("-python", engine.loads(document(engine="tpu-inference"), ["{}"]), "-models", "list")
    assert ran.code == 1
    assert message in ran.err


def test_a_vllm_without_the_plug_in_has_no_loader(run: Run, engine: EnginePython) -> None:
    ran = run("-python", engine.prints(document()), "-models", "shipped")
    assert ran.code == 1
    assert "has vllm 9.1.0, whose loader is not asked" in ran.err


def test_each_model_of_the_catalogue_is_asked_about_once() -> None:
    titles = [model.title for model in models.catalogue_models()]
    assert len(titles) == len(set(titles)) > 80
    assert {"google/gemma-2-9b-it", "meta-llama/Llama-3.2-1B", "Qwen/Qwen3-8B-FP8 MODEL_IMPL_TYPE=vllm"} <= set(titles)


def test_writes_one_file_with_the_names_that_are_gone(run: Run, engine: EnginePython, tmp_path: Path) -> None:
    python = engine.prints(document())
    older = {**document(release="9.0.0"), "flags": {"swap-space": ["value", "float"], "seed": ["value", "int"]}}
    older["removed"] = {"seed": ["8.0.0", ""], "task": ["8.0.0", "write runner"]}
    (tmp_path / "older.json").write_text(json.dumps(older), encoding="utf-8")

    ran = run("-python", python, "-older", "older.json", "-out", ".")

    assert ran.code == 0, ran.err
    assert "vllm 9.1.0: 2 flags" in ran.err
    content = json.loads((tmp_path / "vllm-9.1.0.json").read_text(encoding="utf-8"))
    # `seed` came back, `task` has been gone for longer, and `swap-space` was in the last release.
    assert content["removed"] == {"swap-space": ["9.0.0", ""], "task": ["8.0.0", "write runner"]}


def test_a_part_that_could_not_be_read_is_named_and_fails_the_command(run: Run, engine: EnginePython) -> None:
    python = engine.prints(document(problems=["values: NoSuchName: vllm has no CacheConfig"]))
    ran = run("-python", python, "--json")
    assert ran.code == 1
    assert "Not read: values: NoSuchName: vllm has no CacheConfig" in ran.err
    assert json.loads(ran.out)["problems"] == ["values: NoSuchName: vllm has no CacheConfig"]


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo no JSON", "is not JSON"),
        ("echo '[]'", "has no document"),
        ("""echo '{"engine": "../x", "release": "1.2.3"}'""", "has no engine with a release"),
        ("""echo '{"engine": "vllm", "release": "1.2.3", "flags": {"x": ["magic", "int"]}}'""", "form of the flag 'x'"),
        ("printf '[%.0s' {1..99}; printf ']%.0s' {1..99}", "nested too deeply"),
        ("head -c 9000000 /dev/zero", "printed more than 8,192 KiB"),
        ("echo it broke >&2; exit 3", "ended with 3"),
        ("sleep 600", "took longer than 1 s"),
    ],
)
def test_what_comes_back_is_checked(run: Run, engine: EnginePython, script: str, message: str) -> None:
    ran = run("-python", engine.runs(script), "-timeout", "1s" if "sleep" in script else "10m")
    assert ran.code == 1
    assert message in ran.err


def test_a_python_that_is_not_there_is_named(run: Run) -> None:
    ran = run("-python", "/no/such/python")
    assert ran.code == 1
    assert "/no/such/python cannot be run: No such file" in ran.err


def test_no_token_reaches_the_engine(run: Run, engine: EnginePython, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "canary")
    ran = run("-python", engine.runs("env >&2; exit 1"))
    assert "PATH=" in ran.err
    assert "canary" not in ran.err


def test_a_difference_of_a_draw_is_printed_and_fails_the_command(run: Run, engine: EnginePython) -> None:
    only_seed = document(flags={"seed": ["value", "int"]})
    python = engine.prints(only_seed, answers='{"read": {"other": 1}}\n{"error": "refused"}\n')

    ran = run("-python", python, "-prove", "2")

    assert ran.code == 1
    assert "Flags as parsed: 2 of 2 draws differ." in ran.out
    assert "sets other" in ran.out
    assert "is refused: refused" in ran.out


def test_an_answer_that_is_missing_is_no_proof(run: Run, engine: EnginePython) -> None:
    python = engine.prints(document(flags={"seed": ["value", "int"]}), answers='{"read": {}}\n')
    ran = run("-python", python, "-prove", "2")
    assert ran.code == 1
    assert "gave 1 answers to 2 questions" in ran.err


def test_the_probe_needs_nothing_but_the_standard_library(tmp_path: Path) -> None:
    code = "import runpy, sys; runpy.run_path(sys.argv[1]); print(sorted(m for m in sys.modules if 'tpudeploy' in m))"
    ran = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, str(PROBE)], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert ran.stdout == "[]\n", ran.stderr


@pytest.fixture
def probe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The probe's names, before a package `engine` whose class `Moved` is not where it is thought to be."""
    import runpy

    package = tmp_path / "engine_package"
    (package / "inner").mkdir(parents=True)
    for name, text in (("__init__.py", ""), ("inner/__init__.py", ""), ("inner/place.py", "class Moved:\n    pass\n")):
        (package / name).write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    return runpy.run_path(str(PROBE))


def test_a_class_that_moved_is_found_by_its_name(probe: dict[str, Any]) -> None:
    moved = probe["find"]("Moved", likely="engine_package.old_place", package="engine_package")
    assert moved.__module__ == "engine_package.inner.place"


def test_a_name_that_no_module_has_is_said(probe: dict[str, Any]) -> None:
    with pytest.raises(LookupError, match="engine_package has no Gone"):
        probe["find"]("Gone", package="engine_package")


def test_a_release_that_is_read_again_keeps_what_a_person_wrote() -> None:
    same = {"removed": {"task": ["8.0.0", "write runner"], "device": ["7.0.0", ""]}}
    older = {**document(release="9.0.0"), "flags": {"task": ["value", "text"]}, "removed": {}}

    again = release_file.with_removed(document(), older, same)

    assert again["removed"] == {"device": ["7.0.0", ""], "task": ["8.0.0", "write runner"]}
