"""Profiles from disk, and what follows from them offline: the deployment they mean, and what its chips hold."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Self, TypeAlias

from pydantic import PrivateAttr

from tpudeploy import catalog
from tpudeploy.adapters import assets
from tpudeploy.adapters.files import FileReader, is_inside
from tpudeploy.adapters.own_files import read_named, read_own_files
from tpudeploy.adapters.project import absolute, boundary_of
from tpudeploy.catalog import type_names
from tpudeploy.catalog.generations import GENERATIONS
from tpudeploy.config.nodes import plain_map
from tpudeploy.config.parse import parse
from tpudeploy.config.profile import Profile as Checked
from tpudeploy.config.python_tree import tree_of
from tpudeploy.config.reader import Reader, Remembered
from tpudeploy.config.trust import Trust, looks_secret
from tpudeploy.domain.accelerator import AcceleratorType
from tpudeploy.domain.deployment import Deployment, Json, OwnFile
from tpudeploy.domain.diagnostics import Diagnostic
from tpudeploy.domain.engine import Engine, EngineOrigin
from tpudeploy.domain.errors import ConfigError, UsageError
from tpudeploy.domain.notify import ignoring
from tpudeploy.domain.pins import NONE, Pins
from tpudeploy.domain.plan import Change
from tpudeploy.domain.state import State
from tpudeploy.node import render
from tpudeploy.pins import FOLLOWS, digest_in, engine_of, in_attributes, with_pins
from tpudeploy.planning.resolve import resolve, resolve_without_script
from tpudeploy.sizing.checks import check, with_verdict
from tpudeploy.views.profile import profile as view


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileSource:
    """How a profile was loaded, so that it can be loaded again with other settings."""

    path: str | Path
    overlays: tuple[str | Path, ...]
    sets: tuple[str, ...]
    environment: Mapping[str, str] | None
    untrusted: bool
    allow_env: frozenset[str]
    folder: str | Path


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileText:
    """The text that a profile was made from, the settings on top, and the environment, None for the process's own."""

    text: str
    sets: tuple[str, ...]
    environment: Mapping[str, str] | None


