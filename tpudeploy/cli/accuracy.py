"""`verify --accuracy`: questions with known answers, put to one server, and held against what another one answered."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from tpudeploy.cli import documents, exits, options
from tpudeploy.cli.context import Context
from tpudeploy.domain.errors import UsageError
from tpudeploy.domain.frozen import frozen

if TYPE_CHECKING:
    from tpudeploy.core.accuracy.questions import QuestionSet
    from tpudeploy.core.accuracy.sheet import Sheet
    from tpudeploy.core.accuracy.verdict import Verdict
    from tpudeploy.examining import Examining, Server
    from tpudeploy.loading import Profile

_KEY = "VLLM_API_KEY"
_LM_EVAL = "lm_eval:"


def arguments(parser: argparse.ArgumentParser) -> None:
    options.option(
        parser,
        "accuracy",
        "Ask questions with known answers instead: a JSONL file, `arithmetic`, or `lm_eval:TASK`.",
        metavar="QUESTIONS",
    )
    options.option(
        parser,
        "against",
        "Compare with this server or these saved answers; exit with 13 if quality fell.",
        metavar="URL | ANSWERS",
    )
    options.option(
        parser, "questions", "Ask only the first N questions (default: all).", type=options.count, metavar="N"
    )
    options.option(
        parser,
        "concurrency",
        "Ask N questions at the same time (default: as for ANSWERS, or max_num_seqs).",
        type=options.count,
        metavar="N",
    )
    options.option(parser, "max-tokens", "The most tokens in an answer (default 512).", type=options.count, metavar="N")


def check(given: argparse.Namespace) -> None:
    """Raise `errors.UsageError` for what only means something with questions."""
    for name in ("against", "questions", "concurrency", "max_tokens"):
        if given.accuracy is None and getattr(given, name) is not None:
            raise UsageError(f"--{name.replace('_', '-')} goes with --accuracy.", hint="Try --accuracy arithmetic.")


def run(given: argparse.Namespace, context: Context, profile: Profile) -> int:
    from tpudeploy.core.accuracy.verdict import Judgement, verdict
    from tpudeploy.examining import Examining

    examining = Examining(context.workspace([given.profile]))
    test = _Test(given, context, examining)
    before = None if given.against is None else test.before(profile)
    after = test.after(profile, before)
    found = None if before is None else verdict(before, after)
    _tell(given, context, before, after, found)
    if found is None or found.judgement is Judgement.HELD:
        return exits.SUCCESS
    return exits.REFUSED if found.judgement is Judgement.FELL else exits.ERROR


class _Test:
    """Both servers, asked in the same way."""

    def __init__(self, given: argparse.Namespace, context: Context, examining: Examining) -> None:
        self._given = given
        self._context = context
        self._examining = examining

    def before(self, profile: Profile) -> Sheet:
        against = self._given.against
        if "://" not in against:
            return _read(self._examining.sheets.path(against, self._context.folder))
        server = self._examining.address(against, api_key=os.environ.get(_KEY))
        return self._asked(server, self._examining.deployment(profile).at_once, None)

    def after(self, profile: Profile, before: Sheet | None) -> Sheet:
        known = _answers(self._given.accuracy, self._context)
        if known is not None:
            return known
        server = self._examining.deployment(profile)
        return self._asked(server, server.at_once, before)

    def _asked(self, server: Server, at_once: int, before: Sheet | None) -> Sheet:
        """As the other one was, but for what is said otherwise."""
        given = self._given
        said = Asked(
            named=given.accuracy, count=given.questions, concurrency=given.concurrency, max_tokens=given.max_tokens
        )
        return ask(said, self._context, self._examining, server, at_once=at_once, before=before)


@frozen
class Asked:
    """What is asked and how; None is as the other server was asked, or as usual."""

    named: str
    count: int | None = None
    concurrency: int | None = None
    max_tokens: int | None = None


def is_lm_eval(named: str) -> bool:
    return named.startswith(_LM_EVAL)


def ask(
    of: Asked, context: Context, examining: Examining, server: Server, *, at_once: int, before: Sheet | None
) -> Sheet:
    """Put the questions to a server, in the way in which `before` was asked, but for what is said otherwise."""
    from tpudeploy.examining import MAX_TOKENS

    concurrency = of.concurrency or (before and before.concurrency) or at_once
    max_tokens = of.max_tokens or (before and before.terms.max_tokens) or MAX_TOKENS
    say = context.terminal.talk
    if is_lm_eval(of.named):
        task = of.named.removeprefix(_LM_EVAL)
        say(f"lm_eval asks {server.client.url}, {concurrency} questions at once...")
        return examining.run_lm_eval(server, task, count=of.count, concurrency=concurrency, max_tokens=max_tokens)
    asked = questions_of(of.named, of.count, context)
    say(f"Asking {server.client.url} {len(asked.questions)} questions, {concurrency} at once...")
    return examining.ask(server, asked, concurrency=concurrency, max_tokens=max_tokens)


def questions_of(named: str, count: int | None, context: Context) -> QuestionSet:
    """The questions of a file, or of the built-in set; the first so many. Raise `errors.UsageError`."""
    from dataclasses import replace

    from tpudeploy.adapters import sheets
    from tpudeploy.core.accuracy import arithmetic, questions

    if named == arithmetic.NAME:
        return arithmetic.questions(count or arithmetic.QUESTIONS)
    found = questions.parsed(sheets.text(context.folder / named), name=Path(named).name)
    if count is not None and count > len(found.questions):
        raise UsageError(f"{named} has {len(found.questions)} questions, and not {count}.")
    return found if count is None else replace(found, questions=found.questions[:count])


def _answers(named: str, context: Context) -> Sheet | None:
    """Where what is named instead of questions are answers already: somebody asked before."""
    path = context.folder / named
    return _known(path) if path.is_file() else None


def _read(path: Path) -> Sheet:
    """Raise `errors.UsageError` or `errors.RunUnreadable`."""
    found = _known(path)
    if found is None:
        raise UsageError(
            f"{path} holds questions or something else, and no answers.",
            hint="`tpudeploy verify --accuracy QUESTIONS PROFILE` writes them.",
        )
    return found


def _known(path: Path) -> Sheet | None:
    from tpudeploy.adapters import sheets
    from tpudeploy.core.accuracy import lm_eval, sheet

    text = sheets.text(path)
    if sheet.is_sheet(text):
        return sheet.loads(text, source=str(path))
    return lm_eval.sheet(text, source=path.name, task=path.stem) if lm_eval.is_samples(text) else None


def _tell(
    given: argparse.Namespace, context: Context, before: Sheet | None, after: Sheet, found: Verdict | None
) -> None:
    from tpudeploy.core.accuracy.verdict import LEAST_BASELINE
    from tpudeploy.views import accuracy as view

    terminal = context.terminal
    if given.json:
        context.reply.set(documents.accuracy(before, after, found))
    elif before is None or found is None:
        terminal.data(view.sheet(after))
    else:
        terminal.data(view.verdict(found, before, after, terminal.paint))
    if before is not None:
        return
    if after.share < LEAST_BASELINE:
        terminal.talk(f"Warning: below {LEAST_BASELINE:.0%} these questions cannot show a fall. Look at the answers.")
    terminal.talk(f"To compare another server with these answers: --against {after.id}")
