"""What a source says of a deployment, in the keys of a profile, and what it says that a profile doesn't have."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from tpudeploy.catalog import accelerator_type, engines, flags, releases, type_names, variables
from tpudeploy.catalog.flags import VLLM_VERSION
from tpudeploy.config.keys import FLAG_OF_KEY, SECRET_OF_FLAG, VARIABLE_OF_KEY
from tpudeploy.config.trust import looks_secret
from tpudeploy.domain.accelerator import AcceleratorType
from tpudeploy.domain.diagnostics import Location
from tpudeploy.domain.engine import EngineKind
from tpudeploy.features.intake.engine_args import read_arguments, why_unknown
from tpudeploy.features.intake.shell import Word
from tpudeploy.features.intake.source import LEAST_HIDDEN, Fate, Note, Stop, has_token, without_secrets

DEFAULT_IMAGE = f"vllm/vllm-tpu:v{VLLM_VERSION}"
_KEY_OF_FLAG = {flag: key for key, flag in FLAG_OF_KEY.items()}
_KEY_OF_VARIABLE = {variable: key for key, variable in VARIABLE_OF_KEY.items()}
# The ids under which the shipped profiles name these secrets.
_SECRET_IDS: Mapping[str, str] = {"HF_TOKEN": "hf-token", "VLLM_API_KEY": "vllm-key"}  # ids, not values
_HUB_TOKENS = frozenset(
    {"HUGGING_FACE_HUB_TOKEN", "HUGGINGFACE_TOKEN", "HUGGINGFACE_HUB_TOKEN", "HUGGINGFACEHUB_API_TOKEN"}
)
_OF_GPUS = re.compile(
    r"(?:CUDA|NVIDIA|NCCL|PYTORCH_CUDA|TORCH_CUDA|HIP|ROCR|ROCM|GPU)_.*|VLLM_(?:ATTENTION_BACKEND|USE_TRITON_FLASH_ATTN|FLASH_ATTN_VERSION)"
)
# What GKE and scripts tell libtpu of the machine. The runtime of a TPU VM knows it itself.
_OF_THE_MACHINE = re.compile(
    r"PJRT_DEVICE|TPU_(?:WORKER|HOST|CHIPS_PER_HOST|ACCELERATOR|TOPOLOGY|SKIP|NAME|RUNTIME).*|LD_LIBRARY_PATH|PATH|HOME"
)
# What tells a host which one of its slice it is: of another slice, it's wrong.
_OF_A_HOST = re.compile(
    r"TPU_WORKER_(?:ID|HOSTNAMES)|TPU_PROCESS_ADDRESSES|CLOUD_TPU_TASK_ID|JAX_(?:COORDINATOR_ADDRESS|NUM_PROCESSES|PROCESS_ID)"
)
_OF_THE_TOOL = frozenset({"host"})
_MOST_NAME = 40
_CACHE = "/root/.cache/huggingface"
_HUB_FOLDER = "/var/lib/tpudeploy/hf"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PIECES = re.compile(r"[^a-z0-9]+")


class ProfileDraft:
    """Collects what readers of a source find. `settings` are values of a profile's keys by path."""

    def __init__(self) -> None:
        self.name = ""
        self.model: Word | None = None
        self.model_at: Location | None = None
        self.image = DEFAULT_IMAGE
        self.settings: dict[tuple[str, ...], Any] = {}
        self.secrets: dict[str, str] = {}
        self.comments: dict[tuple[str, ...], str] = {}
        self.notes: list[Note] = []
        self.kind: AcceleratorType | None = None
        self.is_type_given = False
        self.is_of_gpus = False
        self.hidden: set[str] = set()
        self._unneeded: dict[str, list[str]] = {}

    @property
    def release(self) -> str | None:
        """Return the release by whose table the engine's flags are read: the image's, or None for the newest."""
        engine = engines.identify(self.image)
        is_ours = engine.kind is EngineKind.TPU_INFERENCE and engine.release is not None
        return engine.release if is_ours and releases.find(engine.release or "") is not None else None

    def note(self, subject: str, reason: str, fate: Fate = Fate.LEFT_OUT) -> None:
        self.notes.append(Note(subject=without_secrets(subject), reason=without_secrets(reason), fate=fate))

    def leave(self, words: Iterable[str], reason: str) -> None:
        """Note words that a profile doesn't need, those of one reason together."""
        self._unneeded.setdefault(reason, []).extend(words)

    @property
    def all_notes(self) -> tuple[Note, ...]:
        groups = [
            Note(subject=", ".join(f"`{without_secrets(word)}`" for word in dict.fromkeys(words)), reason=reason)
            for reason, words in self._unneeded.items()
            if words
        ]
        return (*dict.fromkeys(self.notes), *groups)

    def set(self, path: tuple[str, ...], value: Any, comment: str = "") -> None:
        self.settings[path] = value
        if comment:
            self.comments[path] = comment

    def set_name(self, word: str) -> None:
        """Name the deployment after a container, service or workload, unless it has a name."""
        name = slug(word)
        if len(name) > 1 and not self.name:
            self.name = name

    def set_image(self, word: Word) -> None:
        if word.unknown:
            self.note(f"`{word.text}`", f"{why_unknown(word, 'serving.image')}. {DEFAULT_IMAGE} is written")
            return
        image = word.text.removeprefix("docker:")
        kind = engines.identify(image).kind
        name = image.partition("@")[0].rpartition("/")[2]
        if kind is EngineKind.UNKNOWN and "tpu" not in name.lower():
            self.note(f"`{image}`", f"it's an image for GPUs or another engine, so {DEFAULT_IMAGE} takes its place")
            self.comments["serving", "image"] = f"in place of {image}"
            self.is_of_gpus = self.is_of_gpus or "openai" in image or "cuda" in image
            return
        self.image = image.removeprefix("docker.io/").removeprefix("index.docker.io/")

    def set_type(self, name: str, *, start: int = 0, end: int = 0, at: Location | None = None) -> None:
        """Take the slice that a name of another tool means. Raise Stop for one that the catalogue doesn't have."""
        if self.is_type_given:
            return
        kind = accelerator_type(name)
        if kind is None:
            wrong = type_names.problem_of(name, label=f'"{name}"')
            hint = f"{wrong.hint}; --type says it instead".removeprefix("; ")
            raise Stop(wrong.message, start, end, hint=hint, at=at)
        self.kind = kind

    def add_secret(self, name: str, value: str = "") -> None:
        """Take the name of a secret. Its value is kept only to see that it is written nowhere."""
        if len(value) >= LEAST_HIDDEN:
            self.hidden.add(value)
        own = "HF_TOKEN" if name in _HUB_TOKENS else name
        if own in self.secrets:
            return
        identity = _SECRET_IDS.get(own) or _PIECES.sub("-", own.lower()).strip("-")
        self.secrets[own] = identity
        renamed = f"it's written as {own}. " if own != name else ""
        store = f"printf %s VALUE | gcloud secrets create {identity} --data-file=-"
        reason = f"{renamed}Only its name is written. Store the value in Secret Manager: {store}"
        self.note(name, reason, Fate.CHANGED)

    def add_variable(self, name: str, word: Word | None) -> None:
        """Take a variable of the container; without a word, one that only its caller knows."""
        value = "" if word is None else word.text
        is_secret = looks_secret(name) and not variables.is_setting(name)
        unneeded = self._why_unneeded(name)
        if not _VARIABLE.fullmatch(name):
            self.note(f"`{name}={'…' if value else ''}`", "it isn't the name of a variable")
        elif is_secret or name in _HUB_TOKENS or has_token(value):
            self.add_secret(name, "" if word is None or word.unknown else value)
        elif unneeded:
            self.leave([name], unneeded)
        elif word is None:
            self.note(name, f"the source has no value for it: write serving.env.{name}")
        elif word.unknown:
            self.note(name, why_unknown(word, f"serving.env.{name}"))
        else:
            self._set_variable(name, value)

    def _why_unneeded(self, name: str) -> str:
        """Return why a profile needs no variable of this name, "" if it may."""
        if _OF_GPUS.fullmatch(name):
            return "it's for GPUs"
        if variables.is_read(name) and not _OF_A_HOST.fullmatch(name):
            return ""
        if _OF_A_HOST.fullmatch(name) or _OF_THE_MACHINE.fullmatch(name):
            return "the image or the runtime of the machine sets it"
        removal = flags.removal(name, self.release) if name.startswith("VLLM_") else None
        return "" if removal is None else f"vLLM reads it no more, {removal.last} did: {removal.instead}"

    def _set_variable(self, name: str, value: str) -> None:
        key = _KEY_OF_VARIABLE.get(name)
        if key is None:
            self.set(("serving", "env", name), value)
            return
        is_number = key[-1] == "padding_gap" and re.fullmatch(r"[0-9]+", value)
        self.set(_words(key), int(value) if is_number else value)

    def drop_filled(self, name: str) -> None:
        """Drop a variable that the source's own command is written with, unless the engine reads it too."""
        if not variables.is_read(name) and name != "HF_HOME":
            self.settings.pop(("serving", "env", name), None)

    def add_volume(self, host: str, container: str, *, origin: str = "") -> None:
        """Take a mount. A folder of the author's machine or cluster becomes one of the TPU machine's disk."""
        subject = origin or f"`{host}:{container}`"
        if not container.startswith("/") or ":" in container:
            self.note(subject, "it names no folder of the container")
            return
        if host.startswith("/") and not re.search(r"[$`<~:]", host):
            self.set(("serving", "volumes", host), container)
            return
        if container.rstrip("/") == _CACHE:
            host = _HUB_FOLDER
        else:
            name = slug(host) if re.fullmatch(r"[\w./-]*", host) else ""
            host = f"/var/lib/tpudeploy/{name or slug(container) or 'folder'}"
        self.set(("serving", "volumes", host), container, "a folder of the machine's disk, empty at first")
        reason = f"what is in it isn't copied: {container} is a new folder of the machine's disk"
        self.note(subject, reason, Fate.CHANGED)

    def add_arguments(self, words: Iterable[Word]) -> None:
        """Take the words of `vllm serve`."""
        read = read_arguments(tuple(words), self.release)
        self.model = self.model or read.model
        for each in read.notes:
            self.note(each.subject, each.reason)
        for name, value in read.settings.items():
            if name in SECRET_OF_FLAG:
                self._add_secret_of_flag(name, value)
            elif name in _OF_THE_TOOL:
                self.leave([f"--{name}"], "the server listens on all addresses of its machine")
            elif name in _KEY_OF_FLAG:
                self.set(_words(_KEY_OF_FLAG[name]), value)
            else:
                self.set(("serving", "args", name.replace("-", "_")), value)
        for name in SECRET_OF_FLAG.keys() & read.words.keys() - read.settings.keys():
            self.add_secret(SECRET_OF_FLAG[name])

    def _add_secret_of_flag(self, name: str, value: Any) -> None:
        for text in value if isinstance(value, list) else [value]:
            self.add_secret(SECRET_OF_FLAG[name], text if isinstance(text, str) else "")


def slug(word: str) -> str:
    """Return a deployment's name for a word of another tool, "" where nothing of it can be one."""
    if re.search(r"[$<`]", word):
        word = re.sub(r"\$\{[^}]*\}|\$\w+|<[^>]*>|`[^`]*`", "", word)
    name = _PIECES.sub("-", word.lower()).strip("-")
    name = name if name[:1].isalpha() else ""
    return name[:_MOST_NAME].strip("-")


def _words(path: tuple[str | int, ...]) -> tuple[str, ...]:
    return tuple(str(part) for part in path)
