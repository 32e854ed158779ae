"""Print the outputs of deployments: the endpoint of each one, since when it is published, and what takes requests.

The endpoint document is a file that others may write. So each address is looked up at Google, and marked if it is not
that of a slice or router of the deployment now.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

from tpudeploy import loading
from tpudeploy.catalog import choice_hint, closest
from tpudeploy.domain.errors import CloudError, ConfigError, QueryFailed, StateError, UsageError
from tpudeploy.domain.router import Router
from tpudeploy.domain.together import together
from tpudeploy.engine.confirmation import addresses_now
from tpudeploy.operations.arguments import Agents, Arg, ProfileOrName
from tpudeploy.operations.declaration import Operation
from tpudeploy.results import Result, document, part, result
from tpudeploy.schemas.schema_of import list_of
from tpudeploy.text.paint import Paint
from tpudeploy.workspace import Workspace

_CONFIRMED = {
    "type": ["boolean", "null"],
    "description": "whether this is an address of the deployment's slices or router now; null if that is not known",
}
KEYS: Mapping[str, Any] = {
    "endpoint": {"type": "string", "description": "the address, without a path"},
    "confirmed": _CONFIRMED,
    "url": str,
    "generation": int,
    "since": float,
    "router": {"type": ["object", "null"], "description": "the router in front of the replicas, null without one"},
    "replicas": {
        "type": "array",
        "items": part({"replica": int, "slice": str, "url": str, "confirmed": _CONFIRMED}, optional=("confirmed",)),
    },
}


@result
class Outputs(Result):
    """The outputs of one deployment, or one of them if a `key` was named."""

    FORMAT = "output"
    name: str
    outputs: Mapping[str, Any]
    key: str | None
    warning: str = ""

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

    def messages(self, paint: Paint) -> str:
        return self.warning


@result
class AllOutputs(Result):
    """The outputs of every deployment that has an endpoint, by its name."""

    FORMAT = "outputs"
    deployments: Mapping[str, Mapping[str, Any]]
    warning: str = ""

    def values(self) -> dict[str, Any]:
        return {"deployments": [{"name": name, **outputs} for name, outputs in self.deployments.items()]}

    @classmethod
    def schema(cls) -> Mapping[str, Any]:
        # Documents of earlier versions have no list and no router, and confirm no address.
        keys = part({"name": str, **KEYS}, optional=("replicas", "router", "confirmed"))
        return document("outputs", {"deployments": list_of(keys)})

    def as_text(self, paint: Paint, width: int | None = None) -> str:
        return "\n\n".join(f"# {name}\n{_lines(outputs)}" for name, outputs in self.deployments.items())

    def messages(self, paint: Paint) -> str:
        if self.deployments:
            return self.warning
        return "No deployment of this project has an endpoint. `tpudeploy apply` publishes one."


def output(
    workspace: Workspace,
    name: Annotated[
        ProfileOrName | None,
        Arg(
            "A profile, or the name of a deployment (default: all deployments that have an endpoint).",
            agents=Agents("a deployment's name", required=True),
        ),
    ] = None,
    key: Annotated[
        str | None,
        Arg(
            "Print only this output: endpoint, confirmed, generation, since, router or replicas.",
            positional=True,
            agents=None,
        ),
    ] = None,
) -> Outputs | AllOutputs:
    """Return a deployment's endpoint as the last apply published it, and whether its addresses are confirmed.

    `name` is the deployment, or its profile; None stands for every deployment that has an endpoint. `key` selects one
    output. Raise `errors.QueryFailed` if the deployment has no endpoint, `errors.UsageError` for an unknown `key`.
    """
    if name is None:
        return _all_outputs(workspace)
    names = workspace.adapters.states.names
    deployment = str(name) if loading.is_name(name) else loading.profile(name).name
    endpoint = workspace.endpoint(deployment)
    if endpoint is None:
        near = closest(deployment, (other for other in names() if workspace.endpoint(other) is not None))
        hint = f"Did you mean `{near}`?" if near else "Run `tpudeploy apply` first."
        raise QueryFailed(f"{deployment} has no endpoint.", hint=hint)
    declared = None
    if not loading.is_name(name) and not loading.is_untrusted(loading.profile(name)):
        declared = workspace.deployment(loading.profile(name), script=False).router
    outputs, warning = _outputs(workspace, deployment, endpoint, declared)
    if key is not None:
        if key not in outputs:
            raise UsageError(f"There is no output `{key}`.", hint=choice_hint(key, outputs))
        outputs = {key: outputs[key]}
    return Outputs(name=deployment, outputs=outputs, key=key, warning=warning)


def _all_outputs(workspace: Workspace) -> AllOutputs:
    names = workspace.adapters.states.names()
    published = {name: endpoint for name in names if (endpoint := workspace.endpoint(name)) is not None}
    looks = together(workspace.adapters.parallelism, lambda item: _outputs(workspace, *item), published.items())
    return AllOutputs(
        deployments={name: outputs for name, (outputs, _) in zip(published, looks, strict=True)},
        warning="\n".join(warning for _, warning in looks if warning),
    )


def _outputs(
    workspace: Workspace, name: str, endpoint: Mapping[str, Any], declared: Router | None = None
) -> tuple[dict[str, Any], str]:
    """Return the outputs, and a warning about addresses that are not confirmed."""
    try:
        urls, cause = addresses_now(workspace.adapters.world(), name, endpoint, declared=declared), ""
    except (CloudError, ConfigError, QueryFailed, StateError) as error:
        urls, cause = None, error.message
    # Earlier versions published no list: it is empty until the next apply.
    replicas = [{**row, "confirmed": _is_confirmed(row.get("url"), urls)} for row in endpoint.get("replicas", [])]
    verdict = {"endpoint": endpoint["url"], "confirmed": _is_confirmed(endpoint["url"], urls)}
    outputs = {
        **verdict,
        **endpoint,
        **verdict,  # again: the file may have keys of these names
        "router": endpoint.get("router"),
        "replicas": replicas,
    }
    strange = list(dict.fromkeys(_unconfirmed_addresses(outputs)))
    if not strange:
        return outputs, ""
    addresses = f"{' and '.join(strange)} of endpoints/{name}.json"
    if urls is None:
        return outputs, f"Not confirmed: whether {addresses} is an address of {name} now is not known. {cause}"
    return outputs, (
        f"Not confirmed: no slice of {name}, and no router of it that runs here, has the address {addresses} now. "
        f"Anyone who can write that file chooses it. `tpudeploy status {name}` shows what serves."
    )


def _unconfirmed_addresses(outputs: Mapping[str, Any]) -> Iterator[str]:
    rows: Iterable[Mapping[str, Any]] = ({**outputs, "url": outputs["endpoint"]}, *outputs["replicas"])
    yield from (str(row.get("url")) for row in rows if row["confirmed"] is not True)


def _is_confirmed(url: object, urls: frozenset[str] | None) -> bool | None:
    return None if urls is None else url in urls


def _lines(outputs: Mapping[str, Any]) -> str:
    # `url` is the older name of `endpoint`.
    texts = {key: _text(key, value) for key, value in outputs.items() if key not in _UNPRINTED and value is not None}
    if outputs.get("confirmed") is not True:
        texts["endpoint"] += _MARK
    width = max(map(len, texts))
    return "\n".join(f"{key.ljust(width)} = {text}" for key, text in texts.items())


_UNPRINTED = frozenset({"url", "confirmed"})
_MARK = " (not confirmed)"


def _text(key: str, value: object) -> str:
    if key == "since" and isinstance(value, int | float):
        return f'"{datetime.fromtimestamp(value, UTC):%Y-%m-%dT%H:%M:%SZ}"'
    return f'"{value}"' if isinstance(value, str) else _plain(value)


def _plain(value: object) -> str:
    """Return a value without quotes, for a script that asked for this output alone."""
    if isinstance(value, Mapping):
        return f"{value['kind']} ({value['host']})"
    if isinstance(value, list):
        return ", ".join(f"[{row['replica']}] {row['url']}{'' if row['confirmed'] else _MARK}" for row in value)
    return str(value)


OPERATION = Operation(
    run=output,
    results=(Outputs, AllOutputs),
    title="Endpoint",
    tool="output",
)
