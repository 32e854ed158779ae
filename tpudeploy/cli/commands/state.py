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
    told = "; ".join(f"{name} {verb.words}".rstrip() + f": {verb.does}" for name, verb in VERBS.items())
    parser.add_argument("verb", metavar="VERB", help=told)
    parser.add_argument("words", metavar="WORD", nargs="*", help="The arguments of the verb.")
    options.flag(parser, "auto-approve", "rm: skip the approval prompt.")
    options.flag(parser, "dry-run", "rm: show what would be removed from the state, and change nothing.")
    options.flag(
        parser, "force", "mv, rm: even while a run is in progress; push: over another lineage or a later state."
    )
    options.option(parser, "serial", "pull: the state with this serial, as `history` lists it.", metavar="N", type=int)
    options.lock_timeout(parser)
    options.backend(parser)


def run(given: argparse.Namespace, context: Context) -> int:
    if given.verb not in VERBS:
        near = closest(given.verb, VERBS)
        hint = f"Did you mean `{near}`?" if near else f"There are: {', '.join(VERBS)}."
        raise UsageError(f"`tpudeploy state` knows no `{given.verb}`.", hint=hint)
    _check(given, VERBS[given.verb])
    deed = import_module(f"tpudeploy.cli.states.{given.verb}")
    code: int = deed.run(given, context, context.workspace(lock_timeout=given.lock_timeout))
    return code


def _check(given: argparse.Namespace, verb: Verb) -> None:
    """Raise `errors.UsageError` for words too few or too many, and for what another verb would take."""
    usage = f"tpudeploy state {given.verb} {verb.words}".rstrip()
    count = len(given.words)
    if count < verb.least or (verb.most is not None and count > verb.most):
        raise UsageError(f"`state {given.verb}` takes {verb.words or 'nothing'}, not {count}.", hint=f"Usage: {usage}")
    for name in _OWN:
        written = getattr(given, name)
        if (written is not None and written is not False) and name not in verb.options and not _from_environment(name):
            raise UsageError(f"`state {given.verb}` knows no `-{name.replace('_', '-')}`.", hint=f"Usage: {usage}")


def _from_environment(name: str) -> bool:
    """A variable speaks to every command, and so to those that it means nothing to."""
    return bool(options.written(name))
