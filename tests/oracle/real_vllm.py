"""Asks a vLLM that is installed in another Python, through a script here, or through the probe of `tpudeploy learn`."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tpudeploy.features import learn

HERE = Path(__file__).parent
PROBE = Path(learn.__file__).with_name("probe.py")


def ask(python: str, script: str, commands: Iterable[tuple[str, ...]]) -> list[Any]:
    """Return what `script` writes, line by line, when it reads each list of words as a line."""
    return _lines([python, str(HERE / script)], commands)


def parse(python: str, commands: Iterable[tuple[str, ...]]) -> list[Any]:
    """Return what the real parser makes of each list of words: the options that it sets, or the error."""
    return _lines([python, "-I", str(PROBE), "answers"], (["words", words] for words in commands))


def _lines(command: list[str], rows: Iterable[Any]) -> list[Any]:
    process = subprocess.run(
        command,
        input="".join(json.dumps(row) + "\n" for row in rows),
        stdout=subprocess.PIPE,
        encoding="utf-8",
        env={name: value for name, value in os.environ.items() if name != "VLLM_PYTHON"},  # no variable of vLLM's own
        cwd=HERE,  # a stray module elsewhere must not shadow one of torch's
        check=True,
    )
    return [json.loads(line) for line in process.stdout.splitlines()]
