"""`tpudeploy compile` and `size --engine`, `size --compiled`: with a stand-in for the engine's Python that plays back rows.

The rows were recorded by record.py from the engine itself; tests/features/compile/test_real_compile.py asks it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import CommandLine, Open
from features.compile.record import DATA, PROFILE

from tpudeploy.domain.errors import QueryFailed
from tpudeploy.features.compile import CompiledGraph, program_bytes
from tpudeploy.features.compile.engine_process import read_row

Engine = Callable[..., str]
VERSIONS = "0.32.0-0.0.48"
KEPT = f"compiled/{VERSIONS}/example-tiny-qwen3-v6e-1.json"


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    """Make a program that answers as the engine's Python did, and writes down what it was asked."""

    def make(rows: str, *, then: str = "") -> str:
        path = tmp_path / "engine-python"
        script = f"#!{sys.executable}\nimport os, sys, time\nopen({str(tmp_path / 'asked')!r}, 'a').write(sys.stdin.read())\n"
        script += f"sys.stdout.write({rows!r}); sys.stdout.flush()\n{then}\n"
        path.write_text(script, encoding="utf-8")
        path.chmod(0o755)
        return str(path)

    return make


@pytest.fixture
def at(cli: Open) -> CommandLine:
    line = cli(nodes="simulated")
    (line.folder / "tiny.yaml").write_text(PROFILE, encoding="utf-8")
    (line.folder / "config.json").write_bytes((DATA / "config.json").read_bytes())
    return line


def recorded(name: str) -> str:
    return (DATA / name).read_text("utf-8")


def test_compile_and_size_engine_say_which_python_they_need(cli: Open) -> None:
    at = cli()
    at.write()
    for words in (("compile",), ("size", "--engine")):
        result = at.run(words[0], "gemma.yaml", *words[1:])
        assert result.code == 1
        assert "needs --python PATH, a Python that has vllm-tpu" in result.err


def test_the_graphs_are_kept_in_a_file_by_engine_and_libtpu(at: CommandLine, engine: Engine) -> None:
    result = at.run("compile", "tiny.yaml", "--python", engine(recorded("compiled.jsonl")))
    assert result.code == 0, result.all
    document = json.loads((at.folder / KEPT).read_text("utf-8"))
    assert (document["format"], document["engine"], document["libtpu"]) == ("tpudeploy.compiled/1", "0.32.0", "0.0.48")
    assert document["is_complete"] is True
    assert {"backbone num_tokens=16 num_reqs=8", "structured_decode num_reqs=8"} <= {
        g["graph"] for g in document["graphs"]
    }
    assert "All graphs" in result.out


def test_a_run_that_was_killed_continues_with_the_graphs_that_it_lacks(
    at: CommandLine, engine: Engine, tmp_path: Path
) -> None:
    rows = recorded("compiled.jsonl").splitlines(keepends=True)
    first = at.run("compile", "tiny.yaml", "--python", engine("".join(rows[:8]), then="sys.exit(9)"))
    assert first.code != 0
    before = json.loads((at.folder / KEPT).read_text("utf-8"))
    assert not before["is_complete"]
    again = at.run("compile", "tiny.yaml", "--python", engine(recorded("compiled.jsonl")))
    assert again.code == 0, again.all
    question = json.loads((tmp_path / "asked").read_text("utf-8").splitlines()[-1])
    assert question["graphs"]["done"] == {VERSIONS: sorted({graph["graph"] for graph in before["graphs"]})}


def test_a_run_that_was_killed_between_the_variants_of_a_graph_lacks_the_others(
    at: CommandLine, engine: Engine, tmp_path: Path
) -> None:
    rows = recorded("compiled.jsonl").splitlines(keepends=True)
    end = next(number for number, row in enumerate(rows) if json.loads(row).get("is_done"))
    at.run("compile", "tiny.yaml", "--python", engine("".join(rows[: end + 1]), then="sys.exit(9)"))
    at.run("compile", "tiny.yaml", "--python", engine(recorded("compiled.jsonl")))
    question = json.loads((tmp_path / "asked").read_text("utf-8").splitlines()[-1])
    ended = [json.loads(row)["graph"] for row in rows if json.loads(row).get("is_done")]
    assert "sample num_reqs=8 variant=2" in ended
    assert question["graphs"]["done"] == {VERSIONS: ["", "sample num_reqs=8"]}  # and what the engine allocates before
    assert len(ended) == len(set(ended))


