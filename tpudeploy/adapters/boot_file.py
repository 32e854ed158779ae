"""Verified boots on disk, beside the states. They belong to this machine, and none is needed for anything."""

from __future__ import annotations

from contextlib import suppress

from tpudeploy.adapters.state import disk
from tpudeploy.domain.boots import BootRecord
from tpudeploy.serialization.boot_records import format_record, parse_records

_BYTES = 256 * 1024  # kept: about a thousand boots


class BootFile:
    """See `ports.BootStore`. Boots of the emulator have a file of their own: they say nothing about real engines."""

    def __init__(self, folder: disk.Folder, *, emulated: bool) -> None:
        self._folder = folder
        self._name = "boots-emulated.jsonl" if emulated else "boots.jsonl"

    def read(self) -> tuple[BootRecord, ...]:
        try:
            lines = self._folder.last_lines(self._name, _BYTES)
        except OSError:
            return ()
        return parse_records(lines.decode(errors="replace"))

    def add(self, record: BootRecord) -> None:
        with suppress(OSError):
            self._folder.hide_from_git()
            self._folder.append(self._name, format_record(record).encode(), keep=_BYTES)
