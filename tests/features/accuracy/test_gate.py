"""A flag is changed, the same questions are asked again, and a fall of quality stops the pipeline."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from subprocess import PIPE
from typing import Any, TypeAlias

import pytest
from command_line import PROFILE, CommandLine, Open, Result
from features.accuracy.arms import Arm, serving
from real_time import DEADLINE

from tpudeploy.features.accuracy import questions

ASKED = {question.prompt: question.answer for question in questions.arithmetic().questions}
AS_BEFORE = ("verify", "gemma.yaml", "-accuracy", "arithmetic")
GATE = (*AS_BEFORE, "-concurrency", "16")

Arms: TypeAlias = Callable[..., Arm]


@pytest.fixture
def arm(monkeypatch: pytest.MonkeyPatch) -> Iterator[Arms]:
    """`arm(0.9)`: a server that has nine of ten right."""
    monkeypatch.delenv("VLLM_API_KEY", raising=False)
    with ExitStack() as stack:

        def open_(share: float, **more: Any) -> Arm:
            return stack.enter_context(serving(Arm(answers=ASKED, share=share, **more)))

        yield open_


@pytest.fixture
def at(cli: Open) -> CommandLine:
    """A deployment that serves; who answers for it is put there by `answers`."""
    at: CommandLine = cli()
    assert at.run("apply", "-auto-approve", at.write()).code == 0
    return at


def answers(at: CommandLine, arm: Arm) -> None:
    """From now on this one answers for the deployment, at the address of a router of the user's own."""
    path, profile = at.folder / "endpoints" / "gemma.json", at.folder / "gemma.yaml"
    port = int(arm.url.rpartition(":")[2])
    place = {"kind": "haproxy", "host": "own", "address": "127.0.0.1", "port": port}
    router = {**place, "model": "google/gemma-4-E2B-it"}
    document = {**json.loads(path.read_text("utf-8")), "url": arm.url, "router": router}
    path.write_text(json.dumps(document), "utf-8")
    text = profile.read_text("utf-8").partition("router:")[0]
    profile.write_text(f"{text}router: {json.dumps(place)}\n", "utf-8")


def sheet_id(result: Result) -> str:
    return result.err.rpartition("--against ")[2].strip()


def sheet(at: CommandLine, id_: str) -> Mapping[str, Any]:
    path = at.folder / ".tpudeploy" / "runs" / "accuracy" / f"{id_}.json"
    tree: Mapping[str, Any] = json.loads(path.read_text("utf-8"))
    return tree


def test_every_question_is_asked_without_chance_and_every_answer_is_kept(at: CommandLine, arm: Arms) -> None:
    server = arm(0.9)
    answers(at, server)
    result = at.run(*GATE, "-questions", "50", "-concurrency", "8")
    assert result.code == 0, result.all
    assert result.out.startswith("gemma  4")
    assert "of 50 right" in result.out
    assert {prompt["messages"][0]["content"] for prompt in server.requests} == set(list(ASKED)[:50])
    assert {(b["temperature"], b["seed"], b["max_tokens"], b["model"]) for b in server.requests} == {
        (0, 0, 512, "google/gemma-4-E2B-it")
    }
    stored = sheet(at, sheet_id(result))
    assert stored["format"] == "tpudeploy.answers/1"
    assert len(stored["answers"]) == 50
    assert stored["server"][:2] == ["vllm", "serve"]
    assert stored["answers"][0]["said"].startswith("Let me think")
    assert (at.folder / ".tpudeploy" / "runs" / "accuracy" / ".gitignore").exists()


def test_a_fall_after_a_change_of_flags_is_found_and_exits_13(at: CommandLine, arm: Arms) -> None:
    answers(at, arm(0.95))
    before = sheet_id(at.run(*GATE))
    at.write(PROFILE.replace("max_model_len: 16384", "max_model_len: 16384\n  kv_cache_dtype: fp8"))
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    answers(at, arm(0.88))
    result = at.run(*GATE, "-against", before)
    assert result.code == 13, result.all
    assert result.out.splitlines()[-1] == "Quality regressed."
    assert "0 gained" in result.out
    assert "in the same way" not in result.out
    assert "--kv-cache-dtype" in " ".join(sheet(at, _after(result))["server"])


def _after(result: Result) -> str:
    return next(line.split()[-1] for line in result.out.splitlines() if line.startswith("after"))


