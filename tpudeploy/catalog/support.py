"""What tpu-inference's own tests say of a model on a chip: tested, not tested, or tested and not passing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache

from tpudeploy.catalog import _support
from tpudeploy.catalog.families import base_of
from tpudeploy.domain.deployment import Deployment


class UpstreamVerdict(StrEnum):
    TESTED = "tested"
    UNTESTED = "untested"
    FAILING = "failing"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSupport:
    """What the matrix says of a model on a generation. `words` are the matrix's own for one that does not pass.

    `features` are those of a deployment that no test of the generation passed. `release` is the engine's, "" if it is
    not known: the matrices are of one release, and no package of the engine has any.
    """

    support: UpstreamVerdict
    model: str
    generation: str
    words: str = ""
    features: tuple[str, ...] = ()
    release: str = ""

    @property
    def sentence(self) -> str:
        """Return the line for people, "" for a model that passes with all features."""
        claims = []
        if self.support is UpstreamVerdict.UNTESTED:
            claims.append(f"{self.model} is untested on {self.generation}")
        if self.support is UpstreamVerdict.FAILING:
            claims.append(f"{self.model} does not pass on {self.generation}: {self.words}")
        if self.features:
            verb = "are" if len(self.features) > 1 else "is"
            claims.append(f"{' and '.join(self.features)} {verb} untested on {self.generation}")
        other = f"; no tests of {self.release} are known" if self.release not in ("", _support.RELEASE) else ""
        source = f"({_support.REPOSITORY} {_support.RELEASE}, {_support.DATE}{other})"
        return f"{'; '.join(claims)} {source}" if claims else ""

    def to_dict(self) -> dict[str, object]:
        source = {
            "repository": _support.REPOSITORY,
            "release": _support.RELEASE,
            "commit": _support.COMMIT,
            "date": _support.DATE,
            "is_of_the_release": self.release == _support.RELEASE,
        }
        return {
            "support": self.support.value,
            "generation": self.generation,
            "words": self.words,
            "features": list(self.features),
            "source": source,
        }


def model_support(model_id: str, generation: str, *, release: str = "") -> ModelSupport:
    """Return what the matrix says of a model, or of the model that it is a fine-tune or a copy of.

    `release` is that of the engine which will serve it, "" if it is not known.

    A model passes if one of its tests passed, whether or not its benchmark found enough memory.
    """
    cells = _rows().get((generation, model_id)) or _rows().get((generation, base_of(model_id) or ""), ())
    failing = [cell for cell in cells if cell not in ("pass", "untested")]
    verdict = UpstreamVerdict.FAILING if failing else UpstreamVerdict.UNTESTED
    if "pass" in cells:
        verdict = UpstreamVerdict.TESTED
    words = failing[0].replace("_", " ") if verdict is UpstreamVerdict.FAILING else ""
    return ModelSupport(support=verdict, model=model_id, generation=generation, words=words, release=release)


# Features by their names for people, the rows of the matrices that test them, and the settings that use them.
_FEATURES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("context parallelism", "CP", ("decode_context_parallel_size", "prefill_context_parallel_size")),
    ("expert parallelism", "EP", ("enable_expert_parallel",)),
    ("pipeline parallelism", "PP", ("pipeline_parallel_size",)),
    ("LoRA", "LoRA_Torch", ("enable_lora",)),
)
_OFF = (None, False, 0, 1)


def deployment_support(deployment: Deployment) -> ModelSupport:
    """Return what the matrices say of a deployment's model and features on its generation."""
    generation, verdicts = deployment.accelerator.generation, _feature_verdicts()
    uses = [
        (title, row)
        for title, row, keys in _FEATURES
        if any(deployment.attributes.get(f"serving.args.{key}") not in _OFF for key in keys)
    ]
    if deployment.accelerator.hosts > 1:
        uses.append(("a slice of several hosts", "multi-host"))
    # Of a generation that is in no matrix, no feature is tested: the line about the model says so.
    is_known = any(chip == generation for chip, _ in verdicts)
    features = tuple(title for title, row in uses if is_known and not verdicts.get((generation, row), False))
    verdict = model_support(deployment.model_id, generation, release=deployment.engine.release or "")
    return replace(verdict, features=features)


@cache
def _feature_verdicts() -> dict[tuple[str, str], bool]:
    """Return whether a test passed, by generation and feature."""
    rows = (line.split() for line in _support.ROWS.strip().splitlines())
    return {(chip, name): "pass" in cells for chip, kind, name, *cells in rows if kind != "model"}


@cache
def _rows() -> dict[tuple[str, str], tuple[str, ...]]:
    """Return the cells of each model by generation and id. A variant, such as ID/text-only, counts for its id."""
    rows: dict[tuple[str, str], tuple[str, ...]] = {}
    for line in _support.ROWS.strip().splitlines():
        chip, kind, name, *cells = line.split()
        if kind == "model":
            rows[chip, "/".join(name.split("/")[:2])] = tuple(cells)
    return rows
