"""lm_eval, run as a separate program where it is installed. Its samples are read after it ends."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tpudeploy.adapters.child import check_interrupt, child
from tpudeploy.domain.errors import QueryFailed, UsageError

_LAST_WORDS = 400


def samples(command: Sequence[str], folder: Path, *, api_key: str | None) -> str:
    """Run the command and return the samples that it logged in `folder`. Its stderr passes through.

    Raise `errors.UsageError` where lm_eval is not installed, `errors.QueryFailed` where it fails, and
    `errors.Interrupted` where Ctrl-C ended it.
    """
    environment = {**os.environ, **({"OPENAI_API_KEY": api_key} if api_key else {})}
    try:
        with child(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
            output, _ = process.communicate()
    except FileNotFoundError as cause:
        raise UsageError(
            "lm_eval is not installed.", hint="pip install 'lm_eval[api]', or name a file of questions."
        ) from cause
    check_interrupt(process, "Interrupted: lm_eval was stopped, and no result was saved.")
    if process.returncode:
        raise QueryFailed(f"lm_eval ended with {process.returncode}.", hint=output[-_LAST_WORDS:].strip())
    files = sorted(folder.rglob("samples_*.jsonl"))
    if len(files) != 1:
        names = ", ".join(path.name for path in files) or "nothing"
        raise QueryFailed(f"lm_eval logged {names}, but one task has one file of samples.", hint="Name one task.")
    return files[0].read_text(encoding="utf-8")
