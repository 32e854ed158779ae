"""One emulated TPU VM: its own root folder, address and processes; a closed world (ARCHITECTURE.md).

The cloud side knows a machine only by `machine.Machine` and `facts`. What runs in other processes is started by path
or by name: warden.py (keeps the script's session), shim.sh or shim.py (every command), vllm/ (the stand-in).
"""

from __future__ import annotations

EXIT_CODE = 95  # Linux's EOPNOTSUPP: none of the emulated commands ends with it


class Unsupported(Exception):
    """The text names the words at issue and no others: a command line may hold a token."""

    def message(self, command: str) -> str:
        return f"{command}: the emulator's stand-in does not support {self}"
