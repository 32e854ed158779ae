"""Arms: parse `--ab PATH=A,B`, check that they can be compared in place, and whether an engine does as declared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.errors import UsageError
from tpudeploy.domain.plan import Action, Plan
from tpudeploy.domain.verify import Verdict, Verification
from tpudeploy.features.ab_test.experiment import InEffect
from tpudeploy.node.fingerprint import fingerprint, server_print, slice_print
from tpudeploy.pins import unpinned
from tpudeploy.sizing.numbers import parse_number

_TWO = 2
_FORM = "Write --ab PATH=A,B, e.g. --ab serving.padding_gap=0,512."
_OPENING, _CLOSING, _QUOTES = "[{", "]}", "\"'"
# These change the numbers that answers are computed with, or the model itself, so their A/B asks questions too.
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
# The settings whose name is not the last word of their path (as in the `verify` package).
_SETTINGS: Mapping[str, str] = {
    "model.id": "model",
    "serving.args.speculative_config": "speculation",
    "serving.image": "version",
}
# Measurements of an engine, not settings: two starts of one server differ in these as well.
_MEASURED = frozenset({"compile_seconds", "cache_hits"})
# Sizes of the cache follow from the free memory of the moment: below this share, a difference is none.
_SIZES = frozenset({"num_blocks", "kv_cache_tokens", "kv_bytes_per_token"})
_SAME_SIZE = 0.005  # as `verify` compares predictions; the largest difference between boots is 0.03 %
_IN_PLACE = {Action.NO_OP, Action.RESTART, Action.UPDATE}


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmFlag:
    """`path` as in `--set`, and the two texts to write after its `=`."""

    path: str
    values: tuple[str, str]


def parsed(text: str) -> ArmFlag:
    """Parse PATH=A,B. Raise `errors.UsageError` for anything but two values of one path."""
    path, equals, rest = text.partition("=")
    if not equals or not path.strip():
        raise UsageError(f"`{text}` does not name a path with two values.", hint=_FORM)
    values = tuple(part.strip() for part in split_values(rest))
    if len(values) != _TWO:
        count = f"{len(values)} values" if len(values) > 1 else "one value"
        raise UsageError(f"`{text}` has {count}; an A/B compares two.", hint=_FORM)
    return ArmFlag(path=path.strip(), values=(values[0], values[1]))


def arm_print(deployment: Deployment) -> str:
    """Return the fingerprint of an arm without the pins of tags, which are added on the way."""
    return fingerprint(replace(deployment, attributes=unpinned(deployment.attributes)))


def is_risky(path: str) -> bool:
    name = path.replace("-", "_")
    return any(name == risky or name.startswith(f"{risky}.") for risky in RISKY)


def check(path: str, base: Deployment, a: Deployment, b: Deployment) -> None:
    """Raise `errors.UsageError` for arms that are equal, that no server can show, or that need other chips."""
    if arm_print(a) == arm_print(b):
        raise UsageError(f"Both arms are the same deployment: {path} is the same.", hint="Name two different values.")
    if any(slice_print(arm.attributes) != slice_print(base.attributes) for arm in (a, b)):
        raise UsageError(
            f"{path} cannot be changed in place: another value needs another slice.",
            hint="Deploy each, measure each with `tpudeploy bench`, and compare the runs: `tpudeploy compare RUN RUN`.",
        )
    if server_print(a.attributes) == server_print(b.attributes):
        raise UsageError(f"{path} does not change how a server starts: both arms would be alike.")


def check_in_place(plan: Plan) -> None:
    """Raise `errors.UsageError` where the plan does more than a restart."""
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
            f"{change.address} is not ready for an A/B: its plan is to {change.action} it{why}.",
            hint="Run `tpudeploy apply` first: an A/B only restarts an existing server.",
        )


def reported_settings(verification: Verification) -> Mapping[str, str]:
    """Return the settings that the engines report; the values of replicas that differ are joined."""
    values: dict[str, dict[str, None]] = {}
    for replica in verification.replicas:
        for row in replica.settings:
            if row.value:
                values.setdefault(row.name, {})[row.value] = None
    return {name: " | ".join(of_replicas) for name, of_replicas in values.items()}


def in_effect(path: str, verification: Verification, other: Mapping[str, str]) -> InEffect:
    """Return whether the value at `path` is in effect, by the setting's own source.

    Without a source, a difference from what the `other` arm reported shows that it is.
    """
    name = setting(path)
    rows = [row for replica in verification.replicas for row in replica.settings if row.name == name]
    declared = [row for row in rows if row.is_written or row.declared]
    if any(row.verdict is Verdict.DIFFERS for row in declared):
        return InEffect.NO
    if declared and all(row.verdict is Verdict.HOLDS for row in declared):
        return InEffect.YES
    return InEffect.YES if other and differing(reported_settings(verification), other) else InEffect.UNTOLD


def differing(one: Mapping[str, str], other: Mapping[str, str]) -> tuple[str, ...]:
    """Return the settings that both report with different values. Measurements, such as times, do not count."""
    shared = (name for name in one if name in other and name not in _MEASURED)
    return tuple(name for name in shared if one[name] != other[name] and not _is_same_size(name, one, other))


def _is_same_size(name: str, one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    if name not in _SIZES:
        return False
    a, b = parse_number(one[name]), parse_number(other[name])
    return a is not None and b is not None and abs(a - b) <= _SAME_SIZE * max(a, b)


def setting(path: str) -> str:
    """Return the name under which engines report the value at a path of the profile."""
    name = path.replace("-", "_")
    return _SETTINGS.get(name, name.rpartition(".")[2])


def split_values(text: str) -> Iterator[str]:
    """Split at each comma outside of lists, mappings and quoted text."""
    depth, quote, part = 0, "", ""
    for character in text:
        if quote:
            quote = "" if character == quote else quote
        elif character in _QUOTES:
            quote = character
        if not quote:
            depth += (character in _OPENING) - (character in _CLOSING)
        if character == "," and not depth and not quote:
            yield part
            part = ""
        else:
            part += character
    yield part
