"""A conversation: its messages, its settings, and the lines that change them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final

_MOST_TEMPERATURE: Final = 2.0
_DECIMAL = re.compile(r"[0-9](\.[0-9]{1,6})?")
HELP: Final = """\
/system TEXT      set the system prompt; without TEXT, show it
/temperature X    set the temperature, 0 to 2; without X, the server's own
/history          show the conversation
/undo             forget the last question and its answer
/reset            forget the conversation
/help             show this
/exit             end, as Ctrl-D does. Ctrl-C stops an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatTurn:
    """A question and its answer, as far as it came."""

    question: str
    answer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """What was said, and the settings for the next answer. `temperature` is None for the server's own."""

    system: str = ""
    temperature: float | None = None
    turns: tuple[ChatTurn, ...] = ()

    def messages(self, question: str) -> list[dict[str, str]]:
        """Return the messages of the request for the next answer."""
        messages = [{"role": "system", "content": self.system}] if self.system else []
        for turn in self.turns:
            messages.append({"role": "user", "content": turn.question})
            messages.append({"role": "assistant", "content": turn.answer})
        return [*messages, {"role": "user", "content": question}]

    @property
    def sampling(self) -> dict[str, float]:
        return {} if self.temperature is None else {"temperature": self.temperature}

    def with_answer(self, question: str, answer: str) -> Conversation:
        """Return the conversation with another turn. A question without any answer is forgotten."""
        if not answer:
            return self
        return replace(self, turns=(*self.turns, ChatTurn(question=question, answer=answer)))


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandReply:
    """What a line with a slash does: the conversation after it, and what is printed. `ends`: it was /exit."""

    conversation: Conversation
    text: str
    ends: bool = False


def run_command(conversation: Conversation, line: str) -> CommandReply:
    """Return what a line such as `/system Be brief.` does."""
    name, _, rest = line.partition(" ")
    value = rest.strip()
    match name:
        case "/exit" | "/quit" | "/bye":
            return CommandReply(conversation=conversation, text="", ends=True)
        case "/system":
            changed = replace(conversation, system=value) if value else conversation
            return CommandReply(conversation=changed, text=f"System prompt: {changed.system or 'none'}")
        case "/temperature":
            return _temperature(conversation, value)
        case "/reset" | "/clear":
            return CommandReply(conversation=replace(conversation, turns=()), text="The conversation is empty.")
        case "/undo":
            return CommandReply(conversation=replace(conversation, turns=conversation.turns[:-1]), text="Forgotten.")
        case "/history":
            lines = [f"> {turn.question}\n{turn.answer}" for turn in conversation.turns]
            return CommandReply(conversation=conversation, text="\n".join(lines) or "The conversation is empty.")
        case "/help" | "/?":
            return CommandReply(conversation=conversation, text=HELP)
    return CommandReply(conversation=conversation, text=f"There is no command {name}.\n{HELP}")


def _temperature(conversation: Conversation, value: str) -> CommandReply:
    if not value:
        return CommandReply(conversation=replace(conversation, temperature=None), text="Temperature: the server's own")
    temperature = temperature_of(value)
    if temperature is None:
        return CommandReply(conversation=conversation, text=f"`{value}` is no temperature: write a number from 0 to 2.")
    return CommandReply(conversation=replace(conversation, temperature=temperature), text=f"Temperature: {temperature}")


def temperature_of(text: str) -> float | None:
    """Return a temperature, or None for other text."""
    if not _DECIMAL.fullmatch(text):
        return None
    value = float(text)
    return value if value <= _MOST_TEMPERATURE else None
