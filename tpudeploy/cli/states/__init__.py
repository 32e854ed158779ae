"""VERBS: what `tpudeploy state` can do, one row each. The deed is the module of that name here."""

from __future__ import annotations

from collections.abc import Mapping

from tpudeploy.domain.frozen import frozen


@frozen
class Verb:
    """`words` is what it takes, as help shows it; at least `least` and at most `most` of them, None for any number.

    `options` are those of `tpudeploy state` that mean something to it, beside the ones that all heed.
    """

    does: str
    words: str = ""
    least: int = 0
    most: int | None = 1
    options: frozenset[str] = frozenset()


VERBS: Mapping[str, Verb] = {
    "list": Verb(does="addresses that a state remembers", words="[ADDR...]", most=None),
    "show": Verb(does="all that is remembered of one", words="ADDR", least=1),
    "mv": Verb(
        does="rename a deployment, or move a slice to another index",
        words="SRC DST",
        least=2,
        most=2,
        options=frozenset({"force"}),
    ),
    "rm": Verb(
        does="forget slices without deleting them",
        words="ADDR...",
        least=1,
        most=None,
        options=frozenset({"auto_approve", "dry_run", "force"}),
    ),
    "pull": Verb(does="print a state as it is, or as it was", words="[NAME]", options=frozenset({"serial"})),
    "push": Verb(
        does="put a state in its place, from a file or - for stdin",
        words="FILE",
        least=1,
        options=frozenset({"force"}),
    ),
    "history": Verb(does="earlier states, where the place keeps them", words="[NAME]"),
}
