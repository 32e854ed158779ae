"""The HBM plan: what fits, how many tokens, how long to compile; --sweep tells what else would."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from tpudeploy.cli import documents, exits, options
from tpudeploy.cli.context import Context

if TYPE_CHECKING:
    from tpudeploy.domain.deployment import Deployment
    from tpudeploy.sizing.sweep import Sweep


def arguments(parser: argparse.ArgumentParser) -> None:
    options.profile(parser)
    options.flag(parser, "sweep", "Try other slices, splits, KV types, utilizations and lengths.")


def run(given: argparse.Namespace, context: Context) -> int:
    (profile,) = context.load([given.profile], given)

    from tpudeploy.loading import checked
    from tpudeploy.views import size as view
    from tpudeploy.views.excerpt import diagnostics

    deployment, found = checked(profile)
    swept = swept_around(deployment) if given.sweep else None
    terminal = context.terminal
    if given.json:
        context.reply.set(documents.size(deployment, found, swept))
        return exits.SUCCESS
    terminal.data(view.size(deployment.name, deployment.budget, terminal.paint))
    if swept is not None:
        terminal.data("\n" + view.sweep(swept, terminal.paint))
    new = [diagnostic for diagnostic in found if diagnostic not in profile.warnings]  # those were printed on loading
    if new:
        terminal.talk("\n" + diagnostics(new, terminal.paint))
    return exits.SUCCESS


def swept_around(deployment: Deployment) -> Sweep | None:
    from tpudeploy.domain.budget import Unsized
    from tpudeploy.sizing.sweep import sweep

    if isinstance(deployment.budget, Unsized):
        return None
    prices = [c.usd_per_chip_hour for c in deployment.candidates if c.usd_per_chip_hour is not None]
    return sweep(deployment.budget, usd_per_chip_hour=min(prices, default=None))
