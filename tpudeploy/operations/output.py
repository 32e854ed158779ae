"""Print the outputs of deployments: the endpoint of each one, since when it is published, and what takes requests."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tpudeploy.operations.declaration import AgentForm, Argument, ArgumentKind, Operation
from tpudeploy.results import Result, document, part, result

if TYPE_CHECKING:
    from tpudeploy.loading import OneProfile
    from tpudeploy.text.paint import Paint
    from tpudeploy.workspace import Workspace

KEYS: Mapping[str, Any] = {
    "endpoint": {"type": "string", "description": "the address, without a path"},
    "url": str,
    "generation": int,
    "since": float,
    "router": {"type": ["object", "null"], "description": "the router in front of the replicas, null without one"},
    "replicas": [{"replica": int, "slice": str, "url": str}],
}


@result
class Outputs(Result):
    """The outputs of one deployment, or one of them if a `key` was named."""

    FORMAT = "output"
    name: str
    outputs: Mapping[str, Any]
    key: str | None

    def values(self) -> dict[str, Any]:
        return {"name": self.name, **self.outputs}

    @classmethod
    def schema(cls) -> Mapping[str, Any]:
        return document("output", {"name": str, **KEYS}, optional=KEYS)

    @classmethod
    def promised_keys(cls) -> tuple[str, ...]:
        return ("format", "name", "endpoint")

    def as_text(self, paint: Paint, width: int | None = None) -> str:
        return _lines(self.outputs) if self.key is None else _plain(self.outputs[self.key])


@result
class AllOutputs(Result):
    """The outputs of every deployment that has an endpoint, by its name."""

    FORMAT = "outputs"
    deployments: Mapping[str, Mapping[str, Any]]

    def values(self) -> dict[str, Any]:
        return {"deployments": [{"name": name, **outputs} for name, outputs in self.deployments.items()]}

    @classmethod
    def schema(cls) -> Mapping[str, Any]:
        from tpudeploy.schemas.schema_of import list_of

        # Documents of earlier versions have no list and no router.
        keys = part({"name": str, **KEYS}, optional=("replicas", "router"))
        return document("outputs", {"deployments": list_of(keys)})

    def as_text(self, paint: Paint, width: int | None = None) -> str:
        return "\n\n".join(f"# {name}\n{_lines(outputs)}" for name, outputs in self.deployments.items())

    def messages(self, paint: Paint) -> str:
        if self.deployments:
            return ""
        return "No deployment of this project has an endpoint. `tpudeploy apply` publishes one."


def output(workspace: Workspace, name: OneProfile | None = None, key: str | None = None) -> Outputs | AllOutputs:
    """Return a deployment's endpoint as the last apply published it.

    `name` is the deployment, or its profile; None stands for every deployment that has an endpoint. `key` selects one
    output. Raise `errors.QueryFailed` if the deployment has no endpoint, `errors.UsageError` for an unknown `key`.
    """
    from tpudeploy import loading
    from tpudeploy.catalog import choice_hint, closest
    from tpudeploy.domain.errors import QueryFailed, UsageError

    names = workspace.adapters.states.names
    if name is None:
        endpoints = {each: workspace.endpoint(each) for each in names()}
        return AllOutputs(
            deployments={n: _outputs(endpoint) for n, endpoint in endpoints.items() if endpoint is not None}
        )
    deployment = str(name) if loading.is_name(name) else loading.profile(name).spec.name
    endpoint = workspace.endpoint(deployment)
    if endpoint is None:
        near = closest(deployment, (other for other in names() if workspace.endpoint(other) is not None))
        hint = f"Did you mean `{near}`?" if near else "Run `tpudeploy apply` first."
        raise QueryFailed(f"{deployment} has no endpoint.", hint=hint)
    outputs = _outputs(endpoint)
    if key is not None:
        if key not in outputs:
            raise UsageError(f"There is no output `{key}`.", hint=choice_hint(key, outputs))
        outputs = {key: outputs[key]}
    return Outputs(name=deployment, outputs=outputs, key=key)


def _outputs(endpoint: Mapping[str, Any]) -> dict[str, Any]:
    # Earlier versions published no list: it is empty until the next apply.
    lists = {"router": endpoint.get("router"), "replicas": endpoint.get("replicas", [])}
    return {"endpoint": endpoint["url"], **endpoint, **lists}


def _lines(outputs: Mapping[str, Any]) -> str:
    # `url` is the older name of `endpoint`.
    texts = {key: _text(key, value) for key, value in outputs.items() if key != "url" and value is not None}
    width = max(map(len, texts))
    return "\n".join(f"{key.ljust(width)} = {text}" for key, text in texts.items())


def _text(key: str, value: object) -> str:
    if key == "since" and isinstance(value, int | float):
        return f'"{datetime.fromtimestamp(value, UTC):%Y-%m-%dT%H:%M:%SZ}"'
    return f'"{value}"' if isinstance(value, str) else _plain(value)


def _plain(value: object) -> str:
    """Return a value without quotes, for a script that asked for this output alone."""
    if isinstance(value, Mapping):
        return f"{value['kind']} ({value['host']})"
    if isinstance(value, list):
        return ", ".join(f"[{row['replica']}] {row['url']}" for row in value)
    return str(value)


OPERATION = Operation(
    run=output,
    arguments=(
        Argument(
            name="name",
            help="A profile, or the name of a deployment (default: all deployments that have an endpoint).",
            kind=ArgumentKind.PROFILE_OR_NAME,
            agents=AgentForm(about="a deployment's name", kind=ArgumentKind.TEXT, is_required=True),
        ),
        Argument(
            name="key",
            help="Print only this output: endpoint, generation, since, router or replicas.",
            positional=True,
            agents=None,
        ),
    ),
    results=(Outputs, AllOutputs),
    title="Endpoint",
    tool="output",
)
