"""A command line that cannot be parsed."""

from __future__ import annotations


class Usage(Exception):
    """Raised for a command line that cannot be parsed. argparse would exit 2, which here means "changes"."""

    def __init__(self, message: str, *, hint: str) -> None:
        super().__init__(message)
        self.message = f"{message[0].upper()}{message[1:]}"
        self.hint = hint
