"""Print a completion script for bash, zsh or fish, which completes commands and files."""

from __future__ import annotations

import argparse

from tpudeploy.cli import documents, exits
from tpudeploy.cli.commands import COMMANDS
from tpudeploy.cli.context import Context

_SCRIPTS = {
    "bash": """_tpudeploy() {{
  if [ "$COMP_CWORD" -eq 1 ]; then COMPREPLY=($(compgen -W "{names}" -- "${{COMP_WORDS[1]}}"));
  else COMPREPLY=($(compgen -f -- "${{COMP_WORDS[COMP_CWORD]}}")); fi
}}
complete -o filenames -F _tpudeploy tpudeploy""",
    "zsh": """#compdef tpudeploy
if (( CURRENT == 2 )); then compadd {names}; else _files; fi""",
    "fish": """complete -c tpudeploy -n __fish_use_subcommand -f -a "{names}\"""",
}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=tuple(_SCRIPTS))


def run(args: argparse.Namespace, context: Context) -> int:
    script = _SCRIPTS[args.shell].format(names=" ".join(COMMANDS))
    if args.json:
        context.reply.set(documents.completion(args.shell, script))
    else:
        context.terminal.data(script)
    return exits.SUCCESS
