"""Reply: the one document that a command prints with --json."""

from __future__ import annotations

from collections.abc import Mapping


class Reply:
    """The document of a command, kept until the command ends: an error that stops the command takes its place."""

    def __init__(self) -> None:
        self.text = ""

    def set(self, document: Mapping[str, object], *, on_one_line: bool = False) -> None:
        """Keep `document`, whose values are those that JSON knows. Raise ValueError where there is one already."""
        import json

        self.set_text(json.dumps(document, indent=None if on_one_line else 2, ensure_ascii=False))

    def set_text(self, text: str) -> None:
        """Keep a document that is text already. Raise ValueError where there is one."""
        if self.text:
            raise ValueError("A command prints one document.")
        self.text = text.removesuffix("\n")
