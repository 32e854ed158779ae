"""Format one engine's settings and the memory of a chip, with planned beside measured values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tpudeploy.domain.verify import Details, Share
from tpudeploy.text import words
from tpudeploy.text.paint import Paint
from tpudeploy.text.words import aligned

_GIB = 1024**3
_MIB = 1024**2
_CLOSE = 0.005  # the log has two decimals of GiB


def details(details: Details, paint: Paint) -> str:
    lines = [f"{paint.bold(details.address)} = {details.slice_name}"]
    facts = [(f.name, f.planned or "-", words.plain(f.told) or "-", "") for f in details.facts]
    lines += _table("", facts, paint)
    if details.process_bytes is not None:
        lines += ["", f"  The API server holds {details.process_bytes / _MIB:,.0f} MiB of the machine's memory."]
    if details.memory:
        lines += ["", *_table("memory of a chip", [_share(share) for share in details.memory], paint)]
    lines += (
        paint.yellow(f"  {source} reported nothing: {words.plain(why)}") for source, why in details.silent.items()
    )
    return "\n".join(lines)


def _share(share: Share) -> tuple[str, str, str, str]:
    if not share.planned or share.measured is None:
        return (share.name, _gib(share.planned), _gib(share.measured), "")
    deviation = share.measured / share.planned - 1
    return (
        share.name,
        _gib(share.planned),
        _gib(share.measured),
        "as planned" if abs(deviation) < _CLOSE else f"{deviation:+.1%}",
    )


def _table(head: str, rows: Sequence[tuple[str, str, str, str]], paint: Paint) -> Iterator[str]:
    title, *lines = aligned([(head, "planned", "measured", ""), *rows])
    yield paint.dim(f"  {title}")
    yield from (f"  {line}" for line in lines)


def _gib(size: int | None) -> str:
    return "-" if size is None else f"{size / _GIB:.2f} GiB"
