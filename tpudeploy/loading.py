"""Profiles from disk, and what follows from them offline: the deployment they mean, and what its chips hold."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

from tpudeploy.config.profile import Profile as Checked
from tpudeploy.domain.errors import ConfigError

if TYPE_CHECKING:
    from tpudeploy.domain.accelerator import AcceleratorType
    from tpudeploy.domain.budget import HbmBudget, Unsized
    from tpudeploy.domain.deployment import Deployment, Json
    from tpudeploy.domain.diagnostics import Diagnostic
    from tpudeploy.domain.pins import Pins
    from tpudeploy.domain.plan import Change


class Profile(Checked):
    """A valid profile. What it says is in `.spec`, what to think about in `.warnings`."""

    __slots__ = ()

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
    ) -> Self:
        """A profile from disk, with overlays laid over it, and settings on top: a mapping, or `path=value` texts.

        Where the author is `untrusted`, the profile reads no environment variable but those of `allow_env`, and opens
        no file outside its project, which is at or above it as seen from `folder`. Of a trusted one, `allow_env` are
        the variables that may be read although their names look like those of secrets.

        Raise `errors.ProfileInvalid`, with every problem in `.diagnostics`, or `errors.ProfileNotFound`.
        """
        from tpudeploy.adapters.files import FileReader, is_inside
        from tpudeploy.adapters.project import boundary_of
        from tpudeploy.config.parse import parse
        from tpudeploy.config.trust import Trust

        def project() -> Path:
            return boundary_of(Path(folder), Path(path))

        named = [str(path), *map(str, overlays)]
        parsed = parse(
            named[0],
            FileReader(project(), operator_paths=named) if untrusted else FileReader(),
            overlays=named[1:],
            sets=_settings(set),
            environment=os.environ if environment is None else environment,
            trust=Trust(
                is_trusted=not untrusted,
                allowed=frozenset(allow_env),
                is_outside=lambda file: not is_inside(project(), file),
            ),
        )
        return cls(spec=parsed.spec, origins=parsed.origins, warnings=parsed.warnings, reader=parsed.reader)


def size(profile: Checked) -> HbmBudget | Unsized:
    """Return what the profile's chips would hold, or why that is not known. It never fits where a check says no.

    Raise `errors.ConfigError` for `model.config`.
    """
    return checked(profile)[0].budget


def checked(profile: Checked) -> tuple[Deployment, tuple[Diagnostic, ...]]:
    """Return the deployment, its budget judged by every check, and what the checks and the profile's rules say."""
    from tpudeploy.sizing.checks import check, with_verdict

    deployment = sized(profile)
    diagnostics = (*profile.warnings, *check([deployment]))
    return with_verdict(deployment, diagnostics), diagnostics


def sized(profile: Checked) -> Deployment:
    """Return the deployment without its startup script and its project: for `size`, which is asked often."""
    from tpudeploy.planning.resolve import without_script

    return without_script(profile, project=None, config_json=_config_json(profile))


def deployment(profile: Checked, *, project: str | None, script: bool = True, pins: Pins | None = None) -> Deployment:
    """The profile with every default decided. Raise `errors.ConfigError` for a script larger than Google takes.

    Without `script`, the startup script is only known to be one that Google takes: enough to check, and sooner.
    """
    from tpudeploy.domain.pins import NONE
    from tpudeploy.node import render
    from tpudeploy.planning.resolve import resolve, without_script

    held = pins if pins is not None else NONE
    if script:
        return resolve(profile, _templates(), project=project, config_json=_config_json(profile), held=held)
    known = without_script(profile, project=project, config_json=_config_json(profile), held=held)
    render.check_size(known, _templates)
    return known


def before(wanted: Deployment, change: Change) -> Deployment | None:
    """What stands where `change` would change it, with the script that it was booted with, as this version renders it.

    None where nothing stands, or where this version cannot say what that was.
    """
    from tpudeploy.pins.pins import FOLLOWS

    if not change.slice_name:
        return None
    known = dict(wanted.attributes)
    for field in change.fields:
        known.pop(field.path, None)
        if field.before is not None:
            known[field.path] = field.before
    known = {path: value for path, value in known.items() if path not in FOLLOWS or path in change.before}
    return applied(wanted, known)


def applied(wanted: Deployment, known: Mapping[str, Json]) -> Deployment | None:
    """The deployment that has the attributes `known`, as this version resolves it; None where it cannot say."""
    from dataclasses import replace

    from tpudeploy.adapters.files import FileReader
    from tpudeploy.config.parse import parse
    from tpudeploy.config.reader import Remembered
    from tpudeploy.config.trust import looks_secret
    from tpudeploy.domain.pins import NONE
    from tpudeploy.pins.pins import in_attributes, with_pins
    from tpudeploy.views.profile import profile

    held = with_pins(NONE, in_attributes(known))
    # It was applied, perhaps by a version that had no rule about these names.
    names = (path.removeprefix("serving.env.") for path in known if path.startswith("serving.env."))
    plain: list[Json] = [name for name in names if looks_secret(name)]
    known = {**known, "serving.plain_env": plain} if plain else known
    text = profile(wanted.name, replace(wanted, attributes=known, origins={}))
    config = wanted.origin("model.config")
    reader = Remembered(text, beside="" if config is None else config.file)
    try:
        parsed = replace(parse(reader.name, reader, environment={}), reader=FileReader())
        return deployment(parsed, project=wanted.project, pins=held)
    except ConfigError:
        return None


def accelerator_type(name: str) -> AcceleratorType:
    """Raise `errors.UsageError` for a type that there is not, with the one that was meant."""
    from tpudeploy import catalog
    from tpudeploy.domain.errors import UsageError

    found = catalog.accelerator_type(name)
    if found is None:
        known = [t.name for t in catalog.accelerator_types()]
        meant = catalog.closest_type(name, is_accepted=lambda _: True)
        hint = f"Did you mean `{meant}`?" if meant else f"There are {', '.join(known)}."
        raise UsageError(f"There is no slice type `{name}`.", hint=hint)
    return found


def smallest_type() -> AcceleratorType:
    """What is meant where nobody says: one chip of the newest generation."""
    from tpudeploy.catalog.generations import GENERATIONS

    return GENERATIONS[0].types[0]


def _templates() -> Mapping[str, str]:
    from tpudeploy.adapters import assets

    return assets.templates()


def _config_json(profile: Checked) -> str | None:
    """The text of `model.config`, which is relative to the file that names it."""
    from tpudeploy.adapters.files import FileReader
    from tpudeploy.config import codes
    from tpudeploy.config.reader import Unreadable
    from tpudeploy.domain.diagnostics import Diagnostic

    written = profile.spec.model.config
    if written is None:
        return None
    reader, at = profile.reader or FileReader(), profile.origins["model.config"]
    path = reader.resolve(at.file, written)
    try:
        return reader.read(path).decode("utf-8", "replace")
    except Unreadable as cause:
        reference = profile.reference("model.config")
        name, hint = (path, cause.hint) if reference is None else (reference, "")
        message = f"{name} {cause.reason}"
        code = codes.OUTSIDE_PROJECT if cause.is_refused else codes.UNREADABLE
        found = Diagnostic(code=code, message=message, path="model.config", location=at, hint=hint)
        raise ConfigError(message, hint=hint, diagnostics=[found]) from cause


def _settings(given: Mapping[str, object] | Sequence[str]) -> list[str]:
    if not isinstance(given, Mapping):
        return list(given)
    import json

    return [f"{path}={json.dumps(value)}" for path, value in given.items()]
