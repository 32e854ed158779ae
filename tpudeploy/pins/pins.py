"""What of a profile can be pinned, to what it is, and what is to be said where it is not.

A pin stands in the attributes beside the name that was written: a plan shows both, and a changed pin costs a restart.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from tpudeploy.domain.deployment import Deployment, Json
from tpudeploy.domain.diagnostics import Diagnostic, Explanation, Location, Severity
from tpudeploy.domain.facts import Unknown
from tpudeploy.domain.pins import FILE, Kind, Name, Pin, Pins, is_emulated

if TYPE_CHECKING:
    from tpudeploy.config.schema import ProfileSpec

DIGEST = "serving.image_digest"
COMMIT = "model.commit"
# Each pin's attribute, with those that were written and that it goes along with.
FOLLOWS: Mapping[str, tuple[str, ...]] = {DIGEST: ("serving.image",), COMMIT: ("model.revision", "model.id")}
UNPINNED = "TPU3030"
EXPLANATIONS: Mapping[str, Explanation] = {
    UNPINNED: Explanation(
        "A tag or a revision could not be pinned",
        "`apply` looks up once which image a tag names and which commit a model's revision names, and keeps both "
        f"in {FILE}, so that a reboot, a second replica or a later apply serves the same. Here the registry or the "
        "hub did not answer, or it shows the name only to its members. The name is used as it is written and may "
        "come to mean something else. Write the digest or the commit yourself, or ask again.",
        'serving: {image: "host/path@sha256:…"}\nmodel: {revision: COMMIT}',
    ),
}
_COMMIT = re.compile(r"[0-9a-f]{40}")
_ELSEWHERE = ("HF_ENDPOINT", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "VLLM_USE_MODELSCOPE")


def image_of(spec: ProfileSpec) -> Name | None:
    """The image, unless its digest is written."""
    return None if "@" in spec.serving.image else Name(kind=Kind.IMAGE, text=spec.serving.image)


def model_of(spec: ProfileSpec) -> Name | None:
    """The model, unless its commit is written or it comes from elsewhere than the hub: a bucket, a folder, a mirror."""
    model = spec.model
    is_elsewhere = model.id.startswith(("gs://", "/")) or model.mirror is not None
    if is_elsewhere or any(name in spec.serving.env for name in _ELSEWHERE):
        return None
    if model.revision is None:
        return Name(kind=Kind.MODEL, text=model.id)
    return None if _COMMIT.fullmatch(model.revision) else Name(kind=Kind.MODEL, text=f"{model.id}@{model.revision}")


def names(spec: ProfileSpec) -> tuple[Name, ...]:
    """All of a profile that can be pinned."""
    return tuple(name for name in (image_of(spec), model_of(spec)) if name is not None)


def origins(spec: ProfileSpec, held: Pins) -> Iterator[tuple[str, Location]]:
    """Attribute of each pin, and its line in the lock file."""
    for path, name in ((DIGEST, image_of(spec)), (COMMIT, model_of(spec))):
        at = None if name is None else held.lines.get(name)
        if at is not None:
            yield path, at


def at_digest(image: str, digest: str) -> str:
    """The word for docker. Its documented form has a tag or a digest: what it does with both is not promised."""
    head, colon, tag = image.rpartition(":")
    return f"{head if colon and '/' not in tag else image}@{digest}"


def written(attributes: Mapping[str, Json]) -> Iterator[tuple[Name, str | None]]:
    """The image and the model of a deployment, or of a slice, each with what it was pinned to, if it was."""
    image, digest = attributes.get("serving.image"), attributes.get(DIGEST)
    if isinstance(image, str):
        yield Name(kind=Kind.IMAGE, text=image), None if digest is None else str(digest)
    model, commit = attributes.get("model.id"), attributes.get(COMMIT)
    if isinstance(model, str):
        revision = attributes.get("model.revision")
        text = model if revision is None else f"{model}@{revision}"
        yield Name(kind=Kind.MODEL, text=text), None if commit is None else str(commit)


def in_attributes(attributes: Mapping[str, Json]) -> Iterator[Pin]:
    """The pins among them."""
    return (Pin(name=name, to=to) for name, to in written(attributes) if to is not None)


def effective(attributes: Mapping[str, Json]) -> Mapping[str, Json]:
    """The same with each pin in the place of the name that was written: what docker and vLLM get."""
    known = {pin.name.kind: pin.to for pin in in_attributes(attributes)}
    if not known:
        return attributes
    plain = unpinned(attributes)
    if Kind.IMAGE in known:
        plain["serving.image"] = at_digest(str(plain["serving.image"]), known[Kind.IMAGE])
    if Kind.MODEL in known:
        plain["model.revision"] = known[Kind.MODEL]
    return plain


def unpinned(attributes: Mapping[str, Json]) -> dict[str, Json]:
    """The same without its pins: what a version that knew none would say."""
    return {path: value for path, value in attributes.items() if path not in FOLLOWS}


def with_pins(held: Pins, found: Iterable[Pin]) -> Pins:
    """`held` with these in it, in the place of those of the same names. `lines` is as it was."""
    images, models = dict(held.images), dict(held.models)
    for pin in found:
        (images if pin.name.kind is Kind.IMAGE else models)[pin.name.text] = pin.to
    return replace(held, images=images, models=models)


def real(held: Pins) -> Pins:
    """Without what came from the emulator."""
    images = {name: to for name, to in held.images.items() if not is_emulated(to)}
    models = {name: to for name, to in held.models.items() if not is_emulated(to)}
    return replace(held, images=images, models=models)


def new(held: Pins, found: Iterable[Pin]) -> tuple[Pin, ...]:
    """Those whose names are held to nothing yet, each name once."""
    return tuple({pin.name: pin for pin in found if held.target_of(pin.name) is None}.values())


def unused(held: Pins, used: Iterable[Name]) -> tuple[Name, ...]:
    """Names that are held and that none of `used` is: of profiles that are gone, or that were not named."""
    known = set(used)
    every = [Name(kind=Kind.IMAGE, text=text) for text in held.images]
    every += [Name(kind=Kind.MODEL, text=text) for text in held.models]
    return tuple(name for name in every if name not in known)


def not_pinned(unknown: Mapping[Name, Unknown], deployments: Iterable[Deployment]) -> Iterator[Diagnostic]:
    """A warning for each name, where it is written first."""
    left = dict(unknown)
    for deployment in deployments if left else ():
        for name, _ in written(deployment.attributes):
            if name in left:
                yield _not_pinned(name, left.pop(name), deployment)


def _not_pinned(name: Name, why: Unknown, of: Deployment) -> Diagnostic:
    path = "serving.image" if name.kind is Kind.IMAGE else "model.id"
    meanwhile = "its tag" if name.kind is Kind.IMAGE else "its revision"
    return Diagnostic(
        code=UNPINNED,
        message=f"{name.text} is not pinned: {why.because}",
        severity=Severity.WARNING,
        path=path,
        location=of.origin(path),
        hint=why.hint or f"What {meanwhile} means may change until the next apply. Write it in full to be sure.",
    )
