"""Collect what explains a deployment in a redacted archive: versions, profile, state, status, plan, history, boot logs.

It has no value of a secret, and no address, account, project or bucket, as far as they are recognized: read it before
you send it. Nothing is sent. What can't be read is in the archive as the error.
"""

from __future__ import annotations

import io
import json
import platform
import re
import sys
import tarfile
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated

from tpudeploy import loading
from tpudeploy.adapters.state.disk import Folder
from tpudeploy.boot_log.export import redact
from tpudeploy.config.profile import Profile
from tpudeploy.domain.errors import TpudeployError, UsageError
from tpudeploy.features.support.addresses import without_addresses
from tpudeploy.operations.arguments import AProfile, Arg
from tpudeploy.operations.declaration import Access, Operation
from tpudeploy.operations.written_files import WrittenFiles
from tpudeploy.version import VERSION
from tpudeploy.workspace import Workspace

_MOST = 2 << 20  # characters of one file; of a longer text, the end
_LONG = 6  # characters; a shorter value of a variable is replaced only beside its name
_QUOTE = r"'(?:[^'\n]|'')*'?|\"(?:[^\"\\\n]|\\.)*\"?"
_WORD = rf"(?:{_QUOTE}|[^\s,}}'\"]+)"
_SHELL_WORD = rf"(?:{_QUOTE}|[^\s'\"])+"
# A variable of the server in a state and in a plan, which may show two values.
_OF_STATE = re.compile(rf"(\benv\.[\w.-]+['\"]?\s*[=:]\s*){_WORD}(?:(\s*->\s*){_WORD})?")
_PLAIN_WORDS = frozenset({"default", "main", "none", "null", "true", "false"})


def support_bundle(
    workspace: Workspace,
    profile: AProfile,
    output: str | Path | None = None,
    *,
    anonymous: Annotated[bool, Arg("Leave out who ran commands, and where.")] = False,
) -> WrittenFiles:
    """Write a redacted archive that explains a deployment, for a person who helps with it.

    The archive is a tar.gz of texts, by default NAME-support.tar.gz in the workspace's folder; only you can read it.
    Redaction is by rules: read the archive before you send it. What can't be read is in it as the error. With
    `anonymous`, it doesn't name the people and machines that ran commands either.

    Raise `errors.UsageError` if the file exists or can't be written, `errors.ConfigError` for an invalid profile.
    """
    loaded = loading.profile(profile)
    name = loaded.name
    here = workspace.adapters.folder
    path = here / (output or f"{name}-support.tar.gz")
    taken = UsageError(f"{path} exists.", hint="Name a file that doesn't exist yet: -o FILE.")
    if path.exists():
        raise taken
    texts = {file: _text_of(read) for file, read in _readers(workspace, loaded).items()}
    names = {**_names(workspace, loaded), **(_operators(texts) if anonymous else {})}
    content = archive(f"{name}-support", redacted(texts, names, loaded.serving.env))
    try:
        is_new = Folder.for_file(path, here=here).create(path.name, content, is_private=True)
    except OSError as cause:
        raise UsageError(f"{path} cannot be written: {cause.strerror}.") from cause
    if not is_new:
        raise taken
    return WrittenFiles(files=(path,))


def _readers(workspace: Workspace, profile: Profile) -> Mapping[str, Callable[[], str]]:
    """Return what reads each file of the archive."""
    name = profile.name

    def document(value: Mapping[str, object]) -> str:
        return json.dumps(value, indent=2, ensure_ascii=False, default=str)

    def logs() -> str:
        lines = workspace.boot_logs(name).items()
        return "\n".join(f"== {machine}\n" + "\n".join(own) for machine, own in lines)

    return {
        "versions.txt": _versions,
        "profile.yaml": lambda: str(workspace.render(profile, "profile")),
        "plan.txt": lambda: str(workspace.plan([profile])),
        "status.json": lambda: document(workspace.status([profile], details=True, timeline=True).to_dict()),
        "state.json": lambda: str(workspace.state_pull(name)),
        "history.json": lambda: document(workspace.state_history(name).to_dict()),
        "boot.log": logs,
    }


def _text_of(read: Callable[[], str]) -> str:
    """Return what is read, or the error by which it can't be."""
    try:
        return read()[-_MOST:]
    except TpudeployError as error:
        return f"not read: {error.message}"


def _versions() -> str:
    lines = [f"tpudeploy {VERSION}", f"Python {sys.version.split()[0]}", platform.system()]
    for package in ("google-api-python-client", "google-cloud-tpu", "jinja2", "pyyaml", "requests"):
        try:
            lines.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            lines.append(f"{package} is not installed")
    return "\n".join(lines)


def _names(workspace: Workspace, profile: Profile) -> dict[str, str]:
    """Return the names of the operator's own things, with what the archive calls them."""
    placement = profile.placement
    own = {
        str(placement.project or ""): "PROJECT",
        _text_of(lambda: workspace.adapters.project() or ""): "PROJECT",
        str(placement.service_account or ""): "SERVICE-ACCOUNT",
        str(placement.reservation or ""): "RESERVATION",
        str(placement.network.network or ""): "NETWORK",
        str(placement.network.subnetwork or ""): "SUBNETWORK",
        **{str(value): "LABEL" for value in placement.labels.values()},
        **{str(secret): "SECRET-NAME" for secret in profile.secrets.values()},
        **{str(value): "VALUE" for value in profile.serving.env.values() if len(str(value)) >= _LONG},
    }
    return {text: name for text, name in own.items() if len(text) > 1 and text.lower() not in _PLAIN_WORDS}


def _operators(texts: Mapping[str, str]) -> dict[str, str]:
    """Return the people and machines that ran commands, `user@host`, by what a state and its history say."""
    every = {name for text in texts.values() for name in re.findall(r'"by": "([^"]+)"', text)}
    return {part: "OPERATOR" for name in every for part in (name, *name.split("@")) if len(part) > 1}


def redacted(texts: Mapping[str, str], names: Mapping[str, str], variables: Iterable[str] = ()) -> dict[str, str]:
    """Return the texts as they may be sent. `variables` are the names of the server's own."""
    of_state = "|".join(map(re.escape, re.findall(r'"serving\.env\.([^"]+)":', texts.get("state.json", "")))) or "(?!)"
    own = "|".join([*map(re.escape, variables), of_state])
    beside_name = re.compile(
        rf"((?<![\w.])['\"]?(?:{own})['\"]?(?:=|: ))(?:(?<==){_SHELL_WORD}|(?<=: )(?:{_QUOTE}|[^\n]+))"
    )

    def without_variables(text: str) -> str:
        text = _OF_STATE.sub(lambda match: f"{match[1]}***{match[2] + '***' if match[2] else ''}", text)
        return beside_name.sub(r"\1***", text)

    return {file: without_addresses(redact(without_variables(text), names)) for file, text in texts.items()}


def archive(folder: str, texts: Mapping[str, str]) -> bytes:
    """Return a tar.gz with these files, whose times and owners say nothing."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for file, text in texts.items():
            content = text.encode()
            member = tarfile.TarInfo(f"{folder}/{file}")
            member.size, member.mode = len(content), 0o600
            tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


OPERATION = Operation(
    run=support_bundle,
    results=(WrittenFiles,),
    access=Access.LOOK,
    title="Support bundle",
)