class Profile(Checked):
    """A valid profile: the keys of the format, e.g. `serving.max_model_len`; `warnings` are what to consider.

    `Profile(name=..., model=..., tpu=..., serving=...)` makes one in Python, and `load` reads a file.
    """

    _source: ProfileSource | ProfileText | None = PrivateAttr(default=None)

    @property
    def source(self) -> ProfileSource | ProfileText | None:
        """How it was loaded; None for one that was made in Python."""
        return self._source

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        overlays: Sequence[str | Path] = (),
        set: Mapping[str, object] | Sequence[str] = (),  # noqa: A002 - the command line's word
        environment: Mapping[str, str] | None = None,
        untrusted: bool = False,
        allow_env: Iterable[str] = (),
        folder: str | Path = ".",
        engine: Engine | None = None,
    ) -> Self:
        """Return a profile from disk, with overlays and then settings merged on top: a mapping, or `path=value` texts.

        If the author is `untrusted`, the profile reads only the environment variables in `allow_env`, and no file
        outside its project, which is at or above the profile as seen from `folder`. For a trusted author, `allow_env`
        are the variables that may be read although their names look like those of secrets. `engine` is that of the
        profile's image, if more is known of it than its name and tag tell.

        Raise `errors.ProfileInvalid`, with every problem in `.diagnostics`, or `errors.ProfileNotFound`.
        """
        source = ProfileSource(
            path=path,
            overlays=tuple(overlays),
            sets=tuple(_settings(set)),
            environment=environment,
            untrusted=untrusted,
            allow_env=frozenset(allow_env),
            folder=folder,
        )
        return cls._read(source, None, engine)

    @classmethod
    def _read(cls, source: ProfileSource, reader: Reader | None, engine: Engine | None) -> Self:
        """Return the profile of a source, from its files, or from what a `reader` has read of them before."""

        def project() -> Path:
            return boundary_of(Path(source.folder), Path(source.path))

        paths = [str(source.path), *map(str, source.overlays)]

        def is_outside(file: str) -> bool:
            is_named = not source.untrusted and file in paths
            if is_named and Path(file).resolve() == absolute(Path(file)):
                return False  # a trusted person named it, and no link leads elsewhere
            return not is_inside(project(), file)

        if reader is None:
            reader = FileReader(project(), operator_paths=paths) if source.untrusted else FileReader()
        checked = parse(
            paths[0],
            reader,
            overlays=paths[1:],
            sets=source.sets,
            environment=os.environ if source.environment is None else source.environment,
            trust=Trust(
                is_trusted=not source.untrusted,
                allowed=source.allow_env,
                is_outside=is_outside,
            ),
            engine=engine,
        )
        return cls._from_checked(checked, source)

    @classmethod
    def from_text(
        cls,
        text: str,
        *,
        set: Mapping[str, object] | Sequence[str] = (),  # noqa: A002 - the command line's word
        environment: Mapping[str, str] | None = None,
        engine: Engine | None = None,
    ) -> Self:
        """Return a profile from YAML in memory. A file that it names is relative to the working directory.

        Raise `errors.ProfileInvalid`, with every problem in `.diagnostics`.
        """
        reader = Remembered(text, beside="", name="profile.yaml")
        source = ProfileText(text=text, sets=tuple(_settings(set)), environment=environment)
        environment = os.environ if environment is None else environment
        checked = parse(reader.name, reader, sets=source.sets, environment=environment, engine=engine)
        return cls._from_checked(checked.read_by(FileReader()), source)

    @classmethod
    def from_mapping(cls, profile: Mapping[str, object], *, environment: Mapping[str, str] | None = None) -> Self:
        """Return a profile from a mapping with the keys of the YAML format. Raise as `from_text` does."""
        text = json.dumps(profile, indent=2, ensure_ascii=False, default=os.fspath)
        return cls.from_text(text, environment=environment)

    def with_settings(self, settings: Mapping[str, object] | Sequence[str], *, engine: Engine | None = None) -> Self:
        """Return this profile with settings merged on top. Raise as `load` does.

        Its files are as they were when it was loaded, also after an edit. `engine` is that of its image, if
        more is known of it than its name and tag tell.
        """
        match self.source:
            case ProfileSource() as source:
                changed = replace(source, sets=(*source.sets, *_settings(settings)))
                return self._read(changed, self.reader, engine)
            case ProfileText() as source:
                sets = [*source.sets, *_settings(settings)]
                return self.from_text(source.text, set=sets, environment=source.environment, engine=engine)
            case None:
                text = json.dumps(plain_map(tree_of(self)), ensure_ascii=False).replace("$", "$$")
                return self.from_text(text, set=settings, engine=engine)

    def edited_files(self) -> tuple[str, ...]:
        """Return those of its files that have another content now than when it was loaded, or are gone."""
        return self.reader.edited_files() if isinstance(self.reader, FileReader) else ()

    @classmethod
    def _from_checked(cls, checked: Checked, source: ProfileSource | ProfileText) -> Self:
        profile = cls.from_keys(checked, origins=checked.origins, warnings=checked.warnings, reader=checked.reader)
        profile._source = source  # noqa: SLF001 - its own
        return profile

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        path = f", {self.source.path}" if isinstance(self.source, ProfileSource) else ""
        return f"<Profile: {self.name}{path}>"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileFile:
    """A profile that is read when it is first needed. `read` raises for an invalid one."""

    path: str
    read: Callable[[], Profile]


def is_untrusted(profile: Checked) -> bool:
    """Return whether a profile was loaded as that of an untrusted author."""
    source = profile.source if isinstance(profile, Profile) else None
    return isinstance(source, ProfileSource) and source.untrusted


# One profile or a path is accepted where several profiles are.
OneProfile: TypeAlias = Checked | ProfileFile | str | PathLike[str]
Profiles: TypeAlias = OneProfile | Iterable[OneProfile]


