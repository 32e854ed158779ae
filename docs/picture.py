"""Write docs/static/apply.svg: the live table of a real `tpudeploy apply` on the emulator, while its server compiles.

    make picture

The command runs at a terminal of its own, faster than real time; the picture is the screen at the moment that LINE
matches.
"""

from __future__ import annotations

import codecs
import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory

import pyte
from pyte.screens import Char
from rich.console import Console
from rich.style import Style
from rich.terminal_theme import MONOKAI
from rich.text import Text

COLUMNS, ROWS = 104, 40
PICTURE = Path(__file__).parent / "static" / "apply.svg"
# The moment: the server compiles, and has compiled a part.
LINE = re.compile(r"[Cc]ompiling (graph )?[4-9]\d")
SCENARIO = """\
jitter: 0.1
timings: {queued: 40, provisioning: 60, boot: 420, deleting: 450}
trouble: [{fault: stockout, zone: us-east5-b}]
"""
APPLY = """\
tpudeploy init --from gemma4-e2b-v6e1 gemma.yaml >/dev/null
zones='placement.zones=[us-east5-a, us-east5-b, europe-west4-a]'
tpudeploy plan gemma.yaml --set "$zones" --out gemma.plan >/dev/null 2>&1
clear
tpudeploy apply gemma.plan
"""
_FONT = re.compile(r"@font-face \{\{.*?\}\}", re.DOTALL)


def main() -> None:
    """Run the command, wait for the moment, and write the picture."""
    screen = pyte.Screen(COLUMNS, ROWS)
    stream = pyte.Stream(screen)
    for text in terminal(
        ["tpudeploy", "emulator", "run", "-speed", "30", "-scenario", "cloud.yaml", "--", "bash", "-euc", APPLY]
    ):
        stream.feed(text)
        if any(LINE.search(line) for line in screen.display):
            break
    else:
        sys.exit(f"No line of the screen ever matched {LINE.pattern}.")
    rows = [row for row in range(ROWS) if screen.display[row].strip()]
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    for row in range(rows[0], rows[-1] + 1):
        console.print(styled(screen, row), no_wrap=True, overflow="crop")
    console.print()  # else the lower edge cuts the last row
    PICTURE.write_text(svg(console), encoding="utf-8")
    print(f"Wrote {PICTURE}.")


def terminal(command: list[str]) -> Iterator[str]:
    """Yield what a command prints at a terminal; end the command when the caller has seen enough."""
    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    decoder = codecs.getincrementaldecoder("utf-8")()
    environment = os.environ | {"TERM": "xterm-256color", "COLUMNS": str(COLUMNS)}
    with TemporaryDirectory() as folder:
        Path(folder, "cloud.yaml").write_text(SCENARIO, encoding="utf-8")
        process = subprocess.Popen(
            command, stdin=child, stdout=child, stderr=child, cwd=folder, env=environment, start_new_session=True
        )
        os.close(child)
        try:
            while True:
                try:
                    piece = os.read(parent, 65536)
                except OSError:  # how Linux reports that the other end is closed
                    return
                yield decoder.decode(piece)
        finally:
            process.terminate()
            process.wait(60)
            os.close(parent)


def styled(screen: pyte.Screen, row: int) -> Text:
    """Return one row of the screen with its colors."""
    cells = [screen.buffer[row][column] for column in range(COLUMNS)]
    line = Text()
    for style, run in groupby(cells, key=style_of):
        line.append("".join(cell.data for cell in run), style)
    line.rstrip()
    return line


def style_of(cell: Char) -> Style:
    """Return the style of one cell of the screen, in the names of rich."""
    color = None if cell.fg == "default" else cell.fg.replace("brown", "yellow")
    return Style(color=color, bold=cell.bold, italic=cell.italics, reverse=cell.reverse)


def svg(console: Console) -> str:
    """Return the picture. It loads no font: pages load nothing from elsewhere."""
    from rich._export_format import CONSOLE_SVG_FORMAT

    return console.export_svg(
        title="tpudeploy apply gemma.yaml", theme=MONOKAI, code_format=_FONT.sub("", CONSOLE_SVG_FORMAT)
    )


if __name__ == "__main__":
    main()
