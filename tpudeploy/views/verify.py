"""An attestation: declared beside effective, what is not in effect first."""

from __future__ import annotations

from collections.abc import Iterator

from tpudeploy.domain.attestation import Attestation, Attested, Verdict
from tpudeploy.views import words
from tpudeploy.views.paint import Paint

_ORDER = (Verdict.DIFFERS, Verdict.OFF, Verdict.HOLDS, Verdict.UNTOLD)
_WORDS = {
    Verdict.HOLDS: "in effect",
    Verdict.DIFFERS: "NOT IN EFFECT",
    Verdict.OFF: "not as predicted",
    Verdict.UNTOLD: "not told",
}


def verify(of: Attestation, paint: Paint) -> str:
    rows = sorted(of.settings, key=lambda s: _ORDER.index(s.verdict))
    return "\n".join([paint.bold(of.name), *_table(rows, paint), "", _summary(of, paint)])


def _table(rows: list[Attested], paint: Paint) -> Iterator[str]:
    cells = [(s.name, s.declared or "(open)", _effective(s)) for s in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row, texts in zip(rows, cells, strict=True):
        line = "  ".join(text.ljust(width) for text, width in zip(texts, widths, strict=True))
        yield f"  {line}  {_coloured(row.verdict, paint)}{_deviation(row)}"


def _effective(of: Attested) -> str:
    """Each value once, with who says it: `32768 (api, log)`."""
    said: dict[str, list[str]] = {}
    for source, value in of.effective.items():
        said.setdefault(words.plain(value.replace("\n", ", ")), []).append(source)
    return "; ".join(f"{value} ({', '.join(sources)})" for value, sources in said.items()) or "-"


def _deviation(of: Attested) -> str:
    return "" if of.deviation is None else f" ({of.deviation:+.2%})"


def _coloured(verdict: Verdict, paint: Paint) -> str:
    match verdict:
        case Verdict.HOLDS:
            return paint.green(_WORDS[verdict])
        case Verdict.DIFFERS:
            return paint.red(_WORDS[verdict])
        case Verdict.OFF:
            return paint.yellow(_WORDS[verdict])
        case Verdict.UNTOLD:
            return paint.dim(_WORDS[verdict])


def _summary(of: Attestation, paint: Paint) -> str:
    broken = len(of.broken)
    if broken:
        return paint.red(f"{broken} declared setting{'s are' if broken > 1 else ' is'} not in effect.")
    held = sum(s.verdict is Verdict.HOLDS for s in of.settings)
    if not held:
        return paint.yellow("The engine says nothing of its settings: neither its API, nor /metrics, nor its log.")
    return paint.green(f"All {held} settings that can be told are in effect.")
