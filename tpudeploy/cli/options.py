"""Define options that commands share, each with its TPUDEPLOY_… variable."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tpudeploy.domain.together import PARALLELISM
from tpudeploy.operations.argument_types import count, duration

if TYPE_CHECKING:
    from tpudeploy.operations.arguments import Argument

TRUE = {"1", "true", "yes", "on"}
FALSE = {"0", "false", "no", "off"}


def flag(parser: argparse.ArgumentParser, name: str, help_: str, **more: Any) -> None:
    """Add a switch: `--auto-approve`, or TPUDEPLOY_AUTO_APPROVE=1."""
    default = environment_value(name).lower() in TRUE
    parser.add_argument(f"--{name}", action="store_true", default=default, help=help_, **more)


def switch(parser: argparse.ArgumentParser, name: str, help_: str, **more: Any) -> None:
    """Add a switch that is on by default: `-refresh=false`, or TPUDEPLOY_REFRESH=0, turns it off."""
    default_text = environment_value(name)
    default: str | bool = default_text or True  # argparse converts a text as it does on the command line
    more |= {"type": _truth, "nargs": "?", "const": True, "default": default, "metavar": "false"}
    parser.add_argument(f"--{name}", help=help_, **more)


def option(parser: argparse.ArgumentParser, name: str, help_: str, *, variable: str = "", **more: Any) -> None:
    """Add an option with a value: `--timeout 2h`, or TPUDEPLOY_TIMEOUT=2h. `variable` is for one named otherwise."""
    default_text = environment_value(variable or name)
    if default_text:
        more["default"] = default_text  # as text, which argparse converts as it does on the command line
        if default_text not in more.get("choices", (default_text,)):
            parser.error(f"{_variable(variable or name)}: `{default_text}` is not one of {', '.join(more['choices'])}")
    parser.add_argument(f"--{name}", help=help_, **more)


def several(parser: argparse.ArgumentParser, *names_and_help: str, variable: str = "", **more: Any) -> None:
    """Add a repeatable option. Its variable holds one value per line, and these come first."""
    *names, help_ = names_and_help
    default_values = environment_value(variable or names[-1].removeprefix("--")).splitlines()
    parser.add_argument(*names, action="append", default=default_values, help=help_, **more)


def is_written(name: str, value: bool | list[str]) -> bool:
    """Return whether an option is on the command line itself, not only in the environment."""
    default_text = environment_value(name)
    if isinstance(value, bool):
        return value and default_text.lower() not in TRUE
    return len(value) > len(default_text.splitlines())


def _folder(text: str) -> Path:
    """Return a folder that exists: in a misspelled one, each command would report that there is nothing."""
    folder = Path(text)
    if not folder.is_dir():
        raise argparse.ArgumentTypeError(f"the folder `{text}` does not exist")
    return folder


def common(parser: argparse.ArgumentParser) -> None:
    """Add the options that every command has."""
    option(parser, "chdir", "Run as if started in DIR.", metavar="DIR", type=_folder, default=Path())
    flag(parser, "no-color", "Print without colors (as with NO_COLOR).")
    flag(parser, "json", "Print one JSON document on stdout, and messages on stderr.")


def profiles(parser: argparse.ArgumentParser, *, nargs: str = "+") -> None:
    parser.add_argument("profiles", metavar="PROFILE", nargs=nargs, help="Profiles, or folders of profiles.")
    overlays(parser)


def plan_file(parser: argparse.ArgumentParser) -> None:
    """Add the arguments for profiles or one saved plan."""
    parser.add_argument("profiles", metavar="PROFILE | PLANFILE", nargs="+", help="Profiles, or one saved plan.")
    overlays(parser)


def profile(parser: argparse.ArgumentParser, *, dest: str = "profile", is_required: bool = True) -> None:
    parser.add_argument(dest, metavar="PROFILE", nargs=None if is_required else "?", help="A profile.")
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
    """Add `--backend`. Its default comes from the settings, which read the variable and tpudeploy.toml."""
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
    """Make --json a stream of JSON lines: the version, each event as it happens, and the report."""
    parser.set_defaults(streams=True)


def _truth(text: str) -> bool:
    if text.lower() not in TRUE | FALSE:
        raise argparse.ArgumentTypeError(f"`{text}` is neither true nor false")
    return text.lower() in TRUE


def environment_value(name: str) -> str:
    """Return the value of an option's environment variable, or ""."""
    return os.environ.get(_variable(name), "")


def without_environment(arguments: Iterable[Argument], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a command that resumes a run, whose own values stand before those of the environment."""
    dropped = [each for each in arguments if each.arg.resumed and environment_value(each.option)]
    return {**values, **{each.name: each.default for each in dropped}}


def _variable(name: str) -> str:
    return f"TPUDEPLOY_{name.replace('-', '_').upper()}"
