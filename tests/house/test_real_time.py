"""Tests wait in real time as `real_time` does, so that a busy machine fails none of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from real_time import DEADLINE

TESTS = Path(__file__).parents[1]
# Measurements, and what needs a real engine, system or router.
ELSEWHERE = ("bench", "oracle", "real_engine", "real_ray", "real_systemd", "real_time.py", "node/routers")


def test_a_wait_for_another_process_is_as_long_as_the_slowest_machine_needs() -> None:
    assert DEADLINE >= 300
    assert not list(_hasty_calls())


def _hasty_calls() -> Iterator[str]:
    """Yield the calls that sleep, and those whose timeout is seconds. One below a second is what its test is about."""
    for path in TESTS.rglob("*.py"):
        name = path.relative_to(TESTS).as_posix()
        if name.startswith(ELSEWHERE):
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            if ast.unparse(node.func) == "time.sleep" or any(map(_is_short, node.keywords)):
                yield f"{name}:{node.lineno}: {ast.unparse(node)}"


def _is_short(argument: ast.keyword) -> bool:
    value = argument.value.value if isinstance(argument.value, ast.Constant) else None
    return argument.arg == "timeout" and isinstance(value, int | float) and 1 <= value < 60
