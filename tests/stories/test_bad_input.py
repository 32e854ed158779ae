"""What is wrong with what a person wrote: shown where it stands, all of it at once, and never as a traceback."""

from __future__ import annotations

import tempfile
from itertools import pairwise
from pathlib import Path

import pytest
from command_line import PROFILE, Open


def _serving(line: str) -> str:
    return PROFILE.replace("max_model_len: 16384", line)


BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{later}: &{later} [{', '.join([f'*{earlier}'] * 9)}]\n" for earlier, later in pairwise("abcdefgh")
)

# One of each class of bad profile: what is written, the code, the place, words of the message or of the hint.
BAD: dict[str, tuple[str | bytes, str, str, str]] = {
    "unknown key": (PROFILE.replace("max_model_len", "max_modle_len"), "TPU1201", ":9:3", '"max_model_len"?'),
    "duplicate key": (PROFILE + "name: other\n", "TPU1021", ":16:1", "keep one"),
    "wrong type": (PROFILE.replace("16384", "many"), "TPU1203", ":9:18", "Expected a whole number"),
    "tab": (PROFILE.replace("  max_model_len", "\tmax_model_len"), "TPU1018", ":9:1", "A tab in the indentation"),
    "empty": ("", "TPU1014", ":1:1", "The file is empty"),
    "several documents": (PROFILE + "---\n" + PROFILE, "TPU1015", ":16:1", "one file holds one profile"),
    "a list": ("- version: 1\n", "TPU1016", ":1:1", "not a mapping"),
    "binary": (b"\x00\x01\x02", "TPU1013", ":1:1", "Control character U+0000"),
    "not UTF-8": (b"name: \xff\xfe\n", "TPU1012", ":1:7", "save the file as UTF-8"),
    "too large": ("# x\n" * 3_000_000, "TPU1011", ":1:1", "is this the right file?"),
    "alias bomb": (BOMB, "TPU1020", ":5:", "More than 20000 values"),
    "broken YAML": ("name: [1, 2\n", "TPU1017", ":1:11", "a bracket is not closed"),
    "infinity": (_serving("hbm_utilization: .inf"), "TPU1025", ":9:20", "not a finite number"),
    "out of range": (_serving("hbm_utilization: 1.5"), "TPU1205", ":9:20", "Must be at most 1"),
    "unset variable": (PROFILE.replace("name: gemma", "name: ${env:NOT_SET}"), "TPU1110", ":2:7", "NOT_SET is not set"),
    "impossible TP": (_serving("tensor_parallel_size: 3"), "TPU1302", ":9:25", "which has 1 chip"),
    "a token": (PROFILE.replace("hf-token", "hf_" + "a" * 34), "TPU1030", ":11:13", "looks like a Hugging Face token"),
    "no end of the run": (PROFILE.replace("[spot]", "[flex-start]"), "TPU1320", ":14:18", "needs max_run_duration"),
    "too long a run": (
        PROFILE.replace("[spot]", "[flex-start]\n  max_run_duration: 8d"),
        "TPU1321",
        ":15:21",
        "8d is more than 7d",
    ),
    "unknown slice": (PROFILE.replace("v6e-1", "v6e-7"), "TPU1301", ":6:9", 'did you mean "v6e-8"?'),
    "flag twice": (
        _serving("max_model_len: 1\n  args: {max_model_len: 1}"),
        "TPU1313",
        ":10:10",
        "serving.max_model_len already sets --max-model-len",
    ),
    "unknown flag": (_serving("args: {enable_prefix_cachin: true}"), "TPU1310", ":9:10", "`enable_prefix_caching`?"),
    "not supported yet": (
        PROFILE.replace("type: v6e-1", "type: v2-8"),
        "TPU1207",
        ":6:9",
        "not supported: tpudeploy does not know",
    ),
    "extends itself": ("extends: gemma.yaml\n" + PROFILE, "TPU1102", ":1:10", "gemma.yaml"),
}


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("command", ["validate", "plan", "apply"])
def test_a_bad_profile_is_shown_with_its_place_and_nothing_else_happens(cli: Open, kind: str, command: str) -> None:
    text, code, place, words = BAD[kind]
    at = cli()
    (at.folder / "gemma.yaml").write_bytes(text if isinstance(text, bytes) else text.encode())
    result = at.run(command, "gemma.yaml")
    assert result.code == 1
    assert code in result.err
    assert f"gemma.yaml{place}" in result.err
    assert words in result.err
    assert "Traceback" not in result.all
    assert len(result.err) < 4000
    assert not at.emulator.requests


def test_every_problem_of_every_file_is_told_at_once(cli: Open) -> None:
    at = cli()
    one = at.write(PROFILE.replace("16384", "many").replace("v6e-1", "v6e-7"))
    two = at.write(PROFILE.replace("name: gemma", "nam: gemma"), "two.yaml")
    result = at.run("plan", one, two)
    assert result.code == 1
    for place in ("gemma.yaml:6:9", "gemma.yaml:9:18", "two.yaml:2:1"):
        assert place in result.err


