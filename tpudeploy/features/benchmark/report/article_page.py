"""An article as a page."""

from __future__ import annotations

from collections.abc import Sequence

from tpudeploy.features.benchmark.report.article import ArticleSection
from tpudeploy.views.page import render


def article_page(title: str, note: str, parts: Sequence[ArticleSection]) -> str:
    """Return a page of these sections. `note` is what to know before reading, or ""."""
    return render("article.html.j2", package=__package__, title=title, note=note, sections=parts)
