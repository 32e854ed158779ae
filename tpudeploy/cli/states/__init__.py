"""List the verbs of `tpudeploy state`. The module of the same name here implements each one."""

from __future__ import annotations

from collections.abc import Mapping

from tpudeploy.domain.frozen import frozen


@frozen
class Verb:
    """A verb. It takes from `least` to `most` of the arguments `words`, as help shows them; None means any number.

    `options` are the options of `tpudeploy state` that it has, beside those of all verbs.
    """

    does: str
    words: str = ""
    least: int = 0
    most: int | None = 1
    options: frozenset[str] = frozenset()


VERBS: Mapping[str, Verb] = {
    "list": Verb(does="list the addresses in the states", words="[ADDR...]", most=None),
    "show": Verb(does="show everything that the state records about one address", words="ADDR", least=1),
    "mv": Verb(
        does="rename a deployment, or move a slice to another index",
        words="SRC DST",
        least=2,
        most=2,
        options=frozenset({"force"}),
    ),
    "rm": Verb(
        does="remove slices from the state without deleting them",
        words="ADDR...",
        least=1,
        most=None,
        options=frozenset({"auto_approve", "dry_run", "force"}),
    ),
    "pull": Verb(does="print the current or an earlier state", words="[NAME]", options=frozenset({"serial"})),
    "push": Verb(
        does="write a state from a file, or - for stdin",
        words="FILE",
        least=1,
        options=frozenset({"force"}),
    ),
    "history": Verb(does="list earlier states, if the backend keeps them", words="[NAME]"),
}
