"""Compare two values of one flag: deploy them in turns on the slice that serves, and measure each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tpudeploy.operations.declaration import Access, Argument, Kind, Operation, profile
from tpudeploy.results import Result, result

if TYPE_CHECKING:
    from pathlib import Path

    from tpudeploy.ab_test import result as ab_test
    from tpudeploy.loading import OneProfile
    from tpudeploy.operations.ab_test import Listener
    from tpudeploy.text.paint import Paint
    from tpudeploy.workspace import Workspace


@result
class AbResult(Result):
    """The result of an A/B: which value to keep and why, and each effect with its interval."""

    FORMAT = "ab"
    IS_DOCUMENT = False  # its schema is in schemas/documents.py
    effects: ab_test.Result
    path: Path  # of the file that keeps it

    @property
    def exit_code(self) -> int:
        return 13 if self.effects.is_refused else 0

    def values(self) -> dict[str, Any]:
        return self.effects.to_dict()

    def as_text(self, paint: Paint, width: int | None = None) -> str:
        from tpudeploy.ab_test.view import result as view

        return view(self.effects, paint, path=str(self.path), width=width)


def ab(
    workspace: Workspace,
    profile: OneProfile,
    flag: str,
    *,
    repeats: int = 3,
    concurrency: Sequence[int] = (1, 64),
    context: Sequence[int] = (1024,),
    output: Sequence[int] = (128,),
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
    from tpudeploy import loading
    from tpudeploy.ab_test.arms import parsed
    from tpudeploy.benchmark.cells import grid
    from tpudeploy.domain.benchmark import Bounds, Sweep
    from tpudeploy.operations.ab_test import AbTests, Arms, Listener

    base = loading.profile(profile)
    if not isinstance(base, loading.Profile):
        raise TypeError("the profile was not loaded from a file or a text")
    parsed_flag = parsed(flag)
    a, b = (base.with_settings([f"{parsed_flag.path}={value}"]) for value in parsed_flag.values)
    arms = Arms(base=base, a=a, b=b, path=parsed_flag.path, values=parsed_flag.values)
    points = grid(*(sorted(set(axis)) for axis in (concurrency, context, output)))
    tests, callbacks = AbTests(workspace), listener or Listener()
    experiment = tests.experiment(arms, Sweep(points=points, window_seconds=window_seconds), repeats=repeats)
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


OPERATION = Operation(
    run=ab,
    arguments=(
        profile(),
        Argument(name="flag", is_required=True, agents="PATH=A,B: a key of the profile and two values"),
        Argument(name="repeats", kind=Kind.COUNT, default=3, agents="how often to measure B; A is measured once more"),
        Argument(name="window_seconds", kind=Kind.SECONDS, default=60.0, agents="the longest time to measure a cell"),
        Argument(name="duration_seconds", kind=Kind.SECONDS, agents="start no new step after this long"),
    ),
    results=(AbResult,),
    access=Access.END,
    title="Run an A/B",
)
