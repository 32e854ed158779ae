"""Chips that are not there, not free, or too few."""

from __future__ import annotations

from tpudeploy.boot_log.signatures.row import Signature

_FEWER = (
    "The slice's number of chips is {has}: set serving.tensor_parallel_size times data_parallel_size to {has}, or take "
    "a larger tpu.type."
)

ROWS: tuple[Signature, ...] = (
    Signature(
        name="chip-lock-file",
        what="A lock file of libtpu's was left behind, or cannot be opened",
        pattern=r"(?:multi-process lockfile|[Ff]ailed to (?:open|acquire|create)[^\n]*libtpu_lockfile)",
        remedy=(
            "Remove /tmp/libtpu_lockfile on the machine (`sudo rm -f /tmp/libtpu_lockfile`) when no container uses the "
            "chips (`docker ps`), and run `tpudeploy apply` again. tpudeploy removes the file before each start; a "
            "container that was started by hand does not."
        ),
        # jax _src/cloud_tpu_init.py and libtpu; jax issue 10192
        example='Internal error when accessing libtpu multi-process lockfile. Run "$ sudo rm /tmp/libtpu_lockfile".',
    ),
    Signature(
        name="chip-in-use",
        what="Another process holds the chips",
        pattern=(
            r"The TPU is already in use by (?:process with pid \d+|another process)"
            r"|/dev/(?:vfio/|accel)\d+\)?[^\n]{0,40}(?:Device or resource busy|in use)"
        ),
        remedy=(
            "Stop the other container (`docker ps`), remove a stale /tmp/libtpu_lockfile, else reset the machine. "
            "tpudeploy runs one container on a chip: look for one that was started by hand."
        ),
        example=(
            "RuntimeError: Unable to initialize backend 'tpu': ABORTED: The TPU is already in use by process with pid "
            "41. Not attempting to load libtpu.so in this process."
        ),
    ),
    Signature(
        name="chip-forbidden",
        what="The container may not open the chips",
        pattern=r"PERMISSION_DENIED: open\(/dev/|open\(/dev/accel\d+\)",
        remedy="Run the container with --privileged, as root; tpudeploy's own does.",
        example="PERMISSION_DENIED: open(/dev/accel0): Operation not permitted",
    ),
    Signature(
        name="chip-session-failed",
        what="The machine's chips do not start",
        pattern=r"TPU initialization failed:[^\n]*START_SESSION failed",
        remedy=(
            "The machine shows its chips but can't use them. A reboot doesn't help. Report it with `tpudeploy "
            "report-host NAME[0]`, then run `tpudeploy apply` again to try another place. Its cause isn't known; "
            "it was seen on ct6e-standard-4t."
        ),
        is_hardware=True,
        example="TPU initialization failed: GRPC_ERROR error message: START_SESSION failed",
    ),
    Signature(
        name="worker-hostnames",
        what="A variable that should hold the workers' addresses holds something else",
        pattern=r"unexpected worker hostname '(?P<value>[^']{0,200})' from env var (?P<name>\w+)",
        remedy=(
            "Unset {name} (remove it from serving.env): its value is no address. The machine could not tell its "
            "workers when that was written. On a slice of one host, no such variable is needed."
        ),
        # ARahim3/kaggle-tpu-lab issue 6
        example=(
            "jax.errors.JaxRuntimeError: INVALID_ARGUMENT: Error: unexpected worker hostname 'WARNING: could not "
            "determine TPU worker hostnames or IP addresses' from env var TPU_WORKER_HOSTNAMES. Expecting a valid "
            "hostname or IP address without port number, or hostname:port:address triple."
        ),
    ),
    Signature(
        name="worker-addresses",
        what="The TPU runtime was told of another number of workers than the slice has",
        pattern=r"Expected (?P<needs>\d{1,6}) worker addresses, got (?P<has>\d{1,6})",
        remedy=(
            "The environment names {has} of {needs} workers: remove TPU_WORKER_HOSTNAMES, TPU_WORKER_ID, "
            "TPU_PROCESS_ADDRESSES and TPU_PROCESS_BOUNDS from serving.env, so that the machine's own are read, or set "
            "them for all {needs}."
        ),
        # huggingface/transformers issue 28204
        example=(
            "RuntimeError: Bad StatusOr access: UNKNOWN: TPU initialization failed: Invalid "
            "--2a886c8_slice_builder_worker_addresses specified. Expected 4 worker addresses, got 1."
        ),
    ),
    Signature(
        name="metadata-unreachable",
        what="The container does not reach the machine's metadata server",
        pattern=(
            r"metadata\.google\.internal.{0,300}(?:refused|[Ff]ailed|unreachable|timed out|Max retries|not known"
            r"|resolve|[Cc]ould ?n.t|[Cc]annot)"
            r"|(?:[Ff]ailed|[Cc]ould not|[Cc]annot|[Uu]nable to).{0,120}metadata\.google\.internal"
        ),
        remedy=(
            "Run the container in the host's network (--net=host; tpudeploy's own does), and keep firewalls and "
            "proxies off 169.254.169.254: set NO_PROXY to metadata.google.internal if a proxy is set in "
            "serving.env. Only a TPU VM has such a server."
        ),
        # googleapis/google-auth-library-python issue 211
        example=(
            "requests.exceptions.ConnectionError: HTTPConnectionPool(host='metadata.google.internal', port=80): Max "
            "retries exceeded with url: /computeMetadata/v1/instance/attributes/agent-worker-number"
        ),
    ),
    Signature(
        name="runtime-missing",
        what="The TPU runtime library (libtpu) cannot be loaded",
        pattern=(
            r"[Ff]ailed to open \S*libtpu\.so|libtpu\.so: cannot open|libtpu(?:\.so)? (?:was )?not found"
            r"|No module named 'libtpu'|[Cc]ould not (?:find|load) (?:the )?libtpu"
        ),
        remedy=(
            "Name an image of vLLM for TPU in serving.image, such as vllm/vllm-tpu; it contains libtpu. Remove "
            "TPU_LIBRARY_PATH from serving.env if it's set: it points at a missing file."
        ),
        # pytorch/xla issue 8133; jax _src/xla_bridge.py
        example="RuntimeError: Unable to initialize backend 'tpu': INTERNAL: Failed to open /usr/lib/libtpu.so",
    ),
    Signature(
        name="runtime-topology",
        what="The TPU runtime cannot read the slice's topology, or cannot map the chips",
        pattern=(
            r"Failed to get global TPU topology|Couldn't mmap|Failed to (?:find|get) (?:the )?(?:host|chip) bounds"
            r"|Failed to establish SliceBuilder|slice_builder.{0,80}(?:DEADLINE|timed out|failed)"
        ),
        remedy=(
            "Run the container with --privileged and --net=host (tpudeploy's own does), with one process on the "
            "chips. On a slice of several hosts, all must start. If that's already so, the machine is broken: "
            "report it with `tpudeploy report-host NAME[0]`, and run `tpudeploy apply -replace ADDRESS`."
        ),
        # vllm-project/vllm issue 16243; google/gemma_pytorch issue 25
        example="RuntimeError: Unable to initialize backend 'tpu': INTERNAL: Failed to get global TPU topology.",
    ),
    Signature(
        name="no-chips",
        what="The machine shows no TPU",
        pattern=(
            r"Failed to detect number of TPUs|No TPU devices? (?:were )?found|No ba16c7433 device found"
            r"|Unable to initialize backend 'tpu': (?:NOT_FOUND|UNAVAILABLE)"
        ),
        remedy=(
            "Is this a TPU VM, and are its devices passed to the container (--privileged)? `ls /dev/vfio` on the "
            "machine lists them. If it's empty, the machine is broken. Report it with `tpudeploy report-host "
            "NAME[0]`, then run `tpudeploy apply` again."
        ),
        is_hardware=True,
        example="Failed to detect number of TPUs: [Errno 2] No such file or directory: '/dev/vfio'",
    ),
    Signature(
        name="too-few-chips",
        what="More chips are requested than the machine has",
        pattern=r"Insufficient devices for 2D mesh: found (?P<has>\d+), expected \d+",
        remedy=_FEWER,
        example="ValueError: Insufficient devices for 2D mesh: found 1, expected 4",
    ),
    Signature(
        name="too-few-chips-for-ranks",
        what="Data-parallel ranks need more chips than the machine has",
        pattern=r"Multi-process DP rank \d+ needs TPU chips \[\d+, \d+\) but the host only has (?P<has>\d+) chips",
        remedy=_FEWER,
        example="Multi-process DP rank 1 needs TPU chips [4, 8) but the host only has 4 chips",
    ),
    Signature(
        name="runtime-failed",
        what="The TPU runtime does not start",
        pattern=r"TPU initialization failed|Unable to initialize backend 'tpu'|TPU backend initialization failed",
        remedy=(
            "The line has the runtime's own reason. Check that one container uses the chips (`docker ps`), with "
            "--privileged and --net=host, serving.env sets no TPU_ variable of the machine itself, and "
            "serving.image is built for the generation. If it persists on this machine alone: `tpudeploy apply "
            "-replace ADDRESS` requests another slice."
        ),
        # jax _src/xla_bridge.py; jax-ml/jax issue 21761
        example="RuntimeError: Unable to initialize backend 'tpu': INTERNAL: TPU initialization failed: unknown",
        is_consequence=True,
    ),
)
