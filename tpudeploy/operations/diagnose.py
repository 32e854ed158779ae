"""The served model as a colleague: it reads what was gathered of a boot that failed, and drafts what it makes of it."""

from __future__ import annotations

from collections.abc import Mapping

from tpudeploy.domain.bootlog import Reading
from tpudeploy.domain.budget import HbmBudget
from tpudeploy.domain.draft import Draft, NoDraft
from tpudeploy.domain.errors import CloudError, QueryFailed
from tpudeploy.loading import Profile, sized
from tpudeploy.workspace import Workspace

_ANSWER = 600  # tokens, and of a model that reads little a third of it
_MARGIN = 200  # tokens that a chat template may add
_PER_TOKEN = 2  # characters, at least: a log is denser than prose
_MOST = 40_000  # characters: what says more hides the cause
_LEAST = 800  # characters: below, there is no room beside the question
_UNKNOWN = 4096  # tokens that a model reads of whose length nothing is known


def draft(
    workspace: Workspace, logs: Mapping[str, str], readings: Mapping[str, Reading], *, of: Profile | None, by: Profile
) -> Draft | NoDraft:
    """What the model that `by` serves says of the first of these logs whose server did not come up.

    Never raises for an endpoint that does not answer: the finding stands without it.
    """
    from tpudeploy.boot_log.evidence import evidence

    name = next((name for name, reading in readings.items() if not reading.is_serving), None)
    if name is None:
        return NoDraft(because="Nothing failed: there is nothing to draft on.")
    known = {} if of is None else sized(of).attributes
    length = _length(by)
    tokens = min(_ANSWER, length // 3)
    characters = min(_MOST, (length - tokens - _MARGIN) * _PER_TOKEN)
    if characters < _LEAST:
        return NoDraft(
            because=f"{by.spec.name} reads {length} tokens: too few for the evidence.",
            hint="Ask one that reads more: --with PROFILE.",
        )
    text = evidence(readings[name], logs[name], known, characters=characters)
    try:
        answer = workspace.ask(by, text, max_tokens=tokens)
    except (QueryFailed, CloudError) as error:
        is_own = of is not None and of.spec.name == by.spec.name
        return NoDraft(because=error.message, hint="Ask one that serves: --with PROFILE." if is_own else error.hint)
    return Draft(log=name, by=by.spec.name, model=str(by.spec.model.id), text=answer.text.strip())


def _length(by: Profile) -> int:
    """Tokens that it reads and writes together, as its profile declares it."""
    budget = sized(by).budget
    return budget.engine.max_model_len if isinstance(budget, HbmBudget) else _UNKNOWN
