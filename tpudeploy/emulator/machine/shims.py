"""Shims: the programs on a node's PATH that hand their words to its server, and the protocol between the two.

They run shim.sh, and shim.py where bash does not do; here is the server's side of the protocol.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

PATH = "/emulator/run"  # of the node's server
QUICK, WHOLE = (Path(__file__).with_name(f"shim.{kind}") for kind in ("sh", "py"))
_PLAIN = 4096  # bytes that bash reads and prints as fast as another program would


@dataclass(frozen=True, slots=True, kw_only=True)
class ShimCall:
    """One call of a shim: `stdin` is its input, where the words ask for it; `folder` is the working directory."""

    pid: int
    name: str
    words: tuple[str, ...]
    folder: str
    environment: Mapping[str, str] = field(repr=False)
    stdin: bytes = field(repr=False)


def install(folder: Path, names: Iterable[str], port: int, key: str) -> None:
    """Write shims into a folder on PATH; they send `key` to the server at `port`."""
    bash, head, cat = map(shutil.which, ("bash", "head", "cat"))
    for name in names:
        whole = shlex.join([sys.executable, "-I", "-S", str(WHOLE), str(port), key, name])
        variables = f"server=127.0.0.1/{port} key={key} name={name} head={head} cat={cat} whole=({whole})"
        shim = folder / name
        shim.unlink(missing_ok=True)  # a link to the system's own program must never be written through
        shim.write_text(f"#!{bash}\n{variables}\n. {shlex.quote(str(QUICK))}\n", encoding="utf-8")
        shim.chmod(0o755)


def parse_command(body: bytes) -> ShimCall:
    pid, name, folder, rest = body.split(b"\0", 3)
    words, rest = _counted_fields(rest)
    environment, stdin = _counted_fields(rest)
    return ShimCall(
        pid=int(pid),
        name=name.decode(),
        words=words,
        folder=os.fsdecode(folder),
        environment=dict(pair.split("=", 1) for pair in environment),
        stdin=stdin,
    )


def reply_headers(code: int, output: bytes) -> Mapping[str, str]:
    """Return the headers of a reply, whose body is the output and then the errors."""
    headers = {"X-Exit-Code": str(code), "X-Output-Bytes": str(len(output))}
    return headers if len(output) > _PLAIN or b"\0" in output else {**headers, "X-Plain": "yes"}


def _counted_fields(fields: bytes) -> tuple[tuple[str, ...], bytes]:
    count, rest = fields.split(b"\0", 1)
    *words, rest = rest.split(b"\0", int(count))
    return tuple(map(os.fsdecode, words)), rest
