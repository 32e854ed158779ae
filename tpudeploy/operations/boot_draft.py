"""The draft that a served model writes, from redacted evidence: about a boot log, or any other question."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tpudeploy.boot_log.evidence import evidence
from tpudeploy.boot_log.reading import Draft, NoDraft
from tpudeploy.config.profile import Profile
from tpudeploy.domain.budget import HbmBudget
from tpudeploy.domain.errors import CloudError, QueryFailed
from tpudeploy.loading import sized
from tpudeploy.operations.logs import LogReadings
from tpudeploy.workspace import Workspace

_ANSWER = 600  # tokens, and of a model that reads little a third of it
_MARGIN = 200  # tokens that a chat template may add
_PER_TOKEN = 2  # characters, at least: a log is denser than prose
_MOST = 40_000  # characters: more text hides the cause
_LEAST = 800  # characters: less leaves no room beside the question
_UNKNOWN = 4096  # tokens of context of a model whose length is unknown


def with_draft(workspace: Workspace, readings: LogReadings, profile: Profile | None, author: Profile) -> LogReadings:
    """Return `readings` with a draft by the model that `author` serves, about the first log that ends in a failure.

    An endpoint that does not answer is no error: the finding is valid without the draft.
    """
    return replace(readings, draft=_draft(workspace, readings, profile, author))


def _draft(workspace: Workspace, readings: LogReadings, profile: Profile | None, author: Profile) -> Draft | NoDraft:
    name = next((name for name, reading in readings.readings.items() if not reading.is_serving), None)
    if name is None:
        return NoDraft(because="Nothing failed: there is nothing to draft on.")
    attributes = {} if profile is None else sized(profile, workspace.adapters.pins.read()).attributes

    def question(characters: int) -> str:
        return evidence(readings.readings[name], readings.texts[name], attributes, characters=characters)

    return ask_for_draft(workspace, question, author, about=name, own=None if profile is None else profile.name)


def ask_for_draft(
    workspace: Workspace, question: Callable[[int], str], author: Profile, *, about: str, own: str | None
) -> Draft | NoDraft:
    """Return what the model that `author` serves answers, or why it does not.

    `question` takes the most characters that the model reads. `about` is what the draft is about, and `own` the
    deployment in question.
    """
    length = _context_length(author)
    tokens = min(_ANSWER, length // 3)
    characters = min(_MOST, (length - tokens - _MARGIN) * _PER_TOKEN)
    if characters < _LEAST:
        return NoDraft(
            because=f"{author.name} reads {length} tokens: too few for the evidence.",
            hint="Ask one that reads more: --with PROFILE.",
        )
    try:
        answer = workspace.completion(author, question(characters), max_tokens=tokens)
    except (QueryFailed, CloudError) as error:
        hint = "Ask one that serves: --with PROFILE." if own == author.name else error.hint
        return NoDraft(because=error.message, hint=hint)
    return Draft(log=about, by=author.name, model=str(author.model.id), text=answer.text.strip())


def _context_length(author: Profile) -> int:
    """Return how many tokens the model reads and writes together, as its profile declares it."""
    budget = sized(author).budget
    return budget.engine.max_model_len if isinstance(budget, HbmBudget) else _UNKNOWN
