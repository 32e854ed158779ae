"""Write the pages of docs/reference from the code: commands, keys of a profile, codes, alerts, documents.

They are made at each build of the site and not committed, so that they cannot differ from the code.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from inspect import Signature, getdoc, signature
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from sphinx.application import Sphinx

import tpudeploy as td
from tpudeploy.catalog import families
from tpudeploy.catalog.families import answers
from tpudeploy.cli.commands import COMMANDS, GROUPS, command
from tpudeploy.cli.parsers import parser_of, verbs_of
from tpudeploy.domain.budget import EngineSettings
from tpudeploy.domain.model import LanguageModel
from tpudeploy.features.alerts.rules import group
from tpudeploy.features.alerts.watched import Watched
from tpudeploy.operations.explanations import groups
from tpudeploy.operations.schemas import PROFILE, all_schemas, schema_text
from tpudeploy.sizing.kv import bytes_per_token
from tpudeploy.sizing.weights import parameters, weights_bytes_per_chip

_HEAD = ("command", "what it does")
_INDEX = "index.md"
_PAGES = (
    "commands",
    "profile",
    "python",
    "codes-profiles",
    "codes-checks",
    "codes-errors",
    "codes-refusals",
    "codes-boots",
    "alerts",
    "documents",
    "models",
)
_ORIGINS = {
    "Profiles": "Codes of profiles: what `validate` finds in a file",
    "Checks": "Codes of checks: what `plan`, `doctor` and `size` warn of",
    "Errors": "Codes of errors: what stopped a command",
    "Refusals": "Refusals: what Google Cloud answers, and what tpudeploy does then",
    "Boots": "Failed boots: what a server died of, and what helps",
}


def setup(app: Sphinx) -> Mapping[str, Any]:
    """Write the pages before Sphinx looks for its sources."""
    app.connect("config-inited", lambda app, _config: write(Path(app.srcdir) / "reference"))
    app.connect("source-read", link_from_the_index)
    return {"parallel_read_safe": True}


def link_from_the_index(_app: Sphinx, page: str, source: list[str]) -> None:
    """Add the written pages to the committed one, which says in the repository where else their text is."""
    if page == "reference/index":
        source[0] += "\n".join(["\n```{toctree}", ":maxdepth: 1\n", *_PAGES, "```\n"])


def write(folder: Path) -> None:
    """Write every page that differs from its file, and delete those that exist no longer."""
    origins = {title.partition(":")[0] for title in groups()}
    pages = {
        "commands.md": command_list(),
        **{f"commands/{name}.md": command_page(name) for name in COMMANDS},
        "profile.md": profile_page(),
        "python.md": python_page(),
        **{f"codes-{origin.lower()}.md": codes_page(origin) for origin in origins},
        "alerts.md": alerts_page(),
        "documents.md": documents_page(),
        "models.md": models_page(),
    }
    for path in folder.rglob("*.md"):
        if path.relative_to(folder).as_posix() not in {_INDEX, *pages}:
            path.unlink()
    for name, text in pages.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


_MODELS_HEAD = ("model", "parameters", "on 1 chip", "on 4 chips", "on 8 chips", "KV bytes a token", "from")


def models_page() -> str:
    """Return the table of the models that are sized without a config, and of those that the engine refuses."""
    rows = [_model_row(model_id) for model_id in sorted(families.ids(), key=str.lower)]
    text = (
        "GiB of weights a chip, and KV cache bytes a token on one chip at bfloat16 and 8,192 tokens. `from` is the "
        "family's arithmetic, or the release whose own loader answered; a refusal is in that engine's words. A model "
        "of your own is sized by its `config.json` in `model.config`."
    )
    return f"# Models that are sized by their id\n\n{text}\n\n{_table(_MODELS_HEAD, rows)}\n"


def _model_row(model_id: str) -> tuple[str, ...]:
    found = [answer for answer in answers.answers(model_id) if not answer.settings]
    if found and found[0].model is None:
        return (f"`{model_id}`", "", "", "", "", "", f"refused: {_cell(found[0].refusal)}")
    model = families.known_model(model_id)
    assert model is not None
    chips = (1, 4, 8)
    sizes = ("" if size is None else f"{size / 2**30:.2f}" for size in (_weights(model, count) for count in chips))
    origin = "family" if model.answer is None else model.answer.release
    token = _weights(model, 1) is not None and bytes_per_token(
        model, EngineSettings(tensor_parallel=1, max_model_len=8_192)
    )
    return (f"`{model_id}`", f"{parameters(model) / 1e9:.2f} billion", *sizes, f"{token:,}" if token else "", origin)


def _weights(model: LanguageModel, chips: int) -> int | None:
    if model.answer is not None and chips not in model.answer.weights:
        return None
    if model.heads % chips:
        return None
    return sum(weights_bytes_per_chip(model, EngineSettings(tensor_parallel=chips, max_model_len=8_192)).values())


def command_list() -> str:
    """Return the list of all commands, each with its line of help."""
    groups = "\n\n".join(
        f"## {title}\n\n{_table(_HEAD, [_command_row(name) for name in names])}" for title, names in GROUPS.items()
    )
    pages = "\n".join(f"commands/{name}" for name in COMMANDS)
    return (
        "# Commands and their options\n\n"
        "An option may be written with one dash or two, and most can be set by a variable: `TPUDEPLOY_AUTO_APPROVE=1` "
        "is `-auto-approve`. Four variables begin with the command, because the option of that name takes other values "
        "elsewhere: `TPUDEPLOY_VERIFY_CONCURRENCY`, `TPUDEPLOY_RECOMMEND_CONTEXT`, `TPUDEPLOY_RECOMMEND_OUTPUT` and "
        "`TPUDEPLOY_LOGS_FILE`.\n\n"
        f"{groups}\n\n```{{toctree}}\n:hidden:\n\n{pages}\n```\n"
    )


def _command_row(name: str) -> tuple[str, str]:
    return f"[`{name}`](commands/{name}.md)", _cell(COMMANDS[name])


def command_page(name: str) -> str:
    """Return the page of one command: its usage, its arguments and its options, from its parser."""
    chosen = command(name)
    pages = [_usage_of(name, "", f"# tpudeploy {name}", chosen.__doc__ or "")]
    pages += [_usage_of(name, verb, f"## {name} {verb}", about) for verb, about in verbs_of(chosen).items()]
    return "\n\n".join(pages) + "\n"


def _usage_of(name: str, verb: str, title: str, about: str) -> str:
    """Return the usage, the arguments and the options of a command, or of one of its verbs."""
    parser = parser_of(name, verb)
    actions = [each for each in parser._actions if each.help != argparse.SUPPRESS]  # noqa: SLF001 - argparse lists them nowhere else
    what = "what it does"
    parts = [
        title,
        _text(about),
        f"```text\n{parser.format_usage().strip()}\n```",
        _table(("argument", what), [_argument(each) for each in actions if not each.option_strings]),
        _table(("option", what), [_option(each) for each in actions if each.option_strings]),
    ]
    return "\n\n".join(filter(None, parts))


def profile_page() -> str:
    """Return every key of a profile with its values and its description, from the JSON Schema."""
    schema = json.loads(schema_text(PROFILE))
    parts = ["# Keys of a profile", _text(schema["description"]), "`tpudeploy schema` prints the JSON Schema."]
    top, sections = [], []
    for key, node in schema["properties"].items():
        section = _section(schema, node)
        if section is None:
            top.append((key, node))
        else:
            sections.append((key, node["description"], section))
    parts += ["## At the top", _keys(schema, top)]
    for key, description, section in sections:
        parts += [f"## {key}", _text(description), _keys(schema, section["properties"].items(), f"{key}.")]
    return "\n\n".join(parts) + "\n"


_CALLS = ("plan", "apply", "destroy", "progress", "size")
_CLASSES = ("Profile", "Workspace", "Plan", "Report")


def python_page() -> str:
    """Return the functions, classes and results of the library with their signatures and docstrings."""
    parts = [
        "# The Python library",
        "`import tpudeploy as td`. [Use it from Python](../how-to/python.md) has examples.",
        "Every error is a class of `td.errors`, every event one of `td.events`.",
        "## Calls",
        *(_callable(f"td.{name}", getattr(td, name)) for name in _CALLS),
    ]
    for name in _CLASSES:
        own = getattr(td, name)
        parts += [f"## td.{name}", _text(getdoc(own) or "")]
        inherited = dir(BaseModel) if issubclass(own, BaseModel) else ()
        members = {each: getattr(own, each) for each in dir(own) if not each.startswith("_") and each not in inherited}
        names = [each for each, member in members.items() if callable(member) and not isinstance(member, type)]
        parts += [_callable(f"{name}.{each}", getattr(own, each)) for each in names if getattr(own, each).__doc__]
    others = sorted(set(td.__all__) - {*_CALLS, *_CLASSES, "errors", "events"})
    rows = [(f"`td.{name}`", _cell((getdoc(getattr(td, name)) or "").partition("\n")[0])) for name in others]
    parts += ["## Results and options", _table(("class", "what it is"), rows)]
    return "\n\n".join(parts) + "\n"


def _callable(name: str, call: Callable[..., object]) -> str:
    given = signature(call).parameters.values()
    own = [each.replace(annotation=each.empty) for each in given if each.name not in {"self", "workspace"}]
    usage = f"{name}{Signature(own)}".replace("<built-in function print>", "print")
    return f"### {name}\n\n```python\n{usage}\n```\n\n{_text(getdoc(call) or '')}"


def codes_page(origin: str) -> str:
    """Return every code of one origin with its explanation, as `tpudeploy explain` prints it."""
    parts = [f"# {_ORIGINS[origin]}", "`tpudeploy explain CODE` prints the same."]
    for title, pages in groups().items():
        name, _, part = title.partition(": ")
        if name != origin:
            continue
        if part:
            parts.append(f"## {part[0].upper()}{part[1:]}")
        for code, text in pages.items():
            first, _, rest = text.partition("\n")
            parts += [f"{'###' if part else '##'} {code}: {_text(first)}", f"```text\n{rest.strip()}\n```"]
    return "\n\n".join(parts) + "\n"


def alerts_page() -> str:
    """Return every alert rule, for a deployment `gemma` of two replicas."""
    deployment = Watched(
        name="gemma",
        job="gemma",
        model="google/gemma-4-E2B-it",
        port=8000,
        replicas=2,
        max_num_seqs=256,
        ttft_seconds=2.5,
        tells_metrics=True,
    )
    parts = ["# Alerts", "The rules that `tpudeploy alerts` writes, for a deployment `gemma` of two replicas."]
    for rule in group(deployment)["rules"]:
        notes = rule["annotations"]
        parts += [
            f"## {rule['alert']}",
            f"{_text(notes['summary'])}. Severity: {rule['labels']['severity']}, after {rule['for']}.",
            _text(notes["description"]),
            f"```text\n{rule['expr']}\n```",
        ]
    return "\n\n".join(parts) + "\n"


def documents_page() -> str:
    """Return every JSON document with its description and its keys, from the schemas."""
    parts = [
        "# JSON documents",
        "What `--json` prints, and what is stored. `tpudeploy schema NAME` prints the whole JSON Schema.",
    ]
    for name in all_schemas():
        schema = json.loads(schema_text(name))
        parts += [f"## {name}", _text(str(schema.get("description", "")))]
        properties = schema.get("properties", {})
        rows = [(f"`{key}`", _cell(str(_described(node)))) for key, node in properties.items()]
        parts.append(_table(("key", "what it is"), rows))
    return "\n\n".join(filter(None, parts)) + "\n"


def _described(node: object) -> object:
    return node.get("description", node.get("const", "")) if isinstance(node, Mapping) else ""


def _section(schema: Mapping[str, Any], node: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the section that a key holds, or None where it holds a value."""
    for each in (node, *node.get("anyOf", ())):
        name = each.get("$ref", "").removeprefix("#/definitions/")
        if name.endswith("Spec"):
            section: Mapping[str, Any] = schema["definitions"][name]
            return section
    return None


