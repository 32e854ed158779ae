"""A recorder: a program on PATH that writes down the exact words and environment it was given."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from real_time import DEADLINE

# Whatever a YAML file may hold; only NUL cannot be passed to any process.
ANY_TEXT = st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\0"), max_size=30)
NASTY = st.sampled_from(
    [
        "",
        "-",
        "--",
        "-c",
        "$HOME",
        "`id`",
        "$(id)",
        "a b",
        "'",
        '"',
        "\\",
        "\n",
        "a\n",
        "!x",
        "*",
        "~",
        "{a,b}",
        "é",
        "#",
        ";",
        "&",
        "\r",
        "=",
        "\x01\x7f",
    ]
)
WORD = ANY_TEXT | NASTY
NAME = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)

# Each example starts processes.
FEW = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


@dataclass(frozen=True)
class Recorder:
    folder: Path
    program: str

    def install(self) -> None:
        """`/proc/$$/environ` is what the kernel was handed; a shell's own variables are not in it."""
        path = self.folder / self.program
        path.write_text(
            "#!/bin/sh\n"
            f'for word; do printf "%s\\0" "$word"; done >"{self.folder}/argv"\n'
            f'cat "/proc/$$/environ" >"{self.folder}/environ"\n'
        )
        path.chmod(0o755)

    def shell(self, text: str, environment: Mapping[str, str]) -> int:
        """Run one shell command with nothing but `environment` and a PATH that finds the recorder first."""
        self._forget()
        return self.run(["/bin/bash", "--norc", "-c", text], environment)

    def run(self, words: list[str], environment: Mapping[str, str]) -> int:
        self._forget()
        path = f"{self.folder}:/usr/bin:/bin"
        return subprocess.run(
            words,
            env={"PATH": path, **environment},
            cwd=self.folder,
            capture_output=True,
            timeout=DEADLINE,
            check=False,
        ).returncode

    @property
    def was_called(self) -> bool:
        return (self.folder / "argv").exists()

    @property
    def argv(self) -> tuple[str, ...]:
        return (self.program, *_split(self.folder / "argv"))

    @property
    def environment(self) -> dict[str, str]:
        pairs = (entry.partition("=") for entry in _split(self.folder / "environ"))
        return {name: value for name, _, value in pairs if name != "PATH"}

    def _forget(self) -> None:
        (self.folder / "argv").unlink(missing_ok=True)
        (self.folder / "environ").unlink(missing_ok=True)


def _split(path: Path) -> list[str]:
    return path.read_bytes().decode().split("\0")[:-1]
