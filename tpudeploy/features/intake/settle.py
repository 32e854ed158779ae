"""Make a profile of a draft: choose the slice where the source names none, and leave out what a check refuses.

The slice is the smallest on which the checks find no error, of the generations that vLLM recommends first.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from tpudeploy import catalog
from tpudeploy.cli.new_profile import SEARCH_COMMENT, STEP, name_of
from tpudeploy.config.parse import parse
from tpudeploy.config.reader import Remembered
from tpudeploy.domain.accelerator import DEFAULT_BACKEND, AcceleratorType, Support
from tpudeploy.domain.budget import HbmBudget, Unsized
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import Diagnostic, errors_in
from tpudeploy.domain.errors import ProfileInvalid
from tpudeploy.features.intake.draft import DEFAULT_IMAGE, ProfileDraft, slug
from tpudeploy.features.intake.engine_args import what_is_unknown
from tpudeploy.features.intake.profile_text import profile_text
from tpudeploy.features.intake.source import Fate, Note, Stop, without_secrets
from tpudeploy.planning.resolve import GRAPHS, HUB, resolve_without_script
from tpudeploy.sizing.advice import remedies
from tpudeploy.sizing.checks import check

_FILE = "profile.yaml"
_ROUNDS = 60
_SPLIT = ("tensor_parallel_size", "data_parallel_size")
_STAGES = "pipeline_parallel_size"
_SPLITS = (*(("serving", key) for key in _SPLIT), ("serving", "args", _STAGES))
_STEPS = ("serving", "max_num_batched_tokens")
_ORDER = (
    *("image", "tensor_parallel_size", "data_parallel_size", "dtype", "kv_cache_dtype", "hbm_utilization"),
    *("block_size", "max_model_len", "max_num_seqs", "max_num_batched_tokens", "padding_gap", "xla_cache_path"),
    *("port", "shm_size", "volumes", "args", "env", "setup"),
)
_IMPLEMENTATION = ("serving", "env", "MODEL_IMPL_TYPE")
_PROTECTED = frozenset({("version",), ("name",), ("model", "id"), ("tpu", "type"), ("serving", "image")})
_SECTIONS = frozenset({("model",), ("tpu",), ("serving",), ("placement",)})
Path = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """A valid profile. `deployment` is what it means, `notes` all that it doesn't have of its source."""

    text: str
    deployment: Deployment
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Attempt:
    """A profile on one slice. `errors` are those of the checks, none where it would start."""

    tree: dict[str, Any]
    comments: Mapping[Path, str]
    notes: tuple[Note, ...]
    deployment: Deployment
    errors: tuple[Diagnostic, ...]


def settle(draft: ProfileDraft, origin: str, *, model_id: str = "") -> Settled:
    """Return the profile of a draft. Raise Stop where the source doesn't say enough, or names what is refused."""
    model = model_id or _model_of(draft)
    attempt = _best(draft, model)
    notes = tuple(_scrubbed(note, draft) for note in (*draft.all_notes, *attempt.notes))
    head = [f"Written by `tpudeploy init` from {origin}. `tpudeploy size` shows what its chips hold."]
    placement, comments = attempt.tree["placement"], dict(attempt.comments)
    if "max_parallel_requests" not in placement and attempt.deployment.search_usd_per_hour is not None:
        placement.setdefault("max_search_price_per_hour", attempt.deployment.search_usd_per_hour)
        comments["placement", "max_search_price_per_hour"] = SEARCH_COMMENT
    text = profile_text(attempt.tree, comments, head=head, notes=notes)
    return Settled(text=text, deployment=attempt.deployment, notes=notes)


def _scrubbed(note: Note, draft: ProfileDraft) -> Note:
    subject, reason = note.subject, without_secrets(note.reason)
    for hidden in draft.hidden - draft.secrets.keys() - set(draft.secrets.values()):
        subject, reason = subject.replace(hidden, "***"), reason.replace(hidden, "***")
    return replace(note, subject=subject, reason=reason)


def slices_by_cost() -> tuple[AcceleratorType, ...]:
    """Return every slice, the one to try first at the head: of a recommended generation, one host, the cheapest."""
    return tuple(sorted(catalog.accelerator_types(), key=_rank))


