"""Find in shell text what starts a server: `docker run`, `vllm serve`, the server's module, and the slice for it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from tpudeploy.features.intake.docker_run import PROGRAMS, ContainerOptions, is_run, read_run
from tpudeploy.features.intake.shell import ShellCommand, Word, read_commands
from tpudeploy.features.intake.source import Note, Stop

_DEEPEST: Final = 5  # shells in shells
_SHELLS = frozenset({"bash", "sh", "zsh", "dash", "ash"})
_MODULE = re.compile(r"vllm\.entrypoints\.(?:openai\.)?api_server")
_SCRIPT = re.compile(r".*vllm/entrypoints/(?:openai/)?api_server\.py")
_PYTHON = re.compile(r"python[0-9.]*")
_MARKS = re.compile(r"\bvllm serve\b|vllm\.entrypoints|\b(?:docker|podman|nerdctl) (?:container )?run\b")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_SAYS = frozenset({"echo", "printf", "logger", "grep", "sed", "awk", "pkill", "pgrep", "kill", "curl"})
# Words before a command that change how it is run, with those of their options that have a value.
_WRAPPERS: Mapping[str, frozenset[str]] = {
    "sudo": frozenset({"-u", "-g", "-h", "-p", "-C", "-D", "--user", "--group"}),
    "env": frozenset({"-u", "--unset", "-C", "--chdir"}),
    "nice": frozenset({"-n"}),
    "timeout": frozenset({"-s", "-k"}),
    "numactl": frozenset(),
    "tini": frozenset(),
    "stdbuf": frozenset(),
    "uv": frozenset({"--python", "--with", "--env-file", "-p", "--project", "--directory"}),
    **dict.fromkeys(("nohup", "exec", "time", "command", "setsid", "eval", "catchsegv", "dumb-init"), frozenset[str]()),
}
_WITH_OPERAND = frozenset({"timeout"})
_INSTALLS = re.compile(r"(?:(?:uv )?pip3?|apt(?:-get)?|python[0-9.]* -m pip|/?\S*/pip3?) .*\binstall\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class GcloudSlice:
    """A slice that a script creates with gcloud: the words of its options."""

    options: Mapping[str, Word]
    switches: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What starts one server. `arguments` are the words for the engine, None for a container that starts none.

    `variables` are those of its environment, `setup` the commands that run before it in its container.
    """

    at: Word
    container: ContainerOptions | None = None
    arguments: tuple[Word, ...] | None = None
    variables: Mapping[str, Word]
    setup: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Launches:
    """All that a text starts, in its order."""

    launches: tuple[Launch, ...]
    slices: tuple[GcloudSlice, ...]
    notes: tuple[Note, ...]

    @property
    def servers(self) -> tuple[Launch, ...]:
        return tuple(each for each in self.launches if each.arguments is not None)


def find_launches(text: str, environment: Mapping[str, str] | None = None) -> Launches:
    """Return what a text starts. Raise Stop where it cannot be read."""
    finder = _Finder()
    finder.read(text, environment or {}, depth=0, outer=None)
    return Launches(launches=tuple(finder.launches), slices=tuple(finder.slices), notes=tuple(finder.notes))


