"""Define the tool that says what this server is: its settings in force, its rules, its tools and their other names."""

from __future__ import annotations

import os

from tpudeploy.cli.documents import Document
from tpudeploy.features.agents.aliases import ALIASES
from tpudeploy.features.agents.prompts import PROMPTS
from tpudeploy.features.agents.session import Call, session
from tpudeploy.operations.declaration import Access
from tpudeploy.version import VERSION

_MOST_PROFILES = 20  # that are named
_RULES = (
    "A change is a plan that a person has seen: edit the profile, `plan`, then `apply` or `destroy` with its plan_id.",
    "What ends or restarts a server needs a person's yes. So does spending more, unless the ceiling covers it.",
    "apply, destroy, bench, ab, tune and campaign run in the background: poll `operation`.",
    "No tool takes a secret. A profile names secrets of Secret Manager.",
    "An answer has at most max_bytes (4000). `left_out` says what is missing and how to get it.",
)
_GROUPS = {
    Access.OFFLINE: "reads files",
    Access.LOOK: "reads the cloud",
    Access.CHANGE: "changes",
    Access.LOAD: "puts load on a server",
    Access.END: "may end or restart",
}


def get_help(ctx: Call) -> Document:
    """Say what this server may do, with its settings in force: project, ceiling, tools, other names, prompts."""
    agents = session(ctx)
    folder = agents.project.context.folder.resolve()
    with agents.project.opened() as opened:
        adapters = opened.workspace.adapters
        backend, cloud = adapters.backend, adapters.known_project
    profiles = agents.project.profiles()
    offered = agents.accesses
    groups = {label: sorted(name for name in offered if offered[name] is access) for access, label in _GROUPS.items()}
    return {
        "format": "tpudeploy.help/1",
        "version": VERSION,
        "project": {
            "folder": os.fspath(folder),
            "profiles": profiles[:_MOST_PROFILES],
            "profiles_in_all": len(profiles),
            "backend": backend,
            "google_cloud_project": cloud,
        },
        "may": {
            "change": agents.allow_writes,
            "max_cost": agents.max_cost,
            "buys_without_a_person": agents.buys_freely,
        },
        "rules": list(_RULES),
        "tools": {label: own for label, own in groups.items() if own},
        "other_names": {
            tool: " ".join(name for name, alias in ALIASES.items() if alias.tool == tool)
            for tool in sorted({alias.tool for alias in ALIASES.values()} & offered.keys())
        },
        "prompts": {function.__name__: title for title, function in PROMPTS.items()},
    }
