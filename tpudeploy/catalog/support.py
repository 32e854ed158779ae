"""What tpu-inference's own tests say of a model on a chip: tested, not tested, or tested and not passing."""

from __future__ import annotations

from enum import StrEnum
from functools import cache

from tpudeploy.catalog import _support
from tpudeploy.catalog.families import base_of
from tpudeploy.domain.frozen import frozen


class UpstreamVerdict(StrEnum):
    TESTED = "tested"
    UNTESTED = "untested"
    FAILING = "failing"


@frozen
class ModelSupport:
    """What the matrix says of a model on a generation. `words` are the matrix's own for one that does not pass."""

    support: UpstreamVerdict
    model: str
    generation: str
    words: str = ""

    @property
    def sentence(self) -> str:
        """Return the line for people, "" for a model that passes."""
        source = f"({_support.REPOSITORY}, {_support.DATE})"
        if self.support is UpstreamVerdict.TESTED:
            return ""
        if self.support is UpstreamVerdict.UNTESTED:
            return f"{self.model} is untested on {self.generation} {source}"
        return f"{self.model} does not pass on {self.generation}: {self.words} {source}"

    def to_dict(self) -> dict[str, object]:
        source = {"repository": _support.REPOSITORY, "commit": _support.COMMIT, "date": _support.DATE}
        return {"support": self.support.value, "generation": self.generation, "words": self.words, "source": source}


def model_support(model_id: str, generation: str) -> ModelSupport:
    """Return what the matrix says of a model, or of the model that it is a fine-tune or a copy of.

    A model passes if one of its tests passed, whether or not its benchmark found enough memory.
    """
    cells = _rows().get((generation, model_id)) or _rows().get((generation, base_of(model_id) or ""), ())
    failing = [cell for cell in cells if cell not in ("pass", "untested")]
    verdict = UpstreamVerdict.FAILING if failing else UpstreamVerdict.UNTESTED
    if "pass" in cells:
        verdict = UpstreamVerdict.TESTED
    words = failing[0].replace("_", " ") if verdict is UpstreamVerdict.FAILING else ""
    return ModelSupport(support=verdict, model=model_id, generation=generation, words=words)


@cache
def _rows() -> dict[tuple[str, str], tuple[str, ...]]:
    """Return the cells of each model by generation and id. A variant, such as ID/text-only, counts for its id."""
    rows: dict[tuple[str, str], tuple[str, ...]] = {}
    for line in _support.ROWS.strip().splitlines():
        chip, kind, name, *cells = line.split()
        if kind == "model":
            rows[chip, "/".join(name.split("/")[:2])] = tuple(cells)
    return rows
