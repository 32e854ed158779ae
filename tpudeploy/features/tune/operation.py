"""Find the flags of a profile that suit a load best, on its slice, below a ceiling in dollars.

The result is an overlay with only what differs. Settings race against each other in place; the winner is then compared
with the profile by measurements of its own. The same command continues a tuning that was interrupted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from tpudeploy import loading
from tpudeploy.domain import exits
from tpudeploy.domain.events import Event
from tpudeploy.domain.serialization import to_json
from tpudeploy.features.benchmark.bench_operation import Cells, Grid, SweepOptions
from tpudeploy.features.benchmark.comparison import Measure
from tpudeploy.features.tune import view
from tpudeploy.features.tune.overlay import overlay
from tpudeploy.features.tune.search import Axis, RaceEvidence, Trial
from tpudeploy.features.tune.service import TuneListener, TuneRequest, Tunings
from tpudeploy.features.tune.space import DroppedAxis
from tpudeploy.features.tune.tuning import TuneLimits, Tuning, cost_usd
from tpudeploy.features.tune.view import markdown
from tpudeploy.loading import OneProfile, Profile
from tpudeploy.operations.arguments import Agents, AProfile, Arg, ArgumentGroup, Count, Seconds, Usd
from tpudeploy.operations.declaration import Access, ApprovalForm, Operation
from tpudeploy.operations.written_files import write_files
from tpudeploy.results import Result, document, result
from tpudeploy.text.paint import Paint
from tpudeploy.workspace import Workspace

GRID = Grid(concurrency=(64,), context=(1024,), output=(128,))
Objective: TypeAlias = Literal["tokens-per-usd", "output", "ttft", "tpot"]


@result
class Tuned(Result):
    """A tuning: before it starts what it will do, then the overlay, the claim and its evidence."""

    FORMAT = "tune"
    tuning: Tuning
    path: Path  # of the file that keeps it

    @property
    def overlay(self) -> str:
        """The settings to use, as YAML with comments."""
        return overlay(self.tuning)

    @property
    def markdown(self) -> str:
        """The body of a pull request."""
        return markdown(self.tuning, self.overlay)

    @property
    def exit_code(self) -> int:
        return exits.SUCCESS

    def values(self) -> dict[str, Any]:
        tuning, verdict = self.tuning, self.tuning.verdict
        effect = None if verdict is None else verdict.effect
        return {
            "id": tuning.id,
            "deployment": tuning.deployment,
            "by": tuning.by.value,
            "finding": None if verdict is None else verdict.finding.value,
            "stop": None if verdict is None else verdict.stop.value,
            "settings": {} if verdict is None else dict(verdict.winner),
            "change": None if effect is None else effect.change,
            "low": None if effect is None else effect.low,
            "high": None if effect is None else effect.high,
            "evidence": [] if verdict is None else to_json(verdict.evidence),
            "dropped": to_json(tuning.dropped),
            "axes": to_json(tuning.axes),
            "trials": to_json(tuning.trials),
            "seconds": tuning.seconds,
            "usd": cost_usd(tuning),
            "usd_per_hour": tuning.usd_per_hour,
            "max_cost": tuning.budget.limit,
            "quality_losses": [f"{path}={value}" for path, value in tuning.quality_losses],
            "is_emulated": tuning.is_emulated,
            "overlay": self.overlay,
        }

    @classmethod
    def schema(cls) -> Mapping[str, Any]:
        keys = {
            **dict.fromkeys(("id", "deployment", "by", "overlay"), str),
            "finding": {
                "type": ["string", "null"],
                "description": "whether the settings are better; null: not finished",
            },
            "stop": str | None,
            "settings": {
                "type": "object",
                "description": "path to value of the winner, also where it was not shown to be better",
            },
            "change": {
                "type": ["number", "null"],
                "description": "the winner's objective to the profile's less 1, of a latency its inverse; `low` and "
                "`high` are its 95 % interval",
            },
            **dict.fromkeys(("low", "high", "max_cost", "usd_per_hour"), float | None),
            "evidence": tuple[RaceEvidence, ...],
            "dropped": tuple[DroppedAxis, ...],
            "axes": tuple[Axis, ...],
            "trials": tuple[Trial, ...],
            **dict.fromkeys(("seconds", "usd"), float),
            "quality_losses": tuple[str, ...],
            "is_emulated": bool,
        }
        return document("tune", keys)

    def as_text(self, paint: Paint, width: int | None = None) -> str:
        if self.tuning.verdict is None:
            return view.proposal(self.tuning, paint)
        return view.result(self.tuning, paint, path=str(self.path), width=width)


def tune(
    workspace: Workspace,
    profile: AProfile,
    options: Annotated[SweepOptions | None, ArgumentGroup(Cells, defaults=GRID, agents=GRID)] = None,
    *,
    by: Annotated[
        Objective | None, Arg("The objective: tokens-per-usd (default), output, ttft or tpot.", name="objective")
    ] = None,
    max_cost: Annotated[
        Usd | None,
        Arg(
            "Start no measurement that could make the slice cost more than this.",
            agents=Agents("USD that the slice may cost meanwhile", required=True),
        ),
    ] = None,
    limit_ttft: Annotated[
        Seconds | None, Arg("Use only settings whose p99 time to first token is within TIME, e.g. 500ms.")
    ] = None,
    limit_tpot: Annotated[
        Seconds | None, Arg("Use only settings whose time per output token is within TIME, e.g. 50ms.")
    ] = None,
    axes: Annotated[
        Sequence[str],
        Arg(
            "Vary this key instead of the default ones (repeatable).",
            name="try",
            metavar="PATH=A,B",
            agents=Agents("PATH=A,B: keys to vary instead of the default ones"),
        ),
    ] = (),
    questions: Annotated[
        str | None,
        Arg(
            "Use no settings that lose quality: a JSONL file, `arithmetic` or `lm_eval:TASK`.",
            name="accuracy",
            metavar="QUESTIONS",
            agents=Agents("`arithmetic`: use no settings that lose quality in it"),
        ),
    ] = None,
    count: Annotated[Count | None, Arg("Ask only the first N questions (default: all).", name="questions")] = None,
    out: Annotated[Path | None, Arg("Write the overlay to FILE.", metavar="FILE", agents=None)] = None,
    pull_request: Annotated[
        Path | None, Arg("Write the body of a pull request, as Markdown, to FILE.", metavar="FILE", agents=None)
    ] = None,
    dry_run: Annotated[bool, Arg("Show what would be measured and what it can cost, and stop.", agents=None)] = False,
    reset: bool = False,
    listener: TuneListener | None = None,
    on_event: Callable[[Event], None] | None = None,
) -> Tuned:
    """Find the settings of a profile that are best for a load, in place. The server restarts for each measurement.

    `by` is the objective (tokens-per-usd, output, ttft or tpot), `limit_ttft` and `limit_tpot` the seconds that the p99
    of the time to first token and the time per output token must keep. `axes` are PATH=A,B… to vary, not the default
    ones. `options` are as for `bench`. With `questions`, the winner must not lose quality. No measurement starts that
    could make the slice cost more than `max_cost` USD. `out` and `pull_request` are files for the overlay and for
    Markdown. With `dry_run`, return what would be done.

    A deployment that does not serve is requested, and deleted at the end; another one serves as its profile says then.
    The same arguments continue a tuning that was interrupted, and measure nothing twice.

    Raise `errors.UsageError` where nothing can be tuned, `errors.CheckFailed` for a profile that cannot start, and as
    `apply` and `bench` do.
    """
    tunings, base, request = prepared(
        workspace,
        profile,
        options,
        by=by,
        max_cost=max_cost,
        limits=(limit_ttft, limit_tpot),
        axes=axes,
        questions=questions,
        count=count,
    )
    if dry_run:
        tuning = tunings.tuning(base, request)
        return Tuned(tuning=replace(tuning, verdict=None), path=tunings.store.path(tuning))
    callbacks = listener or TuneListener(on_event=on_event or (lambda _event: None))
    tuning = tunings.tune(base, request, reset=reset, listener=callbacks)
    finished = Tuned(tuning=tuning, path=tunings.store.path(tuning))
    _write(workspace, finished, out, pull_request)
    return finished


def tune_result(
    workspace: Workspace, tune_id: Annotated[str, Arg(agents=Agents("a tuning's id, or a prefix of it"))]
) -> Tuned:
    """Show the result of a tuning: the overlay, the claim with its interval, and the evidence.

    `tune_id` is its id or the beginning of one. Raise `errors.UsageError` for an unknown id, `errors.RunUnreadable`.
    """
    tunings = Tunings(workspace)
    tuning = tunings.store.find(tune_id)
    return Tuned(tuning=tuning, path=tunings.store.path(tuning))


def prepared(
    workspace: Workspace,
    profile: OneProfile,
    options: SweepOptions | None,
    *,
    by: Measure | str | None,
    max_cost: float | None,
    limits: tuple[float | None, float | None],
    axes: Sequence[str],
    questions: str | None,
    count: int | None,
) -> tuple[Tunings, Profile, TuneRequest]:
    base = loading.profile(profile)
    if not isinstance(base, loading.Profile):
        raise TypeError("the profile was not loaded from a file or a text")
    request = TuneRequest(
        sweep=(options or SweepOptions()).sweep(GRID),
        by=Measure(by or Measure.TOKENS_PER_USD),
        limits=TuneLimits(ttft_p99_seconds=limits[0], tpot_seconds=limits[1]),
        max_cost=max_cost,
        axes=tuple(axes),
        questions=questions or "",
        count=count,
    )
    return Tunings(workspace), base, request


def _write(workspace: Workspace, tuned: Tuned, out: str | Path | None, pull_request: str | Path | None) -> None:
    texts = {out: tuned.overlay, pull_request: tuned.markdown}
    files = {Path(path): text for path, text in texts.items() if path is not None}
    if files:
        write_files(files, here=workspace.adapters.folder)


OPERATIONS: Mapping[str, Operation] = {
    "tune": Operation(
        run=tune,
        results=(Tuned,),
        access=Access.END,
        title="Tune",
        options=("lock_timeout", "backend"),
        takes_events=True,
        approval=ApprovalForm(
            question="Do you want to start this tuning?",
            otherwise="Review the list, then pass -auto-approve.",
        ),
    ),
    "tune_result": Operation(
        run=tune_result,
        results=(Tuned,),
        access=Access.OFFLINE,
        title="Show a tuning",
        tool="tune_result",
    ),
}
