"""Prompts of an exact length as token ids, each with its own prefix: without a tokenizer, and never in a cache.

vLLM's prefix cache hashes blocks in a chain from the first one, so a prompt with another beginning is another prompt,
whatever follows. All ids have the same number of digits, so every request of a cell has the same length in bytes too.
"""

from __future__ import annotations

from dataclasses import dataclass

_OWN = 8  # unique tokens at the beginning of a prompt: 20,000^8 exceeds every seed and number of requests
_COUNTED = 2**40
_WORD = 2**64


@dataclass(frozen=True, slots=True, kw_only=True)
class Ids:
    """The token ids of prompts: `count` of them from `first` on, all with the same number of digits."""

    first: int
    count: int

    @property
    def last(self) -> int:
        return self.first + self.count - 1


# Ordinary tokens in every model that people serve: above the special tokens and bytes at the beginning of a vocabulary,
# and within the smallest vocabulary of a released family (Llama 2's 32,000).
ORDINARY = Ids(first=10_000, count=20_000)

# Sizes of a vocabulary to try on an engine, largest first: each has all ids with one number of digits.
SIZES = (ORDINARY.last + 1, 10_000, 1_000, 100, 10)


def ids_within(vocabulary: int | None) -> Ids:
    """Return the ids for prompts to a model with this many tokens (None: unknown).

    A small model of a test gets the number of digits that most of its ids have.
    """
    if vocabulary is None or vocabulary > ORDINARY.last:
        return ORDINARY
    by_digits = (Ids(first=low, count=min(10 * (low or 1), vocabulary) - low) for low in (0, 10, 100, 1_000, 10_000))
    return max(by_digits, key=lambda ids: ids.count)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompts:
    """The prompts of one cell as JSON text. `rest` is the same for all of them, so it is made once."""

    own_tokens: int
    seed: int
    rest: str
    ids: Ids = ORDINARY

    def own(self, number: int) -> str:
        """Return the unique beginning of a request: the digits of its number, then of the seed."""
        remainder = (self.seed % _WORD) * _COUNTED + number
        ids = []
        for _ in range(self.own_tokens):
            remainder, digit = divmod(remainder, self.ids.count)
            ids.append(self.ids.first + digit)
        return ",".join(map(str, ids))


def prompts(context_tokens: int, seed: int, vocabulary: int | None = None) -> Prompts:
    """Return prompts of `context_tokens` tokens each, at least one; `vocabulary` as in `ids_within`."""
    own, ids = min(context_tokens, _OWN), ids_within(vocabulary)
    rest = "".join(f",{token}" for token in _tokens(seed, context_tokens - own, ids))
    return Prompts(own_tokens=own, seed=seed, rest=rest, ids=ids)


def _tokens(seed: int, count: int, ids: Ids) -> list[int]:
    """Return a linear congruential sequence (Knuth's MMIX constants), which has no cycle within a prompt."""
    state, tokens = seed % _WORD, []
    for _ in range(count):
        state = (state * 6_364_136_223_846_793_005 + 1_442_695_040_888_963_407) % _WORD
        tokens.append(ids.first + (state >> 33) % ids.count)
    return tokens
