"""Explain why a server failed, fails or is slow: two looks at its metrics, its boot log, and what changed last.

A server that runs is judged by what its metrics add in -window. -runbook writes the findings to a Markdown file, with a
draft by the served model, which is marked as one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from tpudeploy import loading
from tpudeploy.adapters.vllm_metrics import HttpMeter
from tpudeploy.boot_log.reading import Draft, NoDraft
from tpudeploy.boot_log.view import explanation
from tpudeploy.config.profile import Profile
from tpudeploy.domain.errors import CloudError, UsageError
from tpudeploy.domain.facts import Unknown
from tpudeploy.domain.serialization import to_json
from tpudeploy.engine.metrics import server_figures
from tpudeploy.features.benchmark.roofline import roofline_of
from tpudeploy.features.diagnosis.changes import RecentChange, recent_changes
from tpudeploy.features.diagnosis.examination import ServerExamination, examine
from tpudeploy.features.diagnosis.runbook import question, runbook
from tpudeploy.features.diagnosis.view import diagnosis
from tpudeploy.loading import OneProfile, sized
from tpudeploy.operations.arguments import Agents, AProfile, Arg, NamesProfiles, Seconds
from tpudeploy.operations.boot_draft import ask_for_draft, with_draft
from tpudeploy.operations.declaration import Operation
from tpudeploy.operations.logs import LogReadings
from tpudeploy.operations.written_files import write_files
from tpudeploy.results import Result, document, result
from tpudeploy.text.paint import Paint
from tpudeploy.text.words import some
from tpudeploy.workspace import Workspace

WINDOW = 30.0  # seconds
_LOG_KEYS = ("logs", "draft", "no_draft")


@result
class DeploymentDiagnosis(Result):
    """Why servers fail or are slow: the running ones by their metrics, the others by their logs."""

    FORMAT = "diagnosis"
    servers: Annotated[tuple[ServerExamination, ...], "by machine: figures of the window, and findings with remedies"]
    changes: Annotated[tuple[RecentChange, ...], "what changed last, newest first"]
    log_error: Annotated[str, 'why the logs could not be read, or ""'] = ""
    runbook: Annotated[str, 'the runbook as Markdown, or ""'] = ""
    readings: LogReadings
    is_draft_expected: bool = False

    def values(self) -> dict[str, Any]:
        own = {name: to_json(getattr(self, name)) for name in ("servers", "changes", "log_error", "runbook")}
        return {**own, **self.readings.values()}

    @classmethod
    def schema(cls) -> Mapping[str, Any]:
        properties = LogReadings.schema()["properties"]
        keys: dict[str, Any] = {
            "servers": tuple[ServerExamination, ...],
            "changes": tuple[RecentChange, ...],
            "log_error": str,
            "runbook": str,
        }
        return document("diagnosis", {**keys, **{name: properties[name] for name in _LOG_KEYS}})

    def as_text(self, paint: Paint, width: int | None = None) -> str:
        silent = _of_silent_servers(self.readings, self.servers).readings
        texts = {name: explanation(reading, paint, width=width) for name, reading in silent.items()}
        logs = self.readings.with_headings(texts) if texts else ""
        return diagnosis(self.servers, self.changes, logs, self.readings.draft, paint, width=width)

    def messages(self, paint: Paint) -> str:
        errors = [f"Warning: the logs can't be read: {self.log_error}"] if self.log_error else []
        return "\n".join([*errors, *([self.readings.messages(paint)] if self.is_draft_expected else [])])


def diagnose(
    workspace: Workspace,
    profile: AProfile | None = None,
    colleague: Annotated[
        Path | OneProfile | None,
        Arg(
            "Ask the model of this other deployment, which serves, for the draft.",
            name="with",
            metavar="PROFILE",
            agents=Agents("the profile of another deployment, which serves", profiles=NamesProfiles.ONE),
        ),
    ] = None,
    *,
    window_seconds: Annotated[
        Seconds,
        Arg("The time between two looks at the metrics (default 30s).", name="window", variable="diagnose-window"),
    ] = WINDOW,
    runbook: Annotated[
        Path | str | None,
        Arg("Write findings and the served model's draft to FILE, as Markdown.", metavar="FILE", agents=None),
    ] = None,
    texts: Mapping[str, str] | None = None,
) -> DeploymentDiagnosis:
    """Explain why servers fail or are slow, by their metrics, their boot logs and what changed last.

    Running servers are judged by what their metrics add in `window_seconds`. A model drafts an explanation of a failed
    boot, or a runbook if `colleague` or `runbook` is given: the model that `colleague` serves, or the profile's own. It
    gets redacted evidence, and its draft is not verified. `runbook` is the Markdown file for findings and draft.
    `texts` are logs, which are read instead of machines.

    Raise as `logs` does, and `errors.UsageError` if neither profile is given.
    """
    deployment = None if profile is None else loading.profile(profile)
    author = deployment if colleague is None else loading.profile(colleague)
    if author is None:
        raise UsageError("There is no model to ask.", hint="Name a deployment that serves: --with PROFILE.")
    servers = () if deployment is None or texts is not None else _examinations(workspace, deployment, window_seconds)
    readings, log_error = _readings(workspace, deployment, texts, may_lack=any(not each.silent for each in servers))
    changes = () if deployment is None else _changes(workspace, deployment.name)
    request = DraftRequest(
        profile=deployment,
        author=author,
        servers=servers,
        changes=changes,
        silent=_of_silent_servers(readings, servers),
        is_explicit=colleague is not None or runbook is not None,
    )
    readings = replace(readings, draft=_draft(workspace, request))
    text = ""
    if runbook is not None:
        text = _runbook(request, readings.draft, at=workspace.adapters.clock.now())
        write_files({Path(runbook): text}, here=workspace.adapters.folder)
    return DeploymentDiagnosis(
        servers=servers,
        changes=changes,
        readings=readings,
        log_error=log_error,
        runbook=text,
        is_draft_expected=request.is_explicit or request.has_failed_start,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftRequest:
    """What a draft is about. `silent` are the logs of servers that do not answer.

    `profile` is that of the servers, None where only logs are explained. `is_explicit`: the user wants a draft about
    running servers too.
    """

    profile: Profile | None
    author: Profile
    servers: tuple[ServerExamination, ...]
    changes: tuple[RecentChange, ...]
    silent: LogReadings
    is_explicit: bool

    @property
    def has_failed_start(self) -> bool:
        return any(not log.is_serving for log in self.silent.readings.values())

    @property
    def has_problem(self) -> bool:
        return any(server.problems for server in self.servers)


def _draft(workspace: Workspace, request: DraftRequest) -> Draft | NoDraft | None:
    if request.has_problem and request.is_explicit and request.profile is not None:
        return _runbook_draft(workspace, request.profile, request)
    if request.has_failed_start or not request.has_problem:
        return with_draft(workspace, request.silent, request.profile, request.author).draft
    because = "A draft about a running server is written on request."
    return NoDraft(because=because, hint="-runbook FILE writes one.")


def _runbook(request: DraftRequest, draft: Draft | NoDraft | None, *, at: float) -> str:
    causes = {
        request.silent.label(name): f"{log.cause.what} {log.cause.remedy}"
        for name, log in request.silent.readings.items()
        if log.cause is not None and not log.is_serving
    }
    name = (request.profile or request.author).name
    return runbook(name, request.servers, request.changes, causes, draft, at=at)


def _of_silent_servers(readings: LogReadings, servers: tuple[ServerExamination, ...]) -> LogReadings:
    """Return the logs without those of servers that answer: however they started, they did."""
    answering = {server.address for server in servers if not server.silent}
    silent = {name: log for name, log in readings.readings.items() if readings.addresses.get(name) not in answering}
    return replace(readings, readings=silent)


def _examinations(workspace: Workspace, profile: Profile, window: float) -> tuple[ServerExamination, ...]:
    """Return what two looks at the metrics of each machine say; nothing without a machine."""
    adapters = workspace.adapters
    deployment = workspace.deployment(profile, script=False)
    state = adapters.states.read(deployment.name).state
    if state is None or not any(attempt.holds_slice for attempt in state.slice_attempts):
        return ()
    meter, world, clock = HttpMeter(has_iap=not adapters.is_emulated), adapters.world(), adapters.clock
    began = clock.now()
    first = server_figures(world, meter, deployment)
    second = first
    if not all(isinstance(each.figures, Unknown) for each in first):
        clock.sleep(window)
        second = server_figures(world, meter, deployment)
    before = {each.address: each.figures for each in first}
    return tuple(
        examine(
            each.address,
            each.url,
            (before.get(each.address, Unknown(because="its machine is new")), each.figures),
            clock.now() - began,
            budget=deployment.budget,
            roofline=roofline_of(deployment.accelerator, deployment),
        )
        for each in second
    )


def _readings(
    workspace: Workspace, profile: Profile | None, texts: Mapping[str, str] | None, *, may_lack: bool
) -> tuple[LogReadings, str]:
    """Return what the logs say, and why they cannot be read: of servers that answer, that is no error."""
    errors: list[str] = []

    def note(slice_name: str, cause: CloudError) -> None:
        errors.append(f"{slice_name}: {cause.message}")

    try:
        readings = workspace.logs(profile, texts=texts, on_unreadable=note)
    except CloudError as cause:
        if not may_lack:
            raise
        return LogReadings(texts={}, readings={}, addresses={}, draft=None), cause.message
    return readings, some(errors)


def _changes(workspace: Workspace, name: str) -> tuple[RecentChange, ...]:
    backend = workspace.adapters.states
    current = backend.read(name).state
    return recent_changes(() if current is None else (current, *backend.earlier(name)))


def _runbook_draft(workspace: Workspace, profile: Profile, request: DraftRequest) -> Draft | NoDraft:
    attributes = sized(profile, workspace.adapters.pins.read()).attributes
    spec = profile
    names = {
        str(spec.placement.project or workspace.adapters.known_project or ""): "PROJECT",
        str(spec.placement.service_account or ""): "SERVICE-ACCOUNT",
        **{str(secret): "SECRET-NAME" for secret in spec.secrets.values()},
    }
    names = {name: word for name, word in names.items() if name}

    def ask(characters: int) -> str:
        return question(request.servers, request.changes, attributes, names, characters=characters)

    return ask_for_draft(workspace, ask, request.author, about=spec.name, own=spec.name)


OPERATION = Operation(
    run=diagnose,
    results=(DeploymentDiagnosis,),
    title="Diagnose a deployment",
    tool="diagnose",
)
