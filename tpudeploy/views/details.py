"""One engine in full: its settings and the memory of a chip, planned beside measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tpudeploy.domain.details import Details, Share
from tpudeploy.views import words
from tpudeploy.views.paint import Paint

_GIB = 1024**3
_MIB = 1024**2
_CLOSE = 0.005  # the log has two decimals of GiB


def details(of: Details, paint: Paint) -> str:
    lines = [f"{paint.bold(of.address)} = {of.slice_name}"]
    facts = [(f.name, f.planned or "-", words.plain(f.told) or "-", "") for f in of.facts]
    lines += _table("", facts, paint)
    if of.process_bytes is not None:
        lines += ["", f"  The API server holds {of.process_bytes / _MIB:,.0f} MiB of the machine's memory."]
    if of.memory:
        lines += ["", *_table("memory of a chip", [_share(share) for share in of.memory], paint)]
    lines += (paint.yellow(f"  {source} told nothing: {words.plain(why)}") for source, why in of.silent.items())
    return "\n".join(lines)


def _share(of: Share) -> tuple[str, str, str, str]:
    if not of.planned or of.measured is None:
        return (of.name, _gib(of.planned), _gib(of.measured), "")
    off = of.measured / of.planned - 1
    return (of.name, _gib(of.planned), _gib(of.measured), "as planned" if abs(off) < _CLOSE else f"{off:+.1%}")


def _table(head: str, rows: Sequence[tuple[str, str, str, str]], paint: Paint) -> Iterator[str]:
    whole = [(head, "planned", "measured", ""), *rows]
    widths = [max(map(words.width, column)) for column in zip(*whole, strict=True)]
    for row in whole:
        line = "  ".join(cell + " " * (width - words.width(cell)) for cell, width in zip(row, widths, strict=True))
        yield paint.dim(f"  {line}".rstrip()) if row is whole[0] else f"  {line}".rstrip()


def _gib(taken: int | None) -> str:
    return "-" if taken is None else f"{taken / _GIB:.2f} GiB"
