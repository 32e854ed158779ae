"""HTML, written piece by piece: everything that is not a tag of ours is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from tpudeploy.views import words
from tpudeploy.views.report.style import STYLE


def text(of: object) -> str:
    """What somebody wrote or an engine said, as text and nothing else."""
    return escape(words.plain(str(of)))


def tag(name: str, *inside: str, **attributes: object) -> str:
    """`inside` is HTML already. `class_` is the attribute `class`; underscores are dashes."""
    written = "".join(f' {key.rstrip("_").replace("_", "-")}="{escape(str(v))}"' for key, v in attributes.items())
    return f"<{name}{written}>{''.join(inside)}</{name}>"


def document(title: str, *inside: str) -> str:
    """The whole file around a page's parts."""
    head = tag(
        "head",
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        tag("title", text(title)),
        f"<style>{STYLE}</style>",
    )
    return f'<!DOCTYPE html>\n<html lang="en">{head}{tag("body", tag("main", *inside))}</html>\n'


def section(title: str, *inside: str) -> str:
    """A part of the page; nothing where there is nothing in it."""
    return tag("section", tag("h2", text(title)), *inside) if any(inside) else ""


def note(of: object) -> str:
    return tag("p", text(of), class_="note")


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]], *, class_: str = "") -> str:
    """Cells are HTML already; wider than the page, it scrolls by itself."""
    top = tag("thead", tag("tr", *(tag("th", cell, scope="col") for cell in head)))
    body = tag("tbody", *(tag("tr", tag("th", row[0], scope="row"), *(tag("td", c) for c in row[1:])) for row in rows))
    return tag("div", tag("table", top, body, class_=class_), class_="wide", tabindex="0")
