"""Check profiles offline: format, flags, placement, startup script."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import cache
from typing import Any

from tpudeploy import loading
from tpudeploy.adapters.own_files import check_by_shellcheck
from tpudeploy.catalog.support import deployment_support
from tpudeploy.domain import exits
from tpudeploy.domain.diagnostics import Diagnostic
from tpudeploy.domain.errors import ConfigError
from tpudeploy.domain.excerpt import describe_diagnostics
from tpudeploy.domain.pins import Pins
from tpudeploy.loading import OneProfile
from tpudeploy.operations.arguments import ProfileFiles
from tpudeploy.operations.declaration import Access, Operation
from tpudeploy.planning.plan_rules import unreachable_end
from tpudeploy.results import Result, document, result
from tpudeploy.sizing.checks import check
from tpudeploy.text.paint import Paint
from tpudeploy.views.reports import CheckedProfile
from tpudeploy.workspace import Workspace

FORMATS = ("text", "json", "github", "sarif", "junit")


@result
class Validation(Result):
    """The diagnostics of each profile."""

    FORMAT = "diagnostics"
    profiles: tuple[CheckedProfile, ...]

    @property
    def is_valid(self) -> bool:
        return all(profile.is_valid for profile in self.profiles)

    @property
    def exit_code(self) -> int:
        return exits.SUCCESS if self.is_valid else exits.ERROR

    def values(self) -> dict[str, Any]:
        files = [
            {
                "file": each.file,
                "valid": each.is_valid,
                **({"note": each.note} if each.note else {}),
                "diagnostics": [asdict(d) for d in each.diagnostics],
            }
            for each in self.profiles
        ]
        return {"valid": self.is_valid, "profiles": files}

    @classmethod
    def schema(cls) -> Mapping[str, Any]:
        profile = {"file": str, "valid": bool, "note": str, "diagnostics": tuple[Diagnostic, ...]}
        schema: Any = document("diagnostics", {"valid": bool, "profiles": [profile]})
        schema["properties"]["profiles"]["items"]["required"].remove("note")  # only where there is something to know
        return schema  # type: ignore[no-any-return]  # a schema is plain JSON

    def as_text(self, paint: Paint, width: int | None = None) -> str:
        lines = []
        for each in self.profiles:
            lines += [describe_diagnostics(each.diagnostics, paint.styled)] if each.diagnostics else []
            lines += [each.line] if each.is_valid else []
        return "\n".join(lines)

    def messages(self, paint: Paint) -> str:
        files_of: dict[str, list[str]] = {}
        for each in self.profiles:
            if each.name and each.file not in files_of.setdefault(each.name, []):
                files_of[each.name].append(each.file)
        return "\n".join(
            f"Warning: {' and '.join(files)} are both called {name}: `plan` and `apply` take one of them at a time."
            for name, files in files_of.items()
            if len(files) > 1
        )


def validate(workspace: Workspace, profiles: ProfileFiles) -> Validation:
    """Check profiles offline: format, flags, placement, memory, startup script.

    A profile that is named by its path may be invalid; its problems are in the result.
    """
    pins = cache(workspace.adapters.pins.read)  # read once, and only if a profile is valid
    return Validation(profiles=tuple(_checked(workspace, each, pins) for each in loading.each(profiles)))


def _checked(workspace: Workspace, one: OneProfile, pins: Callable[[], Pins]) -> CheckedProfile:
    file = loading.name_of(one)
    try:
        profile = loading.judge(loading.profile(one), pins())
        deployment = workspace.deployment(profile, offline=True, script=False, pins=pins())
        warnings = workspace.warnings(profile)
    except ConfigError as error:
        # It only reads, so a guess by spelling can do no harm.
        error.hint = f"{error.guess}\n{error.hint}".strip()
        return CheckedProfile(file=file, diagnostics=tuple(error.diagnostics) or error.problems)
    diagnostics = (*warnings, *check([deployment]), *unreachable_end(deployment, workspace.adapters.clock.now()))
    if deployment.own_files:
        diagnostics += tuple(check_by_shellcheck(deployment.own_files))
    support = deployment_support(deployment)
    return CheckedProfile(file=file, diagnostics=diagnostics, name=deployment.name, note=support.sentence)


OPERATION = Operation(
    run=validate,
    results=(Validation,),
    access=Access.OFFLINE,
    title="Validate profiles",
    tool="validate",
    options=(),
)
