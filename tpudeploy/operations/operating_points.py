"""Show the operating points of a benchmark run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tpudeploy.domain.recommendation import OperatingPoint
from tpudeploy.operations.declaration import Access, Argument, Operation
from tpudeploy.results import Result, document, result

if TYPE_CHECKING:
    from tpudeploy.domain.benchmark import Run
    from tpudeploy.text.paint import Paint
    from tpudeploy.workspace import Workspace


@result
class OperatingPoints(Result):
    """The operating points of a run, by the tokens of a prompt and of an answer."""

    FORMAT = "operating"
    run: Run
    points: Mapping[tuple[int | None, int | None], Sequence[OperatingPoint]]

    def values(self) -> dict[str, Any]:
        from tpudeploy.domain.serialization import to_json

        loads = [
            {"context_tokens": context, "output_tokens": output, "points": [to_json(point) for point in points]}
            for (context, output), points in self.points.items()
        ]
        return {"run": self.run.id, "emulated": self.run.subject.is_emulated, "loads": loads}

    @classmethod
    def schema(cls) -> Mapping[str, Any]:
        load = {"context_tokens": int | None, "output_tokens": int | None, "points": tuple[OperatingPoint, ...]}
        return document("operating", {"emulated": bool, "run": str, "loads": [load]})

    def as_text(self, paint: Paint, width: int | None = None) -> str:
        from tpudeploy.benchmark.operating_view import operating as view

        del width
        return view(self.run, self.points, paint)


def operating_points(workspace: Workspace, run_id: str) -> OperatingPoints:
    """Show where a run is fastest, cheapest and balanced, for each load. Raise `errors.UsageError` for no such run."""
    from tpudeploy.benchmark.operating import operating_points as points_of

    run = workspace.find_run(run_id)
    return OperatingPoints(run=run, points=points_of(run))


OPERATION = Operation(
    run=operating_points,
    arguments=(Argument(name="run_id", is_required=True, positional=True, agents="its id, or a prefix of it"),),
    results=(OperatingPoints,),
    access=Access.OFFLINE,
)
