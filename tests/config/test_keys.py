"""Every key of the profile format does something: another valid value of it changes what it is for.

A key acts if it changes the startup script (with the docker command), a request's body, the sizing, or a field of the
deployment that something reads. The attributes and their fingerprints don't count: each key is among them, used or not.
"""

from __future__ import annotations

import ast
import copy
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import pytest
from pydantic.fields import FieldInfo

from tpudeploy import loading
from tpudeploy.adapters import assets
from tpudeploy.adapters.files import FileReader
from tpudeploy.config import keys
from tpudeploy.config.parse import parse
from tpudeploy.domain.cost_budget import CostBudget
from tpudeploy.domain.deployment import (
    Candidate,
    CompileCache,
    Container,
    Deployment,
    HealthGoal,
    Lifecycle,
    Mirror,
    Network,
    OwnFile,
    Scale,
    Script,
)
from tpudeploy.domain.names import SliceName
from tpudeploy.domain.router import Router
from tpudeploy.node import render
from tpudeploy.node.fingerprint import EFFECTS, effect
from tpudeploy.node.request import slice_request

Tree = dict[str, Any]
PACKAGE = Path(loading.__file__).parent
BASE: Tree = {
    "version": 1,
    "name": "demo",
    "model": {"id": "google/gemma-4-E2B-it"},
    "tpu": {"type": "v6e-4"},
    "serving": {"image": "vllm/vllm-tpu:v0.32.0"},
}
_FLEX = {"provisioning": ["flex-start"], "max_run_duration": "6h"}
_RESERVATION = "projects/my-project/locations/us-east5-b/reservations/"
_BY_TOPOLOGY = {"type": None, "generation": "v6e", "topology": "2x2"}
# What a key needs beside it to be valid or to matter. The longest prefix of its path wins; null deletes.
BESIDE: Mapping[str, Tree] = {
    "tpu.generation": {"tpu": _BY_TOPOLOGY},
    "tpu.topology": {"tpu": _BY_TOPOLOGY},
    "placement.max_run_duration": {"placement": _FLEX},
    "placement.reservation": {"placement": {"provisioning": ["reserved"], "reservation": f"{_RESERVATION}first"}},
    "lifecycle.on_run_end": {"placement": _FLEX},
    "budget": {"lifecycle": {"end": "24h"}},
    "scale": {"scale": {"max": 4}},
    "router": {"router": {"kind": "smg"}},
    "router.kind": {"router": {"kind": "envoy"}},
    "router.machine": {"router": {"kind": "smg", "host": "vm"}},
}
# Another value, where the first example or choice is not one that is valid and differs.
OTHER: Mapping[str, Any] = {
    "model.id": "google/gemma-4-E4B-it",
    "model.config": "config.json",
    "tpu.type": "v6e-8",
    "tpu.generation": "v5e",
    "tpu.topology": "2x4",
    "tpu.runtime_version": "v2-alpha-tpuv6e-next",
    "tpu.boot_disk_size": "300GiB",
    "serving.data_parallel_size": 2,
    "serving.tensor_parallel_size": 2,
    "boot.before": ["before.sh"],
    "boot.after": ["after.sh"],
    "placement.provisioning": ["spot"],
    "placement.reservation": f"{_RESERVATION}second",
    "placement.valid_until": "3h",
    "placement.network.network": "other",
    "placement.network.subnetwork": "other",
    "placement.network.tags": ["allow-vllm"],
    "health.timeout": "10m",
    "health.prompt": "Say goodbye.",
    "lifecycle.max_unavailable": 2,
    "lifecycle.drain_timeout": "5m",
    "scale.max": 5,
    "scale.min": 2,
    "scale.kv_cache": 0.5,
    "scale.cooldown": "5m",
    "router.port": 8081,
    "router.policy": "round_robin",
    "router.machine": "e2-medium",
}
# The keys that act before there is a deployment, with what shows that they do.
ELSEWHERE: Mapping[str, str] = {
    "version": "the format itself has one version: tests/config/test_problems_by_key.py",
    "extends": "the profile is merged over it when it is read: tests/config/test_layering.py",
    "serving.plain_env": "it decides which variables are refused as secrets: tests/config/test_credentials.py",
}
# What a deployment is made of: each field of it must be read by a module besides the one that sets it.
NOUNS = (
    *(
        Deployment,
        Candidate,
        Container,
        CompileCache,
        CostBudget,
        Mirror,
        OwnFile,
        Network,
        HealthGoal,
        Lifecycle,
        Scale,
        Router,
    ),
)
SETTER = "planning/resolve.py"
SEED = """    seed: int | None = Field(
        None,
        ge=0,
        description="Seed of the sampler. Default: vLLM's (0). Source: vLLM's --seed.",
        examples=[7],
    )
"""
_FILES = {"before.sh": "true\n", "after.sh": "true\n", "config.json": '{"num_hidden_layers": 3}\n'}


