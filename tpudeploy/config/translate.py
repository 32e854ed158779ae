"""Translate what the sections refuse into diagnostics with our wording, at the place of the value."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args, get_origin

from pydantic import ValidationError

from tpudeploy.catalog import closest, flags, zones_of_region
from tpudeploy.config import codes, core_scalars, ollama, topology
from tpudeploy.config.diagnose import as_yaml, did_you_mean, problem, quoted
from tpudeploy.config.foreign_keys import HINTS, VALUES
from tpudeploy.config.keys import all_keys, field_at, fields_at, section_of
from tpudeploy.config.nodes import ListNode, MapNode, Node, Path, ScalarNode, dotted, find, key_location
from tpudeploy.config.schema import ProfileSpec, Section
from tpudeploy.config.schema.base import TAGS
from tpudeploy.domain.diagnostics import Diagnostic, Location

_EXPECTED: Mapping[str, str] = {
    "string_type": "text",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
}
_UNQUOTED = frozenset({"int_type", "float_type", "bool_type"})
_RANGE: Mapping[str, tuple[str, str]] = {
    "greater_than": ("gt", "Must be more than {:g}"),
    "greater_than_equal": ("ge", "Must be at least {:g}"),
    "less_than": ("lt", "Must be less than {:g}"),
    "less_than_equal": ("le", "Must be at most {:g}"),
    "too_short": ("min_length", "Must have at least this many items: {:g}"),
}


class FieldError(NamedTuple):
    """What pydantic refuses: its word for why, the path, and the limit or the form."""

    kind: str
    path: Path
    detail: Mapping[str, Any]


def findings_of(invalid: ValidationError) -> Iterator[FieldError]:
    """Yield what is wrong, each at its path without the names of alternatives."""
    for error in invalid.errors(include_url=False):
        if error["type"] != "too_short" or not error["input"]:  # pydantic counts the items that are right
            path = tuple(part for part in error["loc"] if part not in TAGS)
            yield FieldError(kind=error["type"], path=path, detail=error.get("ctx", {}))


def translate(
    findings: Sequence[FieldError],
    root: MapNode,
    deleted: Mapping[Path, Location],
    form: type[Section] = ProfileSpec,
) -> Iterator[Diagnostic]:
    """Yield one diagnostic per finding. `deleted` are the keys that a null removed, maybe a required one.

    `form` is the section of the whole document: of a profile, or of another file that is read as strictly.
    """
    # A misspelled required key is one problem, not an unknown key and a missing one.
    unknown = [path for kind, path, _ in findings if kind == "extra_forbidden"]
    suggested = {(*path[:-1], closest(str(path[-1]), _absent(path, root, form))) for path in unknown}
    # A rule says why the generation and the topology that are written name no type.
    if any(find(root, ("tpu", key)) for key in topology.KEYS):
        suggested.add(("tpu", "type"))
    for kind, path, detail in findings:
        if kind == "missing":
            if path not in suggested:
                yield _missing(path, root, deleted, form)
        elif kind == "extra_forbidden":
            yield unknown_key(path, key_location(root, path), root, form)
        else:
            yield _of_value(kind, detail, path, find(root, path) or root, form)


def unknown_key(path: Path, at: Location | None, root: MapNode, form: type[Section] = ProfileSpec) -> Diagnostic:
    word = str(path[-1])
    hint = _suggestion(path, root) if form is ProfileSpec else did_you_mean(word, _absent(path, root, form))
    return problem(codes.UNKNOWN_KEY, f"Unknown key {quoted(word)}", at, path=path, hint=hint)


def _suggestion(path: Path, root: MapNode) -> str:
    """Suggest the place where a key of this name belongs; else a similar key of the section; else a flag of vLLM.

    Keys that the file sets already are not suggested, because a key may be set once.
    """
    word = str(path[-1])
    if len(path) == 1 and (foreign := _foreign(word, root)):
        return foreign
    same_name = [key for key in all_keys() if key[-1] == word.replace("-", "_")]
    elsewhere = next((dotted(key) for key in same_name if not _is_beside(key, path, root)), "")
    if elsewhere:
        return f'did you mean "{elsewhere}"?'
    if not same_name and flags.find(word):
        return did_you_mean(word, _absent(path, root)) or "flags of vLLM belong under serving.args"
    return did_you_mean(word, _absent(path, root))


def _foreign(word: str, root: MapNode) -> str:
    """Return what does the same as another tool's key at the top, or ""."""
    foreign = HINTS.get(word)
    if foreign is None:
        return ""
    is_set = foreign.key is not None and find(root, tuple(foreign.key.split("."))) is not None
    return f"{foreign.key} does that, and is already set" if is_set else str(foreign)


