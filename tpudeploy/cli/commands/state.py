"""Inspect and edit the state: list, show, mv, rm, pull, push, history. No slice is touched."""

from __future__ import annotations

import argparse
from importlib import import_module

from tpudeploy.catalog import closest
from tpudeploy.cli import options
from tpudeploy.cli.context import Context
from tpudeploy.cli.states import VERBS, Verb
from tpudeploy.domain.errors import UsageError

_OWN = ("auto_approve", "dry_run", "force", "serial")


def arguments(parser: argparse.ArgumentParser) -> None:
    help_ = "; ".join(f"{name} {verb.words}".rstrip() + f": {verb.does}" for name, verb in VERBS.items())
    parser.add_argument("verb", metavar="VERB", help=help_)
    parser.add_argument("words", metavar="WORD", nargs="*", help="The arguments of the verb.")
    options.flag(parser, "auto-approve", "rm: skip the approval prompt.")
    options.flag(parser, "dry-run", "rm: show what would be removed from the state, and change nothing.")
    options.flag(
        parser, "force", "mv, rm: even while a run is in progress; push: over another lineage or a later state."
    )
    options.option(parser, "serial", "pull: the state with this serial, as `history` lists it.", metavar="N", type=int)
    options.lock_timeout(parser)
    options.backend(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    if args.verb not in VERBS:
        near = closest(args.verb, VERBS)
        hint = f"Did you mean `{near}`?" if near else f"There are: {', '.join(VERBS)}."
        raise UsageError(f"`tpudeploy state` has no verb `{args.verb}`.", hint=hint)
    _check(args, VERBS[args.verb])
    module = import_module(f"tpudeploy.cli.states.{args.verb}")
    code: int = module.run(args, context, context.workspace(lock_timeout=args.lock_timeout))
    return code


def _check(args: argparse.Namespace, verb: Verb) -> None:
    """Raise `errors.UsageError` for a wrong number of arguments, and for an option of another verb."""
    usage = f"tpudeploy state {args.verb} {verb.words}".rstrip()
    count = len(args.words)
    if count < verb.least or (verb.most is not None and count > verb.most):
        raise UsageError(f"`state {args.verb}` takes {verb.words or 'nothing'}, not {count}.", hint=f"Usage: {usage}")
    for name in _OWN:
        value = getattr(args, name)
        if (value is not None and value is not False) and name not in verb.options and not _from_environment(name):
            raise UsageError(f"`state {args.verb}` has no option `-{name.replace('_', '-')}`.", hint=f"Usage: {usage}")


def _from_environment(name: str) -> bool:
    """Return whether an option was set by its variable, which applies to every verb and may not fit this one."""
    return bool(options.environment_value(name))
