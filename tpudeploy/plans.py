"""Plan, as the library gives it: with a file to be saved to, and to be loaded from."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Self

from tpudeploy.domain.plan import Plan as Planned


class Plan(Planned):
    """What would change, and why. Saved, it is what somebody else can read, and apply exactly as it stands."""

    __slots__ = ()

    @classmethod
    def of(cls, planned: Planned, *, backend: str | None = None) -> Self:
        """`backend` is where its states lie, unless it says so itself."""
        known = {field.name: getattr(planned, field.name) for field in fields(planned)}
        return cls(**known if backend is None else {**known, "backend": backend})

    @property
    def fingerprint(self) -> str:
        """The hash of its effects: what an approval holds. Two plans that do the same have the same one."""
        from tpudeploy.planning.approval import plan_print

        return plan_print(self)

    def to_dict(self) -> dict[str, object]:
        """The document that `plan --json` and `show --json` print."""
        return {**super().to_dict(), "fingerprint": self.fingerprint}

    def save(self, path: str | Path) -> None:
        """Write it whole or not at all. Raise `errors.UsageError` for a file that holds something else than a plan."""
        from tpudeploy.adapters import plan_files
        from tpudeploy.planning import planfile

        plan_files.write(Path(path), planfile.dumps(self), is_ours=planfile.is_plan)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Raise `errors.PlanUnreadable` or `errors.PlanTooNew`."""
        from tpudeploy.adapters import plan_files
        from tpudeploy.planning import planfile

        return cls.of(planfile.loads(plan_files.read(Path(path)), source=str(path)))


def is_saved(path: str | Path) -> bool:
    """Whether the file begins as a saved plan does. What cannot be read is none."""
    from tpudeploy.adapters import plan_files
    from tpudeploy.planning.planfile import is_plan

    return is_plan(plan_files.beginning(Path(path)))
