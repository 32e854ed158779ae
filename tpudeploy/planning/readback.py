"""Read the server of a slice back from its startup script: the values of a profile that was not kept.

A text of another form is not interpreted. The fingerprint of the result shows whether it is complete.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from tpudeploy import catalog
from tpudeploy.catalog import flags
from tpudeploy.catalog.backends import import_id
from tpudeploy.catalog.flags import VLLM_VERSION
from tpudeploy.config.keys import FLAG_OF_KEY, VARIABLE_OF_KEY
from tpudeploy.domain.accelerator import DEFAULT_BACKEND
from tpudeploy.domain.deployment import Json, Provisioning
from tpudeploy.domain.names import Address
from tpudeploy.domain.orphans import CloudResource, is_label_of_ours
from tpudeploy.node.node_facts import SCRIPT_KEY, SPEC_KEY
from tpudeploy.node.serving import AFTER_SETUP, MIRROR_FOLDER

_DOCKER_RUN = ("docker", "run", "-d", "--name")
_ROOT = "$root"
_KEYS = {flag: path for path, flag in FLAG_OF_KEY.items()}
_VARIABLES = {variable: str(path[-1]) for path, variable in VARIABLE_OF_KEY.items()}
_SECRET = re.compile(r"(?:secrets/)?(?P<id>[^/]+)/versions/latest")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptServer:
    """`model` and `serving` as a profile writes them; `secrets` by environment variable."""

    model: Mapping[str, Json]
    serving: Mapping[str, Json]
    secrets: Mapping[str, str]


def read_script(script: str) -> ScriptServer | None:
    """Return the server that a startup script starts, or None for a script that tpudeploy did not render."""
    try:
        return _read_script(script)
    except (ValueError, IndexError):
        # The text looks like a script of tpudeploy, but someone has changed it.
        return None


def _read_script(script: str) -> ScriptServer | None:
    words = _array(script, "docker_run")
    if words[:4] != _DOCKER_RUN:
        return None
    options, (image, *command) = _docker_options(words[7:])  # after the name, --privileged and --net=host
    setup, (vllm, serve, model, *arguments) = _split_setup(command)
    if (vllm, serve) != ("vllm", "serve"):
        return None
    model_keys: dict[str, Json] = {"id": model}
    serving: dict[str, Json] = {"image": image, "container_name": words[4]}
    args: dict[str, Json] = {}
    variables: dict[str, Json] = {}
    sections = {"model": model_keys, "serving": serving, "args": args}
    for flag, value in _flags(arguments):
        section, key = _KEYS.get(flag, ("args", flag.replace("-", "_")))
        sections[str(section)][str(key)] = value
    if model == MIRROR_FOLDER:
        model_keys |= {"id": args.pop("served_model_name", model), "mirror": _bucket(script, "mirror")}
    for text in options["-e"]:
        name, is_set, value = text.partition("=")
        if is_set and name in _VARIABLES:
            serving[_VARIABLES[name]] = _number(value)
        elif is_set:
            variables[name] = value
    # No volume at all is a choice of the profile. Every other empty value is the default.
    volumes = map(_volume, options["-v"])
    serving["volumes"] = {host: path for host, path in volumes if path != MIRROR_FOLDER}
    optional: dict[str, Json] = {
        "shm_size": "".join(options["--shm-size"]),
        "env": variables,
        "setup": list(setup),
        "args": args,
        "xla_cache_bucket": _bucket(script, "cache"),
    }
    serving |= {key: value for key, value in optional.items() if value}
    secrets = zip(_array(script, "secret_variables"), _array(script, "secret_resources"), strict=False)
    return ScriptServer(
        model=model_keys, serving=serving, secrets={variable: _secret(resource) for variable, resource in secrets}
    )


def _docker_options(words: Sequence[str]) -> tuple[Mapping[str, list[str]], list[str]]:
    """Return docker's options for the container, and the words from its image on."""
    options: dict[str, list[str]] = {"-v": [], "--shm-size": [], "-e": []}
    rest = list(words)
    while rest[0] in options:
        options[rest.pop(0)].append(rest.pop(0))
    return options, rest


def _array(script: str, name: str) -> tuple[str, ...]:
    """Return the words of a bash array of the template, or nothing if the script does not set it."""
    _, assignment, rest = script.partition(f"\n{name}=(")
    lexer = shlex.shlex(rest, posix=True, punctuation_chars=")")
    lexer.whitespace_split = True
    lexer.commenters = ""
    return tuple(takewhile(lambda word: word != ")", lexer)) if assignment else ()


def _bucket(script: str, kind: str) -> str:
    """Return the bucket's folder as a profile writes it, or "" if the script names none."""
    name, prefix = (_value_of(script, f"{kind}_{part}") for part in ("bucket", "prefix"))
    return f"gs://{name}/{prefix}".rstrip("/") if name else ""


def _value_of(script: str, variable: str) -> str:
    """Return the value that a line of the template sets a variable to, or ""."""
    line = script.partition(f"\n{variable}=")[2].partition("\n")[0]
    return next(iter(shlex.split(line)), "")


def _split_setup(words: list[str]) -> tuple[tuple[str, ...], list[str]]:
    """Return the setup steps, and the words from `vllm` on."""
    if words[:3] != ["/bin/bash", "-c", AFTER_SETUP]:
        return (), words
    count = int(words[4])
    rest = words[5 + count :]
    return tuple(words[5 : 5 + count]), rest[rest.index("vllm") :] if "vllm" in rest else []


