"""Servers that were killed, that were not ready in time, or that do not answer all requests."""

from __future__ import annotations

import re

from tpudeploy.boot_log.settings import EngineFacts
from tpudeploy.boot_log.signatures.row import Signature

_SHARED = "Weights in /dev/shm take the machine's memory too."


def _timeout(match: re.Match[str], facts: EngineFacts) -> str:
    seconds, milestone = int(match["seconds"]), (match["at"] or "").strip().rstrip(".")
    reached = f"It was at: {milestone}. " if milestone else ""
    raised = f"Raise health.timeout (now {seconds} s)"
    if milestone.startswith("Compiling graph"):
        return (
            f"{reached}It was still compiling. {raised}, or compile fewer graphs ({_fewer_graphs(facts)}). "
            "With serving.xla_cache_bucket a later start need not compile again."
        )
    if re.search(r"download|[Cc]heckpoint|[Ww]eights|shards", milestone):
        return f"{reached}It was still loading the weights. {raised}, or load them from a bucket with model.mirror."
    return f"{reached}{raised} if it was still working; the log of the container shows whether it was."


def _engine_timeout(match: re.Match[str], _: EngineFacts) -> str:
    now = f" (now {match['seconds']} s)" if match["seconds"] else ""
    return f"Raise VLLM_ENGINE_READY_TIMEOUT_S in serving.env{now} if the engine was still loading or compiling."


def _fewer_graphs(facts: EngineFacts) -> str:
    """Return the settings that make fewer graphs; only a padding gap that is set can be left out."""
    has_gap = facts.budget is None or facts.budget.engine.padding_gap > 0
    return f"{'serving.padding_gap, ' if has_gap else ''}serving.max_num_seqs"


