"""No decision reads prose: what a message, reason or hint means to a program is a value beside it.

A text for people changes with each better wording. The folders of FOREIGN read texts that are all there is: Google's,
vLLM's, those of logs and of earlier versions.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PRODUCT = Path(__file__).parents[2] / "tpudeploy"
FOREIGN = ("adapters", "boot_log", "emulator", "features/compile", "features/learn", "serialization")
PROSE = frozenset({"message", "reason", "why", "hint", "problem", "subject", "note"})
READS = frozenset(
    {"startswith", "endswith", "partition", "rpartition", "removeprefix", "removesuffix", "split", "find", "strip"}
)
MATCHES = frozenset({"match", "search", "fullmatch"})


def decisions_by_prose(source: str) -> Iterator[str]:
    """Yield each expression that takes a text for people apart, or looks into it."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Attribute(attr="endswith" | "removesuffix"), args=ends) if _is_punctuation(ends):
                continue  # another sentence follows it
            case ast.Call(func=ast.Attribute(value=text, attr=method), args=arguments):
                is_read = method in READS and _is_prose(text)
                is_matched = method in MATCHES and any(map(_is_prose, arguments))
                if is_read or is_matched:
                    yield f"{node.lineno}: {ast.unparse(node)}"
            case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[text]) if _is_prose(text):
                yield f"{node.lineno}: {ast.unparse(node)}"
            case ast.Compare(left=text, ops=[ast.Eq() | ast.NotEq()], comparators=[ast.Constant(value=str(literal))]):
                if literal and _is_prose(text):
                    yield f"{node.lineno}: {ast.unparse(node)}"


def _is_prose(node: ast.expr) -> bool:
    """Return whether a name says that this is a text for people: `error.message`, `why.text`, `why_unknown(word)`."""
    match node:
        case ast.Attribute(value=owner, attr="text"):
            return _is_prose(owner)
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name.lower().split("_")[-1] in PROSE
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)):
            return not PROSE.isdisjoint(name.lower().split("_"))
        case ast.Subscript(slice=ast.Constant(value=str(name))):
            return name in PROSE
    return False


def _is_punctuation(arguments: list[ast.expr]) -> bool:
    values = [node.value for argument in arguments for node in ast.walk(argument) if isinstance(node, ast.Constant)]
    return bool(values) and not any(character.isalnum() for value in values for character in str(value))


@pytest.mark.parametrize(
    "planted",
    [
        'if event.why.startswith("lifecycle.hours"): pass',
        "if part.name in error.message: pass",
        'if "quota" not in str_reason: pass',
        'cause = self.why.partition(":")[0]',
        'notes = [n for n in notes if n.subject.strip("`-") not in FLAGS]',
        'match = re.match(r"write ([a-z]+)", hint)',
        "found = _PATTERN.search(problem.message.text)",
        'reason = why_unknown(word, "model.id").partition(": write")[0]',
        'cause = tree["why"].split(":")',
        'if attempt.reason == "its machine is gone": pass',
    ],
)
def test_a_decision_by_a_text_is_found(planted: str) -> None:
    assert len(list(decisions_by_prose(planted))) == 1


@pytest.mark.parametrize(
    "sentence",
    [
        'text = message if message.endswith((".", "?")) else f"{message}."',
        "if reason in REASONS: pass",
        "hint.format(1)",
    ],
)
def test_writing_a_text_is_no_decision_by_it(sentence: str) -> None:
    assert not list(decisions_by_prose(sentence))


def test_no_decision_reads_prose() -> None:
    files = [path for path in PRODUCT.rglob("*.py") if not path.relative_to(PRODUCT).as_posix().startswith(FOREIGN)]
    reads = [
        f"{path.relative_to(PRODUCT)}:{line}" for path in files for line in decisions_by_prose(path.read_text("utf-8"))
    ]
    assert not reads, "what it means is a value, decided where the fact is known:\n" + "\n".join(sorted(reads))
