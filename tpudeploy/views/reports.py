"""Format the result of `validate` for other programs: JSON, GitHub annotations, SARIF and JUnit."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any
from xml.etree import ElementTree as ET

from tpudeploy.domain.diagnostics import Diagnostic, Location, Severity, errors_in
from tpudeploy.domain.excerpt import describe_diagnostics
from tpudeploy.text.words import plain
from tpudeploy.version import VERSION

FORMAT = "tpudeploy.diagnostics/1"
_GITHUB_LIMIT = 10  # annotations of one severity that GitHub shows of one step
# Characters that a path may contain unescaped (RFC 3986, without the colon, which would make a scheme).
_IN_PATH = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/@!$&'()*+,;=")
_SARIF = "https://json.schemastore.org/sarif-2.1.0.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedProfile:
    """Holds one profile's diagnostics. Warnings leave it valid. `name` is "" where it could not be read.

    `note` is what there is to know about a valid one.
    """

    file: str
    diagnostics: tuple[Diagnostic, ...]
    name: str = ""
    note: str = ""

    @property
    def is_valid(self) -> bool:
        return not errors_in(self.diagnostics)

    @property
    def line(self) -> str:
        """Return the line of a valid profile."""
        return f"{self.file}: valid ({self.note})" if self.note else f"{self.file}: valid"


def as_json(checked: Iterable[CheckedProfile]) -> str:
    files = [{"file": c.file, "valid": c.is_valid, "diagnostics": [asdict(d) for d in c.diagnostics]} for c in checked]
    tree = {"format": FORMAT, "valid": all(f["valid"] for f in files), "profiles": files}
    return json.dumps(tree, indent=2, ensure_ascii=False)


def as_github(checked: Iterable[CheckedProfile]) -> str:
    """Return workflow commands. GitHub annotates a pull request with ten of each severity; the log has all of them."""
    diagnostics = sorted(_with_locations(checked), key=lambda pair: pair[0].severity is not Severity.ERROR)
    lines = [_annotation(at, d) for d, at in diagnostics]
    for severity, count in Counter(d.severity for d, _ in diagnostics).items():
        if count > _GITHUB_LIMIT:
            lines.append(
                f"::notice::{count} {severity}s; GitHub shows {_GITHUB_LIMIT} of them, and the log of this step all."
            )
    return "\n".join(lines)


def as_sarif(checked: Iterable[CheckedProfile]) -> str:
    diagnostics = list(_with_locations(checked))
    driver = {
        "name": "tpudeploy",
        "version": VERSION,
        "rules": [{"id": c} for c in dict.fromkeys(d.code for d, _ in diagnostics)],
    }
    run = {"tool": {"driver": driver}, "results": [_result(at, d) for d, at in diagnostics]}
    return json.dumps({"$schema": _SARIF, "version": "2.1.0", "runs": [run]}, indent=2, ensure_ascii=False)


def as_junit(checked: Iterable[CheckedProfile]) -> str:
    """Return one test case per profile, with its warnings as output."""
    rows = list(checked)
    failed = sum(not c.is_valid for c in rows)
    suite = ET.Element("testsuite", name="tpudeploy validate", tests=str(len(rows)), failures=str(failed))
    for row in rows:
        case = ET.SubElement(suite, "testcase", classname="tpudeploy", name=row.file)
        if row.diagnostics:
            element = ET.SubElement(case, "system-out" if row.is_valid else "failure")
            if not row.is_valid:
                element.set("message", plain(errors_in(row.diagnostics)[0].message))
            element.text = describe_diagnostics(row.diagnostics)
    ET.indent(suite)
    return ET.tostring(suite, encoding="unicode", xml_declaration=True)


REPORTS: Mapping[str, Callable[[Iterable[CheckedProfile]], str]] = {
    "json": as_json,
    "github": as_github,
    "sarif": as_sarif,
    "junit": as_junit,
}


def _with_locations(checked: Iterable[CheckedProfile]) -> Iterator[tuple[Diagnostic, Location]]:
    """Yield each diagnostic with a location: the top of its profile if it has no line of its own."""
    for row in checked:
        for each in row.diagnostics:
            at = each.location
            is_in_file = at is not None and at.line > 0 and not at.file.startswith("--")
            yield each, at if at is not None and is_in_file else Location(file=row.file, line=1, column=1)


def _annotation(at: Location, diagnostic: Diagnostic) -> str:
    place = {
        "file": at.file,
        "line": at.line,
        "col": at.column,
        "endColumn": at.column + at.width,
        "title": diagnostic.code,
    }
    properties = ",".join(f"{key}={_escape(str(value), ',:')}" for key, value in place.items())
    return f"::{diagnostic.severity} {properties}::{_escape(_text(diagnostic))}"


def _escape(text: str, also: str = "") -> str:
    """Escape a text as GitHub's toolkit does: characters that end a command, and in properties those that end one."""
    for character in f"%\r\n{also}":
        text = text.replace(character, f"%{ord(character):02X}")
    return text


def _result(at: Location, diagnostic: Diagnostic) -> Mapping[str, Any]:
    region = {"startLine": at.line, "startColumn": at.column, "endColumn": at.column + at.width}
    place = {"physicalLocation": {"artifactLocation": {"uri": _uri(at.file)}, "region": region}}
    level = "error" if diagnostic.severity is Severity.ERROR else "warning"
    return {"ruleId": diagnostic.code, "level": level, "message": {"text": _text(diagnostic)}, "locations": [place]}


def _uri(path: str) -> str:
    return "".join(c if c in _IN_PATH else "".join(f"%{byte:02X}" for byte in c.encode()) for c in path)


def _text(diagnostic: Diagnostic) -> str:
    return plain(f"{diagnostic.message}\n{diagnostic.hint}" if diagnostic.hint else diagnostic.message)
