"""What is not ours is read within a limit: a file may be huge, grow, or be a FIFO or a device that never ends.

`adapters/files.py` and `adapters/state/disk.py` open regular files alone and stop at a size. Whatever else reads has a
reason. The reading is of the syntax tree: calls that read a file, a stream or a process without a size.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tpudeploy.adapters import files
from tpudeploy.adapters.state import disk
from tpudeploy.config.reader import MAX_BYTES, Unreadable
from tpudeploy.domain.errors import TpudeployError

ROOT = Path(__file__).parents[2]
THE_MODULES = {"tpudeploy/adapters/files.py", "tpudeploy/adapters/state/disk.py"}
EMULATOR = (
    "tpudeploy/emulator/"  # a world of its own, which reads below its own folder; its scenario is read by files.py
)
_PACKAGE = "a file of an installed package"
_ANSWER = "a response, whose connection is metered"
# What else may read: file, call and the reason.
ALLOWED: dict[tuple[str, str], str] = {
    ("tpudeploy/adapters/assets.py", ".read_text"): _PACKAGE,
    ("tpudeploy/adapters/extras.py", ".read_text"): _PACKAGE,
    ("tpudeploy/adapters/http_budget.py", ".read"): _ANSWER,
    ("tpudeploy/adapters/vllm_client.py", ".read"): _ANSWER,
    ("tpudeploy/adapters/local_routers.py", "os.read"): "32 bytes",
    ("tpudeploy/adapters/router_program.py", ".read_text"): "a file that the kernel makes",
    ("tpudeploy/features/learn/probe.py", ".read_text"): "sources of an installed package, in the engine's Python",
    (
        "tpudeploy/features/compile/engine_process.py",
        "os.read",
    ): "a line of the engine's child, with a size and a deadline",
    ("tpudeploy/boot_log/records.py", "yaml.load"): "a text that was read already",
    ("tpudeploy/cli/main.py", "os.open"): "/dev/null, to write",
    ("tpudeploy/cli/terminal.py", "os.open"): "/dev/null, to write",
    ("tpudeploy/cli/terminal.py", ".readline"): "what a person types",
    ("tpudeploy/features/support/operation.py", "tarfile.open"): "writes an archive in memory",
}
# Ways to read everything there is, by module; "" is any object.
_READS = {
    "": {"read_text", "read_bytes", "readlines", "readall"},
    "json": {"load"},
    "tomllib": {"load"},
    "yaml": {"load", "safe_load", "load_all"},
    "pickle": {"load"},
    "zipfile": {"ZipFile"},
    "tarfile": {"open"},
    "gzip": {"open"},
    "linecache": {"getlines", "getline"},
    "shutil": {"copyfileobj"},
}


_STREAMS = {"answer", "buffer", "file", "handle", "process", "reply", "response", "stdin", "stdout", "stderr", "stream"}


def _name_of_read(call: ast.Call) -> str:
    """How a call reads without a size, or "" if it does not."""
    match call.func:
        case ast.Name(id="open"):
            return "open"
        case ast.Attribute(value=ast.Name(id="os"), attr="open" | "read" as name):
            return f"os.{name}"
        case ast.Attribute(value=ast.Name(id=module), attr=name) if name in _READS.get(module, ()):
            return f"{module}.{name}"
        case ast.Attribute(value=owner, attr="read" | "readline" as name) if not call.args and _is_stream(owner):
            return f".{name}"
        case ast.Attribute(attr=name) if name in _READS[""]:
            return f".{name}"
    return ""


def _is_stream(owner: ast.expr) -> bool:
    """Whether something is a stream by its name, or a file just opened; a store and a profile have a `read` too."""
    return ast.unparse(owner).rpartition(".")[2] in _STREAMS or isinstance(owner, ast.Call)


def unbounded_reads(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Each call that may read without an end, with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (name := _name_of_read(node)):
            yield node.lineno, name


def test_nothing_else_reads_without_a_limit() -> None:
    found = {
        (file, name): line
        for path in sorted((ROOT / "tpudeploy").rglob("*.py"))
        if (file := str(path.relative_to(ROOT))) not in THE_MODULES and not file.startswith(EMULATOR)
        for line, name in unbounded_reads(ast.parse(path.read_text(encoding="utf-8")))
    }
    others = [f"{file}:{line}: {name}" for (file, name), line in found.items() if (file, name) not in ALLOWED]
    assert others == [], "read through adapters/files.py, which has a limit for each file"
    assert not ALLOWED.keys() - found.keys(), "what is allowed is there"


def test_each_way_of_reading_is_noticed() -> None:
    lines = (
        "open(p)",
        "Path(p).read_text()",
        "p.read_bytes()",
        "json.load(file)",
        "tomllib.load(file)",
        "file.read()",
        "sys.stdin.read()",
        "sys.stdin.buffer.read()",
        "p.open().read()",
        "stream.readlines()",
        "os.read(handle, size)",
        "os.open(p, os.O_RDONLY)",
    )
    assert [line for line in lines if not list(unbounded_reads(ast.parse(line)))] == []
    harmless = ("file.read(1024)", "read_file(p, 1024)", "store.read()", "json.loads(text)", "stream.readline(80)")
    assert [line for line in harmless if list(unbounded_reads(ast.parse(line)))] == []


READERS: dict[str, Callable[[Path], object]] = {
    "read_file": lambda path: files.read_file(path, 1024),
    "read_beginning": lambda path: files.read_beginning(path, 1024),
    "read_end": lambda path: files.read_end(path, 1024),
    "read_log": lambda path: files.read_log(str(path)),
    "a profile": lambda path: files.FileReader().read(str(path)),
    "an untrusted profile": lambda path: files.FileReader(path.parent).read(str(path)),
    "a state": lambda path: disk.Folder(path.parent).read(path.name),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("kind", ["a FIFO", "a device", "a link to a device"])
def test_what_never_ends_is_refused_and_does_not_hang(tmp_path: Path, reader: str, kind: str) -> None:
    path = tmp_path / "x.yaml"
    match kind:
        case "a FIFO":
            os.mkfifo(path)
        case "a device":
            path = Path("/dev/zero")
        case _:
            path.symlink_to("/dev/zero")
    with pytest.raises((OSError, TpudeployError, Unreadable, files.Outside)):
        READERS[reader](path)


@pytest.mark.parametrize("reader", ["read_file", "a profile", "an untrusted profile", "a state"])
def test_a_file_that_is_too_large_is_not_read(tmp_path: Path, reader: str) -> None:
    path = tmp_path / "x.yaml"
    with path.open("wb") as file:
        file.truncate(1 << 40)  # a sparse file
    try:
        content = READERS[reader](path)
    except (OSError, TpudeployError, Unreadable):
        return
    assert isinstance(content, bytes)
    assert len(content) <= MAX_BYTES + 1
