"""Check `serving.args`: each is a flag of the pinned vLLM version, belongs there, is set once, and takes its value.

A flag without which the endpoint could not be reached or published is refused, too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from tpudeploy.catalog import engines, flags
from tpudeploy.config import codes, engine_values
from tpudeploy.config.diagnose import problem, quoted
from tpudeploy.config.keys import FLAG_OF_KEY, SECRET_OF_FLAG
from tpudeploy.config.nodes import Entry, MapNode, Path, dotted, find, key_location, plain
from tpudeploy.config.rules import look
from tpudeploy.config.rules.image import severity_of_tables, unlike_tables
from tpudeploy.domain.deployment import Json
from tpudeploy.domain.diagnostics import Diagnostic, Location, Severity

_ARGS: Path = ("serving", "args")
_KEY_OF_FLAG = {flag: key for key, flag in FLAG_OF_KEY.items()}


def args(root: MapNode) -> Iterator[Diagnostic]:
    first: dict[str, Location] = {}
    arguments = look.entries(root, _ARGS)
    version = look.release(root)
    names = {flag.name for name in arguments if (flag := flags.find(name, version)) is not None}
    for name, entry in arguments.items():
        flag = flags.find(name, version)
        if flag is None:
            yield _unknown(root, name, entry, names)
        elif flag.name in first:
            yield _twice(name, flag, entry, first[flag.name])
        else:
            first[flag.name] = entry.key
            yield from _check_flag(root, name, flag, entry)


def _check_flag(root: MapNode, name: str, flag: flags.Flag, entry: Entry) -> Iterator[Diagnostic]:
    path = (*_ARGS, name)
    if flag.name in SECRET_OF_FLAG:
        variable = SECRET_OF_FLAG[flag.name]
        message = f"--{flag.name} would put a secret on a command line"
        hint = f"write `secrets: {{{variable}: NAME}}`, with the name of a Secret Manager secret"
        yield problem(codes.FLAG_HAS_KEY, message, entry.key, path=path, hint=hint)
    elif flag.name in _KEY_OF_FLAG:
        yield _owned(root, path, flag, entry)
    else:
        yield from _check_value(root, path, flag, entry)


def _check_value(root: MapNode, path: Path, flag: flags.Flag, entry: Entry) -> Iterator[Diagnostic]:
    value = plain(entry.value)
    try:
        flags.express(flags.with_any_choice(flag), value)
    except flags.Inexpressible:
        # The command line cannot express this value, so it is wrong for every version of vLLM.
        severity = Severity.ERROR
    else:
        severity = severity_of_tables(root)
    try:
        flags.express(flag, value)
    except flags.Inexpressible as refusal:
        yield problem(codes.FLAG_VALUE, _clause(str(refusal)), entry.value.at, path=path, severity=severity)
    else:
        yield from engine_values.refusals(root, path, flag, entry, severity_of_tables(root))


def _unknown(root: MapNode, name: str, entry: Entry, names: Collection[str]) -> Diagnostic:
    version = look.release(root)
    removal = flags.removal(name, version)
    if removal is None:
        message, hint = f"vLLM {version} has no flag {quoted(name)}", _suggestion(root, name, names)
    else:
        message = f"vLLM {version} has no flag {quoted(name)} any more; {removal.last} had it"
        hint = removal.instead
    severity, unlike = severity_of_tables(root), unlike_tables(root)
    lacks = engines.lacks(look.image(root), None if removal is None else removal.last)
    if lacks and look.engine_of(root).release is None:
        severity, unlike = Severity.ERROR, lacks
    message += f"; {unlike}" if unlike else ""
    path: Path = (*_ARGS, name)
    value = plain(entry.value)
    try:
        flags.express(flags.guess(name, value), value)
    except flags.Inexpressible:
        severity = Severity.ERROR
    return problem(codes.UNKNOWN_FLAG, message, entry.key, path=path, hint=hint, severity=severity)


def _suggestion(root: MapNode, name: str, names: Collection[str]) -> str:
    """Return what to write instead, unless that would be refused too, because it is set already or has a key."""
    from tpudeploy.config.foreign_keys import FLAGS  # only where a flag is unknown

    foreign = FLAGS.get(name.lstrip("-").replace("-", "_"))
    if foreign is not None:
        return foreign
    version = look.release(root)
    near = flags.nearest(name, version)
    if near is None or near.name in names or near.name in SECRET_OF_FLAG:
        return "" if near is not None else _hint(flags.advice(name, version))
    key = _KEY_OF_FLAG.get(near.name)
    if key is None:
        return _hint(flags.advice(name, version))
    return f"write `{dotted(key)}` instead" if find(root, key) is None else f"{dotted(key)} is already set"


def _twice(name: str, flag: flags.Flag, entry: Entry, first: Location) -> Diagnostic:
    message = f"{quoted(name)} is --{flag.name}, which line {first.line} already sets"
    return problem(codes.FLAG_TWICE, message, entry.key, path=(*_ARGS, name), hint="keep one", also=first)


def _owned(root: MapNode, path: Path, flag: flags.Flag, entry: Entry) -> Diagnostic:
    key = _KEY_OF_FLAG[flag.name]
    if find(root, key) is None:
        message = f"--{flag.name} is the key {dotted(key)}"
        return problem(codes.FLAG_HAS_KEY, message, entry.key, path=path, hint=f"write `{dotted(key)}` instead")
    also = key_location(root, key)
    message = f"{dotted(key)} already sets --{flag.name}"
    return problem(codes.FLAG_TWICE, message, entry.key, path=path, hint="keep the key", also=also)


def _clause(sentence: str) -> str:
    return sentence.removesuffix(".")


def _hint(sentence: str) -> str:
    """Return the sentence in the style of hints: in lower case, without a full stop."""
    return _clause(sentence[:1].lower() + sentence[1:])


class _Unreachable(NamedTuple):
    """Why a server with the flag is unreachable, what to do instead, and the values that are harmless."""

    because: str
    instead: str
    harmless: tuple[Json, ...] = (None, False, "")


_TLS = _Unreachable("the health probe and clients of the endpoint speak HTTP", "end TLS in front of the endpoint")
_ADDRESS = "leave it out: the firewall and the network decide who reaches the port"
_ONE_HOST = "leave it out: a slice of one host has one server"
UNREACHABLE: Mapping[str, _Unreachable] = {
    "ssl-keyfile": _TLS,
    "ssl-certfile": _TLS,
    "ssl-ca-certs": _TLS,
    "host": _Unreachable(
        "the server would listen on that address alone, and the endpoint is the machine's",
        _ADDRESS,
        (None, "", "0.0.0.0", "::"),  # noqa: S104 - what a profile may write: it is vLLM's default
    ),
    "uds": _Unreachable("the server would listen on a socket file, and on no port", _ADDRESS),
    "root-path": _Unreachable(
        "the health probe and clients ask for /health and /v1 without a prefix",
        "add the prefix in front of the endpoint",
        (None, "", "/"),
    ),
    "grpc": _Unreachable("the health probe and clients speak HTTP, not gRPC", "leave it out"),
    "headless": _Unreachable("the process would have no API server", _ONE_HOST),
    "nnodes": _Unreachable("the server would wait for other hosts", _ONE_HOST, (None, 1)),
    "data-parallel-external-lb": _Unreachable("each rank would wait for a load balancer of its own", _ONE_HOST),
    "data-parallel-hybrid-lb": _Unreachable("the ranks would wait for other hosts", _ONE_HOST),
    "data-parallel-multi-port-external-lb": _Unreachable("each rank would listen on a port of its own", _ONE_HOST),
    "data-parallel-start-rank": _Unreachable("the ranks before it would be missing", _ONE_HOST, (None, 0)),
    "data-parallel-rank": _Unreachable("the other ranks would be missing", _ONE_HOST),
}


def reachable(root: MapNode) -> Iterator[Diagnostic]:
    """Report flags without which the server would answer plain HTTP on all addresses of its machine."""
    for name, (path, entry) in look.arguments(root).items():
        row = UNREACHABLE.get(name)
        if row is None:
            continue
        value = plain(entry.value)
        # The type counts too, because 0 == False.
        if (type(value), value) not in [(type(harmless), harmless) for harmless in row.harmless]:
            message = f"--{name} cannot be served: {row.because}"
            yield problem(codes.FLAG_NOT_SERVED, message, entry.key, path=path, hint=row.instead)