def _absent(unknown: Path, root: MapNode, form: type[Section] = ProfileSpec) -> list[str]:
    """Return the keys of its section that are not set beside an unknown one."""
    section = unknown[:-1]
    return [name for name in fields_at(section, form) or {} if not _is_beside((*section, name), unknown, root)]


def _is_beside(key: Path, unknown: Path, root: MapNode) -> bool:
    """Return whether a key is set in the same file. It may be set in another one, because layers override keys."""
    there, here = key_location(root, key), key_location(root, unknown)
    return there is not None and here is not None and there.file == here.file


def _missing(path: Path, root: MapNode, deleted: Mapping[Path, Location], form: type[Section]) -> Diagnostic:
    at = deleted.get(path) or key_location(root, path[:-1]) or root.at
    needed = list(_required(path, form))
    example = field_at(needed[0], form).examples or [""]
    keys = " and ".join(quoted(dotted(key)) for key in needed)
    hint = f"add {needed[0][-1]}: {as_yaml(example[0])}"
    return problem(codes.MISSING_KEY, f"Missing key {keys}", at, path=path, hint=hint)


def _required(path: Path, form: type[Section]) -> Iterator[Path]:
    """Yield the key itself, or the required keys of its section."""
    section = section_of(field_at(path, form))
    if section is None:
        yield path
    else:
        yield from ((*path, name) for name, key in section.model_fields.items() if key.is_required())


def _of_value(kind: str, detail: Any, path: Path, node: Node, form: type[Section]) -> Diagnostic:
    if kind in _EXPECTED:
        message = f"Expected {_EXPECTED[kind]}, got {_shape(node)}"
        hint = _type_hint(kind, node) or _example(path, form)
        return problem(codes.WRONG_TYPE, message, node.at, path=path, hint=hint)
    if kind in _RANGE:
        limit, message = _RANGE[kind]
        return problem(codes.OUT_OF_RANGE, message.format(detail[limit]), node.at, path=path, hint=_example(path, form))
    if kind == "literal_error":
        return _not_a_choice(_choices(field_at(path, form).annotation), path, node, form)
    if kind == "time_zone":
        hint = "write an IANA name, e.g. Europe/Berlin, or UTC"
        return problem(codes.WRONG_FORM, f"No such time zone in {_describe(node)}", node.at, path=path, hint=hint)
    if kind == "no_time_zones":
        hint = "Install the database of time zones: pip install tzdata"
        message = f"This computer has no time zones, so {_describe(node)} cannot be read"
        return problem(codes.WRONG_FORM, message, node.at, path=path, hint=hint)
    message = f"{_describe(node)} does not have the required form"
    hint = (form is ProfileSpec and _right_form(path, node)) or f"it looks like {detail['looks']}"
    return problem(codes.WRONG_FORM, message, node.at, path=path, hint=hint)


def _choices(annotation: Any) -> tuple[str, ...]:
    """Return the words of a Literal, also of one inside a list or an alternative."""
    if get_origin(annotation) is Literal:
        return get_args(annotation)
    return tuple(word for each in get_args(annotation) for word in _choices(each))