def test_a_bad_value_names_the_overlay_or_the_flag_it_came_from(cli: Open) -> None:
    at = cli()
    base = at.write()
    overlay = at.write("serving:\n  max_model_len: lots\n", "canary.yaml")
    laid = at.run("plan", base, "-f", str(at.folder / overlay))
    assert laid.code == 1
    assert "canary.yaml:2:18" in laid.err
    assert "   2 |   max_model_len: lots\n     |                  ^^^^" in laid.err
    flagged = at.run("plan", base, "--set", "tpu.typ=v6e-8")
    assert flagged.code == 1
    assert "on --set:1:5" in flagged.err
    assert 'did you mean "type"?' in flagged.err


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (["aply"], "There is no command `aply`. Did you mean `apply`?"),
        (["frobnicate"], "There is no command `frobnicate`."),
        (["plan"], "The following arguments are required: PROFILE."),
        (["plan", "gemma.yaml", "-frobnicate"], "`tpudeploy plan` has no option `--frobnicate`."),
        (["plan", "gemma.yaml", "-detailed-exitcod"], "Did you mean `--detailed-exitcode`?"),
        (["apply", "gemma.yaml", "-timeout", "soon"], "`soon` is not a duration; write 90s, 15m, 2h or 7d."),
        (["apply", "gemma.yaml", "-wait", "forever"], "`forever` is not one of accepted, granted, serving."),
        (["apply", "gemma.yaml", "-wait", "servng"], "Did you mean `serving`?"),
        (["render", "gemma.yaml", "dokcer"], "Did you mean `docker`?"),
        (["apply", "gemma.yaml", "--yes"], "Did you mean `--auto-approve`?"),
        (["apply", "gemma.yaml", "-y"], "Did you mean `-auto-approve`?"),
        (["force-unlock", "1", "--yes"], "Did you mean `--force`?"),
        (["apply", "gemma.yaml", "-timout=2h"], "Did you mean `--timeout=2h`?"),
        (["render", "gemma.yaml", "nonsense"], "`nonsense` is not one of startup-script, docker,"),
        (["plan", "gemma.yml"], 'gemma.yaml"?'),
        (["plan", "nowhere/gemma.yaml"], "there is no folder"),
        (["plan", "gemma.yaml", "-f", "nope.yaml"], "nope.yaml` does not exist"),
        (["state", "mvv", "a", "b"], "`tpudeploy state` has no verb `mvv`. Did you mean `mv`?"),
        (["ci", "aply"], "`tpudeploy ci` has no verb `aply`. Did you mean `apply`?"),
        (["state", "rm", "gemma", "-auto-aprove"], "Did you mean `--auto-approve`?"),
        (["zones", "-type", "v6e-3"], "Did you mean `v6e-4`?"),
        (["explain", "stokout"], "Did you mean `stockout`?"),
        (["init", "-from", "gemma4-e2b-v6e"], "Did you mean `gemma4-e2b-v6e"),
        (["emulator", "run"], "needs a command"),
        (["query", "gemma.yaml", "Hello"], "gemma has no endpoint yet."),
        (["help", "aply"], "There is no command `aply`. Did you mean `apply`?"),
        (["output", "gemma"], "gemma has no endpoint."),
    ],
    ids=" ".join,
)
def test_a_command_line_that_cannot_be_understood_says_what_was_meant(cli: Open, words: list[str], answer: str) -> None:
    at = cli()
    at.write()
    result = at.run(*words)
    assert result.code == 1
    assert result.err.startswith("Error: ")
    assert answer in result.err
    assert "Traceback" not in result.all
    assert not at.emulator.requests


def test_a_name_that_is_no_text_is_answered_as_any_other(cli: Open) -> None:
    at = cli()
    result = at.run("plan", "\udcff\x1b[31m.yaml")
    assert result.code == 1
    assert "does not exist" in result.err
    assert "\x1b" not in result.err
    assert "Traceback" not in result.all


def test_options_may_stand_before_the_command_and_be_written_with_one_dash_or_two(cli: Open) -> None:
    at = cli()
    at.write()
    for words in (
        ["plan", "-detailed-exitcode", "gemma.yaml"],
        ["--no-color", "plan", "gemma.yaml", "--detailed-exitcode"],
    ):
        assert at.run(*words).code == 2


def test_a_bug_of_ours_says_so_with_a_report_to_paste(cli: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> int:
        raise ZeroDivisionError("provoked")

    at = cli()
    monkeypatch.setattr("tpudeploy.cli.operation_command.OperationCommand.run", broken)
    monkeypatch.setattr(tempfile, "tempdir", str(at.folder))
    result = at.run("version")
    assert result.code == 70
    assert "this is a bug in tpudeploy: ZeroDivisionError: provoked" in result.err
    assert "Traceback" not in result.all
    report = Path(result.err.split()[-1])
    assert report.parent == at.folder
    text = report.read_text(encoding="utf-8")
    assert "ZeroDivisionError: provoked" in text
    assert text.startswith("tpudeploy ")


def test_a_link_to_itself_in_a_folder_stops_no_other_profile(cli: Open) -> None:
    at = cli()
    at.write()
    (at.folder / "loop.yaml").symlink_to("loop.yaml")
    result = at.run("validate", ".")
    assert result.code == 1
    assert "gemma.yaml: valid" in result.out
    assert "loop.yaml` cannot be read: Too many levels of symbolic links" in result.err


def test_a_link_to_nothing_says_where_it_points(cli: Open) -> None:
    at = cli()
    (at.folder / "gemma.yaml").symlink_to("prod/gemma.yaml")
    result = at.run("validate", "gemma.yaml")
    assert result.code == 1
    assert "it is a link to `prod/gemma.yaml`, which does not exist" in result.err


def test_a_name_that_reorders_the_line_is_shown_without_that_and_escaped_in_json(cli: Open) -> None:
    at = cli()
    name = "gemma\u202elmay.yaml"
    result = at.run("validate", name)
    assert result.code == 1
    assert "\u202e" not in result.all
    assert "gemma\ufffdlmay.yaml" in result.all
    document = at.run("validate", name, "-json").out
    assert "\u202e" not in document
    assert "gemma\\u202elmay.yaml" in document
