"""Prompts of an exact length as token ids, each with a prefix of its own: no tokenizer, and nothing to be cached.

vLLM's prefix cache hashes blocks in a chain from the first on, so that another beginning is another prompt whatever
follows. All ids have the same number of digits, so that every request of a cell is as long as the next, in bytes too.
"""

from __future__ import annotations

from tpudeploy.domain.frozen import frozen

_OWN = 8  # tokens of a prompt that are its own: 20,000^8 are more than any seed and count
_COUNTED = 2**40
_WORD = 2**64


@frozen
class Ids:
    """The token ids that prompts are made of: `count` of them from `first` on, all with the same number of digits."""

    first: int
    count: int

    @property
    def last(self) -> int:
        return self.first + self.count - 1


# Between the special tokens and bytes that a vocabulary begins with and the smallest vocabulary of a released family
# (Llama 2's 32,000): ordinary tokens in every model that people serve.
ORDINARY = Ids(first=10_000, count=20_000)


# Sizes of a vocabulary to ask an engine for, largest first: each has all ids of so many digits.
SIZES = (ORDINARY.last + 1, 10_000, 1_000, 100, 10)


def ids_within(vocabulary: int | None) -> Ids:
    """Return the ids for prompts to a model with so many tokens; None where nobody knows how many it has.

    A model with a smaller vocabulary than released ones, as tests train them, gets the digits with most ids in it.
    """
    if vocabulary is None or vocabulary > ORDINARY.last:
        return ORDINARY
    by_digits = (Ids(first=low, count=min(10 * (low or 1), vocabulary) - low) for low in (0, 10, 100, 1_000, 10_000))
    return max(by_digits, key=lambda ids: ids.count)


@frozen
class Prompts:
    """The prompts of one cell as JSON text. `rest` is the same for all of them: so it is written out once."""

    own_tokens: int
    seed: int
    rest: str
    ids: Ids = ORDINARY

    def own(self, number: int) -> str:
        """What only this request begins with: the digits of its number, then of the seed."""
        left = (self.seed % _WORD) * _COUNTED + number
        ids = []
        for _ in range(self.own_tokens):
            left, digit = divmod(left, self.ids.count)
            ids.append(self.ids.first + digit)
        return ",".join(map(str, ids))


def prompts(context_tokens: int, seed: int, vocabulary: int | None = None) -> Prompts:
    """Of `context_tokens` tokens each, at least one; `vocabulary` as in `ids_within`."""
    own, ids = min(context_tokens, _OWN), ids_within(vocabulary)
    rest = "".join(f",{token}" for token in _tokens(seed, context_tokens - own, ids))
    return Prompts(own_tokens=own, seed=seed, rest=rest, ids=ids)


def _tokens(seed: int, count: int, ids: Ids) -> list[int]:
    """A linear congruential sequence (Knuth's MMIX constants): the same for the same seed, and no cycle in a prompt."""
    state, found = seed % _WORD, []
    for _ in range(count):
        state = (state * 6_364_136_223_846_793_005 + 1_442_695_040_888_963_407) % _WORD
        found.append(ids.first + (state >> 33) % ids.count)
    return found
