"""The refusal of what a stand-in cannot answer as the real command or server would: it never answers otherwise."""

from __future__ import annotations

EXIT_CODE = 95  # Linux's EOPNOTSUPP: none of the emulated commands ends with it


class Unsupported(Exception):
    """The text names the words at issue and no others: a command line may hold a token."""

    def message(self, command: str) -> str:
        return f"{command}: the emulator's stand-in does not support {self}"
