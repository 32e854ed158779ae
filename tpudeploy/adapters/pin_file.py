"""tpudeploy.lock.json on disk: read whole, replaced whole, one writer at a time."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tpudeploy.adapters.files import is_inside
from tpudeploy.adapters.state import disk
from tpudeploy.core import pinfile
from tpudeploy.core.pins import real
from tpudeploy.domain.errors import PinsUnreadable, StateError
from tpudeploy.domain.pins import FILE, NONE, Pins


class PinFile:
    """The file in `folder`; `aside` is a folder that git leaves alone, for the lock. See `ports.PinStore`.

    Unless `emulated`, what the emulator once told is not held: a profile that was tried out is applied for real.
    """

    def __init__(self, folder: Path, aside: Path, *, emulated: bool) -> None:
        self._path = folder / FILE
        self._aside = aside
        self._is_emulated = emulated
        self._last: tuple[bytes, Pins] | None = None

    def read(self) -> Pins:
        # A pull request may hold a link, and a message quotes what it leads to.
        if self._path.is_symlink() and not is_inside(self._path.parent, str(self._path)):
            hint = "Put the file itself in its place."
            raise PinsUnreadable(f"{FILE} is a link that leads out of the project.", hint=hint)
        try:
            content = self._path.read_bytes()
            if self._last is None or self._last[0] != content:  # a fleet reads the same many times
                self._last = (content, self._understood(content.decode("utf-8")))
        except FileNotFoundError:
            return NONE
        except (OSError, UnicodeDecodeError) as cause:
            why = getattr(cause, "strerror", None) or "it is no text"
            raise PinsUnreadable(f"{FILE} cannot be read: {why}.") from cause
        return self._last[1]

    def _understood(self, text: str) -> Pins:
        held = pinfile.loads(text, source=FILE)
        return held if self._is_emulated else real(held)

    def update(self, change: Callable[[Pins], Pins]) -> Pins:
        with self._alone():
            held = self.read()
            wanted = change(held)
            if wanted != held:
                disk.replace(self._path, pinfile.dumps(wanted))
            return held

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """The kernel frees the lock with the process."""
        try:
            disk.make_folder(self._aside)
            disk.hide_from_git(self._aside)
            lock = self._aside / "pins.lock"
            handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, disk.file_mode(lock))
        except OSError as cause:
            raise StateError(f"{FILE} cannot be written: {cause.strerror}.") from cause
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)
