"""Look up names: a registry resolves a tag, the Hugging Face hub a revision, Compute Engine a family of images.

Nothing is downloaded. That the hub returns the commit of gated models to anonymous callers is unverified; if it does
not, the answer says so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from http import HTTPStatus
from urllib.parse import quote

from tpudeploy.adapters.http_budget import Budget, Unanswered, fetch
from tpudeploy.adapters.registry import Registry, parts
from tpudeploy.catalog.engines import words_of_labels
from tpudeploy.domain.errors import CloudError
from tpudeploy.domain.facts import Unknown
from tpudeploy.domain.model import Checkpoint
from tpudeploy.domain.pins import Name, PinKind
from tpudeploy.domain.strict_json import parse
from tpudeploy.pins import at_digest

_DEFAULT_BRANCH = "main"  # the branch that vLLM uses if a profile names no revision
_COMMIT = re.compile(r"[0-9a-f]{40}")
_MOST_BYTES = 1 << 24  # the answer also lists every file of the model
# Of what is kept of a config.json: a field, and all of them.
_MOST_OF_FIELD, _MOST_OF_CONFIG = 8_192, 65_536
_MOST_TYPES, _MOST_ELEMENTS = 16, 10**15
_TYPE = re.compile(r"[A-Z][A-Z0-9_]{1,15}")
_HIDDEN = {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND}


class Hub:
    """Reads the Hugging Face hub at the URL `base`."""

    def __init__(self, base: str, *, timeout: float) -> None:
        self._base = base
        self._timeout = timeout

    def commit(self, model: str, revision: str) -> str | Unknown:
        """Return the commit of a revision, or `Unknown` with the reason. Never raises.

        `revision` is a branch or a tag, or "" for the default branch. The hub gives the same answer for private models
        and for absent ones.
        """
        host = self._base.partition("://")[2].partition("/")[0]
        url = f"{self._base}/api/models/{quote(model)}/revision/{quote(revision or _DEFAULT_BRANCH, safe='')}"
        try:
            reply = fetch(url, Budget(seconds=self._timeout, size=_MOST_BYTES).begin(), follow=True)
        except Unanswered as cause:
            return Unknown(because=f"{host} cannot be asked: {cause}.")
        if reply.status in _HIDDEN:
            return Unknown(because=f"{host} does not show this model or revision to anonymous callers.")
        if reply.status != HTTPStatus.OK:
            return Unknown(because=f"{host} {reply.outcome}.")
        try:
            tree = parse(reply.body)
        except ValueError as cause:
            return Unknown(because=f"{host} answered, but not with a model: {cause}.")
        commit = tree.get("sha") if isinstance(tree, dict) else None
        if not isinstance(commit, str) or not _COMMIT.fullmatch(commit):
            return Unknown(because=f"{host} named no commit.")
        return commit

    def checkpoint(self, model: str, commit: str) -> Checkpoint | Unknown:
        """Return the config.json of a commit and its elements by type, or `Unknown` with the reason. Never raises.

        Both are read within one time and one size. No weights are read.
        """
        meter = Budget(seconds=self._timeout, size=_MOST_BYTES).begin()
        path = quote(model)
        try:
            index = fetch(f"{self._base}/api/models/{path}/revision/{commit}", meter, follow=True)
            config = fetch(f"{self._base}/{path}/resolve/{commit}/config.json", meter, follow=True)
        except Unanswered as cause:
            return Unknown(because=f"{self._base.partition('://')[2]} cannot be asked: {cause}.")
        text = _config_of(config.body) if config.status == HTTPStatus.OK else ""
        tensors = _tensors_of(index.body) if index.status == HTTPStatus.OK else {}
        if not text and not tensors:
            return Unknown(because="the hub shows neither a config.json nor an index of its tensors.")
        return Checkpoint(config=text, tensors=tensors)


def _config_of(body: bytes) -> str:
    """Return a config.json on one line, or "" for anything else. Long lists, such as names of labels, are left out."""
    try:
        tree = parse(body)
    except ValueError:
        return ""
    if not isinstance(tree, dict):
        return ""
    short = {key: value for key, value in tree.items() if len(json.dumps(value)) <= _MOST_OF_FIELD}
    text = json.dumps(short, ensure_ascii=True, sort_keys=True)
    return text if len(text) <= _MOST_OF_CONFIG else ""


def _tensors_of(body: bytes) -> dict[str, int]:
    """Return the elements by type of the hub's own summary of the safetensors files, none for anything else."""
    try:
        tree = parse(body)
    except ValueError:
        return {}
    summary = tree.get("safetensors") if isinstance(tree, dict) else None
    counts = summary.get("parameters") if isinstance(summary, dict) else None
    if not isinstance(counts, dict) or len(counts) > _MOST_TYPES:
        return {}
    return {
        kind: count
        for kind, count in counts.items()
        if _TYPE.fullmatch(kind) and type(count) is int and 0 <= count < _MOST_ELEMENTS
    }


_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


class Origins:
    """See `ports.Sources`."""

    def __init__(self, registry: Registry, hub: Hub, newest_image: Callable[[str], str | Unknown]) -> None:
        self._registry = registry
        self._hub = hub
        self._newest_image = newest_image

    def look_up(self, name: Name) -> str | Unknown:
        match name.kind:
            case PinKind.IMAGE:
                return self._digest(name.text)
            case PinKind.MODEL:
                return self._hub.commit(*name.model)
            case PinKind.MACHINE_IMAGE:
                return self._newest_image(name.text)

    def describe(self, name: Name, commit: str) -> Checkpoint | Unknown:
        return self._hub.checkpoint(name.model[0], commit)

    def labels(self, image: str, digest: str) -> str | Unknown:
        try:
            answer = self._registry.labels(at_digest(image.partition("@")[0], digest))
        except CloudError as cause:
            return Unknown(because=cause.message, hint=cause.hint)
        return answer if isinstance(answer, Unknown) else words_of_labels(answer)

    def _digest(self, image: str) -> str | Unknown:
        host = parts(image)[0]
        try:
            answer = self._registry.image(image)
        except CloudError as cause:  # no credentials for a registry of Google's
            return Unknown(because=cause.message, hint=cause.hint)
        if isinstance(answer, Unknown):
            return answer
        if not answer.exists:
            return Unknown(because=f"{host} does not have this image, or hides it from anonymous callers.")
        if not _DIGEST.fullmatch(answer.digest):
            return Unknown(because=f"{host} names no digest.")
        return answer.digest
