"""Run `verify --accuracy`: ask a server questions with known answers, and compare it with another server."""

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
    from tpudeploy.accuracy.questions import QuestionSet
    from tpudeploy.accuracy.sheet import Sheet
    from tpudeploy.domain.accuracy import Verdict
    from tpudeploy.loading import Profile
    from tpudeploy.operations.accuracy import AccuracyTests, Server

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


def check(args: argparse.Namespace) -> None:
    """Raise `errors.UsageError` for options that need --accuracy."""
    for name in ("against", "questions", "concurrency", "max_tokens"):
        if args.accuracy is None and getattr(args, name) is not None:
            raise UsageError(f"--{name.replace('_', '-')} needs --accuracy.", hint="Try --accuracy arithmetic.")


def run(args: argparse.Namespace, context: Context, profile: Profile) -> int:
    from tpudeploy.accuracy.verdict import verdict
    from tpudeploy.domain.accuracy import Judgement
    from tpudeploy.operations.accuracy import AccuracyTests

    tests = AccuracyTests(context.workspace([args.profile]))
    test = _Comparison(args, context, tests)
    before = None if args.against is None else test.before(profile)
    after = test.after(profile, before)
    verdict_ = None if before is None else verdict(before, after)
    _tell(args, context, before, after, verdict_)
    if verdict_ is None or verdict_.judgement is Judgement.HELD:
        return exits.SUCCESS
    return exits.REFUSED if verdict_.judgement is Judgement.FELL else exits.ERROR


class _Comparison:
    """Asks both servers in the same way."""

    def __init__(self, args: argparse.Namespace, context: Context, tests: AccuracyTests) -> None:
        self._args = args
        self._context = context
        self._tests = tests

    def before(self, profile: Profile) -> Sheet:
        against = self._args.against
        if "://" not in against:
            return _read(self._tests.sheets.path(against, self._context.folder))
        server = self._tests.address(against, api_key=os.environ.get(_KEY))
        return self._ask(server, self._tests.deployment(profile).at_once, None)

    def after(self, profile: Profile, before: Sheet | None) -> Sheet:
        answers = _answers(self._args.accuracy, self._context)
        if answers is not None:
            return answers
        server = self._tests.deployment(profile)
        return self._ask(server, server.at_once, before)

    def _ask(self, server: Server, at_once: int, before: Sheet | None) -> Sheet:
        """Ask a server as `before` was asked, except for the options of the command line."""
        args = self._args
        request = QuestionRequest(
            source=args.accuracy, count=args.questions, concurrency=args.concurrency, max_tokens=args.max_tokens
        )
        return ask(request, self._context, self._tests, server, at_once=at_once, before=before)


@frozen
class QuestionRequest:
    """The questions and how to ask them. None means as the other server was asked, or the default."""

    source: str
    count: int | None = None
    concurrency: int | None = None
    max_tokens: int | None = None


def is_lm_eval(source: str) -> bool:
    return source.startswith(_LM_EVAL)


def ask(
    request: QuestionRequest,
    context: Context,
    tests: AccuracyTests,
    server: Server,
    *,
    at_once: int,
    before: Sheet | None,
) -> Sheet:
    """Ask a server the questions as `before` was asked, except for what the request sets."""
    from tpudeploy.operations.accuracy import MAX_TOKENS

    concurrency = request.concurrency or (before and before.concurrency) or at_once
    max_tokens = request.max_tokens or (before and before.terms.max_tokens) or MAX_TOKENS
    say = context.terminal.talk
    if is_lm_eval(request.source):
        task = request.source.removeprefix(_LM_EVAL)
        say(f"lm_eval asks {server.client.url}, {concurrency} questions at once...")
        return tests.run_lm_eval(server, task, count=request.count, concurrency=concurrency, max_tokens=max_tokens)
    question_set = questions_of(request.source, request.count, context)
    say(f"Asking {server.client.url} {len(question_set.questions)} questions, {concurrency} at once...")
    return tests.ask(server, question_set, concurrency=concurrency, max_tokens=max_tokens)


def questions_of(source: str, count: int | None, context: Context) -> QuestionSet:
    """Return the first `count` questions of a file or of the built-in set. Raise `errors.UsageError`."""
    from dataclasses import replace

    from tpudeploy.accuracy import questions
    from tpudeploy.adapters import sheets

    if source == questions.ARITHMETIC:
        return questions.arithmetic(count or questions.ARITHMETIC_QUESTIONS)
    question_set = questions.parsed(sheets.text(context.folder / source), name=Path(source).name)
    if count is not None and count > len(question_set.questions):
        raise UsageError(f"{source} has {len(question_set.questions)} questions, not {count}.")
    return question_set if count is None else replace(question_set, questions=question_set.questions[:count])


def _answers(source: str, context: Context) -> Sheet | None:
    """Return the saved answers if the source names them instead of questions, else None."""
    path = context.folder / source
    return _load_answers(path) if path.is_file() else None


def _read(path: Path) -> Sheet:
    """Return saved answers. Raise `errors.UsageError` or `errors.RunUnreadable`."""
    answers = _load_answers(path)
    if answers is None:
        raise UsageError(
            f"{path} does not hold answers.", hint="`tpudeploy verify --accuracy QUESTIONS PROFILE` writes them."
        )
    return answers


def _load_answers(path: Path) -> Sheet | None:
    from tpudeploy.accuracy import lm_eval, sheet
    from tpudeploy.adapters import sheets

    text = sheets.text(path)
    if sheet.is_sheet(text):
        return sheet.loads(text, source=str(path))
    return lm_eval.sheet(text, source=path.name, task=path.stem) if lm_eval.is_samples(text) else None


def _tell(
    args: argparse.Namespace, context: Context, before: Sheet | None, after: Sheet, verdict: Verdict | None
) -> None:
    from tpudeploy.accuracy import view
    from tpudeploy.accuracy.verdict import LEAST_BASELINE

    terminal = context.terminal
    if args.json:
        context.reply.set(documents.accuracy(before, after, verdict))
    elif before is None or verdict is None:
        terminal.data(view.sheet(after))
    else:
        terminal.data(view.verdict(verdict, before, after, terminal.paint))
    if before is not None:
        return
    if after.share < LEAST_BASELINE:
        terminal.talk(
            f"Warning: below {LEAST_BASELINE:.0%} these questions cannot show a regression. Check the answers."
        )
    terminal.talk(f"To compare another server with these answers: --against {after.id}")
