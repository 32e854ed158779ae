"""Check `serving.args`: each is a flag of the pinned vLLM version, belongs there, is set once, and takes its value.

A flag without which the endpoint could not be reached or published is refused, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from tpudeploy.catalog import engines, flags
from tpudeploy.config import codes, engine_values
from tpudeploy.config.diagnose import quoted
from tpudeploy.config.foreign_keys import FLAGS
from tpudeploy.config.keys import SECRET_OF_FLAG
from tpudeploy.config.nodes import Path, dotted
from tpudeploy.config.rules.server import ARGS, KEY_OF_FLAG, Server
from tpudeploy.config.rules.violation import Violation, is_set
from tpudeploy.domain.deployment import Json


def args(server: Server) -> Iterator[Violation]:
    first: dict[str, str] = {}
    for name, value in server.profile.serving.args.items():
        flag, path = flags.find(name, server.release), (*ARGS, name)
        if flag is None:
            yield _unknown(server, name, value)
        elif flag.name in first:
            message = f"{quoted(name)} is --{flag.name}, which {quoted(first[flag.name])} already sets"
            yield Violation(codes.FLAG_TWICE, path, message, "keep one", also=(*ARGS, first[flag.name]), is_key=True)
        else:
            first[flag.name] = name
            yield from _check_flag(server, path, flag, value)


def _check_flag(server: Server, path: Path, flag: flags.Flag, value: Json) -> Iterator[Violation]:
    key = KEY_OF_FLAG.get(flag.name)
    if flag.name in SECRET_OF_FLAG:
        message = f"--{flag.name} would put a secret on a command line"
        hint = f"write `secrets: {{{SECRET_OF_FLAG[flag.name]}: NAME}}`, with the name of a Secret Manager secret"
        yield Violation(codes.FLAG_HAS_KEY, path, message, hint, is_key=True)
    elif key is None:
        yield from _check_value(server, path, flag, value)
    elif is_set(server.profile, key):
        message = f"{dotted(key)} already sets --{flag.name}"
        yield Violation(codes.FLAG_TWICE, path, message, "keep the key", also=key, is_key=True)
    else:
        message = f"--{flag.name} is the key {dotted(key)}"
        yield Violation(codes.FLAG_HAS_KEY, path, message, f"write `{dotted(key)}` instead", is_key=True)


def _check_value(server: Server, path: Path, flag: flags.Flag, value: Json) -> Iterator[Violation]:
    refusal = _why_not(flag, value)
    if refusal:
        # What no command line can express is wrong for every version of vLLM.
        is_doubtful = server.is_doubtful and not _why_not(flags.with_any_choice(flag), value)
        yield Violation(codes.FLAG_VALUE, path, _clause(refusal), is_warning=is_doubtful)
    else:
        yield from engine_values.refusals(server, path, flag, value)


def _why_not(flag: flags.Flag, value: Json) -> str:
    """Return why the flag cannot express the value, or ""."""
    try:
        flags.express(flag, value)
    except flags.Inexpressible as refusal:
        return str(refusal)
    return ""


def _unknown(server: Server, name: str, value: Json) -> Violation:
    removal = flags.removal(name, server.release)
    if removal is None:
        message, hint = f"vLLM {server.release} has no flag {quoted(name)}", _suggestion(server, name)
    else:
        message = f"vLLM {server.release} has no flag {quoted(name)} any more; {removal.last} had it"
        hint = removal.instead
    is_doubtful, unlike = server.is_doubtful, server.unlike_tables
    lacks = engines.lacks(server.profile.serving.image, None if removal is None else removal.last)
    if lacks and server.engine.release is None:
        is_doubtful, unlike = False, lacks
    message += f"; {unlike}" if unlike else ""
    is_doubtful = is_doubtful and not _why_not(flags.guess(name, value), value)
    return Violation(codes.UNKNOWN_FLAG, (*ARGS, name), message, hint, is_key=True, is_warning=is_doubtful)


def _suggestion(server: Server, name: str) -> str:
    """Return what to write instead, unless that would be refused too, because it is set already or has a key."""
    foreign = FLAGS.get(name.lstrip("-").replace("-", "_"))
    if foreign is not None:
        return foreign
    near = flags.nearest(name, server.release)
    if near is None or near.name in server.arguments or near.name in SECRET_OF_FLAG:
        return "" if near is not None else _hint(flags.advice(name, server.release))
    key = KEY_OF_FLAG.get(near.name)
    if key is None:
        return _hint(flags.advice(name, server.release))
    return f"{dotted(key)} is already set" if is_set(server.profile, key) else f"write `{dotted(key)}` instead"


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


def reachable(server: Server) -> Iterator[Violation]:
    """Report flags without which the server would answer plain HTTP on all addresses of its machine."""
    for name, (path, value) in server.arguments.items():
        row = UNREACHABLE.get(name)
        # The type counts too, because 0 == False.
        if row is not None and (type(value), value) not in [(type(each), each) for each in row.harmless]:
            message = f"--{name} cannot be served: {row.because}"
            yield Violation(codes.FLAG_NOT_SERVED, path, message, row.instead, is_key=True)