def leaves() -> Iterator[str]:
    """Yield the path of each key that holds no section."""
    for path in keys.all_keys():
        if keys.fields_at(path) is None:
            yield ".".join(map(str, path))


def key_at(path: str) -> FieldInfo:
    *above, name = path.split(".")
    section = keys.fields_at(tuple(above))
    assert section is not None
    return section[name]


def merge(tree: Tree, over: Mapping[str, Any]) -> Tree:
    for name, value in over.items():
        if value is None:
            tree.pop(name, None)
        elif isinstance(value, dict) and isinstance(tree.get(name), dict):
            merge(tree[name], value)
        else:
            tree[name] = copy.deepcopy(value)
    return tree


def base_for(path: str) -> Tree:
    """Return a valid profile in which this key matters."""
    prefix = path
    while prefix and prefix not in BESIDE:
        prefix = prefix.rpartition(".")[0]
    return merge(copy.deepcopy(BASE), BESIDE.get(prefix, {}))


def values_of(annotation: Any) -> Iterator[Any]:
    """Yield the values that a type lists."""
    if annotation is bool:
        yield from (True, False)
    elif get_origin(annotation) is Literal:
        yield from get_args(annotation)
    elif get_origin(annotation) in (Union, UnionType, Annotated):
        for alternative in get_args(annotation):
            yield from values_of(alternative)


def value_at(tree: Tree, path: str) -> Any:
    value: Any = tree
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return key_at(path).default if value is None else value


def other_value(path: str) -> Any:
    """Return another value than the key has in its base."""
    if path in OTHER:
        return OTHER[path]
    key, now = key_at(path), value_at(base_for(path), path)
    candidates = (*(key.examples or ()), *values_of(key.annotation))
    others = [value for value in candidates if value != now]
    assert others, f"{path} has no example besides its default: add one to its field, or a row to OTHER."
    return others[0]


def with_value(path: str, value: Any) -> Tree:
    for name in reversed(path.split(".")):
        value = {name: value}
    return merge(base_for(path), value)


def what_acts(tree: Tree, folder: Path) -> dict[str, Any]:
    """Return what a profile is for, without the attributes."""
    for name, text in _FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    file = folder / "p.yaml"
    file.write_text(json.dumps(tree), encoding="utf-8")
    profile = parse(str(file), FileReader(), environment={})
    resolved = loading.deployment(profile, project="from-the-environment")
    deployment = without_attributes(resolved)
    slice_name = SliceName(deployment=deployment.name, lineage="0" * 8, replica=0, attempt=0)
    return {
        "startup script": render.startup_script(deployment, assets.templates(), ""),
        "requests": [slice_request(deployment, slice_name, place) for place in deployment.candidates],
        "sizing": resolved.budget,
        "policy": deployment,
    }


def without_attributes(deployment: Deployment) -> Deployment:
    machine = deployment.router_machine
    # The machine's script has a fingerprint in it; what the router is told is in `Deployment.router`.
    plain = None if machine is None else without_attributes(machine)
    return replace(deployment, attributes={}, origins={}, startup_script=Script(""), router_machine=plain)


