"""Two replicas behind a real router, one of them deleted under load: which requests fail, and why.

    tpudeploy emulator run -- python examples/07-replicas/drill.py

It needs the router's program, here that of `apt-get install haproxy`. ROUTER=smg or ROUTER=envoy takes another one.
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from streams import Load, running

HERE = Path(__file__).parent
CLIENTS = 8
PORT = 18080
PATIENCE = 180.0


def main() -> int:
    """Run the drill and return its exit code: 1 if a request failed that the other replica could have served."""
    if not os.environ.get("TPU_EMULATOR_HOST"):
        sys.exit("The drill runs on the emulator: see the head of this file.")
    kind = os.environ.get("ROUTER", "haproxy")
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(HERE.parents[1] / "profiles", Path(folder, "profiles"))
        profile = Path(folder, "examples", "07-replicas", "profile.yaml")
        profile.parent.mkdir(parents=True)
        shutil.copy(HERE / "profile.yaml", profile)
        command = ["tpudeploy", "apply", str(profile), "-auto-approve", "-watch", "-set", f"router.kind={kind}"]
        with subprocess.Popen(command, cwd=folder) as watcher:
            try:
                return drill(Path(folder), watcher)
            finally:
                watcher.send_signal(signal.SIGINT)
                watcher.wait()
                subprocess.run(["tpudeploy", "destroy", str(profile), "-auto-approve"], cwd=folder, check=True)


def drill(folder: Path, watcher: subprocess.Popen[bytes]) -> int:
    """Keep clients reading while one replica is lost and replaced, and print what became of their streams.

    `folder` is the one that tpudeploy runs in.
    """
    load = Load(port=PORT, model="google/gemma-4-E2B-it", max_tokens=400)

    def wait(condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            if watcher.poll() is not None or time.monotonic() > deadline:
                sys.exit(f"This did not happen: {what}.")
            time.sleep(0.5)

    def slices() -> set[str]:
        return {row["slice"] for row in endpoint(folder).get("replicas", [])}

    wait(lambda: len(slices()) == 2, "both replicas are on the list")  # noqa: PLR2004 - both
    wait(lambda: load.read_stream().ended == "done", "the router answers")
    first = slices()
    load.streams.clear()
    print(f"\n{CLIENTS} clients read through {endpoint(folder)['url']}, from {', '.join(sorted(first))}.\n", flush=True)
    with running(load, clients=CLIENTS):
        time.sleep(5)
        delete(max(first))
        wait(lambda: len(slices()) == 1, "the deleted replica leaves the list")
        wait(lambda: len(slices() - first) == 1, "its successor is on the list")
        time.sleep(5)
    done = sum(stream.ended == "done" for stream in load.streams)
    print(f"\n{done} of {len(load.streams)} streams were read to their end. Failed, by cause:")
    for cause, count in load.failures.most_common() or [("none", 0)]:
        print(f"  {count:3} {cause}")
    # Each client had at most one stream open on the machine that was deleted.
    is_lost = set(load.failures) - {"cut off"} or load.failures.total() > CLIENTS
    print("A request was lost that the other replica could have served." if is_lost else "No other request failed.")
    return 1 if is_lost else 0


def delete(name: str) -> None:
    """Delete a slice behind the back of tpudeploy: its machine ends at once, in the middle of its streams."""
    print(f"Deleting {name}: its machine ends at once.\n", flush=True)
    project = os.environ.get("GOOGLE_CLOUD_PROJECT", "emulated")
    path = f"/v2alpha1/projects/{project}/locations/us-east5-a/queuedResources/{name}?force=true"
    connection = http.client.HTTPConnection(os.environ["TPU_EMULATOR_HOST"])
    connection.request("DELETE", path)
    if connection.getresponse().status != http.client.OK:
        sys.exit(f"{name} was not deleted.")


def endpoint(folder: Path) -> dict[str, Any]:
    """Return the endpoint document, or nothing before it is published."""
    file = folder / "endpoints" / "replicas.json"
    document: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    return document


if __name__ == "__main__":
    sys.exit(main())
