"""A folder in which gemma serves and one benchmark result was imported: a bed that the tests of a module share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from command_line import PROFILE, REAL_BOOT

from tpudeploy.cli.main import main
from tpudeploy.emulator import VirtualClock, running

PROFILE_FILE = "gemma.yaml"
_VLLM_RESULT = (Path(__file__).parent / "data" / "vllm_result.json").read_text(encoding="utf-8")


@contextmanager
def serving_folder(folder: Path, others: Mapping[str, str]) -> Iterator[VirtualClock]:
    """Write the profile and `others`, texts by file name, and apply the profile. The working directory is `folder`."""
    clock = VirtualClock()
    scenario = {"nodes": "real", "timings": {"boot": REAL_BOOT}}
    with running(clock=clock, scenario=scenario) as emulator, pytest.MonkeyPatch.context() as patch:
        patch.setenv("TPU_EMULATOR_HOST", emulator.host)
        patch.chdir(folder)
        for name, text in {PROFILE_FILE: PROFILE, "run.json": _VLLM_RESULT, **others}.items():
            (folder / name).write_text(text, encoding="utf-8")
        assert main(["apply", "--auto-approve", PROFILE_FILE], clock=clock) == 0
        assert main(["bench", "import", "run.json", "--type", "v6e-1"], clock=clock) == 0
        yield clock
