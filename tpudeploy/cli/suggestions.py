"""Suggest corrections of a command line. Each suggestion passes the check that rejected the word."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher, get_close_matches

from tpudeploy.catalog import closest
from tpudeploy.cli import verbs
from tpudeploy.cli.parsers import Parser
from tpudeploy.cli.usage import Usage
from tpudeploy.config.foreign_keys import HINTS
from tpudeploy.config.keys import all_keys, fields_at
from tpudeploy.config.nodes import dotted

# Other tools' names of our options. The first one that the command has is suggested.
_ALSO_CALLED: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("y", "yes", "assume-yes", "approve", "force", "auto-approve"), ("auto-approve", "force")),
    **dict.fromkeys(("var", "values"), ("set",)),
    **dict.fromkeys(("var-file", "overlay", "file", "config"), ("file", "overlay")),
    "w": ("watch",),
    "m": ("model",),
    **dict.fromkeys(("C", "dir", "directory", "cwd"), ("chdir",)),
    **dict.fromkeys(("j", "jobs", "parallel"), ("parallelism",)),
    **dict.fromkeys(("nocolor", "no-colour"), ("no-color",)),
    **dict.fromkeys(("client", "tool", "backend-client"), ("driver",)),
    **dict.fromkeys(("output-file", "outfile"), ("out",)),
    **dict.fromkeys(("template", "profile"), ("from",)),
    **dict.fromkeys(("rate", "streams", "max-concurrency"), ("concurrency",)),
    **dict.fromkeys(("input-len", "prompt-len", "isl"), ("context",)),
    **dict.fromkeys(("output-len", "osl"), ("output",)),
}
# Options of other tools for what is no option here.
_SENTENCES: Mapping[str, str] = {
    **dict.fromkeys(("dry-run", "dryrun", "check"), "`tpudeploy plan PROFILE` shows what would change."),
    **dict.fromkeys(("destroy",), "`tpudeploy destroy PROFILE` deletes a deployment. It asks first."),
    **dict.fromkeys(("q", "quiet", "silent"), "Errors are on stderr: `> FILE` keeps the output."),
    **dict.fromkeys(("o", "out", "output"), "It prints to stdout: `> FILE` writes it to a file."),
    **dict.fromkeys(("a", "all"), "Name each deployment: `tpudeploy status` lists them."),
}
# The same where a command has its own answer.
_SENTENCES_OF: Mapping[str, Mapping[str, str]] = {
    "gc": dict.fromkeys(("dry-run", "dryrun", "check"), "`tpudeploy gc` lists what it found, then asks."),
    "destroy": dict.fromkeys(
        ("dry-run", "dryrun", "check"), "`tpudeploy plan -destroy PROFILE` shows what would be deleted."
    ),
    "logs": dict.fromkeys(
        ("tail", "n", "lines", "since"), "`| tail -n 100` keeps the last lines, and `-follow` shows new ones."
    ),
}
_OVERLAY = ("-f", "--file", "--overlay", "-file", "-overlay")
_HELP = ("-h", "--help")
_KEYS: Mapping[str, str] = {
    "p": "placement.project",
    "z": "placement.zones",
    "model": "model.id",
    **dict.fromkeys(("tpu", "type", "accelerator_type", "tpu_type"), "tpu.type"),
}
_TYPO = 0.8


def did_you_mean_command(word: str, commands: Iterable[str], group: str = "") -> str:
    """Return the command, or the verb of a group, that does what another tool's verb does, or else the nearest one.

    One that deletes or overwrites is not guessed, unless it is misspelled.
    """
    sentence = verbs.advice(word, group)
    return f" {sentence}" if sentence else _question(_nearest(word, commands))


def _nearest(word: str, names: Iterable[str]) -> str | None:
    harmless = [name for name in names if name not in verbs.DESTRUCTIVE or _is_typo(word, name)]
    return closest(word, harmless)


def _is_typo(word: str, name: str) -> bool:
    """Return whether a word begins as the name does and has nearly all of its letters."""
    bare, own = word.lower().lstrip("-"), name.lstrip("-")
    return bare[:1] == own[:1] and SequenceMatcher(None, bare, own).ratio() > _TYPO


def did_you_mean_option(parser: Parser, words: Sequence[str], word: str) -> str:
    """Return the same for an option, with which the command line `words` can be parsed up to that option.

    A word that is exactly another tool's, or a key of the profile, is not taken for a misspelled option.
    """
    name, equals, value = word.partition("=")
    bare = name.lstrip("-")
    also_called = [f"--{alias}" for alias in _ALSO_CALLED.get(bare, ()) if alias != bare]
    for candidates in (also_called, _near(parser, bare)):
        for option in candidates:
            is_help = option in _HELP and not equals  # not tried, because it would print the help
            is_other = option in parser.option_names and option not in _HELP
            if is_help or (is_other and _is_accepted(parser, words, word, f"{option}{equals}{value}")):
                # Keep Terraform's single dash if the word has one.
                spelling = option if name.startswith("--") else option.replace("--", "-", 1)
                return _question(f"{spelling}{equals}{value}")
        if instead := _instead(parser, bare):
            return instead
    return ""


def about_overlay(words: Sequence[str], name: str) -> str:
    """Return what `-f` means here, for a line of another tool, `apply -f PROFILE` or `logs NAME -f`; or ""."""
    at = next((n for n, word in enumerate(words) if word in _OVERLAY), None)
    if at is None:
        return ""
    if at + 1 < len(words):
        return f" `{words[at]}` names an overlay of a profile: `tpudeploy {name} {words[at + 1]}` names a profile."
    return " `-follow` shows new lines as they come." if name == "logs" else ""


def _near(parser: Parser, bare: str) -> Iterator[str]:
    """Yield the options near a word. The dashes are left out, because all share them: `--zone` is not near `--json`."""
    names = [name.lstrip("-") for name in parser.option_names]
    harmless = [name for name in names if f"--{name}" not in verbs.DESTRUCTIVE or _is_typo(bare, name)]
    # `--timout` is not `--out`, which would write a file: a typo keeps the first letter.
    yield from (f"--{near}" for near in get_close_matches(bare, harmless, n=5) if near[:1] == bare[:1].lower())


def _instead(parser: Parser, word: str) -> str:
    """Return what does the same as an option of another tool: a sentence, or the key of the profile; "" if unknown."""
    sentence = _SENTENCES_OF.get(parser.prog.removeprefix("tpudeploy "), {}).get(word) or _SENTENCES.get(word)
    if sentence:
        return f" {sentence}"
    key = word.replace("-", "_")
    leaves = (dotted(path) for path in all_keys() if fields_at(path) is None and path[-1] == key)
    same_name = _KEYS.get(key) or next(leaves, "")
    if same_name:
        or_set = f", or as `--set {same_name}=…`" if "--set" in parser.option_names else ""
        return f" It is a key of the profile, {same_name}: write it there{or_set}."
    foreign = HINTS.get(key)
    return "" if foreign is None or foreign.key is None else f" In the profile, {foreign}."


def _is_accepted(parser: Parser, words: Sequence[str], word: str, instead: str) -> bool:
    corrected = [instead if original == word else original for original in words]
    try:
        _, unknown = parser.parse_known_intermixed_args(corrected)
    except (Usage, argparse.ArgumentError, SystemExit):
        return False
    return instead not in unknown


def _question(suggestion: str | None) -> str:
    return f" Did you mean `{suggestion}`?" if suggestion else ""
