"""The JSON API of Cloud Storage, as far as it is served: from a path and a query to a reply.

Its errors have an older shape than Cloud TPU's, and are plain text where media was requested.
"""

from __future__ import annotations

import json
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from tpudeploy.emulator import discovery, texts, wire
from tpudeploy.emulator.faults import FAULTS
from tpudeploy.emulator.http_server import Reply
from tpudeploy.emulator.storage_objects import Conditions, StorageError, StoredObject, StoredObjects, crc32c_base64
from tpudeploy.emulator.trouble import Trouble

# The service's word for each status. Those of 500 and above, and 501's, are UNVERIFIED.
_REASONS: Mapping[int, str] = {
    400: "invalid",
    401: "authError",
    403: "forbidden",
    404: "notFound",
    412: "conditionNotMet",
    429: "rateLimitExceeded",
    500: "internalError",
    501: "notImplemented",
    503: "backendError",
}
_NOT_MODIFIED = 304
# The texts about an object where Cloud TPU's are about a slice; as published in the field.
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
_MAX_PAGE = 1000  # items
_MAX_METADATA = 8 << 10  # bytes of custom metadata that an object may have


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageRequest:
    """One request. `method` is its name in the discovery document, "" where that is not served."""

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
        text = self.query.get(key, "")
        if text and not text.removeprefix("-").isdecimal():
            raise StorageError(400, f"Invalid long value: '{text}'.")  # UNVERIFIED
        return int(text) if text else None


def parse_request(method: str, target: str, body: bytes) -> StorageRequest | None:
    """Return the request of an HTTP call; None for a path that is not Cloud Storage's."""
    url = urlsplit(target)
    path = _PATH.fullmatch(url.path)
    if path is None:
        return None
    kind = next((kind for kind in ("object", "objects") if path[kind]), "bucket")
    query = dict(parse_qsl(url.query, keep_blank_values=True))
    name = unquote(path["object"] or "")
    if path["media"] == "upload":
        try:
            name = _read_upload(query, body).name
        except StorageError:
            name = ""  # trouble that strikes by name does not strike an upload without one
    return StorageRequest(
        method=_METHOD_NAMES.get((method, path["media"] or "", kind), ""),
        bucket=unquote(path["bucket"]),
        name=name,
        query=query,
        body=body,
    )


def answer(objects: StoredObjects, request: StorageRequest, troubles: Mapping[str, Trouble]) -> Reply:
    """Return what the scenario says instead, or what the method does; a download may arrive garbled."""
    reply = _scripted_refusal(request, troubles)
    if reply is not None:
        return reply
    try:
        reply = _carry_out(objects, request)
    except StorageError as refused:
        return _error(refused.http, refused.message, request)
    if "garbled" in troubles and request.wants_media and isinstance(reply.body, bytes):
        return replace(reply, body=bytes(byte ^ 1 for byte in reply.body))
    return reply


def _scripted_refusal(request: StorageRequest, troubles: Mapping[str, Trouble]) -> Reply | None:
    """Return the refusal that the scenario gives, in Cloud Storage's words where it has its own; None for none."""
    name = next((name for name in troubles if FAULTS[name].kind == "refusal"), "")
    if not name:
        return None
    settings = troubles[name].settings
    permission = _PERMISSIONS.get(request.method, request.method)
    facts = {"object": f"{request.bucket}/{request.name}", "permission": permission}
    message = settings["message"] or _TEXTS.get(name, "").format_map(facts)
    status = texts.status(name, facts, message=message, code=settings.get("code"))
    return _error(status.http, status.message, request)


def _error(http: int, message: str, request: StorageRequest) -> Reply:
    if http == _NOT_MODIFIED:
        return Reply(http=http, body="")
    if request.wants_media:
        return Reply(http=http, body=message, content_type="text/html; charset=UTF-8")
    row: dict[str, Any] = {"message": message, "domain": "global", "reason": _REASONS.get(http, "invalid")}
    return Reply(http=http, body={"error": {"code": http, "message": message, "errors": [row]}})


def _carry_out(objects: StoredObjects, request: StorageRequest) -> Reply:
    """Answer a method of the table. A condition that is ignored would always hold: what is not served is refused."""
    if not request.method:
        raise StorageError(501, "The emulator does not serve this method of Cloud Storage.")
    method, served = METHODS[request.method]
    existing = discovery.parameters("storage.v1", *request.method.split(".")[1:])
    for key in request.query:
        if key not in existing:
            raise StorageError(400, f"Unknown parameter `{key}`.")  # UNVERIFIED: the service may ignore it
        if key not in served and key not in _WITHOUT_EFFECT:
            raise StorageError(501, f"The emulator does not serve `{key}` of {request.method}.")
    return method(objects, request)


def _get_bucket(objects: StoredObjects, request: StorageRequest) -> Reply:
    name = request.bucket
    objects.check_bucket(name)
    return Reply(http=200, body={"kind": "storage#bucket", "id": name, "name": name, "location": "US"})


def _list_objects(objects: StoredObjects, request: StorageRequest) -> Reply:
    """Return a page. The next continues after a name, not at a position: a write in between moves nothing."""
    size = min(request.number("maxResults") or _MAX_PAGE, _MAX_PAGE)
    after = _read_page_token(request.query.get("pageToken", ""))
    versions = request.query.get("versions", "").lower() == "true"  # Google's own client sends `True`
    listed = objects.under(request.bucket, request.query.get("prefix", ""), versions=versions)
    rest = [stored for stored in listed if (stored.name, stored.generation) > after]
    body: dict[str, object] = {"kind": "storage#objects", "items": [stored.resource() for stored in rest[:size]]}
    if len(rest) > size:
        last = rest[size - 1]
        body["nextPageToken"] = urlsafe_b64encode(f"{last.generation} {last.name}".encode()).decode()
    return Reply(http=200, body=body)


