"""Prompts of an exact length as token ids, each with a prefix of its own: no tokenizer, and nothing to be cached.

vLLM's prefix cache hashes blocks in a chain from the first on, so that another beginning is another prompt whatever
follows. All ids have five digits, so that every request of a cell is as long as the next, in bytes too.
"""

from __future__ import annotations

from tpudeploy.domain.frozen import frozen

# Between the special tokens and bytes that a vocabulary begins with and the smallest vocabulary served (Llama 2's
# 32,000): ordinary tokens in every model.
_FIRST, _COUNT = 10_000, 20_000
_OWN = 8  # tokens of a prompt that are its own: 20,000^8 are more than any seed and count
_COUNTED = 2**40
_WORD = 2**64


@frozen
class Prompts:
    """The prompts of one cell as JSON text. `rest` is the same for all of them: so it is written out once."""

    own_tokens: int
    seed: int
    rest: str

    def own(self, number: int) -> str:
        """What only this request begins with: the digits of its number, then of the seed."""
        left = (self.seed % _WORD) * _COUNTED + number
        ids = []
        for _ in range(self.own_tokens):
            left, digit = divmod(left, _COUNT)
            ids.append(_FIRST + digit)
        return ",".join(map(str, ids))


def prompts(context_tokens: int, seed: int) -> Prompts:
    """Of `context_tokens` tokens each, at least one."""
    own = min(context_tokens, _OWN)
    rest = "".join(f",{token}" for token in _tokens(seed, context_tokens - own))
    return Prompts(own_tokens=own, seed=seed, rest=rest)


def _tokens(seed: int, count: int) -> list[int]:
    """A linear congruential sequence (Knuth's MMIX constants): the same for the same seed, and no cycle in a prompt."""
    state, found = seed % _WORD, []
    for _ in range(count):
        state = (state * 6_364_136_223_846_793_005 + 1_442_695_040_888_963_407) % _WORD
        found.append(_FIRST + (state >> 33) % _COUNT)
    return found
