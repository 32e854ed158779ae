"""Print the tests that exercise a file of the product, most lines first: `make which FILE=tpudeploy/planning/quota.py`.

It reads what the last `make coverage` stored. A line counts that lies in a function: those of an import say nothing.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from pathlib import Path

from coverage import Coverage


def main(name: str) -> int:
    path = Path(name).resolve()
    if not path.is_file():
        print(f"{name} is no file; for example: make which FILE=tpudeploy/planning/quota.py", file=sys.stderr)
        return 1
    coverage = Coverage()
    if not Path(coverage.config.data_file).exists():
        print("No coverage is stored yet: run make coverage, or make coverage TESTS=tests/FOLDER.", file=sys.stderr)
        return 1
    coverage.load()
    inside = lines_of_functions(path.read_text(encoding="utf-8"))
    lines = Counter(
        test
        for number, contexts in coverage.get_data().contexts_by_lineno(str(path)).items()
        if number in inside
        for test in {context.partition("|")[0].partition("[")[0] for context in contexts if context}
    )
    for test, count in sorted(lines.items(), key=lambda row: (-row[1], row[0])):
        print(f"{count:5} lines  {test}")
    if not lines:
        print(f"No test of the stored run exercises {name}.")
    return 0


def lines_of_functions(source: str) -> set[int]:
    """Return the lines below the heads of functions, which run when a function does and not when it is imported."""
    functions = (
        node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    return {line for node in functions for line in range(node.body[0].lineno, (node.end_lineno or 0) + 1)}


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2] or [""]))
