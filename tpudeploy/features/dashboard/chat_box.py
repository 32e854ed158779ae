"""Questions from the page: what it may send, and the answer of the deployment's endpoint.

The page has no key and no address: the server reads both, as `tpudeploy query` does. A question is a user's request, so
it has no mark of a probe, and counts as use for `lifecycle.idle`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tpudeploy.adapters.vllm_client import BadAnswer, NoAnswer, VllmClient
from tpudeploy.domain.errors import QueryFailed, UsageError
from tpudeploy.domain.task import TASKS
from tpudeploy.loading import Profile
from tpudeploy.node.serving import served_model
from tpudeploy.workspace import Workspace

MOST_BYTES = 128 << 10  # of a question with the conversation before it
_MOST_MESSAGES, _MOST_TOKENS = 200, 1024
_TIMEOUT = 60.0  # seconds to the next piece; the whole answer has 0.1 s more for each token
_ROLES = {"system", "user", "assistant"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PageQuestion:
    """A question with the conversation before it. `messages` have a role and content."""

    deployment: str
    messages: tuple[Mapping[str, str], ...]


def parse_question(body: bytes) -> PageQuestion:
    """Return the question of a request's body. Raise ValueError, which says what is wrong."""
    try:
        tree = json.loads(body)
    except (ValueError, RecursionError) as cause:
        raise ValueError("the body is not JSON") from cause
    if not isinstance(tree, dict) or not isinstance(tree.get("deployment"), str):
        raise ValueError("`deployment` is missing")  # noqa: TRY004 - of a document, each fault is one of its value
    messages = tree.get("messages")
    if not isinstance(messages, list) or not 0 < len(messages) <= _MOST_MESSAGES:
        raise ValueError(f"`messages` is not a list of 1 to {_MOST_MESSAGES} messages")
    return PageQuestion(deployment=tree["deployment"], messages=tuple(map(_message, messages)))


def _message(tree: Any) -> Mapping[str, str]:
    is_message = isinstance(tree, dict) and tree.get("role") in _ROLES and isinstance(tree.get("content"), str)
    if not is_message:
        raise ValueError("a message has a `role` (system, user or assistant) and `content`")
    return {"role": tree["role"], "content": tree["content"]}


def stream_answer(
    workspace: Workspace, profile: Profile | None, question: PageQuestion, on_piece: Callable[[str], None]
) -> Mapping[str, Any]:
    """Send the question to the deployment's endpoint, and return the speed of the answer.

    `on_piece` gets each piece of text as it arrives; what it raises ends the request. Raise `errors.TpudeployError`.
    """
    if profile is None:
        hint = "Run `tpudeploy dashboard PROFILE`, or keep its profile in this folder."
        raise UsageError("The dashboard has no profile of this deployment.", hint=hint)
    deployment = workspace.deployment(profile, script=False)
    if not TASKS[deployment.task.task].completions:
        raise UsageError(
            f"{deployment.name} serves {TASKS[deployment.task.task].serves}.", hint="Use `tpudeploy query`."
        )
    client = VllmClient(
        str(workspace.confirmed_endpoint(profile)["url"]),
        api_key=workspace.adapters.probe.key(deployment),
        timeout=_TIMEOUT,
    )
    try:
        completion = client.converse(
            served_model(deployment),
            question.messages,
            max_tokens=_MOST_TOKENS,
            now=workspace.adapters.clock.now,
            on_piece=on_piece,
        )
    except (NoAnswer, BadAnswer) as cause:
        hint = "`tpudeploy status` shows what the machine says."
        raise QueryFailed(f"The endpoint did not answer: {cause}.", hint=hint) from cause
    return {"ttft": completion.seconds_to_first, "seconds": completion.seconds, "tokens": completion.completion_tokens}
