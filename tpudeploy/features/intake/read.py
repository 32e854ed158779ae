"""Read a command or a file of another tool into a draft: what kind of text it is decides who reads it."""

from __future__ import annotations

import re
import shlex

from tpudeploy import catalog
from tpudeploy.catalog import type_names
from tpudeploy.config.nodes import MapNode
from tpudeploy.config.reader import MAX_BYTES
from tpudeploy.config.source import Source, decode
from tpudeploy.domain.accelerator import AcceleratorType
from tpudeploy.domain.diagnostics import Diagnostic
from tpudeploy.domain.errors import ConfigError, UsageError
from tpudeploy.features.intake import tree
from tpudeploy.features.intake.compose_file import take_compose
from tpudeploy.features.intake.draft import ProfileDraft
from tpudeploy.features.intake.kubernetes import is_manifest, take_manifests
from tpudeploy.features.intake.launched import take_text
from tpudeploy.features.intake.source import Stop, error_of, secret_values, stopped
from tpudeploy.features.intake.tasks import is_dstack, is_sky, take_dstack, take_sky

COMMAND = "the command"
_IS_SCRIPT = re.compile(r"\s*#!|\[(?:Unit|Service)\]")
_YAML = (".yaml", ".yml", ".json")


def read_command(text: str, type_name: str = "") -> tuple[ProfileDraft, Source]:
    """Return the draft of a command line, and its text as a source. Raise ConfigError where it cannot be read."""
    source = _checked(COMMAND, text.encode("utf-8", "surrogateescape"))
    draft = _draft(source, type_name)
    try:
        take_text(draft, source.text)
    except Stop as stop:
        raise stopped(stop, source) from stop
    return draft, source


def read_file(name: str, content: bytes, type_name: str = "") -> tuple[ProfileDraft, Source]:
    """Return the draft of a file, and its text as a source. Raise ConfigError where it cannot be read."""
    source = _checked(name, content)
    draft = _draft(source, type_name)
    try:
        if name.endswith(_YAML) or not (_IS_SCRIPT.match(source.text) or _has_no_mapping(name, source.text)):
            _take_yaml(draft, name, source.text)
        else:
            take_text(draft, source.text)
    except Stop as stop:
        raise stopped(stop, source) from stop
    except RecursionError as cause:
        raise stopped(Stop("The file is nested too deeply"), source) from cause
    return draft, source


def _draft(source: Source, type_name: str) -> ProfileDraft:
    """Return a draft on the slice that an option names, whatever the source says."""
    draft = ProfileDraft()
    draft.hidden |= secret_values(source.text)
    if type_name:
        draft.kind = named_type(type_name)
        draft.is_type_given = True
    return draft


def named_type(name: str) -> AcceleratorType:
    """Return the slice type of a name. Raise UsageError for one that is not in the catalogue."""
    kind = catalog.accelerator_type(name)
    if kind is None:
        wrong = type_names.problem_of(name, label=f"`{name}`")
        raise UsageError(f"{wrong.message}.", hint=wrong.hint)
    return kind


def _checked(name: str, content: bytes) -> Source:
    source = decode(name, content[: MAX_BYTES + 1])
    if isinstance(source, Diagnostic):
        raise error_of([source])
    if not source.text.strip():
        raise stopped(Stop("There is nothing to read"), source)
    return source


def _has_no_mapping(name: str, text: str) -> bool:
    """Return whether a file without an ending that tells is a script and not YAML."""
    try:
        return not any(_kind(document.root) for document in tree.documents(name, text))
    except ConfigError:
        return True


def _kind(root: MapNode) -> str:
    if is_manifest(root):
        return "manifest"
    if "services" in root.entries:
        return "compose"
    if is_dstack(root):
        return "dstack"
    if is_sky(root):
        return "sky"
    if {"version", "model", "tpu"} <= set(root.entries):
        return "profile"
    return "cloud-init" if {"runcmd", "write_files"} & set(root.entries) else ""


def _take_yaml(draft: ProfileDraft, name: str, text: str) -> None:
    every_document = tree.documents(name, text)
    roots = [document.root for document in every_document]
    kinds = [_kind(root) for root in roots]
    if "manifest" in kinds:
        take_manifests(draft, [root for root, kind in zip(roots, kinds, strict=True) if kind == "manifest"])
        return
    for root, kind in zip(roots, kinds, strict=True):
        if kind == "compose":
            take_compose(draft, root)
        elif kind == "dstack":
            take_dstack(draft, root)
        elif kind == "sky":
            take_sky(draft, root)
        elif kind == "cloud-init":
            _take_cloud_init(draft, root)
        elif kind == "profile":
            raise tree.stop_at(root, "This is a profile already", f"tpudeploy validate {name}")
        else:
            continue
        return
    hint = "what is read is a compose file, manifests of Kubernetes, a task of SkyPilot or dstack, and a script"
    raise Stop("No known tool has files like this", hint=hint, at=roots[0].at if roots else None)


def _take_cloud_init(draft: ProfileDraft, root: MapNode) -> None:
    lines = [tree.text(item, "content") for item in tree.items(root, "write_files")]
    lines += [tree.text(item) or shlex.join(tree.texts(item)) for item in tree.items(root, "runcmd")]
    draft.model_at = root.at
    take_text(draft, "\n".join(lines))
