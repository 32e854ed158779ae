"""Articles as Markdown, and as a page of the same sections."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tpudeploy.features.benchmark.compare import source_notes
from tpudeploy.features.benchmark.comparison import Comparison
from tpudeploy.features.benchmark.report.article import (
    ArticleSection,
    ArticleTable,
    emulated_note,
    of_run,
    sections,
)
from tpudeploy.features.benchmark.report.labels import run_labels
from tpudeploy.features.benchmark.run import Run
from tpudeploy.text.words import plain


def to_markdown(runs: Sequence[Run], comparison: Comparison | None) -> str:
    """Return the article about runs. `comparison` is of these runs; None for a single run."""
    labels = run_labels(runs)
    servers = [of_run(label, run) for label, run in zip(labels, runs, strict=True)]
    title = runs[0].subject.deployment or labels[0] if len(runs) == 1 else "Benchmarks compared"
    # The sources of tables are among the facts of each.
    sources = set(source_notes(runs))
    notes = () if comparison is None else [note for note in comparison.notes if note not in sources]
    return article_markdown(title, emulated_note(servers), sections(servers, _labelled(notes, runs, labels)))


def article_markdown(title: str, note: str, parts: Iterable[ArticleSection]) -> str:
    """Return a document of these sections. `note` is what to know before reading, or ""."""
    lines = [f"# {plain(title)}", ""]
    lines += [f"> {note}", ""] if note else []
    for section in parts:
        lines += [f"## {section.title}", ""]
        for part in section.parts:
            lines += [*(_table(part) if isinstance(part, ArticleTable) else [part]), ""]
        for text in section.code:
            lines += ["```yaml", text.rstrip(), "```", ""]
    return "\n".join(lines).rstrip() + "\n"


def _labelled(notes: Iterable[str], runs: Sequence[Run], labels: Sequence[str]) -> Iterator[str]:
    """Yield notes in which runs have their labels in place of their ids, the longest ids first."""
    pairs = sorted(zip((run.id for run in runs), labels, strict=True), key=lambda pair: -len(pair[0]))
    for note in notes:
        text = note
        for id_, label in pairs:
            text = text.replace(id_, label)
        yield text


def _table(table: ArticleTable) -> Iterator[str]:
    yield f"| {' | '.join(map(_escaped, table.head))} |"
    yield f"|{'---|' * table.figures}{'---:|' * (len(table.head) - table.figures)}"
    for row in table.rows:
        yield f"| {' | '.join(map(_escaped, row))} |"


def _escaped(text: str) -> str:
    return plain(text).replace("|", "\\|")
