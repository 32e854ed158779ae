"""Configure the documentation site: `make docs` builds it into build/site, with every warning as an error."""

import re
import sys
from pathlib import Path

from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

from tpudeploy.version import VERSION

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "extensions"))

project = "tpudeploy"
author = "The tpudeploy authors"
extensions = ["myst_parser", "sphinx_copybutton", "reference"]
html_theme = "furo"
version = release = VERSION
html_title = f"tpudeploy {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "navigation_with_keys": True,
    "source_repository": "https://github.com/tpudeploy/tpudeploy/",  # an edit link on each page
    "source_branch": "main",
    "source_directory": "docs/",
}
nitpicky = True
smartquotes = False  # `--set` stays two dashes
myst_heading_anchors = 3
copybutton_prompt_text = "$ "
html_logo = "static/logo.svg"
html_favicon = "static/logo.svg"
exclude_patterns = ["extensions", "maintainers"]  # for people who change tpudeploy, in the repository

# The pages are also read in the repository, where a link may lead to any file of it. The site has the pages alone.
_REPOSITORY = "https://github.com/tpudeploy/tpudeploy/blob/main/"
_LINK = re.compile(r"\]\((?!https?://)([^)#]+)(#[^)]*)?\)")
_ROW = re.compile(r"^\| (.+?) \| (.+) \|$", re.MULTILINE)
_TARGET = re.compile(r"\]\(([^)#]+)\.md")
_GROUP = re.compile(r"^## (?P<title>.+)\n\n(?P<links>(?:- \[.+\]\(.+\)\n)+)", re.MULTILINE)


def setup(app: Sphinx) -> None:
    """Register what happens to each page before it is parsed."""
    app.add_lexer("console", TextLexer)  # that of Pygments takes the comments of a plan for prompts
    app.connect("source-read", lead_links_to_the_repository)
    app.connect("source-read", make_navigation)
    app.connect("source-read", add_other_words)


def lead_links_to_the_repository(_app: Sphinx, page: str, source: list[str]) -> None:
    """Turn links to files outside the site into links to the repository."""

    def absolute(link: re.Match[str]) -> str:
        target = (HERE / page).parent.joinpath(link[1]).resolve()
        if target.is_relative_to(HERE):
            return link[0]
        return f"]({_REPOSITORY}{target.relative_to(HERE.parent)}{link[2] or ''})"

    source[0] = _LINK.sub(absolute, source[0])


def add_other_words(_app: Sphinx, page: str, source: list[str]) -> None:
    """Let the search find a page by the words that other-words.md has for it: they become entries of the index."""
    rows = _ROW.findall((HERE / "other-words.md").read_text(encoding="utf-8"))
    # `!` is a main entry: the search shows it first. The first page of a row is the one for its words.
    rows_by_words = [(words, _TARGET.findall(links)) for words, links in rows[1:]]
    words = [
        f"{'!' if targets[0] == page else ''}{word}"
        for row, targets in rows_by_words
        if page in targets
        for word in row.split(", ")
    ]
    if words:
        source[0] = f"```{{index}} {', '.join(words)}\n```\n\n{source[0]}"


def make_navigation(_app: Sphinx, page: str, source: list[str]) -> None:
    """Make the navigation from the lists of all-pages.md: each heading with its links is one part of it."""
    if page != "index":
        return
    parts = []
    for group in _GROUP.finditer((HERE / "all-pages.md").read_text(encoding="utf-8")):
        pages = "\n".join(re.findall(r"\]\((.+?)\.md\)", group["links"]))
        parts.append(f"```{{toctree}}\n:hidden:\n:caption: {group['title']}\n\n{pages}\n```\n")
    source[0] += "\n" + "\n".join(parts)
