"""What `validate` found, for other programs: JSON, GitHub's annotations, SARIF for code scanning, JUnit for CI."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

from tpudeploy.domain.diagnostics import Diagnostic, Location, Severity, errors_in
from tpudeploy.domain.frozen import frozen
from tpudeploy.version import VERSION
from tpudeploy.views.excerpt import diagnostics
from tpudeploy.views.paint import Paint
from tpudeploy.views.words import plain

FORMAT = "tpudeploy.diagnostics/1"
_SHOWN = 10  # annotations of one severity that GitHub shows of one step
# What may stand in a path as it is (RFC 3986, without the colon that would make the beginning of it a scheme).
_IN_PATH = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/@!$&'()*+,;=")
_SARIF = "https://json.schemastore.org/sarif-2.1.0.json"


@frozen
class Checked:
    """One profile and what is to be said of it. Warnings leave it valid."""

    file: str
    found: tuple[Diagnostic, ...]

    @property
    def is_valid(self) -> bool:
        return not errors_in(self.found)


def as_json(checked: Iterable[Checked]) -> str:
    files = [{"file": c.file, "valid": c.is_valid, "diagnostics": [asdict(d) for d in c.found]} for c in checked]
    tree = {"format": FORMAT, "valid": all(f["valid"] for f in files), "profiles": files}
    return json.dumps(tree, indent=2, ensure_ascii=False)


def as_github(checked: Iterable[Checked]) -> str:
    """Workflow commands: GitHub shows each beside its line in the pull request, ten of a kind; the log has them all."""
    found = sorted(_placed(checked), key=lambda pair: pair[0].severity is not Severity.ERROR)
    lines = [_annotation(at, d) for d, at in found]
    for severity, many in Counter(d.severity for d, _ in found).items():
        if many > _SHOWN:
            lines.append(f"::notice::{many} {severity}s; GitHub shows {_SHOWN} of them, and the log of this step all.")
    return "\n".join(lines)


def as_sarif(checked: Iterable[Checked]) -> str:
    found = list(_placed(checked))
    driver = {
        "name": "tpudeploy",
        "version": VERSION,
        "rules": [{"id": c} for c in dict.fromkeys(d.code for d, _ in found)],
    }
    run = {"tool": {"driver": driver}, "results": [_result(at, d) for d, at in found]}
    return json.dumps({"$schema": _SARIF, "version": "2.1.0", "runs": [run]}, indent=2, ensure_ascii=False)


def as_junit(checked: Iterable[Checked]) -> str:
    """One test case a profile; its warnings are its output."""
    from xml.etree import ElementTree as ET

    rows = list(checked)
    failed = sum(not c.is_valid for c in rows)
    suite = ET.Element("testsuite", name="tpudeploy validate", tests=str(len(rows)), failures=str(failed))
    for row in rows:
        case = ET.SubElement(suite, "testcase", classname="tpudeploy", name=row.file)
        if row.found:
            told = ET.SubElement(case, "system-out" if row.is_valid else "failure")
            if not row.is_valid:
                told.set("message", plain(errors_in(row.found)[0].message))
            told.text = diagnostics(row.found, Paint())
    ET.indent(suite)
    return ET.tostring(suite, encoding="unicode", xml_declaration=True)


REPORTS: Mapping[str, Callable[[Iterable[Checked]], str]] = {
    "json": as_json,
    "github": as_github,
    "sarif": as_sarif,
    "junit": as_junit,
}


def _placed(checked: Iterable[Checked]) -> Iterator[tuple[Diagnostic, Location]]:
    """Every diagnostic with a place: the top of its profile where it speaks of the whole, or of no file."""
    for row in checked:
        for each in row.found:
            at = each.location
            is_in_file = at is not None and at.line > 0 and not at.file.startswith("--")
            yield each, at if at is not None and is_in_file else Location(file=row.file, line=1, column=1)


def _annotation(at: Location, of: Diagnostic) -> str:
    place = {"file": at.file, "line": at.line, "col": at.column, "endColumn": at.column + at.width, "title": of.code}
    properties = ",".join(f"{key}={_escaped(str(value), ',:')}" for key, value in place.items())
    return f"::{of.severity} {properties}::{_escaped(_text(of))}"


def _escaped(text: str, also: str = "") -> str:
    """As GitHub's own toolkit escapes: what ends a command, and in properties what ends a property."""
    for character in f"%\r\n{also}":
        text = text.replace(character, f"%{ord(character):02X}")
    return text


def _result(at: Location, of: Diagnostic) -> Mapping[str, Any]:
    region = {"startLine": at.line, "startColumn": at.column, "endColumn": at.column + at.width}
    place = {"physicalLocation": {"artifactLocation": {"uri": _uri(at.file)}, "region": region}}
    level = "error" if of.severity is Severity.ERROR else "warning"
    return {"ruleId": of.code, "level": level, "message": {"text": _text(of)}, "locations": [place]}


def _uri(path: str) -> str:
    return "".join(c if c in _IN_PATH else "".join(f"%{byte:02X}" for byte in c.encode()) for c in path)


def _text(of: Diagnostic) -> str:
    return plain(f"{of.message}\n{of.hint}" if of.hint else of.message)