@lru_cache(maxsize=64)
def _rank(kind: AcceleratorType) -> tuple[bool, bool, float]:
    generation = catalog.generation(kind.generation)
    usd = min((each for prices in generation.prices.values() for each in prices.values()), default=math.inf)
    return generation.support is not Support.RECOMMENDED, kind.hosts > 1, usd * kind.chips


def _model_of(draft: ProfileDraft) -> str:
    word = draft.model
    if word is None:
        hint = "add --model ID; what is read is `vllm serve MODEL`, or --model of vllm.entrypoints.openai.api_server"
        raise Stop("The source names no model", hint=hint, at=draft.model_at)
    if word.unknown:
        raise Stop(
            f"The model isn't known: {what_is_unknown(word)}",
            word.start,
            word.end,
            hint="add --model ID",
            at=draft.model_at,
        )
    return word.text


def _best(draft: ProfileDraft, model: str) -> _Attempt:
    """Return the attempt on the source's slice, changed as little as it must be, or else on the first that does."""
    unsized: _Attempt | None = None
    refused: _Attempt | None = None
    for kind in _kinds(draft):
        attempt = _attempt(draft, model, kind)
        if attempt.errors:
            attempt = _mended(draft, model, attempt)
        budget = attempt.deployment.budget
        if not attempt.errors and (kind is draft.kind or isinstance(budget, HbmBudget)):
            return attempt
        if not attempt.errors and isinstance(budget, Unsized) and not budget.exceeds_chips and unsized is None:
            reason = f"whether it holds the model isn't known: {budget.because}"
            unsized = _with_note(attempt, Note(subject=f"`{kind.name}`", reason=reason, fate=Fate.CHANGED))
        refused = refused or attempt
    if unsized is not None:
        return unsized
    assert refused is not None  # the catalogue has slices
    first = refused.errors[0]
    word = draft.model
    start, end = (0, 0) if word is None else (word.start, word.end)
    raise Stop(f"No slice serves this: {first.message}", start, end, hint=first.hint, at=draft.model_at)


def _with_note(attempt: _Attempt, note: Note) -> _Attempt:
    return replace(attempt, notes=(*attempt.notes, note))


def _kinds(draft: ProfileDraft) -> Iterator[AcceleratorType]:
    """Yield the slices to try: the source's, those with as many devices as it splits the model over, the others."""
    if draft.kind is not None:
        yield draft.kind
    devices = _devices(draft)
    others = [kind for kind in slices_by_cost() if kind is not draft.kind]
    yield from (kind for kind in others if kind.devices == devices > 1)
    yield from (kind for kind in others if kind.devices > devices or devices == 1)


def _devices(draft: ProfileDraft) -> int:
    sizes = [draft.settings.get(path, 1) for path in _SPLITS]
    return math.prod(size for size in sizes if isinstance(size, int))


def _attempt(draft: ProfileDraft, model: str, kind: AcceleratorType) -> _Attempt:
    notes: list[Note] = []
    comments = dict(draft.comments)
    tree = _tree(draft, model, kind, notes, comments)
    deployment = _valid(tree, notes, draft)
    return _Attempt(
        tree=tree,
        comments=comments,
        notes=tuple(notes),
        deployment=deployment,
        errors=errors_in(check([deployment])),
    )


def _tree(
    draft: ProfileDraft, model: str, kind: AcceleratorType, notes: list[Note], comments: dict[Path, str]
) -> dict[str, Any]:
    """Return the values of a profile on a slice."""
    has_secret = any(slug(hidden) and slug(hidden) in draft.name for hidden in draft.hidden)
    tree: dict[str, Any] = {
        "version": 1,
        "name": name_of(model) if has_secret or not draft.name else draft.name,
        "model": {"id": model},
        "tpu": {"type": kind.name},
        "serving": {"image": draft.image},
    }
    settings = dict(draft.settings)
    if _devices(draft) != kind.devices and any(path in settings for path in _SPLITS):
        _drop_split(settings, kind, notes)
    for path, value in settings.items():
        _set_at(tree, path, copy.deepcopy(value))
    if draft.secrets:
        tree["secrets"] = dict(draft.secrets)
        comments[("secrets", next(iter(draft.secrets)))] = "a secret's name in Secret Manager, never its value"
    _keep_caches(tree["serving"], comments)
    placement = tree.setdefault("placement", {})
    if DEFAULT_BACKEND not in kind.backends and "backend" not in placement:
        placement["backend"] = kind.backends[0].value
    _default_placement(placement, comments)
    if kind is not draft.kind:
        comments["tpu", "type"] = _why_this_slice(draft, kind)
    serving = tree["serving"]
    tree["serving"] = {key: serving[key] for key in (*_ORDER, *serving) if key in serving}
    return tree


