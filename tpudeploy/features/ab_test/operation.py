"""Compare two values of one flag: deploy them in turns on the slice that serves, and measure each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from annotated_types import Ge, Le

from tpudeploy import loading
from tpudeploy.domain import exits
from tpudeploy.domain.diagnostics import Diagnostic
from tpudeploy.domain.errors import UsageError
from tpudeploy.domain.serialization import to_json
from tpudeploy.features.ab_test import result as ab_test
from tpudeploy.features.ab_test import view
from tpudeploy.features.ab_test.arms import ArmFlag, is_risky, parsed
from tpudeploy.features.ab_test.experiment import Experiment
from tpudeploy.features.ab_test.result import ExperimentResult as Effects
from tpudeploy.features.ab_test.service import AbTests, Arms, Listener
from tpudeploy.features.ab_test.turns import FEWEST, ExperimentPlan
from tpudeploy.features.accuracy.questions import ARITHMETIC
from tpudeploy.features.accuracy.service import QuestionRequest, read_questions
from tpudeploy.features.benchmark.bench_operation import ClientCells, Grid, SweepOptions
from tpudeploy.features.benchmark.comparison import Measure
from tpudeploy.features.benchmark.run import Bounds
from tpudeploy.features.benchmark.service import bounds_of
from tpudeploy.loading import OneProfile
from tpudeploy.operations.arguments import Agents, AProfile, Arg, ArgumentGroup, Count, Seconds, Usd, arguments
from tpudeploy.operations.declaration import Access, ApprovalForm, Operation
from tpudeploy.results import Result, document, result
from tpudeploy.text.paint import Paint
from tpudeploy.workspace import Workspace

GRID = Grid(concurrency=(1, 64), context=(1024,), output=(128,))  # few cells: each costs its window in every repeat
_REPEATS = 3
_FOR_ONE_RUN = ("skip_oversubscribed", "slo_ttft", "slo_tpot", "seed")  # options that an A/B does not have


@result
class AbResult(Result):
    """The result of an A/B: which value to keep and why, and each effect with its interval."""

    FORMAT = "ab"
    effects: ab_test.ExperimentResult
    path: Path  # of the file that keeps it

    @property
    def exit_code(self) -> int:
        return exits.CHECK_FAILED if self.effects.is_refused else exits.SUCCESS

    def values(self) -> dict[str, Any]:
        return self.effects.to_dict()

    @classmethod
    def schema(cls) -> Mapping[str, Any]:
        schema = document("ab", {"left": int, "margin": float}, Effects)
        keys: dict[str, dict[str, Any]] = schema["properties"]
        keys["keep"]["description"] = "which value to keep; null if there are too few repeats"
        keys["overall"]["description"] = "B to A less 1, with a 95 % interval over repeats: the verdict rests on it"
        keys["rows"]["description"] = "by cell and measure; `finding` holds for all of them together"
        return schema

    @classmethod
    def promised_keys(cls) -> tuple[str, ...]:
        return ("format", "keep", "reason", "overall", "rows")

    def as_text(self, paint: Paint, width: int | None = None) -> str:
        return view.result(self.effects, paint, path=str(self.path), width=width)


@result
class AbProposal(Result):
    """What an A/B will do, after every check that is possible without a change. Seconds and USD may be unknown."""

    FORMAT = "ab_proposal"
    proposal: ExperimentPlan
    arms: Arms

    def bounds(self, seconds: float | None, usd: float | None) -> Bounds:
        """Return the bounds of this A/B. Raise `errors.UsageError` for a cost where the price is unknown."""
        hint = "Use --duration instead."
        return bounds_of(seconds, usd, usd_per_hour=self.proposal.usd_per_hour, hint=hint)

    def values(self) -> dict[str, Any]:
        experiment = self.proposal.experiment
        return {
            "id": experiment.id,
            "deployment": experiment.deployment,
            "path": experiment.path,
            "a": experiment.a.value,
            "b": experiment.b.value,
            "turns": [side for _, side in self.proposal.turns],
            "restarts": self.proposal.restarts,
            "silent_seconds_least": self.proposal.least,
            "silent_seconds_most": self.proposal.most,
            "seconds": self.proposal.seconds,
            "usd": self.proposal.usd,
            "questions": experiment.questions,
            "diagnostics": to_json(self.proposal.diagnostics),
        }

    @classmethod
    def schema(cls) -> Mapping[str, Any]:
        seconds = ("silent_seconds_least", "silent_seconds_most", "seconds", "usd")
        keys = {
            **dict.fromkeys(("id", "deployment", "path", "a", "b", "questions"), str),
            "turns": tuple[str, ...],
            "restarts": int,
            **dict.fromkeys(seconds, float | None),
            "diagnostics": tuple[Diagnostic, ...],
        }
        return document("ab_proposal", keys)

    def as_text(self, paint: Paint, width: int | None = None) -> str:
        return view.proposal(self.proposal, paint)


def ab(
    workspace: Workspace,
    proposal: AbProposal,
    *,
    duration_seconds: Annotated[
        Seconds | None,
        Arg(
            "Start no further repeat after TIME, restarts included, e.g. 2h.",
            name="duration",
            agents=Agents("start no new step after this long"),
        ),
    ] = None,
    max_cost: Annotated[
        Usd | None, Arg("Start no further repeat once the slice has cost this much.", agents=None)
    ] = None,
    reset: bool = False,
    folder: str | Path = ".",
    listener: Listener | None = None,
) -> AbResult:
    """Deploy two values of one flag in turns, measure each, and compare them. The server restarts many times.

    `proposal` is what `ab_propose` returned, which shows what this does; a file of questions is in `folder`. No further
    repeat starts after `duration_seconds`, restarts included, or once the slice has cost `max_cost` USD meanwhile. With
    `reset`, a node that does not pick up a change is rebooted.

    At the end, or after an error, the deployment matches its profile again; after `stop`, apply the profile. Raise as
    `AbTests.run` and `AbTests.bring_back` do.
    """
    tests, callbacks = AbTests(workspace), listener or Listener()
    bounds = proposal.bounds(duration_seconds, max_cost)
    try:
        finished = tests.run(
            proposal.proposal.experiment,
            proposal.arms,
            bounds=bounds,
            usd_per_hour=proposal.proposal.usd_per_hour,
            reset=reset,
            folder=Path(folder),
            listener=callbacks,
        )
    finally:
        tests.bring_back(proposal.arms, reset=reset, on_event=callbacks.on_event)
    return AbResult(effects=tests.result(finished), path=tests.experiments.path(finished))


def ab_propose(
    workspace: Workspace,
    profile: AProfile,
    flag: Annotated[
        str | None,
        Arg(
            "With a profile: deploy these two values of one flag in turns, and compare them.",
            name="ab",
            metavar="PATH=A,B",
            resumed=True,
            agents=Agents("PATH=A,B: a key of the profile and two values, as serving.padding_gap=0,512", required=True),
        ),
    ] = None,
    options: Annotated[
        SweepOptions | None, ArgumentGroup(ClientCells, defaults=GRID, agents=GRID, resumed=True)
    ] = None,
    *,
    repeats: Annotated[
        Count | None,
        Ge(2),
        Le(20),
        Arg(
            f"With --ab: measure B this many times, and A once more (default {_REPEATS}).",
            resumed=True,
            agents=Agents("how often to measure B; A is measured once more", default=_REPEATS),
        ),
    ] = None,
    by: Measure | str | None = None,
    questions: Annotated[
        str | None,
        Arg(
            "Also compare answers: a JSONL file, `arithmetic` or `lm_eval:TASK` "
            "(default for a risky flag: arithmetic).",
            name="accuracy",
            metavar="QUESTIONS",
            resumed=True,
            agents=None,
        ),
    ] = None,
    count: Annotated[
        Count | None,
        Arg("Ask only the first N questions (default: all).", name="questions", resumed=True, agents=None),
    ] = None,
    no_accuracy: Annotated[
        bool, Arg("Ask no questions, even if the flag can change answers.", resumed=True, agents=None)
    ] = False,
    resume: Annotated[
        str | None, Arg("Continue an A/B: measure only the remaining repeats.", metavar="ID", agents=None)
    ] = None,
    folder: str | Path = ".",
) -> AbProposal:
    """Propose to compare two values of one flag in place: restarts, downtime, time, cost. Changes nothing.

    For a flag that may change answers, quality is measured too.

    `flag` is PATH=A,B, a key of the profile and two values. B is measured `repeats` times, and A once more. `by` is the
    measure that decides. `options` are as for `bench`. `questions` are `arithmetic`, `lm_eval:TASK`, or a JSONL file in
    `folder`; `count` limits them, `no_accuracy` asks none. `resume` is the id of an A/B whose remaining repeats are
    proposed; it keeps what it began with. `ab` runs the proposal.

    Raise `errors.UsageError` for arguments that do not go together, and as `AbTests.propose` does.
    """
    options = options or SweepOptions()
    unusable = [name for name in _FOR_ONE_RUN if getattr(options, name)]
    if unusable:
        raise UsageError(f"An A/B takes no {', '.join(unusable)}.", hint="Leave it out, or measure with `bench`.")
    tests = AbTests(workspace)
    if resume is not None:
        experiment = find_experiment(tests, resume, by=by)
        arms = make_arms(profile, ArmFlag(path=experiment.path, values=(experiment.a.value, experiment.b.value)))
        return AbProposal(proposal=tests.propose(experiment, arms), arms=arms)
    if flag is None:
        raise UsageError("An A/B needs a flag with two values.", hint="For example serving.padding_gap=0,512.")
    arms = make_arms(profile, parsed(flag))
    experiment = tests.experiment(
        arms,
        options.sweep(GRID),
        repeats=_repeats(repeats),
        by=None if by is None else Measure(by),
        driver=options.client,
        tokenizer=options.tokenizer or "",
        questions=_questions(questions, count, arms.path, no_accuracy=no_accuracy, folder=Path(folder)),
        count=count,
    )
    return AbProposal(proposal=tests.propose(experiment, arms), arms=arms)


def find_experiment(tests: AbTests, id_: str, *, by: Measure | str | None) -> Experiment:
    """Return a stored A/B. Raise `errors.UsageError` for an unknown id, and for another measure than it began with."""
    experiment = tests.experiments.find(id_)
    if by is not None and by != experiment.by:
        raise UsageError(
            f"{experiment.id} is decided by {experiment.by}, which was chosen before it began; its result has the "
            "other measures.",
            hint="Leave --by out.",
        )
    return experiment


def _repeats(repeats: int | None) -> int:
    if repeats is not None and repeats < FEWEST:
        raise UsageError(
            f"{repeats} repeat cannot separate a difference from noise.",
            hint=f"Use --repeats {FEWEST} or more; more repeats detect smaller differences.",
        )
    return repeats or _REPEATS


def _questions(source: str | None, count: int | None, path: str, *, no_accuracy: bool, folder: Path) -> str:
    """Return the questions for both arms, or "". They are read now, so that an error in them comes first."""
    if no_accuracy and source:
        raise UsageError("--accuracy and --no-accuracy cannot be used together.", hint="Leave one out.")
    if not source and not no_accuracy and is_risky(path):
        source = ARITHMETIC
    if not source:
        if count is not None:
            raise UsageError("--questions needs --accuracy.", hint="Try --accuracy arithmetic.")
        return ""
    request = QuestionRequest(source=source, folder=folder, count=count)
    if not request.lm_eval_task:
        read_questions(request)
    return source


def ab_result(
    workspace: Workspace, ab_id: Annotated[str, Arg(agents=Agents("an A/B's id, or a prefix of it"))]
) -> AbResult:
    """Show the result of an A/B: which value to keep and why, and each effect with its interval.

    `ab_id` is its id or the beginning of one. Raise `errors.UsageError` for an unknown id, `errors.RunUnreadable`.
    """
    tests = AbTests(workspace)
    experiment = tests.experiments.find(ab_id)
    return AbResult(effects=tests.result(experiment), path=tests.experiments.path(experiment))


def make_arms(profile: OneProfile, flag: ArmFlag) -> Arms:
    """Return the profile as it is written, and with each of the two values of the flag. Raise as `Profile.load`."""
    base = loading.profile(profile)
    if not isinstance(base, loading.Profile):
        raise TypeError("the profile was not loaded from a file or a text")
    a, b = (base.with_settings([f"{flag.path}={value}"]) for value in flag.values)
    return Arms(base=base, a=a, b=b, path=flag.path, values=flag.values)


OPERATIONS: Mapping[str, Operation] = {
    "ab": Operation(
        run=ab,
        also=arguments(ab_propose),
        results=(AbResult,),
        access=Access.END,
        title="Run an A/B",
        approval=ApprovalForm(
            question="Do you want to perform these actions?",
            otherwise="Review the list, then pass -auto-approve.",
        ),
    ),
    "ab_propose": Operation(
        run=ab_propose,
        results=(AbProposal,),
        title="Propose an A/B",
        tool="ab_propose",
    ),
    "ab_result": Operation(
        run=ab_result,
        results=(AbResult,),
        access=Access.OFFLINE,
        title="Show an A/B",
        tool="ab_result",
    ),
}
