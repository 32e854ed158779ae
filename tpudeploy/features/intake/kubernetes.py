"""Take manifests of Kubernetes into a draft: the first workload whose container serves with vLLM."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tpudeploy import catalog
from tpudeploy.catalog.generations import GENERATIONS
from tpudeploy.config.nodes import MapNode, Node, ScalarNode
from tpudeploy.features.intake import tree
from tpudeploy.features.intake.draft import ProfileDraft
from tpudeploy.features.intake.launch import container_arguments, find_launches, shell_text
from tpudeploy.features.intake.launched import set_topology, take_server
from tpudeploy.features.intake.shell import Word
from tpudeploy.features.intake.source import Stop
from tpudeploy.features.intake.variables import kubernetes_word

_CHECKS = "tpudeploy checks the server by itself; health.timeout limits a start"
_TPU, _GPU = "google.com/tpu", "nvidia.com/gpu"
_LABEL = "cloud.google.com/gke-"
_ACCELERATOR, _TOPOLOGY = f"{_LABEL}tpu-accelerator", f"{_LABEL}tpu-topology"
_MODELS: Mapping[str, str] = {"spot": "spot", "flex-start": "flex-start"}
_OTHERS: Mapping[str, str] = {
    "Service": "the endpoint is the machine's address and serving.port",
    "Ingress": "write router for several replicas: docs/how-to/replicas.md",
    "Secret": "its values are not read; store them in Secret Manager",
    "ConfigMap": "its values are not read: write serving.env",
    "PersistentVolumeClaim": "a folder of the machine's disk takes its place; tpu.boot_disk_size is that disk's size",
    "HorizontalPodAutoscaler": "write scale: min, max and the load that adds a replica",
    "PodMonitoring": "`tpudeploy alerts` writes how to collect metrics",
    "ServiceAccount": "write placement.service_account, an account of Google Cloud",
}
_CONTAINER_KEYS: Mapping[str, str] = {
    **dict.fromkeys(
        ("readinessProbe", "livenessProbe", "startupProbe"),
        _CHECKS,
    ),
    "lifecycle": "a profile runs nothing when a container starts or stops",
    "envFrom": "its variables are not read: write serving.env and secrets",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerWorkload:
    """A workload with a container that serves. `pod` is the specification that lists it."""

    root: MapNode
    kind: str
    pod: Node
    container: Node


def is_manifest(root: MapNode) -> bool:
    return bool(tree.text(root, "kind")) and bool(tree.text(root, "apiVersion"))


def take_manifests(draft: ProfileDraft, roots: Sequence[MapNode]) -> None:
    """Take manifests. Raise Stop where none has a container that serves with vLLM."""
    every = [each for root in roots for each in _with_items(root)]
    workloads = [workload for root in every if (workload := _workload(root)) is not None]
    if not workloads:
        kinds = ", ".join(dict.fromkeys(tree.text(root, "kind") for root in every)) or "nothing"
        hint = "what is read is a workload of any kind with a container that starts vLLM"
        raise tree.stop_at(every[0] if every else None, f"No workload starts vLLM: the file has {kinds}", hint)
    first = workloads[0]
    for root in every:
        kind, name = tree.text(root, "kind"), tree.text(root, "metadata", "name")
        if root is not first.root:
            another = "it's another server: a profile has one" if any(root is each.root for each in workloads) else ""
            draft.note(f"{kind} `{name}`", another or _OTHERS.get(kind, "a profile has nothing for it"))
    _take_workload(draft, first)


def _with_items(root: MapNode) -> Iterator[MapNode]:
    if tree.text(root, "kind") == "List":
        yield from (item for item in tree.items(root, "items") if isinstance(item, MapNode))
    else:
        yield root


def _workload(root: MapNode) -> ServerWorkload | None:
    for pod in sorted(tree.mappings_with(root, "containers"), key=lambda pod: pod is _workers(root)):
        for container in tree.items(pod, "containers"):
            if _starts_engine(container) or (_model_uri(root) and "vllm" in tree.text(container, "image")):
                return ServerWorkload(root=root, kind=tree.text(root, "kind"), pod=pod, container=container)
    return None


def _workers(root: MapNode) -> Node | None:
    """Return the pods of a LeaderWorkerSet that join its leader."""
    return tree.at(root, "spec", "leaderWorkerTemplate", "workerTemplate", "spec")


def _words(container: Node) -> tuple[Word, ...]:
    environment = _variables(container)
    return tuple(
        kubernetes_word(text, environment) for key in ("command", "args") for text in tree.texts(container, key)
    )


def _starts_engine(container: Node) -> bool:
    words = _words(container)
    if container_arguments(tree.text(container, "image"), words) is not None:
        return True
    inner = shell_text(words)
    try:
        return inner is not None and bool(find_launches(inner.text).servers)
    except Stop:
        return "vllm" in (inner.text if inner else "")


def _variables(container: Node) -> dict[str, Word]:
    """Return the variables with a value; of one from elsewhere in the cluster, it isn't known."""
    values: dict[str, Word] = {}
    for item in tree.items(container, "env"):
        name, value = tree.text(item, "name"), tree.at(item, "value")
        is_known = isinstance(value, ScalarNode) and value.value is not None
        values[name] = (
            kubernetes_word(tree.text(value), values) if is_known else Word(text=f"$({name})", unknown=(name,))
        )
    return values


