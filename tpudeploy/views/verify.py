"""A verification: declared beside effective, what is not in effect first."""

from __future__ import annotations

from collections.abc import Iterator

from tpudeploy.domain.attestation import Attestation, Attested, Verdict, Verification
from tpudeploy.views import words
from tpudeploy.views.paint import Paint

_ORDER = (Verdict.DIFFERS, Verdict.OFF, Verdict.HOLDS, Verdict.UNTOLD)
_WORDS = {
    Verdict.HOLDS: "in effect",
    Verdict.DIFFERS: "NOT IN EFFECT",
    Verdict.OFF: "not as predicted",
    Verdict.UNTOLD: "not told",
}


def verify(of: Verification, paint: Paint) -> str:
    """One table a replica, and one sentence for all."""
    blocks = ["\n".join(_replica(each, paint)) for each in of.replicas]
    return "\n\n".join([*blocks, "\n".join([*_not_verified(of, paint), _summary(of, paint)])])


def _not_verified(of: Verification, paint: Paint) -> Iterator[str]:
    """Each replica of several that the sentence below is not about."""
    for where in of.absent:
        yield paint.yellow(f"{where} was not verified: it has no machine.")
    if len(of.replicas) > 1 and len(of.mute) < len(of.replicas):
        for where in of.mute:
            yield paint.yellow(f"{where} was not verified: neither its API, nor /metrics, nor its log shows a setting.")


def _replica(of: Attestation, paint: Paint) -> Iterator[str]:
    yield f"{paint.bold(of.address)} = {of.slice_name}"
    yield from _table(sorted(of.settings, key=lambda s: _ORDER.index(s.verdict)), paint)
    yield from (paint.yellow(f"  {source} reported nothing: {words.plain(why)}") for source, why in of.silent.items())


def _table(rows: list[Attested], paint: Paint) -> Iterator[str]:
    cells = [(s.name, s.declared or "(open)", _effective(s)) for s in rows]
    widths = [max(map(words.width, column)) for column in zip(*cells, strict=True)]
    for row, texts in zip(rows, cells, strict=True):
        line = "  ".join(text.ljust(width) for text, width in zip(texts, widths, strict=True))
        told = _coloured(row.verdict, paint) if row.declared else paint.dim("told")
        yield f"  {line}  {told}{_deviation(row)}"


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


def _summary(of: Verification, paint: Paint) -> str:
    broken = sum(len(replica.broken) for replica in of.replicas)
    if broken:
        where = ", ".join(replica.address for replica in of.replicas if replica.broken)
        which = f" ({where})" if len(of.replicas) > 1 else ""
        return paint.red(f"{broken} declared setting{'s are' if broken > 1 else ' is'} not in effect{which}.")
    held = sum(len(replica.with_verdict(Verdict.HOLDS)) for replica in of.replicas)
    if not held:
        return paint.yellow("Nothing is told of its settings: neither by its API, nor by /metrics, nor by its log.")
    return paint.green(f"All {held} settings that can be told are in effect.")
