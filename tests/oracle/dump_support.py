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
from collections.abc import Iterator

_CHIPS = {"v6e": "v6e", "v7x": "tpu7x"}
_KINDS = ("model", "feature", "parallelism")
_HEAD = '''"""What tpu-inference's own tests say of models and features by chip, written by tests/oracle/dump_support.py.

Never edit by hand. Columns: chip, kind, name, and the cells of its row: `pass`, `untested`, or the matrix's words.
"""

REPOSITORY = "vllm-project/tpu-inference"
COMMIT = "{commit}"
DATE = "{date}"

ROWS = """
{rows}
"""
'''


def main(git: str, commit: str = "HEAD") -> None:
    commit, date = _git(git, "log", "-1", "--format=%H %cs", commit).split()
    rows = "\n".join(
        row for path, chip in _CHIPS.items() for kind in _KINDS for row in _rows(git, commit, path, chip, kind)
    )
    sys.stdout.write(_HEAD.format(commit=commit, date=date, rows=rows))


def _rows(git: str, commit: str, path: str, chip: str, kind: str) -> Iterator[str]:
    text = _git(git, "show", f"{commit}:support_matrices/nightly/{path}/default/{kind}_support_matrix.csv")
    for name, *cells in list(csv.reader(io.StringIO(text)))[1:]:
        results = cells[1:] if kind == "model" else cells  # the second column of a model is its type
        yield " ".join([chip, kind, name.replace(" ", "_"), *map(_cell, results)])


def _cell(text: str) -> str:
    word = text.strip().lstrip("✅❓❌ ").lower()
    return {"passing": "pass"}.get(word, word.replace(" ", "_"))


def _git(git: str, *words: str) -> str:
    return subprocess.run(["git", "-C", git, *words], check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    main(*sys.argv[1:])
