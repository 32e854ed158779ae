"""Request bodies checked against the discovery documents that Google ships with its Python client, read as data."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tpudeploy.emulator import wire

VERSIONS = ("v2", "v2alpha1")

# Enums travel as numbers from the typed client. Discovery lists names without numbers; where the numbers are not
# simply 0, 1, 2 … they are here (google-cloud-tpu 1.28).
_NUMBERS: Mapping[str, tuple[int, ...]] = {
    "AcceleratorConfig.type": (0, 2, 4, 7, 9, 10, 11),
    "Node.health": (0, 1, 3, 4, 5),
    "Node.state": (0, 1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13, 14, 15, 16),
}
# Compute Engine's descriptions of its lists ask for this parameter, and its document declares it nowhere (2026-11).
_UNDECLARED = ("returnPartialSuccess",)
_TYPES: Mapping[str, tuple[type, str]] = {
    "string": (str, "TYPE_STRING"),
    "boolean": (bool, "TYPE_BOOL"),
    "integer": (int, "TYPE_INT32"),
    "number": (float, "TYPE_DOUBLE"),
}


def schemas(version: str) -> Mapping[str, Mapping[str, Any]]:
    """Return the schemas of Cloud TPU's `version`, or of another service, e.g. `iam.v1`."""
    tree: Mapping[str, Mapping[str, Any]] = _document(version)["schemas"]
    return tree


def parameters(version: str, collection: str, method: str) -> frozenset[str]:
    """Return every query parameter of a method."""
    document = _document(version)
    method_ = document["resources"][collection]["methods"][method]
    return frozenset((*document["parameters"], *method_.get("parameters", {})))


def check_query(version: str, http: str, path: str, query: Iterable[str]) -> None:
    """Raise ApiError, as Google does, for a query parameter that the method of this path does not have."""
    existing = _parameters(version, http, path)
    for name in query:
        if existing is not None and _camel(name.removeprefix("$")) not in (*existing, *_UNDECLARED):
            raise wire.refuse(
                3,
                f'Invalid JSON payload received. Unknown name "{name}": Cannot bind query parameter. '
                f"Field '{name}' could not be found in request message.",
            )


def request_schema(version: str, http: str, path: str) -> str | None:
    """Return the schema of a method's body, None where it has none or there is no such method."""
    method = _find_method(version, http, path)
    schema: str | None = None if method is None else method.get("request", {}).get("$ref")
    return schema


def response_schema(version: str, http: str, path: str) -> str:
    """Return the schema of what a method answers; "" where it has none or there is no such method."""
    method = _find_method(version, http, path) or {}
    schema: str = method.get("response", {}).get("$ref", "")
    return schema


def has_method(version: str, http: str, path: str) -> bool:
    """Return whether Google has a method at this path, without a leading slash, e.g. `v1/projects/p/secrets/s`."""
    return _find_method(version, http, path) is not None


def _parameters(version: str, http: str, path: str) -> frozenset[str] | None:
    method = _find_method(version, http, path)
    return None if method is None else frozenset((*_document(version)["parameters"], *method.get("parameters", {})))


@lru_cache(maxsize=4096)  # Compute Engine has about a thousand, and pollers call one again and again
def _find_method(version: str, http: str, path: str) -> Mapping[str, Any] | None:
    fits = (
        method
        for flat_path, method in _methods(version).get((http, path.count("/")), ())
        if _pattern(flat_path).fullmatch(path)
    )
    return next(fits, None)


@cache
def _methods(version: str) -> Mapping[tuple[str, int], Sequence[tuple[str, Mapping[str, Any]]]]:
    """Return every method of a document behind its path, by its HTTP method and the number of slashes in the path."""
    document = _document(version)
    methods: dict[tuple[str, int], list[tuple[str, Mapping[str, Any]]]] = defaultdict(list)

    def collect(resource: Mapping[str, Any]) -> None:
        for method in resource.get("methods", {}).values():
            path = f"{document['servicePath']}{method['flatPath']}"
            methods[method["httpMethod"], path.count("/")].append((path, method))
        for inner in resource.get("resources", {}).values():
            collect(inner)

    collect(document)
    return methods


@cache
def _pattern(flat_path: str) -> re.Pattern[str]:
    """Return the pattern of a path such as `v2/projects/{projectsId}/locations/{locationsId}/nodes/{nodesId}:stop`."""
    fixed = (re.escape(part) for part in re.split(r"\{\w+\}", flat_path))
    return re.compile("[^/]+?".join(fixed))


@cache
def _document(version: str) -> Mapping[str, Any]:
    spec = find_spec("googleapiclient")
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError("google-api-python-client is not installed: its discovery documents are needed")
    documents = Path(spec.submodule_search_locations[0]) / "discovery_cache" / "documents"
    name = version if "." in version else f"tpu.{version}"
    parsed: Mapping[str, Any] = json.loads((documents / f"{name}.json").read_text("utf-8"))
    return parsed


