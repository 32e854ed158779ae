"""Recommend across models: the best choice for each of several profiles and model ids, for one workload."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from os.path import normpath
from pathlib import Path
from typing import Annotated

from tpudeploy import loading
from tpudeploy.cli.new_profile import new_profile, with_limits
from tpudeploy.domain import exits
from tpudeploy.domain.diagnostics import errors_in
from tpudeploy.domain.errors import ConfigError, ProfileInvalid, UsageError
from tpudeploy.domain.pins import Pins
from tpudeploy.features.benchmark.model_table import model_table as view
from tpudeploy.features.benchmark.recommend_operation import (
    Budget,
    Context,
    Emulated,
    FirstToken,
    Output,
    Users,
    recommended,
    workload_of,
)
from tpudeploy.features.benchmark.recommendation import ModelRecommendation, Workload
from tpudeploy.features.benchmark.run import Run
from tpudeploy.features.benchmark.store import stored_runs
from tpudeploy.loading import OneProfile, Profile, ProfileText
from tpudeploy.operations.arguments import Agents, Arg, ValidProfiles
from tpudeploy.operations.declaration import Access, Operation
from tpudeploy.results import Result, result
from tpudeploy.text.paint import Paint
from tpudeploy.workspace import Workspace

_MODEL_ID = re.compile(r"[a-zA-Z0-9][\w.-]{0,95}/[a-zA-Z0-9][\w.-]{0,95}", re.ASCII)


@result
class RecommendedModels(Result):
    """The best choice for each model: within all limits first, then by price. What nothing serves comes last."""

    FORMAT = "model-recommendations"
    workload: Workload
    models: Annotated[tuple[ModelRecommendation, ...], "the best choice for each, what nothing serves last"]

    @property
    def exit_code(self) -> int:
        return exits.SUCCESS if any(each.best is not None for each in self.models) else exits.CHECK_FAILED

    def as_text(self, paint: Paint, width: int | None = None) -> str:
        return view(self.workload, self.models, paint, width=width)


def recommend_models(
    workspace: Workspace,
    profiles: ValidProfiles = (),
    models: Annotated[
        Iterable[str],
        Arg(
            "A model by its Hugging Face id, besides the profiles (repeatable).",
            name="model",
            variable="recommend-model",
            metavar="ID",
            agents=Agents("models by their Hugging Face ids"),
        ),
    ] = (),
    *,
    users: Users,
    context: Context,
    output: Output,
    ttft_seconds: FirstToken | None = None,
    usd_per_month: Budget | None = None,
    emulated: Emulated = False,
    invalid: Mapping[str, ProfileInvalid] | None = None,
) -> RecommendedModels:
    """Compare models for one workload: what serves each best, its price, and what is measured, modeled or unknown.

    `profiles` and `models`, ids on Hugging Face, are compared together; the other arguments are those of `recommend`.
    `invalid` are files that are no valid profiles, each with its error. Raise `errors.UsageError` if nothing is named,
    and for a text that is no model id.
    """
    workload = workload_of(users, context, output, ttft_seconds=ttft_seconds, usd_per_month=usd_per_month)
    several, ids, unreadable = loading.each(profiles), tuple(dict.fromkeys(models)), invalid or {}
    if not several and not ids and not unreadable:
        raise UsageError("There is no model to recommend for.", hint="Name profiles, or model ids with --model.")
    drafts = [profile_of_model(each) for each in ids]
    pins, runs = workspace.adapters.pins.read(), stored_runs(workspace.adapters).all()
    folder = workspace.adapters.folder
    rows = [_row(one, folder, workload, runs, pins, takes_emulated=emulated) for one in (*several, *drafts)]
    rows += [_refused_row(file, error) for file, error in unreadable.items()]
    rows = list({(row.file, row.name, row.model): row for row in rows}.values())  # a file that is named twice
    rows.sort(key=lambda row: (row.best is None, () if row.best is None else row.best.rank))
    return RecommendedModels(workload=workload, models=tuple(rows))


def profile_of_model(model_id: str, settings: Iterable[str] = ()) -> Profile:
    """Return a first profile of a model, in no zone of its own, with `path=value` texts on top.

    Raise `errors.UsageError` for a text that is no model id.
    """
    if not _MODEL_ID.fullmatch(model_id):
        raise UsageError(f"`{model_id}` is not a model id.", hint="An id has the form google/gemma-4-E2B-it.")
    text = with_limits(new_profile(model_id, loading.smallest_type().name, (), ""))
    return loading.Profile.from_text(text, set=list(settings))


def _row(
    one: OneProfile, folder: Path, workload: Workload, runs: Iterable[Run], pins: Pins, *, takes_emulated: bool
) -> ModelRecommendation:
    """Return the best choice for a profile. One that is invalid, or completes no prompts, has the reason instead."""
    file = "" if _is_draft(one) else normpath(loading.name_of(one)).removeprefix(f"{normpath(folder)}/")
    try:
        profile = loading.profile(one)
    except ConfigError as error:
        return _refused_row(file, error)
    model, name = profile.model.id, profile.name
    try:
        answer = recommended(profile, workload, runs, pins, takes_emulated=takes_emulated)
    except (ConfigError, UsageError) as error:
        return replace(_refused_row(file, error), model=model, name=name)
    choices = answer.recommendation.choices
    return ModelRecommendation(
        model=model,
        name=name,
        file=file,
        best=choices[0] if choices else None,
        refused=answer.recommendation.refused,
        is_sized=answer.recommendation.is_sized,
        profile=answer.profile,
    )


def _is_draft(one: OneProfile) -> bool:
    return isinstance(one, Profile) and isinstance(one.source, ProfileText)


def _refused_row(file: str, error: ConfigError | UsageError) -> ModelRecommendation:
    problems = errors_in(error.diagnostics) if isinstance(error, ConfigError) else ()
    messages = tuple(problem.message for problem in problems) or (error.message,)
    return ModelRecommendation(model="", name="", file=file, refused=messages, is_sized=False)


OPERATION = Operation(
    run=recommend_models,
    results=(RecommendedModels,),
    access=Access.OFFLINE,
    title="Recommend across models",
    tool="recommend_models",
    takes_invalid=True,
)
