"""Run probe.py in another Python, one that has an engine: with a deadline, a limit of output and no secrets."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tpudeploy.adapters.child import bare_environment, check_interrupt, child
from tpudeploy.adapters.files import read_end, read_file
from tpudeploy.domain.errors import QueryFailed, UsageError

_PROBE = Path(__file__).with_name("probe.py")
_LAST_WORDS = 600
_LOOK_SECONDS = 0.2


def run(python: str, words: Sequence[str], *, lines: str = "", seconds: float, most: int) -> bytes:
    """Return what the probe printed. `lines` is its standard input.

    Raise `errors.UsageError` where there is no such Python, `errors.QueryFailed` where it fails, takes longer than
    `seconds` or prints more than `most` bytes, and `errors.Interrupted` where Ctrl-C ended it.
    """
    environment = bare_environment()  # no token reaches an engine
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        (here / "in").write_text(lines, encoding="utf-8")
        with (here / "in").open("rb") as source, (here / "out").open("wb") as out, (here / "err").open("wb") as err:
            # -I: neither the folder nor variables of Python can put another module before one of the engine's.
            command = [python, "-I", str(_PROBE), *words]
            try:
                with child(command, env=environment, cwd=folder, stdin=source, stdout=out, stderr=err) as process:
                    ends = time.monotonic() + seconds
                    while process.poll() is None:
                        if time.monotonic() > ends:
                            raise QueryFailed(
                                f"{python} took longer than {seconds:.0f} s.", hint="Allow it more with -timeout."
                            )
                        _check_size(here, most)
                        time.sleep(_LOOK_SECONDS)
            except OSError as cause:
                raise UsageError(
                    f"{python} cannot be run: {cause.strerror}.", hint="Name the Python of an environment."
                ) from cause
        check_interrupt(process)
        if process.returncode:
            ending = read_end(here / "err", _LAST_WORDS).decode("utf-8", "replace").strip()
            if "No module named 'vllm'" in ending:
                raise UsageError(f"{python} has no vllm.", hint="Name an environment with vllm-tpu by -python.")
            raise QueryFailed(
                f"{python} ended with {process.returncode}.", hint=ending or "It wrote nothing about the cause."
            )
        _check_size(here, most)
        return read_file(here / "out", most)


def _check_size(here: Path, most: int) -> None:
    for name, limit in (("out", most), ("err", 64 * most)):
        if (here / name).stat().st_size > limit:
            raise QueryFailed(f"The engine's Python printed more than {limit // 1024:,} KiB.", hint="It was stopped.")
