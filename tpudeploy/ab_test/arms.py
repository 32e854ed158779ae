"""Arms: what `--ab PATH=A,B` says, what may be compared in place, and whether an engine does what its arm says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from tpudeploy.domain.attestation import Verdict, Verification
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.errors import UsageError
from tpudeploy.domain.experiment import InEffect
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.plan import Action, Plan
from tpudeploy.node.fingerprint import fingerprint, server_print, slice_print
from tpudeploy.pins.pins import unpinned
from tpudeploy.sizing.numbers import parse_number

_TWO = 2
_FORM = "Write --ab PATH=A,B, e.g. --ab serving.padding_gap=0,512."
_OPENS, _CLOSES, _QUOTES = "[{", "]}", "\"'"
# What changes the numbers that answers are reckoned with, or the model itself: its A/B asks for quality too.
# Fast prefill leaves key and value layers out; quantization and cache types round; overrides make another model.
RISKY = (
    "model",
    "serving.dtype",
    "serving.kv_cache_dtype",
    "serving.args.calculate_kv_scales",
    "serving.args.hf_overrides",
    "serving.args.kv_sharing_fast_prefill",
    "serving.args.quantization",
)
# Where the name of a setting is not the last word of its path (verify/attest.py).
_SETTINGS: Mapping[str, str] = {
    "model.id": "model",
    "serving.args.speculative_config": "speculation",
    "serving.image": "version",
}
# What an engine measures is no setting: two starts of one server differ in these as well.
_MEASURED = frozenset({"compile_seconds", "cache_hits"})
# Sizes of the cache follow from memory that is free at the moment: below this share they are the same.
_SIZES = frozenset({"num_blocks", "kv_cache_tokens", "kv_bytes_per_token"})
_SAME_SIZE = 0.005  # as verify/attest.py compares what was predicted; the largest seen between boots is 0.03 %
_IN_PLACE = {Action.NO_OP, Action.RESTART, Action.UPDATE}


@frozen
class Written:
    """`path` as in `--set`, and the two texts that may follow its `=`."""

    path: str
    values: tuple[str, str]


def parsed(text: str) -> Written:
    """Raise `errors.UsageError` for anything but two different values of one path."""
    path, equals, rest = text.partition("=")
    if not equals or not path.strip():
        raise UsageError(f"`{text}` names no path with two values.", hint=_FORM)
    values = tuple(part.strip() for part in _parts(rest))
    if len(values) != _TWO:
        many = f"{len(values)} values" if len(values) > 1 else "one value"
        raise UsageError(f"`{text}` has {many}; an A/B holds two against each other.", hint=_FORM)
    return Written(path=path.strip(), values=(values[0], values[1]))


def arm_print(of: Deployment) -> str:
    """The same for two arms that a person wrote alike: what a tag is held to comes to be known on the way."""
    return fingerprint(replace(of, attributes=unpinned(of.attributes)))


def is_risky(path: str) -> bool:
    name = path.replace("-", "_")
    return any(name == risky or name.startswith(f"{risky}.") for risky in RISKY)


def check(path: str, base: Deployment, a: Deployment, b: Deployment) -> None:
    """Raise `errors.UsageError` for arms that are the same, that no server knows of, or that want other chips."""
    if arm_print(a) == arm_print(b):
        raise UsageError(f"Both arms are the same deployment: {path} is the same.", hint="Name two different values.")
    if any(slice_print(arm.attributes) != slice_print(base.attributes) for arm in (a, b)):
        raise UsageError(
            f"{path} cannot be changed in place: another value needs another slice.",
            hint="Deploy each, measure each with `tpudeploy bench`, and hold the runs together: "
            "`tpudeploy compare RUN RUN`.",
        )
    if server_print(a.attributes) == server_print(b.attributes):
        raise UsageError(f"{path} is nothing that a server is started with: both arms would run alike.")


def check_in_place(plan: Plan) -> None:
    """Raise `errors.UsageError` where more than a restart would be done."""
    for change in plan.changes:
        if change.action in _IN_PLACE:
            continue
        if change.hands_over:
            raise UsageError(
                f"{change.address} would be handed over to a second slice, as its lifecycle says.",
                hint="An A/B changes the server in place: --set lifecycle.update=in-place, or wait for its renewal.",
            )
        why = f" ({change.reason})" if change.reason else ""
        raise UsageError(
            f"{change.address} does not stand as an A/B needs it: its plan is to {change.action} it{why}.",
            hint="Run `tpudeploy apply` first: an A/B restarts a server that is there, and nothing else.",
        )


def told(found: Verification) -> Mapping[str, str]:
    """What the engines say of themselves: of several replicas, each apart where they differ."""
    values: dict[str, dict[str, None]] = {}
    for replica in found.replicas:
        for row in replica.settings:
            if row.value:
                values.setdefault(row.name, {})[row.value] = None
    return {name: " | ".join(several) for name, several in values.items()}


def in_effect(path: str, found: Verification, other: Mapping[str, str]) -> InEffect:
    """By the setting's own witness; without one, by whether anything differs from what the `other` arm told."""
    rows = [row for replica in found.replicas for row in replica.settings if row.name == setting(path)]
    written = [row for row in rows if row.is_written or row.declared]
    if any(row.verdict is Verdict.DIFFERS for row in written):
        return InEffect.NO
    if written and all(row.verdict is Verdict.HOLDS for row in written):
        return InEffect.YES
    return InEffect.YES if other and differing(told(found), other) else InEffect.UNTOLD


def differing(one: Mapping[str, str], other: Mapping[str, str]) -> tuple[str, ...]:
    """Return the settings that both tell, and not alike. What is only measured, such as a time, is none."""
    shared = (name for name in one if name in other and name not in _MEASURED)
    return tuple(name for name in shared if one[name] != other[name] and not _is_same_size(name, one, other))


def _is_same_size(name: str, one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    a, b = parse_number(one[name]), parse_number(other[name])
    return name in _SIZES and a is not None and b is not None and abs(a - b) <= _SAME_SIZE * max(a, b)


def setting(path: str) -> str:
    """By what name engines tell of what stands at this path of a profile."""
    name = path.replace("-", "_")
    return _SETTINGS.get(name, name.rpartition(".")[2])


def _parts(text: str) -> Iterator[str]:
    """Divided at each comma that stands in no list, mapping or quoted text."""
    depth, quote, part = 0, "", ""
    for character in text:
        if quote:
            quote = "" if character == quote else quote
        elif character in _QUOTES:
            quote = character
        depth += (character in _OPENS and not quote) - (character in _CLOSES and not quote)
        if character == "," and not depth and not quote:
            yield part
            part = ""
        else:
            part += character
    yield part
