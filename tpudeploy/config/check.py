"""Check a profile against its format and its rules: every problem at once, each at the place of its key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any

from pydantic import ValidationError

from tpudeploy.config.diagnose import in_order, problem
from tpudeploy.config.keys import field_at, section_of
from tpudeploy.config.nodes import MapNode, Path, find, key_location, plain_map
from tpudeploy.config.python_tree import tree_of
from tpudeploy.config.rules import violations
from tpudeploy.config.rules.violation import Violation
from tpudeploy.config.schema import ProfileSpec, Section
from tpudeploy.config.topology import with_type
from tpudeploy.config.translate import FieldError, findings_of, translate
from tpudeploy.domain.deployment import Json
from tpudeploy.domain.diagnostics import Diagnostic, Location, Severity, errors_in
from tpudeploy.domain.engine import Engine
from tpudeploy.domain.errors import ProfileInvalid

_MOST_REPLICAS = 1000


def check(
    tree: MapNode, deleted: Mapping[Path, Location], engine: Engine | None = None
) -> tuple[ProfileSpec | None, list[Diagnostic]]:
    """Return the profile of a tree, or None, and what is wrong with it.

    `deleted` are the keys that a null removed. `engine` is that of the image, if more is known of it than its name and
    tag tell. Nothing is remembered for the next profile: decision 78 in docs/decisions.md.
    """
    tree = with_type(tree)
    values = plain_map(tree)
    try:
        profile = rest = ProfileSpec.model_validate(values)
    except ValidationError as invalid:
        findings = tuple(findings_of(invalid))
        profile, rest = None, what_is_valid(values)
    else:
        findings = ()
    refused = {finding.path for finding in findings}
    problems = list(translate(findings, tree, deleted))
    problems += [
        locate(violation, tree)
        for violation in violations(rest, engine)
        if violation.is_key or violation.path not in refused
    ]
    return profile, problems


def invalid(subject: str, problems: Iterable[Diagnostic]) -> ProfileInvalid:
    """Return the error about a profile with problems."""
    diagnostics = in_order(problems)
    count = len(errors_in(diagnostics))
    noun = "problem" if count == 1 else "problems"
    return ProfileInvalid(
        f"{subject} has {count} {noun}",
        hint="each has a code: tpudeploy explain CODE",
        diagnostics=diagnostics,
    )


def invalid_section(form: type[Section], values: Mapping[str, object], refusal: ValidationError) -> ProfileInvalid:
    """Return the error about a section that was made in Python."""
    return invalid(f"The {form.__name__}", translate(tuple(findings_of(refusal)), tree_of(values), {}, form))


Section.refusal = invalid_section


def locate(violation: Violation, tree: MapNode) -> Diagnostic:
    """Return what a rule says with its place in a file."""
    find_place = key_location if violation.is_key else _value_location
    return problem(
        violation.code,
        violation.message,
        find_place(tree, violation.path) or _value_location(tree, violation.path),
        path=violation.path,
        hint=violation.hint,
        also=find_place(tree, violation.also) if violation.also else None,
        severity=Severity.WARNING if violation.is_warning else Severity.ERROR,
    )


def _value_location(tree: MapNode, path: Path) -> Location | None:
    """Return the location of the value at `path`, or of the nearest one around it: the JSON of a text has one place."""
    node = find(tree, path)
    return node.at if node is not None else _value_location(tree, path[:-1])


def what_is_valid(values: dict[str, Json]) -> ProfileSpec:
    """Return the profile of those values that are valid, for the rules.

    The key of a refused value counts as set and has its default. A text that must be there, an entry of a mapping and
    an item of a list are "" instead.
    """
    values, findings = deepcopy(values), list[FieldError]()
    while True:
        try:
            profile = ProfileSpec.model_validate(values)
            break
        except ValidationError as invalid:
            for finding in reversed(tuple(findings_of(invalid))):  # the last items of a list first
                _mend(values, finding)
                findings.append(finding)
    for finding in reversed(findings):
        _stand_in(profile, finding)
    return profile


def _mend(values: dict[str, Json], finding: FieldError) -> None:
    """Take a refused value out, and put an example where a required key is missing."""
    *above, last = finding.path
    around: Any = values
    for part in above:
        around = around[part]
    if finding.kind != "missing":
        del around[last]
        return
    field = field_at(finding.path)
    around[last] = {} if section_of(field) else (field.examples or [""])[0]


def _stand_in(profile: ProfileSpec, finding: FieldError) -> None:
    """Let the key of a refused or missing value have what `what_is_valid` says."""
    *above, last = finding.path
    if isinstance(last, int):
        *above, key = above
        section = _at(profile, above)
        items = getattr(section, str(key))
        items = items if isinstance(items, tuple) else ()
        section.__dict__[key] = (*items[:last], "", *items[last:])
        section.model_fields_set.add(str(key))
        return
    around = _at(profile, above)
    if isinstance(around, dict):
        around[last] = ""
    elif isinstance(around, Section) and finding.kind != "extra_forbidden":
        field = type(around).model_fields[last]
        if field.is_required() and section_of(field) is None:
            around.__dict__[last] = _MOST_REPLICAS if field.annotation is int else ""
        (around.model_fields_set.discard if finding.kind == "missing" else around.model_fields_set.add)(last)


def _at(profile: ProfileSpec, path: Sequence[str | int]) -> Any:
    value: Any = profile
    for part in path:
        value = getattr(value, str(part)) if isinstance(value, Section) else value[part]
    return value