def test_the_same_quality_passes_and_what_could_be_missed_is_said(at: CommandLine, arm: Arms) -> None:
    answers(at, arm(0.95))
    before = sheet_id(at.run(*GATE))
    answers(at, arm(0.95))
    result = at.run(*GATE, "-against", before)
    assert result.code == 0, result.all
    assert result.out.splitlines()[-1] == "No quality regression was detected."
    assert "400 questions in both: 0 lost, 0 gained" in result.out
    assert "a fall of up to 0.4% cannot be excluded" in result.out
    assert "a fall of 2% would be detected 80% of the time; 401 questions detect it 80%" in result.out
    assert "so any difference is chance" in result.out


def test_two_servers_are_asked_side_by_side(at: CommandLine, arm: Arms) -> None:
    base, risky = arm(0.95), arm(0.85)
    answers(at, risky)
    result = at.run(*GATE, "-against", base.url, "-json", "-concurrency", "4")
    assert result.code == 13, result.all
    tree = json.loads(result.out)
    assert tree["format"] == "tpudeploy.accuracy/1"
    assert tree["verdict"]["judgement"] == "fell"
    assert tree["verdict"]["questions"] == 400
    assert tree["before"]["right"] > tree["after"]["right"]
    assert (tree["before"]["url"], tree["after"]["url"]) == (base.url, risky.url)
    assert [b["messages"] for b in base.requests[:1]] == [b["messages"] for b in risky.requests[:1]]


def test_a_gain_is_no_fall(at: CommandLine, arm: Arms) -> None:
    answers(at, arm(0.95))
    result = at.run(*GATE, "-against", arm(0.8).url)
    assert result.code == 0, result.all


def test_a_baseline_that_has_hardly_anything_right_decides_nothing(at: CommandLine, arm: Arms) -> None:
    answers(at, arm(0.1))
    result = at.run(*GATE)
    assert "below 50% these questions cannot show a regression" in result.err
    again = at.run(*GATE, "-against", sheet_id(result))
    assert again.code == 1
    assert "This number of questions cannot decide it." in again.out
    assert "below 50%" in again.out


def test_answers_to_other_questions_or_of_other_lengths_are_not_compared(at: CommandLine, arm: Arms) -> None:
    answers(at, arm(0.9))
    before = sheet_id(at.run(*GATE, "-questions", "50"))
    for more, output in (("-questions=60", "60 of arithmetic, and not the same"), ("-max-tokens=64", "64 tokens")):
        result = at.run(*GATE, "-questions", "50", "-against", before, more)
        assert result.code == 1
        assert "Two servers are compared by one test" in result.err
        assert output in result.err


def test_what_was_asked_before_is_asked_again_in_the_same_way(at: CommandLine, arm: Arms) -> None:
    answers(at, arm(0.9))
    before = sheet_id(at.run(*GATE, "-questions", "20", "-max-tokens", "77", "-concurrency", "3"))
    server = arm(0.9)
    answers(at, server)
    result = at.run(*AS_BEFORE, "-questions", "20", "-against", before, "-json")
    assert (json.loads(result.out)["after"]["concurrency"], server.requests[0]["max_tokens"]) == (3, 77)
    other = at.run(*GATE, "-questions", "20", "-against", before, "-concurrency", "5")
    assert "3 parallel questions before, 5 now" in other.out


def test_so_many_are_asked_at_once(at: CommandLine, arm: Arms) -> None:
    server = arm(0.9, barrier=threading.Barrier(7))
    answers(at, server)
    assert at.run(*GATE, "-questions", "22", "-concurrency", "7").code == 0
    assert server.most == 7


def test_a_connection_that_breaks_is_tried_once_more(at: CommandLine, arm: Arms) -> None:
    server = arm(1.0, hang_up=1)
    answers(at, server)
    result = at.run(*GATE, "-questions", "20", "-concurrency", "1")
    assert "gemma  20 of 20 right" in result.out
    assert len(server.requests) == 21


def test_a_server_that_does_not_answer_everything_is_not_judged(at: CommandLine, arm: Arms) -> None:
    answers(at, arm(0.95, deaf=0.1))
    result = at.run(*GATE, "-against", arm(0.95).url)
    assert result.code == 1, result.all
    assert "have no answer of the second server: HTTP 500: EngineCore died" in result.out


def test_ctrl_c_ends_it_at_once_and_keeps_no_half_of_a_test(at: CommandLine, arm: Arms) -> None:
    server, is_asked, over = arm(0.9), threading.Event(), threading.Event()
    answers(at, server)

    def hangs(prompt: str) -> str:
        if len(server.requests) > 1:
            is_asked.set()
            over.wait(2 * DEADLINE)
        return f"Answer: {ASKED[prompt]}"

    server.answer = hangs  # type: ignore[method-assign]
    program = str(Path(sys.executable).with_name("tpudeploy"))
    with subprocess.Popen(
        [program, *AS_BEFORE, "-concurrency", "1"], cwd=at.folder, stdout=PIPE, stderr=PIPE, text=True
    ) as process:
        try:
            assert is_asked.wait(DEADLINE)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=DEADLINE)
        finally:
            over.set()
    assert process.returncode == 130
    assert "Interrupted before every question was answered: nothing is kept." in err
    assert not (at.folder / ".tpudeploy" / "runs" / "accuracy").exists()


