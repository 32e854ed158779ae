"""Chips that are not there, not free, or too few."""

from __future__ import annotations

from tpudeploy.boot_log.signatures.row import Signature

_FEWER = (
    "The slice has {has} chips: set serving.tensor_parallel_size times data_parallel_size to {has}, or take a larger "
    "tpu.type."
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
            r"|open\(/dev/vfio/\d+\): Device or resource busy"
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
            "The machine shows its chips and cannot use them, and a reboot does not help. Report it with "
            "`tpudeploy report-host NAME[0]`, and run `tpudeploy apply` again, which asks another place. Its cause is "
            "not known; it was seen on ct6e-standard-4t."
        ),
        is_hardware=True,
        example="TPU initialization failed: GRPC_ERROR error message: START_SESSION failed",
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
            "machine lists them. If it is empty, the machine is broken: report it with "
            "`tpudeploy report-host NAME[0]`, and run `tpudeploy apply` again."
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
)
