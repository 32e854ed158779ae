"""Read shell text into commands, with the variables that the text itself sets. It runs nothing.

A variable that the text doesn't set is unknown: the environment of this machine isn't that of the author. So is one
whose value depends on a branch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from tpudeploy.features.intake.source import Stop

MOST_WORDS: Final = 20_000
_LONGEST: Final = 65_536  # characters of one word, once its variables are filled in
_DEEPEST: Final = 20
# White space, and words between. A command whose output is a part of a word is not split at its own spaces.
_KNOWN_PARTS = re.compile(r"\s+|\S+")
_PARTS = re.compile(r"\s+|(?:\$\((?:[^()]|\([^()]*\))*\)|`[^`]*`|\S)+")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\[[^\]]*\])?(\+?)=")
_REDIRECTION = re.compile(r"[0-9]*(?:<<<|<<-?|[<>]\|?&?|>>|&>>?)")
# `<your token>`, which pages write where the reader has something to fill in. It is no redirection.
_PLACEHOLDER = re.compile(r"<[A-Za-z][^<>\n|;&]{0,60}(?<!\s)>")
_CONTINUATION = re.compile(r"\\[ \t\r]*\n")
_BRANCHES, _ENDS = frozenset({"if", "while", "until", "for", "case", "select"}), frozenset({"fi", "done", "esac"})
_KEYWORDS = frozenset({"then", "else", "elif", "do", "{", "}", "!", *_ENDS})
_DECLARES = frozenset({"export", "readonly", "declare", "local", "typeset"})
# Of what a script exports, what an engine or its libraries may read; other names are the script's own.
_OF_ENGINES = re.compile(
    r"(?:VLLM|HF|HUGGING|TPU|JAX|XLA|LIBTPU|PJRT|TRANSFORMERS|TOKENIZERS|MODEL_IMPL|USE_|NEW_MODEL)"
)
_META = " \t\r\n;|&<>()"
_ESCAPES: Mapping[str, str] = {"n": "\n", "t": "\t", "\\": "\\", "'": "'", '"': '"'}
_SYSTEMD = ("ExecStart", "ExecStartPre", "ExecStartPost")


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """A word of a command, with its place. `unknown` are the variables in it whose values are not known."""

    text: str
    start: int = 0
    end: int = 0
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellValue:
    """What a variable holds: one text, or the items of an array."""

    items: tuple[Word, ...]
    is_array: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellCommand:
    """A simple command. `variables` are those that it gets in its environment, `document` its here-document."""

    words: tuple[Word, ...]
    variables: Mapping[str, Word]
    values: Mapping[str, ShellValue]
    document: str = ""


def read_commands(text: str, environment: Mapping[str, str] | None = None) -> tuple[ShellCommand, ...]:
    """Return the commands of a text, in their order. `known` are variables of its environment. Raise Stop."""
    values = {name: ShellValue(items=(Word(text=value),)) for name, value in (environment or {}).items()}
    return tuple(_Scanner(text, values).commands())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Piece:
    """A part of a word. An unquoted variable `splits` at white space; an array is several words."""

    text: str
    splits: bool = False
    unknown: tuple[str, ...] = ()
    items: tuple[Word, ...] | None = None


class _Scanner:
    def __init__(self, text: str, values: dict[str, ShellValue]) -> None:
        self._text = text
        self._at = 0
        self._values = values
        self._exported: dict[str, None] = {}
        self._depth = 0
        self._is_conditional = False
        self._documents: list[tuple[str, bool, ShellCommand | None]] = []
        self._words: list[Word] = []
        self._own: dict[str, Word] = {}
        self._count = 0
        self._document = ""

    def commands(self) -> Iterator[ShellCommand]:
        while self._at < len(self._text):
            character = self._text[self._at]
            if match := _CONTINUATION.match(self._text, self._at):
                self._at = match.end()
            elif character in " \t\r":
                self._at += 1
            elif character == "#":
                self._at = self._line_end()
            elif _PLACEHOLDER.match(self._text, self._at):
                self._word()
            elif character in "<>" or _REDIRECTION.match(self._text, self._at):
                self._redirect()
            elif character in "\n;|&()":
                yield from self._operator()
            else:
                self._word()
        yield from self._finish()

    def every_piece(self) -> list[_Piece]:
        """Return the parts of the whole text as those of one word, for a default value."""
        pieces: list[_Piece] = []
        while self._at < len(self._text):
            here = self._at
            pieces += self._pieces()
            if self._at == here:
                pieces.append(_Piece(text=self._text[here]))
                self._at += 1
        return pieces

    def _line_end(self) -> int:
        end = self._text.find("\n", self._at)
        return len(self._text) if end < 0 else end

    def _operator(self) -> Iterator[ShellCommand]:
        operator = next((each for each in ("&&", "||", ";;") if self._text.startswith(each, self._at)), "")
        is_line_end = self._text[self._at] == "\n"
        self._at += len(operator) or 1
        if is_line_end and self._documents:
            self._read_documents()
        yield from self._finish()
        self._is_conditional = operator in ("&&", "||")

    def _finish(self) -> Iterator[ShellCommand]:
        words, own, document = self._words, self._own, self._document
        self._words, self._own, self._document = [], {}, ""
        while words and words[0].text in _BRANCHES | _KEYWORDS:
            keyword = words.pop(0).text
            self._depth += (keyword in _BRANCHES) - (keyword in _ENDS)
        # `if` and `then` of one line are the first words of two commands: the depth is that of the assignment.
        if not words:
            for name, word in own.items():
                self._assign(name, ShellValue(items=(word,)))
            return
        if words[0].text in _DECLARES:
            self._declare(words)
            return
        exported = {name: self._joined(name) for name in self._exported if _OF_ENGINES.match(name)}
        yield ShellCommand(
            words=tuple(words), variables={**exported, **own}, values=dict(self._values), document=document
        )

    def _declare(self, words: list[Word]) -> None:
        for word in words[1:]:
            match = _ASSIGNMENT.match(word.text)
            if match is None:
                if words[0].text == "export" and _NAME.fullmatch(word.text):
                    self._exported[word.text] = None
                continue
            value = Word(text=word.text[match.end() :], start=word.start, end=word.end, unknown=word.unknown)
            self._assign(match[1], ShellValue(items=(value,)))
            if words[0].text == "export":
                self._exported[match[1]] = None

    def _assign(self, name: str, value: ShellValue) -> None:
        """Set a variable. Of one that a branch sets to another value, the value is not known."""
        before = self._values.get(name)
        in_branch = self._depth > 0 or self._is_conditional
        if in_branch and (before is None or [w.text for w in before.items] != [w.text for w in value.items]):
            value = ShellValue(items=(Word(text=f"${name}", unknown=(name,)),))
        self._values[name] = value

    def _joined(self, name: str) -> Word:
        value = self._values.get(name)
        if value is None:
            return Word(text=f"${name}", unknown=(name,))
        text = " ".join(word.text for word in value.items)
        return Word(text=text, unknown=tuple(dict.fromkeys(name for word in value.items for name in word.unknown)))

    def _redirect(self) -> None:
        start = self._at
        match = _REDIRECTION.match(self._text, self._at)
        operator = self._text[start] if match is None else match[0].lstrip("0123456789")
        self._at = start + 1 if match is None else match.end()
        while self._at < len(self._text) and self._text[self._at] in " \t":
            self._at += 1
        begin = self._at
        if self._text.startswith("(", self._at):  # a process substitution: its command is read as another one
            return
        pieces = self._pieces()
        raw = self._text[begin : self._at]
        if operator in ("<<", "<<-"):
            self._documents.append(("".join(piece.text for piece in pieces), raw[:1] in "'\"\\", None))

    def _read_documents(self) -> None:
        for delimiter, _, _ in self._documents:
            lines, position = [], self._at
            while True:
                if position >= len(self._text):
                    raise Stop(f"The here-document has no line `{delimiter}` that ends it", self._at)
                end = self._text.find("\n", position)
                end = len(self._text) if end < 0 else end
                line = self._text[position:end]
                position = end + 1
                if line.strip() == delimiter:
                    break
                lines.append(line)
            self._at = min(position, len(self._text))
            self._document += "\n".join(lines)
        self._documents.clear()

    def _word(self) -> None:
        is_first = all(word.text in _BRANCHES | _KEYWORDS for word in self._words)
        match = _ASSIGNMENT.match(self._text, self._at) if is_first else None
        if match is not None and match[1] in _SYSTEMD:
            self._at = match.end()
            while self._text[self._at : self._at + 1] in ("-", "@", "+", "!"):
                self._at += 1
        elif match is not None:
            self._assignment(match)
        else:
            start = self._at
            for word in _words_of(self._pieces(), start, self._at):
                self._add(word)

    def _add(self, word: Word) -> None:
        self._count += 1
        if self._count > MOST_WORDS:
            raise Stop(f"The text has more than {MOST_WORDS:,} words", word.start, word.end)
        self._words.append(word)

    def _assignment(self, match: re.Match[str]) -> None:
        name, start = match[1], match.start()
        self._at = match.end()
        if self._text.startswith("(", self._at):
            items = self._array()
            before = self._values.get(name) if match[3] else None
            self._assign(name, ShellValue(items=(*(before.items if before else ()), *items), is_array=True))
            return
        pieces = self._pieces()
        text = "".join(_text_of(piece) for piece in pieces)
        unknown = _unknown_of(pieces)
        if match[3]:
            before_word = self._own.get(name) or self._joined(name)
            text, unknown = before_word.text + text, (*before_word.unknown, *unknown)
        self._own[name] = Word(text=_bounded(text, start), start=start, end=self._at, unknown=unknown)
        if match[1] == "Environment":  # of a unit of systemd
            inner = text.strip("\"'")
            if match_inner := _ASSIGNMENT.match(inner):
                self._values[match_inner[1]] = ShellValue(items=(Word(text=inner[match_inner.end() :]),))
                self._exported[match_inner[1]] = None

    def _array(self) -> tuple[Word, ...]:
        start = self._at
        self._at += 1
        items: list[Word] = []
        while not self._text.startswith(")", self._at):
            if self._at >= len(self._text):
                raise Stop("The array that opens here isn't closed", start)
            if match := _CONTINUATION.match(self._text, self._at):
                self._at = match.end()
            elif self._text[self._at] == "#":
                self._at = self._line_end()
            elif self._text[self._at] in _META:
                self._at += 1
            else:
                begin = self._at
                items += _words_of(self._pieces(), begin, self._at)
        self._at += 1
        return tuple(items)

    def _pieces(self) -> list[_Piece]:
        """Return the parts of the word at this place, and go to its end."""
        pieces: list[_Piece] = []
        while self._at < len(self._text):
            character = self._text[self._at]
            if match := _PLACEHOLDER.match(self._text, self._at):
                pieces.append(_unknown(match[0], match[0]))
                self._at = match.end()
                continue
            if character in _META or _CONTINUATION.match(self._text, self._at):
                break
            if character == "\\":
                pieces.append(_Piece(text=self._text[self._at + 1 : self._at + 2]))
                self._at += 2
            elif character == "'":
                pieces.append(_Piece(text=self._single_quoted()))
            elif character == '"':
                pieces += self._double_quoted()
            elif character in "$`":
                pieces += self._dollar(splits=True)
            else:
                end = self._at + 1
                while end < len(self._text) and self._text[end] not in _META + "\\'\"$`":
                    end += 1
                pieces.append(_Piece(text=self._text[self._at : end]))
                self._at = end
        return pieces

    def _single_quoted(self) -> str:
        end = self._text.find("'", self._at + 1)
        if end < 0:
            raise Stop("The quote that opens here isn't closed", self._at)
        text = self._text[self._at + 1 : end]
        self._at = end + 1
        return text

    def _double_quoted(self) -> list[_Piece]:
        start = self._at
        self._at += 1
        pieces = [_Piece(text="")]
        while True:
            if self._at >= len(self._text):
                raise Stop("The quote that opens here isn't closed", start)
            character = self._text[self._at]
            if character == '"':
                self._at += 1
                return pieces
            if character == "\\":
                following = self._text[self._at + 1 : self._at + 2]
                is_escape = following in ("\n", *'$`"\\')
                pieces.append(_Piece(text=following.strip("\n") if is_escape else f"\\{following}"))
                self._at += 2
            elif character in "$`":
                pieces += self._dollar(splits=False)
            else:
                end = self._at + 1
                while end < len(self._text) and self._text[end] not in '"\\$`':
                    end += 1
                pieces.append(_Piece(text=self._text[self._at : end]))
                self._at = end

    def _dollar(self, *, splits: bool) -> list[_Piece]:
        """Return what a dollar or a backtick stands for, and go behind it."""
        start, text = self._at, self._text
        following = text[start + 1 : start + 2]
        if text[start] == "`":
            end = text.find("`", start + 1)
            if end < 0:
                raise Stop("The command that opens here isn't closed", start)
            self._at = end + 1
            return [_unknown(text[start : end + 1], "the output of a command")]
        if following == "'" and splits:
            return [_Piece(text=self._escaped())]
        if following == '"' and splits:
            self._at += 1
            return self._double_quoted()
        if following in ("(", "{") and following:
            end = self._closing(start + 1)
            self._at = end + 1
            if following == "(":
                return [_unknown(text[start : end + 1], "the output of a command")]
            return self._parameter(text[start + 2 : end], text[start : end + 1], splits=splits, start=start)
        match = _NAME.match(text, start + 1)
        if match is None:
            is_special = following.isdigit() or (following in tuple("@*#?!-$") and following != "")
            self._at = start + (2 if is_special else 1)
            return [_unknown(text[start : self._at], text[start : self._at]) if is_special else _Piece(text="$")]
        self._at = match.end()
        return self._variable(match[0], text[start : self._at], splits=splits, start=start)

    def _escaped(self) -> str:
        """Return the text of $'…'."""
        end = self._at + 2
        while end < len(self._text) and self._text[end] != "'":
            end += 2 if self._text[end] == "\\" else 1
        if end >= len(self._text):
            raise Stop("The quote that opens here isn't closed", self._at)
        raw = self._text[self._at + 2 : end]
        self._at = end + 1
        return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[0]), raw, flags=re.DOTALL)

    def _closing(self, opening: int) -> int:
        """Return the offset of the bracket that closes the one at `opening`."""
        close = {"(": ")", "{": "}"}
        stack, position = [close[self._text[opening]]], opening + 1
        while position < len(self._text):
            character = self._text[position]
            if character == "\\":
                position += 1
            elif character == "'" and stack[-1] == ")":
                end = self._text.find("'", position + 1)
                position = len(self._text) if end < 0 else end
            elif character == stack[-1]:
                stack.pop()
                if not stack:
                    return position
            elif character == "(" or (character == "{" and self._text[position - 1] == "$"):
                stack.append(close[character])
                if len(stack) > _DEEPEST:
                    raise Stop(f"Brackets are nested deeper than {_DEEPEST}", position)
            position += 1
        raise Stop("The bracket that opens here isn't closed", opening)

    def _parameter(self, body: str, source: str, *, splits: bool, start: int) -> list[_Piece]:
        match = _NAME.match(body) or re.match("[0-9@*]+", body)
        if match is None:
            return [_unknown(source, source)]
        name, rest = match[0], body[match.end() :]
        if rest in ("[@]", "[*]"):
            value = self._values.get(name)
            if value is None:
                return [_unknown(source, name)]
            return [_Piece(text="", items=value.items)]
        if not rest:
            return self._variable(name, source, splits=splits, start=start)
        operator = re.match(r":?[-=?]", rest)
        if operator is None:
            return [_unknown(source, name)]
        if name in self._values and self._joined(name).text:
            return self._variable(name, source, splits=splits, start=start)
        if operator[0].endswith("?"):
            return [_unknown(source, name)]
        if len(rest) > _LONGEST or rest.count("${") > _DEEPEST:
            raise Stop("This value has too many parts", start)
        return _Scanner(rest[operator.end() :], self._values).every_piece()

    def _variable(self, name: str, source: str, *, splits: bool, start: int) -> list[_Piece]:
        if name not in self._values:
            return [_unknown(source, name)]
        word = self._joined(name)
        if word.text == f"${name}":
            return [_unknown(source, name)]
        return [_Piece(text=_bounded(word.text, start), splits=splits, unknown=word.unknown)]


def _unknown(source: str, name: str) -> _Piece:
    return _Piece(text=source, unknown=(name,))


def _bounded(text: str, start: int) -> str:
    if len(text) > _LONGEST:
        raise Stop(f"With its variables filled in, this has more than {_LONGEST:,} characters", start)
    return text


def _text_of(piece: _Piece) -> str:
    return piece.text if piece.items is None else " ".join(word.text for word in piece.items)


def _unknown_of(pieces: list[_Piece]) -> tuple[str, ...]:
    names = [name for piece in pieces for name in piece.unknown]
    names += [name for piece in pieces for word in piece.items or () for name in word.unknown]
    return tuple(dict.fromkeys(names))


def _words_of(pieces: list[_Piece], start: int, end: int) -> Iterator[Word]:
    """Yield the words that the parts of one word make: an unquoted variable may hold several, or none."""
    text, unknown, has_text = "", list[str](), False
    for part, names, is_quoted in _parts(pieces):
        if part is None:
            if has_text:
                yield Word(text=_bounded(text, start), start=start, end=end, unknown=tuple(dict.fromkeys(unknown)))
            text, unknown, has_text = "", [], False
        elif part or is_quoted:
            text, has_text = text + part, True
            unknown += names
    if has_text:
        yield Word(text=_bounded(text, start), start=start, end=end, unknown=tuple(dict.fromkeys(unknown)))


def _parts(pieces: list[_Piece]) -> Iterator[tuple[str | None, tuple[str, ...], bool]]:
    """Yield text, its unknown variables, and whether it makes a word even if it is empty; None ends a word."""
    for piece in pieces:
        if piece.items is not None:
            for index, word in enumerate(piece.items):
                if index:
                    yield None, (), False
                yield word.text, word.unknown, False
        elif piece.splits:
            for part in (_PARTS if piece.unknown else _KNOWN_PARTS).findall(piece.text):
                yield (None if part.isspace() else part), piece.unknown, False
        else:
            yield piece.text, piece.unknown, True
