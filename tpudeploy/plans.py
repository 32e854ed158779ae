"""Plan and Report as the library returns them: they print themselves, and a plan is saved to a file and loaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Self

from tpudeploy.adapters import plan_files
from tpudeploy.domain.excerpt import describe_diagnostics
from tpudeploy.domain.plan import Action, Mode
from tpudeploy.domain.plan import Plan as Planned
from tpudeploy.domain.report import RunReport as Reported
from tpudeploy.planning import planfile
from tpudeploy.planning.plan_print import plan_print
from tpudeploy.results import Result
from tpudeploy.schemas import documents
from tpudeploy.text.paint import Paint
from tpudeploy.views import plan as plan_view
from tpudeploy.views import size as size_view
from tpudeploy.views import status as status_view


class Plan(Planned, Result):
    """What would change, and why. A saved plan can be read and applied exactly as it is on another machine."""

    __slots__ = ()
    __repr__ = Result.__repr__
    FORMAT = "plan"
    ON_ONE_LINE = True
    IS_DOCUMENT = False

    @classmethod
    def from_domain(cls, plan: Planned, *, backend: str | None = None) -> Self:
        """Return a domain plan as this class. `backend` is where its states are, unless the plan has one itself."""
        values = {field.name: getattr(plan, field.name) for field in fields(plan)}
        return cls(**values if backend is None else {**values, "backend": backend})

    @property
    def fingerprint(self) -> str:
        """Return the hash of the plan's effects, which an approval names. Plans with equal effects have equal ones."""
        return plan_print(self)

    def to_dict(self) -> dict[str, object]:
        """Return the document that `plan --json` and `show --json` print."""
        return {**Planned.to_dict(self), "fingerprint": self.fingerprint}

    @classmethod
    def schema(cls) -> Mapping[str, Any]:
        return documents.plan()

    def as_text(self, paint: Paint, width: int | None = None) -> str:
        texts = [plan_view.plan(self, paint, width)]
        deployments = [goal.deployment for goal in self.goals if goal.deployment and self.mode is Mode.NORMAL]
        if deployments:
            texts.append(paint.dim("\n".join(["", *(size_view.summary(each) for each in deployments)])))
        return "\n".join(texts)

    def messages(self, paint: Paint) -> str:
        return f"\n{describe_diagnostics(self.diagnostics, paint.styled)}" if self.diagnostics else ""

    @property
    def summary(self) -> str:
        changes = [change for change in self.changes if change.action is not Action.NO_OP]
        return plan_view.summary(changes) if changes else "no changes"

    def save(self, path: str | Path) -> None:
        """Write the plan to a file, completely or not at all. Raise `errors.UsageError` if another file is there."""
        plan_files.write(Path(path), planfile.dumps(self), is_ours=planfile.is_plan)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Return a saved plan. Raise `errors.PlanUnreadable` or `errors.PlanTooNew`."""
        return cls.from_domain(planfile.loads(plan_files.read(Path(path)), source=str(path)))


class Report(Reported, Result):
    """What an apply did: the outcome of each change, and the endpoints."""

    __slots__ = ()
    __repr__ = Result.__repr__
    FORMAT = "report"
    IS_DOCUMENT = False

    @classmethod
    def from_domain(cls, report: Reported) -> Self:
        """Return a domain report as this class."""
        return cls(**{field.name: getattr(report, field.name) for field in fields(report)})

    def to_dict(self) -> dict[str, object]:
        """Return the report that `apply --json` prints last."""
        return Reported.to_dict(self)

    @property
    def exit_code(self) -> int:
        return 0 if self.error is None else self.error.exit_code

    def as_text(self, paint: Paint, width: int | None = None) -> str:
        del width
        lines = [self.summary, *([status_view.summary(self, paint)] if len(self.deployments) > 1 else [])]
        lines += [f'{endpoint.address} endpoint = "{endpoint.url}"' for endpoint in self.endpoints]
        return "\n".join(lines)


def is_saved(path: str | Path) -> bool:
    """Return whether a file begins as a saved plan does; False for a file that cannot be read."""
    return planfile.is_plan(plan_files.beginning(Path(path)))
