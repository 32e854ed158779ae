"""Files in a folder that somebody else arranged: nothing outside of it is read, written, emptied, renamed or chmodded."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tpudeploy.adapters.state import disk
from tpudeploy.adapters.state.disk import Folder, NotOurs
from tpudeploy.domain import errors

VICTIM = "alias ls=ls\n"
Deed = Callable[[Folder], object]
# What writes to `file` in a folder, in each of the ways that there are.
WRITES: dict[str, Deed] = {
    "replace": lambda folder: folder.replace("file", "ours"),
    "create": lambda folder: folder.create("file", "ours"),
    "append": lambda folder: folder.append("file", b"ours\n", keep=1000),
    "append and cut": lambda folder: folder.append("file", b"ours\n", keep=1),
    "lock": lambda folder: os.ftruncate(folder.open_in_place("file"), 0),
    "hide": lambda folder: folder.hide_from_git(),
    "keep": lambda folder: folder.keep_link("copy", folder, "file"),
    "remove": lambda folder: folder.remove("file"),
}


def _link(folder: Path, victim: Path) -> None:
    (folder / "file").symlink_to(victim)
    (folder / ".file.new").symlink_to(victim)
    (folder / ".gitignore").symlink_to(victim)


def _hard_link(folder: Path, victim: Path) -> None:
    for name in ("file", ".file.new", ".gitignore"):
        (folder / name).hardlink_to(victim)


def _linked_folder(folder: Path, victim: Path) -> None:
    folder.rmdir()
    folder.symlink_to(victim.parent)


def _linked_folder_above(folder: Path, victim: Path) -> None:
    folder.rmdir()
    folder.parent.rmdir()
    (victim.parent / folder.name).mkdir()
    (victim.parent / folder.name / "file").hardlink_to(victim)
    folder.parent.symlink_to(victim.parent)


@pytest.mark.parametrize("plant", [_link, _hard_link, _linked_folder, _linked_folder_above])
@pytest.mark.parametrize("write", WRITES)
def test_a_write_never_leaves_the_folder(tmp_path: Path, plant: Callable[[Path, Path], None], write: str) -> None:
    folder, victim = tmp_path / "project" / "above" / "here", tmp_path / "home" / "file"
    folder.mkdir(parents=True)
    victim.parent.mkdir()
    victim.write_text(VICTIM, encoding="utf-8")
    victim.chmod(0o640)
    plant(folder, victim)
    home = sorted(victim.parent.rglob("*"))
    with suppress(OSError, errors.StateError):
        WRITES[write](Folder(folder, root=tmp_path / "project"))
    assert victim.read_text(encoding="utf-8") == VICTIM
    assert victim.stat().st_mode & 0o777 == 0o640
    assert sorted(victim.parent.rglob("*")) == home


@pytest.mark.parametrize("kind", ["FIFO", "folder", "link"])
def test_what_is_no_file_is_neither_read_nor_written_and_holds_nobody_up(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "file"
    {"FIFO": os.mkfifo, "folder": os.mkdir, "link": lambda path: path.symlink_to(tmp_path / "x")}[kind](path)
    folder = Folder(tmp_path)
    with pytest.raises(OSError, match="`file` is"):
        folder.read("file")
    for write in ("replace", "append", "lock"):
        with pytest.raises((OSError, errors.StateError), match="file"):
            WRITES[write](folder)
    assert not folder.create("file", "ours")


def test_a_name_with_a_path_in_it_is_no_name_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "outside.json").write_text("theirs", encoding="utf-8")
    folder = Folder(tmp_path / "project")
    for name in ("../outside.json", "/etc/passwd", "..", "a\0b", ""):
        with pytest.raises(NotOurs, match="not the name of a file"):
            folder.read(name)
        with pytest.raises(errors.StateError, match="not the name of a file"):
            folder.replace(name, "ours")


def test_a_file_that_another_user_put_there_is_refused_unless_a_team_shares_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("theirs\n", encoding="utf-8")
    owner = tmp_path.stat().st_uid
    real = os.fstat

    def of_another_user(handle: int) -> os.stat_result:
        status = real(handle)
        is_file = not os.path.samestat(status, tmp_path.stat())
        return os.stat_result((*status[:4], owner + 7, *status[5:])) if is_file else status

    monkeypatch.setattr(os, "fstat", of_another_user)
    tmp_path.chmod(0o755)
    with pytest.raises(OSError, match="belongs to another user"):
        Folder(tmp_path).open_in_place("file")
    tmp_path.chmod(0o775)
    os.close(Folder(tmp_path).open_in_place("file"))
    tmp_path.chmod(0o777)
    with pytest.raises(OSError, match="belongs to another user"):
        Folder(tmp_path).open_in_place("file")


def test_a_file_that_the_operator_names_is_where_they_say_but_no_link_in_a_repository_leads_there(
    tmp_path: Path,
) -> None:
    repository, elsewhere = tmp_path / "repository", tmp_path / "elsewhere"
    (repository / ".git").mkdir(parents=True)
    elsewhere.mkdir()
    (tmp_path / "mine").symlink_to(elsewhere)
    (repository / "out").symlink_to(elsewhere)
    disk.replace(tmp_path / "mine" / "plan", "ours")
    assert (elsewhere / "plan").read_text(encoding="utf-8") == "ours"
    with pytest.raises(errors.StateError, match="`out` is a link"):
        disk.replace(repository / "out" / "plan", "theirs")
    with pytest.raises(errors.StateError, match="`mine` is a link"):
        disk.replace(tmp_path / "mine" / "plan", "theirs", here=tmp_path)
    assert (elsewhere / "plan").read_text(encoding="utf-8") == "ours"


def test_no_handle_stays_open_whatever_is_refused(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - they are only counted
    _link(tmp_path, tmp_path / "victim")
    for name, write in WRITES.items():
        if name != "lock":
            for folder in (Folder(tmp_path), Folder(tmp_path / "file" / "below", root=tmp_path)):
                with suppress(OSError, errors.StateError):
                    write(folder)
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208 - they are only counted