@pytest.mark.parametrize("words", [("compile",), ("size", "--engine")], ids=" ".join)
def test_a_draft_model_is_refused_before_the_engine_is_started(
    at: CommandLine, engine: Engine, tmp_path: Path, words: tuple[str, ...]
) -> None:
    draft = '{"method": "eagle3", "model": "yuhuili/EAGLE3-LLaMA3.1-Instruct-8B", "num_speculative_tokens": 3}'
    change = ("-set", f"serving.args.speculative_config={draft}")
    result = at.run(words[0], "tiny.yaml", *words[1:], "--python", engine(recorded("compiled.jsonl")), *change)
    assert result.code == 1
    assert "the draft model yuhuili/EAGLE3-LLaMA3.1-Instruct-8B: its config is not known here" in result.err
    assert not (tmp_path / "asked").exists()


def test_size_takes_the_program_room_from_compiled_graphs_and_says_so(at: CommandLine, engine: Engine) -> None:
    at.run("compile", "tiny.yaml", "--python", engine(recorded("compiled.jsonl")))
    sized = json.loads(at.run("size", "tiny.yaml", "--compiled", KEPT, "--json").out)
    graphs = json.loads((at.folder / KEPT).read_text("utf-8"))["graphs"]
    room = sum(g["code_bytes"] for g in graphs) + max(g["temp_bytes"] for g in graphs)
    assert sized["program_bytes_per_chip"] == room
    assert any("libtpu 0.0.48, all of the graphs" in text for text in sized["estimates"])
    assert any("the compiler estimates" in text for text in sized["estimates"])


def test_graphs_of_other_settings_are_refused(at: CommandLine, engine: Engine) -> None:
    at.run("compile", "tiny.yaml", "--python", engine(recorded("compiled.jsonl")))
    result = at.run("size", "tiny.yaml", "--compiled", KEPT, "-set", "serving.max_num_seqs=16")
    assert result.code == 1
    assert "is for v6e-1 with 8 requests and 32 tokens a step, not v6e-1 with 16" in result.err


def test_what_another_libtpu_compiled_is_not_continued(at: CommandLine, engine: Engine) -> None:
    rows = recorded("compiled.jsonl")
    at.run("compile", "tiny.yaml", "--python", engine(rows.replace('"libtpu": "0.0.48"', '"libtpu": "0.0.44"')))
    result = at.run("compile", "tiny.yaml", "--python", engine(rows))
    assert result.code == 0, result.all
    older = at.folder / KEPT.replace("0.0.48", "0.0.44")
    graphs = [len(json.loads(path.read_text("utf-8"))["graphs"]) for path in (older, at.folder / KEPT)]
    assert graphs[0] == graphs[1]


def test_a_part_of_the_graphs_does_not_make_the_room_smaller(at: CommandLine, engine: Engine) -> None:
    rows = recorded("compiled.jsonl").splitlines(keepends=True)
    at.run("compile", "tiny.yaml", "--python", engine("".join(rows[:8]), then="sys.exit(9)"))
    plain = json.loads(at.run("size", "tiny.yaml", "--json").out)
    sized = json.loads(at.run("size", "tiny.yaml", "--compiled", KEPT, "--json").out)
    assert sized["program_bytes_per_chip"] == plain["program_bytes_per_chip"]
    assert any("only a part of the graphs" in text for text in sized["estimates"])


def test_a_file_of_an_earlier_version_is_taken_as_one_for_all_chips(at: CommandLine, engine: Engine) -> None:
    at.run("compile", "tiny.yaml", "--python", engine(recorded("compiled.jsonl")))
    document = json.loads((at.folder / KEPT).read_text("utf-8"))
    del document["settings"]["tensor_parallel_size"]
    (at.folder / KEPT).write_text(json.dumps(document), encoding="utf-8")
    assert at.run("size", "tiny.yaml", "--compiled", KEPT).code == 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"model": "example/other"}, "is for example/other, not example/tiny-qwen3"),
        ({"engine": "0.31.0"}, "is for tpu-inference 0.31.0, not tpu-inference 0.32.0"),
        ({"format": "tpudeploy.compiled/2"}, "does not have compiled graphs of the format tpudeploy.compiled/1"),
        ({"graphs": [{"graph": "backbone", "temp_bytes": "5"}]}, "does not have compiled graphs"),
        ({"settings": []}, "does not have compiled graphs"),
        ({"extra": 1}, "does not have compiled graphs"),
    ],
)
def test_a_file_of_something_else_is_refused_in_words(
    at: CommandLine, engine: Engine, change: dict[str, object], words: str
) -> None:
    at.run("compile", "tiny.yaml", "--python", engine(recorded("compiled.jsonl")))
    document = json.loads((at.folder / KEPT).read_text("utf-8"))
    (at.folder / KEPT).write_text(json.dumps({**document, **change}), encoding="utf-8")
    result = at.run("size", "tiny.yaml", "--compiled", KEPT)
    assert result.code == 1
    assert words in result.err


