"""Labels of what differs between servers: `E2B, v6e-1, fp8`. What all of them share is left out."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence

from tpudeploy.domain.deployment import Json
from tpudeploy.features.benchmark.run import Driver, Run

_BY_OTHERS = {Driver.PUBLISHED: "published", Driver.GKE_QUICKSTART: "by others"}
_SWITCH = {True: "on", False: "off"}
# What an engine says of itself that readers tell servers apart by.
_SETTINGS = (
    *("kv_cache_dtype", "tensor_parallel_size", "max_num_seqs", "max_num_batched_tokens", "block_size", "dtype"),
    *("server", "version"),
)


def labels(servers: Sequence[Mapping[str, Json]]) -> tuple[str, ...]:
    """Return a label for each server, by the values of the paths that vary among them."""
    paths = list(dict.fromkeys(path for values in servers for path in values))
    varied = [path for path in paths if len({text_of(values.get(path)) for values in servers}) > 1]
    columns = varied or paths[:1]
    texts = {path: _texts(path, [values.get(path) for values in servers]) for path in columns}
    return tuple(", ".join(texts[path][place] for path in columns) for place in range(len(servers)))


def run_labels(runs: Sequence[Run]) -> tuple[str, ...]:
    """Return a label for each run, by its server; runs of one server are numbered in their order."""
    texts = labels([_values(run) for run in runs])
    totals, counts = Counter(texts), Counter[str]()
    numbered = []
    for text in texts:
        counts[text] += 1
        numbered.append(f"{text}, run {counts[text]}" if totals[text] > 1 else text)
    return tuple(numbered)


def text_of(value: Json) -> str:
    """Return a value as a person writes it."""
    return value if isinstance(value, str) else json.dumps(value)


def _values(run: Run) -> Mapping[str, Json]:
    subject = run.subject
    values: dict[str, Json] = {
        "model.id": subject.model_id or subject.model,
        "tpu.type": subject.hardware or "other hardware",
        "source": _BY_OTHERS.get(run.driver, "measured"),
    }
    return values | {name: subject.engine[name] for name in _SETTINGS if name in subject.engine}


def short_models(ids: Sequence[str]) -> dict[str, str]:
    """Return a short name for each model id: its words that the others do not share, at their ends."""
    names = {each: each.rstrip("/").rpartition("/")[2] for each in dict.fromkeys(ids)}
    words = {each: name.split("-") for each, name in names.items()}
    if len(words) < 2:  # noqa: PLR2004 - of one, nothing differs
        return names
    lists = list(words.values())
    head = _shared(lists)
    tail = _shared([each[head:][::-1] for each in lists])
    return {each: "-".join(own[head : len(own) - tail]) or names[each] for each, own in words.items()}


def _shared(lists: Sequence[Sequence[str]]) -> int:
    """Return how many first words all of them share."""
    count = 0
    for column in zip(*lists, strict=False):
        if len(set(column)) > 1:
            break
        count += 1
    return count


def _texts(path: str, values: Sequence[Json]) -> list[str]:
    if path == "model.id":
        short = short_models([text_of(value) for value in values])
        return [short[text_of(value)] for value in values]
    name = path.rpartition(".")[2]
    return [_text(name, value) for value in values]


def _text(name: str, value: Json) -> str:
    if value is None:
        return f"{name} unknown" if name in _SETTINGS else f"no {name}"
    if isinstance(value, bool):
        return f"{name} {_SWITCH[value]}"
    return value if isinstance(value, str) and not value.isdecimal() else f"{name} {text_of(value)}"
