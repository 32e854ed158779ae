"""Recommend a slice for a workload, and print the profile for it; or the operating points of a run (--run).

Measured runs decide (`tpudeploy bench`). If none of them serves the workload, the size model decides, and the output
says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Annotated, Any, TypeAlias

from tpudeploy import loading
from tpudeploy.catalog.support import deployment_support
from tpudeploy.config.profile import Profile as Checked
from tpudeploy.domain import exits
from tpudeploy.domain.deployment import Deployment, Json
from tpudeploy.domain.diagnostics import errors_in
from tpudeploy.domain.engine import Engine
from tpudeploy.domain.errors import ConfigError, UsageError
from tpudeploy.domain.pins import Pins
from tpudeploy.domain.serialization import to_json
from tpudeploy.features.benchmark.operating_view import recommendation as view
from tpudeploy.features.benchmark.recommend import recommend as search
from tpudeploy.features.benchmark.recommendation import Basis, Choice, Recommendation, Workload
from tpudeploy.features.benchmark.run import Run
from tpudeploy.features.benchmark.store import stored_runs
from tpudeploy.loading import Profile, sized
from tpudeploy.operations.arguments import Agents, AProfile, Arg, Count, Seconds, Usd
from tpudeploy.operations.declaration import Access, Operation
from tpudeploy.operations.endpoint import require_completions
from tpudeploy.results import Result, document, part, result
from tpudeploy.text.paint import Paint
from tpudeploy.views.profile import profile as profile_view
from tpudeploy.workspace import Workspace

# The workload, which `recommend_models` takes too.
Users: TypeAlias = Annotated[Count, Arg("Concurrent requests.", agents=Agents("requests at once"))]
Context: TypeAlias = Annotated[
    Count, Arg("Tokens in a prompt.", variable="recommend-context", agents=Agents("tokens of a prompt"))
]
Output: TypeAlias = Annotated[
    Count, Arg("Tokens in an answer.", variable="recommend-output", agents=Agents("tokens of an answer"))
]
FirstToken: TypeAlias = Annotated[
    Seconds,
    Arg(
        "The first token of 95 of 100 requests must arrive within TIME, e.g. 2s.",
        name="ttft",
        agents=Agents("the limit for the 95th percentile of the time to first token"),
    ),
]
Budget: TypeAlias = Annotated[
    Usd, Arg("The most to spend in USD/month, at list prices.", name="budget", agents=Agents("at list prices"))
]
Emulated: TypeAlias = Annotated[bool, Arg("Accept runs measured on the emulator as evidence.")]


@result
class Recommended(Result):
    """What would serve a workload, best first, and the profile for the best as YAML, None if nothing would."""

    FORMAT = "recommendation"
    IS_VERBATIM = True
    ADDED_LATER = frozenset({"engine"})
    recommendation: Recommendation
    profile: str | None
    engine: Engine

    @property
    def exit_code(self) -> int:
        return exits.SUCCESS if self.recommendation.choices else exits.CHECK_FAILED

    def values(self) -> dict[str, Any]:
        return {**to_json(self.recommendation), "engine": self.engine.to_dict(), "profile": self.profile}

    @classmethod
    def schema(cls) -> Mapping[str, Any]:
        about = "the profile for the best, as YAML"
        engine = part({"kind": str, "release": str | None, "known_from": str})
        keys = {"engine": engine, "profile": {"type": ["string", "null"], "description": about}}
        whole = document("recommendation", keys, Recommendation)
        return {**whole, "required": [each for each in whole["required"] if each not in Recommended.ADDED_LATER]}

    def as_text(self, paint: Paint, width: int | None = None) -> str:
        return "" if self.profile is None else self.profile.rstrip("\n")

    def messages(self, paint: Paint) -> str:
        return view(self.recommendation, self.engine, paint)

    def __str__(self) -> str:
        return f"{self.messages(Paint())}\n{self.as_text(Paint())}".rstrip()


def recommend(
    workspace: Workspace,
    profile: AProfile,
    *,
    users: Users,
    context: Context,
    output: Output,
    ttft_seconds: FirstToken | None = None,
    usd_per_month: Budget | None = None,
    emulated: Emulated = False,
) -> Recommended:
    """Recommend what would serve a workload, and a profile for it, from measured runs; says if there are none.

    `users` are concurrent requests, `context` and `output` tokens of a prompt and of an answer. `ttft_seconds` limits
    the 95th percentile of the time to the first token, `usd_per_month` the cost at list prices; both are positive.
    """
    workload = workload_of(users, context, output, ttft_seconds=ttft_seconds, usd_per_month=usd_per_month)
    pins, runs = workspace.adapters.pins.read(), stored_runs(workspace.adapters).all()
    return recommended(loading.profile(profile), workload, runs, pins, takes_emulated=emulated)


def workload_of(
    users: int, context: int, output: int, *, ttft_seconds: float | None, usd_per_month: float | None
) -> Workload:
    """Return a workload. Raise `errors.UsageError` for a number that is not positive, or not finite."""
    sizes = {"users": users, "context": context, "output": output}
    limits = {"ttft_seconds": ttft_seconds, "usd_per_month": usd_per_month}
    present = {name: value for name, value in {**sizes, **limits}.items() if value is not None}
    wrong = next((name for name, value in present.items() if not (isfinite(value) and value > 0)), None)
    if wrong is not None:
        raise UsageError(f"`{wrong}` is {present[wrong]:g}, and has to be positive.")
    return Workload(
        users=users,
        context_tokens=context,
        output_tokens=output,
        ttft_seconds=ttft_seconds,
        usd_per_month=usd_per_month,
    )


def recommended(
    profile: Checked, workload: Workload, runs: Iterable[Run], pins: Pins, *, takes_emulated: bool
) -> Recommended:
    """Return what would serve the workload instead of a profile's own slice and settings.

    Raise `errors.ConfigError` as `Profile.load` does, and `errors.UsageError` for a server that completes no prompts.
    """
    loaded = loading.judge(profile, pins)
    deployment = loading.sized(loaded, pins)
    require_completions(deployment, "no run and no size model tells how many requests a slice answers")
    recommendation = search(
        deployment,
        workload,
        runs,
        lambda settings: _deployment_with(loaded, settings, pins),
        takes_emulated=takes_emulated,
    )
    best = recommendation.choices[0] if recommendation.choices else None
    text = None if best is None else _profile_for(loaded, best, pins)
    return Recommended(recommendation=recommendation, profile=text, engine=deployment.engine)


def _deployment_with(profile: Checked, settings: Mapping[str, Json], pins: Pins) -> Deployment | str:
    """Return the deployment of the profile with these settings merged on top, or its first error."""
    try:
        return sized(_with_settings(profile, settings), pins)
    except ConfigError as error:
        problems = errors_in(error.diagnostics)
        return problems[0].message if problems else str(error)


def _with_settings(profile: Checked, settings: Mapping[str, Json]) -> Profile:
    if not isinstance(profile, Profile):
        raise TypeError("the profile was not loaded from a file or a text")
    return profile.with_settings(settings)


def _profile_for(profile: Checked, choice: Choice, pins: Pins) -> str:
    """Return the whole profile with what is recommended merged on top, each value with its origin."""
    changed = _with_settings(profile, choice.settings)
    deployment = sized(changed, pins)
    sentence = deployment_support(deployment).sentence
    text = f"# {sentence}.\n" if sentence else ""
    text += profile_view(changed.name, deployment)
    if choice.basis is Basis.BY_OTHERS:
        text = f"# Measured by others: {choice.source}. Their flags aren't stated.\n{text}"
    if choice.is_emulated:
        return f"# From run {choice.run}, measured on the emulator: no figure of it says anything of a TPU.\n{text}"
    return text


OPERATION = Operation(
    run=recommend,
    results=(Recommended,),
    access=Access.OFFLINE,
    title="Recommend a profile",
    tool="recommend",
)