def test_graphs_in_the_bucket_of_the_states_are_continued_on_another_computer(
    at: CommandLine, engine: Engine, tmp_path: Path
) -> None:
    rows = recorded("compiled.jsonl").splitlines(keepends=True)
    (at.folder / "tpudeploy.toml").write_text('backend = "gs://states/team"\n', encoding="utf-8")
    at.run("compile", "tiny.yaml", "--python", engine("".join(rows[:8]), then="sys.exit(9)"))
    (at.folder / KEPT).unlink()  # as on another computer
    sized = json.loads(at.run("size", "tiny.yaml", "--compiled", KEPT, "--json").out)
    assert any("only a part of the graphs" in text for text in sized["estimates"])
    result = at.run("compile", "tiny.yaml", "--python", engine(recorded("compiled.jsonl")))
    assert result.code == 0, result.all
    question = json.loads((tmp_path / "asked").read_text("utf-8").splitlines()[-1])
    assert question["graphs"]["done"][VERSIONS]


def test_the_engine_itself_sizes_a_model(at: CommandLine, engine: Engine) -> None:
    (row,) = [json.loads(line) for line in recorded("answer.jsonl").splitlines()]
    sized = json.loads(
        at.run("size", "tiny.yaml", "--engine", "--python", engine(recorded("answer.jsonl")), "--json").out
    )
    assert sized["weights_bytes_per_chip"] == row["answer"]["weights_bytes_per_chip"]
    assert sized["num_blocks"] == row["answer"]["num_blocks"]
    assert any("tpu-inference 0.32.0's own loader" in text for text in sized["estimates"])


def test_a_refusal_of_the_engine_is_shown_in_its_words(at: CommandLine, engine: Engine) -> None:
    words = "ValidationError: auto_gptq quantization is currently not supported in tpu."
    result = at.run("compile", "tiny.yaml", "--python", engine(json.dumps({"refusal": words}) + "\n"))
    assert result.code != 0
    assert "auto_gptq quantization is currently not supported in tpu" in result.err


def test_what_the_compiler_refuses_is_kept_and_ends_with_13(at: CommandLine, engine: Engine) -> None:
    head = recorded("compiled.jsonl").splitlines(keepends=True)[0]
    refusal = {"graph": "backbone num_tokens=16 num_reqs=8", "refusal": "RESOURCE_EXHAUSTED: Ran out of memory in vmem"}
    end = {"graph": refusal["graph"], "is_done": True}
    rows = head + "".join(json.dumps(row) + "\n" for row in (refusal, end, {"is_complete": True}))
    result = at.run("compile", "tiny.yaml", "--python", engine(rows))
    assert result.code == 13
    assert "Ran out of memory in vmem" in result.out


def test_an_engine_that_takes_too_long_is_ended(at: CommandLine, engine: Engine) -> None:
    result = at.run("compile", "tiny.yaml", "--timeout", "1s", "--python", engine("", then="time.sleep(600)"))
    assert result.code != 0
    assert "time is over" in result.err


@pytest.mark.parametrize("line", [b"no json", b"[]", b"[" * 5_000, ("{" + '"a":{' * 30 + "}" * 31).encode()])
def test_an_answer_of_another_form_is_refused_with_words(line: bytes) -> None:
    with pytest.raises(QueryFailed):
        read_row(line)


def test_a_model_whose_config_is_not_known_asks_for_it(at: CommandLine, engine: Engine) -> None:
    text = PROFILE.replace(", config: config.json", "").replace("example/tiny-qwen3", "somebody/something")
    (at.folder / "other.yaml").write_text(text, encoding="utf-8")
    result = at.run("compile", "other.yaml", "--python", engine(""))
    assert result.code != 0
    assert "model.config" in result.err


def test_the_room_of_programs_is_all_code_and_the_largest_temporary_array() -> None:
    graphs = (
        CompiledGraph(graph="a", temp_bytes=5, code_bytes=1),
        CompiledGraph(graph="b", temp_bytes=7, code_bytes=2),
    )
    assert program_bytes(graphs) == 10
    assert program_bytes(()) == 0


