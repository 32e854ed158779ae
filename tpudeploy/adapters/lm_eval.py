"""lm_eval as a program of its own, where a person has installed it: run to its end, its samples read."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tpudeploy.domain.errors import Interrupted, QueryFailed, UsageError

_LAST_WORDS = 400


def samples(command: Sequence[str], folder: Path, *, api_key: str | None) -> str:
    """What it logged in `folder`. Its own words go to stderr as they come.

    Raise `errors.UsageError` where it is not installed, `errors.QueryFailed` where it fails, and
    `errors.Interrupted` where Ctrl-C ended it.
    """
    environment = {**os.environ, **({"OPENAI_API_KEY": api_key} if api_key else {})}
    try:
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    except FileNotFoundError as cause:
        raise UsageError(
            "lm_eval is not installed.", hint="pip install 'lm_eval[api]', or name a file of questions."
        ) from cause
    if done.returncode == -signal.SIGINT:  # Ctrl-C reaches the whole process group, and it may be the first to end
        raise Interrupted("Interrupted: lm_eval was ended, and nothing is kept.")
    if done.returncode:
        raise QueryFailed(f"lm_eval ended with {done.returncode}.", hint=done.stdout[-_LAST_WORDS:].strip())
    files = sorted(folder.rglob("samples_*.jsonl"))
    if len(files) != 1:
        found = ", ".join(path.name for path in files) or "nothing"
        raise QueryFailed(f"lm_eval logged {found}, where one task has one file of samples.", hint="Name one task.")
    return files[0].read_text(encoding="utf-8")
