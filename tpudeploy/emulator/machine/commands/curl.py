"""`curl` as a startup script calls it, on the node's clock and within the node's world."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, urlsplit

from tpudeploy.emulator.http_server import HttpRequest, Reply
from tpudeploy.emulator.machine import Unsupported, internet
from tpudeploy.emulator.machine.commands import CommandCall, CommandResult

TRANSIENT = frozenset((408, 429, 500, 502, 503, 504))
FIRST_ERROR = 400


def curl(call: CommandCall) -> CommandResult:
    options = CurlOptions(read=lambda name: _read(call, name))
    try:
        options.take(list(call.words))
        if len(options.urls) != 1:
            raise Unsupported("another number of URLs than one")
        return _with_retries(call, options)
    except CurlError as error:
        return _failure(error, options)


def _with_retries(call: CommandCall, options: CurlOptions) -> CommandResult:
    retries = int(options.values.get("retry", "0"))
    delay = 1.0
    while True:
        try:
            response = _fetch(call, options)
        except CurlError as error:
            if not retries or not _is_transient(error, options):
                raise
        else:
            is_transient = response.http in TRANSIENT
            if {"retry-all-errors", "fail"} <= options.switches and response.http >= FIRST_ERROR:
                is_transient = True
            if not retries or not is_transient:
                return _deliver(call, options, response)
        call.node.pause(options.seconds("retry-delay", delay) or delay)
        retries, delay = retries - 1, delay * 2


def _is_transient(error: CurlError, options: CurlOptions) -> bool:
    refused, timed_out = error.code == 7, error.code == 28  # noqa: PLR2004 - curl's numbers
    return timed_out or "retry-all-errors" in options.switches or (refused and "retry-connrefused" in options.switches)


def _fetch(call: CommandCall, options: CurlOptions) -> Reply:
    url = urlsplit(options.urls[0] if "://" in options.urls[0] else f"http://{options.urls[0]}")
    body = options.upload if options.upload is not None else b"&".join(options.data)
    queries = [url.query]
    if "get" in options.switches:
        queries.append(body.decode())
        body = b""
    query = "&".join(filter(None, queries))
    request = HttpRequest(
        method=_method(options, has_body=bool(options.data) and "get" not in options.switches),
        target=(url.path or "/") + (f"?{query}" if query else ""),
        headers=_headers(options),
        body=body,
        patience=options.seconds("max-time", math.inf),
    )
    try:
        return internet.exchange(call.node, url, request)
    except internet.UnknownHost as error:
        raise CurlError(6, f"Could not resolve host: {error}") from error
    except ConnectionRefusedError as error:
        place = f"{url.hostname} port {url.port or 80}"
        raise CurlError(7, f"Failed to connect to {place} after 0 ms: Couldn't connect to server") from error
    except ConnectionError as error:
        raise CurlError(56, "Recv failure: Connection reset by peer") from error
    except TimeoutError as error:
        raise CurlError(28, "Operation timed out") from error


def _method(options: CurlOptions, *, has_body: bool) -> str:
    if "head" in options.switches:
        return "HEAD"
    if options.upload is not None:
        return options.values.get("request", "PUT")
    return options.values.get("request") or ("POST" if has_body else "GET")


def _headers(options: CurlOptions) -> Mapping[str, str]:
    headers = {"user-agent": options.values.get("user-agent", "curl/8"), "accept": "*/*"}
    if options.data:
        headers["content-type"] = "application/x-www-form-urlencoded"
    for line in options.headers:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    return headers


def _deliver(call: CommandCall, options: CurlOptions, response: Reply) -> CommandResult:
    is_error = response.http >= FIRST_ERROR
    body = b"" if is_error and "fail" in options.switches else response.payload()
    code = 22 if is_error and {"fail", "fail-with-body"} & options.switches else 0
    if {"include", "head"} & options.switches:
        content_type = {"Content-Type": response.content_type} if response.content_type else {}
        headers = {**content_type, **response.headers}
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        body = f"HTTP/1.1 {response.http}\r\n{head}\r\n".encode() + (b"" if "head" in options.switches else body)
    output = _store(call, options.values.get("output", "-"), body) + _write_out(options, response.http)
    if code == 0:
        return CommandResult(0, output)
    error = CurlError(code, f"The requested URL returned error: {response.http}")
    return CommandResult(code, output, _failure(error, options).errors)


def _store(call: CommandCall, name: str, body: bytes) -> bytes:
    if name == "-":
        return body
    if name != "/dev/null":
        path = call.file(name)
        if path is None or not path.parent.is_dir():
            raise CurlError(23, f"Failed to open the file {name}: not in the node's root")
        path.write_bytes(body)
    return b""


def _write_out(options: CurlOptions, status: int) -> bytes:
    template = options.values.get("write-out", "")
    for name in ("http_code", "response_code"):
        template = template.replace(f"%{{{name}}}", f"{status:03d}")
    if "%" in template:
        raise Unsupported(f"`{options.values['write-out']}` of --write-out")
    return template.replace("\\n", "\n").replace("\\t", "\t").encode()


def _failure(error: CurlError, options: CurlOptions) -> CommandResult:
    silent = "silent" in options.switches and "show-error" not in options.switches
    output = _write_out(options, 0) if error.code != 22 else b""  # noqa: PLR2004 - the reply's own is already written
    return CommandResult(error.code, output, b"" if silent else f"curl: ({error.code}) {error}\n".encode())


def _read(call: CommandCall, name: str) -> bytes:
    if name in {"-", "/dev/stdin"} or name.startswith("/dev/fd/"):
        return call.command.stdin
    path = call.file(name)
    if path is None or not path.is_file():
        raise CurlError(26, f"Failed to open {name}")
    return path.read_bytes()


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
class CurlOptions:
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
