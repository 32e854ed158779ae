"""Asks a vLLM that is installed in another Python, through one of the scripts here that read and write lines of JSON."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def ask(python: str, script: str, commands: Iterable[tuple[str, ...]]) -> list[Any]:
    """Return what `script` writes, line by line, when it reads each list of words as a line."""
    process = subprocess.run(
        [python, str(HERE / script)],
        input="".join(json.dumps(words) + "\n" for words in commands),
        stdout=subprocess.PIPE,
        encoding="utf-8",
        env={name: value for name, value in os.environ.items() if name != "VLLM_PYTHON"},  # no variable of vLLM's own
        cwd=HERE,  # a stray module elsewhere must not shadow one of torch's
        check=True,
    )
    return [json.loads(line) for line in process.stdout.splitlines()]
