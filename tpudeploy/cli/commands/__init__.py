"""List the commands with one line of help. The module of the same name here (`_` for `-`) implements each one."""

from __future__ import annotations

from collections.abc import Mapping

# In the order of the work, as `--help` shows them.
COMMANDS: Mapping[str, str] = {
    "init": "Write a commented profile, from a shipped one.",
    "validate": "Check profiles offline.",
    "size": "Show what fits into memory, how long a start takes, and which other slices would do.",
    "render": "Show the request, the startup script and the docker command.",
    "doctor": "Check every precondition, and say what to do.",
    "zones": "List the zones of a slice type: hardware, provisioning models, quota, price, past success.",
    "plan": "Show what would change, why, and which line of the profile causes it.",
    "apply": "Create or update deployments, and wait until they serve.",
    "destroy": "Delete deployments, and wait until they are gone.",
    "ci": "Run in a pipeline: plan on a pull request, apply what was merged, report drift.",
    "mcp": "Serve the same operations to agents as typed tools, read-only by default.",
    "gc": "Find and delete requests that no deployment needs.",
    "drift": "Show what changed outside since the last apply.",
    "status": "Show deployments, their progress, endpoints and health.",
    "show": "Show a saved plan, or the contents of the states.",
    "output": "Print the endpoint and other outputs.",
    "logs": "Show a machine's boot log and explain why it failed.",
    "verify": "Compare what the profile declares with what the server does.",
    "metrics": "Show the metrics of running servers, in words.",
    "query": "Ask the endpoint a question.",
    "bench": "Measure throughput and latency, and flag figures that cannot be trusted.",
    "compare": "Compare benchmark runs with each other and with published figures, or run an A/B.",
    "recommend": "Recommend a slice and a profile for a workload, from measurements.",
    "alerts": "Write Prometheus rules, a Grafana dashboard, and how to collect metrics.",
    "import": "Import an existing queued resource into the state.",
    "state": "Inspect and edit the state: list, show, mv, rm, pull, push, history.",
    "force-unlock": "Release a lock left behind by a crashed run.",
    "emulator": "Run a local Cloud TPU to try everything on.",
    "schema": "Print the JSON Schemas of profiles, plans, states, events and other documents.",
    "explain": "Explain an error code, a refusal, or an error text of Google Cloud.",
    "completion": "Print a completion script for your shell.",
    "version": "Print the version.",
}
