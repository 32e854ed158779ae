"""Read a scenario from a file or a mapping: every key has a reader, and a row that could never strike is refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from inspect import signature
from pathlib import Path
from typing import Any, TypeVar

import yaml

from tpudeploy.domain.errors import ScenarioInvalid
from tpudeploy.emulator import habits
from tpudeploy.emulator.machine.facts import Behaviour
from tpudeploy.emulator.scenario import ComputeEngineFacts, Scenario, ScenarioProject, ScenarioQuota
from tpudeploy.emulator.service import method_names
from tpudeploy.emulator.timings import Timings
from tpudeploy.emulator.trouble import Trouble, suggest


def load_scenario(source: Mapping[str, Any] | Path | str | None, *, timings: Timings, paced: bool = False) -> Scenario:
    """Return a scenario; `timings` and `paced` are those that it does not name. Raise ScenarioInvalid."""
    tree = dict(source) if isinstance(source, Mapping) else _read(source)
    try:
        return Scenario(**_settings(tree, timings, paced=paced))
    except (TypeError, ValueError, KeyError, AttributeError) as cause:
        raise ScenarioInvalid(
            f"The scenario cannot be played: {cause}", hint="its format stands in tpudeploy/emulator/scenario.py"
        ) from cause


def _read(source: Path | str | None) -> dict[str, Any]:
    if source is None:
        return {}

    path = Path(source)
    if path.exists() and not path.is_file():  # a FIFO or a device may never end
        raise ScenarioInvalid(f"The scenario `{path}` is not a regular file")
    try:
        text = path.read_text("utf-8")
        parsed = json.loads(text) if path.suffix == ".json" else yaml.safe_load(text) or {}
    except (OSError, ValueError, yaml.YAMLError) as cause:
        reason = getattr(cause, "strerror", None) or cause  # without the number and the path of an OSError
        raise ScenarioInvalid(f"The scenario `{path}` cannot be read: {reason}") from cause
    if not isinstance(parsed, dict):
        raise ScenarioInvalid(f"The scenario `{path}` is not a mapping of settings")
    return parsed


def _settings(tree: dict[str, Any], timings: Timings, *, paced: bool) -> dict[str, Any]:
    nodes = tree.pop("nodes", "real")
    if nodes not in ("real", "simulated"):
        raise ValueError(f"`nodes` is real or simulated, not {nodes!r}")
    settings: dict[str, Any] = {"simulated": nodes == "simulated"}
    for key, value in tree.items():
        if key not in _READERS:
            raise ValueError(f"unknown key `{key}`{suggest(key, (*_READERS, 'nodes'))}")
        settings[key] = _READERS[key](value)
    changes = {key: float(value) for key, value in tree.get("timings", {}).items()}
    settings["timings"] = replace(timings, **changes)
    settings["trouble"] = settings.get("trouble", ()) + settings.pop("habits", ())
    boot = tree.get("boot", {})
    own_load = {"load": dict(boot["load"])} if isinstance(boot.get("load"), Mapping) else {}
    settings["boot"] = Behaviour(**{"boot_seconds": settings["timings"].boot, "paced": paced, **boot, **own_load})
    return settings


T = TypeVar("T")


def _parse(kind: Callable[..., T], key: str, settings: Mapping[str, Any]) -> T:
    """Return the facts of one key. Raise ValueError for an unknown name among them."""
    names = list(signature(kind).parameters)
    for name in settings:
        if name not in names:
            raise ValueError(f"`{key}` takes no `{name}`{suggest(name, names)}")
    return kind(**settings)


def _limit(row: Mapping[str, Any]) -> ScenarioQuota:
    zonal, api = "zone" in row, row.get("api", "tpu")
    keys = {"class", "zone" if zonal else "region", "limit"}
    if set(row) - {"api"} != keys or row["class"] not in CLASSES or (api != "tpu" and (zonal or api != "compute")):
        raise ValueError(f"a quota row is {{class: {'|'.join(CLASSES)}, zone or region: …, limit: …}}, not {dict(row)}")
    place = row["zone" if zonal else "region"]
    return ScenarioQuota(class_=row["class"], zonal=zonal, place=place, chips=int(row["limit"]), api=api)


def _trouble(row: Mapping[str, Any]) -> Trouble:
    """Return a row of trouble. Raise ValueError where it could never strike, because no method has its name."""
    trouble = Trouble.parse(row)
    names = method_names()
    for pattern in trouble.patterns["method"].split("|"):
        if not any(fnmatchcase(name, pattern) for name in names):
            raise ValueError(f"no method fits `{pattern}`{suggest(pattern, names)}")
    return trouble


CLASSES = ("preemptible", "on-demand")


def _billed_from(word: object) -> str:
    if word not in {"created", "ready"}:
        raise ValueError(f"`billed_from` is created or ready, not {word!r}")
    return str(word)


_READERS: Mapping[str, Any] = {
    "seed": int,
    "jitter": float,
    "timings": dict,
    "boot": dict,
    "quota": lambda rows: tuple(_limit(row) for row in rows),
    "creates_per_minute": int,
    "page_most": int,
    "offers": lambda zones: {zone: tuple(types) for zone, types in zones.items()},
    "secrets": dict,
    "denied_secrets": tuple,
    "buckets": tuple,
    "versioned_buckets": tuple,
    "project": lambda settings: _parse(ScenarioProject, "project", settings),
    "compute_engine": lambda settings: _parse(ComputeEngineFacts, "compute_engine", settings),
    "keeps_operations": float,
    "billed_from": _billed_from,
    "habits": lambda rows: tuple(Trouble.parse(row) for habit in rows for row in habits.troubles(habit)),
    "trouble": lambda rows: tuple(_trouble(row) for row in rows),
}
