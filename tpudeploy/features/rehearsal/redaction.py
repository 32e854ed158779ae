"""Make an exchange with Google fit to be sent to others: no secret, no address, no account, nothing of other people's.

Headers are never recorded. The values of metadata are left out, because a machine's metadata can hold anything; so is
all but the shape of resources without our mark.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from tpudeploy.config.tokens import masked
from tpudeploy.domain.orphans import mark_in

_IP = re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.])|(?<![\w:])(?:[0-9a-f]{1,4}:){3,7}[0-9a-f]{0,4}(?![\w:])")
_ACCOUNT = re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]+")
_NUMBER = re.compile(r"(?<=projects/)\d+|(?<=project=)\d+|(?<![\w.])\d{9,14}(?=-compute@)")
# Maps and lists whose values a caller or a machine writes.
_MOST_ITEMS = 50  # of a list: the billing catalogue has thousands
_VALUES = frozenset({"metadata", "queryValue", "contents", "textPayload", "jsonPayload"})
_LISTS = frozenset({"queuedResources", "nodes", "instances"})
_KEPT_OF_OTHERS = frozenset(
    {"state", "status", "acceleratorType", "machineType", "provisioningModel", "runtimeVersion"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One request and its reply. A body is JSON, or text where it is not; None for none."""

    method: str
    url: str
    body: Any = None
    status: int
    reply: Any = None


class Redaction:
    """Redacts exchanges. `secrets` are values that may appear nowhere, `project` is the id that is replaced."""

    def __init__(self, *, project: str, secrets: Collection[str] = ()) -> None:
        # The longest is replaced first, because one can be a part of another.
        self._secrets = sorted(filter(None, secrets), key=len, reverse=True)
        self._project = re.compile(rf"(?:(?<![\w-])|(?<=%2F)){re.escape(project)}(?![\w-])") if project else None

    def redact(self, exchange: Exchange) -> dict[str, Any]:
        """Return the exchange as a fixture."""
        return {
            "method": exchange.method,
            "url": self._text(exchange.url),
            "body": self._value(exchange.body),
            "status": exchange.status,
            "reply": self._value(exchange.reply),
        }

    def text(self, text: str) -> str:
        """Return a sentence of the report without what may not be in it."""
        return self._text(text)

    def _value(self, value: Any) -> Any:
        match value:
            case Mapping():
                return {self._text(str(key)): self._entry(str(key), each) for key, each in value.items()}
            case list() | tuple():
                more = [f"<{len(value) - _MOST_ITEMS} more>"] if len(value) > _MOST_ITEMS else []
                return [*map(self._value, value[:_MOST_ITEMS]), *more]
            case str():
                return self._text(value)
            case _:
                return value

    def _entry(self, key: str, value: Any) -> Any:
        if key in _VALUES:
            return self._value(_without_values(value))
        if isinstance(value, list) and (key in _LISTS or any(map(_is_instance, value))):
            return self._value([each if _is_ours(each) else _shape(each) for each in value])
        return self._value(value)

    def _text(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "<secret>")
        text = masked(text)
        text = _NUMBER.sub("PROJECT_NUMBER", text)
        text = _ACCOUNT.sub("<account>", text)
        text = _IP.sub("<address>", text)
        return text if self._project is None else self._project.sub("PROJECT", text)


def _without_values(value: Any) -> Any:
    """Return the keys of metadata or of guest attributes, each with the length of its value."""
    match value:
        case Mapping() if isinstance(value.get("items"), list):
            rest = {key: each for key, each in value.items() if key in {"kind", "fingerprint"}}
            return {**rest, "items": [_without_values(each) for each in value["items"]]}
        case Mapping() if "key" in value:
            return {**value, "value": _length(value.get("value"))}
        case Mapping():
            return {key: each if key == "@type" else _length(each) for key, each in value.items()}
        case _:
            return _length(value)


def _length(value: Any) -> str:
    return f"<{len(str(value))} characters>"


def _is_instance(item: Any) -> bool:
    return isinstance(item, Mapping) and "networkInterfaces" in item


def _is_ours(item: Any) -> bool:
    """Return whether a resource in a list has our labels, on itself or on its node."""
    if not isinstance(item, Mapping):
        return False
    specs = item.get("tpu", {}).get("nodeSpec", ())
    labels = [item.get("labels", {}), *(spec.get("node", {}).get("labels", {}) for spec in specs)]
    return any(mark_in(each) is not None for each in labels)


def _shape(item: Any) -> Any:
    """Return the keys of another owner's resource, with the few values that say nothing about its owner."""
    if not isinstance(item, Mapping):
        return item
    values = {key: value for key, value in item.items() if key in _KEPT_OF_OTHERS}
    return {**dict.fromkeys(item, "<another owner's>"), **values}
