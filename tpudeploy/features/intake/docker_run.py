"""Read the words of `docker run`: its options, the image, and the command in it. Podman and nerdctl take the same ones.

Source of the options: docker's reference of `docker container run`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tpudeploy.features.intake.shell import Word
from tpudeploy.features.intake.source import Stop

PROGRAMS = frozenset({"docker", "podman", "nerdctl"})
_SHORT_WITH_VALUE: Mapping[str, str] = {
    "a": "attach",
    "c": "cpu-shares",
    "e": "env",
    "h": "hostname",
    "l": "label",
    "m": "memory",
    "p": "publish",
    "u": "user",
    "v": "volume",
    "w": "workdir",
}
_SHORT = frozenset("ditPqx")
_SWITCHES = frozenset(
    {
        *("detach", "disable-content-trust", "help", "init", "interactive", "no-healthcheck", "oom-kill-disable"),
        *("privileged", "publish-all", "quiet", "read-only", "rm", "sig-proxy", "tty", "use-api-socket", "replace"),
    }
)
_WITH_VALUE = frozenset(
    {
        *(
            "add-host",
            "annotation",
            "attach",
            "blkio-weight",
            "blkio-weight-device",
            "cap-add",
            "cap-drop",
            "cgroup-parent",
        ),
        *("cgroupns", "cidfile", "cpu-period", "cpu-quota", "cpu-rt-period", "cpu-rt-runtime", "cpu-shares", "cpus"),
        *("cpuset-cpus", "cpuset-mems", "detach-keys", "device", "device-cgroup-rule", "device-read-bps", "dns"),
        *("device-read-iops", "device-write-bps", "device-write-iops", "dns-option", "dns-search", "domainname"),
        *("entrypoint", "env", "env-file", "expose", "gpus", "group-add", "health-cmd", "health-interval", "hostname"),
        *("health-retries", "health-start-interval", "health-start-period", "health-timeout", "ip", "ip6", "ipc"),
        *("isolation", "kernel-memory", "label", "label-file", "link", "link-local-ip", "log-driver", "log-opt"),
        *("mac-address", "memory", "memory-reservation", "memory-swap", "memory-swappiness", "mount", "name", "net"),
        *("net-alias", "network", "network-alias", "oom-score-adj", "pid", "pids-limit", "platform", "publish", "pull"),
        *("restart", "runtime", "security-opt", "shm-size", "stop-signal", "stop-timeout", "storage-opt", "sysctl"),
        *("tmpfs", "ulimit", "user", "userns", "uts", "volume", "volume-driver", "volumes-from", "workdir"),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerOptions:
    """A container as a command starts it. `options` are those with a value, by long name, each as often as written."""

    image: Word
    command: tuple[Word, ...]
    options: Mapping[str, tuple[Word, ...]]
    switches: tuple[str, ...]

    def all(self, name: str) -> tuple[Word, ...]:
        return self.options.get(name, ())

    def last(self, name: str) -> Word | None:
        return self.all(name)[-1] if self.all(name) else None


def is_run(words: Sequence[Word]) -> int:
    """Return the offset of the words after `docker run`, or 0 for another command."""
    if not words or words[0].text.rpartition("/")[2] not in PROGRAMS:
        return 0
    for index, word in enumerate(words[1:], 1):
        if word.text in ("run", "create"):
            return index + 1
        if not (word.text.startswith("-") or word.text == "container"):
            return 0
    return 0


def read_run(words: Sequence[Word]) -> ContainerOptions:
    """Return the container that the words after `docker run` start. Raise Stop where they cannot be read."""
    options: dict[str, list[Word]] = {}
    switches: list[str] = []
    rest = iter(words)
    for word in rest:
        if word.text == "--" or not word.text.startswith("-"):
            image = next(rest, None) if word.text == "--" else word
            if image is None:
                break
            command = tuple(rest)
            return ContainerOptions(
                image=image,
                command=command,
                options={name: tuple(values) for name, values in options.items()},
                switches=tuple(switches),
            )
        for name, value in _option(word, rest):
            if value is None:
                switches.append(name)
            else:
                options.setdefault(name, []).append(value)
    last = words[-1] if words else Word(text="")
    raise Stop("`docker run` ends here, without an image", last.start, last.end, hint="write the whole command")


def _option(word: Word, rest: Iterator[Word]) -> Iterator[tuple[str, Word | None]]:
    """Yield the options of one word: `-it` is two. The value of an option may be the next word."""
    if word.text.startswith("--"):
        yield _long(word, rest)
        return
    for index, letter in enumerate(word.text[1:], 1):
        if letter in _SHORT_WITH_VALUE:
            attached = word.text[index + 1 :].removeprefix("=")
            yield _SHORT_WITH_VALUE[letter], _part(word, attached) if attached else _next(word, rest)
            return
        if letter not in _SHORT:
            raise Stop(f"`docker run` has no option `{word.text}`", word.start, word.end)
        yield letter, None


def _long(word: Word, rest: Iterator[Word]) -> tuple[str, Word | None]:
    name, has_value, value = word.text[2:].partition("=")
    if name in _SWITCHES:
        return name, None
    if name not in _WITH_VALUE:
        hint = "write a value that the option takes as `--option=value`, or leave the option out"
        if has_value:
            return name, _part(word, value)
        raise Stop(f"`docker run` has no option `--{name}` that is known here", word.start, word.end, hint=hint)
    return name, _part(word, value) if has_value else _next(word, rest)


def _part(word: Word, text: str) -> Word:
    return Word(text=text, start=word.start, end=word.end, unknown=word.unknown)


def _next(word: Word, rest: Iterator[Word]) -> Word:
    value = next(rest, None)
    if value is None:
        raise Stop(f"`{word.text}` needs a value", word.start, word.end)
    return value


_MEMBER = re.compile(r"([a-z-]+)=([^,]*)")


def mount_of(word: Word) -> tuple[str, str, str]:
    """Return type, source and target of a `--mount` value, "" for what it doesn't have."""
    members = {match[1]: match[2] for match in _MEMBER.finditer(word.text)}
    source = members.get("source", members.get("src", ""))
    target = members.get("target", members.get("destination", members.get("dst", "")))
    return members.get("type", "volume"), source, target
