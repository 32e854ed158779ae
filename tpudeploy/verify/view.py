"""Format a verification, and the details of one engine: declared or planned values beside effective ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tpudeploy.domain.verify import Details, ReplicaVerification, Share, Verdict, Verification, VerifiedSetting
from tpudeploy.text import words
from tpudeploy.text.paint import Paint
from tpudeploy.text.words import aligned

_ORDER = (Verdict.DIFFERS, Verdict.OFF, Verdict.HOLDS, Verdict.UNTOLD)
# The style and the text of each verdict.
_VERDICTS = {
    Verdict.HOLDS: ("green", "in effect"),
    Verdict.DIFFERS: ("red", "NOT IN EFFECT"),
    Verdict.OFF: ("yellow", "not as predicted"),
    Verdict.UNTOLD: ("dim", "not reported"),
}
_GIB = 1024**3
_MIB = 1024**2
_CLOSE = 0.005  # the log has two decimals of GiB


def verify(verification: Verification, paint: Paint, *, width: int | None = None) -> str:
    """Return one table per replica, and one sentence about all of them, for a terminal of `width` columns."""
    room = None if width is None else width - 2
    blocks = ["\n".join(_replica(each, paint, room)) for each in verification.replicas]
    return "\n\n".join([*blocks, "\n".join([*_not_verified(verification, paint), _summary(verification, paint)])])


def _not_verified(verification: Verification, paint: Paint) -> Iterator[str]:
    """Yield a line for each replica that the summary is not about."""
    for address in verification.absent:
        yield paint.yellow(f"{address} was not verified: it has no machine.")
    for address in verification.silent_replicas:
        if address in verification.mute:
            text = "neither its API, nor /metrics, nor its log shows a setting"
        else:
            text = "neither its API nor /metrics shows a setting; its log is of its last start"
        yield paint.yellow(f"{address} was not observed: {text}.")
    if verification.silent_replicas:
        yield paint.yellow("`tpudeploy status` shows whether it serves and how to reach it; then verify again.")


def _replica(attestation: ReplicaVerification, paint: Paint, room: int | None) -> Iterator[str]:
    yield f"{paint.bold(attestation.address)} = {attestation.slice_name}"
    settings = sorted(attestation.settings, key=lambda s: _ORDER.index(s.verdict))
    rows = [(s.name, s.declared or "(open)", _effective(s), _verdict(s, paint)) for s in settings]
    lines = words.aligned(rows, room=room)
    yield from (f"  {line}" for line in lines)
    if attestation.basis:
        yield paint.dim(f"  {attestation.basis}.")
    for source, why in attestation.silent.items():
        yield paint.yellow(f"  {source} reported nothing: {words.plain(why)}")


def _effective(setting: VerifiedSetting) -> str:
    """Return each value once with its sources: `32768 (api, log)`."""
    sources_of: dict[str, list[str]] = {}
    for source, value in setting.effective.items():
        sources_of.setdefault(words.plain(value.replace("\n", ", ")), []).append(source)
    return "; ".join(f"{value} ({', '.join(sources)})" for value, sources in sources_of.items()) or "-"


def _verdict(setting: VerifiedSetting, paint: Paint) -> str:
    text = paint.styled(*_VERDICTS[setting.verdict]) if setting.declared else paint.dim("reported")
    return text if setting.deviation is None else f"{text} ({setting.deviation:+.2%})"


def _summary(verification: Verification, paint: Paint) -> str:
    broken = sum(len(replica.broken) for replica in verification.replicas)
    if broken:
        addresses = ", ".join(replica.address for replica in verification.replicas if replica.broken)
        where = f" ({addresses})" if len(verification.replicas) > 1 else ""
        return paint.red(f"{broken} declared setting{'s are' if broken > 1 else ' is'} not in effect{where}.")
    in_effect = sum(len(replica.with_verdict(Verdict.HOLDS)) for replica in verification.replicas)
    if not in_effect:
        return paint.yellow("No setting can be verified: neither its API, nor /metrics, nor its log reports one.")
    if verification.silent_replicas:
        return paint.yellow(f"{in_effect} settings match where a source reports them. The others were not observed.")
    return paint.green(f"All {in_effect} settings that can be verified are in effect.")


def details(details: Details, paint: Paint, *, width: int | None = None) -> str:
    room = None if width is None else width - 2
    lines = [f"{paint.bold(details.address)} = {details.slice_name}"]
    facts = [(f.name, f.planned or "-", words.plain(f.told) or "-", "") for f in details.facts]
    lines += _table("", facts, paint, room)
    if details.process_bytes is not None:
        lines += ["", f"  The API server holds {details.process_bytes / _MIB:,.0f} MiB of the machine's memory."]
    if details.memory:
        lines += ["", *_table("memory of a chip", [_share(share) for share in details.memory], paint, room)]
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


def _table(head: str, rows: Sequence[tuple[str, str, str, str]], paint: Paint, room: int | None) -> Iterator[str]:
    title, *lines = aligned([(head, "planned", "measured", ""), *rows], room=room)
    yield paint.dim(f"  {title}")
    yield from (f"  {line}" for line in lines)


def _gib(size: int | None) -> str:
    return "-" if size is None else f"{size / _GIB:.2f} GiB"
