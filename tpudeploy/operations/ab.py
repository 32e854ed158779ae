"""Compare two values of one flag: deploy them in turns on the slice that serves, and measure each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tpudeploy.operations.bench import WINDOW_SECONDS, grid_arguments
from tpudeploy.operations.declaration import Access, Argument, Kind, Operation, profile
from tpudeploy.results import Result, document, result

if TYPE_CHECKING:
    from pathlib import Path

    from tpudeploy.ab_test import result as ab_test
    from tpudeploy.ab_test.arms import Flag
    from tpudeploy.ab_test.experiment import Experiment
    from tpudeploy.ab_test.turns import Proposal
    from tpudeploy.loading import OneProfile
    from tpudeploy.operations.ab_test import AbTests, Arms, Listener
    from tpudeploy.text.paint import Paint
    from tpudeploy.workspace import Workspace

CONCURRENCY, CONTEXT, OUTPUT = (1, 64), (1024,), (128,)  # few cells: each costs its window in every repeat


@result
class AbResult(Result):
    """The result of an A/B: which value to keep and why, and each effect with its interval."""

    FORMAT = "ab"
    effects: ab_test.Result
    path: Path  # of the file that keeps it

    @property
    def exit_code(self) -> int:
        return 13 if self.effects.is_refused else 0

    def values(self) -> dict[str, Any]:
        return self.effects.to_dict()

    @classmethod
    def schema(cls) -> Mapping[str, Any]:
        from tpudeploy.ab_test.result import Result as Effects

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
        from tpudeploy.ab_test.view import result as view

        return view(self.effects, paint, path=str(self.path), width=width)


@result
class AbProposal(Result):
    """What an A/B will do, after every check that is possible without a change. Seconds and USD may be unknown."""

    FORMAT = "ab_proposal"
    proposal: Proposal
    arms: Arms

    def values(self) -> dict[str, Any]:
        from tpudeploy.domain.serialization import to_json

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
        from tpudeploy.domain.diagnostics import Diagnostic

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
        from tpudeploy.ab_test.view import proposal as view

        del width
        return view(self.proposal, paint)


def ab(
    workspace: Workspace,
    profile: OneProfile,
    flag: str,
    *,
    repeats: int = 3,
    concurrency: Sequence[int] = CONCURRENCY,
    context: Sequence[int] = CONTEXT,
    output: Sequence[int] = OUTPUT,
    window_seconds: float = 60.0,
    duration_seconds: float | None = None,
    reset: bool = False,
    listener: Listener | None = None,
) -> AbResult:
    """Deploy two values of one flag in turns, measure each, and compare them. The server restarts many times.

    `flag` is PATH=A,B, a key of the profile and two values. A is measured `repeats` times and once more. At the end, or
    after an error, the deployment matches its profile again. With `reset`, a node that does not pick up a change is
    rebooted. Answers are not compared. Raise as `AbTests.propose` and `AbTests.run` do.
    """
    from tpudeploy.ab_test.arms import parsed
    from tpudeploy.domain.benchmark import Bounds
    from tpudeploy.operations.ab_test import AbTests, Listener

    tests, callbacks = AbTests(workspace), listener or Listener()
    arms = make_arms(profile, parsed(flag))
    experiment = _experiment(tests, arms, (concurrency, context, output), window_seconds, repeats=repeats)
    proposal = tests.propose(experiment, arms)
    try:
        finished = tests.run(
            experiment,
            arms,
            bounds=Bounds(seconds=duration_seconds),
            usd_per_hour=proposal.usd_per_hour,
            reset=reset,
            listener=callbacks,
        )
    finally:
        tests.bring_back(arms, reset=reset, on_event=callbacks.on_event)
    return AbResult(effects=tests.result(finished), path=tests.experiments.path(finished))


def ab_propose(
    workspace: Workspace,
    profile: OneProfile,
    flag: str,
    *,
    repeats: int = 3,
    concurrency: Sequence[int] = CONCURRENCY,
    context: Sequence[int] = CONTEXT,
    output: Sequence[int] = OUTPUT,
    window_seconds: float = 60.0,
) -> AbProposal:
    """Propose to compare two values of one flag in place: restarts, downtime, time, cost. Changes nothing.

    For a flag that may change answers, quality is measured too. Raise as `AbTests.propose` does.
    """
    from tpudeploy.ab_test.arms import is_risky, parsed
    from tpudeploy.accuracy.questions import ARITHMETIC
    from tpudeploy.operations.ab_test import AbTests

    tests, arms = AbTests(workspace), make_arms(profile, parsed(flag))
    questions = ARITHMETIC if is_risky(arms.path) else ""
    axes = (concurrency, context, output)
    experiment = _experiment(tests, arms, axes, window_seconds, repeats=repeats, questions=questions)
    return AbProposal(proposal=tests.propose(experiment, arms), arms=arms)


def ab_result(workspace: Workspace, ab_id: str) -> AbResult:
    """Show the result of an A/B: which value to keep and why, and each effect with its interval.

    `ab_id` is its id or the beginning of one. Raise `errors.UsageError` for an unknown id, `errors.RunUnreadable`.
    """
    from tpudeploy.operations.ab_test import AbTests

    tests = AbTests(workspace)
    experiment = tests.experiments.find(ab_id)
    return AbResult(effects=tests.result(experiment), path=tests.experiments.path(experiment))


def make_arms(profile: OneProfile, flag: Flag) -> Arms:
    """Return the profile as it is written, and with each of the two values of the flag. Raise as `Profile.load`."""
    from tpudeploy import loading
    from tpudeploy.operations.ab_test import Arms

    base = loading.profile(profile)
    if not isinstance(base, loading.Profile):
        raise TypeError("the profile was not loaded from a file or a text")
    a, b = (base.with_settings([f"{flag.path}={value}"]) for value in flag.values)
    return Arms(base=base, a=a, b=b, path=flag.path, values=flag.values)


def _experiment(
    tests: AbTests,
    arms: Arms,
    axes: tuple[Sequence[int], Sequence[int], Sequence[int]],
    window_seconds: float,
    *,
    repeats: int,
    questions: str = "",
) -> Experiment:
    from tpudeploy.benchmark.cells import grid
    from tpudeploy.domain.benchmark import Sweep

    sweep = Sweep(points=grid(*(sorted(set(axis)) for axis in axes)), window_seconds=window_seconds)
    return tests.experiment(arms, sweep, repeats=repeats, questions=questions)


_OF_EACH = (
    profile(),
    Argument(
        name="flag",
        is_required=True,
        agents="PATH=A,B: a key of the profile and two values, as serving.padding_gap=0,512",
    ),
    Argument(
        name="repeats",
        kind=Kind.COUNT,
        default=3,
        least=2,
        most=20,
        agents="how often to measure B; A is measured once more",
    ),
    *grid_arguments(CONCURRENCY, CONTEXT, OUTPUT),
    WINDOW_SECONDS,
)
OPERATIONS: Mapping[str, Operation] = {
    "ab": Operation(
        run=ab,
        arguments=(
            *_OF_EACH,
            Argument(name="duration_seconds", kind=Kind.SECONDS, agents="start no new step after this long"),
        ),
        results=(AbResult,),
        access=Access.END,
        title="Run an A/B",
    ),
    "ab_propose": Operation(
        run=ab_propose, arguments=_OF_EACH, results=(AbProposal,), title="Propose an A/B", tool="ab_propose"
    ),
    "ab_result": Operation(
        run=ab_result,
        arguments=(Argument(name="ab_id", is_required=True, agents="an A/B's id, or a prefix of it"),),
        results=(AbResult,),
        access=Access.OFFLINE,
        title="Show an A/B",
        tool="ab_result",
    ),
}
