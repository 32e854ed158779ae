"""Collect what explains a deployment in a redacted archive: versions, profile, state, status, plan, history, boot logs.

It has no value of a secret, and no address, account, project or bucket, as far as they are recognized: read it before
you send it. Nothing is sent. What can't be read is in the archive as the error.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tpudeploy.domain.errors import TpudeployError, UsageError
from tpudeploy.operations.declaration import Access, Argument, ArgumentKind, Operation, profile
from tpudeploy.operations.written_files import WrittenFiles

if TYPE_CHECKING:
    from tpudeploy.config.profile import Profile
    from tpudeploy.loading import OneProfile
    from tpudeploy.workspace import Workspace

_MOST = 2 << 20  # characters of one file; of a longer text, the end
_LONG = 8  # characters; a shorter value of a variable is a setting
_PLAIN_WORDS = frozenset({"default", "main", "none", "null", "true", "false"})


def support_bundle(workspace: Workspace, profile: OneProfile, output: str | Path | None = None) -> WrittenFiles:
    """Write a redacted archive that explains a deployment, for a person who helps with it.

    The archive is a tar.gz of texts, by default NAME-support.tar.gz in the workspace's folder; only you can read it.
    Redaction is by rules: read the archive before you send it. What can't be read is in it as the error.

    Raise `errors.UsageError` if the file exists or can't be written, `errors.ConfigError` for an invalid profile.
    """
    from tpudeploy import loading
    from tpudeploy.adapters.state.disk import Folder

    loaded = loading.profile(profile)
    name = loaded.spec.name
    here = workspace.adapters.folder
    path = here / (output or f"{name}-support.tar.gz")
    taken = UsageError(f"{path} exists.", hint="Name a file that doesn't exist yet: -o FILE.")
    if path.exists():
        raise taken
    texts = {file: _text_of(read) for file, read in _readers(workspace, loaded).items()}
    content = archive(f"{name}-support", redacted(texts, _names(workspace, loaded)))
    try:
        is_new = Folder.for_file(path, here=here).create(path.name, content, is_private=True)
    except OSError as cause:
        raise UsageError(f"{path} cannot be written: {cause.strerror}.") from cause
    if not is_new:
        raise taken
    return WrittenFiles(files=(path,))


def _readers(workspace: Workspace, profile: Profile) -> Mapping[str, Callable[[], str]]:
    """Return what reads each file of the archive."""
    import json

    name = profile.spec.name

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
    import platform
    import sys
    from importlib.metadata import PackageNotFoundError, version

    from tpudeploy.version import VERSION

    lines = [f"tpudeploy {VERSION}", f"Python {sys.version.split()[0]}", platform.system()]
    for package in ("google-api-python-client", "google-cloud-tpu", "jinja2", "pyyaml", "requests"):
        try:
            lines.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            lines.append(f"{package} is not installed")
    return "\n".join(lines)


def _names(workspace: Workspace, profile: Profile) -> dict[str, str]:
    """Return the names of the operator's own things, with what the archive calls them."""
    placement, spec = profile.spec.placement, profile.spec
    own = {
        str(placement.project or ""): "PROJECT",
        _text_of(lambda: workspace.adapters.project() or ""): "PROJECT",
        str(placement.service_account or ""): "SERVICE-ACCOUNT",
        str(placement.reservation or ""): "RESERVATION",
        str(placement.network.network or ""): "NETWORK",
        str(placement.network.subnetwork or ""): "SUBNETWORK",
        **{str(value): "LABEL" for value in placement.labels.values()},
        **{str(secret): "SECRET-NAME" for secret in spec.secrets.values()},
        **{str(value): "VALUE" for value in spec.serving.env.values() if len(str(value)) > _LONG},
    }
    return {text: name for text, name in own.items() if len(text) > 1 and text.lower() not in _PLAIN_WORDS}


def redacted(texts: Mapping[str, str], names: Mapping[str, str]) -> dict[str, str]:
    """Return the texts as they may be sent."""
    from tpudeploy.boot_log.export import redact
    from tpudeploy.features.support.addresses import without_addresses

    return {file: without_addresses(redact(text, names)) for file, text in texts.items()}


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
    arguments=(
        profile(),
        Argument(
            name="output",
            help="The archive (default: NAME-support.tar.gz).",
            kind=ArgumentKind.FILE,
            metavar="FILE",
        ),
    ),
    results=(WrittenFiles,),
    access=Access.LOOK,
    title="Support bundle",
)
