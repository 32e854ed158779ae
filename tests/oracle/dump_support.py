"""Write tpudeploy/catalog/_support.py from the support matrices of vllm-project/tpu-inference.

    python tests/oracle/dump_support.py GIT_DIRECTORY [COMMIT] > tpudeploy/catalog/_support.py

GIT_DIRECTORY is a clone, bare or not. The matrices are those of support_matrices/nightly/CHIP/default: models, features
and parallelism. A cell is `pass`, `untested`, or the words of the matrix with underscores.
"""

from __future__ import annotations

import csv
import io
import subprocess
import sys
from collections.abc import Sequence

# Folders of a chip by release: later ones first. A file that a release lacks is left out.
_CHIPS = {
    "v6e": ("v6e/default/", "v6e/", "v6/default/", "v6/", ""),
    "tpu7x": ("v7x/default/", "v7x/", "v7/default/", "v7/"),
}
_KINDS = {
    "model": ("model_support_matrix", "text_only_model_support_matrix", "multimodal_model_support_matrix"),
    "feature": ("feature_support_matrix",),
    "parallelism": ("parallelism_support_matrix",),
}
_NAMES = ("model", "models", "model name", "feature", "features", "parallelism")
_NO_RESULTS = ("type", "category", "model type", "notes", "")
_PASS = ("pass", "passed", "passing", "yes", "ok", "supported", "verified", "✅")
_UNTESTED = ("untested", "not tested", "unverified", "n/a", "na", "unknown", "-", "", "❓")
_HEAD = '''"""What tpu-inference's own tests say of models and features by chip, written by tests/oracle/dump_support.py.

Never edit by hand. Columns: chip, kind, name, and the cells of its row: `pass`, `untested`, or the matrix's words.
"""

REPOSITORY = "vllm-project/tpu-inference"
COMMIT = "{commit}"
DATE = "{date}"
RELEASE = "{release}"

ROWS = """
{rows}
"""
'''


def main(git: str, commit: str = "HEAD") -> None:
    commit, date = _git(git, "log", "-1", "--format=%H %cs", commit).split()
    words = ("--sort=-creatordate", "--format=%(creatordate:short) %(refname:short)", "refs/tags")
    tags = [line.split() for line in _git(git, "for-each-ref", *words).splitlines()]
    release = next((tag for day, tag in tags if day <= date), "").removeprefix("v")
    paths = set(_git(git, "ls-tree", "-r", "--name-only", commit, "support_matrices").splitlines())
    rows = [
        f"{chip} {kind} {row}"
        for chip, folders in _CHIPS.items()
        for kind, names in _KINDS.items()
        for path in _files(paths, folders, names)
        for row in rows_of(_git(git, "show", f"{commit}:{path}"))
    ]
    sys.stdout.write(_HEAD.format(commit=commit, date=date, release=release, rows="\n".join(rows)))


def _files(paths: set[str], folders: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return the matrices in the first folder that has some."""
    for root in ("support_matrices/nightly/", "support_matrices/release/", "support_matrices/"):
        for folder in folders:
            files = [path for name in names if (path := f"{root}{folder}{name}.csv") in paths]
            if files:
                return files
    return []


def rows_of(text: str) -> list[str]:
    """Return the rows of a matrix, its name and the cells, whatever else its columns are and however cells are spelled."""
    head, *rows = [row for row in csv.reader(io.StringIO(text.lstrip("\ufeff"))) if any(map(str.strip, row))]
    titles = [title.strip().lower() for title in head]
    name = next((at for at, title in enumerate(titles) if title in _NAMES), 0)
    results = [at for at, title in enumerate(titles) if at != name and title not in _NO_RESULTS]
    return [
        " ".join([row[name].strip().replace(" ", "_"), *(_cell(row[at] if at < len(row) else "") for at in results)])
        for row in rows
        if len(row) > name and row[name].strip()
    ]


def _cell(text: str) -> str:
    word = text.strip().lower()
    bare = word.lstrip("✅❓❌⚠️ ")
    if bare in _PASS or (not bare and "✅" in word):
        return "pass"
    if bare in _UNTESTED and "❌" not in word:
        return "untested"
    return (bare or "failing").replace(" ", "_")


def _git(git: str, *words: str) -> str:
    return subprocess.run(["git", "-C", git, *words], check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    main(*sys.argv[1:])