def test_an_engine_of_another_kind_is_neither_compiled_nor_asked(at: CommandLine, engine: Engine) -> None:
    image = ("--set", "serving.image=vllm/vllm-torchtpu:v0.29.0")
    for words in (("compile", "tiny.yaml"), ("size", "tiny.yaml", "--engine")):
        result = at.run(*words, "--python", engine(""), *image)
        assert result.code == 1
        assert "torchtpu 0.29.0 cannot be compiled or asked without a chip" in result.words


RECORDED = '"engine": "0.32.0"'


@pytest.mark.parametrize("command", [("compile",), ("size", "--engine")])
def test_an_environment_with_another_release_than_the_image_is_refused(
    at: CommandLine, engine: Engine, command: tuple[str, ...]
) -> None:
    rows = recorded("compiled.jsonl" if command == ("compile",) else "answer.jsonl")
    python = engine(rows.replace(RECORDED, RECORDED.replace("32", "31")))
    result = at.run(command[0], "tiny.yaml", *command[1:], "--python", python)
    assert result.code == 1
    assert "has tpu-inference 0.31.0, and the image has tpu-inference 0.32.0" in result.words
    assert not (at.folder / "compiled").exists()
    named = at.run(
        command[0], "tiny.yaml", *command[1:], "--python", python, "-set", "serving.image=vllm/vllm-tpu:v0.31.0"
    )
    assert named.code == 0, named.all


def test_the_lock_file_tells_the_release_of_a_digest_there_too(at: CommandLine, engine: Engine) -> None:
    digest = f"sha256:{'a' * 64}"
    lock = {"format": "tpudeploy.lock/1", "images": {}, "models": {}, "releases": {digest: "0.31.0"}}
    (at.folder / "tpudeploy.lock.json").write_text(json.dumps(lock), encoding="utf-8")
    image = ("-set", f"serving.image=vllm/vllm-tpu@{digest}")
    python = engine(recorded("compiled.jsonl"))
    assert "the image has tpu-inference 0.31.0" in at.run("compile", "tiny.yaml", "--python", python, *image).words
    at.run("compile", "tiny.yaml", "--python", python)
    sized = at.run("size", "tiny.yaml", "--compiled", KEPT, *image)
    assert "is for tpu-inference 0.32.0, not tpu-inference 0.31.0" in sized.err
    (row,) = [json.loads(line) for line in recorded("answer.jsonl").splitlines()]
    older = json.dumps({"answer": {**row["answer"], "engine": "0.31.0"}}) + "\n"
    by_engine = at.run("size", "tiny.yaml", "--engine", "--python", engine(older), *image)
    assert "engine: tpu-inference 0.31.0, as it reported at its last boot" in by_engine.words


def test_a_python_without_the_plug_in_is_told_what_it_lacks(at: CommandLine, engine: Engine) -> None:
    python = engine("", then="import tpu_inference_that_is_not_there")
    result = at.run("compile", "tiny.yaml", "--python", python)
    assert result.code == 1
    assert "has no module tpu_inference_that_is_not_there" in result.words
    assert "pip install vllm-tpu" in result.words


def test_flags_that_decide_graphs_reach_the_engine_and_are_part_of_the_file(
    at: CommandLine, engine: Engine, tmp_path: Path
) -> None:
    flags = ("-set", "serving.args.enable_prefix_caching=false", "-set", "serving.args.disable_log_stats=true")
    at.run("compile", "tiny.yaml", "--python", engine(recorded("compiled.jsonl")), *flags)
    question = json.loads((tmp_path / "asked").read_text("utf-8").splitlines()[-1])
    assert question["args"]["words"] == ["--no-enable-prefix-caching"]
    assert at.run("size", "tiny.yaml", "--compiled", KEPT, *flags).code == 0
    other = at.run("size", "tiny.yaml", "--compiled", KEPT)
    assert "is for --no-enable-prefix-caching, not no other flags of the engine" in other.words


def test_pipeline_stages_are_not_compiled_as_a_whole_model(at: CommandLine, engine: Engine) -> None:
    stages = ("-set", "serving.args.pipeline_parallel_size=2", "-set", "tpu.type=v6e-4")
    result = at.run("compile", "tiny.yaml", "--python", engine(recorded("compiled.jsonl")), *stages)
    assert result.code == 1
    assert "pipeline stages are several" in result.words


def test_a_call_without_a_stand_in_is_no_refusal_of_the_engine(at: CommandLine, engine: Engine) -> None:
    words = "AttributeError: 'Executable' object has no attribute 'local_devices'"
    result = at.run("compile", "tiny.yaml", "--python", engine(json.dumps({"refusal": words}) + "\n"))
    assert result.code != 0
    assert "The engine stopped: AttributeError" in result.words
    assert "refuses" not in result.words
