"""Read what a project adds to the startup script: the scripts under `boot`, and templates in `templates/boot/`.

A file is read by the profile's own reader, so an untrusted profile reads none outside its project.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tpudeploy.adapters import assets
from tpudeploy.adapters.files import FileReader
from tpudeploy.catalog import closest
from tpudeploy.config import codes
from tpudeploy.config.diagnose import problem
from tpudeploy.config.profile import Profile
from tpudeploy.config.reader import MAX_BYTES, Unreadable
from tpudeploy.config.tokens import tokens_in
from tpudeploy.domain.deployment import OwnFile, OwnKey
from tpudeploy.domain.diagnostics import Diagnostic, Location, Severity
from tpudeploy.domain.errors import ConfigError

_SHELLCHECK_SECONDS = 60
_TEMPLATES = "templates"


def read_named(profile: Profile, path: str, relative: str) -> str:
    """Return the text of a file that the profile names at `path`. Raise `errors.ConfigError` if it cannot be read."""
    at = profile.origins[path]
    file = (profile.reader or FileReader()).resolve(at.file, relative)
    # Neither the path nor a hint about its neighbours may show a value that came from the environment.
    return _read(profile, file, at, path, name=profile.reference(path))


def read_own_files(profile: Profile, project: Path | None) -> tuple[OwnFile, ...]:
    """Return the project's scripts in order, and its templates. Raise `errors.ConfigError` for an unusable one."""
    return (*_scripts(profile), *(() if project is None else _own_templates(profile, project)))


def _scripts(profile: Profile) -> Iterator[OwnFile]:
    boot = profile.boot
    for key, paths in ((OwnKey.BEFORE, boot.before), (OwnKey.AFTER, boot.after)):
        for index, relative in enumerate(paths):
            path = f"boot.{key}.{index}"
            text = read_named(profile, path, relative)
            at = profile.origins[path]
            _check(text, (profile.reader or FileReader()).resolve(at.file, relative), at, path)
            yield OwnFile(key=key, path=relative, text=text, at=at)


def _own_templates(profile: Profile, project: Path) -> Iterator[OwnFile]:
    for path in assets.own_templates(project):
        file = os.path.normpath(project / _TEMPLATES / path)
        at = Location(file=file, line=1, column=1)
        if path not in assets.templates():
            near = closest(path, assets.templates())
            hint = f"did you mean {near}?" if near else "scripts of your own are named in the profile: boot.before"
            raise _invalid(problem(codes.BOOT_SCRIPT, f"`{file}` replaces no template of tpudeploy", at, hint=hint))
        text = _read(profile, file, at, "", name=None)
        if text == assets.templates()[path]:
            # Nothing is replaced, for example in a checkout of tpudeploy, whose templates are the shipped ones.
            continue
        _check(text, file, at, "")
        yield OwnFile(key=OwnKey.TEMPLATE, path=path, text=text, at=at)


def _read(profile: Profile, file: str, at: Location, path: str, *, name: str | None) -> str:
    try:
        content = (profile.reader or FileReader()).read(file)
    except Unreadable as cause:
        name, hint = (file, cause.hint) if name is None else (name, "")
        code = codes.OUTSIDE_PROJECT if cause.is_refused else codes.UNREADABLE
        raise _invalid(
            Diagnostic(code=code, message=f"{name} {cause.reason}", path=path, location=at, hint=hint)
        ) from cause
    return content[:MAX_BYTES].decode("utf-8", "replace")


def _check(text: str, file: str, at: Location, path: str) -> None:
    """Raise `errors.ConfigError` for a text that bash does not read as its author does, or that has a credential."""
    for kind, start, _ in tokens_in(text):
        hint = "revoke it if it was ever shared; the script can read it from Secret Manager"
        message = f"`{file}` has what looks like {kind}, in line {text.count(chr(10), 0, start) + 1}"
        raise _invalid(Diagnostic(code=codes.CREDENTIAL, message=message, path=path, location=at, hint=hint))
    reason = next((reason for mark, reason in _UNUSABLE.items() if mark in text), None)
    if reason is not None:
        raise _invalid(
            Diagnostic(code=codes.BOOT_SCRIPT, message=f"`{file}` {reason}", path=path, location=at, hint="")
        )


_UNUSABLE = {
    "\0": "has a NUL character: bash reads text",
    "\ufffd": "is not UTF-8 text",
    "\r\n": "has the line ends of Windows, which bash takes as a part of each word",
}


def check_by_shellcheck(files: tuple[OwnFile, ...]) -> Iterator[Diagnostic]:
    """Yield the errors and the warnings of shellcheck for each file; nothing where it is not installed."""
    program = shutil.which("shellcheck")
    if program is None:
        return
    for file in files:
        words = [program, "--norc", "--shell=bash", "--severity=warning", "--format=json", "-"]
        if file.key is OwnKey.TEMPLATE:
            words[-1:] = ["--exclude=SC2034,SC2154", "-"]  # it shares variables with the other templates
        try:
            run = subprocess.run(
                words, input=file.text.encode(), capture_output=True, timeout=_SHELLCHECK_SECONDS, check=False
            )
            comments = json.loads(run.stdout or b"[]")
        except (OSError, subprocess.TimeoutExpired, ValueError):
            return
        for comment in comments:
            severity = Severity.ERROR if comment["level"] == "error" else Severity.WARNING
            yield Diagnostic(
                code=codes.BOOT_SCRIPT,
                severity=severity,
                message=f"{file.path}, line {comment['line']}: {comment['message']} (SC{comment['code']})",
                path="" if file.key is OwnKey.TEMPLATE else f"boot.{file.key}",
                location=file.at,
                hint=f"https://www.shellcheck.net/wiki/SC{comment['code']}",
            )


def _invalid(diagnostic: Diagnostic) -> ConfigError:
    return ConfigError(diagnostic.message, hint=diagnostic.hint, diagnostics=[diagnostic])
