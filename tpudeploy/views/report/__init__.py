"""HTML pages, each one file: no script, no network, light and dark, from a phone's width up."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from tpudeploy.text import words

if TYPE_CHECKING:
    from jinja2 import Environment


def render(template: str, **values: object) -> str:
    """Return a page from a template beside this file. Every value is escaped."""
    return _environment().get_template(template).render(values)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader(__name__, ""),
        undefined=StrictUndefined,
        autoescape=True,
        finalize=_plain,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _plain(value: Any) -> Any:
    """Remove control characters from text that a person or an engine wrote; what a macro returns is markup already."""
    from markupsafe import Markup

    return words.plain(value) if isinstance(value, str) and not isinstance(value, Markup) else value