def _right_form(path: Path, node: Node) -> str:
    """Return what a value of another form means here: the page of a model, a region; or ""."""
    word = node.text if isinstance(node, ScalarNode) else ""
    if path == ("model", "id"):
        id_ = re.sub(r"^(https?://(www\.)?(huggingface\.co|hf\.co)/|hf://|huggingface://)", "", word).strip("/ ")
        id_ = re.sub(r"/(tree|blob|resolve)/.*$", "", id_)
        if id_ != word and re.fullmatch(r"[\w.-]+/[\w.-]+", id_):
            return f"write {id_}"

        return ollama.hint(word)
    if path[:2] == ("placement", "zones"):
        zones = zones_of_region(word.lower())
        if zones:
            return f"{word.lower()} is a region; its zones with TPUs are {', '.join(zones)}"
        return f"write {word.lower()}" if zones_of_region(word.lower().rpartition("-")[0]) else ""
    return ""


def _example(path: Path, form: type[Section]) -> str:
    field = (fields_at(path[:-1], form) or {}).get(str(path[-1])) if path else None
    if field is None:
        return ""
    if field.examples:
        return f"e.g. {path[-1]}: {as_yaml(field.examples[0])}"
    needed = list(_required(path, form)) if section_of(field) else []
    inner = ", ".join(f"{key[-1]}: {as_yaml((field_at(key, form).examples or ['…'])[0])}" for key in needed)
    return f"e.g. {path[-1]}: {{{inner}}}" if inner else ""


def _not_a_choice(choices: tuple[str, ...], path: Path, node: Node, form: type[Section]) -> Diagnostic:
    word = node.text if isinstance(node, ScalarNode) else ""
    if isinstance(node, ListNode | MapNode):
        message = f"Expected one of {', '.join(choices)}, got {_shape(node)}"
    else:
        message = f"{quoted(word)} is not one of {', '.join(choices)}"
    return problem(codes.NOT_A_CHOICE, message, node.at, path=path, hint=_choice_hint(word, choices, path, form))


def _choice_hint(word: str, choices: tuple[str, ...], path: Path, form: type[Section]) -> str:
    """Return the choice that a word means: another tool's word, or a near one; or that a list belongs there."""
    choice = VALUES.get(word.lower(), "")
    if choice in choices:
        return f"write {choice}"
    field = (fields_at(path[:-1], form) or {}).get(str(path[-1])) if path else None
    takes_list = field is not None and any(isinstance(example, list) for example in field.examples or ())
    near = did_you_mean(word, choices)
    if word and takes_list and not near:
        return f"write a list: [{', '.join(filter(None, re.split(r'[, ]+', word)))}]"
    return near


def _shape(node: Node) -> str:
    match node:
        case ListNode():
            return "a list"
        case MapNode():
            return "a mapping"
        case ScalarNode(value=bool()):
            return f"a boolean, {node.text}"
        case ScalarNode(value=int() | float()):
            return f"a number, {node.text}"
        case ScalarNode(value=None):
            return "nothing"
        case ScalarNode():
            return f"text, {quoted(node.text)}"


def _describe(node: Node) -> str:
    return quoted(node.text) if isinstance(node, ScalarNode) else _shape(node)


def _type_hint(kind: str, node: Node) -> str:
    if not isinstance(node, ScalarNode) or node.value is None:
        return ""
    if kind == "string_type":
        return f'quote it: "{_source_text(node)}"'
    if kind == "tuple_type":
        return f"write a list: [{_source_text(node)}]"
    unquoted = kind in _UNQUOTED and not node.plain and core_scalars.is_literal(node.text)
    return f"leave out the quotes: {node.text}" if unquoted else ""


def _source_text(node: ScalarNode) -> str:
    """Return the text in the source: a variable's name, if the value came from the environment."""
    begin = node.at.column - 1
    return node.at.text[begin : begin + node.at.width]
