"""Options that commands share, each with its TPUDEPLOY_… twin in the environment."""

from __future__ import annotations

import argparse
import os
from typing import Any

TRUE = {"1", "true", "yes", "on"}


def flag(parser: argparse.ArgumentParser, name: str, help_: str) -> None:
    """A switch: `--auto-approve`, or TPUDEPLOY_AUTO_APPROVE=1."""
    parser.add_argument(f"--{name}", action="store_true", default=_environment(name).lower() in TRUE, help=help_)


def option(parser: argparse.ArgumentParser, name: str, help_: str, **more: Any) -> None:
    """An option with a value: `--timeout 2h`, or TPUDEPLOY_TIMEOUT=2h."""
    written = _environment(name)
    if written:
        more["default"] = written  # as text: argparse reads it as it reads the option
        if written not in more.get("choices", (written,)):
            parser.error(f"{_twin(name)}: `{written}` is none of {', '.join(more['choices'])}")
    parser.add_argument(f"--{name}", help=help_, **more)


def profiles(parser: argparse.ArgumentParser, *, nargs: str = "+") -> None:
    parser.add_argument("profiles", metavar="PROFILE", nargs=nargs, help="a profile, or several")
    overlays(parser)


def profile(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("profile", metavar="PROFILE", help="a profile")
    overlays(parser)


def overlays(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-f", "--file", dest="overlays", metavar="OVERLAY", action="append", default=[], help="lay a file over it"
    )
    parser.add_argument(
        "--set",
        dest="sets",
        metavar="PATH=VALUE",
        action="append",
        default=[],
        help="set one value, e.g. tpu.type=v6e-8",
    )


def json(parser: argparse.ArgumentParser) -> None:
    flag(parser, "json", "machine-readable output on stdout")


def duration(text: str) -> float:
    """`90s`, `15m`, `2h` or `7d`, as in profiles; bare seconds too."""
    from tpudeploy.config.scalars import Duration

    try:
        return float(text) if text.isdecimal() else float(Duration.parse(text))
    except ValueError as cause:
        raise argparse.ArgumentTypeError(f"`{text}` is no duration; write 90s, 15m, 2h or 7d") from cause


def _environment(name: str) -> str:
    return os.environ.get(_twin(name), "")


def _twin(name: str) -> str:
    return f"TPUDEPLOY_{name.replace('-', '_').upper()}"
