"""What every command of an emulated node runs: it hands its words to the node's server and plays back the answer.

Started by path, with the standard library alone: `shim.py PORT KEY NAME ARGUMENT…`. It decides nothing.
"""

from __future__ import annotations

import os
import re
import socket
import sys

ITSELF = re.compile(r"(?:.*@|-K)?-|--password-stdin")
DEVICE = re.compile(r"@?(/dev/(?:stdin|fd/\d+))")  # fd: bash's <(…)


def given(words: list[str]) -> bytes:
    """What the words ask to be read from here: only this process has it."""
    for word in words:
        device = DEVICE.fullmatch(word)
        if device:
            with open(device[1], "rb") as source:  # noqa: PTH123 - pathlib costs more than the call
                return source.read()
        if ITSELF.fullmatch(word):
            return sys.stdin.buffer.read()
    return b""


def body(name: str, words: list[str]) -> bytes:
    environment = [f"{key}={value}" for key, value in os.environ.items()]
    fields = [name, os.getcwd(), str(len(words)), *words, str(len(environment)), *environment]  # noqa: PTH109 - pathlib costs more than the call
    return b"\0".join([*map(os.fsencode, fields), given(words)])


def exchange(port: int, key: str, sent: bytes) -> bytes:
    head = f"POST /emulator/run HTTP/1.0\r\nX-Emulator-Key: {key}\r\nContent-Length: {len(sent)}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", port)) as wire:
        wire.sendall(head.encode() + sent)
        return b"".join(iter(lambda: wire.recv(65536), b""))


def main() -> int:
    port, key, name, *words = sys.argv[1:]
    answer = exchange(int(port), key, body(name, words))
    head, _, rest = answer.partition(b"\r\n\r\n")
    headers = dict(line.split(b": ", 1) for line in head.split(b"\r\n")[1:])
    size = int(headers[b"X-Output-Bytes"])
    sys.stdout.buffer.write(rest[:size])
    sys.stdout.flush()
    sys.stderr.buffer.write(rest[size:])
    return int(headers[b"X-Exit-Code"])


if __name__ == "__main__":
    sys.exit(main())