def _take_workload(draft: ProfileDraft, workload: ServerWorkload) -> None:
    root, container, pod = workload.root, workload.container, workload.pod
    draft.model_at = container.at
    draft.set_name(tree.text(root, "metadata", "name"))
    if image := tree.text(container, "image"):
        draft.set_image(Word(text=image, unknown=(image,) if image.startswith("<") or "$" in image else ()))
    _take_slice(draft, pod, container)
    _take_variables(draft, container)
    _take_command(draft, container)
    _take_model(draft, root)
    _take_mounts(draft, workload)
    _take_counts(draft, workload)
    port = tree.number(container, "ports", 0, "containerPort")
    if port is not None and ("serving", "port") not in draft.settings:
        draft.set(("serving", "port"), port)
    for key, reason in _CONTAINER_KEYS.items():
        if tree.at(container, key) is not None:
            draft.leave([key], reason)
    _note_beside(draft, pod, container)


def _take_variables(draft: ProfileDraft, container: Node) -> None:
    for name, word in _variables(container).items():
        item = next(each for each in tree.items(container, "env") if tree.text(each, "name") == name)
        if tree.at(item, "valueFrom", "secretKeyRef") is not None:
            draft.add_secret(name)
        elif tree.at(item, "valueFrom") is not None:
            draft.note(name, f"the cluster gives its value: write serving.env.{name} if the server needs it")
        else:
            draft.add_variable(name, word)
        if any(f"$({name})" in text for key in ("command", "args") for text in tree.texts(container, key)):
            draft.drop_filled(name)


def _note_beside(draft: ProfileDraft, pod: Node, container: Node) -> None:
    """Note what a pod has beside the server's container."""
    for other in tree.items(pod, "containers"):
        if other is not container:
            draft.note(f"container `{tree.text(other, 'name')}`", "a profile has the server's container alone")
    for other in tree.items(pod, "initContainers"):
        draft.note(
            f"initContainer `{tree.text(other, 'name')}`", "write what it does under serving.setup, or boot.before"
        )
    if tree.items(pod, "imagePullSecrets"):
        reason = "a machine has credentials for Artifact Registry alone: copy the image there, and name that copy"
        draft.note("`imagePullSecrets`", reason)
    if account := tree.text(pod, "serviceAccountName"):
        draft.note(f"serviceAccountName `{account}`", "write placement.service_account, an account of Google Cloud")


def _take_command(draft: ProfileDraft, container: Node) -> None:
    words = _words(container)
    arguments = container_arguments(tree.text(container, "image"), words)
    if arguments is not None:
        draft.add_arguments(arguments)
        return
    inner = shell_text(words)
    if inner is None:
        return
    environment = {name: word.text for name, word in _variables(container).items() if not word.unknown}
    values = find_launches(inner.text, environment)
    take_server(draft, values.servers[0], [], is_contained=True)
    draft.notes = list(dict.fromkeys(draft.notes))


def _take_model(draft: ProfileDraft, root: MapNode) -> None:
    """Take the model that a workload of KServe names beside its containers, where the command names none."""
    if draft.model is None and (uri := _model_uri(root)):
        draft.model = Word(text=uri)


def _model_uri(root: MapNode) -> str:
    """Return the model of a LLMInferenceService, whose containers start the engine by themselves."""
    scheme, _, model = tree.text(root, "spec", "model", "uri").partition("://")
    return model if scheme == "hf" else ""


def _take_slice(draft: ProfileDraft, pod: Node, container: Node) -> None:
    own = {key: tree.text(node) for key, node in tree.mapping(pod, "nodeSelector").items()}
    selector = {**_affinity(pod), **own}
    if accelerator := selector.get(_ACCELERATOR, ""):
        _take_topology(draft, pod, container, accelerator, selector.get(_TOPOLOGY, ""))
    for label, model in _MODELS.items():
        if selector.get(f"{_LABEL}{label}") == "true":
            draft.set(("placement", "provisioning"), [model])
    if zone := selector.get("topology.kubernetes.io/zone", ""):
        draft.set(("placement", "zones"), [zone])
    if reservation := selector.get("cloud.google.com/reservation-name", ""):
        reason = "write placement.reservation with its full name, and provisioning: [reserved]"
        draft.note(f"reservation `{reservation}`", reason)
    gpus = tree.text(container, "resources", "limits", _GPU)
    if gpus or f"{_LABEL}accelerator" in selector:
        draft.note(f"{gpus or 1} x {selector.get(f'{_LABEL}accelerator', 'GPU')}", "a TPU slice takes their place")
        draft.is_of_gpus = True


