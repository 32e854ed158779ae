"""The program of every command of an emulated node: it sends its words to the node's server and prints the answer.

Started by path, with the standard library alone: `shim.py PORT KEY NAME ARGUMENT…`. It decides nothing.

Why: decision 49 in docs/decisions.md.
"""

from __future__ import annotations

import _socket  # the public module costs as much as all the rest of a call
import os
import sys

ENDED_BY_SIGPIPE = 141


def read_input(words: list[str]) -> bytes:
    """Return the input that the words ask for: only this process has it. /dev/fd is bash's `<(…)`."""
    for word in words:
        device = word.removeprefix("@")
        if device == "/dev/stdin" or device.startswith("/dev/fd/"):
            with open(device, "rb") as source:  # noqa: PTH123 - pathlib costs more than the call
                return source.read()
        if word in {"-", "-K-", "--password-stdin"} or word.endswith("@-"):
            return sys.stdin.buffer.read()
    return b""


def body(name: str, words: list[str]) -> bytes:
    environment = [f"{key}={value}" for key, value in os.environ.items()]
    fields = [str(os.getpid()), name, os.getcwd(), str(len(words)), *words, str(len(environment)), *environment]  # noqa: PTH109 - pathlib costs more than the call
    return b"\0".join([*map(os.fsencode, fields), read_input(words)])


def exchange(port: int, key: str, payload: bytes) -> bytes:
    head = f"POST /emulator/run HTTP/1.0\r\nX-Emulator-Key: {key}\r\nContent-Length: {len(payload)}\r\n\r\n"
    wire = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    wire.connect(("127.0.0.1", port))
    wire.sendall(head.encode() + payload)
    answer = b"".join(iter(lambda: wire.recv(65536), b""))
    wire.close()
    return answer


def main() -> int:
    port, key, name, *words = sys.argv[1:]
    answer = exchange(int(port), key, body(name, words))
    head, _, rest = answer.partition(b"\r\n\r\n")
    headers = dict(line.split(b": ", 1) for line in head.split(b"\r\n")[1:])
    if b"X-Output-Bytes" not in headers:
        sys.stderr.write(f"{name}: the emulator gave no answer\n")
        return 125
    size = int(headers[b"X-Output-Bytes"])
    try:
        sys.stdout.buffer.write(rest[:size])
        sys.stdout.flush()
        sys.stderr.buffer.write(rest[size:])
    except BrokenPipeError:  # as in `docker logs | head`
        os._exit(ENDED_BY_SIGPIPE)
    return int(headers[b"X-Exit-Code"])


if __name__ == "__main__":
    sys.exit(main())
