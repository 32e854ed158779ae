"""Words that people bring from other tools lead to what does it here, and never to a deletion that they did not mean."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from command_line import PROFILE, command

from tpudeploy.cli import verbs
from tpudeploy.cli.commands import COMMANDS
from tpudeploy.cli.commands import command as command_of
from tpudeploy.cli.parsers import verbs_of
from tpudeploy.cli.suggestions import did_you_mean_command
from tpudeploy.config.foreign_keys import HINTS
from tpudeploy.config.keys import all_keys
from tpudeploy.operations.explanations import groups
from tpudeploy.operations.trade_words import ENTRIES

ABOUT_DELETION = ("destory", "distroy", "pause", "resume", "suspend", "cancel")
DELETES = ("down", "stop", "delete", "rm", "kill", "teardown", "remove", "clean", "purge", "nuke")


@pytest.mark.parametrize(
    ("word", "answer"),
    [
        *((word, "tpudeploy apply PROFILE") for word in ("deploy", "up", "launch", "run", "start", "create")),
        *((word, "tpudeploy destroy PROFILE") for word in DELETES),
        *((word, "tpudeploy status") for word in ("ps", "list", "ls", "get")),
        *((word, "is billed until it is deleted") for word in ("pause", "resume", "suspend")),
        *((word, "tpudeploy output") for word in ("url", "open")),
        *((word, "tpudeploy zones") for word in ("quota", "regions")),
        ("cancel", "tpudeploy destroy PROFILE"),
        ("port-forward", "health.via"),
        ("redeploy", "apply -replace"),
        ("restore", "roll-back.md"),
        ("prune", "tpudeploy gc"),
        ("health", "tpudeploy status"),
        ("rollback", "roll-back.md"),
        ("scale", "replicas"),
        ("restart", "apply -replace"),
        ("ssh", "tpu-vm ssh"),
        ("exec", "tpudeploy logs"),
        ("costs", "limit-the-cost.md"),
        ("optimize", "tpudeploy tune"),
        ("build", "serving.image"),
        ("destory", "Did you mean `destroy`?"),
        ("distroy", "Did you mean `destroy`?"),
    ],
)
def test_a_verb_of_another_tool_is_answered_with_the_command_that_does_it(
    word: str, answer: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refused = command(tmp_path, capsys, word, "p.yaml")
    assert refused.code == 1
    assert answer in refused.err
    assert word in {*DELETES, *ABOUT_DELETION} or "destroy" not in refused.err


def test_no_word_is_guessed_to_mean_a_deletion_unless_it_is_one_misspelled() -> None:
    words = {*verbs.SENTENCES, "deplo", "depoly", "describe", "dev", "gci", "get-credentials", "forge", "desc", "draw"}
    for word in words:
        answer = did_you_mean_command(word, COMMANDS)
        is_deletion = verbs.SENTENCES.get(word, "").startswith("`tpudeploy destroy")
        assert is_deletion or not any(f"`{name}`" in answer for name in verbs.DESTRUCTIVE), (word, answer)


def test_no_verb_is_a_command_of_ours() -> None:
    assert not verbs.SENTENCES.keys() & COMMANDS.keys()
    for name, sentences in verbs.OF_COMMAND.items():
        assert not sentences.keys() & verbs_of(command_of(name)).keys(), name


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("state delete gemma", "`tpudeploy state rm ADDR` only forgets a slice, which stays and is billed"),
        ("state remove gemma", "`tpudeploy destroy PROFILE` deletes it"),
        ("state ls", "tpudeploy state list"),
        ("state ps", "tpudeploy state list"),
        ("state get gemma", "tpudeploy state show ADDR"),
        ("state move a b", "tpudeploy state mv SRC DST"),
        ("state backup", "tpudeploy state pull NAME"),
        ("state restore gemma", "tpudeploy state history NAME"),
        ("state unlock", "tpudeploy force-unlock ID"),
        ("workspace select dev", "Each deployment has a state of its own"),
        ("workspace delete dev", "Each deployment has a state of its own"),
        ("cluster create c", "tpudeploy apply PROFILE"),
        ("compute tpus list", "tpudeploy status"),
        ("secrets list", "private-model.md"),
        ("taint gemma", "apply -replace"),
        ("logs tail p.yaml", "tpudeploy logs PROFILE -follow"),
        ("--chdir . logs tail p.yaml", "tpudeploy logs PROFILE -follow"),
        ("bench run p.yaml", "tpudeploy bench PROFILE"),
        ("bench delete abc", "no command deletes them"),
        ("ci deploy", "tpudeploy ci apply"),
        ("ci init", "pull-requests.md"),
        ("emulator stop", "It runs until Ctrl-C."),
        ("emulator status", "with them set, `tpudeploy status`"),
        ("router start p", "tpudeploy router NAME"),
        ("mcp serve", "tpudeploy mcp"),
        ("gc list", "lists what it found, then asks"),
    ],
)
def test_a_verb_within_a_command_is_answered_with_the_one_that_does_it(
    words: str, answer: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refused = command(tmp_path, capsys, *words.split())
    assert refused.code == 1
    assert answer in refused.err
    assert "Did you mean" not in refused.err


@pytest.mark.parametrize(
    ("name", "id_"),
    [
        ("llama3.1:8b", "meta-llama/Llama-3.1-8B-Instruct"),
        ("llama3.3", "meta-llama/Llama-3.3-70B-Instruct"),
        ("qwen2.5:7b-instruct-q4_K_M", "Qwen/Qwen2.5-7B-Instruct"),
        ("qwen3:30b", "Qwen/Qwen3-30B-A3B"),
        ("gemma3:27b", "google/gemma-3-27b-it"),
        ("gemma4:e2b", "google/gemma-4-E2B-it"),
        ("mistral:latest", "mistralai/Mistral-7B-Instruct-v0.3"),
        ("ollama/deepseek-r1:70b", "deepseek-ai/DeepSeek-R1-Distill-Llama-70B"),
        ("nobodys-model:7b", "ORGANIZATION/NAME as on the model's page"),
    ],
)
def test_a_model_in_ollamas_spelling_is_answered_with_its_id_on_the_hub(
    name: str, id_: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "p.yaml").write_text(PROFILE.replace("google/gemma-4-E2B-it", f'"{name}"'), encoding="utf-8")
    words = " ".join(command(tmp_path, capsys, "validate", "p.yaml").all.split())
    assert f"it is Ollama's name of a model: write {id_}" in words


def test_a_file_that_is_called_like_a_verb_is_a_profile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "list").write_text(PROFILE, encoding="utf-8")
    assert "There is no profile" not in command(tmp_path, capsys, "gc", "list").all


@pytest.mark.parametrize(
    ("words", "never"),
    [
        ("state ups x", "`push`"),
        ("state pull-all", "`push`"),
        ("state rn x", "`rm`"),
        ("force-unlock --format json", "--force"),
        ("state rm --format json a", "--force"),
        ("apply --refuse p.yaml", "--replace"),
        ("gc --for p.yaml", "--foreign"),
        ("apply --auto p.yaml", "--auto-approve"),
        ("mcp --allow", "--allow-writes"),
    ],
)
def test_a_verb_or_an_option_that_deletes_or_asks_nothing_is_no_guess(
    words: str, never: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refused = command(tmp_path, capsys, *words.split())
    assert refused.code == 1
    assert f"Did you mean `{never.strip('`')}" not in refused.err


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("state pussh x", "push"),
        ("force-unlock --forcee x", "--force"),
        ("apply --auto-aprove p.yaml", "--auto-approve"),
        ("apply -y p.yaml", "auto-approve"),
        ("gc --foriegn p.yaml", "--foreign"),
    ],
)
def test_what_deletes_or_asks_nothing_is_named_where_its_own_name_is_misspelled(
    words: str, meant: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert f"{meant}`?" in command(tmp_path, capsys, *words.split()).err


@pytest.mark.parametrize(
    ("word", "code"), [("OOM", "no-room-for-program"), ("429", "rate-limit"), ("vpc-sc", "perimeter")]
)
def test_explain_knows_words_of_the_trade(
    word: str, code: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    explained = command(tmp_path, capsys, "explain", word)
    assert explained.code == 0, explained.all
    assert explained.out.startswith(f"{code}  ")


def test_every_word_of_the_trade_names_entries_that_exist() -> None:
    pages = {code for texts in groups().values() for code in texts}
    assert {code for entries in ENTRIES.values() for code in entries} <= pages


@pytest.mark.parametrize(
    ("key", "answer"),
    [
        ("image", "serving.image"),
        ("region", "placement.zones"),
        ("zone", "placement.zones"),
        ("spot", "placement.provisioning: [spot]"),
        ("autoscaling", "replicas"),
        ("env", "serving.env"),
        ("ports", "serving.port"),
        ("resources", "tpu.type"),
        ("accelerators", "tpu.type"),
        ("gpus", "tpu.type"),
        ("setup", "serving.setup"),
        ("run", "serving.args"),
    ],
)
def test_a_key_of_another_tools_file_is_answered_with_the_key_that_does_it(
    key: str, answer: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    profile = "version: 1\nname: gemma\nmodel: {id: google/gemma-4-E2B-it}\ntpu: {type: v6e-1}\n"
    (tmp_path / "p.yaml").write_text(f"{profile}{key}: 1\n", encoding="utf-8")
    refused = command(tmp_path, capsys, "validate", "p.yaml")
    assert refused.code == 1
    assert answer in refused.all


def test_every_key_that_is_named_is_one_of_the_format() -> None:
    known = {".".join(map(str, key)) for key in all_keys()}
    sections = {key.partition(".")[0] for key in known}
    for foreign in set(HINTS.values()):
        assert foreign.key is None or foreign.key in known | sections, foreign
        hint = str(foreign)
        for key in re.findall(r"\b(?:placement|serving|model|tpu|health|secrets)\.[a-z_]+", hint):
            assert key in known, hint
