"""How to use an endpoint that has just been published: a line for curl, one for the OpenAI SDK."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator

from tpudeploy.domain.deployment import API_KEY, Deployment
from tpudeploy.domain.task import TASKS, Task
from tpudeploy.node.serving import served_model

_MESSAGES = [{"role": "user", "content": "Hello"}]


def first_request(deployment: Deployment, url: str) -> Iterator[str]:
    """Yield the lines, each to be copied as it is; none for a task that the SDK has no call for.

    An endpoint with a key gets it from the caller's environment.
    """
    model = served_model(deployment)
    body: dict[str, object]
    has_key = deployment.container.api_key is not None
    if TASKS[deployment.task.task].completions:
        path, body = "chat/completions", {"messages": _MESSAGES}
        call = f"chat.completions.create(model={model!r}, messages={_MESSAGES!r})"
    elif deployment.task.task is Task.EMBED:
        path, body = "embeddings", {"input": "Hello"}
        call = f"embeddings.create(model={model!r}, input='Hello')"
    else:
        return
    document = shlex.quote(json.dumps({"model": model, **body}, ensure_ascii=False))
    header = f' -H "Authorization: Bearer ${API_KEY}"' if has_key else ""
    yield f"curl {shlex.quote(f'{url}/v1/{path}')}{header} -H 'Content-Type: application/json' -d {document}"
    key = f"os.environ[{API_KEY!r}]" if has_key else "'none'"
    imports = "import os; from openai import OpenAI" if has_key else "from openai import OpenAI"
    yield f"{imports}; OpenAI(base_url={f'{url}/v1'!r}, api_key={key}).{call}"