def _flags(words: Sequence[str]) -> Iterator[tuple[str, Json]]:
    """Yield each flag by its canonical name, with the value that a profile would give it."""
    values: dict[str, Json] = {}
    rest = list(words)
    while rest:
        name, _, joined = rest.pop(0).removeprefix("--").partition("=")
        flag = flags.find(name)
        if flag is None:
            positive = flags.find(name.removeprefix("no-"))
            values[positive.name if positive is not None else name] = False
            continue
        texts = [joined] if joined else []
        while rest and not rest[0].startswith("--"):
            texts.append(rest.pop(0))
        value = _value(flag, texts)
        before = values.get(flag.name)
        if flag.style is flags.Style.REPEATED and before is not None:
            value = [*(before if isinstance(before, list) else [before]), value]
        values[flag.name] = value
    yield from values.items()


def _value(flag: flags.Flag, texts: Sequence[str]) -> Json:
    if not texts:
        return True
    values = [_word(flag.value_type, text) for text in texts]
    return values if len(values) > 1 else values[0]


def _word(kind: flags.ValueType, word: str) -> Json:
    may_be_object = kind is flags.ValueType.TEXT_OR_OBJECT and word.startswith("{")
    if may_be_object or kind in {flags.ValueType.OBJECT, flags.ValueType.ARRAY}:
        parsed: Json = json.loads(word)
        return parsed
    if kind is flags.ValueType.FLOAT:
        return float(word)
    is_number = kind in {flags.ValueType.INT, flags.ValueType.SIZE, flags.ValueType.SIZE_OR_AUTO}
    return _number(word) if is_number else word


def _number(word: str) -> Json:
    return int(word) if word.isdecimal() else word


def _volume(text: str) -> tuple[str, Json]:
    host, _, path = text.removeprefix(_ROOT).rpartition(":")
    return host, path


def _secret(resource: str) -> str:
    """Return a secret as a profile writes it: its id alone, unless a version or a project is named."""
    match = _SECRET.fullmatch(resource)
    return match["id"] if match else resource


_IMAGE = f"vllm/vllm-tpu:v{VLLM_VERSION}"


def write_profile(resource: CloudResource, address: Address, *, model: str | None) -> str | None:
    """Return the YAML text, or None if neither the startup script nor `model` says what the slice serves.

    Values that Google fills in are written if the cloud shows them, unless they are a profile's default.
    """
    metadata = resource.request.metadata
    server = read_script(metadata.get(SCRIPT_KEY, "")) if SPEC_KEY in metadata else None
    if server is None and model is None:
        return None
    server = server or ScriptServer(model={}, serving={"image": _IMAGE}, secrets={})
    # A container has the name of its deployment unless the profile says otherwise.
    default_name = ("container_name", address.deployment)
    tree: dict[str, Json] = {
        "version": 1,
        "name": address.deployment,
        "model": {**server.model, **({"id": model} if model is not None else {})},
        "tpu": _tpu(resource),
        "serving": {key: value for key, value in server.serving.items() if (key, value) != default_name},
        "secrets": dict(server.secrets),
        "placement": _placement(resource),
    }
    if address.replica:
        tree["replicas"] = address.replica + 1
    head = f"# Generated from {import_id(resource.ref)}. Review it before you apply it.\n"
    return head + "".join(_lines({key: value for key, value in tree.items() if value != {}}))


def _tpu(resource: CloudResource) -> dict[str, Json]:
    request = resource.request
    kind = catalog.accelerator_type(request.accelerator_type)
    generation = None if kind is None else catalog.generation(kind.generation)
    backend, default_runtime = resource.ref.backend, None
    if generation is not None and backend in generation.backends:
        default_runtime = generation.runtime_of(backend)
    return _without_absent(
        {
            "type": request.accelerator_type or None,
            "runtime_version": None if request.runtime_version == default_runtime else request.runtime_version,
            "boot_disk_size": None if request.boot_disk_gib is None else f"{request.boot_disk_gib}GiB",
        }
    )


def _placement(resource: CloudResource) -> dict[str, Json]:
    request = resource.request
    is_reserved = request.provisioning is Provisioning.RESERVED
    has_default_network = (request.network or "").rpartition("/")[2] in {"", "default"}
    network = _without_absent(
        {
            "network": None if has_default_network else request.network,
            "subnetwork": request.subnetwork,
            "external_ip": None if request.external_ip in {None, True} else False,
            "tags": list(request.tags) or None,
        }
    )
    labels = resource.slice.labels or request.labels
    return _without_absent(
        {
            "project": resource.ref.project,
            "backend": None if resource.ref.backend is DEFAULT_BACKEND else str(resource.ref.backend),
            "zones": [str(resource.ref.zone)],
            "provisioning": [str(request.provisioning)],
            "reservation": request.reservation if is_reserved else None,
            "max_run_duration": None if request.max_run_seconds is None else f"{request.max_run_seconds:.0f}s",
            "network": network or None,
            "service_account": request.service_account,
            "labels": {key: value for key, value in labels.items() if not is_label_of_ours(key)} or None,
        }
    )


def _without_absent(tree: Mapping[str, Json]) -> dict[str, Json]:
    return {key: value for key, value in tree.items() if value is not None}


def _lines(tree: Mapping[str, Json], indent: str = "") -> Iterator[str]:
    """Yield one line for each entry of a section. Deeper values are written as JSON, which is also YAML."""
    for key, value in tree.items():
        if isinstance(value, dict) and value and (not indent or key == "args"):
            yield f"{indent}{key}:\n"
            yield from _lines(value, f"{indent}  ")
        else:
            # A dollar in a value must not be read as an interpolation.
            yield f"{indent}{key}: {json.dumps(value, ensure_ascii=False).replace('$', '$$')}\n"
