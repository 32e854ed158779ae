"""The JSON API of Cloud Storage, as far as it is served: from a path and a query to a reply."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from urllib.parse import parse_qsl, unquote, urlsplit

from tpudeploy.emulator import discovery, texts
from tpudeploy.emulator.faults import FAULTS
from tpudeploy.emulator.server import Reply
from tpudeploy.emulator.storage import upload
from tpudeploy.emulator.storage.answers import Refused, refusal
from tpudeploy.emulator.storage.objects import Conditions, Objects, Stored
from tpudeploy.emulator.trouble import Trouble

# What is said of an object where Cloud TPU speaks of a slice; as published in the field.
_TEXTS: Mapping[str, str] = {
    "iam-denied": "you@example.com does not have {permission} access to the Google Cloud Storage object."
    " Permission '{permission}' denied on resource (or it may not exist).",
    "rate-limit": "The object {object} exceeded the rate limit for object mutation operations (create, update, and"
    " delete). Please reduce your request rate. See https://cloud.google.com/storage/docs/gcs429.",
}
_PERMISSIONS: Mapping[str, str] = {"storage.objects.insert": "storage.objects.create"}
_PATH = re.compile(
    r"/(?:(?P<media>upload|download)/)?storage/v1/b/(?P<bucket>[^/]+)(?P<objects>/o(?:/(?P<object>[^/]+))?)?"
)
_MOST = 1000  # items a page


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request, taken apart. `method` is its name in the discovery document, "" where we serve none such."""

    method: str
    bucket: str
    name: str
    query: Mapping[str, str]
    body: bytes

    @property
    def wants_media(self) -> bool:
        return self.query.get("alt") == "media"

    def conditions(self) -> Conditions:
        return Conditions(match=self.number("ifGenerationMatch"), other_than=self.number("ifGenerationNotMatch"))

    def number(self, key: str) -> int | None:
        written = self.query.get(key, "")
        if written and not written.removeprefix("-").isdecimal():
            raise Refused(400, f"Invalid long value: '{written}'.")  # UNVERIFIED
        return int(written) if written else None


def asked(method: str, target: str, body: bytes) -> Asked | None:
    """None for a path that is not Cloud Storage's."""
    where = urlsplit(target)
    path = _PATH.fullmatch(where.path)
    if path is None:
        return None
    kind = "object" if path["object"] else "objects" if path["objects"] else "bucket"
    query = dict(parse_qsl(where.query, keep_blank_values=True))
    return Asked(
        method=SERVED.get((method, path["media"] or "", kind), ""),
        bucket=unquote(path["bucket"]),
        name=upload.named(query, body) if path["media"] == "upload" else unquote(path["object"] or ""),
        query=query,
        body=body,
    )


def answer(objects: Objects, ask: Asked) -> Reply:
    """Carry it out, or say why not."""
    try:
        return _done(objects, ask)
    except Refused as refused:
        return refusal(refused.http, refused.message, media=ask.wants_media)


def played(objects: Objects, ask: Asked, troubles: Mapping[str, Trouble]) -> Reply:
    """What the scenario says instead, or what is done; a download may arrive as it was not stored."""
    no = scripted(ask, troubles)
    reply = answer(objects, ask) if no is None else no
    if "garbled" in troubles and ask.wants_media and isinstance(reply.body, bytes):
        return replace(reply, body=bytes(byte ^ 1 for byte in reply.body))
    return reply


def scripted(ask: Asked, troubles: Mapping[str, Trouble]) -> Reply | None:
    """The refusal that the scenario gives, in Cloud Storage's words where it has its own; None for none."""
    name = next((name for name in troubles if FAULTS[name].kind == "refusal"), "")
    if not name:
        return None
    told = troubles[name].told()
    facts = {"object": f"{ask.bucket}/{ask.name}", "permission": _PERMISSIONS.get(ask.method, ask.method)}
    own = _TEXTS.get(name, "").format_map(facts)
    status = texts.status(name, facts, message=told["message"] or own, code=told.get("code"))
    return refusal(status.http, status.message, media=ask.wants_media)


def _done(objects: Objects, ask: Asked) -> Reply:
    if not ask.method:
        raise Refused(501, "The emulator does not serve this method of Cloud Storage.")
    deed, heeded = _DEEDS[ask.method]
    _check_query(ask, {*heeded, *_EVERYWHERE})
    return deed(objects, ask)


