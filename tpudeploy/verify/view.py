"""Format a verification: declared beside effective settings, those that are not in effect first."""

from __future__ import annotations

from collections.abc import Iterator

from tpudeploy.domain.verify import ReplicaVerification, Verdict, Verification, VerifiedSetting
from tpudeploy.text import words
from tpudeploy.text.paint import Paint

_ORDER = (Verdict.DIFFERS, Verdict.OFF, Verdict.HOLDS, Verdict.UNTOLD)
_WORDS = {
    Verdict.HOLDS: "in effect",
    Verdict.DIFFERS: "NOT IN EFFECT",
    Verdict.OFF: "not as predicted",
    Verdict.UNTOLD: "not reported",
}


def verify(verification: Verification, paint: Paint) -> str:
    """Return one table per replica, and one sentence about all of them."""
    blocks = ["\n".join(_replica(each, paint)) for each in verification.replicas]
    return "\n\n".join([*blocks, "\n".join([*_not_verified(verification, paint), _summary(verification, paint)])])


def _not_verified(verification: Verification, paint: Paint) -> Iterator[str]:
    """Yield a line for each replica that the summary is not about."""
    for address in verification.absent:
        yield paint.yellow(f"{address} was not verified: it has no machine.")
    # If no replica reports a setting, the summary says so.
    if len(verification.replicas) > 1 and len(verification.mute) < len(verification.replicas):
        for address in verification.mute:
            yield paint.yellow(
                f"{address} was not verified: neither its API, nor /metrics, nor its log shows a setting."
            )


def _replica(attestation: ReplicaVerification, paint: Paint) -> Iterator[str]:
    yield f"{paint.bold(attestation.address)} = {attestation.slice_name}"
    settings = sorted(attestation.settings, key=lambda s: _ORDER.index(s.verdict))
    lines = words.aligned([(s.name, s.declared or "(open)", _effective(s), _verdict(s, paint)) for s in settings])
    yield from (f"  {line}" for line in lines)
    for source, why in attestation.silent.items():
        yield paint.yellow(f"  {source} reported nothing: {words.plain(why)}")


def _effective(setting: VerifiedSetting) -> str:
    """Return each value once with its sources: `32768 (api, log)`."""
    sources_of: dict[str, list[str]] = {}
    for source, value in setting.effective.items():
        sources_of.setdefault(words.plain(value.replace("\n", ", ")), []).append(source)
    return "; ".join(f"{value} ({', '.join(sources)})" for value, sources in sources_of.items()) or "-"


def _verdict(setting: VerifiedSetting, paint: Paint) -> str:
    text = _coloured(setting.verdict, paint) if setting.declared else paint.dim("reported")
    return text if setting.deviation is None else f"{text} ({setting.deviation:+.2%})"


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


def _summary(verification: Verification, paint: Paint) -> str:
    broken = sum(len(replica.broken) for replica in verification.replicas)
    if broken:
        addresses = ", ".join(replica.address for replica in verification.replicas if replica.broken)
        where = f" ({addresses})" if len(verification.replicas) > 1 else ""
        return paint.red(f"{broken} declared setting{'s are' if broken > 1 else ' is'} not in effect{where}.")
    in_effect = sum(len(replica.with_verdict(Verdict.HOLDS)) for replica in verification.replicas)
    if not in_effect:
        return paint.yellow("No setting can be verified: neither its API, nor /metrics, nor its log reports one.")
    return paint.green(f"All {in_effect} settings that can be verified are in effect.")
