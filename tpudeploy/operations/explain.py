"""Explain an error code or a refusal, and what to do about it. Without an argument, list all codes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from tpudeploy.catalog import closest
from tpudeploy.domain.errors import UsageError
from tpudeploy.operations.arguments import Agents, Arg
from tpudeploy.operations.declaration import Access, Operation
from tpudeploy.operations.explanations import explain_text, groups
from tpudeploy.operations.trade_words import ENTRIES
from tpudeploy.results import Result, document, part, result
from tpudeploy.text import words
from tpudeploy.text.paint import Paint
from tpudeploy.workspace import Workspace


@result
class Explanation(Result):
    """What a code means, and what to do. The first line of `text` is its title."""

    FORMAT = "explanation"
    code: str
    title: str
    text: str

    def as_text(self, paint: Paint, width: int | None = None) -> str:
        return f"{paint.bold(self.code)}  {self.text}"


@result
class Codes(Result):
    """Every code with its title, by its origin."""

    FORMAT = "explanations"
    groups: Mapping[str, Mapping[str, str]]

    def values(self) -> dict[str, Any]:
        return {
            "groups": [
                {"name": name, "codes": [{"code": code, "title": title} for code, title in titles.items()]}
                for name, titles in self.groups.items()
            ]
        }

    @classmethod
    def schema(cls) -> Mapping[str, Any]:
        codes = {"type": "array", "items": part({"code": str, "title": str})}
        return document("explanations", {"groups": [{"name": str, "codes": codes}]})

    def as_text(self, paint: Paint, width: int | None = None) -> str:
        blocks = []
        for name, titles in self.groups.items():
            lines = words.aligned(list(titles.items()), room=None if width is None else width - 2)
            blocks.append("\n".join((paint.bold(name), *(f"  {line}" for line in lines))))
        return "\n\n".join(blocks)


def explain(
    workspace: Workspace | None,
    code: Annotated[
        str | None,
        Arg(
            "A code such as TPU1201, a refusal such as `stockout`, or an error text of Google Cloud in quotes.",
            positional=True,
            agents=Agents("an error's code, a refusal such as `stockout`, or a text of Google's", required=True),
        ),
    ] = None,
) -> Explanation | Codes:
    """Explain an error code, a refusal or an error text, and what to do about it.

    Without a `code`, list all codes. Raise `errors.UsageError` for what is neither a code nor a text of several words.
    """
    if code is None:
        titles = {name: {c: t.partition("\n")[0] for c, t in texts.items()} for name, texts in groups().items()}
        return Codes(groups=titles)
    pages = {each: text for texts in groups().values() for each, text in texts.items()}
    query = code.strip()
    for each in (query, query.upper(), query.lower()):
        if each in pages:
            return _explanation(each, pages[each])
    entries = ENTRIES.get("-".join(query.lower().split()), ())
    if entries:
        others = ", ".join(f"`{name}`" for name in entries[1:])
        also = f"\n\n`{query}` may also be {others}: `tpudeploy explain NAME`." if others else ""
        return _explanation(entries[0], f"{pages[entries[0]]}{also}")
    if len(query.split()) > 1:
        return _explanation(*explain_text(query))
    near = closest(query, pages)
    raise UsageError(
        f"No code `{query}`.", hint=f"Did you mean `{near}`?" if near else "Run `tpudeploy explain` for all of them."
    )


def _explanation(code: str, text: str) -> Explanation:
    return Explanation(code=code, title=text.partition("\n")[0], text=text)


OPERATION = Operation(
    run=explain,
    results=(Explanation, Codes),
    access=Access.OFFLINE,
    title="Explain an error",
    tool="explain",
    options=(),
    needs_workspace=False,
)
