"""What a startup script of ours starts, read back out of it: the words of a profile that nobody kept.

A text of another form is not guessed at. Whether all was read shows in the fingerprint of what comes of it.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile

from tpudeploy.catalog import flags
from tpudeploy.config.owned import FLAG_OF_KEY, VARIABLE_OF_KEY
from tpudeploy.domain.deployment import Json
from tpudeploy.domain.frozen import frozen
from tpudeploy.node.mirror import INSIDE
from tpudeploy.node.serving import AFTER_SETUP

_BEGINS = ("docker", "run", "-d", "--name")
_ROOT = "$root"
_KEYS = {flag: path for path, flag in FLAG_OF_KEY.items()}
_VARIABLES = {variable: str(path[-1]) for path, variable in VARIABLE_OF_KEY.items()}
_SECRET = re.compile(r"(?:secrets/)?(?P<id>[^/]+)/versions/latest")


@frozen
class Served:
    """`model` and `serving` as a profile writes them; `secrets` by environment variable."""

    model: Mapping[str, Json]
    serving: Mapping[str, Json]
    secrets: Mapping[str, str]


def served(script: str) -> Served | None:
    """None for what is no script of ours."""
    try:
        return _served(script)
    except (ValueError, IndexError):  # somebody else's words in the place of ours
        return None


def _served(script: str) -> Served | None:
    words = _array(script, "docker_run")
    if words[:4] != _BEGINS:
        return None
    given, (image, *inside) = _options(words[7:])  # past the name, --privileged and --net=host
    setup, (vllm, serve, model, *arguments) = _command(inside)
    if (vllm, serve) != ("vllm", "serve"):
        return None
    sections: dict[str, dict[str, Json]] = {
        "model": {"id": model},
        "serving": {"image": image, "container_name": words[4]},
        "args": {},
    }
    for flag, value in _flags(arguments):
        section, key = _KEYS.get(flag, ("args", flag.replace("-", "_")))
        sections[str(section)][str(key)] = value
    if model == INSIDE:
        sections["model"] |= {
            "id": sections["args"].pop("served_model_name", model),
            "mirror": _bucket(script, "mirror"),
        }
    around = _around(given, setup, sections["args"])
    cache = _bucket(script, "cache")
    secrets = zip(_array(script, "secret_variables"), _array(script, "secret_resources"), strict=False)
    return Served(
        model=sections["model"],
        serving={**sections["serving"], **dict(around), **({"xla_cache_bucket": cache} if cache else {})},
        secrets={variable: _secret(resource) for variable, resource in secrets},
    )


def _options(words: Sequence[str]) -> tuple[Mapping[str, list[str]], list[str]]:
    """What docker is told of the container, and the words from its image on."""
    given: dict[str, list[str]] = {"-v": [], "--shm-size": [], "-e": []}
    rest = list(words)
    while rest[0] in given:
        given[rest.pop(0)].append(rest.pop(0))
    return given, rest


def _around(
    given: Mapping[str, list[str]], setup: tuple[str, ...], args: Mapping[str, Json]
) -> Iterator[tuple[str, Json]]:
    """The keys of `serving` that are no flags. No volume at all is a choice; whatever else is empty is left out."""
    plain = dict(text.split("=", 1) for text in given["-e"] if "=" in text)
    yield from ((_VARIABLES[name], _number(value)) for name, value in plain.items() if name in _VARIABLES)
    yield "volumes", {host: inside for host, inside in map(_mount, given["-v"]) if inside != INSIDE}
    if given["--shm-size"]:
        yield "shm_size", given["--shm-size"][0]
    more: dict[str, Json] = {
        "env": {name: value for name, value in plain.items() if name not in _VARIABLES},
        "setup": list(setup),
        "args": dict(args),
    }
    yield from ((key, value) for key, value in more.items() if value)


def _array(script: str, name: str) -> tuple[str, ...]:
    """The words of a bash array that the template wrote; empty where there is none."""
    _, begins, rest = script.partition(f"\n{name}=(")
    lexer = shlex.shlex(rest, posix=True, punctuation_chars=")")
    lexer.whitespace_split = True
    lexer.commenters = ""
    return tuple(takewhile(lambda word: word != ")", lexer)) if begins else ()


def _bucket(script: str, what: str) -> str:
    """The bucket's folder as a profile writes it; "" where the script names none."""
    name, prefix = (_word_of(script, f"{what}_{part}") for part in ("bucket", "prefix"))
    return f"gs://{name}/{prefix}".rstrip("/") if name else ""


def _word_of(script: str, name: str) -> str:
    """What a line of the template sets a variable to; "" where there is none."""
    line = script.partition(f"\n{name}=")[2].partition("\n")[0]
    return next(iter(shlex.split(line)), "")


def _command(words: list[str]) -> tuple[tuple[str, ...], list[str]]:
    """The setup steps, and the words from `vllm` on."""
    if words[:3] != ["/bin/bash", "-c", AFTER_SETUP]:
        return (), words
    count = int(words[4])
    after = words[5 + count :]
    return tuple(words[5 : 5 + count]), after[after.index("vllm") :] if "vllm" in after else []


def _flags(words: Sequence[str]) -> Iterator[tuple[str, Json]]:
    """Each flag by its canonical name, with the value that a profile would give it."""
    found: dict[str, Json] = {}
    rest = list(words)
    while rest:
        name, _, joined = rest.pop(0).removeprefix("--").partition("=")
        flag = flags.find(name)
        if flag is None:
            positive = flags.find(name.removeprefix("no-"))
            found[positive.name if positive is not None else name] = False
            continue
        given = [joined] if joined else []
        while rest and not rest[0].startswith("--"):
            given.append(rest.pop(0))
        value = _value(flag, given)
        before = found.get(flag.name)
        found[flag.name] = _both(before, value) if flag.style is flags.Style.REPEATED and before is not None else value
    yield from found.items()


def _both(before: Json, value: Json) -> Json:
    return [*(before if isinstance(before, list) else [before]), value]


def _value(flag: flags.Flag, given: Sequence[str]) -> Json:
    if not given:
        return True
    read = [_word(flag.value_type, word) for word in given]
    return read if len(read) > 1 else read[0]


def _word(kind: flags.ValueType, word: str) -> Json:
    if kind in {flags.ValueType.OBJECT, flags.ValueType.ARRAY} or (
        kind is flags.ValueType.TEXT_OR_OBJECT and word.startswith("{")
    ):
        parsed: Json = json.loads(word)
        return parsed
    if kind is flags.ValueType.FLOAT:
        return float(word)
    is_number = kind in {flags.ValueType.INT, flags.ValueType.SIZE, flags.ValueType.SIZE_OR_AUTO}
    return _number(word) if is_number else word


def _number(word: str) -> Json:
    return int(word) if word.isdecimal() else word


def _mount(text: str) -> tuple[str, Json]:
    host, _, inside = text.removeprefix(_ROOT).rpartition(":")
    return host, inside


def _secret(resource: str) -> str:
    """As a profile writes it: the id alone, unless a version or a project is named."""
    found = _SECRET.fullmatch(resource)
    return found["id"] if found else resource
