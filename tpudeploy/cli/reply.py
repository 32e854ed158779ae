"""Hold the document that a command prints with --json."""

from __future__ import annotations

from collections.abc import Mapping


class Reply:
    """Holds the document of a command until it ends. An error that stops the command is printed instead."""

    def __init__(self) -> None:
        self.text = ""

    def set(self, document: Mapping[str, object], *, on_one_line: bool = False) -> None:
        """Keep `document`, whose values are JSON values. Raise ValueError if there is a document already."""
        import json

        self.set_text(json.dumps(document, indent=None if on_one_line else 2, ensure_ascii=False))

    def set_text(self, text: str) -> None:
        """Keep a document that is already text. Raise ValueError if there is a document already."""
        if self.text:
            raise ValueError("A command prints one document.")
        self.text = text.removesuffix("\n")