def _read_page_token(token: str) -> tuple[str, int]:
    """Return the name and generation that the previous page ended with."""
    if not token:
        return ("", 0)
    try:
        generation, _, name = urlsafe_b64decode(token).decode().partition(" ")
        return (name, int(generation))
    except ValueError:
        raise StorageError(400, "Invalid argument.") from None  # UNVERIFIED


def _get_object(objects: StoredObjects, request: StorageRequest) -> Reply:
    generation = request.number("generation")
    stored = objects.get(request.bucket, request.name, request.conditions(), generation=generation)
    if not request.wants_media:
        return Reply(http=200, body=stored.resource())
    headers = {
        "X-Goog-Generation": str(stored.generation),
        "X-Goog-Metageneration": "1",
        "X-Goog-Hash": f"crc32c={stored.crc32c}",
        **{f"X-Goog-Meta-{key}": value for key, value in stored.metadata.items()},
    }
    return Reply(http=200, body=stored.content, content_type=stored.content_type, headers=headers)


def _insert_object(objects: StoredObjects, request: StorageRequest) -> Reply:
    upload = _read_upload(request.query, request.body)
    return Reply(http=200, body=objects.insert(request.bucket, upload, request.conditions()).resource())


def _delete_object(objects: StoredObjects, request: StorageRequest) -> Reply:
    objects.delete(request.bucket, request.name, request.conditions())
    return Reply(http=204, body="")


def _read_upload(query: Mapping[str, str], body: bytes) -> StoredObject:
    """Return the object of an upload: bytes alone (`media`), or a resource and bytes as two MIME parts (`multipart`).

    Raise StorageError for what the service does not take, and for a resumable upload, which is not emulated.
    """
    match query.get("uploadType"):
        case "media":
            resource: Mapping[str, Any] = {}
            content_type, content = "application/octet-stream", body
        case "multipart":
            resource, content_type, content = _split_parts(body)
        case other:
            raise StorageError(501, f"The emulator serves no upload of the type `{other}`.")
    name = query.get("name") or resource.get("name", "")
    if not name:
        raise StorageError(400, "Required object name.")  # UNVERIFIED
    checksum = resource.get("crc32c")
    if checksum is not None and checksum != crc32c_base64(content):
        raise StorageError(400, f'Provided CRC32C "{checksum}" doesn\'t match calculated CRC32C.')  # UNVERIFIED
    metadata: Mapping[str, str] = resource.get("metadata", {})
    if sum(len(word.encode()) for pair in metadata.items() for word in pair) > _MAX_METADATA:
        raise StorageError(400, "The metadata of an object may have 8 KiB.")  # UNVERIFIED
    stored_type = resource.get("contentType", content_type)
    return StoredObject(name=name, content=content, content_type=stored_type, metadata=metadata)


def _split_parts(body: bytes) -> tuple[Mapping[str, Any], str, bytes]:
    """Return the resource, and the media with its type. The first line is the boundary, so no header is needed.

    Parts are split here, because the standard library reads them as e-mail, which takes ten times as long as all else.
    """
    boundary = body.partition(b"\r\n")[0].removeprefix(b"--")
    try:
        _, first, second, _ = (b"\r\n" + body).split(b"\r\n--" + boundary)
        resource = discovery.accept(json.loads(_split_part(first)[1]), "Object", "storage.v1", at="object")
        return resource, *_split_part(second)
    except ValueError as cause:
        raise StorageError(400, f"Multipart body is malformed: {cause}") from cause
    except wire.ApiError as refusal:
        raise StorageError(refusal.status.http, refusal.status.message) from refusal


def _split_part(part: bytes) -> tuple[str, bytes]:
    """Return the content type of a part, and what follows its headers."""
    head, _, content = part.partition(b"\r\n\r\n")
    lines = (line.partition(":") for line in head.decode("iso-8859-1").splitlines())
    headers = {name.lower(): value for name, _, value in lines}
    return headers.get("content-type", "text/plain").partition(";")[0].strip().lower(), content


# (HTTP method, kind of path, what it names) -> the method's name.
_METHOD_NAMES: Mapping[tuple[str, str, str], str] = {
    ("GET", "", "bucket"): "storage.buckets.get",
    ("GET", "", "objects"): "storage.objects.list",
    ("GET", "", "object"): "storage.objects.get",
    ("GET", "download", "object"): "storage.objects.get",
    ("POST", "upload", "objects"): "storage.objects.insert",
    ("DELETE", "", "object"): "storage.objects.delete",
}
# The function of a method, and the parameters that it reads.
_CONDITIONS = ("ifGenerationMatch", "ifGenerationNotMatch")
METHODS: Mapping[str, tuple[Callable[[StoredObjects, StorageRequest], Reply], tuple[str, ...]]] = {
    "storage.buckets.get": (_get_bucket, ()),
    "storage.objects.list": (_list_objects, ("prefix", "maxResults", "pageToken", "versions")),
    "storage.objects.get": (_get_object, ("generation", *_CONDITIONS)),
    "storage.objects.insert": (_insert_object, ("name", *_CONDITIONS)),
    "storage.objects.delete": (_delete_object, _CONDITIONS),
}
# These change nothing that the emulator would have to do: every reply has the whole resource.
_WITHOUT_EFFECT = ("alt", "fields", "prettyPrint", "projection", "uploadType")
