"""Publish a pipeline's run: on its summary page, as outputs, as files, and on the forge."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from tpudeploy.cli.context import Context
from tpudeploy.cli.error_report import report_error
from tpudeploy.cli.terminal import Terminal
from tpudeploy.domain import errors
from tpudeploy.domain.diagnostics import Diagnostic
from tpudeploy.domain.plan import Plan
from tpudeploy.features.gitops import pipeline as adapter
from tpudeploy.features.gitops import service
from tpudeploy.features.gitops.forge import CommitState, CommitStatus, Host, Pipeline
from tpudeploy.features.gitops.ports import Forge
from tpudeploy.planning.plan_print import plan_print
from tpudeploy.workspace import Workspace

_FILES = {"json-plan-path": "plan.json", "text-plan-path": "plan.md", "fingerprint-path": "fingerprint"}
_PRIVILEGED_EVENT = "pull_request_target"  # an event that runs with the repository's credentials, also for forks
_GITHUB = "https://api.github.com"
_CALL = 30.0  # seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineRun:
    """A run of a pipeline. `forge` is None without a repository or token, and for a pull request from a fork."""

    workspace: Workspace
    pipeline: Pipeline
    forge: Forge | None
    terminal: Terminal
    artifacts: Path | None
    label: str
    key: str

    @classmethod
    def from_arguments(
        cls, args: argparse.Namespace, context: Context, workspace: Workspace, *, key: str
    ) -> PipelineRun:
        """Return the current run. Raise `errors.UsageError` if a fork's profiles would run with our credentials."""
        pipeline = adapter.pipeline(os.environ)
        if pipeline.event == _PRIVILEGED_EVENT and pipeline.is_fork:
            raise errors.UsageError(
                "This event runs a fork's profiles with the credentials of this repository.",
                hint="Run on `pull_request` instead, where a fork is only validated.",
            )
        return cls(
            workspace=workspace,
            pipeline=pipeline,
            forge=_forge(pipeline, context, author=args.author),
            terminal=context.terminal,
            artifacts=None if args.artifacts is None else context.folder / args.artifacts,
            label=args.label,
            key=key,
        )

    def keep(self, planned: Plan, proposal: service.PlanProposal) -> None:
        """Publish a plan on the run's page, as outputs for later steps, and as files."""
        adapter.summarize(proposal.summary)
        outputs = {
            "changes": str(not planned.is_empty).lower(),
            "fingerprint": plan_print(planned),
            "approvable": str(not proposal.obstacle).lower(),
        }
        if self.artifacts is not None:
            plan = json.dumps(planned.to_dict(), ensure_ascii=False)
            texts = {"plan.json": plan, "plan.md": proposal.summary, "fingerprint": outputs["fingerprint"]}
            if proposal.signed:
                texts["approval"] = proposal.signed
            adapter.keep(self.artifacts, texts)
            outputs |= {output: str(self.artifacts / name) for output, name in _FILES.items()}
        adapter.outputs(outputs)

    def refuse(self, error: errors.TpudeployError) -> None:
        """Publish an error wherever the plan would have been, so that an older plan is not mistaken for it."""
        diagnostics: Iterable[Diagnostic] = error.diagnostics if isinstance(error, errors.ConfigError) else ()
        refusal = service.refusal(error.message, error.hint, diagnostics, self.pipeline, label=self.label)
        adapter.summarize(refusal.summary)
        forge, pull = self.forge, self.pipeline.pull
        if forge is not None and pull is not None:
            self._publish(lambda: service.propose(forge, self.pipeline, pull, refusal, key=self.key))
        self.classify("plan", CommitState.FAILURE, error.message)

    def end(self, code: int, reason: str) -> None:
        adapter.outputs({"exit-code": str(code), "failure-reason": reason})

    def classify(self, what: str, verdict: CommitState, summary: str) -> None:
        """Set a status on the commit, and a neutral check if the verdict is pending."""
        forge, commit = self.forge, self.pipeline.commit
        if forge is None or not commit:
            return
        context = f"tpudeploy/{what}/{self.label}" if self.label else f"tpudeploy/{what}"
        status = CommitStatus(context=context, verdict=verdict, summary=summary, url=self.pipeline.run_url)
        self._publish(lambda: forge.classify(commit, status))
        if verdict is CommitState.PENDING:
            self._publish(lambda: forge.note(commit, status))

    def tell_result(self, text: str) -> None:
        """Comment on the merged pull request."""
        forge = self.forge
        if forge is not None:
            self._publish(lambda: service.tell_result(forge, self.pipeline, text, label=self.label))

    def tell(self, publish: Callable[[Forge], object]) -> None:
        """Publish on the forge, if there is one."""
        forge = self.forge
        if forge is not None:
            self._publish(lambda: publish(forge))

    def _publish(self, publish: Callable[[], object]) -> None:
        """Call `tell` and print a forge error instead of raising it, because the run's own result matters more."""
        try:
            publish()
        except errors.ForgeError as error:
            report_error(self.terminal, error)


def _forge(pipeline: Pipeline, context: Context, *, author: str) -> Forge | None:
    token = os.environ.get("GITHUB_TOKEN") or os.environ.get("GH_TOKEN")
    if pipeline.host is not Host.GITHUB or pipeline.is_fork:
        return None
    if not token:
        context.terminal.talk("Without GITHUB_TOKEN, nothing is published on GitHub.")
        return None
    from tpudeploy.features.gitops.github import GitHub

    api = os.environ.get("GITHUB_API_URL") or _GITHUB
    repository = pipeline.repository
    return GitHub(api=api, repository=repository, token=token, author=author, clock=context.clock, timeout=_CALL)
