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
_COST = f"`tpudeploy cost` shows what was spent, `tpudeploy plan PROFILE` prices: {_DOCS}/limit-the-cost.md."

_HISTORY = f"`tpudeploy state history NAME` lists earlier states; to restore one: {_DOCS}/roll-back.md."
_OWN_STATE = (
    "Each deployment has a state of its own, by the name in its profile. For another environment, apply the profile "
    f"under another name, with `-file` for what differs: {_DOCS}/several-deployments.md."
)
_STOP = "It runs until Ctrl-C."

# Commands and verbs that delete or overwrite, and options that leave out a question or a check. Only their own words
# above, and their own misspelled names, lead to one.
DESTRUCTIVE = frozenset(
    {"destroy", "gc", "force-unlock", "rm", "push"}
    | {"--force", "--auto-approve", "--destroy", "--foreign", "--replace", "--adopt", "--allow-writes", "--accept"}
)
SENTENCES: Mapping[str, str] = {
    **dict.fromkeys(("launch", "run", "start", "create", "deploy", "serve", "install", "provision", "new"), _APPLY),
    **dict.fromkeys(("update", "upgrade", "edit", "set", "patch", "replace"), _CHANGE),
    **dict.fromkeys(("down", "stop", "delete", "rm", "remove", "kill", "teardown", "terminate", "del"), _DESTROY),
    **dict.fromkeys(("uninstall", "undeploy", "cleanup", "clean", "purge", "nuke", "cancel", "stop-all"), _DESTROY),
    **dict.fromkeys(("ps", "list", "ls", "get", "describe", "info", "top", "watch", "health", "wait"), _STATUS),
    **dict.fromkeys(
        ("pause", "suspend", "resume", "hibernate", "sleep"),
        "A slice cannot pause: it is billed until it is deleted. `tpudeploy destroy PROFILE` deletes it, and "
        "`tpudeploy apply PROFILE` requests one again.",
    ),
    **dict.fromkeys(
        ("port-forward", "tunnel", "proxy", "forward"),
        "health.via chooses how a server is reached, by default also through IAP. For clients, `gcloud compute "
        "start-iap-tunnel` opens a tunnel to the machine that `tpudeploy status` names.",
    ),
    **dict.fromkeys(
        ("url", "open", "address", "endpoints", "outputs"),
        "`tpudeploy output NAME` prints the endpoint, which any OpenAI client takes.",
    ),
    **dict.fromkeys(
        ("quota", "quotas", "capacity", "availability", "regions", "locations"),
        "`tpudeploy zones PROFILE` lists zones with quota, price and past success.",
    ),
    **dict.fromkeys(
        ("backup", "restore", "snapshot"),
        f"`tpudeploy state pull NAME` prints a state, and each change keeps the one before: {_DOCS}/roll-back.md.",
    ),
    **dict.fromkeys(("approve", "confirm", "accept"), "`tpudeploy apply FILE` carries out a plan that was saved."),
    **dict.fromkeys(("prune", "orphans"), "`tpudeploy gc` finds requests that no deployment needs, and asks first."),
    **dict.fromkeys(("rollback", "undo", "revert"), f"Restore the earlier profile and apply it: {_DOCS}/roll-back.md."),
    **dict.fromkeys(("scale", "autoscale", "resize"), _SCALE),
    **dict.fromkeys(
        ("restart", "reboot", "reload", "redeploy", "recreate"),
        "`tpudeploy apply -replace 'NAME[0]' PROFILE` requests another slice for a replica. A changed profile restarts "
        f"the server alone: {_DOCS}/change-a-server.md.",
    ),
    **dict.fromkeys(
        ("ask", "prompt", "complete", "curl", "generate"),
        "`tpudeploy query PROFILE PROMPT` asks the endpoint a question, and `tpudeploy output` prints its address for "
        "any OpenAI client.",
    ),
    **dict.fromkeys(
        ("ssh", "exec", "attach", "shell", "connect"),
        "tpudeploy opens no shell. `tpudeploy logs PROFILE` reads a machine's log, `tpudeploy status` names the "
        "machine, and `gcloud compute tpus tpu-vm ssh` connects to it.",
    ),
    **dict.fromkeys(("costs", "price", "prices", "pricing", "bill", "billing", "budget", "usage"), _COST),
    **dict.fromkeys(
        ("optimize", "autotune"),
        f"`tpudeploy tune PROFILE` finds the best settings for a load: {_DOCS}/tune.md.",
    ),
    **dict.fromkeys(
        ("sweep", "benchmark", "load-test"),
        f"`tpudeploy bench PROFILE` measures throughput and latency: {_DOCS}/benchmark.md.",
    ),
    **dict.fromkeys(
        ("debug", "troubleshoot", "why", "slow"),
        f"`tpudeploy diagnose PROFILE` says why a server failed, fails or is slow: {_DOCS}/find-what-is-wrong.md.",
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
        ("pin", "pins", "lock", "relock"),
        "`tpudeploy plan -pin PROFILE` looks up tags and revisions, and pins them in tpudeploy.lock.json.",
    ),
    **dict.fromkeys(
        ("mirror", "download", "pull", "push"),
        f"model.mirror names a bucket with the weights: {_DOCS}/private-model.md. `tpudeploy state pull` reads a "
        "state.",
    ),
    **dict.fromkeys(("console", "ui", "web", "monitor"), "`tpudeploy dashboard` shows deployments live in a browser."),
    **dict.fromkeys(("tpudeploy",), "The program is named once: `tpudeploy plan PROFILE`."),
    **dict.fromkeys(
        ("refresh", "sync"), "`tpudeploy plan -refresh-only PROFILE` looks at what is there; so does `drift`."
    ),
    **dict.fromkeys(("workspace", "workspaces", "stack", "stacks", "env", "environment", "namespace"), _OWN_STATE),
    "taint": "`tpudeploy apply -replace 'NAME[0]' PROFILE` requests another slice for a replica.",
    "build": "tpudeploy builds no image: serving.image names one, and serving.setup runs commands in it first.",
    "untaint": "No slice is marked for replacement: only `apply -replace` replaces one.",
    **dict.fromkeys(
        ("cluster", "clusters", "tpu", "tpus", "tpu-vm", "compute", "node", "nodes", "instance", "instances", "slice"),
        "A profile describes the slices and their server: `tpudeploy status` lists them, `tpudeploy apply PROFILE` "
        "creates them. For any other resource of Google Cloud, use gcloud.",
    ),
    **dict.fromkeys(
        ("job", "jobs", "service", "services", "replica", "replicas", "deployment", "deployments", "endpoint", "app"),
        "A profile is a deployment: `tpudeploy status` lists deployments, `tpudeploy apply PROFILE` changes one.",
    ),
    **dict.fromkeys(
        ("secret", "secrets"),
        f"Secrets stay in Google's Secret Manager, and the profile names them under secrets: {_DOCS}/private-model.md.",
    ),
    **dict.fromkeys(("history", "revisions"), _HISTORY),
    **dict.fromkeys(
        ("tail", "log", "events"), "`tpudeploy logs PROFILE -follow` shows new lines of a machine's log as they come."
    ),
    **dict.fromkeys(
        ("model",), "The profile names its model in model.id; `tpudeploy size PROFILE` sizes it, `init` writes one."
    ),
    **dict.fromkeys(("adopt",), "`tpudeploy import ADDR ID PROFILE` takes an existing slice into the state."),
    **dict.fromkeys(("forget", "abandon"), "`tpudeploy state rm ADDR` forgets a slice, which stays and is billed."),
}

