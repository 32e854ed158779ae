"""A deployment as manifests for Google Kubernetes Engine: a ComputeClass, the workload, a Service, and a route.

The workload is a Deployment, or a LeaderWorkerSet where a slice has several hosts. Several replicas have the inference
gateway's pool and a route to it. The fields of ComputeClass (cloud.google.com/v1) and the node labels are those of
Google's reference architectures for vLLM on TPU of 2026-09; `location` is from its example of AI zones of 2026. The
fields of InferencePool (inference.networking.k8s.io/v1) and HTTPRoute (gateway.networking.k8s.io/v1) are those of the
reference of the Gateway API Inference Extension. The fields of LeaderWorkerSet (leaderworkerset.x-k8s.io/v1) are from
memory. None was applied to a real cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import yaml

from tpudeploy import catalog
from tpudeploy.domain.deployment import Candidate, Container, Deployment, Provisioning
from tpudeploy.domain.names import Zone
from tpudeploy.features.exports import Export, missing_rules
from tpudeploy.node.serving import command, server

_SHM = "/dev/shm"  # noqa: S108 - a path in the container, which the manifest mounts
_PROBE_SECONDS = 10
# Of a slice of several hosts. The server waits until Ray has the chips of all hosts.
_LEAD = 'ray start --head --port=6379 --disable-usage-stats && exec "$@"'
_JOIN = 'exec ray start --block --address="$LWS_LEADER_ADDRESS:6379" --disable-usage-stats'
_LEADER = {"role": "leader"}
_GATEWAY = "inference-gateway"
_PICKER_PORT = 9002
_OWN_ADDRESS = ({"name": "VLLM_HOST_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},)


def export_gke(deployment: Deployment) -> Export:
    """Return the manifests."""
    workload = _workload(deployment) if deployment.accelerator.hosts == 1 else _group_of_pods(deployment)
    route = (_pool(deployment), _route(deployment)) if deployment.replicas > 1 else ()
    manifests = (_compute_class(deployment), workload, _service(deployment), *route)
    return Export(
        title=f"{deployment.name} on Google Kubernetes Engine. Apply it with: kubectl apply -f FILE",
        body="".join(f"---\n{_dump(manifest)}" for manifest in manifests),
        missing=tuple(_missing(deployment)),
    )


def _dump(manifest: Mapping[str, Any]) -> str:
    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, data: object) -> bool:
            """Write a value that occurs twice twice: `*id001` is harder to read."""
            del data
            return True

    return yaml.dump(manifest, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=116)


def _compute_class(deployment: Deployment) -> dict[str, Any]:
    """Return the class of nodes. Its priorities are the zones and provisioning models of the profile, in order."""
    places = dict.fromkeys((place.provisioning, place.zone) for place in _places_in_region(deployment))
    return {
        "apiVersion": "cloud.google.com/v1",
        "kind": "ComputeClass",
        "metadata": {"name": deployment.name},
        "spec": {
            "priorities": [_priority(deployment, model, zone) for model, zone in places],
            "nodePoolAutoCreation": {"enabled": True},
            "whenUnsatisfiable": "DoNotScaleUp",
        },
    }


def _places_in_region(deployment: Deployment) -> tuple[Candidate, ...]:
    """Return the places in the region of the first one: a cluster is in one region."""
    places = deployment.candidates
    return tuple(place for place in places if place.zone.region == places[0].zone.region)


def _priority(deployment: Deployment, model: Provisioning, zone: Zone) -> dict[str, Any]:
    type_ = deployment.accelerator
    tpu = {
        "type": catalog.generation(type_.generation).gke_accelerator,
        "count": type_.chips_per_host,
        "topology": type_.topology,
    }
    priority: dict[str, Any] = {"tpu": tpu, "location": {"zones": [str(zone)]}}
    match model:
        case Provisioning.SPOT:
            priority["spot"] = True
        case Provisioning.FLEX_START:
            priority["flexStart"] = {"enabled": True}
        case Provisioning.RESERVED:
            priority["reservations"] = _reservations(deployment.reservation)
        case Provisioning.ON_DEMAND:
            pass
    if deployment.max_run_seconds is not None:
        priority["maxRunDurationSeconds"] = round(deployment.max_run_seconds)
    return priority


def _reservations(reservation: str | None) -> dict[str, Any]:
    """Return the affinity to a reservation, whose full name is projects/P/locations/Z/reservations/R."""
    if reservation is None:
        return {"affinity": "AnyBestEffort"}
    project, name = reservation.split("/")[1], reservation.rpartition("/")[2]
    return {"affinity": "Specific", "specific": [{"name": name, "project": project}]}


def _workload(deployment: Deployment) -> dict[str, Any]:
    labels = {"app": deployment.name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": deployment.name, "labels": {**deployment.labels, **labels}},
        "spec": {
            "replicas": deployment.replicas,
            "strategy": _strategy(deployment),
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": _pod(deployment)},
        },
    }


def _strategy(deployment: Deployment) -> dict[str, Any]:
    """Return how pods are replaced. A new pod needs the slice of an old one, so that one is stopped before."""
    if deployment.replicas == 1:
        return {"type": "Recreate"}
    bounds = {"maxSurge": 0, "maxUnavailable": deployment.lifecycle.max_unavailable}
    return {"type": "RollingUpdate", "rollingUpdate": bounds}


def _group_of_pods(deployment: Deployment) -> dict[str, Any]:
    """Return groups of pods, one for each replica: a leader with Ray's head and the server, and workers that join it.

    A pod that ends takes its group with it, because the server does not survive the loss of a host.
    """
    container, labels = deployment.container, {"app": deployment.name}
    leader = replace(container, hosts=1, serve=("/bin/bash", "-c", _LEAD, "bash", *server(container)))
    worker = replace(container, hosts=1, serve=("/bin/bash", "-c", _JOIN))
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {
            "name": deployment.name,
            "labels": {**deployment.labels, **labels},
            # The pods of a group run on the hosts of one slice, which is one node pool.
            "annotations": {"leaderworkerset.sigs.k8s.io/exclusive-topology": "cloud.google.com/gke-nodepool"},
        },
        "spec": {
            "replicas": deployment.replicas,
            "leaderWorkerTemplate": {
                "size": deployment.accelerator.hosts,
                "restartPolicy": "RecreateGroupOnPodRestart",
                "leaderTemplate": {
                    "metadata": {"labels": {**labels, **_LEADER}},
                    "spec": _pod(replace(deployment, container=leader)),
                },
                "workerTemplate": {"spec": _without_probes(_pod(replace(deployment, container=worker)))},
            },
        },
    }


def _without_probes(pod: dict[str, Any]) -> dict[str, Any]:
    """Return the pod of a worker, in which no server listens."""
    (vllm,) = pod["containers"]
    server_keys = ("startupProbe", "readinessProbe", "ports")
    return {**pod, "containers": [{key: value for key, value in vllm.items() if key not in server_keys}]}


def _pod(deployment: Deployment) -> dict[str, Any]:
    type_ = deployment.accelerator
    folders = tuple(_folders(deployment.container))
    return {
        "nodeSelector": {
            "cloud.google.com/compute-class": deployment.name,
            "cloud.google.com/gke-tpu-accelerator": catalog.generation(type_.generation).gke_accelerator,
            "cloud.google.com/gke-tpu-topology": type_.topology,
        },
        "containers": [_container(deployment, folders)],
        "volumes": [{"name": name, "emptyDir": source} for name, _, source in folders],
    }


def _container(deployment: Deployment, folders: Iterable[tuple[str, str, Mapping[str, str]]]) -> dict[str, Any]:
    container = deployment.container
    type_ = deployment.accelerator
    chips = {"google.com/tpu": str(type_.chips_per_host)}
    health = {"httpGet": {"path": "/health", "port": container.port}, "periodSeconds": _PROBE_SECONDS}
    patience = max(1, round(deployment.health.timeout_seconds / _PROBE_SECONDS))
    secrets = (
        {"name": ref.variable, "valueFrom": {"secretKeyRef": {"name": deployment.name, "key": ref.variable}}}
        for ref in container.secrets
    )
    return {
        "name": "vllm",
        "image": container.image,
        "command": [_without_expansion(word) for word in command(container)],
        "env": [
            *({"name": key, "value": _without_expansion(value)} for key, value in container.environment.items()),
            *(_OWN_ADDRESS if type_.hosts > 1 else ()),
            *secrets,
        ],
        "ports": [{"containerPort": container.port}],
        "resources": {"requests": chips, "limits": chips},
        "startupProbe": {**health, "failureThreshold": patience},
        "readinessProbe": health,
        "volumeMounts": [{"name": name, "mountPath": path} for name, path, _ in folders],
    }


def _without_expansion(word: str) -> str:
    """Return a word that Kubernetes hands on as it is: it replaces $(NAME) by a variable, and $$ by $."""
    return word.replace("$", "$$") if "$(" in word or "$$" in word else word


def _folders(container: Container) -> Iterator[tuple[str, str, Mapping[str, str]]]:
    """Yield the name, the path in the container and the `emptyDir` of each folder that the container mounts."""
    paths = [inside for _, inside in container.volumes if inside != _SHM]
    for number, path in enumerate(paths):
        yield f"folder-{number}", path, {}
    if container.shm_size is not None or len(paths) < len(container.volumes):
        yield "shm", _SHM, {"medium": "Memory"}


def _service(deployment: Deployment) -> dict[str, Any]:
    port = deployment.container.port
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": deployment.name},
        "spec": {
            "type": "ClusterIP",
            "selector": {"app": deployment.name, **({} if deployment.accelerator.hosts == 1 else _LEADER)},
            "ports": [{"port": port, "targetPort": port}],
        },
    }


def _pool(deployment: Deployment) -> dict[str, Any]:
    """Return the pool from which the inference gateway picks a replica for each request."""
    labels = {"app": deployment.name, **({} if deployment.accelerator.hosts == 1 else _LEADER)}
    return {
        "apiVersion": "inference.networking.k8s.io/v1",
        "kind": "InferencePool",
        "metadata": {"name": deployment.name},
        "spec": {
            "selector": {"matchLabels": labels},
            "targetPorts": [{"number": deployment.container.port}],
            # Without its picker, the gateway sends a request to any replica.
            "endpointPickerRef": {
                "kind": "Service",
                "name": _picker(deployment),
                "port": {"number": _PICKER_PORT},
                "failureMode": "FailOpen",
            },
        },
    }


def _route(deployment: Deployment) -> dict[str, Any]:
    pool = {"group": "inference.networking.k8s.io", "kind": "InferencePool", "name": deployment.name}
    everything = {"path": {"type": "PathPrefix", "value": "/"}}
    return {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": {"name": deployment.name},
        "spec": {
            "parentRefs": [{"kind": "Gateway", "name": _GATEWAY}],
            "rules": [{"matches": [everything], "backendRefs": [pool]}],
        },
    }


def _picker(deployment: Deployment) -> str:
    return f"{deployment.name}-epp"


def _missing(deployment: Deployment) -> Iterator[str]:
    container = deployment.container
    for ref in container.secrets:
        version = ref.secret if "/" in ref.secret else f"latest --secret={ref.secret}"
        yield (
            f"The secret of {ref.variable}: run `kubectl create secret generic {deployment.name} "
            f'--from-literal={ref.variable}="$(gcloud secrets versions access {version})"`.'
        )
    if deployment.accelerator.hosts > 1:
        yield "The controller of LeaderWorkerSet, which the cluster needs: https://lws.sigs.k8s.io/docs/installation/."
    if deployment.replicas > 1:
        yield (
            f"The Gateway {_GATEWAY} and the endpoint picker {_picker(deployment)}, to which route and pool refer: "
            "https://gateway-api-inference-extension.sigs.k8s.io/guides/."
        )
    yield from missing_rules(deployment)
    here = {place.zone for place in _places_in_region(deployment)}
    elsewhere = dict.fromkeys(str(place.zone) for place in deployment.candidates if place.zone not in here)
    if elsewhere:
        yield f"The zones {', '.join(elsewhere)}: a cluster is in one region, that of the first zone."
    yield "How long a request may wait (placement.valid_until): GKE waits until the pod is deleted."
    for host, inside in container.volumes:
        if inside != _SHM:
            yield f"The folder {host} of the machine: {inside} is empty in each new pod, which compiles again."
    if deployment.compile_cache is not None or deployment.mirror is not None:
        yield "The copies in Cloud Storage, of compiled programs and weights: mount the bucket with Cloud Storage FUSE."
    if deployment.network.external_ip:
        yield "An external address: the service is reachable inside the cluster only."
    yield "A completion as the condition for serving: the probes look at /health, which answers before a prompt does."