ROWS: tuple[Signature, ...] = (
    Signature(
        name="host-memory",
        what="The machine ran out of memory (RAM, not HBM)",
        pattern=(
            r"Out of memory: Killed process|oom-kill:constraint|[Mm]emory cgroup out of memory|^MemoryError\b"
            r"|Cannot allocate memory|^(?:\S+: line \d+: +\d+ )?Killed\b(?: +(?:vllm|python\S*|VLLM)\b.*)?$"
            r"|\bOOMKilled\b"
        ),
        remedy=(
            "Use a slice with more memory per host, or load less at once: model.mirror onto the disk instead of "
            f"memory, a smaller or quantized checkpoint. {_SHARED}"
        ),
        # Linux mm/oom_kill.c
        example=(
            "Out of memory: Killed process 4711 (VLLM::EngineCor) total-vm:271828182kB, anon-rss:48123456kB, "
            "file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:98304kB oom_score_adj:0"
        ),
    ),
    Signature(
        name="machine-preempted",
        what="Google took the machine back while the server started",
        pattern=(
            r"compute\.instances\.preempted|(?:[Ii]nstance|VM|[Mm]achine|[Nn]ode|TPU|slice)\b.{0,60}\b(?:was|is being"
            r"|will be|has been) [Pp]reempted|[Pp]reemption notice|[Nn]otice of preemption|instance/preempted\W+TRUE"
        ),
        remedy=(
            "Nothing is wrong with the profile: spot slices can be preempted at any time. `tpudeploy apply` requests "
            "another one. placement.provisioning with flex-start or on-demand is not preempted."
        ),
        # cloud.google.com/compute/docs/instances/preemptible: the metadata key instance/preempted
        example="Instance was preempted.",
    ),
    Signature(
        name="machine-stopped",
        what="The machine was stopped or maintained by Google while the server started",
        pattern=(
            r"TERMINATE_ON_HOST_MAINTENANCE|MIGRATE_ON_HOST_MAINTENANCE"
            r"|compute\.instances\.(?:hostError|terminateOnHostMaintenance|guestTerminate|automaticRestart)"
            r"|[Rr]eached target (?:System )?(?:Power[- ]Off|Shutdown|Reboot)|[Mm]aintenance event .{0,40}TERMINATE"
        ),
        remedy=(
            "Nothing is wrong with the profile. `tpudeploy status` shows whether the machine came back; where it did "
            "not, `tpudeploy apply` requests another one."
        ),
        # cloud.google.com/compute/docs/instances/host-maintenance-overview: the metadata key maintenance-event
        example="maintenance-event: TERMINATE_ON_HOST_MAINTENANCE",
    ),
    Signature(
        name="bucket-denied",
        what="The machine may not read a bucket",
        pattern=r"\b(?:Forbidden|403)\b.{0,300}does not have storage\.(?:objects|buckets)\.\w+ access",
        remedy=(
            "Grant the VM's service account roles/storage.objectViewer on the bucket named in the line "
            "(roles/storage.objectUser if the server writes there). Check the bucket's name too: Google answers "
            "the same if it doesn't exist."
        ),
        # cloud.google.com/storage/docs/troubleshooting
        example=(
            "google.api_core.exceptions.Forbidden: 403 GET https://storage.googleapis.com/storage/v1/b/weights: "
            "vm@p.iam.gserviceaccount.com does not have storage.objects.get access to the Google Cloud Storage object."
        ),
    ),
    Signature(
        name="pip-failed",
        what="A package could not be installed",
        pattern=(
            r"ERROR: (?:Could not find a version that satisfies|No matching distribution found|ResolutionImpossible"
            r"|Cannot install|Failed building wheel|Could not install packages|Failed to build)"
            r"|No matching distribution found for|No solution found when resolving dependencies"
            r"|error: subprocess-exited-with-error"
        ),
        remedy=(
            "The package doesn't exist in that version for the image's Python, or PyPI can't be reached. Correct "
            "the requirement, or use a serving.image with the package: the image of vllm/vllm-tpu needs no "
            "installation."
        ),
        # pip _internal/resolution/resolvelib
        example="ERROR: No matching distribution found for vllm-tpu==9.9.9",
    ),
    Signature(
        name="cuda-image",
        what="The image or a setting is for NVIDIA GPUs",
        pattern=(
            r"No CUDA GPUs are available|CUDA out of memory|Torch not compiled with CUDA enabled|Found no NVIDIA driver"
            r"|could not select device driver \"[^\"]*\" with capabilities|nvidia-container-cli"
            r"|libcudart\.so\.\d+: cannot|CUDA driver version is insufficient|NCCL error"
            r"|No module named '(?:flash_attn|bitsandbytes)|only supported on GPUs with compute capability"
        ),
        remedy=(
            "Name an image of vLLM for TPU in serving.image, such as vllm/vllm-tpu, and leave out settings for GPUs "
            "(attention backends, bitsandbytes, --gpus)."
        ),
        # torch cuda/__init__.py
        example="RuntimeError: No CUDA GPUs are available",
    ),
    Signature(
        name="open-files",
        what="The container may not open as many files as the server needs",
        pattern=r"\[Errno 24\] Too many open files|Too many open files in system",
        remedy="Run the container with --ulimit nofile=1048576:1048576; each connection is a file.",
        # Python errno.EMFILE
        example="OSError: [Errno 24] Too many open files",
    ),
    Signature(
        name="path-missing",
        what="A file or folder of a setting is not in the container",
        pattern=(
            r"^(?:\w+\.)*(?:FileNotFoundError|NotADirectoryError): \[Errno \d+\] [\w ]+: '(?P<path>/(?!dev/|proc/"
            r"|sys/)[^']+)'"
        ),
        remedy=(
            "Mount the folder of {path} (serving.volumes), or correct the setting that names it: a path is one of the "
            "container, not of the machine."
        ),
        # CPython Objects/exceptions.c
        example="FileNotFoundError: [Errno 2] No such file or directory: '/adapters/sql/adapter_config.json'",
        is_consequence=True,
    ),
    Signature(
        name="package-missing",
        what="The image lacks a Python package, or has another version than the model or vLLM needs",
        pattern=(
            r"is newer than and incompatible with jax version|jaxlib version \S+ is (?:too old|incompatible)"
            r"|^(?:\w+\.)*(?:ModuleNotFoundError|ImportError): (?:No module named '(?P<name>[\w.]+)'|cannot import name"
            r"|.*undefined symbol|.*please install|.*is required|.*requires|.*version)"
        ),
        remedy=(
            "Take a newer serving.image, or one of your own with the package: FROM the same image, and pip "
            "install. If a plugin, tokenizer mode or load format in serving.args needs it, remove that."
        ),
        # CPython Python/import.c
        example="ModuleNotFoundError: No module named 'terratorch'",
        is_consequence=True,
    ),
    Signature(
        name="ray-placement",
        what="Ray has too few hosts or chips for the engine",
        pattern=(
            r"[Nn]umber of required TPUs exceeds|Current node has no TPU available|placement group.{0,120}"
            r"(?:[Tt]imed out|[Tt]imeout|cannot be (?:scheduled|satisfied)|[Ww]aited|infeasible|not ready)"
            r"|[Cc]annot provide a placement group|No available node types can fulfill"
        ),
        remedy=(
            "The slice must have tensor_parallel_size times data_parallel_size chips, and all of its hosts must "
            "have joined Ray: `tpudeploy logs` shows each worker's progress. Lower serving.tensor_parallel_size, "
            "or take a larger tpu.type."
        ),
        # vLLM v1/executor/ray_utils.py
        example=(
            "ValueError: Cannot provide a placement group of placement_group_specs=[{'TPU': 4.0}] within 1800 seconds."
        ),
    ),
    Signature(
        name="barrier-timeout",
        what="The hosts of the slice did not all reach the same point in time",
        pattern=(
            r"Barrier timed out|DEADLINE_EXCEEDED: .{0,160}(?:[Bb]arrier|tasks? (?:failed|have not)|connect)"
            r"|CoordinationService.{0,120}(?:DEADLINE|failed|heartbeat)|Failed to connect to GCS|RayChannelTimeoutError"
            r"|marked dead because the detector has missed too many heartbeats|\bActorDiedError\b"
        ),
        remedy=(
            "Another host of the slice failed or does not reach this one: read the log of each worker, the first error "
            "counts. Let the workers reach one another at every port (a firewall rule for the network itself)."
        ),
        # jax _src/distributed.py, XLA's coordination service
        example="jax.errors.JaxRuntimeError: DEADLINE_EXCEEDED: Barrier timed out. Barrier_id: PjRT_Client_Connect",
        is_consequence=True,
    ),
    Signature(
        name="native-crash",
        what="The server crashed in native code: libtpu, XLA or an extension, not Python",
        pattern=(
            r"Fatal Python error: (?:Segmentation fault|Aborted|Illegal instruction|Floating point exception)"
            r"|^\*\*\* SIG(?:SEGV|ABRT|ILL|FPE) received by PID|^(?:Segmentation fault|Aborted|Illegal instruction)\b"
            r"|exit code (?:139|134|132)\b|Exited \((?:139|134|132)\)|died with exit code -(?:11|6|4)\b"
            r"|Failed core proc\(s\): \{[^}]*: -(?:11|6|4)\b"
        ),
        remedy=(
            "No setting is known to cause it. The lines above it have the frame or the failed check: use another "
            "serving.image (the newest release) and remove experimental settings from serving.args and "
            "serving.env. If the same profile runs elsewhere, `tpudeploy apply -replace ADDRESS` requests another"
            " machine."
        ),
        # CPython Python/pylifecycle.c: faulthandler
        example="Fatal Python error: Segmentation fault",
        is_consequence=True,
    ),
    Signature(
        name="killed",
        what="The server was killed from outside (SIGKILL)",
        pattern=r"exit code 137\b|Exited \(137\)|Failed core proc\(s\): \{[^}]*: -9\b|died with exit code -9\b",
        remedy=(
            "Most often the machine ran out of memory (RAM, not HBM): `dmesg | grep -i oom` on the machine says so. "
            "If it did, use a slice whose hosts have more memory or load less at once. If it did not, someone "
            f"stopped the container (docker kill, a shutdown). {_SHARED}"
        ),
        example="failed: The container ended (exit code 137): Loading safetensors checkpoint shards:  50% Completed",
        is_consequence=True,
    ),
    Signature(
        name="stopped",
        what="The server was told to stop before it was ready (SIGTERM)",
        pattern=r"KeyboardInterrupt: terminated|exit code 143\b|Exited \(143\)",
        remedy=(
            "Look for what stopped the container: `docker stop` by hand, a shutdown or preemption of the machine "
            "(`tpudeploy status` shows it), or a later change of the profile. `tpudeploy apply` starts it again."
        ),
        # vLLM entrypoints/launchers/api_server/entry.py
        example="KeyboardInterrupt: terminated",
        is_consequence=True,
    ),
    Signature(
        name="engine-timeout",
        what="The API server did not wait long enough for the engine",
        pattern=(
            r"Timed out waiting for engine(?: core processes to start\.|s to send initial message)"
            r"(?:.*?Waited (?P<seconds>\d{1,9})s)?"
        ),
        remedy=_engine_timeout,
        # vLLM v1/engine/core_client.py
        example=(
            "TimeoutError: Timed out waiting for engine core processes to start. This is often caused by slow weight "
            "loading for large models. Waited 600s (configured by VLLM_ENGINE_READY_TIMEOUT_S)."
        ),
        is_consequence=True,
    ),
    Signature(
        name="ready-timeout",
        what="The server was not ready within the profile's timeout",
        pattern=r"The server was not healthy within (?P<seconds>\d{1,9}) s(?:; it was at: (?P<at>[^\n]*))?",
        remedy=_timeout,
        example="failed: The server was not healthy within 1800 s; it was at: Compiling graph 87",
        is_consequence=True,
    ),
    Signature(
        name="chat-template-missing",
        what="The tokenizer has no chat template, so chat requests fail",
        pattern=r"default chat template is no longer allowed",
        remedy=(
            "Set serving.args.chat_template to a template in the container, or serve an instruction-tuned "
            "checkpoint with its own. Requests to /v1/completions need none."
        ),
        # vLLM renderers/hf.py
        example=(
            "vllm.entrypoints.chat_utils.ChatTemplateResolutionError: As of transformers v4.44, default chat template "
            "is no longer allowed, so you must provide a chat template if the tokenizer does not define one."
        ),
        ends_server=False,
    ),
    Signature(
        name="completion-failed",
        what="The server is healthy, but does not answer a request",
        pattern=r"The server is healthy, but an? [a-z ]+ failed \(HTTP (?P<status>\d{3})\)",
        remedy=(
            "The answer is in the line. Read the container's log at that time: an engine that dies at its first "
            "request usually lacks room for a program compiled only then."
        ),
        example="failed: The server is healthy, but a completion failed (HTTP 500): Internal Server Error",
        is_consequence=True,
    ),
    Signature(
        name="chat-template-not-found",
        what="The file of the chat template is not in the container",
        pattern=(
            r"The supplied chat template .*(?:doesn't exist|failed to be opened)"
            r"|supplied chat template path doesn't exist"
        ),
        remedy="Correct serving.args.chat_template, or mount the file's folder (serving.volumes).",
        # vLLM entrypoints/chat_utils.py
        example=(
            "ValueError: The supplied chat template string (/templates/chat.jinja) appears path-like, but doesn't "
            "exist! Tried: /templates/chat.jinja and /workspace/vllm/vllm/examples/chat.jinja"
        ),
    ),
)
