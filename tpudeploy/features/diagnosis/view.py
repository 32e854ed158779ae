"""Format a diagnosis: figures and findings of each running server, what changed last, and the causes in logs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tpudeploy.boot_log.reading import Draft, NoDraft
from tpudeploy.boot_log.view import draft as draft_view
from tpudeploy.features.diagnosis.changes import RecentChange
from tpudeploy.features.diagnosis.examination import ServerExamination
from tpudeploy.features.diagnosis.findings import Weight
from tpudeploy.text import words
from tpudeploy.text.paint import Paint

_NAMES = {"kv_cache_used": "KV cache used", "ttft_seconds": "TTFT", "tpot_seconds": "TPOT", "queue_seconds": "queue"}
_INDENT = "    "


def diagnosis(
    servers: Sequence[ServerExamination],
    changes: Sequence[RecentChange],
    logs: str,
    draft: Draft | NoDraft | None,
    paint: Paint,
    *,
    width: int | None,
) -> str:
    """Return the text: what is wrong first. `logs` explains those of servers that do not answer."""
    blocks = ["\n".join(_server(server, paint, width)) for server in servers]
    if logs:
        blocks.append(logs)
    if changes:
        blocks.append("\n".join(_changes(changes, paint, width)))
    if isinstance(draft, Draft):
        blocks.append(draft_view(draft, paint, width=width))
    return "\n\n".join(blocks)


def _server(server: ServerExamination, paint: Paint, width: int | None) -> Iterator[str]:
    if server.silent:
        text = f"{server.address}: its metrics can't be read: {words.plain(server.silent)}."
        yield from words.wrapped(paint.yellow(text), width, indent="  ")
        return
    yield f"{paint.bold(server.address)}  {server.url}  {server.seconds:.0f} s"
    texts = {_NAMES.get(name, name): text for name, text in server.texts.items() if not name.startswith("least_")}
    column = max(map(len, texts), default=0)
    for name, text in texts.items():
        yield from words.wrapped(f"  {name.ljust(column)}  {paint.dim(text)}", width, indent=_INDENT)
    for finding in server.findings:
        colour = paint.yellow if finding.weight is Weight.PROBLEM else paint.dim
        yield from words.wrapped(
            f"  {colour(f'{finding.weight}: {finding.name}')}  {finding.evidence}", width, indent=_INDENT
        )
        yield from words.advice(finding.remedy, width, indent=_INDENT)
    if not server.problems:
        yield paint.green("  No problem found.")


def _changes(changes: Sequence[RecentChange], paint: Paint, width: int | None) -> Iterator[str]:
    yield paint.bold("What changed last")
    for change in changes:
        by = f" ({change.by})" if change.by else ""
        text = f"  {words.moment(change.at)}  {words.plain(change.what)}{words.plain(by)}"
        yield from words.wrapped(text, width, indent=_INDENT)
