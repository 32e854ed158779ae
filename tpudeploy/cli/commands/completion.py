"""Print a completion script for your shell: commands, options and their values, profiles, deployments and codes.

bash: add `eval "$(tpudeploy completion bash)"` to ~/.bashrc. zsh: add `eval "$(tpudeploy completion zsh)"` to ~/.zshrc,
after compinit. fish: `tpudeploy completion fish > ~/.config/fish/completions/tpudeploy.fish`.

The script asks `tpudeploy completion SHELL -- WORDS`, which prints what the last word may become: from the parsers what
may follow a word, and from the folder the names that are there. It asks no cloud and reads no whole profile, because a
shell waits for it at each press of Tab. Why: decision 71 in docs/decisions.md.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias

from tpudeploy import catalog
from tpudeploy.adapters import assets
from tpudeploy.adapters.files import read_beginning, read_file
from tpudeploy.adapters.state.disk import MAX_BYTES
from tpudeploy.cli import documents
from tpudeploy.cli.commands import COMMANDS, command
from tpudeploy.cli.context import Context
from tpudeploy.cli.parsers import Parser, needs_verb, parser_of, split_verb, takes_value, verbs_of
from tpudeploy.config.keys import all_keys
from tpudeploy.domain import exits
from tpudeploy.operations.explanations import explanations
from tpudeploy.operations.output import KEYS

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
        context.terminal.verbatim(script)
    return exits.SUCCESS


def _lines(shell: str, argv: Sequence[str]) -> list[str]:
    """Return a line for each candidate: the word, and after a tab its description where the shell shows it."""
    if shell != "bash":
        return [f"{each.word}\t{each.about}\n" for each in candidates(argv)]
    words = _words(argv[0])
    head = max((words[-1].rfind(character) for character in _BREAKS), default=-1) + 1
    return [f"{shlex.quote(word)}\n" for word in (each.word[head:] for each in dict.fromkeys(candidates(words)))]


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
    return words[starts[0] + 1 :] if starts else words[1:] or words


_ONE_DASH = re.compile(r"-[a-z]")
_NAME = re.compile(r"^name:[ \t]*[\"']?([a-z][a-z0-9-]*)", re.MULTILINE)
_PROFILE_KEYS = re.compile(r"^(?:version|extends):", re.MULTILINE)
_HEAD = 4096  # characters of a file that show whether it is a profile


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionWord:
    """A word that may follow. `about` describes it, or is ""."""

    word: str
    about: str = ""


Source: TypeAlias = "Callable[[Path, str], Iterable[CompletionWord]]"


def candidates(words: Sequence[str]) -> list[CompletionWord]:
    """Return what the last word may become; the words before it are the command line without `tpudeploy`."""
    *before, current = _after_option_terminator(words)
    folder = _folder(before)
    return [each for each in _candidates(before, current, folder) if each.word.startswith(current)]


def _after_option_terminator(words: Sequence[str]) -> Sequence[str]:
    """Return the command line within `emulator run -- tpudeploy ...`, else all words."""
    inner = [n for n, word in enumerate(words[:-1]) if Path(word).name == "tpudeploy" and "--" in words[:n]]
    return words[inner[-1] + 1 :] if inner else words


def _folder(words: Sequence[str]) -> Path:
    for option, value in pairwise(words):
        if option in {"-chdir", "--chdir"}:
            return Path(value).expanduser()
    return Path()


def _candidates(before: Sequence[str], current: str, folder: Path) -> Iterable[CompletionWord]:
    words = [f"-{word}" if _ONE_DASH.match(word) and len(word) > 2 else word for word in before]  # noqa: PLR2004 - -f
    match _without_chdir(words):
        case [] | ["help"]:
            return _commands(current)
        case ["help", name] if name in COMMANDS:
            return _described(verbs_of(command(name)), current)
        case [name, *_] if name in COMMANDS:
            return _of_command(name, _behind(words, name), current, folder)
        case _:
            return ()


def _of_command(name: str, words: Sequence[str], current: str, folder: Path) -> Iterable[CompletionWord]:
    """Return what may follow the words behind a command: one of its verbs, an option, or a value."""
    verb, rest = split_verb(name, words)
    if "--" in rest:
        return _files(folder, current)
    parser, verbs = parser_of(name, verb), verbs_of(command(name))
    followers = _following(parser, rest, current, folder)
    if verb or not verbs or current.startswith("-") or _arguments(parser, rest):
        return followers
    return [*_described(verbs, current), *(() if needs_verb(command(name)) else followers)]


def _without_chdir(words: Sequence[str]) -> list[str]:
    """Return the words that are neither options nor the folder of `--chdir`."""
    values = {n + 1 for n, word in enumerate(words) if word == "--chdir"}
    return [word for n, word in enumerate(words) if n not in values and not word.startswith("-")]


def _behind(words: Sequence[str], name: str) -> list[str]:
    """Return the words of a command line without the command itself."""
    position = list(words).index(name)
    return [*words[:position], *words[position + 1 :]]


def _commands(current: str) -> Iterator[CompletionWord]:
    if current.startswith("-"):
        yield from _described({"--help": "Show all commands.", "--version": "Print the version."}, current)
    else:
        yield from _described({**COMMANDS, "help": "Show the help of a command."}, current)


def _described(table: Mapping[str, str], current: str) -> list[CompletionWord]:
    return [CompletionWord(word=word, about=about) for word, about in table.items() if word.startswith(current)]


def _following(parser: Parser, words: Sequence[str], current: str, folder: Path) -> Iterable[CompletionWord]:
    """Return the options, or the values of the option or argument whose turn it is."""
    name, equals, value = current.partition("=")
    long_name = name if name.startswith("--") else f"-{name}"
    option = parser.option(long_name) if equals else None
    if option is not None:
        return [CompletionWord(word=f"{name}={each.word}", about=each.about) for each in _values(option, folder, value)]
    previous = parser.option(words[-1]) if words else None
    if previous is not None and takes_value(previous):
        return _values(previous, folder, current)
    if current.startswith("-"):
        return _options(parser, words, current)
    argument = _next_argument(parser, len(_arguments(parser, words)))
    return () if argument is None else _values(argument, folder, current)


def _arguments(parser: Parser, words: Sequence[str]) -> list[str]:
    """Return the words that are neither options nor their values."""
    arguments, is_value = [], False
    for word in words:
        option = parser.option(word) if word.startswith("-") else None
        if not is_value and not word.startswith("-"):
            arguments.append(word)
        is_value = not is_value and option is not None and takes_value(option)
    return arguments


def _next_argument(parser: Parser, count: int) -> argparse.Action | None:
    """Return the positional argument that comes after `count` others."""
    for position, action in enumerate(parser.positionals):
        if action.nargs in {"*", "+"} or position == count:
            return action
    return None


def _options(parser: Parser, words: Sequence[str], current: str) -> Iterator[CompletionWord]:
    """Yield the options that are not on the command line yet, with as many dashes as the current word has."""
    is_short = not current.startswith("--") and len(current) > 1
    for action in dict.fromkeys(map(parser.option, parser.option_names)):
        if action is None or action.help == argparse.SUPPRESS:
            continue
        name = max(action.option_strings, key=len)
        is_repeatable = isinstance(action.default, list)
        if is_repeatable or not {*action.option_strings} & {*words}:
            about = " ".join((action.help or "").replace("%%", "%").split())
            yield CompletionWord(word=name[1:] if is_short else name, about=about.partition("%(")[0])


def _values(action: argparse.Action, folder: Path, current: str) -> list[CompletionWord]:
    if action.choices is not None:
        return [CompletionWord(word=str(choice)) for choice in action.choices]
    metavar = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    source = _SOURCES.get(metavar)
    return [] if source is None else list(source(folder, current))


def _files(folder: Path, current: str) -> Iterator[CompletionWord]:
    """Yield the files and folders of the folder that the current word names; a folder ends with a slash."""
    yield from _paths(folder, current, lambda _path: True)


def _folders(folder: Path, current: str) -> Iterator[CompletionWord]:
    yield from _paths(folder, current, lambda _path: False)


def _overlays(folder: Path, current: str) -> Iterator[CompletionWord]:
    yield from _paths(folder, current, lambda path: path.suffix in {".yaml", ".yml"})


def _profiles(folder: Path, current: str) -> Iterator[CompletionWord]:
    yield from _paths(folder, current, lambda path: path.suffix in {".yaml", ".yml"} and _is_profile(path))


def _plans(folder: Path, current: str) -> Iterator[CompletionWord]:
    """Yield profiles, and files that may be saved plans: any that is not YAML."""
    yield from _paths(folder, current, lambda path: path.suffix not in {".yaml", ".yml"} or _is_profile(path))


def _paths(folder: Path, current: str, is_wanted: Callable[[Path], bool]) -> Iterator[CompletionWord]:
    head, slash, start = current.rpartition("/")
    try:
        entries = sorted((folder / Path(f"{head}{slash}").expanduser()).iterdir())
    except OSError:
        return
    for path in entries:
        if path.name.startswith(".") and not start.startswith("."):
            continue
        if path.name.startswith(start) and (path.is_dir() or is_wanted(path)):
            yield CompletionWord(word=f"{head}{slash}{path.name}{'/' if path.is_dir() else ''}")


def _is_profile(path: Path) -> bool:
    return _PROFILE_KEYS.search(_head(path)) is not None


def _head(path: Path) -> str:
    try:
        return read_beginning(path, _HEAD).decode("utf-8", "replace")
    except OSError:
        return ""


def _deployments(folder: Path, _current: str) -> Iterator[CompletionWord]:
    """Yield the deployments that have a state on this machine, and those of the profiles in the folder."""
    names = {path.stem for path in _states(folder)}
    for path in sorted(folder.glob("*.y*ml")):
        name = _NAME.search(_head(path))
        if name is not None:
            names.add(name[1])
    yield from (CompletionWord(word=name) for name in sorted(names))


def _states(folder: Path) -> list[Path]:
    """Return the state files of the project, whose folder is this one or one above it."""
    for project in (folder.absolute(), *folder.absolute().parents):
        if (project / ".tpudeploy").is_dir():
            return sorted((project / ".tpudeploy" / "state").glob("*.json"))
    return []


def _addresses(folder: Path, current: str) -> Iterator[CompletionWord]:
    """Yield the deployments, and the replicas of those that have a state on this machine."""
    yield from _deployments(folder, current)
    for path in _states(folder):
        try:
            records = json.loads(read_file(path, MAX_BYTES)).get("records", ())
            indexes = [record["index"] for record in records]
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            continue  # a state that cannot be read has no replicas to name; the command itself reports it
        yield from (CompletionWord(word=f"{path.stem}[{index}]") for index in indexes)


def _profiles_or_names(folder: Path, current: str) -> Iterator[CompletionWord]:
    yield from _profiles(folder, current)
    yield from _deployments(folder, current)


def _types(_folder: Path, _current: str) -> Iterator[CompletionWord]:
    yield from (CompletionWord(word=type_.name) for type_ in catalog.accelerator_types())


def _zones(_folder: Path, _current: str) -> Iterator[CompletionWord]:
    names = {type_.generation for type_ in catalog.accelerator_types()}
    zones = {zone for name in names for zone in catalog.generation(name).zones}
    yield from (CompletionWord(word=zone) for zone in sorted(zones))


def _settings(folder: Path, current: str) -> Iterator[CompletionWord]:
    """Yield the keys of a profile, and the values of those that name zones and slice types."""
    key, equals, value = current.partition("=")
    if not equals:
        yield from (CompletionWord(word=f"{'.'.join(map(str, path))}=") for path in all_keys())
    elif key in _SETTINGS:
        *others, last = value.removeprefix("[").rpartition(",")
        head = f"{key}={'[' if value.startswith('[') else ''}{''.join(others)}"
        yield from (CompletionWord(word=f"{head}{each.word}") for each in _SETTINGS[key](folder, last))


_SETTINGS: Mapping[str, Source] = {"tpu.type": _types, "placement.zones": _zones}


def _codes(_folder: Path, _current: str) -> Iterator[CompletionWord]:
    for code, text in explanations().items():
        yield CompletionWord(word=code, about=text.partition("\n")[0])


def _shipped_profiles(_folder: Path, _current: str) -> Iterator[CompletionWord]:
    yield from (CompletionWord(word=name) for name in ("list", *assets.profiles()))


def _outputs(_folder: Path, _current: str) -> Iterator[CompletionWord]:
    yield from (CompletionWord(word=key) for key in KEYS)


# What an argument takes, by the word that help has for it.
_SOURCES: Mapping[str, Source] = {
    **dict.fromkeys(("PROFILE", "RUN | PROFILE | A/B"), _profiles),
    **dict.fromkeys(("FILE", "LOG", "PLANFILE", "QUESTIONS", "FINGERPRINT"), _files),
    **dict.fromkeys(("DIR", "FOLDER", "PLACE"), _folders),
    **dict.fromkeys(("ADDR", "SRC", "DST"), _addresses),
    "PROFILE | PLANFILE": _plans,
    "PROFILE | NAME": _profiles_or_names,
    "NAME": _deployments,
    "OVERLAY": _overlays,
    "TYPE": _types,
    "PATH=VALUE": _settings,
    "CODE": _codes,
    "SOURCE": _shipped_profiles,
    "KEY": _outputs,
}
