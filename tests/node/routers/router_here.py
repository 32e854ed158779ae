"""The process of a router in a folder without a deployment: `tpudeploy router`, for whose list no cloud is asked.

Run as `tpudeploy router` is: ... --chdir FOLDER NAME.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

from tpudeploy.adapters.router_process import RouterProcess


def main(folder: Path, name: str) -> None:
    document = folder / "endpoints" / f"{name}.json"

    def read() -> Mapping[str, object] | None:
        return json.loads(document.read_text()) if document.exists() else None

    def report(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    process = RouterProcess(name, folder / ".tpudeploy" / "routers" / name, read, report, interval=0.5)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: process.stop())
    process.run()


if __name__ == "__main__":
    main(Path(sys.argv[-2]), sys.argv[-1])
