"""Every response is read within a budget: no module opens a connection of its own beside adapters/http_budget.py."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PRODUCT = Path(__file__).parents[2] / "tpudeploy"
_LIBRARIES = (
    "http.client",
    "urllib.request",
    "urllib.error",
    "requests",
    "urllib3",
    "httplib2",
    "socket",
    "ssl",
    "asyncio",
)
# The modules that may import a client of HTTP, or a socket, each with the reason. The emulator is a server of its own.
_ALLOWED = {
    "adapters/http_budget.py": "it is the budget",
    "adapters/requests_budget.py": "it is the budget of requests",
    "adapters/vllm_client.py": "the types of http.client; its connections are http_budget's",
    "features/gitops/github.py": "its session is limited",
    "adapters/google/transport.py": "its connections are metered",
    "adapters/google/connect.py": "its sessions are limited",
    "adapters/google/translate.py": "the exceptions",
    "features/benchmark/load/cell.py": "a client for thousands of streams; stream.py counts their bytes",
    "features/benchmark/load/client.py": "as cell.py",
    "features/benchmark/load/stream.py": "as cell.py",
    "adapters/routes.py": "it connects to see whether a tunnel is open, and reads nothing",
    "adapters/router_program.py": "it binds a port to see whether it is free, and reads nothing",
    "adapters/router_trial.py": "as router_program.py; its connections are http_budget's",
    "adapters/state/holder.py": "the name of this machine",
    "adapters/state/local.py": "the name of this machine",
}
# What reads without a budget, even in those modules.
_UNBOUNDED = {"urlopen", "HTTPConnection", "HTTPSConnection"}
_SESSIONS = {"features/gitops/github.py", "adapters/google/connect.py"}


@dataclass(frozen=True)
class ModuleUse:
    """The modules that a file imports, its calls as text, and the functions that it calls with their lines."""

    imports: frozenset[str]
    calls: tuple[str, ...]
    functions: tuple[tuple[int, str], ...]


@cache
def _modules() -> dict[str, ModuleUse]:
    """Return what each module of the product but the emulator uses; parsing them takes seconds."""
    paths = {path.relative_to(PRODUCT).as_posix(): path for path in sorted(PRODUCT.rglob("*.py"))}
    return {name: _use(path) for name, path in paths.items() if not name.startswith("emulator/")}


def _use(path: Path) -> ModuleUse:
    tree = ast.parse(path.read_text("utf-8"))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return ModuleUse(
        imports=frozenset(_imports(tree)),
        calls=tuple(map(ast.unparse, calls)),
        functions=tuple((call.lineno, ast.unparse(call.func)) for call in calls),
    )


def _imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _is_client(name: str) -> bool:
    return any(name == library or name.startswith(f"{library}.") for library in _LIBRARIES)


def test_no_module_imports_a_client_of_http_without_a_reason() -> None:
    users = {name for name, use in _modules().items() if any(map(_is_client, use.imports))}
    assert users == _ALLOWED.keys()


def test_a_module_that_may_import_one_opens_no_connection_without_a_budget() -> None:
    found = [
        f"{name}:{line}: {function}"
        for name, use in _modules().items()
        for line, function in use.functions
        if function.rpartition(".")[2] in _UNBOUNDED
    ]
    assert not found


def test_every_session_is_limited_where_it_is_made() -> None:
    for name, use in _modules().items():
        if "requests.Session()" in use.calls:
            assert name in _SESSIONS
            assert any(call.startswith("limit(") for call in use.calls), name


def test_what_reads_a_response_parses_it_as_somebody_elses() -> None:
    """`json.loads` raises RecursionError for `[[[[…`, and returns NaN and halves of characters."""
    readers = {"adapters/vllm_client.py", "adapters/registry.py", "adapters/sources.py", "features/gitops/github.py"}
    for name in readers | {"features/benchmark/load/stream.py"}:
        functions = {function for _, function in _modules()[name].functions}
        assert not functions & {"json.loads", "json.load", "reply.json"}, name
