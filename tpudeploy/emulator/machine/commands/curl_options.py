"""The command line of curl, as far as startup scripts use it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import quote

from tpudeploy.emulator.machine.unsupported import Unsupported

SHORT = {
    "4": "ipv4",
    "6": "ipv6",
    "A": "user-agent",
    "d": "data",
    "f": "fail",
    "G": "get",
    "H": "header",
    "i": "include",
    "I": "head",
    "k": "insecure",
    "K": "config",
    "L": "location",
    "m": "max-time",
    "N": "no-buffer",
    "o": "output",
    "q": "disable",
    "s": "silent",
    "T": "upload-file",
    "S": "show-error",
    "w": "write-out",
    "X": "request",
}
_SWITCHES = """
compressed disable fail fail-with-body get head http1.1 include insecure ipv4 ipv6 location no-buffer
no-progress-meter retry-all-errors retry-connrefused show-error silent
"""
SWITCHES = frozenset(_SWITCHES.split())
_VALUES = """
config connect-timeout data data-ascii data-binary data-raw data-urlencode header json max-time
noproxy output request retry retry-delay speed-limit speed-time upload-file url user-agent write-out
"""
VALUES = frozenset(_VALUES.split())


CONFIG_LINE = re.compile(r"-*([\w.-]+)\s*[=:]?\s*(.*)")


class CurlError(Exception):
    """Ends the call with curl's exit code and message."""

    def __init__(self, code: int, words: str) -> None:
        super().__init__(words)
        self.code = code


@dataclass(slots=True)
class Options:
    """`read` returns the bytes of `@file` and `@-`."""

    read: Callable[[str], bytes]
    switches: set[str] = field(default_factory=set)
    values: dict[str, str] = field(default_factory=dict)
    headers: list[str] = field(default_factory=list)
    data: list[bytes] = field(default_factory=list)
    urls: list[str] = field(default_factory=list)
    upload: bytes | None = None

    def take(self, words: list[str]) -> None:
        while words:
            word = words.pop(0)
            if word.startswith("--"):
                self._long(word[2:], words)
            elif word.startswith("-") and word != "-":
                self._short(word[1:], words)
            else:
                self.urls.append(word)

    def seconds(self, name: str, default: float) -> float:
        return float(self.values.get(name, default))

    def _short(self, letters: str, words: list[str]) -> None:
        for at, letter in enumerate(letters, start=1):
            name = SHORT.get(letter, "")
            if name in VALUES:
                self._set(name, letters[at:] or _next(f"-{letter}", words))
                return
            self._switch(name, f"-{letter}")

    def _long(self, name: str, words: list[str]) -> None:
        if name in VALUES:
            self._set(name, _next(f"--{name}", words))
        else:
            self._switch(name, f"--{name}")

    def _switch(self, name: str, word: str) -> None:
        if name not in SWITCHES:
            raise Unsupported(f"`{word}`")
        self.switches.add(name)

    def _set(self, name: str, value: str) -> None:
        match name:
            case "url":
                self.urls.append(value)
            case "header":
                self.headers += self._header_lines(value) if value.startswith("@") else [value]
            case "config":
                self._config(self.read(value).decode())
            case "upload-file":
                self.upload = self.read(value)
            case "data" | "data-ascii" | "data-binary" | "data-raw" | "data-urlencode" | "json":
                self.data.append(self._data(name, value))
            case _:
                self.values[name] = value

    def _data(self, name: str, value: str) -> bytes:
        if name == "json":
            self.headers += ["Content-Type: application/json", "Accept: application/json"]
        if name == "data-urlencode":
            key, equals, text = value.partition("=")
            return (f"{key}={quote(text, safe='')}" if equals else quote(value, safe="")).encode()
        if name == "data-raw" or not value.startswith("@"):
            return value.encode("utf-8", "surrogateescape")
        octets = self.read(value[1:])
        return octets if name != "data" else octets.replace(b"\r", b"").replace(b"\n", b"")

    def _header_lines(self, value: str) -> list[str]:
        return [line for line in self.read(value[1:]).decode().splitlines() if line.strip()]

    def _config(self, text: str) -> None:
        for line in filter(None, map(str.strip, text.splitlines())):
            match = CONFIG_LINE.fullmatch(line)
            if match is None or line.startswith("#"):
                continue
            name, value = match.groups()
            if name in VALUES:
                self._set(name, _unquote(value))
            else:
                self._switch(name, name)


def _unquote(value: str) -> str:
    return re.sub(r"\\(.)", r"\1", value[1:-1]) if value.startswith('"') and value.endswith('"') else value


def _next(flag: str, words: list[str]) -> str:
    if not words:
        raise CurlError(2, f"option {flag}: requires parameter")
    return words.pop(0)