# The same within a command, where a word is a verb of a group, or stands where a profile is expected.
OF_COMMAND: Mapping[str, Mapping[str, str]] = {
    "state": {
        **dict.fromkeys(
            ("delete", "remove", "del", "destroy", "forget", "clean", "purge", "unmanage"),
            "`tpudeploy state rm ADDR` only forgets a slice, which stays and is billed; `tpudeploy destroy PROFILE` "
            "deletes it.",
        ),
        **dict.fromkeys(("ls", "ps", "addresses", "status"), "`tpudeploy state list` lists the addresses."),
        **dict.fromkeys(
            ("get", "cat", "describe", "inspect", "view", "info"), "`tpudeploy state show ADDR` shows one address."
        ),
        **dict.fromkeys(("move", "rename"), "`tpudeploy state mv SRC DST` renames an address."),
        **dict.fromkeys(
            ("export", "backup", "download", "dump", "save"), "`tpudeploy state pull NAME` prints a state: redirect it."
        ),
        **dict.fromkeys(("log", "versions", "revisions", "restore", "rollback", "undo"), _HISTORY),
        **dict.fromkeys(
            ("import", "add", "adopt"), "`tpudeploy import ADDR ID PROFILE` takes an existing slice into the state."
        ),
        **dict.fromkeys(
            ("unlock", "lock"), "`tpudeploy force-unlock ID` releases a lock; the message about the lock names its ID."
        ),
        **dict.fromkeys(("refresh", "sync", "diff"), "`tpudeploy plan -refresh-only PROFILE` looks at what is there."),
        "init": f"To move states to a bucket: {_DOCS}/share-the-state.md.",
        "replace-provider": "There are no providers here: the state names slices of Google Cloud only.",
    },
    "ci": {
        **dict.fromkeys(
            ("init", "setup", "install", "configure", "generate"),
            f"The workflow to copy is in {_DOCS}/pull-requests.md.",
        ),
        **dict.fromkeys(("deploy", "run", "merge", "release"), "`tpudeploy ci apply` applies what was approved."),
        **dict.fromkeys(
            ("check", "validate", "preview", "diff", "comment", "test"),
            "`tpudeploy ci plan` comments the plan of a pull request.",
        ),
        **dict.fromkeys(
            ("destroy", "delete", "remove", "down"),
            "A pipeline deletes no deployment. `tpudeploy destroy PROFILE` does, and asks first.",
        ),
        "status": "`tpudeploy ci plan` and `tpudeploy ci drift` report to the pull request and to issues.",
    },
    "emulator": {
        **dict.fromkeys(("stop", "down", "kill", "delete"), _STOP),
        **dict.fromkeys(("up", "serve", "launch"), "`tpudeploy emulator start` runs it until Ctrl-C."),
        **dict.fromkeys(("exec", "shell"), "`tpudeploy emulator run -- COMMAND` runs one command with it."),
        **dict.fromkeys(
            ("status", "ps", "list", "logs"),
            "It prints the variables that send every Google call there; with them set, `tpudeploy status` shows what "
            "runs in it.",
        ),
    },
    "bench": {
        **dict.fromkeys(("run", "start", "serve"), "`tpudeploy bench PROFILE` measures, without a verb."),
        **dict.fromkeys(("ls", "runs", "history", "ps"), "`tpudeploy bench list` lists the runs."),
        **dict.fromkeys(("get", "view", "describe", "results"), "`tpudeploy bench show ID` shows a run."),
        **dict.fromkeys(("compare", "diff"), "`tpudeploy compare RUN RUN` compares runs."),
        **dict.fromkeys(("export", "html", "plot"), "`tpudeploy bench report ID -o report.html` writes a page."),
        **dict.fromkeys(
            ("delete", "rm", "remove", "clean"), "Runs are files in .tpudeploy/runs; no command deletes them."
        ),
        "load": "`tpudeploy bench import FILE` takes over results that another client wrote.",
    },
    "logs": {
        **dict.fromkeys(("tail", "follow", "watch", "stream"), "`tpudeploy logs PROFILE -follow` shows new lines."),
        **dict.fromkeys(("show", "get", "view", "cat"), "`tpudeploy logs PROFILE` shows the log, without a verb."),
        **dict.fromkeys(("read", "explain"), "`tpudeploy logs -file LOG -explain` explains a log in a file."),
    },
    "router": {
        **dict.fromkeys(("start", "run", "up", "serve"), "`tpudeploy router NAME` runs it until Ctrl-C."),
        **dict.fromkeys(("stop", "down", "kill", "restart"), _STOP),
    },
    "dashboard": {
        **dict.fromkeys(("start", "run", "up", "open", "serve"), "`tpudeploy dashboard` runs it until Ctrl-C."),
        **dict.fromkeys(("stop", "down", "kill"), _STOP),
    },
    "mcp": {
        **dict.fromkeys(("start", "serve", "run", "stdio"), "`tpudeploy mcp` serves on stdin and stdout."),
        **dict.fromkeys(("install", "add", "config"), f"An agent starts `tpudeploy mcp` itself: {_DOCS}/agents.md."),
    },
    "gc": {
        **dict.fromkeys(
            ("list", "ls", "plan", "dry-run", "preview", "show"), "`tpudeploy gc` lists what it found, then asks."
        ),
    },
}


def advice(word: str, command: str = "") -> str:
    """Return what to run instead of a verb of another tool, at the top or within a command, or ""."""
    table = OF_COMMAND.get(command, {}) if command else SENTENCES
    return table.get(word.lower().lstrip("-"), "")