def _take_topology(draft: ProfileDraft, pod: Node, container: Node, accelerator: str, topology: str) -> None:
    """Take the slice that a workload's nodes are. Raise Stop for one that the catalogue doesn't have."""
    named, shaped = (tree.at(pod, "nodeSelector", key) or container for key in (_ACCELERATOR, _TOPOLOGY))
    generation = next((each.name for each in GENERATIONS if accelerator in _labels_of(each.gke_accelerator)), "")
    if not generation and not draft.is_type_given:
        names = ", ".join(each.gke_accelerator for each in GENERATIONS)
        raise tree.stop_at(named, f"There is no accelerator `{accelerator}` in the catalogue", f"there are {names}")
    counts = (tree.number(container, "resources", kind, _TPU) for kind in ("limits", "requests"))
    shape = topology or _topology_of(generation, next(filter(None, counts), None))
    try:
        set_topology(draft, generation, shape)
    except Stop as stop:
        place = named if shaped is container else shaped
        raise Stop(stop.message, hint=stop.hint, at=place.at) from stop


def _labels_of(accelerator: str) -> tuple[str, ...]:
    """Return the label of a generation, and what pages also write for it."""
    return (accelerator, accelerator.replace("-podslice", "-device"), accelerator.replace("v6e-slice", "v6e-device"))


def _affinity(pod: Node) -> dict[str, str]:
    """Return labels that a required node affinity asks for."""
    path = ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
    expressions = [each for term in tree.items(pod, *path) for each in tree.items(term, "matchExpressions")]
    labels: dict[str, str] = {}
    for each in expressions:
        choices = tree.texts(each, "values")
        if tree.text(each, "operator") == "In" and choices:
            labels[tree.text(each, "key")] = choices[0]
    return labels


def _topology_of(generation: str, chips: int | None) -> str:
    return next((kind.topology for kind in catalog.types_of(generation) if kind.chips == (chips or 1)), "")


def _take_mounts(draft: ProfileDraft, workload: ServerWorkload) -> None:
    volumes = {tree.text(each, "name"): each for each in tree.items(workload.pod, "volumes")}
    claims = {tree.text(each, "metadata", "name") for each in tree.items(workload.root, "spec", "volumeClaimTemplates")}
    for mount in tree.items(workload.container, "volumeMounts"):
        name, path = tree.text(mount, "name"), tree.text(mount, "mountPath")
        _take_mount(draft, name, path, volumes.get(name), is_claim=name in claims)


def _take_mount(draft: ProfileDraft, name: str, path: str, volume: Node | None, *, is_claim: bool) -> None:
    if tree.text(volume, "emptyDir", "medium") == "Memory":
        size = tree.text(volume, "emptyDir", "sizeLimit")
        if path.rstrip("/") == "/dev/shm" and size:  # noqa: S108 - a path of the source
            draft.set(("serving", "shm_size"), size.replace("Gi", "g").replace("Mi", "m"))
        else:
            draft.add_volume("/dev/shm", path)  # noqa: S108 - the machine's file system in memory
        return
    if host := tree.text(volume, "hostPath", "path"):
        draft.add_volume(host, path)
        return
    if bucket := tree.text(volume, "csi", "volumeAttributes", "bucketName"):
        reason = f"write model.mirror: gs://{bucket}/FOLDER for weights in it, xla_cache_bucket for compiled programs"
        draft.note(f"bucket `{bucket}` at {path}", reason)
    sources = ("csi", "persistentVolumeClaim", "emptyDir", "ephemeral")
    if is_claim or any(tree.at(volume, key) is not None for key in sources):
        draft.add_volume(name, path, origin=f"volume `{name}`")
    else:
        draft.note(f"volume `{name}` at {path}", "a profile mounts no ConfigMap or Secret as files")


def _take_counts(draft: ProfileDraft, workload: ServerWorkload) -> None:
    replicas = tree.number(workload.root, "spec", "replicas")
    if replicas is not None and replicas > 1 and workload.kind not in ("JobSet", "Job", "Pod"):
        draft.set(("replicas",), replicas)
    size = tree.number(workload.root, "spec", "leaderWorkerTemplate", "size")
    if size is not None and draft.kind is not None and size != draft.kind.hosts:
        draft.note(f"size {size}", f"{draft.kind.name} has {draft.kind.hosts} hosts")
    if workload.kind in ("LeaderWorkerSet", "JobSet") and draft.kind is not None and draft.kind.hosts > 1:
        draft.leave([workload.kind], "tpudeploy starts Ray over the hosts of a slice itself")
