"""A profile for a model id: the facts of its family, the smallest slice that fits, every zone that has it."""

from __future__ import annotations

from tpudeploy.catalog import families
from tpudeploy.cli.new_profile import new_profile, with_limits
from tpudeploy.config.parse import parse
from tpudeploy.config.reader import Remembered
from tpudeploy.domain.accelerator import AcceleratorType
from tpudeploy.domain.budget import HbmBudget, Unsized
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import errors_in
from tpudeploy.domain.errors import CheckFailed, ConfigError, ProfileInvalid
from tpudeploy.features.intake.read import named_type
from tpudeploy.features.intake.settle import Settled, slices_by_cost
from tpudeploy.planning.resolve import resolve_without_script
from tpudeploy.sizing.checks import check

_FILE = "profile.yaml"
_WANTED = 32_768
_GIB = 1 << 30


def profile_of_model(model_id: str, type_name: str = "") -> Settled:
    """Return the profile of a model on a slice, or on the smallest that fits.

    Raise `errors.CheckFailed` for a model that cannot be sized, or that no slice holds, in the words of the sizing.
    """
    if type_name:
        return _on_named(model_id, type_name)
    model = families.known_model(model_id)
    best: Settled | None = None
    for kind in slices_by_cost():
        settled = _on(model_id, kind)
        if settled is None:
            continue
        budget = settled.deployment.budget
        if isinstance(budget, Unsized):
            raise _refusal(model_id, budget)
        length = budget.engine.max_model_len
        if model is not None and length >= min(_WANTED, model.max_position):
            return settled
        if best is None or length > _length(best):
            best = settled
    if best is not None:
        return best
    first = _deployment(new_profile(model_id, slices_by_cost()[0].name, (), ""))
    if isinstance(first.budget, Unsized):
        raise _refusal(model_id, first.budget)
    error = errors_in(check([first]))[0]
    raise CheckFailed(f"No slice of the catalogue holds {model_id}: {error.message}.", hint=error.hint)


def _length(settled: Settled) -> int:
    budget = settled.deployment.budget
    return budget.engine.max_model_len if isinstance(budget, HbmBudget) else 0


def _on_named(model_id: str, type_name: str) -> Settled:
    kind = named_type(type_name)
    text = with_limits(new_profile(model_id, kind.name, (), ""))
    deployment = _deployment(text)
    error = next(iter(errors_in(check([deployment]))), None)
    if error is not None:
        raise CheckFailed(f"{kind.name} does not serve {model_id}: {error.message}.", hint=error.hint)
    return Settled(text=text, deployment=deployment, notes=())


def _on(model_id: str, kind: AcceleratorType) -> Settled | None:
    """Return the profile on a slice, or None if the checks find an error in it."""
    text = with_limits(new_profile(model_id, kind.name, (), ""))
    deployment = _deployment(text)
    return None if errors_in(check([deployment])) else Settled(text=text, deployment=deployment, notes=())


def _deployment(text: str) -> Deployment:
    try:
        profile = parse(_FILE, Remembered(text, beside="", name=_FILE), environment={})
    except ProfileInvalid as invalid:
        problem = invalid.problems[0]
        raise ConfigError(problem.message, hint=problem.hint) from invalid
    return resolve_without_script(profile, project="any", config_json=None)


def _refusal(model_id: str, unsized: Unsized) -> CheckFailed:
    """Return the refusal of a model whose memory is not known, with what is certain of it."""
    least = ""
    if unsized.least is not None:
        least = f" Its weights take at least {unsized.least.size / _GIB:.1f} GiB ({unsized.least.source})."
    hint = (
        "Choose the slice yourself: `tpudeploy init --model ID --type v6e-8`, or have the engine size it: "
        "`tpudeploy size PROFILE --engine`."
    )
    return CheckFailed(f"{model_id} cannot be sized, because {unsized.because}.{least}", hint=hint)