def profile(one: OneProfile) -> Checked:
    """Return a profile, which is loaded if it is named by its path. Raise as `Profile.load` does."""
    if isinstance(one, ProfileFile):
        return one.read()
    return one if isinstance(one, Checked) else Profile.load(Path(one))


def each(some: Profiles) -> tuple[OneProfile, ...]:
    """Return one or several profiles or paths as a tuple."""
    return (some,) if isinstance(some, Checked | ProfileFile | str | PathLike) else tuple(some)


def profiles(some: Profiles) -> tuple[Checked, ...]:
    """Return profiles, of which those that are named by their paths are loaded. Raise as `Profile.load` does."""
    return tuple(profile(one) for one in each(some))


def name_of(one: OneProfile) -> str:
    """Return how a profile is named in a list of files: its path, or else its name."""
    match one:
        case ProfileFile():
            return one.path
        case Profile(source=ProfileSource() as source):
            return str(source.path)
        case Checked():
            return one.name
        case _:
            return str(one)


def is_name(one: OneProfile) -> bool:
    """Return whether a text is the name of a deployment, which has neither a dot nor a slash, and not a path."""
    return isinstance(one, str) and "." not in one and "/" not in one


def judge(profile: Checked, pins: Pins) -> Checked:
    """Return the profile as the rules judge it by what the lock file knows of its engine besides its name and tag.

    Raise as `Profile.load` does: what was a doubt, such as a flag that is not known, may be an error then.
    """
    engine = engine_of(profile.serving.image, pins)
    if engine.origin in (EngineOrigin.TAG, EngineOrigin.NONE) or not isinstance(profile, Profile):
        return profile
    return profile.with_settings((), engine=engine)


def checked(profile: Checked, pins: Pins | None = None) -> tuple[Deployment, tuple[Diagnostic, ...]]:
    """Return the deployment, its budget judged by every check, and what the checks and the profile's rules say.

    The budget never fits where a check says no. Raise `errors.ConfigError` for `model.config`.
    """
    deployment = sized(profile, pins)
    diagnostics = (*profile.warnings, *check([deployment]))
    return with_verdict(deployment, diagnostics), diagnostics


def sized(profile: Checked, pins: Pins | None = None) -> Deployment:
    """Return the deployment without its startup script and its project: for `size`, which is asked often."""
    active_pins = pins if pins is not None else NONE
    return resolve_without_script(profile, project=None, config_json=config_json_of(profile), lock=active_pins)


def deployment(
    profile: Checked,
    *,
    project: str | None,
    folder: Path | None = None,
    script: bool = True,
    pins: Pins | None = None,
    own_files: tuple[OwnFile, ...] | None = None,
) -> Deployment:
    """Return the profile with every default decided. Raise `errors.ConfigError` for a script above Google's limit.

    Without `script`, the startup script is only checked against that limit, which is faster. `own_files` are the
    project's in the script; without them they are read, the templates from `folder`.
    """
    active_pins = pins if pins is not None else NONE
    config_json = config_json_of(profile)
    files = own_files if own_files is not None else _own_files(profile, folder)
    if script:
        resolved = resolve(
            profile, _templates(), project=project, config_json=config_json, own_files=files, lock=active_pins
        )
    else:
        resolved = resolve_without_script(
            profile, project=project, config_json=config_json, own_files=files, lock=active_pins
        )
        render.check_size(resolved, _templates)
    if resolved.notify.targets and is_untrusted(profile):
        # A stranger's profile decides neither what runs on this machine nor where it connects to.
        return replace(resolved, notify=ignoring(resolved.notify, "its author is untrusted"))
    return resolved


def _own_files(profile: Checked, folder: Path | None) -> tuple[OwnFile, ...]:
    boot = profile.boot
    if not (boot.before or boot.after) and (folder is None or not os.path.isdir(f"{folder}/templates/boot")):  # noqa: PTH112 - pathlib takes four times as long
        return ()

    return read_own_files(profile, folder)


