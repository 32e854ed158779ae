"""Recommend a slice for a workload, and print the profile for it; or the operating points of a run (--run).

Measured runs decide (`tpudeploy bench`). If none of them serves the workload, the size model decides, and the output
says so.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from tpudeploy.cli import documents, exits, options
from tpudeploy.cli.context import Context
from tpudeploy.domain.errors import UsageError

if TYPE_CHECKING:
    from tpudeploy.domain.recommendation import Choice

_NEEDED = ("users", "context", "output")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("profile", metavar="PROFILE", nargs="?", help="The profile of the model to serve.")
    options.overlays(parser)
    options.option(parser, "users", "Concurrent requests.", metavar="N", type=options.count)
    options.option(parser, "context", "Tokens in a prompt.", metavar="N", type=options.count)
    options.option(parser, "output", "Tokens in an answer.", metavar="N", type=options.count)
    options.option(
        parser,
        "ttft",
        "The first token of 95 of 100 requests must arrive within TIME, e.g. 2s.",
        metavar="TIME",
        type=options.seconds,
    )
    options.option(parser, "budget", "The most to spend in USD/month, at list prices.", metavar="USD", type=float)
    options.flag(parser, "emulated", "Accept runs measured on the emulator as evidence.")
    options.option(parser, "run", "Show the operating points of this run instead.", metavar="ID")
    options.backend(parser)


def run(given: argparse.Namespace, context: Context) -> int:
    if given.run is not None:
        return _operating(given, context)
    lacking = [f"--{name}" for name in _NEEDED if getattr(given, name) is None]
    if given.profile is None or lacking:
        raise UsageError(
            "`recommend` needs a profile and a workload.",
            hint="tpudeploy recommend PROFILE --users 64 --context 4096 --output 256, or recommend --run ID.",
        )
    return _workload(given, context)


def _operating(given: argparse.Namespace, context: Context) -> int:
    from tpudeploy.benchmark.operating import operating_points
    from tpudeploy.cli.reporting import find_run
    from tpudeploy.views import recommend as view

    found = find_run(context.workspace(), given.run)
    points, terminal = operating_points(found), context.terminal
    if given.json:
        context.reply.set(documents.operating(found, points))
    else:
        terminal.data(view.operating(found, points, terminal.paint))
    return exits.SUCCESS


def _workload(given: argparse.Namespace, context: Context) -> int:
    from tpudeploy.benchmark.recommend import recommend
    from tpudeploy.domain.recommendation import Workload
    from tpudeploy.loading import sized
    from tpudeploy.views import recommend as view

    (profile,) = context.load([given.profile], given)
    asked = Workload(
        users=given.users,
        context_tokens=given.context,
        output_tokens=given.output,
        ttft_seconds=given.ttft,
        usd_per_month=given.budget,
    )
    deployment, terminal = sized(profile), context.terminal
    runs = context.workspace([given.profile]).runs.all()
    found = recommend(deployment, asked, runs, takes_emulated=given.emulated)
    best = found.choices[0] if found.choices else None
    text = None if best is None else laid_over(given, context, best)
    if given.json:
        context.reply.set(documents.recommendation(found, text))
    else:
        terminal.talk(view.recommendation(found, terminal.paint))
        if text is not None:
            terminal.data(text.rstrip("\n"))
    return exits.SUCCESS if best is not None else exits.REFUSED


def laid_over(given: argparse.Namespace, context: Context, of: Choice) -> str:
    """The profile with what is recommended laid over it: whole, each value with where it came from."""
    import json

    from tpudeploy.loading import sized
    from tpudeploy.views.profile import profile

    sets = [*given.sets, *(f"{path}={json.dumps(value)}" for path, value in of.settings.items())]
    changed = context.read(given.profile, argparse.Namespace(overlays=given.overlays, sets=sets))
    text = profile(changed.spec.name, sized(changed))
    return (
        f"# From run {of.run}, measured on the emulator: no figure of it says anything of a TPU.\n{text}"
        if (of.is_emulated)
        else text
    )
