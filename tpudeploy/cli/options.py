"""Options that commands share, each with its TPUDEPLOY_… twin in the environment."""

from __future__ import annotations

import argparse
import os
import re
from pathlib import Path
from typing import Any

from tpudeploy.domain.together import PARALLELISM

TRUE = {"1", "true", "yes", "on"}
FALSE = {"0", "false", "no", "off"}
_MILLISECONDS = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)(ms|s)")


def flag(parser: argparse.ArgumentParser, name: str, help_: str) -> None:
    """A switch: `--auto-approve`, or TPUDEPLOY_AUTO_APPROVE=1."""
    parser.add_argument(f"--{name}", action="store_true", default=written(name).lower() in TRUE, help=help_)


def switch(parser: argparse.ArgumentParser, name: str, help_: str) -> None:
    """What is so unless it is switched off: `-refresh=false`, or TPUDEPLOY_REFRESH=0."""
    twin = written(name)
    default: str | bool = twin or True  # a text is read as the option's own is
    parser.add_argument(f"--{name}", type=_truth, nargs="?", const=True, default=default, metavar="false", help=help_)


def option(parser: argparse.ArgumentParser, name: str, help_: str, **more: Any) -> None:
    """An option with a value: `--timeout 2h`, or TPUDEPLOY_TIMEOUT=2h."""
    twin = written(name)
    if twin:
        more["default"] = twin  # as text: argparse reads it as it reads the option
        if twin not in more.get("choices", (twin,)):
            parser.error(f"{_twin(name)}: `{twin}` is none of {', '.join(more['choices'])}")
    parser.add_argument(f"--{name}", help=help_, **more)


def several(parser: argparse.ArgumentParser, *names_and_help: str, **more: Any) -> None:
    """An option that may be given again and again; its twin holds one a line, and comes first."""
    *names, help_ = names_and_help
    twin = written(names[-1].removeprefix("--")).splitlines()
    parser.add_argument(*names, action="append", default=twin, help=help_, **more)


def is_written(name: str, value: bool | list[str]) -> bool:
    """Whether an option stands on the command line itself, and not only its twin in the environment."""
    twin = written(name)
    if isinstance(value, bool):
        return value and twin.lower() not in TRUE
    return len(value) > len(twin.splitlines())


def everywhere(parser: argparse.ArgumentParser) -> None:
    """What every command takes."""
    option(parser, "chdir", "Run as if started in DIR.", metavar="DIR", type=Path, default=Path())
    flag(parser, "no-color", "Print without colors (as with NO_COLOR).")
    flag(parser, "json", "Print one JSON document on stdout, and messages on stderr.")


def profiles(parser: argparse.ArgumentParser, *, nargs: str = "+") -> None:
    parser.add_argument("profiles", metavar="PROFILE", nargs=nargs, help="Profiles, or folders of profiles.")
    overlays(parser)


def plan_file(parser: argparse.ArgumentParser) -> None:
    """Profiles, or one saved plan."""
    parser.add_argument("profiles", metavar="PROFILE | PLANFILE", nargs="+", help="Profiles, or one saved plan.")
    overlays(parser)


def profile(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("profile", metavar="PROFILE", help="A profile.")
    overlays(parser)


def overlays(parser: argparse.ArgumentParser, *names: str) -> None:
    several(
        parser,
        *(names or ("-f", "--file")),
        "Merge OVERLAY on top of the profile (repeatable).",
        dest="overlays",
        metavar="OVERLAY",
    )
    several(
        parser,
        "--set",
        "Set one value of the profile, e.g. tpu.type=v6e-8 (repeatable).",
        dest="sets",
        metavar="PATH=VALUE",
    )
    trust(parser)


def trust(parser: argparse.ArgumentParser) -> None:
    flag(parser, "untrusted", "Read no environment variable and no file outside the project for the profiles.")
    allow_env(parser)


def allow_env(parser: argparse.ArgumentParser) -> None:
    several(
        parser,
        "--allow-env",
        "Let profiles read this environment variable, untrusted or looking like a secret; plans show it (repeatable).",
        dest="allow_env",
        metavar="NAME",
    )


def backend(parser: argparse.ArgumentParser) -> None:
    """No default from the environment here: settings know the twin, and tpudeploy.toml beside it."""
    parser.add_argument(
        "--backend",
        metavar="PLACE",
        help="Where to keep states: gs://BUCKET/PREFIX, or a folder (default: .tpudeploy).",
    )


def lock_timeout(parser: argparse.ArgumentParser) -> None:
    option(
        parser,
        "lock-timeout",
        "How long to wait for a state lock held by another run, e.g. 5m.",
        type=duration,
        metavar="TIME",
    )


def parallelism(parser: argparse.ArgumentParser) -> None:
    option(
        parser,
        "parallelism",
        f"How many calls, or deployments, to run at the same time (default: {PARALLELISM}).",
        metavar="N",
        type=count,
        default=PARALLELISM,
    )


def events(parser: argparse.ArgumentParser) -> None:
    """Make --json a stream of JSON lines: their version, each event as it happens, and the report."""
    parser.set_defaults(streams=True)


def duration(text: str) -> float:
    """`90s`, `15m`, `2h` or `7d`, as in profiles; bare seconds too."""
    from tpudeploy.config.scalars import Duration

    try:
        return float(text) if text.isdecimal() else float(Duration.parse(text))
    except ValueError as cause:
        raise argparse.ArgumentTypeError(f"`{text}` is no duration; write 90s, 15m, 2h or 7d") from cause


def seconds(text: str) -> float:
    """A latency: 500ms, 0.5s, or a duration."""
    found = _MILLISECONDS.fullmatch(text)
    return float(found[1]) / (1000 if found[2] == "ms" else 1) if found else duration(text)


def count(text: str) -> int:
    """A whole number from 1 on."""
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"`{text}` is no whole number from 1 on")
    return int(text)


def _truth(text: str) -> bool:
    if text.lower() not in TRUE | FALSE:
        raise argparse.ArgumentTypeError(f"`{text}` is neither true nor false")
    return text.lower() in TRUE


def written(name: str) -> str:
    """What the environment says for this option, "" for nothing."""
    return os.environ.get(_twin(name), "")


def _twin(name: str) -> str:
    return f"TPUDEPLOY_{name.replace('-', '_').upper()}"