def _check_query(ask: Asked, heeded: AbstractSet[str]) -> None:
    """A condition that nobody reads would be one that always holds: what is not served is refused."""
    known = discovery.parameters("storage.v1", *ask.method.split(".")[1:])
    for key in ask.query:
        if key not in known:
            raise Refused(400, f"Unknown parameter `{key}`.")  # UNVERIFIED: the service may ignore it
        if key not in heeded:
            raise Refused(501, f"The emulator does not serve `{key}` of {ask.method}.")


def _bucket(objects: Objects, ask: Asked) -> Reply:
    objects.must_know(ask.bucket)
    return Reply(http=200, body={"kind": "storage#bucket", "id": ask.bucket, "name": ask.bucket, "location": "US"})


def _list(objects: Objects, ask: Asked) -> Reply:
    """Pages go on after a name, not at a position: what is written meanwhile moves nothing."""
    size = min(ask.number("maxResults") or _MOST, _MOST)
    after = _place(ask.query.get("pageToken", ""))
    versions = ask.query.get("versions", "").lower() == "true"  # Google's own client sends `True`
    rest = [o for o in objects.under(ask.bucket, ask.query.get("prefix", ""), versions=versions) if _at(o) > after]
    body: dict[str, object] = {"kind": "storage#objects", "items": [o.resource() for o in rest[:size]]}
    if len(rest) > size:
        name, generation = _at(rest[size - 1])
        body["nextPageToken"] = urlsafe_b64encode(f"{generation} {name}".encode()).decode()
    return Reply(http=200, body=body)


def _at(found: Stored) -> tuple[str, int]:
    return (found.name, found.generation)


def _place(token: str) -> tuple[str, int]:
    """The name and generation that a page ended with."""
    if not token:
        return ("", 0)
    try:
        generation, _, name = urlsafe_b64decode(token).decode().partition(" ")
        return (name, int(generation))
    except ValueError:
        raise Refused(400, "Invalid argument.") from None  # UNVERIFIED


def _get(objects: Objects, ask: Asked) -> Reply:
    found = objects.get(ask.bucket, ask.name, ask.conditions(), generation=ask.number("generation"))
    return _media(found) if ask.wants_media else Reply(http=200, body=found.resource())


def _insert(objects: Objects, ask: Asked) -> Reply:
    given = upload.read(ask.query, ask.body)
    made = objects.put(
        ask.bucket,
        given.name,
        ask.conditions(),
        content=given.content,
        content_type=given.content_type,
        metadata=given.metadata,
    )
    return Reply(http=200, body=made.resource())


def _delete(objects: Objects, ask: Asked) -> Reply:
    objects.delete(ask.bucket, ask.name, ask.conditions())
    return Reply(http=204, body="")


def _media(found: Stored) -> Reply:
    headers = {
        "X-Goog-Generation": str(found.generation),
        "X-Goog-Metageneration": "1",
        "X-Goog-Hash": f"crc32c={found.crc32c}",
        **{f"X-Goog-Meta-{key}": value for key, value in found.metadata.items()},
    }
    return Reply(http=200, body=found.content, content_type=found.content_type, headers=headers)


# (HTTP method, kind of path, what it names) -> the method's name.
SERVED: Mapping[tuple[str, str, str], str] = {
    ("GET", "", "bucket"): "storage.buckets.get",
    ("GET", "", "objects"): "storage.objects.list",
    ("GET", "", "object"): "storage.objects.get",
    ("GET", "download", "object"): "storage.objects.get",
    ("POST", "upload", "objects"): "storage.objects.insert",
    ("DELETE", "", "object"): "storage.objects.delete",
}
# What a method does, and which of its parameters it heeds.
_CONDITIONS = ("ifGenerationMatch", "ifGenerationNotMatch")
_DEEDS: Mapping[str, tuple[Callable[[Objects, Asked], Reply], tuple[str, ...]]] = {
    "storage.buckets.get": (_bucket, ()),
    "storage.objects.list": (_list, ("prefix", "maxResults", "pageToken", "versions")),
    "storage.objects.get": (_get, ("generation", *_CONDITIONS)),
    "storage.objects.insert": (_insert, ("name", *_CONDITIONS)),
    "storage.objects.delete": (_delete, _CONDITIONS),
}
# These change nothing that we would have to emulate: the whole of every resource is told.
_EVERYWHERE = ("alt", "fields", "prettyPrint", "projection", "uploadType")
