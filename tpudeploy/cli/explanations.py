"""Every code that a person can meet, gathered from where it is defined: diagnostics, errors, refusals."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import getdoc

from tpudeploy.domain import errors


def explanations() -> dict[str, str]:
    """Code → text. Diagnostics of profiles, classes of errors, kinds of Google's refusals."""
    from tpudeploy.adapters.google.verdicts import VERDICTS
    from tpudeploy.config.codes import EXPLANATIONS

    texts = {cls.code: _of_class(cls) for cls in _tree(errors.TpudeployError)}
    texts |= {
        code: f"{about.title}\n\n{about.meaning}\n\nFor example:\n{about.fix}" for code, about in EXPLANATIONS.items()
    }
    for row in VERDICTS:
        scope = row.scope or "as the text says"
        texts[row.kind] = (
            f"Google refused ({row.remedy}; speaks of: {scope}; holds {row.holds:.0f} s)\n\n"
            f"Seen as: {row.example}\n\n{row.hint}"
        )
    return texts


def _of_class(cls: type[errors.TpudeployError]) -> str:
    return f"{cls.__name__} (exit {cls.exit_code})\n\n{getdoc(cls) or ''}".rstrip()


def _tree(cls: type[errors.TpudeployError]) -> Iterator[type[errors.TpudeployError]]:
    yield cls
    for child in cls.__subclasses__():
        yield from _tree(child)