class _Finder:
    def __init__(self) -> None:
        self.launches: list[Launch] = []
        self.slices: list[GcloudSlice] = []
        self.notes: list[Note] = []

    def read(self, text: str, environment: Mapping[str, str], *, depth: int, outer: Word | None) -> None:
        """Find what a text starts. Of a text inside a word, every place is that of the word."""
        if depth > _DEEPEST:
            raise Stop(
                f"Shells are nested deeper than {_DEEPEST}", outer.start if outer else 0, outer.end if outer else 0
            )
        setup: list[str] = []
        try:
            for command in read_commands(text, environment):
                own = command if outer is None else _placed(command, outer)
                self._command(own, depth=depth, setup=setup)
        except Stop as stop:
            if outer is None:
                raise
            message = f"Inside this text, {stop.message[:1].lower()}{stop.message[1:]}"
            raise Stop(message, outer.start, outer.end, hint=stop.hint) from stop

    def _command(self, command: ShellCommand, *, depth: int, setup: list[str]) -> None:
        words, variables = _unwrapped(command.words, dict(command.variables))
        if not words:
            return
        begin = is_run(words)
        if begin:
            self._run(read_run(words[begin:]), words[0], depth=depth)
            return
        arguments = engine_words(words)
        if arguments is not None:
            self.launches.append(Launch(at=words[0], arguments=arguments, variables=variables, setup=tuple(setup)))
            return
        line = " ".join(word.text for word in words)
        if _INSTALLS.match(line):
            setup.append(line)
        self._others(words, variables, command, depth=depth)

    def _others(
        self, words: Sequence[Word], variables: Mapping[str, Word], command: ShellCommand, *, depth: int
    ) -> None:
        """Read what another command has of ours: a text for a shell, a slice, a here-document."""
        program = words[0].text.rpartition("/")[2]
        environment = {name: word.text for name, word in variables.items() if not word.unknown}
        if program in (".", "source") and len(words) > 1:
            self.notes.append(Note(subject=f"`{words[1].text}`", reason="variables of another file are not read"))
        if program == "gcloud":
            self._gcloud(words)
        if program in PROGRAMS and len(words) > 1 and words[1].text == "compose":
            reason = "the file it starts is not read: `tpudeploy init --from-file docker-compose.yml`"
            self.notes.append(Note(subject="`docker compose`", reason=reason))
        self._inner_texts(words, environment, depth=depth)
        if command.document and _MARKS.search(command.document.replace("\\\n", " ")):
            own = {name: " ".join(word.text for word in value.items) for name, value in command.values.items()}
            self.read(command.document, own, depth=depth + 1, outer=words[0])

    def _inner_texts(self, words: Sequence[Word], environment: Mapping[str, str], *, depth: int) -> None:
        """Read the words that are commands of their own."""
        text = shell_text(words)
        if text is not None:
            self.read(text.text, environment, depth=depth + 1, outer=text)
        elif words[0].text.rpartition("/")[2] not in _SAYS:
            for word in _texts_in(words):
                self.read(word.text, environment, depth=depth + 1, outer=word)

    def _run(self, container: ContainerOptions, at: Word, *, depth: int) -> None:
        words = container_words(container)
        arguments = container_arguments(container.image.text, words)
        if arguments is None and (text := shell_text(words)) is not None:
            inner = _Finder()
            inner.read(text.text, _environment_of(container), depth=depth + 1, outer=text)
            self.notes += inner.notes
            served = [each for each in inner.launches if each.arguments is not None]
            self.launches += [replace(each, container=container) for each in served]
            if served:
                return
        self.launches.append(Launch(at=at, container=container, arguments=arguments, variables={}))

    def _gcloud(self, words: Sequence[Word]) -> None:
        text = " ".join(word.text for word in words)
        if (
            not re.search(r"tpus|queued-resources|instances create|instance-templates create", text)
            or "create" not in text
        ):
            return
        options: dict[str, Word] = {}
        switches: list[str] = []
        for word, following in zip(words, [*words[1:], None], strict=True):
            name, equals, value = word.text.partition("=")
            if not name.startswith("--"):
                continue
            if equals:
                options[name[2:]] = replace(word, text=value)
            elif following is not None and not following.text.startswith("--"):
                options[name[2:]] = following
            else:
                switches.append(name[2:])
        self.slices.append(GcloudSlice(options=options, switches=tuple(switches)))


def engine_words(words: Sequence[Word]) -> tuple[Word, ...] | None:
    """Return the words for the engine of a command that starts it, or None for another command."""
    program = words[0].text.rpartition("/")[2] if words else ""
    if program == "vllm":
        is_serve = len(words) > 1 and words[1].text == "serve"
        return tuple(words[2:]) if is_serve else None
    if _SCRIPT.fullmatch(words[0].text if words else ""):
        return tuple(words[1:])
    if not _PYTHON.fullmatch(program):
        return None
    for index, word in enumerate(words[1:], 1):
        if word.text == "-m":
            is_module = index + 1 < len(words) and _MODULE.fullmatch(words[index + 1].text)
            return tuple(words[index + 2 :]) if is_module else None
        if not word.text.startswith("-"):
            return tuple(words[index + 1 :]) if _SCRIPT.fullmatch(word.text) else None
    return None


