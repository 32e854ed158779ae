"""Read what a release of the engine accepts and computes from an environment that has it, and prove it by draws.

The Python that you name has vllm-tpu, or another build of vLLM, and needs no TPU. What it says becomes one JSON file,
the data of one release. -prove draws configurations and compares the sizes of caches, the buckets of graphs and the
words of flags with what the engine's own objects make of them; each difference is printed, and the exit code is 1.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tpudeploy.adapters.files import read_file
from tpudeploy.adapters.state import disk
from tpudeploy.catalog import releases
from tpudeploy.catalog.releases import ENGINE
from tpudeploy.cli import options
from tpudeploy.cli.context import Context
from tpudeploy.domain import exits, strict_json
from tpudeploy.domain.errors import QueryFailed, StateError, UsageError
from tpudeploy.features.learn import engine_python, models, programs, release_file
from tpudeploy.features.learn.draws import draws
from tpudeploy.features.learn.models import Weights
from tpudeploy.features.learn.release_file import Document
from tpudeploy.operations import argument_types

_TIMEOUT = 1_800.0
_MOST_LISTED = 20


def arguments(parser: argparse.ArgumentParser) -> None:
    options.option(
        parser, "python", "The Python of an environment that has the engine.", metavar="PATH", default="python3"
    )
    options.option(parser, "out", "Write FOLDER/ENGINE-RELEASE.json.", metavar="FOLDER", type=Path)
    options.option(
        parser,
        "older",
        "The file of an older release, for the names that are gone since.",
        metavar="FILE",
        type=Path,
    )
    options.option(
        parser,
        "prove",
        "Compare N draws of each kind with the engine's objects.",
        metavar="N",
        type=argument_types.count,
    )
    options.flag(parser, "programs", "Let its libtpu compile programs, and write FOLDER/libtpu-VERSION.json too.")
    options.option(
        parser,
        "models",
        "Ask its loader for the weights of a file's models, one JSON object a line, or of those that are `shipped`.",
        metavar="LIST",
    )
    options.option(parser, "seed", "The seed of the draws (default: 1).", metavar="TEXT", default="1")
    options.option(
        parser,
        "timeout",
        "Stop the engine's Python after this time (default: 30m).",
        metavar="TIME",
        type=argument_types.duration,
        default=_TIMEOUT,
    )


def run(args: argparse.Namespace, context: Context) -> int:
    terminal = context.terminal
    terminal.talk(f"Reading the engine of {args.python}, which takes minutes.")
    answer = engine_python.run(args.python, ["tables"], seconds=args.timeout, most=release_file.MOST_BYTES)
    document = release_file.parse(answer)
    problems = document.pop("problems", [])
    document = _with_removed(document, args, context)
    terminal.talk(f"{document['engine']} {document['release']}: {_counts(document)}.")
    for problem in problems:
        terminal.explain(f"Not read: {problem}")
    differences = _prove(document, args, context) if args.prove else {}
    weights = _weigh(document, args, context)
    if weights is not None:
        differences |= {"weights": list(weights.differences)}
        problems = [*problems, *weights.problems]
    document = release_file.with_weights(document, {} if weights is None else weights.table, _same(document))
    if args.out is not None:
        _write(context.folder / args.out / release_file.file_name(document), release_file.text(document), context)
        terminal.talk(f"Wrote {args.out / release_file.file_name(document)}.")
    if args.programs:
        _write_programs(document, args, context)
    if args.json:
        context.reply.set(_summary(document, problems, differences, args.prove))
    return exits.ERROR if problems or any(differences.values()) else exits.SUCCESS


def _write_programs(document: Document, args: argparse.Namespace, context: Context) -> None:
    libtpu = document["packages"].get("libtpu")
    if args.out is None or not isinstance(libtpu, str):
        raise UsageError("`-programs` needs -out, and an environment with libtpu.")
    if document["engine"] != ENGINE:
        message = f"{args.python} has {document['engine']} {document['release']}, whose programs are not known."
        raise UsageError(message, hint="Name a Python with vllm-tpu: its plug-in for TPU has the programs.")
    lines = list(programs.lines())
    context.terminal.talk(f"Compiling {len(lines)} programs with libtpu {libtpu}.")
    table = programs.document(libtpu, _answers(lines, args))
    _write(context.folder / args.out / programs.file_name(table), programs.text(table), context)
    context.terminal.talk(f"Wrote {args.out / programs.file_name(table)}.")


def _weigh(document: Document, args: argparse.Namespace, context: Context) -> Weights | None:
    """Return what the loader makes of the models of -models, and say it; None without them."""
    if args.models is None:
        return None

    if document["engine"] != ENGINE:
        raise UsageError(f"{args.python} has {document['engine']} {document['release']}, whose loader is not asked.")
    if args.models == models.SHIPPED:
        chosen = models.catalogue_models()
    else:
        chosen = models.read(read_file(context.folder / args.models, release_file.MOST_BYTES))
    context.terminal.talk(f"Asking the loader about {len(chosen)} models, which takes seconds each.")
    weights = models.weigh(args.python, chosen, seconds=args.timeout)
    for problem in weights.problems:
        context.terminal.explain(f"Not asked: {problem}")
    context.terminal.data(f"Weights by rule: {len(weights.differences)} of {weights.comparisons:,} differ.")
    for line in weights.differences:
        context.terminal.data(f"  {line}")
    return weights


def _same(document: Document) -> Mapping[str, Any] | None:
    """Return the shipped file of this release, or None."""
    return releases.find(document["release"])


def _with_removed(document: Document, args: argparse.Namespace, context: Context) -> Document:
    """Return the document with the names that are gone, from -older, or from the newest older release of ours."""
    version, same = document["release"], _same(document)
    if args.older is not None:
        older: Any = release_file.parse(read_file(context.folder / args.older, release_file.MOST_BYTES))
    else:
        older = next(filter(None, map(releases.find, release_file.earlier(version))), None) or same
    return release_file.with_removed(document, older, same)


def _counts(document: Document) -> str:
    parts = ("flags", "values", "variables", "removed", "rules")
    counts = [f"{len(document[part]):,} {part}" for part in parts if part in document]
    return ", ".join(counts)


def _prove(document: Document, args: argparse.Namespace, context: Context) -> dict[str, list[str]]:
    """Return the differences by kind of draw, and say them."""
    sample = list(draws(document, args.prove, args.seed))
    answers = _answers([draw.line() for draw in sample], args)
    counts = Counter(draw.kind for draw in sample)
    differences: dict[str, list[str]] = {kind: [] for kind in counts}
    for draw, answer in zip(sample, answers, strict=True):
        difference = draw.differs(answer)
        if difference:
            differences[draw.kind].append(f"{draw.line()}: {difference}")
    for kind, count in counts.items():
        context.terminal.data(f"{release_file.KINDS[kind]}: {len(differences[kind])} of {count:,} draws differ.")
        for line in differences[kind][:_MOST_LISTED]:
            context.terminal.data(f"  {line}")
    return differences


def _answers(questions: list[str], args: argparse.Namespace) -> list[Any]:
    """Return the engine's answer to each line. Raise `errors.QueryFailed` where it gives another number of them."""
    lines = "".join(f"{question}\n" for question in questions)
    text = engine_python.run(args.python, ["answers"], lines=lines, seconds=args.timeout, most=release_file.MOST_BYTES)
    try:
        answers = [strict_json.parse(line) for line in text.splitlines()]
    except ValueError as cause:
        raise QueryFailed(f"An answer of the engine's Python is not JSON: {cause}.", hint="Try again.") from cause
    if len(answers) != len(questions) or not all(isinstance(answer, dict) for answer in answers):
        raise QueryFailed(
            f"The engine's Python gave {len(answers):,} answers to {len(questions):,} questions.", hint="Try again."
        )
    return answers


def _summary(
    document: Document, problems: list[str], differences: dict[str, list[str]], draws: int | None
) -> dict[str, object]:
    head = {key: document[key] for key in ("engine", "release", "packages")}
    return {
        "format": "tpudeploy.learn/1",
        **head,
        "problems": problems,
        "draws_of_each_kind": draws or 0,
        "differences": differences,
    }


def _write(path: Path, text: str, context: Context) -> None:
    try:
        disk.replace(path, text, here=context.folder)
    except StateError as cause:
        raise UsageError(cause.message, hint="Name another folder.") from cause
