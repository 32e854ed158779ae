"""tpudeploy.lock.json on disk. It is read and replaced as a whole, by one writer at a time."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tpudeploy.adapters.files import is_inside, read_file
from tpudeploy.adapters.state import disk
from tpudeploy.domain.errors import PinsUnreadable, StateError
from tpudeploy.domain.pins import FILE, NONE, Pins
from tpudeploy.pins import real
from tpudeploy.serialization import pinfile


class PinFile:
    """Stores pins in `folder`. `aside` is a folder that git ignores, for the lock. See `ports.PinStore`.

    Unless `emulated` is set, pins from the emulator are ignored, so that a profile can be applied for real after a
    trial on the emulator.
    """

    def __init__(self, folder: Path, aside: Path, *, emulated: bool) -> None:
        self._folder = disk.Folder(folder)
        self._path = folder / FILE
        self._aside = disk.Folder(aside, root=folder)
        self._is_emulated = emulated
        self._last: tuple[tuple[int, ...], Pins] | None = None

    def read(self) -> Pins:
        # A pull request can contain a link, and an error message would quote the file that it leads to.
        if self._path.is_symlink() and not is_inside(self._path.parent, str(self._path)):
            hint = "Replace the link with the file itself."
            raise PinsUnreadable(f"{FILE} is a link that leads out of the project.", hint=hint)
        try:
            facts = self._path.stat()
            version = (facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)
            if self._last is None or self._last[0] != version:  # a run asks for the same pins many times
                self._last = (version, self._parse(read_file(self._path, disk.MAX_BYTES).decode("utf-8")))
        except FileNotFoundError:
            return NONE
        except (OSError, UnicodeDecodeError) as cause:
            why = getattr(cause, "strerror", None) or "it is not text"
            raise PinsUnreadable(f"{FILE} cannot be read: {why}.") from cause
        return self._last[1]

    def _parse(self, text: str) -> Pins:
        pins = pinfile.loads(text, source=FILE)
        return pins if self._is_emulated else real(pins)

    def update(self, change: Callable[[Pins], Pins]) -> Pins:
        with self._lock():
            pins = self.read()
            new_pins = change(pins)
            if new_pins != pins:
                self._folder.replace(FILE, pinfile.dumps(new_pins))
            return pins

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """Hold the file's lock. The kernel releases it when the process ends."""
        try:
            self._aside.hide_from_git()
            handle = self._aside.open_in_place("pins.lock")
        except OSError as cause:
            raise StateError(f"{FILE} cannot be written: {cause.strerror}.") from cause
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)
