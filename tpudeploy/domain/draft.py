"""Draft: a served model's explanation of a failed boot. It is unchecked, and only shown beside findings."""

from __future__ import annotations

from tpudeploy.domain.frozen import frozen


@frozen
class Draft:
    """An explanation of one log. `by` is the deployment that wrote it, `model` its model. It is for display only."""

    log: str
    by: str
    model: str
    text: str

    def to_dict(self) -> dict[str, object]:
        return {"log": self.log, "by": self.by, "model": self.model, "is_checked": False, "text": self.text}


@frozen
class NoDraft:
    """The reason why there is no explanation, and the remedy."""

    because: str
    hint: str = ""

    def to_dict(self) -> dict[str, object]:
        return {"because": self.because, "hint": self.hint}
