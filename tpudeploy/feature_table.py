"""Features: what a deployment can do without, one row each. All that the rest knows of a feature is its row.

A feature is a folder of tpudeploy/features, with its nouns, logic, adapters, operations, commands, documents and view.
Without its folder, or one that it needs, its row does not count: nothing else notices.

Why: decision 85 in docs/decisions.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.machinery import PathFinder
from types import ModuleType
from typing import NamedTuple


class FeatureCommand(NamedTuple):
    """A command, in a group of `--help`. Without a `module`, it is made from the row of its operation."""

    group: str
    summary: str
    module: str = ""


class Feature(NamedTuple):
    """What a feature adds, by name, and the module of its folder that has it.

    `forms` add options to a command of another folder, `results` are public names of the library, `renders` what
    `render` prints. `companion` is the module of what runs beside the deployments of an apply, `documents` that with
    the JSON Schemas of what operations do not return, `tools` that with agents' tools beside those of its operations.
    `needs` are the features that it imports.
    """

    operations: Mapping[str, str] = {}
    commands: Mapping[str, FeatureCommand] = {}
    results: Mapping[str, str] = {}
    forms: Mapping[str, str] = {}
    renders: Mapping[str, str] = {}
    companion: str = ""
    documents: str = ""
    tools: str = ""
    needs: tuple[str, ...] = ()


_EXPORTS = ("gcloud", "gke", "terraform", "role", "watch-systemd", "watch-cloud-run", "watch-github")
_ROWS: Mapping[str, Feature] = {
    "benchmark": Feature(
        operations={
            **dict.fromkeys(("bench", "bench_import", "import_benchmarks", "bench_report"), "bench_operation"),
            **dict.fromkeys(("benchmark_runs", "benchmark_run", "operating_points"), "runs_operation"),
            "benchmark_trend": "trend_operation",
            "compare": "compare_operation",
            "recommend": "recommend_operation",
            "recommend_models": "recommend_models_operation",
        },
        commands={
            "bench": FeatureCommand(
                group="Measure",
                summary="Measure throughput and latency, and flag untrustworthy figures.",
                module="bench_command",
            ),
            "compare": FeatureCommand(
                group="Measure",
                summary="Compare benchmark runs and published figures, or run an A/B test.",
                module="compare_command",
            ),
            "recommend": FeatureCommand(
                group="Measure",
                summary="Recommend a slice and a profile for a workload, or compare models for it.",
                module="recommend_command",
            ),
        },
        results={
            **dict.fromkeys(("ServerAddress", "SweepOptions"), "bench_operation"),
            **dict.fromkeys(("BenchmarkRun", "OperatingPoints", "Runs"), "runs_operation"),
            "BenchmarkTrend": "trend_operation",
            "Compared": "compare_operation",
            "Recommended": "recommend_operation",
            "RecommendedModels": "recommend_models_operation",
        },
        documents="documents",
        tools="tools",
    ),
    "accuracy": Feature(
        operations={"accuracy": "operation"},
        forms={"verify": "command"},
        results={"Accuracy": "operation"},
    ),
    "ab_test": Feature(
        operations={"ab": "operation", "ab_propose": "operation", "ab_result": "operation"},
        forms={"compare": "command"},
        results={"AbProposal": "operation", "AbResult": "operation"},
        tools="tools",
        needs=("benchmark", "accuracy"),
    ),
    "campaign": Feature(
        operations=dict.fromkeys(("campaign", "campaign_propose", "campaign_result", "campaign_report"), "operation"),
        commands={
            "campaign": FeatureCommand(
                group="Measure",
                summary="Measure many models, slices and settings under one budget, and write the article.",
                module="command",
            )
        },
        results=dict.fromkeys(("CampaignProposal", "CampaignResult"), "operation"),
        documents="documents",
        tools="tools",
        needs=("benchmark", "accuracy"),
    ),
    "tune": Feature(
        operations=dict.fromkeys(("tune", "tune_result"), "operation"),
        commands={
            "tune": FeatureCommand(
                group="Measure",
                summary="Find the best flags for a load on its slice, below a cost ceiling.",
                module="command",
            )
        },
        results={"Tuned": "operation"},
        tools="tools",
        needs=("benchmark", "accuracy", "ab_test"),
    ),
    "gitops": Feature(
        commands={
            "ci": FeatureCommand(
                group="Automate",
                summary="Run in a pipeline: plan pull requests, apply what was merged, report drift.",
                module="command",
            )
        },
        documents="documents",
    ),
    "agents": Feature(
        commands={
            "mcp": FeatureCommand(
                group="Automate",
                summary="Serve the same operations to agents as typed tools, read-only by default.",
                module="command",
            )
        },
    ),
    "rehearsal": Feature(
        operations={"rehearse": "operation"},
        commands={
            "rehearse": FeatureCommand(
                group="Measure",
                summary="Check unverified facts about Google Cloud on your project, up to a cost ceiling.",
                module="command",
            )
        },
        results={"Rehearsal": "operation"},
    ),
    "compile": Feature(
        operations={"compile": "operation"},
        commands={
            "compile": FeatureCommand(
                group="Start",
                summary="Compile a profile's graphs without a chip to see how much memory they need.",
                module="command",
            )
        },
        forms={"size": "size_command"},
        results={"Compiled": "compiled"},
    ),
    "chat": Feature(
        commands={
            "chat": FeatureCommand(
                group="Operate",
                summary="Talk to a deployed model: a conversation, or one answer to what is piped in.",
                module="command",
            )
        },
    ),
    "cost": Feature(
        operations={"cost": "operation"},
        commands={
            "cost": FeatureCommand(
                group="Operate",
                summary="Show what deployments cost at list price and what still runs.",
            )
        },
        results={"Cost": "operation"},
    ),
    "diagnosis": Feature(
        operations={"diagnose": "operation"},
        commands={
            "diagnose": FeatureCommand(
                group="Operate",
                summary="Explain why a server failed, fails or is slow, and write a runbook.",
            )
        },
        results={"DeploymentDiagnosis": "operation"},
        needs=("benchmark",),
    ),
    "intake": Feature(
        operations={"draft_profile": "operation"},
        commands={
            "up": FeatureCommand(
                group="Start",
                summary="Serve a model from its id: write a profile, show size, plan and price, ask, apply.",
                module="up_command",
            ),
        },
        forms={"init": "command"},
        results={"DraftedProfile": "operation"},
    ),
    "notify": Feature(companion="companion", documents="documents"),
    "support": Feature(
        operations={"support_bundle": "operation"},
        commands={
            "support-bundle": FeatureCommand(
                group="Operate",
                summary="Collect what explains a deployment in a redacted archive.",
                module="command",
            )
        },
    ),
    "exports": Feature(renders=dict.fromkeys(_EXPORTS, "renderers")),
    "dashboard": Feature(
        commands={
            "dashboard": FeatureCommand(
                group="Operate",
                summary="Show all deployments live in a local web page.",
                module="command",
            )
        },
        documents="documents",
    ),
    "learn": Feature(
        commands={
            "learn": FeatureCommand(
                group="Automate",
                summary="Read an engine release's flags and rules from an installed copy, and prove them.",
                module="command",
            )
        },
        needs=("compile",),
    ),
    "alerts": Feature(
        operations={"alerts": "operation"},
        commands={
            "alerts": FeatureCommand(
                group="Automate",
                summary="Write Prometheus rules, a Grafana dashboard and metrics collection config.",
                module="command",
            )
        },
        results={"AlertFile": "operation"},
        needs=("benchmark",),
    ),
}


def _are_here(*names: str) -> bool:
    folder = __file__.rpartition("feature_table")[0] + "features"
    return all(PathFinder.find_spec(f"tpudeploy.features.{name}", [folder]) is not None for name in names)


FEATURES: Mapping[str, Feature] = {name: row for name, row in _ROWS.items() if _are_here(name, *row.needs)}


def _homes(kind: str) -> dict[str, str]:
    """Return the module of each name that features add of one kind."""
    return {
        name: f"tpudeploy.features.{folder}.{module}"
        for folder, row in FEATURES.items()
        for name, module in getattr(row, kind).items()
    }


OPERATIONS: Mapping[str, str] = _homes("operations")
RESULTS: Mapping[str, str] = _homes("results")
RENDERS: Mapping[str, str] = _homes("renders")
COMMANDS: Mapping[str, FeatureCommand] = {
    name: command._replace(module=f"tpudeploy.features.{folder}.{command.module}") if command.module else command
    for folder, row in FEATURES.items()
    for name, command in row.commands.items()
}


def modules(kind: str) -> Iterator[ModuleType]:
    """Yield the module of each feature that has one of this kind."""
    for folder, row in FEATURES.items():
        if name := getattr(row, kind):
            yield import_module(f"tpudeploy.features.{folder}.{name}")


def forms(command: str) -> tuple[ModuleType, ...]:
    """Return the modules of the further forms of a command: each has `arguments`, and `run`, None for another form."""
    return tuple(
        import_module(f"tpudeploy.features.{folder}.{row.forms[command]}")
        for folder, row in FEATURES.items()
        if command in row.forms
    )
