"""Let a served model draft an explanation of a failed boot from its evidence."""

from __future__ import annotations

from collections.abc import Mapping

from tpudeploy.domain.boot_log import Draft, NoDraft, Reading
from tpudeploy.domain.budget import HbmBudget
from tpudeploy.domain.errors import CloudError, QueryFailed
from tpudeploy.loading import Profile, sized
from tpudeploy.workspace import Workspace

_ANSWER = 600  # tokens, and at most a third of the model's length
_MARGIN = 200  # tokens that a chat template may add
_PER_TOKEN = 2  # characters, at least: a log is denser than prose
_MOST = 40_000  # characters: more text hides the cause
_LEAST = 800  # characters: with fewer, there is no room beside the question
_UNKNOWN = 4096  # tokens of a model of unknown length


def draft(
    workspace: Workspace,
    logs: Mapping[str, str],
    readings: Mapping[str, Reading],
    *,
    profile: Profile | None,
    author: Profile,
) -> Draft | NoDraft:
    """Return what the model of `author` writes about the first of these logs whose server did not come up.

    `profile` is that of the logs. Never raise for an endpoint that does not answer: the findings are valid without it.
    """
    from tpudeploy.boot_log.evidence import evidence

    name = next((name for name, reading in readings.items() if not reading.is_serving), None)
    if name is None:
        return NoDraft(because="Nothing failed: there is nothing to draft on.")
    budget = sized(author).budget
    length = budget.engine.max_model_len if isinstance(budget, HbmBudget) else _UNKNOWN
    tokens = min(_ANSWER, length // 3)
    characters = min(_MOST, (length - tokens - _MARGIN) * _PER_TOKEN)
    if characters < _LEAST:
        return NoDraft(
            because=f"{author.spec.name} reads {length} tokens: too few for the evidence.",
            hint="Ask one that reads more: --with PROFILE.",
        )
    attributes = {} if profile is None else sized(profile).attributes
    text = evidence(readings[name], logs[name], attributes, characters=characters)
    try:
        answer = workspace.ask(author, text, max_tokens=tokens)
    except (QueryFailed, CloudError) as error:
        is_own = profile is not None and profile.spec.name == author.spec.name
        return NoDraft(because=error.message, hint="Ask one that serves: --with PROFILE." if is_own else error.hint)
    return Draft(log=name, by=author.spec.name, model=str(author.spec.model.id), text=answer.text.strip())