def previous_deployment(deployment: Deployment, change: Change) -> Deployment | None:
    """Return what exists where `change` would change it, with the script of its boot as this version renders it.

    None if nothing exists there, or if this version cannot resolve it.
    """
    if not change.slice_name:
        return None
    attributes = dict(deployment.attributes)
    for changed in change.fields:
        attributes.pop(changed.path, None)
        if changed.before is not None:
            attributes[changed.path] = changed.before
    previous = {path: value for path, value in attributes.items() if path not in FOLLOWS or path in change.before}
    return applied(deployment, previous)


def applied(deployment_now: Deployment, attributes: Mapping[str, Json]) -> Deployment | None:
    """Return the deployment that has these attributes, as this version resolves it; None if it cannot."""
    engine, digest = deployment_now.engine, digest_in(attributes)
    releases = {}
    if engine.release is not None and engine.origin is not EngineOrigin.TAG:
        releases = {digest: engine.release} if digest == digest_in(deployment_now.attributes) else {}
    pins = replace(with_pins(NONE, in_attributes(attributes)), releases=releases)
    # An earlier version may have applied it, without a rule about these names.
    names = (path.removeprefix("serving.env.") for path in attributes if path.startswith("serving.env."))
    plain: list[Json] = [name for name in names if looks_secret(name)]
    attributes = {**attributes, "serving.plain_env": plain} if plain else attributes
    text = view(deployment_now.name, replace(deployment_now, attributes=attributes, origins={}))
    config = deployment_now.origin("model.config")
    reader = Remembered(text, beside="" if config is None else config.file)
    try:
        checked_profile = parse(reader.name, reader, environment={}).read_by(FileReader())
        # A changed file is known by its fingerprint only. It is not read here: a path of an earlier apply may lead
        # elsewhere now.
        same = tuple(
            file
            for file in deployment_now.own_files
            if attributes.get(file.attribute) == deployment_now.attributes[file.attribute]
        )
        return deployment(checked_profile, project=deployment_now.project, pins=pins, own_files=same)
    except ConfigError:
        return None


def recorded(state: State, sets: Sequence[str]) -> Profile:
    """Return a profile for the deletion of the slices that a state has, with these settings on top."""
    attempts = state.attempts
    spec: Mapping[str, Json] = attempts[-1].spec if attempts else {}
    project = attempts[-1].project if attempts else None
    contents = {
        "version": 1,
        "name": state.deployment,
        "model": {"id": spec.get("model.id") or "none/none"},
        "tpu": {"type": spec.get("tpu.type") or "v6e-1"},
        "serving": {"image": spec.get("serving.image") or "vllm/vllm-tpu:latest"},
        "placement": {"project": project} if project else {},
        "lifecycle": {"prevent_destroy": bool(spec.get("lifecycle.prevent_destroy"))},
    }
    return Profile.from_text(json.dumps(contents), set=sets, environment={})


def accelerator_type(name: str) -> AcceleratorType:
    """Return a slice type. Raise `errors.UsageError` for an unknown one, with the closest."""
    slice_type = catalog.accelerator_type(name)
    if slice_type is None:
        wrong = type_names.problem_of(name, label=f"`{name}`")
        names = [each.name for each in catalog.accelerator_types()]
        hint = f"{wrong.hint[0].upper()}{wrong.hint[1:]}" if wrong.hint else f"Available: {', '.join(names)}."
        message = wrong.message.replace("accelerator type", "slice type")
        raise UsageError(f"{message}.", hint=hint.replace('"', "`"))
    return slice_type


def smallest_type() -> AcceleratorType:
    """Return the default slice type: one chip of the newest generation."""
    return GENERATIONS[0].types[0]


def _templates() -> Mapping[str, str]:
    return assets.templates()


def config_json_of(profile: Checked) -> str | None:
    """Return the text of `model.config`, which is relative to the file that names it."""
    config = profile.model.config
    if config is None:
        return None

    return read_named(profile, "model.config", config)


def _settings(settings: Mapping[str, object] | Sequence[str]) -> list[str]:
    """Return settings as `path=value` texts."""
    if not isinstance(settings, Mapping):
        return list(settings)

    return [f"{path}={json.dumps(value)}" for path, value in settings.items()]
