"""How soon each policy finds a slice, in thousands of worlds: tpudeploy's own beside an oracle and what people do.

A benchmark, not a test: `make hunt`, or `PYTHONPATH=tests python -m bench.hunt --gap 8h --requests 8 --worlds 500`.
Without `--gap` it prints every kind of worlds (hunting/kinds.py) with goals, and the sweep beside them; then what was not
met. Exit code 1: something was not. What a world is: hunting/worlds.py; the goals: hunting/table.py.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import fields
from enum import StrEnum

from bench.hunting import story, table
from bench.hunting.kinds import KINDS
from bench.hunting.policies import COMMAND_LINE, EITHER, FLOOR, INSTANCES, NAMES, OURS
from bench.hunting.run import Job, run
from bench.hunting.setting import HOUR, Apis, Deletion, Habit, Refusals, Reopening, Setting

from tpudeploy.config.scalars import Duration
from tpudeploy.domain.deployment import Provisioning


def main(arguments: argparse.Namespace) -> int:
    if not arguments.gap:
        return compare_kinds(arguments)
    is_as_promised = True
    for gap in arguments.gap:
        setting = Setting(**{f.name: getattr(arguments, f.name) for f in fields(Setting)} | {"gap": gap})
        job = Job(
            setting=setting,
            names=tuple(arguments.policy),
            requests=tuple(arguments.requests),
            models=tuple(arguments.models),
            worlds=arguments.worlds,
            seed=arguments.seed,
        )
        if arguments.trace is not None:
            print("\n".join(story.lines(job, arguments.trace)))
            continue
        print(table.headline(setting, job.worlds, job.seed), end="\n\n", flush=True)
        rows = run(job, arguments.jobs)
        broken = list(table.broken(setting, rows))
        print("\n".join([*table.lines(rows), *broken]), end="\n\n", flush=True)
        is_as_promised = is_as_promised and not broken
    return 0 if is_as_promised else 1


def compare_kinds(arguments: argparse.Namespace) -> int:
    """Print the table of worlds, then every goal that was not met. Return 1 where there is one."""
    goals: list[table.Goal] = []
    print(f"{arguments.worlds:,} worlds of each kind, seed {arguments.seed}\n\n{table.LEGEND}\n")
    print(table.kind_header(), flush=True)
    for name in arguments.kind:
        kind = KINDS[name]
        if kind.setting.slow:
            continue  # only the command line waits for replies
        job = Job(
            setting=kind.setting,
            names=(OURS, FLOOR, table.SWEEP) if kind.setting.apis is Apis.ONE else (OURS, INSTANCES, EITHER),
            requests=tuple(arguments.requests),
            models=kind.models,
            worlds=arguments.worlds,
            seed=arguments.seed,
        )
        rows = run(job, arguments.jobs)
        print("\n".join(table.kind_lines(name, kind, rows)), flush=True)
        if kind.setting.apis is not Apis.ONE:
            # One API alone cannot be compared with an oracle of both, so these times are printed as they are.
            print("\n".join(["", *table.lines(rows), ""]), flush=True)
        goals += table.goals(name, kind, rows)
    goals += try_command_line(arguments)
    missed = [goal for goal in goals if not goal.is_met]
    print(f"\n{len(goals) - len(missed)} of {len(goals)} goals are met.", *missed, sep="\n")
    return 1 if missed else 0


def try_command_line(arguments: argparse.Namespace) -> list[table.Goal]:
    """Print the same table for the program itself, in a few of the worlds with short windows. Return its goals."""
    goals: list[table.Goal] = []
    for name in arguments.kind if arguments.command_line else ():
        kind = KINDS[name]
        if kind.median is None:
            continue
        job = Job(
            setting=kind.setting,
            names=(COMMAND_LINE, table.SWEEP),
            requests=(),
            models=kind.models,
            worlds=arguments.command_line,
            seed=arguments.seed,
        )
        rows = run(job, arguments.jobs)
        print("\n".join(table.kind_lines(name, kind, rows)), flush=True)
        goals += table.goals(name, kind, rows)
    return goals


def parser() -> argparse.ArgumentParser:
    default = Setting(gap=2 * HOUR)
    parser = argparse.ArgumentParser(prog="hunt", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add = parser.add_argument
    add("--gap", type=_seconds, nargs="+", metavar="D", help="only plain worlds with this median gap of a zone")
    add("--kind", choices=KINDS, nargs="+", default=tuple(KINDS), metavar="NAME", help=", ".join(KINDS))
    add("--window", type=_seconds, default=default.window, metavar="D", help="mean window (8m)")
    add("--sigma", type=float, default=default.sigma, metavar="S", help="of the lognormal gaps (1.2)")
    add("--ours", type=_share, default=default.ours, metavar="P", help="windows in which we are served (0.6)")
    add("--shared", type=_share, default=default.shared, metavar="P", help="gaps that a region shares (1/3)")
    add("--reopening", type=Reopening, choices=list(Reopening), default=default.reopening, help="after a shared gap")
    add("--zones", type=int, default=default.zones, metavar="N")
    add("--regions", type=int, default=default.regions, metavar="N")
    add("--code13", type=_share, default=default.code13, metavar="P", help="grants that end in code 13 (0.05)")
    add("--preempt", type=float, default=default.preempt, metavar="R", help="preemptions/h before usable, spot (0)")
    add("--quota", type=int, default=default.quota, metavar="N", help="chips a region (plenty); a slice has 8")
    add("--refusals", type=Refusals, choices=list(Refusals), default=default.refusals, help="see hunting/setting.py")
    add("--flex", type=_share, default=default.flex, metavar="P", help="zones that offer flex-start (1)")
    add("--spot", type=_share, default=default.spot, metavar="P", help="zones that offer spot (1)")
    add("--no-quota", type=_share, default=default.no_quota, metavar="P", help="regions without quota (0)")
    add("--boot", type=_seconds, default=default.boot, metavar="D", help="from ACTIVE to serving (0)")
    add("--habit", type=Habit, choices=list(Habit), default=default.habit, help="of the zone listed first")
    add("--night", action="store_true", help="capacity at night alone")
    add("--deletion", type=Deletion, choices=list(Deletion), default=default.deletion, help="while PROVISIONING")
    add("--apis", type=Apis, choices=list(Apis), default=default.apis, help="see hunting/setting.py (one)")
    add(
        "--policy", choices=(*NAMES, INSTANCES, EITHER), nargs="+", default=NAMES, metavar="NAME", help=", ".join(NAMES)
    )
    add("--requests", type=_most, nargs="+", default=(None, 8), metavar="N", help="at once, or `all` (all 8)")
    models: tuple[StrEnum, ...] = (Provisioning.FLEX_START, Provisioning.SPOT)
    add("--models", type=Provisioning, nargs="+", default=models, metavar="M", help=" ".join(models))
    add("--worlds", type=int, default=200, metavar="N", help="of each kind (200)")
    add("--command-line", type=int, default=8, metavar="N", help="worlds of each short kind for the program itself (8)")
    add("--seed", type=int, default=1, metavar="N")
    add("--jobs", type=int, default=2, metavar="N", help="processes (2)")
    add("--trace", type=int, metavar="I", help="instead: the story of the I-th world, step by step")
    return parser


def _seconds(text: str) -> float:
    return float(Duration.parse(text))


def _share(text: str) -> float:
    top, _, bottom = text.partition("/")
    return float(top) / float(bottom or 1)


def _most(text: str) -> int | None:
    return None if text == "all" else int(text)


if __name__ == "__main__":
    sys.exit(main(parser().parse_args()))
