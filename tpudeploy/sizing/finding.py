"""How a check says what it found: placed on the line that wrote the key, and nothing where none did."""

from __future__ import annotations

from collections.abc import Mapping

from tpudeploy.catalog import flags
from tpudeploy.domain.budget import Engine, HbmBudget
from tpudeploy.domain.deployment import Deployment, Json
from tpudeploy.domain.diagnostics import Diagnostic, Severity
from tpudeploy.domain.model import LanguageModel
from tpudeploy.sizing.advice import LENGTH_KEY, SPLIT_KEYS, TYPE_KEY, UTILIZATION_KEY, Remedy, lightest, remedies

_ARGS = "serving.args."


def error(of: Deployment, code: str, message: str, *, path: str = "", hint: str = "") -> Diagnostic:
    """It cannot boot, or cannot work."""
    return Diagnostic(code=code, message=message, path=path, location=of.origin(path), hint=hint)


def warning(of: Deployment, code: str, message: str, *, path: str = "", hint: str = "") -> Diagnostic:
    """It works, and something about it is worth a thought."""
    location = of.origin(path)
    return Diagnostic(code=code, message=message, severity=Severity.WARNING, path=path, location=location, hint=hint)


def sized(of: Deployment) -> HbmBudget | None:
    """Return its budget, or None where it cannot be sized: see `bounded` for what is certain all the same."""
    return of.budget if isinstance(of.budget, HbmBudget) else None


def bounded(of: Deployment) -> HbmBudget | None:
    """Return its budget or, where something only adds to the memory, the budget without that: a lower bound."""
    return of.budget if isinstance(of.budget, HbmBudget) else of.budget.at_least


def at_least(of: Deployment) -> str:
    """Return the words before the bytes of `bounded`: "" where they are exact."""
    return "" if isinstance(of.budget, HbmBudget) else "at least "


def model_of(of: Deployment) -> LanguageModel | None:
    """Return the model, whether or not its memory can be sized; None where it is not known."""
    return of.budget.model


def engine_of(of: Deployment) -> Engine | None:
    """Return the engine's settings, whether or not its memory can be sized; None where they are not known."""
    return of.budget.engine


def setting(of: Deployment, path: str) -> int | None:
    """Return a whole number that the profile writes at this path, or None."""
    value = of.attributes.get(path)
    return value if isinstance(value, int) else None


def ways_out(deployment: Deployment, budget: HbmBudget) -> str:
    """Return what would let it start, with the figures that follow: utilization, then length, then a slice.

    Where `budget` is a bound, a way may not be enough, and chips are not split into copies: LoRA excludes that.
    """
    is_bound = sized(deployment) is None
    ways = remedies(budget, allow_copies=not is_bound)
    if not ways:
        return _no_way(budget)
    cheapest = ways[0].settings
    failing = ""
    if UTILIZATION_KEY not in cheapest and LENGTH_KEY in cheapest:
        failing = "No other hbm_utilization is enough. "
    elif UTILIZATION_KEY not in cheapest or TYPE_KEY in cheapest:
        failing = "Neither another hbm_utilization nor a shorter max_model_len is enough. "
    sentences = [_way(way, _settings(deployment, way), is_bound=is_bound) for way in ways]
    return failing + "\nOr ".join(sentences)


def _settings(deployment: Deployment, way: Remedy) -> dict[str, object]:
    """Return what the profile has to say: a split over all chips is the default, unless it writes another one."""
    engine, chips = way.budget.engine, way.budget.accelerator.chips
    is_default = TYPE_KEY in way.settings and engine.tensor_parallel == chips
    if is_default and not any(f"serving.{key}" in deployment.origins for key in SPLIT_KEYS):
        return {key: value for key, value in way.settings.items() if key not in SPLIT_KEYS}
    return dict(way.settings)


def _way(way: Remedy, changes: Mapping[str, object], *, is_bound: bool) -> str:
    first, *others = (f"{key}: {_value(value)}" for key, value in changes.items())
    settings = f"{first} with {', '.join(others)}" if others else first
    of = way.budget
    best = "" if way.most is None else f"; {_value(way.most.engine.utilization)} gives {way.most.kv_cache_tokens:,}"
    figures = (
        f"{of.kv_cache_tokens:,} tokens of KV cache, {of.max_concurrency:.1f} requests of {of.engine.max_model_len:,}"
    )
    return (
        f"{settings} {'may be' if is_bound else 'is'} enough: {'at most ' if is_bound else ''}{figures} at once{best}."
    )


def _value(value: object) -> str:
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def _no_way(budget: HbmBudget) -> str:
    """Return why nothing helps; a slice on which only programs lack proven room may still be one that boots."""
    best = lightest(budget)
    takes = f"{gib(best.weights_bytes_per_chip)} of {gib(best.hbm_bytes_per_chip)} a chip"
    if best.weights_bytes_per_chip >= best.hbm_bytes_per_chip:
        return f"No slice of one host holds it: on {best.accelerator.name} the weights alone take {takes}."
    return (
        "No slice of one host holds it beside the room for compiled programs with which boots are known to succeed: "
        f"on {best.accelerator.name} the weights take {takes}."
    )


def argument(of: Deployment, name: str) -> tuple[str, Json]:
    """The path and value of a flag of `serving.args`, by canonical name; ("", None) where it is not written."""
    for path, value in of.attributes.items():
        if path.startswith(_ARGS):
            flag = flags.find(path.removeprefix(_ARGS))
            if flag is not None and flag.name == name:
                return path, value
    return "", None


def gib(size: int, places: int = 1) -> str:
    """Bytes as people say them here: `12.5 GiB`."""
    return f"{size / 1024**3:.{places}f} GiB"
