"""Which commit is a model's revision now? One question to Hugging Face's hub, and nothing is downloaded.

That the hub tells it of gated models too, to whoever asks, is unverified; where it does not, that is the answer.
"""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from http import HTTPStatus
from http.client import HTTPException
from urllib.parse import quote

from tpudeploy.adapters.registry import opener
from tpudeploy.domain.facts import Unknown
from tpudeploy.version import VERSION

_DEFAULT = "main"  # the hub's name for the branch that vLLM takes where none is named
_COMMIT = re.compile(r"[0-9a-f]{40}")
_MOST_BYTES = 1 << 24  # it lists every file of the model too
_HIDDEN = {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND}


class Hub:
    """`base` is its URL."""

    def __init__(self, base: str, *, timeout: float) -> None:
        self._base = base
        self._timeout = timeout

    def commit(self, model: str, revision: str) -> str | Unknown:
        """`revision` is a branch or a tag, "" for the default branch. Never raises: what failed is in the answer.

        The hub answers alike for what is private and for what is not there.
        """
        host = self._base.partition("://")[2].partition("/")[0]
        url = f"{self._base}/api/models/{quote(model)}/revision/{quote(revision or _DEFAULT, safe='')}"
        request = urllib.request.Request(url, headers={"User-Agent": f"tpudeploy/{VERSION}"})  # noqa: S310  the scheme is ours
        try:
            with opener(url).open(request, timeout=self._timeout) as answer:
                tree = json.loads(answer.read(_MOST_BYTES))
        except urllib.error.HTTPError as refused:
            with refused:
                if refused.code in _HIDDEN:
                    return Unknown(because=f"{host} shows no such model or revision to whoever asks.")
                return Unknown(because=f"{host} answered {refused.code}.")
        except (OSError, ValueError, HTTPException) as cause:
            inner = getattr(cause, "reason", cause)
            why = getattr(inner, "strerror", None) or inner or type(cause).__name__
            return Unknown(because=f"{host} cannot be asked: {why}.")
        found = tree.get("sha") if isinstance(tree, dict) else None
        if not isinstance(found, str) or not _COMMIT.fullmatch(found):
            return Unknown(because=f"{host} named no commit.")
        return found
