"""What an apply came to, as a comment on the pull request that was merged."""

from __future__ import annotations

from collections.abc import Sequence

from tpudeploy.domain.errors import TpudeployError
from tpudeploy.domain.plan import Plan
from tpudeploy.views.fenced import prose
from tpudeploy.views.fitted import Part, fitted
from tpudeploy.views.markdown import COMMENT_BYTES, changes


def result(words: str, found: Sequence[TpudeployError]) -> str:
    head = f"### tpudeploy apply · {prose(words)}"
    parts = [Part(text=head), *(Part(text=_error(e)) for e in found)]
    return fitted(parts, COMMENT_BYTES).text


def stopped(error: TpudeployError, planned: Plan) -> str:
    """With the plan that would have been carried out; no marker makes it one that is approved."""
    parts = [Part(text="### tpudeploy apply · stopped"), Part(text=_error(error)), *changes(planned)]
    return fitted(parts, COMMENT_BYTES).text


def _error(error: TpudeployError) -> str:
    return "\\\n".join(prose(line) for line in (error.message, *error.hint.splitlines()))
