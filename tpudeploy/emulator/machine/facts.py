"""The facts that a machine starts with, and its behaviour by the scenario."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tpudeploy.emulator.clock import EmulatorClock
from tpudeploy.emulator.http_server import Reply
from tpudeploy.emulator.timings import Jitter

_IMAGE_GB = 20  # UNVERIFIED


def _ignore(_message: str) -> None:
    """Ignore a message, for a machine without a cloud behind it."""


def _answers_nothing(_method: str, _host: str, _target: str) -> Reply:
    """Answer for no API, for a machine without a cloud behind it."""
    return Reply(http=404, body={})


def _no_workers() -> Sequence[str]:
    """Return no addresses, for a machine without a cloud behind it."""
    return ()


def _knows_no_name(_name: str) -> str:
    """Find no address, for a machine that asks for no other one by its name."""
    return ""


def _nothing_listens(_address: str, _port: int) -> None:
    """Find no server, for a machine without a cloud behind it."""


def _has_every(_image: str) -> str:
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainImage:
    """The machine runs an image of Compute Engine, not of Cloud TPU: `disk_gb` of disk, and a token for `scopes` alone.

    It has no metadata of Cloud TPU, its name is its host name, and guest attributes must be enabled in its metadata.
    """

    disk_gb: int
    scopes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineFacts:
    """`metadata` is called at every read, so that nodes.patch shows. `secret` returns (HTTP status, text).

    `storage` answers one request to Cloud Storage: method, target and body; it may raise ConnectionError.
    `google` answers a call of the TPU API or Compute Engine: method, host and target.
    `pull_refusal` returns docker's words for an image that no registry has, or "".
    `engine` is the command of a real engine, which runs instead of the stand-in (real_engine.py); () for the stand-in.
    `note_unsupported` receives each request of the script that a stand-in cannot fulfil. A node of Cloud TPU has no
    `plain_image`. `workers` returns the addresses of all hosts of the node, in order, and `listening` where a server on
    one of them, by its address and port, is really found. `resolve` returns the address of a name of the internal DNS,
    "" for one that it does not have.
    """

    project: str
    zone: str
    node: str
    accelerator_type: str
    worker: int
    root: Path
    address: str
    clock: EmulatorClock
    metadata: Callable[[], Mapping[str, str]]
    secret: Callable[[str], tuple[int, str]]
    storage: Callable[[str, str, bytes], Reply]
    google: Callable[[str, str, str], Reply] = field(default=_answers_nothing)
    pull_refusal: Callable[[str], str] = field(default=_has_every)
    jitter: Jitter = field(default_factory=Jitter)
    engine: Sequence[str] = ()
    note_unsupported: Callable[[str], None] = field(default=_ignore)
    plain_image: PlainImage | None = None
    workers: Callable[[], Sequence[str]] = field(default=_no_workers)
    listening: Callable[[str, int], tuple[str, int] | None] = field(default=_nothing_listens)
    resolve: Callable[[str], str] = field(default=_knows_no_name)

    @property
    def hosts(self) -> int:
        """Return the number of hosts of the slice."""
        return max(len(self.workers()), 1)

    @property
    def project_number(self) -> str:
        return f"{100_000_000_000 + zlib.crc32(self.project.encode())}"

    @property
    def service_account(self) -> str:
        return f"{self.project_number}-compute@developer.gserviceaccount.com"

    @property
    def has_room(self) -> bool:
        """Whether an unpacked image of vLLM fits on the disk."""
        return self.plain_image is None or self.plain_image.disk_gb >= _IMAGE_GB

    @property
    def enables_guest_attributes(self) -> bool:
        return self.plain_image is None or self.metadata().get("enable-guest-attributes", "").upper() == "TRUE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """How this machine boots, from the scenario. Durations in seconds of the emulator's clock.

    * `has_docker` False: no docker until the script installs it.
    * `image_pull_failures`: this many pulls fail before one works; `image_pull` how long one takes.
    * `setup_fails`: a `setup` step exits 1 inside the container.
    * `boot_seconds`: the milestones of the stand-in's boot are spread over them; 0 serves at once.
    * `crash`: how the engine dies: `program-allocation` or `quantizing-in-place`, as real ones did (their logs are
      played, vllm/deaths), or a text of the scenario's own, which it logs as its last error; "" to serve.
    * `hang`: the engine never gets healthy.
    * `undo_fails`: a simulated node that goes back to the server before a change does not bring that one up either.
    * `kv_blocks`, `block_size`: override the measured boots.
    * `serves`: what the model does, in vLLM's words (generate, embed, classify, score, token_classify), whatever its
      arguments and its name say.
    * `release`: the version that the engine reports; by default that of the image's tag, or the newest.
    * `instead`: other values that the engine takes for these flags: its effective settings differ from its arguments.
    * `load`: what its /metrics report beside the requests that passed: vLLM's names without `vllm:`, a reason behind
      a dot, as in {num_requests_waiting_by_reason.capacity: 12, kv_cache_usage_perc: 0.93}. Simulated nodes without
      one of their own share it, so that it can be changed while they serve.
    * `growth`: what its counters grow by in each second that it serves, by the same names; a histogram with the value
      of its samples behind `=`, as in {request_success.stop: 2, time_to_first_token_seconds=3.5: 2}.
    * `guest_attributes` False: writes are refused, as UNVERIFIED on TPU VMs.
    * `token_seconds`: between two tokens of a simulated node, for a stream with `ignore_eos`.
    * `knows`: the share of sums that a simulated node has right, by a flag or variable and its value, as in
      {"": 0.95, kv-cache-dtype=fp8: 0.8}. The least that fits counts; where none does, it answers about itself.
    * `paces`: how many times `token_seconds` a token takes, by the same, as in {VLLM_TPU_BUCKET_PADDING_GAP=512: 2}.
      All of several that fit count.
    * `paced`: the stand-in takes as long as a chip might, by a small model of one (machine/vllm/performance.py).
      `emulator run` and `start` set it; otherwise it answers at once. With `noise`, measurements scatter by this share;
      with `drift`, the machine is up to this share faster or slower than usual, in a wave of six hours. `acceptance` is
      the chance that the next token of a speculation is right.
    * `hears_changes` False: a change of its metadata shows after the next boot alone (what TPU VMs do is UNVERIFIED).
    * `metadata_away`: [after, for]: `after` seconds into each boot its metadata server is down for `for` seconds.
    * `chip_busy`: how long the chip stays busy after a container on it was killed.
    * `runs_own_scripts`: the scripts under `boot` in a profile are run, on the machine of the emulator itself.
      Otherwise they are skipped, and their output says so.
    * `bucket`: how long each object takes from or to Cloud Storage.
    * `access_log` False: the server's log has no line for a request, or has its path without the query.
    * `reachable` False: a firewall drops what comes from outside.
    * `absent_workers`: these workers of a slice of several hosts never boot, though the node is READY.
    """

    has_docker: bool = True
    image_pull: float = 0.0
    image_pull_failures: int = 0
    setup_fails: bool = False
    boot_seconds: float = 0.0
    crash: str = ""
    hang: bool = False
    undo_fails: bool = False
    kv_blocks: int | None = None
    block_size: int | None = None
    serves: str = ""
    release: str = ""
    instead: Mapping[str, str] = field(default_factory=dict)
    load: dict[str, float] = field(default_factory=dict)
    growth: Mapping[str, float] = field(default_factory=dict)
    guest_attributes: bool = True
    token_seconds: float = 0.0
    knows: Mapping[str, float] = field(default_factory=dict)
    paces: Mapping[str, float] = field(default_factory=dict)
    paced: bool = False
    noise: float = 0.0
    drift: float = 0.0
    acceptance: float = 0.25
    hears_changes: bool = True
    metadata_away: Sequence[float] = ()
    chip_busy: float = 0.0
    access_log: bool = True
    reachable: bool = True
    absent_workers: Sequence[int] = ()
    runs_own_scripts: bool = False
    bucket: float = 0.0
