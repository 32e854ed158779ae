"""Says, for each JSON list of words on standard input, what the real `vllm serve` makes of it.

The first line out holds every option as it is without any flag; then one line per line in: the options that differ
from that, or the error. A configuration object is read as its JSON only: what its own schema says of a mapping is not
a matter of how a flag is written.
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import io
import json
import os
import sys
from typing import Any

# vLLM lives in another Python than the one that type-checks.
from vllm.engine.arg_utils import _expand_json_human_readable_numbers  # type: ignore[import-not-found] # as above
from vllm.entrypoints.cli.serve import ServeSubcommand  # type: ignore[import-not-found] # as above
from vllm.utils.argparse_utils import FlexibleArgumentParser  # type: ignore[import-not-found] # as above

MODEL = "some/model"


def read_object(word: str) -> object:
    return json.loads(_expand_json_human_readable_numbers(word))


def reads_object(reader: Any) -> bool:
    while inspect.isfunction(reader):
        if reader.__name__ == "parse_dataclass":
            return True
        reader = inspect.getclosurevars(reader).nonlocals.get("return_type")
    return False


def serve_parser() -> Any:
    """The parser as `vllm` builds it: `serve` is a command below another parser, which sees every word first."""
    parser = FlexibleArgumentParser(description="vLLM CLI")
    parser.add_argument("-v", "--version", action="version", version="0")
    serve = ServeSubcommand().subparser_init(parser.add_subparsers(required=False, dest="subparser"))
    for action in serve._actions:  # the only list of options there is
        if reads_object(action.type):
            action.type = read_object
    return parser


def plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if isinstance(value, list):
        return [plain(item) for item in value]
    return sorted(value) if isinstance(value, set) else value


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what vLLM logs is no answer
    parser = serve_parser()
    unset = vars(parser.parse_args(["serve", MODEL]))
    answers.write(json.dumps({key: plain(value) for key, value in unset.items()}, default=str) + "\n")
    for line in sys.stdin:
        errors = io.StringIO()
        try:
            with contextlib.redirect_stderr(errors):
                read = vars(parser.parse_args(["serve", MODEL, *json.loads(line)]))
        except (SystemExit, Exception) as refused:  # noqa: BLE001 # whatever stops vLLM is its answer
            answer: dict[str, Any] = {"error": errors.getvalue()[-300:] or repr(refused)}
        else:
            changed = {key for key, value in read.items() if key not in unset or value != unset[key]}
            answer = {"read": {key: plain(read[key]) for key in sorted(changed)}}
        answers.write(json.dumps(answer, default=str) + "\n")
    answers.close()


if __name__ == "__main__":
    main()
