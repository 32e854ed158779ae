"""Cuts the log fixtures out of whole logs of real boots, so that none is ever retyped.

    python tests/boot_log/excerpts.py FOLDER     FOLDER holds the whole logs, by the names below

Each row: the fixture, the log that it comes from, and the lines of it, from and to, counted from 1 and both included.
`SUMS` are of the fixtures as they were cut: a test holds them, so that one that is edited by hand is found.

Why: decision 56 in docs/decisions.md.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
EXCERPTS: dict[str, tuple[str, tuple[tuple[int, int], ...]]] = {
    # google/gemma-4-E2B-it on a v5litepod-1 at a utilization of 0.95, vLLM 0.26.1rc1: its head, and how it died.
    "tests/boot_log/data/boot_e2b_v5e1_util095_oom.log": ("boot_e2b_v5e1_util095_oom.log", ((1, 80), (985, 1168))),
    # Its death alone, which the emulator's stand-in dies again.
    "tpudeploy/emulator/machine/vllm/deaths/program-allocation.log": (
        "boot_e2b_v5e1_util095_oom.log",
        ((1004, 1168),),
    ),
    # The same model, quantized by qwix while it is loaded.
    "tests/boot_log/data/boot_failed_qwix_int8_v5e1.log": ("boot_failed_qwix_int8_v5e1.log", ((1, 39),)),
    "tpudeploy/emulator/machine/vllm/deaths/quantizing-in-place.log": ("boot_failed_qwix_int8_v5e1.log", ((14, 39),)),
    # It served, on a v6e-1.
    "tests/sizing/data/boot_gemma4_e2b_v6e1.log": ("boot_gemma4_e2b_v6e1_tp1.log", ((1, 1073),)),
}
SUMS = {
    "tests/boot_log/data/boot_e2b_v5e1_util095_oom.log": "2be0a2f67f5f9c93",
    "tpudeploy/emulator/machine/vllm/deaths/program-allocation.log": "ce26f6375eaff682",
    "tests/boot_log/data/boot_failed_qwix_int8_v5e1.log": "09f4e5042ac4ccb6",
    "tpudeploy/emulator/machine/vllm/deaths/quantizing-in-place.log": "9c3b6929bdb5c519",
    "tests/sizing/data/boot_gemma4_e2b_v6e1.log": "455ef2cea193f28c",
}


def cut(text: bytes, ranges: tuple[tuple[int, int], ...]) -> bytes:
    lines = text.split(b"\n")
    return b"".join(line + b"\n" for first, last in ranges for line in lines[first - 1 : last])


def checksum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def main(folder: Path) -> None:
    for name, (source, ranges) in EXCERPTS.items():
        content = cut((folder / source).read_bytes(), ranges)
        (ROOT / name).parent.mkdir(exist_ok=True)
        (ROOT / name).write_bytes(content)
        print(f'    "{name}": "{checksum(content)}",')


if __name__ == "__main__":
    main(Path(sys.argv[1]))
