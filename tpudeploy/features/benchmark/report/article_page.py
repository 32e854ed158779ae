"""An article as a page."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from tpudeploy.features.benchmark.report import overlay
from tpudeploy.features.benchmark.report.article import ArticleSection, ArticleServer
from tpudeploy.views.page import render


def article_page(title: str, note: str, parts: Sequence[ArticleSection], servers: Sequence[ArticleServer] = ()) -> str:
    """Return a page of these sections, and charts of the last run of each server.

    `note` is what to know before reading, or "".
    """
    panels = tuple(overlay.panels([each.runs[-1] for each in servers], [each.label for each in servers]))
    return render(
        "article.html.j2",
        package=__package__,
        charts=[chart for panel in panels for chart in panel.charts],
        title=title,
        note=note,
        sections=parts,
        panels=overlay.panel_groups(panels, count()),
    )
