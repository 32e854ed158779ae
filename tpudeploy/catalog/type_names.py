"""What is wrong with the name of a slice type that the catalogue does not have, and which name was meant."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

from tpudeploy import catalog
from tpudeploy.catalog.generations import UNSUPPORTED_GENERATIONS
from tpudeploy.domain.accelerator import AcceleratorType


class TypeNameFault(Enum):
    """Why a name is no type."""

    UNKNOWN = auto()
    UNSUPPORTED = auto()
    AMBIGUOUS = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeProblem:
    """The problem of a name, as a sentence without its end, and what to write instead; "" where nothing is near."""

    fault: TypeNameFault
    message: str
    hint: str = ""


def problem_of(
    name: str, *, label: str, is_accepted: Callable[[AcceleratorType], bool] = lambda _: True
) -> TypeProblem:
    """Return the problem of a name that is no type. `label` is how messages show it; `is_accepted`: `closest_type`."""
    generation = catalog.unsupported_generation(name)
    if generation is not None:
        reason = UNSUPPORTED_GENERATIONS[generation]
        return TypeProblem(fault=TypeNameFault.UNSUPPORTED, message=f"{label} is not supported: {reason}")
    meanings = _meanings(name, label)
    if meanings is not None:
        return meanings
    closest = catalog.closest_type(name, is_accepted=is_accepted) or catalog.closest_type(name)
    hint = f'did you mean "{closest}"?{_count_of_chips(closest)}' if closest else ""
    return TypeProblem(fault=TypeNameFault.UNKNOWN, message=f"There is no accelerator type {label}", hint=hint)


def _meanings(name: str, label: str) -> TypeProblem | None:
    """Return the problem of a name whose number counts TensorCores for some tools and chips for others, else None."""
    counts = catalog.counts_of(name)
    if counts is None:
        return None
    by_cores, by_chips = (_of_chips(name, chips) for chips in counts)
    if by_cores is None:
        return None
    if by_chips is None:
        # No machine has as many chips, so that the other meaning alone is left, and is still not taken without a word.
        message = f"There is no accelerator type {label}"
        hint = f'counted in TensorCores, it is {_described(by_cores)}: write "{by_cores.name}"'
        return TypeProblem(fault=TypeNameFault.UNKNOWN, message=message, hint=hint)
    message = (
        f"{label} has two meanings: gcloud, xpk and vLLM's CI count TensorCores, which makes it "
        f"{_described(by_cores)}; counted in chips, it is {_described(by_chips)}"
    )
    hint = f'write "{by_cores.name}" for {by_cores.chips} chips, or "{by_chips.name}" for {by_chips.chips}'
    return TypeProblem(fault=TypeNameFault.AMBIGUOUS, message=message, hint=hint)


def _of_chips(name: str, chips: int) -> AcceleratorType | None:
    generation = catalog.generation_in(name) or ""
    return next((t for t in catalog.types_of(generation) if t.chips == chips), None)


def _described(slice_type: AcceleratorType) -> str:
    """Return `4 chips on one machine, $48.00/h on demand`, at the lowest list price."""
    chips = f"{slice_type.chips} chip{'s' if slice_type.chips > 1 else ''}"
    machines = "one machine" if slice_type.hosts == 1 else f"{slice_type.hosts} machines"
    regions = catalog.generation(slice_type.generation).prices.values()
    usd = min((prices["on-demand"] for prices in regions if "on-demand" in prices), default=None)
    price = "" if usd is None else f", from ${usd * slice_type.chips:.2f}/h on demand"
    return f"{chips} on {machines}{price}"


def _count_of_chips(type_name: str) -> str:
    """Return the chips of a type in whose name Google counts cores, as text; "" for other types."""
    slice_type = catalog.accelerator_type(type_name)
    if slice_type is None or not catalog.counts_cores(slice_type):
        return ""
    return f" Its name counts cores: it has {slice_type.chips} chips"
