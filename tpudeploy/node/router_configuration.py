"""The files that a router reads, made from the replicas that take requests, and the command that runs it.

No file has an API key. Each router passes the `Authorization` header of a client on, and the server checks it. The
probes of health, of load and of the version need no key, because vLLM asks for one below /v1 only.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from tpudeploy.catalog.routers import ROUTERS
from tpudeploy.domain.router import RoutedReplica, Router, RouterKind

# A response may take this long, and a stream may pause for this long.
_LONGEST_RESPONSE = 3600
# A request of this size can be sent to another replica when the first one takes it and ends without an answer: about
# 120,000 tokens of text. A larger one can be where the first replica does not accept the connection. smg has no limit.
RETRIED_BYTES = 524288
# The port of smg's own metrics is this far from its port, so that the routers of one machine never share one.
_METRICS_DISTANCE = 20000
# Without an authentication, anyone who reaches smg could add a server to its workers. This one names an issuer that
# does not exist, at a port that only root could open, so that no token is valid and there is no key that `ps` could
# show. Run on 2026-11-28 with smg 1.13.0: /workers answers 401 to each request, and /v1 passes the clients' keys on.
_NO_ISSUER = "https://127.0.0.1:1/"
_WORKERS = "workers.json"
_HAPROXY = "haproxy.cfg"
_BOOTSTRAP = "envoy.json"
_WATCHED_FOLDER = "endpoints"
_ENDPOINTS = f"{_WATCHED_FOLDER}/replicas.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """What a router reads.

    `files` are texts by their path below the router's folder. The router reads the one that is `watched` again by
    itself, and the one that is `reloaded` at a signal: that one has the list of replicas. Any other is read only at its
    start. `command` runs it in the foreground, in that folder.
    """

    files: Mapping[str, str]
    command: tuple[str, ...]
    watched: str = ""
    reloaded: str = ""

    @property
    def list_path(self) -> str:
        """Return the path of the file that has the list of replicas."""
        return self.watched or self.reloaded


def configuration(router: Router, replicas: Iterable[RoutedReplica], name: str) -> Configuration:
    """Return what `router` reads so that it sends requests to `replicas` and to nothing else.

    `name` is that of the deployment.
    """
    return _CONFIGURE[router.kind](router, tuple(replicas), name)


def _policy(router: Router) -> str:
    return router.policy or ROUTERS[router.kind].policies[0]


def _smg(router: Router, replicas: tuple[RoutedReplica, ...], name: str) -> Configuration:
    del name
    # With its model, a worker is registered without a read of /v1/models, which would need the API key.
    workers = [{"id": replica.name, "url": replica.url, "model_id": router.model} for replica in replicas]
    metrics_port = router.port + (_METRICS_DISTANCE if router.port < _METRICS_DISTANCE else -_METRICS_DISTANCE)
    return Configuration(
        files={_WORKERS: _json({"version": 1, "workers": workers})},
        command=(
            *("smg", "launch", "--host", router.address, "--port", str(router.port), "--backend", "vllm"),
            *("--policy", _policy(router), "--discovery-provider", "file", "--discovery-file", _WORKERS),
            # A router that only passes texts on needs no tokenizer, and would fetch it from the hub.
            *("--disable-tokenizer-autoload", "--request-timeout-secs", str(_LONGEST_RESPONSE)),
            *("--health-check-interval-secs", "5", "--prometheus-host", "127.0.0.1"),
            *("--prometheus-port", str(metrics_port), "--log-level", "warn"),
            *("--jwt-issuer", _NO_ISSUER, "--jwt-audience", "tpudeploy", "--jwt-jwks-uri", _NO_ISSUER),
        ),
        watched=_WORKERS,
    )


def _haproxy(router: Router, replicas: tuple[RoutedReplica, ...], name: str) -> Configuration:
    servers = "".join(f"    server {replica.name} {replica.host}:{replica.port}\n" for replica in replicas)
    text = f"""\
# {name}: written by tpudeploy, which replaces this file when the list of replicas changes.
global
    maxconn 4096
    tune.bufsize {RETRIED_BYTES}
    hard-stop-after {_LONGEST_RESPONSE}s

defaults
    mode http
    timeout connect 5s
    timeout client {_LONGEST_RESPONSE}s
    timeout server {_LONGEST_RESPONSE}s
    timeout http-request 60s
    timeout queue 60s
    # A request that a replica has not begun to answer goes to another one. HAProxy can send it again only if it had
    # all of it before it sent the first byte.
    option http-buffer-request
    retries 3
    option redispatch 1
    retry-on conn-failure empty-response 503
    # A reload closes no idle connection that a client may be about to use.
    option idle-close-on-response

