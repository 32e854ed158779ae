"""Write docs/compatibility.md from the tables of the catalog: `make compatibility`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from tpudeploy.catalog import _support, engines, releases
from tpudeploy.catalog.families import FAMILIES
from tpudeploy.catalog.generations import GENERATIONS
from tpudeploy.domain.accelerator import Backend

_CHIPS = ("v6e", "tpu7x")
_APIS = {Backend.QUEUED_RESOURCE: "Cloud TPU", Backend.GCE_INSTANCE: "Compute Engine"}
_FOLLOWED_BY = {"pass": "yes", "untested": "untested"}

_HEAD = """\
# Compatibility

What runs with this version of tpudeploy: TPU generations, engine releases, models, features and known faults.
`make compatibility` writes this page from the catalog, the same tables `validate`, `size` and `plan` use.

For one profile, run `tpudeploy validate PROFILE` and `tpudeploy size PROFILE`: they check your exact combination.
"""
_MODELS = """\
A model of one of these families is sized to the block, by its id, its `config.json` or as a copy, fine-tune or
quantized checkpoint. Other models deploy too; tpudeploy then sizes them by the engine's own answers
([Ask the engine without a chip](how-to/ask-the-engine.md)) or reports the checks it had to skip (TPU2120).
"""
_UPSTREAM = f"""\
Results of tpu-inference's own tests ({_support.REPOSITORY} {_support.RELEASE}, {_support.DATE}). "Untested" means
upstream has no result, not failure. Each cell is the best result of its tests: load, accuracy, speed.
"""
_FAULT_HEAD = """\
`validate` reports these (TPU2128) if a profile's release and settings are affected.
"""


def page() -> str:
    """Return the page."""
    parts = (
        _HEAD,
        "## TPU generations\n",
        _table(("generation", "slices", "API", "HBM per chip", "list prices"), _generations()),
        "## Engine releases\n",
        f"Flags, values and variables are checked for these releases. `{releases.NEWEST}` is the default.\n",
        _table(("release", "published", "flags and values", "memory"), _releases()),
        "## Models\n",
        _MODELS,
        _table(("family", "models in the catalog", "architectures"), _families()),
        "### Tested upstream\n",
        _UPSTREAM,
        _table(("model", *_CHIPS), _upstream("model")),
        "## Features\n",
        _table(("feature", *_CHIPS), (*_upstream("feature"), *_upstream("parallelism"))),
        "## Known faults\n",
        _FAULT_HEAD,
        _table(("releases", "what happens", "what to do", "source"), _faults()),
    )
    return "\n".join(parts)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


def _generations() -> Iterable[Sequence[str]]:
    for generation in GENERATIONS:
        sizes = [each.name for each in generation.types]
        shown = f"{sizes[0]} to {sizes[-1]} ({len(sizes)} sizes)"
        apis = sorted({_APIS[backend] for each in generation.types for backend in each.backends})
        priced = f"as of {generation.prices_as_of}" if generation.prices else "unknown"
        yield generation.name, shown, ", ".join(apis), f"{generation.hbm_gib:g} GiB", priced


def _releases() -> Iterable[Sequence[str]]:
    for version in reversed(releases.VERSIONS):
        day = engines.RELEASED.get(version, "")
        published = f"{day[:4]}-{day[4:6]}-{day[6:]}" if day else "unknown"
        yield f"v{version}", published, "checked", "computed" if engines.is_known(version) else "estimated"
    yield "any other", "", "passed on, with a warning", "estimated"


def _families() -> Iterable[Sequence[str]]:
    for family in FAMILIES:
        yield family.name, str(len(family.models)), ", ".join(f"`{name}`" for name in family.architectures)


def _upstream(kind: str) -> Iterable[Sequence[str]]:
    cells: dict[str, dict[str, str]] = {}
    for line in _support.ROWS.strip().splitlines():
        chip, row_kind, name, *results = line.split()
        if row_kind == kind:
            verdict = next((each for each in ("pass", *results) if each in results and each != "untested"), "untested")
            cells.setdefault(name, {})[chip] = _FOLLOWED_BY.get(
                verdict, verdict.replace("_", " ").replace("hbm", "HBM")
            )
    for name in sorted(cells, key=str.casefold):
        row = [cells[name].get(chip, "untested") for chip in _CHIPS]
        if kind != "model" or set(row) != {"untested"}:
            yield (f"`{name}`" if kind == "model" else name.replace("_", " ")), *row


def _faults() -> Iterable[Sequence[str]]:
    for fault in engines.FAULTS:
        where = f"`{fault.flag}: {fault.word}`" if fault.flag else f"`{fault.architecture}`"
        yield f"{fault.first} to {fault.last}, {where}", fault.what, fault.fix, fault.source


if __name__ == "__main__":
    Path(__file__).with_suffix(".md").write_text(page(), encoding="utf-8")