def test_a_wrong_key_is_told_once(at: CommandLine, arm: Arms) -> None:
    server = arm(0.9, key="sesame")
    answers(at, server)
    result = at.run(*GATE)
    assert result.code == 1
    assert "It requires an API key: set VLLM_API_KEY." in result.err
    assert len(server.requests) == 1


def test_an_addresss_key_is_the_environments(at: CommandLine, arm: Arms, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_API_KEY", "sesame")
    answers(at, arm(0.9))
    result = at.run(*GATE, "-questions", "20", "-against", arm(0.9, key="sesame").url)
    assert result.code == 0, result.all
    assert all("sesame" not in path.read_text("utf-8") for path in at.folder.rglob("runs/accuracy/*.json"))


def test_a_deployments_key_is_sent_as_a_query_sends_it(cli: Open, arm: Arms) -> None:
    at = cli(secrets={"hf-token": "made-up-token", "vllm-key": "made-up-key"})
    keyed = PROFILE.replace("HF_TOKEN: hf-token", "HF_TOKEN: hf-token\n  VLLM_API_KEY: vllm-key")
    assert at.run("apply", "-auto-approve", at.write(keyed)).code == 0
    answers(at, arm(0.9, key="made-up-key"))
    result = at.run(*GATE, "-questions", "20")
    assert result.code == 0, result.all
    assert "made-up-key" not in result.all + json.dumps(sheet(at, sheet_id(result)))


def test_a_file_of_ones_own_is_asked(at: CommandLine, arm: Arms) -> None:
    server = arm(1.0)
    server.answers = {f"How much is {n}?\n\n": str(n) for n in range(3)}
    server.answer = lambda prompt: f"Answer: {prompt.split()[3].rstrip('?')}"  # type: ignore[method-assign]
    answers(at, server)
    lines = [json.dumps({"question": f"How much is {n}?", "answer": f"... #### {n}"}) for n in range(3)]
    at.write("\n".join(lines), "mine.jsonl")
    result = at.run("verify", "gemma.yaml", "-accuracy", "mine.jsonl")
    assert result.out == "gemma  3 of 3 right (100.0%)  mine.jsonl\n"
    assert at.run("verify", "gemma.yaml", "-accuracy", "mine.jsonl", "-questions", "4").code == 1


def test_what_cannot_be_read_is_an_error_that_names_it(at: CommandLine, arm: Arms) -> None:
    answers(at, arm(0.9))
    assert "none.jsonl cannot be read" in at.run("verify", "gemma.yaml", "-accuracy", "none.jsonl").err
    at.write("{}", "none.json")
    assert "does not hold answers" in at.run(*GATE, "-against", "none.json").err
    before = sheet_id(at.run(*GATE, "-questions", "20"))
    path = at.folder / ".tpudeploy" / "runs" / "accuracy" / f"{before}.json"
    path.write_text(path.read_text("utf-8").replace('"is_right": false', '"is_right": true', 1), "utf-8")
    result = at.run(*GATE, "-questions", "20", "-against", before)
    assert result.code == 1
    assert "it was changed after it was written" in result.err


def test_a_profile_that_is_not_applied_yet_is_not_asked(at: CommandLine, arm: Arms) -> None:
    server = arm(0.9)
    answers(at, server)
    result = at.run(*GATE, "--set", "serving.kv_cache_dtype=fp8")
    assert result.code == 1
    assert "The server of gemma is not the one that its profile declares." in result.err
    assert server.requests == []


@pytest.mark.parametrize("option", ["-against=x", "-concurrency=3", "-max-tokens=3", "-questions=3"])
def test_what_is_about_questions_goes_with_questions(cli: Open, option: str) -> None:
    at = cli()
    result = at.run("verify", at.write(), option)
    assert result.code == 1
    assert "needs --accuracy" in result.err


def test_the_emulators_own_server_has_nothing_right(at: CommandLine) -> None:
    result = at.run(*GATE, "-questions", "5")
    assert result.out == "gemma  0 of 5 right (0.0%)  arithmetic\n"


LM_EVAL = """#!/usr/bin/env python3
import json, os, pathlib, sys
pathlib.Path(os.environ["SAMPLES"] + ".session").write_text(str(os.getsid(0)))
out = pathlib.Path(sys.argv[sys.argv.index("--output_path") + 1]) / "google__gemma"
out.mkdir(parents=True)
(out.parent.parent / "asked.json").write_text(json.dumps([*sys.argv[1:], os.environ.get("OPENAI_API_KEY")]))
samples = pathlib.Path(os.environ["SAMPLES"]).read_text()
(out / "samples_gsm8k_2026-11-21T00-00-00.jsonl").write_text(samples)
print("table")
sys.exit(int(os.environ.get("FAILS", "0")))
"""


def logged(right: Callable[[int], bool], count: int = 400) -> str:
    """What lm_eval logs of a task with two filters."""
    lines = []
    for doc in range(count):
        common = {"doc_id": doc, "target": str(doc), "metrics": ["exact_match"], "prompt_hash": f"p{doc}"}
        requests = {"gen_args_0": {"arg_0": ["?"], "arg_1": {"max_gen_toks": 512, "temperature": 0}}}
        for kind, score in (("strict-match", right(doc)), ("flexible-extract", True)):
            output = {"filtered_resps": [str(doc)], "resps": [[f"It is {doc}."]]}
            sample = {"filter": kind, "exact_match": float(score), "arguments": requests}
            lines.append(json.dumps({**common, **output, **sample}))
    return "\n".join(lines) + "\n"


def test_samples_of_lm_eval_are_compared_without_asking_anybody(cli: Open) -> None:
    at = cli()
    at.write(), at.write(logged(lambda doc: doc % 20 > 0), "before.jsonl")
    at.write(logged(lambda doc: doc % 10 > 0), "after.jsonl")
    fell = at.run("verify", "gemma.yaml", "-accuracy", "after.jsonl", "-against", "before.jsonl")
    assert fell.code == 13, fell.all
    assert "20 lost, 0 gained" in fell.out
    assert at.run("verify", "gemma.yaml", "-accuracy", "before.jsonl", "-against", "before.jsonl").code == 0
    at.write(logged(lambda _: True, 300), "fewer.jsonl")
    assert at.run("verify", "gemma.yaml", "-accuracy", "fewer.jsonl", "-against", "before.jsonl").code == 1


@pytest.fixture
def lm_eval(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for its program, first on PATH. What it is to log stands in `samples`."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "lm_eval").write_text(LM_EVAL, "utf-8")
    (folder / "lm_eval").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("SAMPLES", str(tmp_path / "samples"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_lm_eval_is_run_as_a_program_and_what_it_logged_is_kept(at: CommandLine, arm: Arms, lm_eval: Path) -> None:
    server = arm(0.9)
    answers(at, server)
    (lm_eval / "samples").write_text(logged(lambda doc: doc % 20 > 0), "utf-8")
    result = at.run("verify", "gemma.yaml", "-accuracy", "lm_eval:gsm8k", "-concurrency", "8")
    assert result.out == "gemma  380 of 400 right (95.0%)  gsm8k, strict-match, exact_match\n", result.all
    words = json.loads((lm_eval / "asked.json").read_text("utf-8"))
    assert words[:3] == ["run", "--model", "local-chat-completions"]
    assert f"base_url={server.url}/v1/chat/completions,num_concurrent=8" in words[4]
    assert words[words.index("--gen_kwargs") + 1] == "temperature=0,max_gen_toks=512"
    assert words[words.index("--tasks") + 1] == "gsm8k"
    assert sheet(at, sheet_id(result))["answers"][7]["said"] == "It is 7."
    session = (lm_eval / "samples.session").read_text("utf-8")
    assert int(session) != os.getsid(0), "Ctrl-C would reach it before us"
    (lm_eval / "samples").write_text(logged(lambda doc: doc % 10 > 0), "utf-8")
    again = at.run("verify", "gemma.yaml", "-accuracy", "lm_eval:gsm8k", "-against", sheet_id(result))
    assert again.code == 13, again.all


def test_lm_eval_that_fails_or_is_missing_is_an_error(
    at: CommandLine, arm: Arms, lm_eval: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers(at, arm(0.9))
    (lm_eval / "samples").write_text("", "utf-8")
    monkeypatch.setenv("FAILS", "3")
    result = at.run("verify", "gemma.yaml", "-accuracy", "lm_eval:gsm8k")
    assert result.code == 1
    assert "lm_eval ended with 3." in result.err
    monkeypatch.setenv("PATH", "/nonexistent")
    assert "pip install 'lm_eval[api]'" in at.run("verify", "gemma.yaml", "-accuracy", "lm_eval:gsm8k").err
