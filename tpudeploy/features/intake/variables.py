"""Fill in variables as YAML files of other tools write them: `$(NAME)` of Kubernetes, `${NAME:-default}` of compose."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tpudeploy.features.intake.shell import Word

_OF_KUBERNETES = re.compile(r"\$\$|\$\(([A-Za-z_][\w.-]*)\)")
_OF_COMPOSE = re.compile(r"\$\$|\$([A-Za-z_]\w*)|\$\{([A-Za-z_]\w*)(?:(:?[-?+])((?:[^{}]|\{[^{}]*\})*))?\}")


def kubernetes_word(text: str, environment: Mapping[str, Word]) -> Word:
    """Return an argument of a container with the container's own variables filled in."""
    unknown: list[str] = []

    def value_of(match: re.Match[str]) -> str:
        if match[1] is None:
            return "$"
        word = environment.get(match[1])
        if word is None or word.unknown:
            unknown.append(match[1])
            return match[0]
        return word.text

    filled = _OF_KUBERNETES.sub(value_of, text)
    return Word(text=filled, unknown=tuple(dict.fromkeys(unknown)))


def compose_word(text: str) -> Word:
    """Return a value of a compose file: of a variable with a default, the default; of another one, what is written."""
    unknown: list[str] = []

    def value_of(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        if name is None:
            return "$"
        if match[3] in ("-", ":-"):
            inner = compose_word(match[4])
            unknown.extend(inner.unknown)
            return inner.text
        unknown.append(name)
        return match[0]

    filled = _OF_COMPOSE.sub(value_of, text)
    return Word(text=filled, unknown=tuple(dict.fromkeys(unknown)))
