"""Operations: what tpudeploy can do, one row each. A module of this package holds the row of that name.

`declaration.py` says what is made from a row. A row is read when it is first needed: the table below is all that
`tpudeploy --help` imports.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from importlib import import_module
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any

from tpudeploy import feature_table

if TYPE_CHECKING:
    from tpudeploy.features import FeatureMethods
    from tpudeploy.operations.apply import apply as _apply
    from tpudeploy.operations.declaration import Operation
    from tpudeploy.operations.destroy import destroy as _destroy
    from tpudeploy.operations.details import details as _details
    from tpudeploy.operations.doctor import doctor as _doctor
    from tpudeploy.operations.drift import drift as _drift
    from tpudeploy.operations.explain import explain as _explain
    from tpudeploy.operations.force_unlock import force_unlock as _force_unlock
    from tpudeploy.operations.gc import gc as _gc
    from tpudeploy.operations.import_slice import import_slice as _import_slice
    from tpudeploy.operations.logs import logs as _logs
    from tpudeploy.operations.metrics import metrics as _metrics
    from tpudeploy.operations.output import output as _output
    from tpudeploy.operations.plan import plan as _plan
    from tpudeploy.operations.query import query as _query
    from tpudeploy.operations.render import render as _render
    from tpudeploy.operations.report_host import report_host as _report_host
    from tpudeploy.operations.show import show as _show
    from tpudeploy.operations.size import size as _size
    from tpudeploy.operations.state import state_history as _state_history
    from tpudeploy.operations.state import state_list as _state_list
    from tpudeploy.operations.state import state_pull as _state_pull
    from tpudeploy.operations.state import state_show as _state_show
    from tpudeploy.operations.state_change import state_migrate as _state_migrate
    from tpudeploy.operations.state_change import state_mv as _state_mv
    from tpudeploy.operations.state_change import state_push as _state_push
    from tpudeploy.operations.state_change import state_rm as _state_rm
    from tpudeploy.operations.status import status as _status
    from tpudeploy.operations.validate import validate as _validate
    from tpudeploy.operations.verify import verify as _verify
    from tpudeploy.operations.version import version as _version
    from tpudeploy.operations.zones import zones as _zones

# Each operation of the deployer with one line of help, in the order of the work. One without a line has no command of
# its own: it is part of another command, or has a module in cli/commands.
_OF_THE_DEPLOYER: Mapping[str, str] = {
    "validate": "Check profiles offline.",
    "size": "Show what fits in memory, how long a start takes and which other slices would work.",
    "render": "Show the request, the startup script and the docker command.",
    "doctor": "Check prerequisites and explain how to fix what's missing.",
    "zones": "List zones for a slice type with hardware, provisioning models, quota, price and past results.",
    "plan": "Show what would change, why, and which profile line causes it.",
    "apply": "Create or update deployments and wait until they serve.",
    "destroy": "Delete deployments and wait until they're gone.",
    "gc": "Find and delete orphaned requests.",
    "drift": "Show what changed outside tpudeploy since the last apply.",
    "status": "Show deployments, their progress, endpoints and health.",
    "details": "",
    "show": "Show a saved plan or the states.",
    "output": "Print the endpoint and other outputs.",
    "logs": "Show a machine's boot log and explain why it failed.",
    "report_host": "Report a slice's faulty machine to Google and avoid its zone for a while.",
    "verify": "Compare the profile with the server's effective settings.",
    "metrics": "Explain the metrics of running servers.",
    "query": "Send a prompt to the endpoint.",
    "state_list": "",
    "state_show": "",
    "state_mv": "",
    "state_rm": "",
    "state_pull": "",
    "state_push": "",
    "state_migrate": "",
    "state_history": "",
    "force_unlock": "Release a lock left behind by a crashed run.",
    "import_slice": "",
    "explain": "Explain an error code, a refusal or a Google Cloud error message.",
    "version": "Print the version.",
}
# The commands of features have their own line, in their table.
OPERATIONS: Mapping[str, str] = {**_OF_THE_DEPLOYER, **dict.fromkeys(feature_table.OPERATIONS, "")}
# The rows that share a module, which has a table of them, `OPERATIONS`.
_SHARED_MODULES: Mapping[str, str] = {
    **dict.fromkeys(("state_list", "state_show", "state_history", "state_pull"), "state"),
    **dict.fromkeys(("state_mv", "state_rm", "state_push", "state_migrate"), "state_change"),
}


def operation(name: str) -> Operation:
    """Return the row of an operation, which is imported when it is first needed."""
    home = feature_table.OPERATIONS.get(name) or f"tpudeploy.operations.{_SHARED_MODULES.get(name, name)}"
    module = import_module(home)
    row: Operation = module.OPERATIONS[name] if hasattr(module, "OPERATIONS") else module.OPERATION
    return row


class OperationMethod:
    """The method of `Workspace` that runs one operation."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, workspace: Any, owner: type) -> Any:
        run = operation(self._name).method
        if workspace is None:
            return _as_method(run)
        method = run.__get__(workspace, owner)

        @wraps(method)
        def call(*args: Any, **options: Any) -> Any:
            with workspace.under_way():
                return method(*args, **options)

        return call


def _as_method(run: Callable[..., Any]) -> Callable[..., Any]:
    """Return `run` as `help` shows a method: its first parameter is `self`."""

    @wraps(run)
    def method(*args: Any, **options: Any) -> Any:
        return run(*args, **options)

    of_run = signature(run)
    workspace, *others = of_run.parameters.values()
    parameters = [workspace.replace(name="self", annotation=Parameter.empty), *others]
    method.__signature__ = of_run.replace(parameters=parameters)  # type: ignore[attr-defined]  # `help` reads it
    return method


if not TYPE_CHECKING:
    FeatureMethods = object


class Methods(FeatureMethods):
    """The methods that `Workspace` has, one for each operation. Type checkers read them here."""

    if TYPE_CHECKING:
        validate = _validate
        size = _size
        render = _render
        doctor = _doctor
        zones = _zones
        plan = _plan
        apply = _apply
        destroy = _destroy
        gc = _gc
        drift = _drift
        status = _status
        details = _details
        show = _show
        output = _output
        logs = _logs
        report_host = _report_host
        verify = _verify
        metrics = _metrics
        query = _query
        state_list = _state_list
        state_show = _state_show
        state_mv = _state_mv
        state_rm = _state_rm
        state_pull = _state_pull
        state_push = _state_push
        state_migrate = _state_migrate
        state_history = _state_history
        force_unlock = _force_unlock
        import_slice = _import_slice
        explain = _explain
        version = _version


for _name in OPERATIONS:
    setattr(Methods, _name, OperationMethod(_name))