def _why_this_slice(draft: ProfileDraft, kind: AcceleratorType) -> str:
    is_alike = kind.devices == _devices(draft) > 1
    why = "it has as many chips as the source splits the model over" if is_alike else "this is the smallest that fits"
    return why if draft.kind is not None else f"the source names no TPU slice; {why}"


def _keep_caches(serving: dict[str, Any], comments: dict[Path, str]) -> None:
    """Add the default volumes, which a profile that writes volumes does not have: caches outlive the container."""
    volumes = serving.get("volumes")
    if volumes is None:
        return
    targets = [target.rstrip("/") for target in volumes.values()]
    env = serving.get("env", {})
    own = {HUB: "HF_HOME" in env or "HF_HUB_CACHE" in env, GRAPHS: "xla_cache_path" in serving}
    for (host, container), is_elsewhere in own.items():
        if not is_elsewhere and not any(container.startswith(target) for target in targets):
            volumes[host] = container
            comments["serving", "volumes", host] = "tpudeploy's own cache, on the machine's disk"


def _default_placement(placement: dict[str, Any], comments: dict[Path, str]) -> None:
    if "provisioning" not in placement:
        placement["provisioning"] = ["flex-start", "spot"]
        comments["placement", "provisioning"] = "the cheaper first; flex-start is not preempted while it runs"
    if "flex-start" in placement["provisioning"] and "max_run_duration" not in placement:
        placement["max_run_duration"] = "12h"
        comments["placement", "max_run_duration"] = "then Google deletes the machine"
    placement.setdefault("valid_until", "2h")
    comments.setdefault(("placement", "valid_until"), "a request that waits for longer lapses")


def _drop_split(settings: dict[Path, Any], kind: AcceleratorType, notes: list[Note]) -> None:
    """Leave the split to the slice: the source's is of other chips."""
    words = [f"`--{path[-1].replace('_', '-')} {settings.pop(path)}`" for path in _SPLITS if path in settings]
    if kind.hosts > 1:
        settings["serving", "tensor_parallel_size"] = kind.devices_per_host
        settings["serving", "args", _STAGES] = kind.hosts
    noun = kind.device_noun if kind.devices == 1 else f"{kind.device_noun}s"
    notes.append(
        Note(subject=", ".join(words), reason=f"all {kind.devices} {noun} of {kind.name} share the model instead")
    )


def _set_at(tree: dict[str, Any], path: Path, value: Any) -> None:
    for part in path[:-1]:
        tree = tree.setdefault(part, {})
    tree[path[-1]] = value


def _valid(tree: dict[str, Any], notes: list[Note], draft: ProfileDraft) -> Deployment:
    """Return the deployment of a tree, from which what the format refuses is removed, each with a note."""
    for hidden in draft.hidden:
        _remove_value(tree, hidden, notes)
    for _ in range(_ROUNDS):
        reader = Remembered(profile_text(tree, {}, head=(), notes=()), beside="", name=_FILE)
        try:
            profile = parse(_FILE, reader, environment={})
        except ProfileInvalid as invalid:
            for problem in errors_in(invalid.diagnostics):
                _remove(tree, problem, notes, draft)
        else:
            return resolve_without_script(profile, project="any", config_json=None)
    raise Stop("The source has more settings that are refused than can be left out")


