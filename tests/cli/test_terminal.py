"""What reaches a terminal: our own colour and cursor movements, and no command that a text of others contains."""

from __future__ import annotations

import io
import os
import pty
import re
from collections.abc import Callable

import pytest
from command_line import Open
from pseudo_terminal import END_OF_INPUT, person

from tpudeploy.cli.terminal import Terminal

# A title, colour, an erased screen, a link, our own way to write colour, C1, a carriage return, what reorders text.
EVIL = "a\x1b]0;title\x07\x1b[31mred\x1b[0m\x1b[2J\x1b]8;;http://evil/\x07\x1b[1;31m\x9b31m\x85\u202e\r\x00z"
_OURS = re.compile(r"\x1b\[(?:1|2|31|32|33|0|K|3A)m?")
_COMMANDS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]")

Writer = Callable[[Terminal, str], object]
WRITERS: dict[str, Writer] = {
    "data": Terminal.data,
    "verbatim": Terminal.verbatim,
    "foreign": Terminal.foreign,
    "explain": Terminal.explain,
    "talk": Terminal.talk,
    "draw": Terminal.draw,
    "ask": Terminal.ask,
}


def output_of(writer: Writer, text: Callable[[Terminal], str]) -> str:
    """Return what a terminal with colour gets."""
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w", encoding="utf-8") as stream:
        terminal = Terminal(stdin=io.StringIO("yes\n"), stdout=stream, stderr=stream, colour=True, is_drawable=True)
        writer(terminal, text(terminal))
        stream.write("\nEND")
        stream.flush()
        output = b""
        while not output.endswith(b"END"):
            output += os.read(ours, 1 << 16)
    os.close(ours)
    return output.decode().removesuffix("END").replace("\r\n", "\n")


@pytest.mark.parametrize("name", WRITERS)
def test_no_command_in_a_text_reaches_the_terminal(name: str) -> None:
    output = output_of(
        WRITERS[name], lambda terminal: terminal.paint.bold(f"{EVIL} {terminal.paint.red('ours')} {EVIL}")
    )
    assert not _COMMANDS.search(_OURS.sub("", output.removeprefix("\r")))
    assert output.count("\x1b[31m") == output.count("\x1b[31mours\x1b[0m") == (name != "foreign"), (
        "colour is ours alone"
    )
    assert output.count("red") == 2


def test_the_cursor_moves_where_we_draw() -> None:
    assert "\x1b[3A\x1b[K" in output_of(Terminal.draw, lambda terminal: terminal.escape("3A") + terminal.escape("K"))


def test_every_method_that_writes_text_is_in_the_table() -> None:
    methods = {name for name, each in vars(Terminal).items() if callable(each) and not name.startswith("_")}
    assert methods - {"document", "escape"} == set(WRITERS)


def test_what_a_conversation_repeats_is_shown_without_its_commands(cli: Open) -> None:
    at = cli(nodes="simulated")
    assert at.run("apply", "-auto-approve", at.write()).code == 0
    with person("chat", "-max-tokens", "12", folder=at.folder, environment={}) as user:
        user.waits_for("/help lists commands").types("/system before\x1b[2J\x1b[31mafter\n")
        user.waits_for("System prompt: before\ufffd[2J\ufffd[31mafter").types(END_OF_INPUT)
        assert user.stays_to_the_end() == 0
    assert "\x1b[2J" not in user.read


def test_a_line_of_a_colleagues_ledger_is_shown_without_its_commands(cli: Open) -> None:
    at = cli(nodes="simulated")
    assert at.run("apply", "-auto-approve", at.write()).code == 0
    assert at.run("destroy", "-auto-approve", "gemma.yaml").code == 0
    (ledger,) = (at.folder / ".tpudeploy").glob("ledger*.jsonl")
    ledger.write_text(re.sub(r'"model": ?"[^"]*"', r'"model":"\\u001b[31mPWN\\u001b[2J"', ledger.read_text()))
    output = at.run("cost", "-group-by", "model")
    assert "\ufffd[31mPWN" in output.out
    assert "\x1b" not in output.all