def differences(path: str, folder: Path) -> list[str]:
    """Return what another value of the key changes."""
    before, after = what_acts(base_for(path), folder), what_acts(with_value(path, other_value(path)), folder)
    return [name for name in before if before[name] != after[name]]


def test_the_keys_that_act_elsewhere_exist() -> None:
    assert set(ELSEWHERE) | set(OTHER) <= set(leaves())
    assert all(any(leaf == row or leaf.startswith(f"{row}.") for leaf in leaves()) for row in BESIDE)


@pytest.mark.parametrize("path", sorted(set(leaves()) - set(ELSEWHERE)))
def test_another_value_of_a_key_changes_something(path: str, tmp_path: Path) -> None:
    assert differences(path, tmp_path), f"{path} is accepted, and nothing that it could be for depends on it."


@pytest.mark.parametrize("has_row", [False, True], ids=["declared alone", "with its row"])
def test_a_key_that_is_only_declared_is_found(has_row: bool, tmp_path: Path) -> None:
    """Plant `serving.seed` in a copy of the package, as somebody would who forgets what CONTRIBUTING says."""
    copy_of_package = tmp_path / "tpudeploy"
    shutil.copytree(PACKAGE, copy_of_package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(PACKAGE.parent / "templates", tmp_path / "templates")
    insert(copy_of_package / "config" / "schema" / "serving.py", SEED, before="    padding_gap: int | None = Field(\n")
    if has_row:
        row = '    ("serving", "seed"): "seed",\n'
        insert(copy_of_package / "config" / "keys.py", row, before='    ("serving", "port"): "port",\n')
    code = (
        "import sys, pathlib; sys.path.append(sys.argv[1]); import test_keys; "
        "assert 'serving.seed' in set(test_keys.leaves()) - set(test_keys.ELSEWHERE); "
        "print(test_keys.differences('serving.seed', pathlib.Path.cwd()))"
    )
    command = [sys.executable, "-c", code, str(Path(__file__).parent)]
    process = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert process.stdout == ("['startup script', 'policy']\n" if has_row else "[]\n")


def insert(file: Path, text: str, *, before: str) -> None:
    whole = file.read_text(encoding="utf-8")
    assert before in whole
    file.write_text(whole.replace(before, text + before), encoding="utf-8")


@pytest.mark.parametrize("noun", NOUNS, ids=lambda noun: noun.__name__)
def test_each_field_of_a_deployment_is_read_by_something(noun: type[Any]) -> None:
    """A key that ends in a field that only `resolve` names changes the policy of a deployment, and still does nothing."""
    assert {field.name for field in fields(noun)} - reads() == set()


@cache
def reads() -> frozenset[str]:
    """Return the names of all attributes that the package reads, besides the one that sets them."""
    files = (file for file in PACKAGE.rglob("*.py") if file.relative_to(PACKAGE).as_posix() != SETTER)
    trees = (ast.parse(file.read_text(encoding="utf-8")) for file in files)
    return frozenset(
        node.attr
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
    )


def test_each_key_has_one_flag_or_variable_and_each_of_these_is_of_a_key() -> None:
    flags, variables = keys.FLAG_OF_KEY, keys.VARIABLE_OF_KEY
    assert set(flags) | set(variables) <= set(keys.all_keys())
    assert not set(flags) & set(variables)
    assert len(set(flags.values())) == len(flags)
    assert len(set(variables.values())) == len(variables)


# The attributes that have no key: those of the router's VM, which are made of the router's.
_WITHOUT_A_KEY = {"vm"}
# The keys of the whole deployment, which are attributes of no slice.
_OF_NO_SLICE = {"version", "name", "extends", "replicas", "notify", "notify_key"}


def test_each_key_has_the_effect_of_its_change_and_each_effect_is_of_a_key() -> None:
    paths = {".".join(map(str, path)) for path in keys.all_keys()}
    assert set(EFFECTS) - _WITHOUT_A_KEY <= paths
    for path in set(leaves()) - _OF_NO_SLICE:
        effect(path)
