"""Stands for `docker`, `curl`, `sleep` and the like: writes down how it was called and answers from a list of rules.

Run as `shim.py FOLDER NAME ARGUMENT…`. A rule is (command, text in the arguments, answers); each call takes the next
answer, the last one stays. An answer is [status, text]: an exit code for a command, an HTTP status for curl. A third
entry is a text in a call that must have been made before this one is answered: what runs side by side is told from
what waits in turn.
"""

import json
import os
import sys
import time
from pathlib import Path

PATIENCE = 20.0  # seconds for a call that is waited for


def main(folder: Path, name: str, arguments: list[str]) -> int:
    reads = "@-" in arguments or "--password-stdin" in arguments
    call = {
        "argv": [name, *arguments],
        "stdin": sys.stdin.buffer.read().decode() if reads else "",
        "env": dict(os.environ),
    }
    with (folder / "calls.jsonl").open("a") as calls:
        calls.write(json.dumps(call) + "\n")
    status, text = answer(folder, name, " ".join(arguments))
    if name == "apt-get" and "install" in arguments and status == 0:
        (folder / "bin" / "docker").write_text((folder / "bin" / "curl").read_text().replace(" curl ", " docker "))
        (folder / "bin" / "docker").chmod(0o755)
    if name != "curl":
        sys.stdout.write(text)
        return status
    return curl(arguments, status, text)


def answer(folder: Path, name: str, line: str) -> tuple[int, str]:
    for index, (command, part, answers) in enumerate(json.loads((folder / "rules.json").read_text())):
        if command == name and part in line:
            count = folder / f"count-{index}"
            seen = int(count.read_text()) if count.exists() else 0
            count.write_text(str(seen + 1))
            status, text, *after = answers[min(seen, len(answers) - 1)]
            return (status, text) if all(was_called(folder, part) for part in after) else (1, f"waited for {after}")
    return (404, "") if name == "curl" else (0, "")


def was_called(folder: Path, part: str) -> bool:
    end = time.monotonic() + PATIENCE
    while part not in (folder / "calls.jsonl").read_text():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def curl(arguments: list[str], status: int, text: str) -> int:
    """A status of 0 is a connection that was refused, one below it an exit code of curl's own."""
    if status <= 0:
        return -status or 7
    if "-f" in arguments and status >= 400:
        return 22
    if "-o" not in arguments:
        sys.stdout.write(text)
    elif (file := Path(arguments[arguments.index("-o") + 1])) != Path(os.devnull):
        file.write_text(text)
    if "-w" in arguments:
        sys.stdout.write(arguments[arguments.index("-w") + 1].replace("\\n", "\n").replace("%{http_code}", str(status)))
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:]))
