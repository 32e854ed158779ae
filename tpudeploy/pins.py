"""Pins of a profile: which names can be pinned, what they are pinned to, and the warning for those that are not.

The attributes have a pin beside the name that was written: a plan shows both, and a changed pin costs a restart.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache

from tpudeploy import catalog
from tpudeploy.catalog.engines import identify
from tpudeploy.config.profile import Profile
from tpudeploy.config.schema import ProfileSpec
from tpudeploy.domain.accelerator import DEFAULT_BACKEND
from tpudeploy.domain.deployment import AUTO, MACHINE_IMAGE, Deployment, Json
from tpudeploy.domain.diagnostics import CodePage, Diagnostic, Location, Severity
from tpudeploy.domain.engine import Engine
from tpudeploy.domain.facts import Unknown
from tpudeploy.domain.pins import FILE, Name, Pin, PinKind, Pins, is_emulated

DIGEST = "serving.image_digest"
COMMIT = "model.commit"
# Each pin's attribute, with those that were written and that it goes along with.
FOLLOWS: Mapping[str, tuple[str, ...]] = {
    DIGEST: ("serving.image",),
    COMMIT: ("model.revision", "model.id"),
    MACHINE_IMAGE: ("tpu.runtime_version", "tpu.type"),
}
UNPINNED = "TPU3030"
EXPLANATIONS: Mapping[str, CodePage] = {
    UNPINNED: CodePage(
        "A tag or a revision could not be pinned",
        f"`apply` pins the digest of a tag and the commit of a model revision in {FILE}, so a reboot, a second replica "
        "or a later apply serves the same. This time the registry or the hub didn't answer, or the name isn't public. "
        "tpudeploy uses the name as written; it may later mean something else. Set the digest or commit yourself, or "
        "run the command again.",
        'serving: {image: "host/path@sha256:…"}\nmodel: {revision: COMMIT}',
    ),
}
# The key that each kind of name is written at, and what it means until it is pinned.
_WRITTEN: Mapping[PinKind, tuple[str, str]] = {
    PinKind.IMAGE: ("serving.image", "its tag"),
    PinKind.MODEL: ("model.id", "its revision"),
    PinKind.MACHINE_IMAGE: ("placement.backend", "its family"),
}
_COMMIT = re.compile(r"[0-9a-f]{40}")
_ELSEWHERE = ("HF_ENDPOINT", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "VLLM_USE_MODELSCOPE")


def image_of(spec: ProfileSpec) -> Name | None:
    """Return the image, or None if its digest is written."""
    return _image(spec.serving.image)


@lru_cache(maxsize=256)  # most profiles of a fleet name the same image and model
def _image(image: str) -> Name | None:
    return None if "@" in image else Name(kind=PinKind.IMAGE, text=image)


def digest_of(image: str, pins: Pins) -> str | None:
    """Return the digest of an image: the one that is written, else the one that its name is pinned to, or None."""
    return image.partition("@")[2] or pins.images.get(image)


def registry_host(image: str) -> str:
    """Return the registry that an image's name begins with, or "" for Docker Hub."""
    first, slash, _ = image.partition("/")
    return first if slash and set(first) & set(".:") and first != "docker.io" else ""


def written_digests(profiles: Iterable[Profile]) -> Mapping[str, str]:
    """Return the images that profiles name by their digest, by it."""
    images = (profile.serving.image for profile in profiles)
    return {digest: image for image in images if (digest := image.partition("@")[2])}


def digest_in(attributes: Mapping[str, Json]) -> str:
    """Return the digest of the image in the attributes of a deployment or a slice, pinned or written, or ""."""
    image = str(attributes.get("serving.image", ""))
    return str(attributes.get(DIGEST) or image.partition("@")[2])


def engine_of(image: str, pins: Pins) -> Engine:
    """Return the engine of an image, by what the lock file knows of it besides its name and tag."""
    return identify(image, digest_of(image, pins), locked=pins.images, labels=pins.labels, boots=pins.releases)


def model_of(spec: ProfileSpec) -> Name | None:
    """Return the model, or None if its commit is written or it is not from the hub (a bucket, a folder, a mirror)."""
    model = spec.model
    is_elsewhere = model.id.startswith(("gs://", "/")) or model.mirror is not None
    if is_elsewhere or any(name in spec.serving.env for name in _ELSEWHERE):
        return None
    return _model(model.id, model.revision)


@lru_cache(maxsize=256)
def _model(model_id: str, revision: str | None) -> Name | None:
    if revision is None:
        return Name(kind=PinKind.MODEL, text=model_id)
    return None if _COMMIT.fullmatch(revision) else Name(kind=PinKind.MODEL, text=f"{model_id}@{revision}")


def machine_image_of(spec: ProfileSpec) -> Name | None:
    """Return the family of the machine's image, or None for a profile whose machines boot none."""
    return _machine_image(spec.placement.backend, spec.tpu.type, spec.tpu.runtime_version)


@lru_cache(maxsize=256)
def _machine_image(backend: str, slice_type: str, family: str | None) -> Name | None:
    kind = catalog.accelerator_type(slice_type)
    if kind is None:
        return None
    for each in kind.backends:
        if backend in {each, AUTO} and each.boots_image:
            return Name(kind=PinKind.MACHINE_IMAGE, text=family or catalog.generation(kind.generation).runtime_of(each))
    return None


def names(spec: ProfileSpec) -> tuple[Name, ...]:
    """Return the names in a profile that can be pinned."""
    return tuple(name for name in (image_of(spec), model_of(spec), machine_image_of(spec)) if name is not None)


