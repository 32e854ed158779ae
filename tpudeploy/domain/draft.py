"""Draft: what a served model makes of a boot that failed. Nobody has checked it: it stands beside findings only."""

from __future__ import annotations

from tpudeploy.domain.frozen import frozen


@frozen
class Draft:
    """Of the log of that name. `by` is the deployment that was asked, `model` what it serves. For display only."""

    log: str
    by: str
    model: str
    text: str

    def to_dict(self) -> dict[str, object]:
        return {"log": self.log, "by": self.by, "model": self.model, "is_checked": False, "text": self.text}


@frozen
class NoDraft:
    """Why there is none, and what to do."""

    because: str
    hint: str = ""

    def to_dict(self) -> dict[str, object]:
        return {"because": self.because, "hint": self.hint}