def container_words(container: ContainerOptions) -> tuple[Word, ...]:
    """Return the words that a container runs, after an entrypoint that the options name."""
    entrypoint = container.last("entrypoint")
    first = () if entrypoint is None or not entrypoint.text else (entrypoint,)
    return (*first, *container.command)


def container_arguments(image: str, words: Sequence[Word]) -> tuple[Word, ...] | None:
    """Return the words for the engine of a container, whose image may start it by itself; None if it starts none."""
    unwrapped, _ = _unwrapped(words, {})
    arguments = engine_words(unwrapped)
    if arguments is not None:
        return arguments
    name = image.partition("@")[0].rpartition("/")[2].partition(":")[0]
    starts_engine = "openai" in name or (bool(words) and words[0].text.startswith("--"))
    if starts_engine and words and (words[0].text.startswith("-") or "/" in words[0].text.strip("/")):
        return tuple(words)
    if words and words[0].text == "serve":  # the entrypoint is `vllm`
        return tuple(words[1:])
    return None


def shell_text(words: Sequence[Word]) -> Word | None:
    """Return the text of `bash -c TEXT`, or None for another command."""
    unwrapped, _ = _unwrapped(words, {})
    if not unwrapped or unwrapped[0].text.rpartition("/")[2] not in _SHELLS:
        return None
    for word, following in pairwise(unwrapped[1:]):
        if re.fullmatch(r"-[a-z]*c[a-z]*", word.text):
            return following
    return None


def _texts_in(words: Sequence[Word]) -> Iterator[Word]:
    """Yield words that are commands of their own: of tmux, ssh or gcloud's --command."""
    for word in words[1:]:
        text = word.text.partition("=")[2] if word.text.startswith("--") else word.text
        if re.search(r"\s", text) and _MARKS.search(text.replace("\\\n", " ")):
            yield replace(word, text=text)
    rest = " ".join(word.text for word in words[1:])
    begin = next(
        (n for n, word in enumerate(words) if n and (is_run(words[n:]) or engine_words(words[n:]) is not None)), 0
    )
    if begin and _MARKS.search(rest):
        tail = words[begin:]
        yield Word(text=shlex.join(word.text for word in tail), start=tail[0].start, end=tail[-1].end)


def _unwrapped(words: Sequence[Word], variables: dict[str, Word]) -> tuple[Sequence[Word], dict[str, Word]]:
    """Return a command without the words before it that change how it is run, and its variables."""
    while words and (program := words[0].text.rpartition("/")[2]) in _WRAPPERS:
        if program == "uv" and not (len(words) > 1 and words[1].text == "run"):
            break
        position = 2 if program == "uv" else 1
        while position < len(words):
            text = words[position].text
            if match := (_ASSIGNMENT.fullmatch(text) if program in ("env", "sudo") else None):
                variables[match[1]] = replace(words[position], text=match[2])
            elif not text.startswith("-"):
                break
            elif text in _WRAPPERS[program]:
                position += 1
            position += 1
        words = words[position + (program in _WITH_OPERAND) :]
    return words, variables


def _environment_of(container: ContainerOptions) -> dict[str, str]:
    pairs = (word.text.partition("=") for word in container.all("env") if not word.unknown)
    return {name: value for name, equals, value in pairs if equals}


def _placed(command: ShellCommand, outer: Word) -> ShellCommand:
    def placed(word: Word) -> Word:
        return replace(word, start=outer.start, end=outer.end)

    variables = {name: placed(word) for name, word in command.variables.items()}
    return replace(command, words=tuple(map(placed, command.words)), variables=variables)
