"""Format the result of an apply as a comment on the merged pull request."""

from __future__ import annotations

from collections.abc import Sequence

from tpudeploy.domain.errors import TpudeployError
from tpudeploy.domain.plan import Plan
from tpudeploy.views.fenced import prose
from tpudeploy.views.fitted import Part, fit
from tpudeploy.views.markdown import COMMENT_BYTES, changes


def result(words: str, errors: Sequence[TpudeployError]) -> str:
    head = f"### tpudeploy apply · {prose(words)}"
    parts = [Part(text=head), *(Part(text=_error(e)) for e in errors)]
    return fit(parts, COMMENT_BYTES).text


def interruption(error: TpudeployError, plan: Plan) -> str:
    """Return the error with the plan that was not applied. Without a marker, the comment approves nothing."""
    parts = [Part(text="### tpudeploy apply · stopped"), Part(text=_error(error)), *changes(plan)]
    return fit(parts, COMMENT_BYTES).text


def _error(error: TpudeployError) -> str:
    return "\\\n".join(prose(line) for line in (error.message, *error.hint.splitlines()))
