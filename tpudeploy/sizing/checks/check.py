"""Check: one thing that is worth saying of a well-formed deployment, and how it is said, on the line of its key."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from tpudeploy.catalog import flags
from tpudeploy.domain.budget import EngineSettings, HbmBudget, Unsized
from tpudeploy.domain.deployment import Deployment, Json
from tpudeploy.domain.diagnostics import CodePage, Diagnostic, Severity
from tpudeploy.domain.model import LanguageModel
from tpudeploy.sizing.advice import has_limit, lightest, remedies
from tpudeploy.sizing.search import LENGTH_KEY, SPLIT_KEYS, TYPE_KEY, UTILIZATION_KEY, SizingRemedy

_ARGS = "serving.args."
Finder = Callable[[Deployment], Iterator[Diagnostic]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One row of CHECKS. `code` is stable, and `explanation` is the page of `tpudeploy explain` about it."""

    code: str
    explanation: CodePage
    finder: Finder

    def find(self, deployment: Deployment) -> Iterator[Diagnostic]:
        """Yield the problems of this kind that the deployment has."""
        for diagnostic in self.finder(deployment):
            yield replace(diagnostic, code=self.code)


def check_for(code: str, title: str, meaning: str, fix: str) -> Callable[[Finder], Check]:
    """Make a check of the function below, which yields its problems without their code."""
    return lambda finder: Check(code=code, explanation=CodePage(title, meaning, fix), finder=finder)


def error(deployment: Deployment, message: str, *, path: str = "", hint: str = "") -> Diagnostic:
    """Return a problem with which the server cannot start, or cannot work."""
    return Diagnostic(code="", message=message, path=path, location=deployment.origin(path), hint=hint)


def warning(deployment: Deployment, message: str, *, path: str = "", hint: str = "") -> Diagnostic:
    """Return a problem with which the server works."""
    return replace(error(deployment, message, path=path, hint=hint), severity=Severity.WARNING)


def sized(deployment: Deployment) -> HbmBudget | None:
    """Return its budget, or None where it cannot be sized: see `bounded` for what is certain all the same."""
    return deployment.budget if isinstance(deployment.budget, HbmBudget) else None


def bounded(deployment: Deployment) -> HbmBudget | None:
    """Return its budget or, where something only adds to the memory, the budget without that: a lower bound."""
    return deployment.budget if isinstance(deployment.budget, HbmBudget) else deployment.budget.at_least


def lacks_limit_alone(deployment: Deployment) -> bool:
    """Return whether nothing but the HBM limit of its runtime is unknown: `bounded` is then right but for that."""
    return isinstance(deployment.budget, Unsized) and deployment.budget.lacks_limit_alone


def model_of(deployment: Deployment) -> LanguageModel | None:
    """Return the model, whether or not its memory can be sized; None where it is not known."""
    return deployment.budget.model


def engine_of(deployment: Deployment) -> EngineSettings | None:
    """Return the engine's settings, whether or not its memory can be sized; None where they are not known."""
    return deployment.budget.engine


def setting(deployment: Deployment, path: str) -> int | None:
    """Return a whole number that the profile writes at this path, or None."""
    value = deployment.attributes.get(path)
    return value if isinstance(value, int) else None


def argument(deployment: Deployment, name: str) -> tuple[str, Json]:
    """Return the path and value of a flag of `serving.args`, by canonical name; ("", None) where it is not written."""
    return arguments(deployment).get(name, ("", None))


def arguments(deployment: Deployment) -> Mapping[str, tuple[str, Json]]:
    """Return the path and value of each flag of `serving.args` by canonical name; of one set twice, the first."""
    values: dict[str, tuple[str, Json]] = {}
    for path in [path for path in deployment.attributes if path.startswith(_ARGS)]:
        flag = flags.find(path.removeprefix(_ARGS))
        if flag is not None:
            values.setdefault(flag.name, (path, deployment.attributes[path]))
    return values


def gib(size: int, places: int = 1) -> str:
    """Return bytes as a person writes them: `12.5 GiB`."""
    return f"{size / 1024**3:.{places}f} GiB"


def ways_out(deployment: Deployment, budget: HbmBudget) -> str:
    """Return what would let it start, with the figures that follow: mildest first.

    Where `budget` is a bound, a way may not be enough, and chips are not split into copies: LoRA excludes that.
    """
    # Where only the limit of the HBM is unknown, nothing excludes copies of the model.
    is_bound = sized(deployment) is None
    ways = remedies(budget, allow_copies=not is_bound or lacks_limit_alone(deployment))
    if not ways:
        return _no_way(budget)
    on_this_slice = [way.settings for way in ways if TYPE_KEY not in way.settings]
    failing = ""
    if not any(UTILIZATION_KEY in settings for settings in on_this_slice):
        failing = "No other hbm_utilization is enough. "
        if not any(LENGTH_KEY in settings for settings in on_this_slice):
            failing = "Neither another hbm_utilization nor a shorter max_model_len is enough. "
    return failing + "\nOr ".join(_way(deployment, way, is_bound=is_bound) for way in ways)


def _way(deployment: Deployment, way: SizingRemedy, *, is_bound: bool) -> str:
    budget, changes = way.budget, way.settings
    is_bound = is_bound or not has_limit(budget.accelerator)
    is_whole_slice = TYPE_KEY in changes and budget.engine.tensor_parallel == budget.accelerator.devices
    if is_whole_slice and not any(f"serving.{key}" in deployment.origins for key in SPLIT_KEYS):
        # A split over all devices is the default: the profile need not say it unless it writes another one.
        changes = {key: value for key, value in changes.items() if key not in SPLIT_KEYS}
    if not set(deployment.backends) & set(budget.accelerator.backends):
        changes = {**changes, "placement.backend": budget.accelerator.backends[0]}
    first, *others = (f"{key}: {_value(value)}" for key, value in changes.items())
    settings = f"{first} with {', '.join(others)}" if others else first
    enough, at_most = ("may be", "at most ") if is_bound else ("is", "")
    best = "" if way.most is None else f"; {_value(way.most.engine.utilization)} gives {way.most.kv_cache_tokens:,}"
    return (
        f"{settings} {enough} enough: {at_most}{budget.kv_cache_tokens:,} tokens of KV cache, "
        f"{budget.max_concurrency:.1f} requests of {budget.engine.max_model_len:,} at once{best}."
    )


def _value(value: object) -> str:
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def _no_way(budget: HbmBudget) -> str:
    """Return why nothing helps; a slice on which only programs lack proven room may still be one that boots."""
    best = lightest(budget)
    weights = f"{gib(best.weights_bytes_per_chip)} of {gib(best.hbm_bytes_per_chip)} a {best.accelerator.device_noun}"
    slices = "slice" if best.accelerator.hosts > 1 else "single-host slice"
    if best.weights_bytes_per_chip >= best.hbm_bytes_per_chip:
        return f"No {slices} fits it: on {best.accelerator.name} the weights alone take {weights}."
    return (
        f"No {slices} fits it with the room for compiled programs with which boots are known to succeed: "
        f"on {best.accelerator.name} the weights take {weights}."
    )
