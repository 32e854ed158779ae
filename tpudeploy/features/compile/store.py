"""Files of compiled graphs: in a folder, and in the bucket of the states, where other computers continue them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from tpudeploy.adapters.files import read_file
from tpudeploy.adapters.state import disk
from tpudeploy.domain.errors import QueryFailed, TpudeployError, UsageError
from tpudeploy.features.compile import CompiledGraph
from tpudeploy.features.compile.compiled import Compiled
from tpudeploy.features.compile.engine_process import read_row
from tpudeploy.ports import RecordStore

_FORMAT = "tpudeploy.compiled/1"
_MOST_BYTES = 16 << 20
_COUNTS = ("temp_bytes", "code_bytes", "cycles")


class CompiledStore:
    """The files below `folder`, by versions and name. `shared` are the records in the bucket, None without one."""

    def __init__(self, folder: Path, shared: RecordStore | None) -> None:
        self._folder = folder
        self._shared = shared

    def read_all(self, name: str) -> Iterator[Compiled]:
        """Yield the files of this name, those that have more graphs later. Raise as `read`."""
        files = [parse(read_file(path, _MOST_BYTES), str(path)) for path in sorted(self._folder.glob(f"*/{name}"))]
        if self._shared is not None:
            ids = (each for each in self._shared.ids() if f"{each}.json".endswith(f"-{name}"))
            files += [parse(self._shared.read(each).encode(), self._shared.place(each)) for each in ids]
        yield from sorted(files, key=lambda file: len(file.graphs))

    def read(self, path: Path) -> Compiled:
        """Return a file, or that of its name in the bucket. Raise `errors.UsageError` for another file."""
        record = f"{path.parent.name}-{path.stem}"
        if not path.exists() and self._shared is not None and record in self._shared.ids():
            return parse(self._shared.read(record).encode(), self._shared.place(record))
        try:
            return parse(read_file(path, _MOST_BYTES), str(path))
        except OSError as cause:
            raise _no_graphs(str(path)) from cause

    def keep(self, compiled: Compiled, name: str, on_message: Callable[[str], None]) -> Compiled:
        """Write a file, and return it. A bucket that does not take it is said, and costs nothing else."""
        path = self._folder / compiled.versions / name
        kept = replace(compiled, path=str(path))
        text = json.dumps(kept.to_dict(), indent=1) + "\n"
        disk.replace(path, text)
        if self._shared is not None:
            try:
                self._shared.keep(f"{compiled.versions}-{path.stem}", text)
            except TpudeployError as refusal:
                on_message(f"Not shared: {refusal.message}")
        return kept


def parse(content: bytes, place: str) -> Compiled:
    """Return a file's compiled graphs. Raise `errors.UsageError` for another content or a later format."""
    try:
        row = read_row(content)
        graphs = tuple(CompiledGraph(**graph) for graph in row["graphs"])
        fields = {name: value for name, value in row.items() if name not in ("format", "graphs", "path")}
        compiled = Compiled(**fields, graphs=graphs, path=place)
        counts = [getattr(graph, name) for graph in graphs for name in _COUNTS]
        is_sound = all(type(count) is int and count >= 0 for count in counts) and isinstance(compiled.settings, dict)
    except (KeyError, TypeError, QueryFailed) as cause:
        raise _no_graphs(place) from cause
    if row.get("format") != _FORMAT or not is_sound:
        raise _no_graphs(place)
    return compiled


def _no_graphs(place: str) -> UsageError:
    hint = "`tpudeploy compile` of this version writes one."
    return UsageError(f"{place} does not have compiled graphs of the format {_FORMAT}.", hint=hint)