frontend clients
    bind {router.address}:{router.port}
    default_backend replicas

backend replicas
    balance {_policy(router)}
    option httpchk GET /health
    default-server check inter 2s fall 2 rise 1
{servers}"""
    return Configuration(files={_HAPROXY: text}, command=("haproxy", "-W", "-db", "-f", _HAPROXY), reloaded=_HAPROXY)


def _envoy(router: Router, replicas: tuple[RoutedReplica, ...], name: str) -> Configuration:
    return Configuration(
        files={_ENDPOINTS: _json(_assignment(replicas)), _BOOTSTRAP: _json(_bootstrap(router, name))},
        # Without a base id, a second Envoy on the machine would be refused.
        command=("envoy", "-c", _BOOTSTRAP, "--use-dynamic-base-id", "--log-level", "warning"),
        watched=_ENDPOINTS,
    )


def _assignment(replicas: tuple[RoutedReplica, ...]) -> Mapping[str, object]:
    """Return the replicas as a response of Envoy's endpoint discovery."""
    type_ = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
    endpoints = [{"endpoint": {"address": _socket(replica.host, replica.port)}} for replica in replicas]
    resource = {"@type": type_, "cluster_name": "replicas", "endpoints": [{"lb_endpoints": endpoints}]}
    return {"resources": [resource]}


def _bootstrap(router: Router, name: str) -> Mapping[str, object]:
    extensions = "type.googleapis.com/envoy.extensions.filters"
    route = {
        "cluster": "replicas",
        "timeout": "0s",
        # A request that a replica has not begun to answer goes to another one.
        "retry_policy": {
            "retry_on": "connect-failure,refused-stream,reset,retriable-status-codes",
            "retriable_status_codes": [503],
            "num_retries": 5,
            "retry_host_predicate": [
                {
                    "name": "envoy.retry_host_predicates.previous_hosts",
                    "typed_config": {
                        "@type": "type.googleapis.com/envoy.extensions.retry.host.previous_hosts.v3."
                        "PreviousHostsPredicate"
                    },
                }
            ],
            # A dead replica has the fewest requests open: with few attempts it would be picked again.
            "host_selection_retry_max_attempts": 100,
        },
    }
    manager = {
        "@type": f"{extensions}.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "router",
        "stream_idle_timeout": f"{_LONGEST_RESPONSE}s",
        "http_filters": [
            {"name": "envoy.filters.http.router", "typed_config": {"@type": f"{extensions}.http.router.v3.Router"}}
        ],
        "route_config": {
            "virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [{"match": {"prefix": "/"}, "route": route}]}]
        },
    }
    listener = {
        "name": "clients",
        "address": _socket(router.address, router.port),
        "per_connection_buffer_limit_bytes": 2 * RETRIED_BYTES,
        "filter_chains": [
            {"filters": [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]}
        ],
    }
    cluster = {
        "name": "replicas",
        "type": "EDS",
        "lb_policy": _policy(router).upper(),
        "connect_timeout": "5s",
        "eds_cluster_config": {
            "eds_config": {
                "resource_api_version": "V3",
                "path_config_source": {"path": _ENDPOINTS, "watched_directory": {"path": _WATCHED_FOLDER}},
            }
        },
        "health_checks": [
            {
                "timeout": "2s",
                "interval": "2s",
                "no_traffic_interval": "2s",
                "unhealthy_threshold": 2,
                "healthy_threshold": 1,
                "http_health_check": {"path": "/health"},
            }
        ],
        # A replica that leaves the list gets no request any longer, although it still answers the checks.
        "ignore_health_on_host_removal": True,
        # The replicas on the list have answered a completion: they are tried where no check has passed yet.
        "common_lb_config": {"healthy_panic_threshold": {"value": 1}},
        "circuit_breakers": {
            "thresholds": [
                {"max_connections": 65535, "max_pending_requests": 65535, "max_requests": 65535, "max_retries": 1024}
            ]
        },
    }
    return {
        "node": {"id": name, "cluster": name},
        "static_resources": {"listeners": [listener], "clusters": [cluster]},
    }


def _socket(address: str, port: int) -> Mapping[str, object]:
    return {"socket_address": {"address": address, "port_value": port}}


def _json(value: Mapping[str, object]) -> str:
    return json.dumps(value, indent=2) + "\n"


_CONFIGURE: Mapping[RouterKind, Callable[[Router, tuple[RoutedReplica, ...], str], Configuration]] = {
    RouterKind.SMG: _smg,
    RouterKind.HAPROXY: _haproxy,
    RouterKind.ENVOY: _envoy,
}
