"""Canaries: what a hostile profile or agent is after, where it lies, and the ways to it through a profile."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from command_line import CommandLine

CANARY = "canary-7d20b1"
# Names that say what they are, and names that do not.
VARIABLES = {"DEPLOY_TOKEN": f"{CANARY}-a", "DB_PASSWORD": f"{CANARY}-b", "REGION_NOTE": f"{CANARY}-c"}
GIVEN = f"{CANARY}-number-41117"
NUMBER = "41117"

_MODEL = {"architectures": [f"Canary{CANARY}"], "model_type": CANARY, "hidden_size": CANARY, CANARY: CANARY}
# Whatever a stranger's file may hold: lines that are no YAML, a mapping, a profile, a model's configuration.
FILES = {
    "shadow": f"root:$6${CANARY}:19000:0:99999:7:::\ndaemon:*:{CANARY}:0\n",
    "keys.yaml": f"{CANARY}: 1\npassword: {CANARY}\n{CANARY}-too: [{CANARY}]\n",
    "profile.yaml": f"version: 1\nname: gemma\ntpu: {{type: {CANARY}}}\nserving: {{dtype: {CANARY}, port: {NUMBER}7}}\n",
    "fine.yaml": f"health: {{prompt: {CANARY}}}\n",
    "broken.yaml": f"a: [{CANARY}\n",
    "config.json": json.dumps(_MODEL),
    "binary": f"{CANARY}\xff".encode("latin1").decode("latin1"),
}
HIDDEN = {".env": f"TOKEN: {CANARY}\n", ".git/config": f"[http]\nextraheader = {CANARY}\n", ".s.yaml": f"a: {CANARY}\n"}


@dataclass(frozen=True, kw_only=True)
class Payload:
    """One way to a canary. `text` is the profile, `overlay` an operator's file over it that the author can replace."""

    name: str
    text: str
    overlay: str | None = None


def plant(at: CommandLine, outside: Path, patch: pytest.MonkeyPatch) -> None:
    """Set the variables; write the files outside the project, the hidden ones inside, and the links that lead out."""
    for name, value in VARIABLES.items():
        patch.setenv(name, value)
    patch.setenv("PORT_NUMBER", NUMBER)
    outside.mkdir(exist_ok=True)
    for name, text in FILES.items():
        (outside / name).write_bytes(text.encode("latin1"))
        (at.folder / f"link-{name}.yaml").symlink_to(outside / name)
    (at.folder / "linked").symlink_to(outside, target_is_directory=True)
    (at.folder / "chain.yaml").symlink_to("link-keys.yaml.yaml")
    for name, text in HIDDEN.items():
        (at.folder / name).parent.mkdir(exist_ok=True)
        (at.folder / name).write_text(text, encoding="utf-8")


def of_environment() -> Iterator[Payload]:
    """A reference to a variable in every place of a profile, whole and in the middle of a word, with a default too."""
    for reference in (
        "${env:DEPLOY_TOKEN}",
        "x${env:DB_PASSWORD}",
        "${env:REGION_NOTE}",
        "${env:REGION_NOTE:-fine}",
        "${env:PORT_NUMBER}",
    ):
        for place, text in _places(reference).items():
            yield Payload(name=f"{place}: {reference}", text=text)


def of_files(outside: Path) -> Iterator[Payload]:
    """A file of somebody else's wherever a profile names one: by its path, by a way up, by links, hidden."""
    paths = [
        *(str(outside / name) for name in FILES),
        *(f"../{outside.name}/{name}" for name in FILES),
        *(f"link-{name}.yaml" for name in FILES),
        *(f"linked/{name}" for name in FILES),
        "chain.yaml",
        *HIDDEN,
        "/proc/self/environ",
        str(outside / f"nope-{CANARY}"),
    ]
    for path in paths:
        yield Payload(name=f"extends: {path}", text=_profile({"extends": path}))
        yield Payload(name=f"model.config: {path}", text=_profile({"model": {"id": "o/m", "config": path}}))
    yield Payload(name="an overlay that is a link", text=_profile({}), overlay="link-keys.yaml.yaml")
    yield Payload(name="an overlay in a linked folder", text=_profile({}), overlay="linked/profile.yaml")


def _profile(over: Mapping[str, object]) -> str:
    tree: dict[str, object] = {
        "version": 1,
        "name": "gemma",
        "model": {"id": "google/gemma-4-E2B-it"},
        "tpu": {"type": "v6e-1"},
        "serving": {"image": "vllm/vllm-tpu:v0.32.0", "max_model_len": 16384},
        "placement": {"zones": ["us-east5-a"], "provisioning": ["spot"]},
    }
    for key, value in over.items():
        previous = tree.get(key)
        tree[key] = {**previous, **value} if isinstance(previous, dict) and isinstance(value, dict) else value
    return json.dumps(tree)


def _places(text: str) -> Mapping[str, str]:
    serving = {
        "image": text,
        "dtype": text,
        "max_model_len": text,
        "hbm_utilization": text,
        "port": text,
        "shm_size": text,
        "xla_cache_path": text,
        "xla_cache_bucket": text,
        "container_name": text,
        "volumes": {"/data": text},
        "args": {"served_model_name": text},
        "args of JSON": {"hf_overrides": {"deep": [text]}},
        "args of a number": {"seed": text},
        "env": {"B": text},
        "env that is read": {"MIN_TOKEN_BUCKET": text, "SKIP_JAX_PRECOMPILE": text},
        "setup": [f"echo {text}"],
        "plain_env": [text],
    }
    placement = {
        "project": text,
        "zones": [text],
        "provisioning": [text],
        "reservation": text,
        "max_run_duration": text,
        "labels": {"team": text},
        "service_account": text,
        "network": {"network": text, "tags": [text]},
    }
    return {
        **{f"serving.{key}": _profile({"serving": {key.split()[0]: value}}) for key, value in serving.items()},
        **{f"placement.{key}": _profile({"placement": {key: value}}) for key, value in placement.items()},
        "version": _profile({"version": text}),
        "name": _profile({"name": text}),
        "extends": _profile({"extends": text}),
        "model.id": _profile({"model": {"id": text}}),
        "model.revision": _profile({"model": {"revision": text}}),
        "model.mirror": _profile({"model": {"mirror": text}}),
        "model.config": _profile({"model": {"config": text}}),
        "tpu.type": _profile({"tpu": {"type": text}}),
        "tpu.runtime_version": _profile({"tpu": {"runtime_version": text}}),
        "replicas": _profile({"replicas": text}),
        "secrets": _profile({"secrets": {"HF_TOKEN": text}}),
        "lifecycle.ignore_changes": _profile({"lifecycle": {"ignore_changes": [text]}}),
        "health.prompt": _profile({"health": {"prompt": text}}),
        "health.timeout": _profile({"health": {"timeout": text}}),
        "an unknown key": _profile({"nothing": text}),
        "plain, as a number is read": f"{{version: 1, name: gemma, replicas: '{text}'}}",
    }
