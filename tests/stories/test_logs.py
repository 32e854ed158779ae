"""A boot's log, read for a person: the cause and what to do, or the seconds of each phase."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from command_line import Open

import tpudeploy as td
from tpudeploy.boot_log.read import new_lines

LOGS = Path(__file__).parents[1]
FAILED = LOGS / "boot_log" / "data" / "boot_failed_qwix_int8_v5e1.log"
GOOD = LOGS / "sizing" / "data" / "boot_gemma4_e2b_v6e1.log"


def test_a_failed_boot_is_explained_with_the_line_and_what_to_do(cli: Open) -> None:
    at = cli()
    result = at.run("logs", "--file", str(FAILED), "--explain")
    assert result.code == 0
    assert result.out.startswith("Quantizing the weights in place needs more HBM than the chip has (hbm-temporaries)\n")
    assert "line 31 EngineCore: jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED" in result.words
    assert "What to do: " in result.out
    with td.Workspace.open(at.folder) as workspace:
        readings = workspace.logs(texts={str(FAILED): FAILED.read_text(encoding="utf-8")})
    assert f"{readings}\n" == result.out


def test_a_good_boot_is_told_by_its_phases(cli: Open) -> None:
    result = cli().run("logs", "--file", str(GOOD), "--explain")
    rows = {line.rsplit("  ", 1)[0].strip(): line for line in result.out.splitlines()}
    assert result.out.startswith("10m 52s until it serves\n")
    assert any(row.startswith("199 graphs compiled") and "7m 27s" in row for row in rows)


def test_with_a_profile_the_remedy_is_for_it(cli: Open) -> None:
    at = cli()
    # Constructed: the words are those of vLLM's v1/core/kv_cache_utils.py; no whole log of such a death is at hand.
    (at.folder / "boot.log").write_text(
        "To serve at least one request with the model's max seq len (131072), (4.50 GiB KV cache is needed, which is "
        "larger than the available KV cache memory (3.20 GiB).\n",
        encoding="utf-8",
    )
    without = at.run("logs", "--file", "boot.log", "--explain")
    assert "Lower serving.max_model_len" in without.out
    profile = at.write()
    settings = ("--set", "serving.max_model_len=131072", "--set", "serving.hbm_utilization=0.32")
    with_it = at.run("logs", "--file", "boot.log", "--explain", profile, *settings)
    validated = at.run("validate", profile, *settings)
    longest = re.search(r"Or max_model_len: (\d+) is enough", validated.words)
    assert longest is not None
    assert f"Set serving.max_model_len to {longest[1]} or less" in with_it.words


def test_advice_on_utilization_agrees_with_size(cli: Open) -> None:
    at = cli()
    # Constructed, as above.
    (at.folder / "boot.log").write_text("ValueError: No available memory for the cache blocks.\n", encoding="utf-8")
    profile = at.write()
    low = "serving.hbm_utilization=0.2"
    result = at.run("logs", "--file", "boot.log", "--explain", profile, "--set", low).words
    advised = re.search(r"Raise serving\.hbm_utilization to (0\.\d\d) \(now 0\.20\)", result)
    assert advised is not None, result
    for percent, fits in ((round(100 * float(advised[1])), True), (round(100 * float(advised[1])) - 1, False)):
        sized = at.run("size", profile, "--set", f"serving.hbm_utilization={percent / 100}", "--json")
        assert f'"fits": {str(fits).lower()}' in sized.out


def test_programs_get_one_document(cli: Open) -> None:
    tree = json.loads(cli().run("logs", "--file", str(FAILED), "--json").out)
    (log,) = tree["logs"]
    assert tree["format"] == "tpudeploy.logs/1"
    assert log["cause"]["signature"] == "hbm-temporaries"
    assert log["serving"] is False


def test_without_explain_the_log_is_shown(cli: Open) -> None:
    assert cli().run("logs", "--file", str(FAILED)).out.splitlines() == FAILED.read_text().splitlines()


@pytest.mark.parametrize("arguments", [("--file", "none.log"), ("--file", "."), ()])
def test_no_log_is_said_so(cli: Open, arguments: tuple[str, ...]) -> None:
    result = cli().run("logs", "--explain", *arguments)
    assert result.code == 1
    assert result.out == ""
    assert result.err.startswith("Error: ")


def test_a_log_that_is_none_has_nothing_to_explain(cli: Open) -> None:
    at = cli()
    (at.folder / "x.log").write_bytes(b"\x00\xff\x1b[2J\n" * 50)
    result = at.run("logs", "--file", "x.log", "--explain")
    assert result.out == "This log holds no phase of a boot and no known cause of a failure.\n"


def test_explain_takes_what_an_engine_said(cli: Open) -> None:
    # Constructed: Python's words for EADDRINUSE, which a person pastes without the log around them.
    result = cli().run("explain", "OSError: [Errno 98] Address already in use")
    assert result.out.startswith("port-taken")


# Constructed, as OUT_OF_MEMORY of test_boot.py.
CRASH = (
    "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used 33.10G of 31.24G hbm. "
    "Exceeded hbm capacity by 1.86G."
)


def test_a_machines_log_is_fetched_and_explained(cli: Open) -> None:
    at = cli(nodes="real", boot={"crash": CRASH})
    profile = at.write()
    assert at.run("apply", "-auto-approve", profile).code == 1
    log = at.run("logs", profile)
    assert log.code == 0, log.all
    assert "image: " in log.out
    assert CRASH in log.out
    explained = at.run("logs", "-explain", profile)
    assert explained.out.startswith("A program's temporaries do not fit into HBM while it is compiled")
    assert "lower serving.hbm_utilization to 0.85 (now 0.92)" in explained.out


def test_a_machine_that_serves_has_the_seconds_of_its_boot(cli: Open) -> None:
    at = cli(nodes="real", boot={"boot_seconds": 100})
    profile = at.write()
    assert at.run("apply", "-auto-approve", profile).code == 0
    result = at.run("logs", "-explain", profile)
    assert "until it serves" in result.out
    assert "199 graphs compiled" in result.out
    assert "weights" in result.out


@pytest.mark.long
def test_following_ends_when_the_server_does_or_serves(cli: Open) -> None:
    at = cli(nodes="real", boot={"boot_seconds": 600})
    profile = at.write()
    assert at.run("apply", "-auto-approve", "-wait", "granted", profile).code == 0
    followed = at.run("logs", "-follow", profile)
    assert followed.code == 0
    lines = followed.out.splitlines()
    assert lines == at.run("logs", profile).out.splitlines()
    assert any("booted: " in line for line in lines)
    assert "serving: " in lines[-1]


def test_what_was_never_granted_has_no_log(cli: Open) -> None:
    result = cli().run("logs", cli().write())
    assert result.code == 1
    assert "gemma has no machine with a log." in result.err


def test_a_log_that_may_not_be_read_is_said_with_googles_words(cli: Open) -> None:
    at = cli(trouble=[{"fault": "iam-denied", "method": "logging.entries.list"}])
    profile = at.write()
    assert at.run("apply", "-auto-approve", profile).code == 0
    result = at.run("logs", profile)
    assert result.code == 1
    assert "Could not read the log of gemma-" in result.err


def test_a_zone_that_is_not_for_the_project_is_named_by_whoever_names_it(cli: Open) -> None:
    """Cloud Logging knows no zones: it does not answer that one, without a name, is not found."""
    at = cli(trouble=[])
    profile = at.write()
    assert at.run("apply", "-auto-approve", profile).code == 0
    at.emulator.script({"fault": "location-denied"})
    assert "Location  is" not in at.run("logs", profile).all
    assert "Location us-east5-a is not found" in at.run("status", profile).all


def test_a_log_commands_no_terminal_and_is_unchanged_in_a_file(cli: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    at = cli()
    log = "\x1b[32mINFO\x1b[0m ready \x1b]0;title\x07\x1b[2J \u202eevil\u0085"
    (at.folder / "boot.log").write_text(f"{log}\n", "utf-8")
    assert log in at.run("logs", "-file", "boot.log").out
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    shown = at.run("logs", "-file", "boot.log").out
    assert "INFO ready" in shown
    assert shown.replace("\n", "").isprintable()


def test_following_with_f_goes_on_after_the_start_and_prints_each_line_once(cli: Open) -> None:
    at = cli(nodes="real", boot={"boot_seconds": 600})
    profile = at.write()
    assert at.run("apply", "-auto-approve", "-wait", "granted", profile).code == 0
    ended = at.run("logs", profile, "-follow")
    at.capture.readouterr()
    at.killed(60, "logs", profile, "-f")
    output = at.capture.readouterr().out
    assert output.splitlines() == ended.out.splitlines()


@pytest.mark.parametrize(
    ("before", "lines", "fresh"),
    [
        ((), ("a", "b"), ("a", "b")),
        (("a",), ("a", "b"), ("b",)),
        (("a", "b", "c"), ("b", "c", "d"), ("b", "c", "d")),
        (tuple("abcdefg"), tuple("cdefghi"), ("h", "i")),
        (tuple("abcdefg"), tuple("xyz"), ("x", "y", "z")),
    ],
)
def test_a_log_that_keeps_its_newest_lines_alone_is_followed_from_its_last_line(
    before: tuple[str, ...], lines: tuple[str, ...], fresh: tuple[str, ...]
) -> None:
    assert new_lines(before, lines) == fresh
