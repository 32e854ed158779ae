"""Verbs of other tools: the command here that does it, in a sentence. A verb that deletes is never a guess."""

from __future__ import annotations

from collections.abc import Mapping

_DOCS = "docs/how-to"
_APPLY = "`tpudeploy apply PROFILE` creates or updates a deployment, and waits until it serves."
_DESTROY = (
    "`tpudeploy destroy PROFILE` (or NAME) deletes a deployment and everything that is billed for it. It asks first."
)
_STATUS = "`tpudeploy status` shows deployments, their progress, endpoints and health."
_SCALE = f"Set replicas in the profile and run `tpudeploy apply PROFILE`: {_DOCS}/replicas.md."
_CHANGE = f"Change the profile and run `tpudeploy apply PROFILE`: {_DOCS}/change-a-server.md."
_COST = f"`tpudeploy plan PROFILE` prints prices, `tpudeploy status` what is billed now: {_DOCS}/limit-the-cost.md."

# Commands that delete. Nothing but these verbs leads to one.
DESTRUCTIVE = frozenset({"destroy", "gc", "force-unlock"})
SENTENCES: Mapping[str, str] = {
    **dict.fromkeys(
        ("up", "launch", "run", "start", "create", "deploy", "serve", "install", "provision", "new"), _APPLY
    ),
    **dict.fromkeys(("update", "upgrade", "edit", "set", "patch", "replace"), _CHANGE),
    **dict.fromkeys(("down", "stop", "delete", "rm", "remove", "kill", "teardown", "terminate", "del"), _DESTROY),
    **dict.fromkeys(("uninstall", "undeploy", "cleanup"), _DESTROY),
    **dict.fromkeys(("ps", "list", "ls", "get", "describe", "info", "top", "watch", "endpoints"), _STATUS),
    **dict.fromkeys(("rollback", "undo", "revert"), f"Restore the earlier profile and apply it: {_DOCS}/roll-back.md."),
    **dict.fromkeys(("scale", "autoscale", "resize"), _SCALE),
    **dict.fromkeys(
        ("restart", "reboot", "reload"),
        "`tpudeploy apply -replace 'NAME[0]' PROFILE` requests another slice for a replica. A changed profile restarts "
        f"the server alone: {_DOCS}/change-a-server.md.",
    ),
    **dict.fromkeys(
        ("chat", "ask", "prompt", "complete", "curl", "generate"),
        "`tpudeploy query PROFILE PROMPT` asks the endpoint a question, and `tpudeploy output` prints its address for "
        "any OpenAI client.",
    ),
    **dict.fromkeys(
        ("ssh", "exec", "attach", "shell", "connect"),
        "tpudeploy opens no shell. `tpudeploy logs PROFILE` reads a machine's log, `tpudeploy status` names the "
        "machine, and `gcloud compute tpus tpu-vm ssh` connects to it.",
    ),
    **dict.fromkeys(("cost", "costs", "price", "prices", "pricing", "bill", "billing", "budget", "usage"), _COST),
    **dict.fromkeys(
        ("tune", "optimize", "autotune"),
        f"`tpudeploy recommend` chooses a slice and settings, `tpudeploy compare` tries two: {_DOCS}/ab-test.md.",
    ),
    **dict.fromkeys(
        ("campaign", "sweep", "benchmark", "load-test"),
        f"`tpudeploy bench PROFILE` measures throughput and latency: {_DOCS}/benchmark.md.",
    ),
    **dict.fromkeys(
        ("debug", "diagnose", "troubleshoot", "why"),
        f"`tpudeploy logs PROFILE -explain` names the cause of a failed boot: {_DOCS}/find-what-is-wrong.md.",
    ),
    **dict.fromkeys(("diff", "preview", "dry-run", "dryrun"), "`tpudeploy plan PROFILE` shows what would change."),
    **dict.fromkeys(("check", "lint", "test"), "`tpudeploy validate PROFILE` checks a profile offline."),
    **dict.fromkeys(("fmt", "format"), "Profiles are plain YAML: `tpudeploy validate PROFILE` checks one."),
    **dict.fromkeys(("template", "export", "manifest"), "`tpudeploy render PROFILE WHAT` prints what would be sent."),
    **dict.fromkeys(("generate-profile", "scaffold", "bootstrap"), "`tpudeploy init` writes a commented profile."),
    **dict.fromkeys(
        ("unlock",), "`tpudeploy force-unlock ID` releases a lock; the message about the lock names its ID."
    ),
    **dict.fromkeys(
        ("models", "catalog", "search"), "`tpudeploy init` lists the shipped profiles, `tpudeploy size` sizes a model."
    ),
    **dict.fromkeys(
        ("login", "auth", "configure", "config"),
        "Credentials are Google's own: run gcloud auth application-default login. `tpudeploy doctor PROFILE` checks "
        "them.",
    ),
    **dict.fromkeys(
        ("refresh", "sync"), "`tpudeploy plan -refresh-only PROFILE` looks at what is there; so does `drift`."
    ),
}


def advice(word: str) -> str:
    """Return what to run instead of a verb of another tool, or ""."""
    return SENTENCES.get(word.lower().lstrip("-"), "")