def _keys(schema: Mapping[str, Any], keys: Iterable[tuple[str, Mapping[str, Any]]], prefix: str = "") -> str:
    return _table(("key", "values", "what it is"), list(_key_rows(schema, keys, prefix)))


def _key_rows(
    schema: Mapping[str, Any], keys: Iterable[tuple[str, Mapping[str, Any]]], prefix: str
) -> Iterator[tuple[str, ...]]:
    for key, node in keys:
        section = _section(schema, node)
        if section is not None:
            yield from _key_rows(schema, section["properties"].items(), f"{prefix}{key}.")
            continue
        examples = ", ".join(f"`{json.dumps(each, ensure_ascii=False)}`" for each in node.get("examples", ()))
        description = _text(node["description"]) + (f" Example: {examples}." if examples else "")
        yield f"`{prefix}{key}`", ", ".join(dict.fromkeys(_values(node))), _cell(description, as_is=True)


def _values(node: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a key takes: its words where it has a list of them, else its type."""
    for each in (node, *node.get("anyOf", ())):
        if "enum" in each:
            yield from (f"`{value}`" for value in each["enum"])
        elif "const" in each:
            yield f"`{each['const']}`"
        elif "items" in each:
            yield f"list of {', '.join(dict.fromkeys(_values(each['items'])))}"
        elif each.get("type") not in {None, "null"}:
            yield {"object": "map", "string": "text"}.get(each["type"], each["type"])


def _argument(action: argparse.Action) -> tuple[str, str]:
    return f"`{action.metavar or action.dest}`".replace("|", "\\|"), _cell((action.help or "") % vars(action))


def _option(action: argparse.Action) -> tuple[str, str]:
    value = "" if action.nargs == 0 else f" {action.metavar or ' or '.join(map(str, action.choices or ()))}"
    names = ", ".join(f"`{name}{value}`" for name in action.option_strings)
    return names.replace("|", "\\|"), _cell((action.help or "") % vars(action))


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return ""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _cell(text: str, *, as_is: bool = False) -> str:
    return (text if as_is else _text(text)).replace("\n", " ").replace("|", "\\|")


def _text(text: str) -> str:
    """Return plain text as Markdown that shows it as it is; what is between backticks is code already."""
    pieces = text.split("`")
    plain = ("".join(f"\\{c}" if c in "*_<>[]$\\" else c for c in piece) for piece in pieces[::2])
    code = iter(pieces[1::2])
    return "".join(each + "".join(f"`{inner}`" for inner in [next(code, None)] if inner is not None) for each in plain)
