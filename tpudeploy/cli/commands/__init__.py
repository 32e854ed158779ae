"""COMMANDS: name → one line of help. Each is the module of that name here (`_` for `-`), imported when it is run."""

from __future__ import annotations

from collections.abc import Mapping

# In the order of the work, as `--help` shows them.
COMMANDS: Mapping[str, str] = {
    "init": "write a commented profile from a shipped one",
    "validate": "check everything that can be known offline",
    "size": "what fits, how many tokens, how long to compile, what else would do",
    "render": "show what would be sent and run",
    "doctor": "every precondition, checked, with what to do",
    "zones": "where a slice type can be had: hardware, models, quota, price, luck",
    "plan": "show what would change, why, from which line",
    "apply": "make it so; resumes what an earlier run began",
    "destroy": "remove it, and look until it is gone",
    "ci": "from a pipeline: plan on a pull request, apply what was merged, report drift",
    "mcp": "serve agents: the same operations as typed tools, read-only unless told otherwise",
    "gc": "find and remove requests of ours that nothing needs",
    "drift": "show what changed outside since the last apply",
    "status": "what is there, how far it has come, endpoint, health",
    "show": "a saved plan, or what the states remember",
    "output": "the endpoint and other outputs",
    "logs": "a boot's log, and what it died of",
    "verify": "what the profile declares against what the engine does",
    "metrics": "what a running server says of itself now, in words",
    "query": "ask the endpoint a question",
    "bench": "how fast it serves: streams x context x output, each figure with what it is worth",
    "compare": "runs beside each other, and beside published figures",
    "recommend": "what would serve a workload, by what was measured, and the profile for it",
    "alerts": "Prometheus rules for what a profile serves, a Grafana dashboard, how to collect",
    "import": "take a queued resource that stands in the cloud into the state",
    "state": "look at what is remembered, move it, forget it, take it out, put it back",
    "force-unlock": "take away the lock of a run that died",
    "emulator": "a local Cloud TPU to try everything on",
    "schema": "the JSON Schemas: of profiles, plans, states, events, pins",
    "explain": "what an error code means",
    "completion": "a completion script for your shell",
    "version": "the version",
}
