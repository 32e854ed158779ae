"""Print a completion script for your shell: commands, options and their values, profiles, deployments and codes.

bash: add `eval "$(tpudeploy completion bash)"` to ~/.bashrc. zsh: add `eval "$(tpudeploy completion zsh)"` to ~/.zshrc,
after compinit. fish: `tpudeploy completion fish > ~/.config/fish/completions/tpudeploy.fish`.

The script asks `tpudeploy completion SHELL -- WORDS`, which prints what the last word may become.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from pathlib import Path

from tpudeploy.cli import documents, exits
from tpudeploy.cli.complete import Candidate, candidates
from tpudeploy.cli.context import Context

# Each script passes the words up to the cursor. bash breaks words at = and :, so that it passes the line instead.
_SCRIPTS = {
    "bash": """_tpudeploy() {
  local candidate
  COMPREPLY=()
  while IFS= read -r candidate; do COMPREPLY+=("$candidate"); done \\
    < <(tpudeploy completion bash -- "${COMP_LINE:0:COMP_POINT}" 2>/dev/null)
  if [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[/=] ]]; then compopt -o nospace 2>/dev/null; fi
}
complete -F _tpudeploy tpudeploy""",
    "zsh": """#compdef tpudeploy
_tpudeploy() {
  local -a closed open closed_texts open_texts
  local candidate about
  while IFS=$'\\t' read -r candidate about; do
    if [[ $candidate == *[/=] ]]; then
      open+=("$candidate"); open_texts+=("$candidate")
    else
      closed+=("$candidate"); closed_texts+=("${candidate}${about:+  -- $about}")
    fi
  done < <(tpudeploy completion zsh -- "${(@Q)words[2,CURRENT]}" 2>/dev/null)
  compadd -l -d closed_texts -a -- closed
  compadd -S '' -d open_texts -a -- open
}
if [[ $funcstack[1] == _tpudeploy ]]; then _tpudeploy "$@"; else compdef _tpudeploy tpudeploy; fi""",
    "fish": """function __tpudeploy_candidates
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    tpudeploy completion fish -- $words[2..-1] "$current" 2>/dev/null
end
complete -c tpudeploy -f -a "(__tpudeploy_candidates)\"""",
}
_BREAKS = "=:"  # the characters of COMP_WORDBREAKS that our words contain


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=tuple(_SCRIPTS), help="The shell of the script.")
    parser.set_defaults(argv=[])  # what follows a bare `--`


def run(args: argparse.Namespace, context: Context) -> int:
    if args.argv:
        context.terminal.document("".join(_lines(args.shell, args.argv)), end="")  # whatever TPUDEPLOY_JSON says
        return exits.SUCCESS
    script = _SCRIPTS[args.shell]
    if args.json:
        context.reply.set(documents.completion(args.shell, script))
    else:
        context.terminal.data(script)
    return exits.SUCCESS


def _lines(shell: str, argv: Sequence[str]) -> list[str]:
    """Return a line for each candidate: the word, and after a tab its description where the shell shows it."""
    if shell != "bash":
        return [f"{each.word}\t{each.about}\n" for each in candidates(argv)]
    words = _words(argv[0])
    head = max((words[-1].rfind(character) for character in _BREAKS), default=-1) + 1
    return [f"{shlex.quote(word)}\n" for word in (each.word[head:] for each in _unique(candidates(words)))]


def _unique(rows: Sequence[Candidate]) -> Sequence[Candidate]:
    return list(dict.fromkeys(rows))


def _words(line: str) -> list[str]:
    """Return the words of the last `tpudeploy` command on an unfinished line; the last word may be empty."""
    for end in ("", '"', "'"):
        try:
            words = shlex.split(f"{line}{end}")
            break
        except ValueError:
            continue
    else:
        words = line.split()
    if not words or line[-1:].isspace():
        words.append("")
    starts = [n for n, word in enumerate(words[:-1]) if Path(word).name == "tpudeploy"]
    return words[starts[0] + 1 :] if starts else words[1:]
