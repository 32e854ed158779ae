"""Explain the boot logs of a deployment, with a draft by a served model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tpudeploy.domain.frozen import replace
from tpudeploy.operations.declaration import AgentForm, Argument, ArgumentKind, Operation, profile
from tpudeploy.operations.logs import LogReadings

if TYPE_CHECKING:
    from tpudeploy.boot_log.reading import Draft, NoDraft
    from tpudeploy.config.profile import Profile
    from tpudeploy.loading import OneProfile
    from tpudeploy.workspace import Workspace

_ANSWER = 600  # tokens, and of a model that reads little a third of it
_MARGIN = 200  # tokens that a chat template may add
_PER_TOKEN = 2  # characters, at least: a log is denser than prose
_MOST = 40_000  # characters: more text hides the cause
_LEAST = 800  # characters: less leaves no room beside the question
_UNKNOWN = 4096  # tokens of context of a model whose length is unknown


class Diagnosed(LogReadings):
    """The findings of tpudeploy, and a draft that a model wrote and that is not verified."""

    IS_DOCUMENT = False

    @classmethod
    def promised_keys(cls) -> tuple[str, ...]:
        return ("format", "logs", "draft", "no_draft")


def diagnose(
    workspace: Workspace,
    profile: OneProfile | None = None,
    colleague: OneProfile | None = None,
    *,
    texts: Mapping[str, str] | None = None,
) -> LogReadings:
    """Explain the boot logs as the tool logs does, and add a served model's unverified draft from redacted evidence.

    The model is the one that `colleague` serves, or the profile's own. Raise as `logs` does, and `errors.UsageError` if
    neither is there.
    """
    from tpudeploy import loading
    from tpudeploy.domain.errors import UsageError

    loaded = None if profile is None else loading.profile(profile)
    readings = workspace.logs(loaded, texts=texts)
    author = loaded if colleague is None else loading.profile(colleague)
    if author is None:
        raise UsageError("There is no model to ask.", hint="Name a deployment that serves: --with PROFILE.")
    return with_draft(workspace, readings, loaded, author)


def with_draft(workspace: Workspace, readings: LogReadings, profile: Profile | None, author: Profile) -> LogReadings:
    """Return `readings` with a draft by the model that `author` serves, about the first log that ends in a failure.

    An endpoint that does not answer is no error: the finding is valid without the draft.
    """
    return replace(readings, draft=_draft(workspace, readings, profile, author))


def _draft(workspace: Workspace, readings: LogReadings, profile: Profile | None, author: Profile) -> Draft | NoDraft:
    from tpudeploy.boot_log.evidence import evidence
    from tpudeploy.boot_log.reading import Draft, NoDraft
    from tpudeploy.domain.errors import CloudError, QueryFailed
    from tpudeploy.loading import sized

    name = next((name for name, reading in readings.readings.items() if not reading.is_serving), None)
    if name is None:
        return NoDraft(because="Nothing failed: there is nothing to draft on.")
    attributes = {} if profile is None else sized(profile, workspace.adapters.pins.read()).attributes
    length = _context_length(author)
    tokens = min(_ANSWER, length // 3)
    characters = min(_MOST, (length - tokens - _MARGIN) * _PER_TOKEN)
    if characters < _LEAST:
        return NoDraft(
            because=f"{author.spec.name} reads {length} tokens: too few for the evidence.",
            hint="Ask one that reads more: --with PROFILE.",
        )
    question = evidence(readings.readings[name], readings.texts[name], attributes, characters=characters)
    try:
        answer = workspace.completion(author, question, max_tokens=tokens)
    except (QueryFailed, CloudError) as error:
        is_own = profile is not None and profile.spec.name == author.spec.name
        return NoDraft(because=error.message, hint="Ask one that serves: --with PROFILE." if is_own else error.hint)
    return Draft(log=name, by=author.spec.name, model=str(author.spec.model.id), text=answer.text.strip())


def _context_length(author: Profile) -> int:
    """Return how many tokens the model reads and writes together, as its profile declares it."""
    from tpudeploy.domain.budget import HbmBudget
    from tpudeploy.loading import sized

    budget = sized(author).budget
    return budget.engine.max_model_len if isinstance(budget, HbmBudget) else _UNKNOWN


OPERATION = Operation(
    run=diagnose,
    arguments=(
        profile(),
        Argument(
            name="colleague",
            kind=ArgumentKind.PROFILE,
            agents=AgentForm(about="the profile of another deployment, which serves"),
        ),
    ),
    results=(Diagnosed,),
    title="Draft a diagnosis",
    tool="diagnose",
)
