"""Measure the language of the code, and fail where it falls behind what was reached: `python tests/house/words.py`.

A name says what a thing is (`state`, `changes`), and not what happened to it (`found`, `told`); a function is a verb
phrase or the noun that it returns. Sentences for people are plain English. The limits only ever go down: a change that
beats one lowers it in the same commit. docs/maintainers/measurements.md has its history. Of the tests, only names are measured.

A noun means one thing: a class has its name to itself, except a result of the library beside what it is made from, and
an event beside the state of an attempt that follows it (`events.Draining`, `life.Draining`).
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "tpudeploy"

PARTICIPLES = frozenset(
    [
        "found",
        "known",
        "told",
        "asked",
        "said",
        "left",
        "held",
        "kept",
        "given",
        "named",
        "shown",
        "written",
        "wanted",
        "seen",
        "made",
        "meant",
        "judged",
        "remembered",
        "presumed",
        "weighed",
        "freed",
        "learnt",
        "reckoned",
        "lost",
        "taken",
        "gone",
        "done",
        "sent",
        "put",
        "got",
        "would",
        "of",
    ]
)
PHRASES = re.compile(
    r"\b(is no [a-z]+ of|anew|whoever|so many|(?-i:is none)|how manieth|for who |nobody|somebody|goes on|went on)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Limit:
    """The most that a package may have: participles in 1,000 names, functions so named, phrases in its texts."""

    participles: float
    functions: int
    phrases: int


LIMITS = {
    "": Limit(participles=0.0, functions=0, phrases=0),
    "adapters": Limit(participles=0.0, functions=0, phrases=0),
    "availability": Limit(participles=0.0, functions=0, phrases=0),
    "boot_log": Limit(participles=0.0, functions=0, phrases=1),
    "catalog": Limit(participles=0.0, functions=0, phrases=0),
    "cli": Limit(participles=0.0, functions=0, phrases=0),
    "config": Limit(participles=0.0, functions=0, phrases=0),
    "domain": Limit(participles=8.9, functions=0, phrases=0),
    "emulator": Limit(participles=0.0, functions=0, phrases=1),
    "engine": Limit(participles=0.0, functions=0, phrases=0),
    "features": Limit(participles=2.0, functions=1, phrases=0),  # `said` is a key of tpudeploy.answers/1
    "metrics": Limit(participles=0.0, functions=0, phrases=0),
    "node": Limit(participles=0.0, functions=0, phrases=0),
    "operations": Limit(participles=0.0, functions=0, phrases=0),
    "orphans": Limit(participles=0.0, functions=0, phrases=0),
    "planning": Limit(participles=1.2, functions=0, phrases=0),
    "reconcile": Limit(participles=2.4, functions=0, phrases=1),
    "serialization": Limit(participles=4.7, functions=0, phrases=0),  # `seen` is a key of tpudeploy.state-show/1
    "schemas": Limit(participles=0.0, functions=0, phrases=0),
    "sizing": Limit(participles=0.0, functions=0, phrases=0),
    "text": Limit(participles=0.0, functions=0, phrases=0),
    "verify": Limit(participles=0.0, functions=0, phrases=0),
    "views": Limit(participles=0.0, functions=0, phrases=0),
}
LIMIT_OF_TESTS = Limit(participles=3.0, functions=8, phrases=0)
LIMIT_OF_SHARED_NAMES = 9  # names of classes that more than one module defines


@dataclass(frozen=True)
class Measure:
    """What one package has; the same three figures as `Limit`."""

    participles: float
    functions: int
    phrases: int

    def exceeds(self, limit: Limit) -> bool:
        """Return whether one figure is above its limit."""
        return (
            round(self.participles, 1) > limit.participles
            or self.functions > limit.functions
            or self.phrases > limit.phrases
        )


def measure(files: list[Path], *, has_texts: bool = True) -> Measure:
    """Return the figures of all `files` together; without `has_texts`, their texts are not for people."""
    names: list[str] = []
    functions = phrases = 0
    for path in files:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names.extend(bound_names(tree))
        functions += sum(is_participle(name) for name in function_names(tree))
        if has_texts:
            phrases += sum(len(PHRASES.findall(text)) for text in strings(tree))
    share = 1000 * sum(map(is_participle, names)) / max(1, len(names))
    return Measure(participles=share, functions=functions, phrases=phrases)


def is_participle(name: str) -> bool:
    """Return whether a name is a bare participle, or one of the words that say as little."""
    return name.strip("_") in PARTICIPLES


def bound_names(tree: ast.AST) -> Iterator[str]:
    """Yield each name that is assigned to, and each parameter but `self`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg) and node.arg != "self":
            yield node.arg


def function_names(tree: ast.AST) -> Iterator[str]:
    """Yield the name of each function and method."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name


def shared_class_names() -> dict[str, list[str]]:
    """Return the names of classes that more than one module of the product defines, with those modules."""
    modules: dict[str, list[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        for name in sorted({node.name for node in nodes if isinstance(node, ast.ClassDef)}):
            modules.setdefault(name, []).append(str(path.relative_to(PACKAGE)))
    return {name: homes for name, homes in sorted(modules.items()) if len(homes) > 1}


def strings(tree: ast.AST) -> Iterator[str]:
    """Yield each text, docstrings and the constant parts of f-strings included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def main() -> int:
    """Print the figures of each package and of the tests, and return 1 where one is above its limit."""
    is_worse = False
    for name, limit in LIMITS.items():
        folder = PACKAGE / name
        files = sorted(folder.rglob("*.py") if name else PACKAGE.glob("*.py"))
        is_worse |= report(name or "the root", measure(files), limit)
    tests = measure(sorted((ROOT / "tests").rglob("*.py")), has_texts=False)
    is_worse |= report("tests", tests, LIMIT_OF_TESTS)
    is_worse |= report_shared_class_names(shared_class_names())
    return int(is_worse)


def report_shared_class_names(modules: dict[str, list[str]]) -> bool:
    """Print how many classes share a name, which ones if there are too many, and return whether that is so."""
    is_above = len(modules) > LIMIT_OF_SHARED_NAMES
    print(f"names of classes in several modules: {len(modules)} ({LIMIT_OF_SHARED_NAMES})")
    if is_above:
        print("".join(f"  {name}: {', '.join(homes)}\n" for name, homes in modules.items()), end="")
    return is_above


def report(name: str, figures: Measure, limit: Limit) -> bool:
    """Print the figures beside their limits, and return whether one is above its limit."""
    is_above = figures.exceeds(limit)
    print(
        f"{name:10} {figures.participles:5.1f} participles in 1,000 names ({limit.participles}), "
        f"{figures.functions:3} functions ({limit.functions}), {figures.phrases:3} phrases ({limit.phrases})"
        f"{'  above its limit' if is_above else ''}"
    )
    return is_above


if __name__ == "__main__":
    sys.exit(main())
