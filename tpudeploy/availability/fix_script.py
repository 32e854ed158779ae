"""The commands that a diagnosis recommends, as a script that a person reads and runs. It holds no value of a secret."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from tpudeploy.availability.diagnosis import Diagnosis, Finding, FindingGrade

_RUN = "Run: "
_SECRET = re.compile(r"printf %s VALUE \| (?P<command>gcloud secrets (?:create|versions add) (?P<name>\S+) .*)")
# What only the person knows, and the variable of the script that says it.
_VARIABLES = {
    "YOUR_RANGE": "addresses that may reach the server, such as 203.0.113.0/24",
    "YOUR_SUBNETWORK": "the addresses of your subnetwork, such as 10.128.0.0/20",
    "user:YOU": "your account as policies write it, such as user:me@example.com",
    "ACCOUNT": "the machine's account, such as serviceAccount:NAME@PROJECT.iam.gserviceaccount.com",
}
_NAMES = {word: word.rpartition(":")[2] for word in _VARIABLES}


def fix_script(diagnosis: Diagnosis) -> str:
    """Return a bash script with a command for each finding that has one; the others are comments."""
    lines = [
        "#!/usr/bin/env bash",
        f"# What {_comment(diagnosis.name)} lacks, by `tpudeploy doctor`. Read it before you run it.",
        "set -euo pipefail",
    ]
    if diagnosis.project:
        lines.append(f"export CLOUDSDK_CORE_PROJECT={shlex.quote(diagnosis.project)}")
    findings = [each for each in diagnosis.findings if each.grade in (FindingGrade.FAIL, FindingGrade.WARN)]
    commands: set[str] = set()
    for finding in findings:
        lines += ["", *_comments(finding)]
        for command in _commands(finding):
            if command not in commands:
                lines.append(command)
            commands.add(command)
    if not findings:
        lines += ["", "# Nothing is missing."]
    return "\n".join([*lines, ""])


def _comments(finding: Finding) -> Iterator[str]:
    yield f"# {finding.check}: {_comment(finding.message)}"
    for line in finding.hint.splitlines():
        if not line.startswith(_RUN):
            yield f"# {_comment(line)}"


def _commands(finding: Finding) -> Iterator[str]:
    for line in finding.hint.splitlines():
        if not line.startswith(_RUN):
            continue
        command = line.removeprefix(_RUN).strip()
        secret = _SECRET.fullmatch(command)
        if secret is None:
            yield _quoted(command)
        else:
            question = f"Value of the secret {secret['name']}: "
            yield f"read -rsp {shlex.quote(question)} value; echo"
            yield f'printf %s "$value" | {_quoted(secret["command"])}'


def _quoted(command: str) -> str:
    """Return a command in which each word is one word to a shell. What only the person knows is a variable."""
    return " ".join(_word(word) for word in command.split())


def _word(word: str) -> str:
    option, equals, value = word.partition("=")
    if value in _VARIABLES:
        message = _VARIABLES[value].replace('"', "'")
        return f'{shlex.quote(option)}{equals}"${{{_NAMES[value]}:?{message}}}"'
    return shlex.quote(word)


def _comment(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