def _remove(tree: dict[str, Any], problem: Diagnostic, notes: list[Note], draft: ProfileDraft) -> None:
    """Remove the setting that a problem is about. Raise Stop for one without which there is no profile."""
    path = _located(tree, problem.path)
    reason = f"{problem.message}{f'; {problem.hint}' if problem.hint else ''}"
    if path == ("serving", "image") and tree["serving"]["image"] != DEFAULT_IMAGE:
        notes.append(Note(subject=f"`{tree['serving']['image']}`", reason=f"{reason}. {DEFAULT_IMAGE} is written"))
        tree["serving"]["image"] = DEFAULT_IMAGE
        return
    if not path or path in _PROTECTED or path in _SECTIONS:
        word = draft.model if path == ("model", "id") else None
        start, end = (0, 0) if word is None else (word.start, word.end)
        at = draft.model_at if path == ("model", "id") else None
        raise Stop(problem.message, start, end, hint=problem.hint, at=at)
    target = tree
    for part in path[:-1]:
        target = target[part]
    if path[-1] in target:
        target.pop(path[-1])
        notes.append(Note(subject=_subject(path), reason=reason))
    if not target and path[:-1] not in _SECTIONS:
        _remove_empty(tree, path[:-1])


def _remove_empty(tree: dict[str, Any], path: Path) -> None:
    target = tree
    for part in path[:-1]:
        target = target[part]
    target.pop(path[-1], None)


def _subject(path: Path) -> str:
    if path[:2] == ("serving", "args") != path:
        return f"`--{path[2].replace('_', '-')}{''.join(f'.{part}' for part in path[3:])}`"
    return path[-1] if path[:2] == ("serving", "env") else f"`{'.'.join(path)}`"


def _located(tree: Any, dotted: str) -> Path:
    """Return the longest path of the tree that a dotted path begins with: a key may have dots itself."""
    if not isinstance(tree, dict) or not dotted:
        return ()
    for key in sorted(tree, key=len, reverse=True):
        if dotted == key or dotted.startswith(f"{key}."):
            below = tree[key]
            is_free = isinstance(below, dict) and dotted != key
            return (key, *_located(below, dotted[len(key) + 1 :])) if is_free else (key,)
    return ()


def _remove_value(tree: dict[str, Any], hidden: str, notes: list[Note], path: Path = ()) -> None:
    """Remove every setting that has the value of a secret in it."""
    for key, value in list(tree.items()):
        own = (*path, key)
        if own in _PROTECTED or own == ("secrets",):
            continue
        if isinstance(value, dict) and own[:2] != ("serving", "args"):
            _remove_value(value, hidden, notes, own)
        elif hidden in repr(value) or hidden in key:
            tree.pop(key)
            visible = own if hidden not in key else path
            notes.append(Note(subject=_subject(visible or own[:1]), reason="it has the value of a secret in it"))


def _mended(draft: ProfileDraft, model: str, attempt: _Attempt) -> _Attempt:
    """Return the attempt with the mildest change of its settings by which it starts on the same slice."""
    kind, first = attempt.deployment.accelerator, attempt.errors[0]
    for changes in _changes(draft, attempt):
        mended = copy.copy(draft)
        mended.settings = {path: value for path, value in {**draft.settings, **changes}.items() if value is not None}
        better = _attempt(mended, model, kind)
        if not better.errors:
            change_text = ", ".join(
                f"{path[-1]} is left out" if value is None else f"{path[-1]}: {value} is written"
                for path, value in changes.items()
            )
            subject = _subject(next(iter(changes)))
            reason = f"{first.message.removesuffix('.')}; {change_text}"
            return _with_note(better, Note(subject=subject, reason=reason, fate=Fate.CHANGED))
    return attempt


def _changes(draft: ProfileDraft, attempt: _Attempt) -> Iterator[dict[Path, Any]]:
    """Yield changes to try, the mildest first. None stands for a setting that is left out.

    Of the slice that the source names, the engine's memory may be shared otherwise; for another one, a larger slice
    comes first.
    """
    if _STEPS not in draft.settings:
        yield {_STEPS: STEP}
    if _IMPLEMENTATION not in draft.settings:
        yield {_IMPLEMENTATION: "vllm"}  # vLLM's own class loads what tpu-inference's class of the model does not
    budget = attempt.deployment.budget
    if attempt.deployment.accelerator is draft.kind and isinstance(budget, HbmBudget):
        for remedy in remedies(budget, allow_copies=False):
            if not any(key.startswith(("tpu.", "args.")) for key in remedy.settings):
                yield {("serving", key): value for key, value in remedy.settings.items()}
    for problem in attempt.errors:
        path = _located(attempt.tree, problem.path)
        if path in draft.settings:
            yield {path: None}
