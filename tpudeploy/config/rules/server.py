"""The server that a profile declares, as the rules look at it: its engine, and its flags by their canonical names."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import NamedTuple

from tpudeploy.catalog import flags, releases
from tpudeploy.catalog._spelling import count_of
from tpudeploy.catalog.engines import identify
from tpudeploy.config.keys import FLAG_OF_KEY
from tpudeploy.config.nodes import Path
from tpudeploy.config.schema import ProfileSpec
from tpudeploy.domain.deployment import Json
from tpudeploy.domain.engine import Engine, EngineKind

ARGS: Path = ("serving", "args")
ENV: Path = ("serving", "env")
KEY_OF_FLAG: Mapping[str, Path] = {flag: key for key, flag in FLAG_OF_KEY.items()}


class Setting(NamedTuple):
    """A flag's value, and the path of the key that sets it."""

    path: Path
    value: Json

    @property
    def number(self) -> float | None:
        """The value as a number, if vLLM reads it as one: `7`, "7", 16k."""
        number = count_of(self.value) if isinstance(self.value, str) else self.value
        if isinstance(number, bool | list | dict) or number is None:
            return None
        try:
            return float(number)
        except ValueError:
            return None


class Server:
    """The server of `profile`. `engine` is that of its image: by name and tag, unless more is known of it."""

    def __init__(self, profile: ProfileSpec, engine: Engine | None = None) -> None:
        self.profile = profile
        self.engine = engine or identify(profile.serving.image)

    @cached_property
    def release(self) -> str:
        """The release whose flags, values and variables are looked up: the image's, or else the newest."""
        release = self.engine.release if self.engine.kind is EngineKind.TPU_INFERENCE else None
        return release if release is not None and releases.find(release) is not None else releases.NEWEST

    @property
    def unlike_tables(self) -> str:
        """What the image has instead of the release of the tables, as a clause, or "" if it has that one."""
        if self.engine.kind is EngineKind.TORCHTPU:
            return f"the image has another engine, {self.engine.kind}"
        if self.engine.release is None:
            return "which release the image has is not known"
        return "" if self.engine.release in releases.VERSIONS else f"the image has vLLM {self.engine.release}"

    @property
    def is_doubtful(self) -> bool:
        """Whether what the tables refuse is only a warning, because the image has none of their releases."""
        return self.unlike_tables != ""

    @cached_property
    def arguments(self) -> Mapping[str, Setting]:
        """The flags under `serving.args` by canonical name; of one set twice, the first."""
        of_flags: dict[str, Setting] = {}
        for name, value in self.profile.serving.args.items():
            flag = flags.find(name, self.release)
            if flag is not None:
                of_flags.setdefault(flag.name, Setting(path=(*ARGS, name), value=value))
        return of_flags

    @cached_property
    def settings(self) -> Mapping[str, Setting]:
        """The flags of keys and of `serving.args` that are not null. One that has a key counts only there."""
        of_keys = {
            flag: Setting(path=key, value=getattr(getattr(self.profile, str(key[0])), str(key[1])))
            for key, flag in FLAG_OF_KEY.items()
        }
        both = {**self.arguments, **of_keys}
        return {name: setting for name, setting in both.items() if setting.value is not None}

    def argument(self, flag_name: str) -> Json:
        """Return the value of a flag under `serving.args`, or None."""
        setting = self.arguments.get(flag_name)
        return None if setting is None else setting.value