def origins(spec: ProfileSpec, pins: Pins) -> Iterator[tuple[str, Location]]:
    """Yield the attribute of each pin, and its line in the lock file."""
    if not pins.lines:
        return
    pins_of_names = ((DIGEST, image_of(spec)), (COMMIT, model_of(spec)), (MACHINE_IMAGE, machine_image_of(spec)))
    for path, name in pins_of_names:
        at = None if name is None else pins.lines.get(name)
        if at is not None:
            yield path, at


def at_digest(image: str, digest: str) -> str:
    """Return the image for docker, which documents a tag or a digest and not both (decision 35)."""
    head, colon, tag = image.rpartition(":")
    return f"{head if colon and '/' not in tag else image}@{digest}"


def names_with_pins(attributes: Mapping[str, Json]) -> Iterator[tuple[Name, str | None]]:
    """Yield the names of a deployment or a slice that can be pinned, each with its pin or None."""
    image, digest = attributes.get("serving.image"), attributes.get(DIGEST)
    if isinstance(image, str):
        yield Name(kind=PinKind.IMAGE, text=image), None if digest is None else str(digest)
    model, commit = attributes.get("model.id"), attributes.get(COMMIT)
    if isinstance(model, str):
        revision = attributes.get("model.revision")
        text = model if revision is None else f"{model}@{revision}"
        yield Name(kind=PinKind.MODEL, text=text), None if commit is None else str(commit)
    # Earlier states name no API, because there was one.
    backend = str(attributes.get("placement.backend", DEFAULT_BACKEND))
    family, machine_image = attributes.get("tpu.runtime_version"), attributes.get(MACHINE_IMAGE)
    name = _machine_image(backend, str(attributes.get("tpu.type", "")), None if family is None else str(family))
    if name is not None:
        yield name, None if machine_image is None else str(machine_image)


def in_attributes(attributes: Mapping[str, Json]) -> Iterator[Pin]:
    """Yield the pins in the attributes of a deployment or a slice."""
    return (Pin(name=name, to=to) for name, to in names_with_pins(attributes) if to is not None)


def effective(attributes: Mapping[str, Json]) -> Mapping[str, Json]:
    """Return the attributes with the image and the model replaced by their pins: what docker and vLLM get."""
    pins_by_kind = {pin.name.kind: pin.to for pin in in_attributes(attributes)}
    if not pins_by_kind:
        return attributes
    plain = unpinned(attributes)
    if PinKind.IMAGE in pins_by_kind:
        plain["serving.image"] = at_digest(str(plain["serving.image"]), pins_by_kind[PinKind.IMAGE])
    if PinKind.MODEL in pins_by_kind:
        plain["model.revision"] = pins_by_kind[PinKind.MODEL]
    return plain


def unpinned(attributes: Mapping[str, Json]) -> dict[str, Json]:
    """Return the attributes without pins, as versions before there were pins wrote them."""
    return {path: value for path, value in attributes.items() if path not in FOLLOWS}


def with_pins(pins: Pins, new_pins: Iterable[Pin]) -> Pins:
    """Return `pins` with `new_pins`, which replace those of the same names. `lines` is unchanged."""
    sections = {kind: dict(pins.section(kind)) for kind in PinKind}
    for pin in new_pins:
        sections[pin.name.kind][pin.name.text] = pin.to
    return _with_sections(pins, sections)


def _with_sections(pins: Pins, sections: Mapping[PinKind, Mapping[str, str]]) -> Pins:
    return replace(
        pins,
        images=sections[PinKind.IMAGE],
        models=sections[PinKind.MODEL],
        machine_images=sections[PinKind.MACHINE_IMAGE],
    )


def real(pins: Pins) -> Pins:
    """Return the pins without those of the emulator."""
    releases, labels = (
        {digest: text for digest, text in section.items() if not is_emulated(digest)}
        for section in (pins.releases, pins.labels)
    )
    checkpoints = {commit: checkpoint for commit, checkpoint in pins.checkpoints.items() if not is_emulated(commit)}
    return _with_sections(
        replace(pins, releases=releases, labels=labels, checkpoints=checkpoints),
        {kind: {name: to for name, to in pins.section(kind).items() if not is_emulated(to)} for kind in PinKind},
    )


def new(pins: Pins, candidates: Iterable[Pin]) -> tuple[Pin, ...]:
    """Return the candidates whose names have no pin yet, each name once."""
    return tuple({pin.name: pin for pin in candidates if pins.target_of(pin.name) is None}.values())


def unused(pins: Pins, used: Iterable[Name]) -> tuple[Name, ...]:
    """Return the pinned names that are not in `used`: of deleted profiles, or of profiles that were not named."""
    used_names = set(used)
    every = [Name(kind=kind, text=text) for kind in PinKind for text in pins.section(kind)]
    return tuple(name for name in every if name not in used_names)


def not_pinned(unknown: Mapping[Name, Unknown], deployments: Iterable[Deployment]) -> Iterator[Diagnostic]:
    """Yield a warning for each name without a pin, at the first place that has it."""
    unreported = dict(unknown)
    for deployment in deployments if unreported else ():
        for name, _ in names_with_pins(deployment.attributes):
            if name in unreported:
                yield _not_pinned(name, unreported.pop(name), deployment)


def _not_pinned(name: Name, why: Unknown, deployment: Deployment) -> Diagnostic:
    path, meanwhile = _WRITTEN[name.kind]
    return Diagnostic(
        code=UNPINNED,
        message=f"{name.text} is not pinned: {why.because}",
        severity=Severity.WARNING,
        path=path,
        location=deployment.origin(path),
        hint=why.hint or f"What {meanwhile} means may change until the next apply. Write it in full to be sure.",
    )