def accept(body: Any, schema: str, version: str, *, at: str) -> dict[str, Any]:
    """Return the body in canonical form: camelCase, enums by name, without output-only fields.

    Raise ApiError with Google's 400, which names every problem at once (its wording is UNVERIFIED).
    """
    problems: list[str] = []
    accepted = _Reader(version, problems).message(body, schema, at)
    if problems:
        violations = [{"description": problem} for problem in problems]
        detail = {"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": violations}
        raise wire.refuse(3, "\n".join(problems), detail)
    return accepted


def project(body: Mapping[str, Any], schema: str, version: str) -> dict[str, Any]:
    """Return the part of `body` that this version of the API has, without messages that lose all their fields."""
    properties = schemas(version)[schema].get("properties", {})
    method_ = {k: _projected(v, properties[k], version) for k, v in body.items() if k in properties}
    return {k: v for k, v in method_.items() if v != {} or body[k] == {}}


def _projected(value: Any, prop: Mapping[str, Any], version: str) -> Any:
    if "$ref" in prop:
        return project(value, prop["$ref"], version)
    if prop.get("type") == "array":
        return [_projected(item, prop["items"], version) for item in value]
    return value


class _Reader:
    def __init__(self, version: str, problems: list[str]) -> None:
        self._version = version
        self._problems = problems

    def message(self, body: Any, schema: str, at: str) -> dict[str, Any]:
        if not isinstance(body, dict):
            self._invalid(at, f"type.googleapis.com/google.cloud.tpu.{self._version}.{schema}", body)
            return {}
        return self._fields(body, schemas(self._version)[schema].get("properties", {}), schema, at)

    def _fields(self, body: Mapping[str, Any], properties: Mapping[str, Any], schema: str, at: str) -> dict[str, Any]:
        accepted = {}
        for key, value in body.items():
            name = key if key in properties else _camel(key)
            prop = properties.get(name)
            if prop is None:
                self._problems.append(
                    f"Invalid JSON payload received. Unknown name \"{key}\" at '{at}': Cannot find field."
                )
            elif value is not None and not prop.get("readOnly"):
                accepted[name] = self._value(value, prop, f"{at}.{_snake(name)}", f"{schema}.{name}")
        return accepted

    def _value(self, value: Any, prop: Mapping[str, Any], at: str, field: str) -> Any:
        if "$ref" in prop:
            return self.message(value, prop["$ref"], at)
        if "enum" in prop:
            return self._enum(value, prop["enum"], at, field)
        match prop.get("type"):
            case "array":
                return self._array(value, prop["items"], at, field)
            case "object" if "properties" in prop:  # a message without a name of its own
                if isinstance(value, dict):
                    return self._fields(value, prop["properties"], field, at)
                self._invalid(at, "TYPE_MESSAGE", value)
                return {}
            case "object":
                return self._map(value, prop["additionalProperties"], at, field)
            case _:
                return self._scalar(value, prop, at)

    def _array(self, value: Any, items: Mapping[str, Any], at: str, field: str) -> list[Any]:
        listed = value if isinstance(value, list) else [value]  # in proto3 JSON, one item is a list of one
        return [self._value(item, items, f"{at}[{i}]", field) for i, item in enumerate(listed)]

    def _map(self, value: Any, values: Mapping[str, Any], at: str, field: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            self._invalid(at, "TYPE_MESSAGE", value)
            return {}
        return {key: self._value(item, values, f"{at}[{key}]", field) for key, item in value.items()}

    def _enum(self, value: Any, names: list[str], at: str, field: str) -> Any:
        numbers = _NUMBERS.get(field, tuple(range(len(names))))
        by_number = dict(zip(numbers, names, strict=True))
        name = by_number.get(value) if isinstance(value, int) and not isinstance(value, bool) else value
        if name not in names:
            kind = _snake(field.rpartition(".")[2]).title().replace("_", "")
            owner = field.rpartition(".")[0]
            self._invalid(at, f"type.googleapis.com/google.cloud.tpu.{self._version}.{owner}.{kind}", value)
        return name

    def _scalar(self, value: Any, prop: Mapping[str, Any], at: str) -> Any:
        form = prop.get("format")
        if form in _INT64 and isinstance(value, int | str) and re.fullmatch(r"-?\d+", str(value)):
            return str(value)
        kind = prop.get("type", "string")
        if form in _INT64 or type(value) is not _TYPES[kind][0]:
            self._invalid(at, _TYPES[kind][1], value)
        elif form in _PARSERS:
            self._formatted(str(value), form, at)
        return value

    def _formatted(self, value: str, form: str, at: str) -> None:
        parse, kind = _PARSERS[form]
        try:
            parse(value)
        except ValueError:
            self._invalid(at, f"type.googleapis.com/google.protobuf.{kind}", value)

    def _invalid(self, at: str, kind: str, value: Any) -> None:
        self._problems.append(f"Invalid value at '{at}' ({kind}), {json.dumps(value)}")


_INT64 = ("int64", "uint64")
_PARSERS = {"google-duration": (wire.seconds, "Duration"), "google-datetime": (wire.moment, "Timestamp")}


def _camel(name: str) -> str:
    head, *tail = name.split("_")
    return head + "".join(part.capitalize() for part in tail)


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda m: f"_{m[1].lower()}", name)
