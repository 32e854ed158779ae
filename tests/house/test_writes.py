"""Files are written by one module, `adapters/state/disk.py`, which follows no link. Whatever else writes has a reason.

The reading is of the syntax tree: calls that create, write, rename, link, delete or chmod a file.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
THE_MODULE = "tpudeploy/adapters/state/disk.py"
EMULATOR = "tpudeploy/emulator/"  # a world of its own: it writes below its own mkdtemp, and its record (below)
# What else may write: file, call and the reason.
ALLOWED: dict[tuple[str, str], str] = {
    ("tpudeploy/cli/main.py", ".open"): "/dev/null in place of a closed stdin, stdout or stderr",
    ("tpudeploy/cli/main.py", "os.open"): "/dev/null in place of a stdout whose reader has gone",
    ("tpudeploy/cli/terminal.py", "os.open"): "/dev/null in place of a stdout whose reader has gone",
    ("tpudeploy/cli/error_report.py", "tempfile.NamedTemporaryFile"): "a new file of its own in the temporary folder",
    ("tpudeploy/features/accuracy/service.py", "tempfile.TemporaryDirectory"): "a new folder of its own",
    ("tpudeploy/features/learn/engine_python.py", "tempfile.TemporaryDirectory"): "a new folder of its own",
    ("tpudeploy/features/learn/engine_python.py", ".open"): "what goes in and comes out, in that folder",
    ("tpudeploy/features/learn/engine_python.py", ".write_text"): "as above",
    ("tpudeploy/features/compile/child.py", ".mkdir"): "the model's config, in a new folder of the engine's child",
    ("tpudeploy/features/compile/child.py", ".write_text"): "as above",
    ("tpudeploy/features/compile/child.py", "tempfile.TemporaryDirectory"): "as above",
    ("tpudeploy/features/compile/engine_process.py", ".open"): "the child's messages, in a folder of its own",
    ("tpudeploy/features/compile/engine_process.py", "tempfile.TemporaryFile"): "the child's questions, in a new file",
    ("tpudeploy/features/compile/service.py", "tempfile.TemporaryDirectory"): "a new folder of its own",
    ("tpudeploy/features/learn/models.py", "tempfile.TemporaryDirectory"): "a new folder of its own",
    ("tpudeploy/features/benchmark/load/installed.py", "tempfile.TemporaryDirectory"): "a new folder of its own",
    ("tpudeploy/features/benchmark/load/installed.py", ".open"): "the log in that folder",
    (
        "tpudeploy/features/gitops/pipeline.py",
        ".open",
    ): "GITHUB_OUTPUT and the like: the runner made the file and names it",
}
_OS = {
    *("chmod", "chown", "lchown", "link", "makedirs", "mkdir", "mkfifo", "mknod", "remove", "removedirs", "rename"),
    *("renames", "replace", "rmdir", "symlink", "truncate", "unlink", "utime"),
}
_PATH = {
    *("chmod", "hardlink_to", "lchmod", "mkdir", "rename", "rmdir", "symlink_to", "touch", "unlink", "write_bytes"),
    "write_text",
}
_SHUTIL = {"copy", "copy2", "copyfile", "copyfileobj", "copymode", "copytree", "move", "rmtree", "unpack_archive"}
_MODULES = {
    "os": _OS,
    "shutil": _SHUTIL,
    "tempfile": {"mkstemp", "mkdtemp", "NamedTemporaryFile", "TemporaryDirectory", "TemporaryFile"},
    "logging": {"FileHandler"},
    "zipfile": {"ZipFile"},
    "tarfile": {"TarFile"},
}
_WRITING_FLAGS = {"O_APPEND", "O_CREAT", "O_RDWR", "O_TRUNC", "O_WRONLY"}


def _module_and_name(function: ast.expr) -> tuple[str, str]:
    match function:
        case ast.Name(id=name):
            return "", name
        case ast.Attribute(value=ast.Name(id=module), attr=name):
            return module, name
        case ast.Attribute(attr=name):
            return "?", name
    return "?", ""


def _mode(call: ast.Call, position: int) -> str | None:
    """The mode of a call of `open`, or None where it is not a literal."""
    values = [keyword.value for keyword in call.keywords if keyword.arg == "mode"] or call.args[position : position + 1]
    if not values:
        return "r"
    return str(values[0].value) if isinstance(values[0], ast.Constant) else None


def _is_writing_mode(mode: str | None) -> bool:
    return mode is None or bool(set(mode) & set("wax+"))


def written(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Each call that writes, with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (name := _name_of_write(node)):
            yield node.lineno, name


def _name_of_write(call: ast.Call) -> str:
    """How a call writes, or "" if it does not."""
    module, name = _module_and_name(call.func)
    if name == "open":
        return _name_of_open(call, module)
    if module in _MODULES:
        return f"{module}.{name}" if name in _MODULES[module] else ""
    # That of text takes two arguments, that of data keywords, and `disk.replace` is the module.
    is_rename = name == "replace" and len(call.args) == 1 and not call.keywords and module
    return f".{name}" if module and (name in _PATH or is_rename) else ""


def _name_of_open(call: ast.Call, module: str) -> str:
    if module == "os":
        nodes = [node for argument in call.args[1:] for node in ast.walk(argument)]
        flags = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
        is_reading = any(isinstance(node, ast.Name) and node.id == "_READ" for node in nodes) or "O_RDONLY" in flags
        return "" if is_reading and not flags & _WRITING_FLAGS else "os.open"
    if not module:
        return "open" if _is_writing_mode(_mode(call, 1)) else ""
    # `Workspace.open` takes a folder, and that of urllib a request.
    is_other = module == "Workspace" or any(keyword.arg == "timeout" for keyword in call.keywords)
    return ".open" if call.args and not is_other and _is_writing_mode(_mode(call, 0)) else ""


def test_nothing_else_writes() -> None:
    found = {
        (file, name): line
        for path in sorted((ROOT / "tpudeploy").rglob("*.py"))
        if (file := str(path.relative_to(ROOT))) != THE_MODULE and not file.startswith(EMULATOR)
        for line, name in written(ast.parse(path.read_text(encoding="utf-8")))
    }
    others = [f"{file}:{line}: {name}" for (file, name), line in found.items() if (file, name) not in ALLOWED]
    assert others == [], f"write through {THE_MODULE}, which follows no link"
    assert not ALLOWED.keys() - found.keys(), "what is allowed is there"


def test_each_way_of_writing_is_noticed() -> None:
    lines = (
        "open(p, 'w')",
        "open(p, mode='ab')",
        "p.open('x', encoding='utf-8')",
        "p.open(mode)",
        "Path(p).write_text(t)",
        "(a / b).write_bytes(t)",
        "os.open(p, os.O_WRONLY | os.O_CREAT)",
        "os.open(p, flags)",
        "os.replace(a, b)",
        "os.rename(a, b)",
        "p.replace(q)",
        "p.unlink(missing_ok=True)",
        "p.mkdir()",
        "p.chmod(0o600)",
        "shutil.copy2(a, b)",
        "tempfile.mkstemp()",
        "logging.FileHandler(p)",
    )
    assert [line for line in lines if not list(written(ast.parse(line)))] == []
    harmless = (
        "open(p)",
        "p.open('rb')",
        "os.open(p, os.O_RDONLY)",
        "text.replace('a', 'b')",
        "replace(state, serial=1)",
        "signature.replace(parameters=x)",
        "disk.replace(path, text)",
    )
    assert [line for line in harmless if list(written(ast.parse(line)))] == []
