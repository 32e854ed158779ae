"""Cloud Storage, as Google's own client meets it: generations, conditions, lists, and trouble with each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import requests
from google.api_core import exceptions
from google.api_core.client_options import ClientOptions
from google.auth.credentials import AnonymousCredentials
from google.cloud.storage import Bucket, Client
from real_time import DEADLINE

from tpudeploy.emulator import VirtualClock, running

ONCE: dict[str, Any] = {"retry": None, "timeout": DEADLINE}


class World:
    """A client before an emulated bucket. Each call is sent once."""

    def __init__(self, host: str, clock: VirtualClock, bucket: Bucket, emulator: Any) -> None:
        self.host, self.clock, self.bucket, self.emulator = host, clock, bucket, emulator

    def put(self, content: bytes | str = b"{}", name: str = "a/b.json", **options: Any) -> int:
        blob = self.bucket.blob(name)
        blob.metadata = options.pop("metadata", None)
        blob.upload_from_string(content, content_type="application/json", **options, **ONCE)
        return int(blob.generation)

    def get(self, name: str = "a/b.json", **options: Any) -> tuple[bytes, int]:
        blob = self.bucket.blob(name)
        content = blob.download_as_bytes(**options, **ONCE)
        return content, int(blob.generation)

    def delete(self, name: str = "a/b.json", **options: Any) -> None:
        self.bucket.blob(name).delete(**options, **ONCE)


@contextmanager
def world(*trouble: dict[str, Any], **scenario: Any) -> Iterator[World]:
    clock = VirtualClock()
    with (
        pytest.MonkeyPatch.context() as patch,
        running(clock=clock, scenario={"nodes": "simulated", "trouble": list(trouble), **scenario}) as emulator,
    ):
        patch.setenv("DISABLE_GCS_PYTHON_CLIENT_OTEL_BUCKET_METADATA", "true")
        client = Client(
            project=None,
            credentials=AnonymousCredentials(),  # type: ignore[no-untyped-call]  # google-auth has no types here
            client_options=ClientOptions(api_endpoint=f"http://{emulator.host}"),
        )
        try:
            yield World(emulator.host, clock, client.bucket("bucket"), emulator)
        finally:
            client.close()


CONTENTS = [b"", b"{}", "模".encode(), b"\r\n", b"\n\n--x\r\n\r\n--x--", b"a\r", bytes(range(256)) * 99]


@pytest.mark.parametrize("content", CONTENTS)
def test_what_was_uploaded_is_what_is_downloaded(content: bytes) -> None:
    with world() as w:
        generation = w.put(content, metadata={"who": "me"})
        assert w.get() == (content, generation)
        blob = w.bucket.get_blob("a/b.json", **ONCE)
        assert (blob.generation, blob.metadata, blob.size) == (generation, {"who": "me"}, len(content))


def test_generations_only_grow_even_where_no_time_passes_and_after_a_delete() -> None:
    with world() as w:
        generations = [w.put(), w.put()]
        w.delete()
        generations.append(w.put())
        w.clock.sleep(1)
        generations.append(w.put())
        assert generations == sorted(set(generations))


def test_a_create_is_refused_where_there_is_one_and_a_write_where_it_moved() -> None:
    with world() as w:
        for stale in (7, 1):
            with pytest.raises(exceptions.PreconditionFailed):
                w.put(if_generation_match=stale)
        first = w.put(b"1", if_generation_match=0)
        with pytest.raises(exceptions.PreconditionFailed, match="pre-conditions you specified did not hold"):
            w.put(b"2", if_generation_match=0)
        second = w.put(b"2", if_generation_match=first)
        with pytest.raises(exceptions.PreconditionFailed):
            w.put(b"3", if_generation_match=first)
        assert w.get() == (b"2", second)


def test_a_read_and_a_delete_hold_to_their_conditions() -> None:
    with world() as w:
        first = w.put()
        assert w.get(if_generation_match=first)[1] == first
        for deed in (w.get, w.delete):
            with pytest.raises(exceptions.PreconditionFailed):
                deed(if_generation_match=first + 1)
        w.delete(if_generation_match=first)
        for call in (w.get, w.delete):
            with pytest.raises(exceptions.NotFound, match=r"No such object: bucket/a/b\.json"):
                call(if_generation_match=first)


def test_what_has_not_changed_is_not_sent_again() -> None:
    with world() as w:
        generation = w.put()
        url = f"http://{w.host}/storage/v1/b/bucket/o/a%2Fb.json"
        for alt in ("json", "media"):
            same = requests.get(url, params={"ifGenerationNotMatch": str(generation), "alt": alt}, timeout=DEADLINE)
            assert (same.status_code, same.content) == (304, b"")
            other = requests.get(
                url, params={"ifGenerationNotMatch": str(generation - 1), "alt": alt}, timeout=DEADLINE
            )
            assert other.status_code == 200
        with pytest.raises(exceptions.GoogleAPICallError):
            w.put(if_generation_not_match=generation)


def test_a_list_goes_by_name_under_a_prefix_page_by_page() -> None:
    with world() as w:
        names = [f"zones/{n:04}" for n in range(25)]
        for name in [*reversed(names), "other"]:
            w.put(name=name)
        client = w.bucket.client
        assert [b.name for b in client.list_blobs("bucket", prefix="zones/", page_size=10, **ONCE)] == names
        assert [b.name for b in client.list_blobs("bucket", prefix="zones/", max_results=3, **ONCE)] == names[:3]
        assert len(list(client.list_blobs("bucket", **ONCE))) == 26


def test_with_versioning_what_was_replaced_or_deleted_can_still_be_had() -> None:
    with world(versioned_buckets=["bucket"]) as w:
        generations = [w.put(b"1"), w.put(b"2")]
        w.delete()
        generations.append(w.put(b"3"))
        w.put(name="b")
        client = w.bucket.client
        listed = [b.generation for b in client.list_blobs("bucket", prefix="a/", versions=True, page_size=2, **ONCE)]
        assert listed == generations
        assert [b.generation for b in client.list_blobs("bucket", prefix="a/", **ONCE)] == generations[-1:]
        old = w.bucket.blob("a/b.json", generation=generations[1]).download_as_bytes(**ONCE)
        assert old == b"2"


def test_without_versioning_only_what_is_there_is_told() -> None:
    with world() as w:
        first = w.put(b"1")
        second = w.put(b"2")
        assert [b.generation for b in w.bucket.client.list_blobs("bucket", versions=True, **ONCE)] == [second]
        with pytest.raises(exceptions.NotFound):
            w.bucket.blob("a/b.json", generation=first).download_as_bytes(**ONCE)


def test_only_buckets_that_are_there_are_found() -> None:
    with world(buckets=["other"]) as w:
        assert not w.bucket.exists(**ONCE)
        for deed in (w.put, w.get, w.delete, lambda: list(w.bucket.list_blobs(**ONCE))):
            with pytest.raises(exceptions.NotFound, match="The specified bucket does not exist"):
                deed()
        assert w.bucket.client.bucket("other").exists(**ONCE)


def test_an_upload_that_was_garbled_on_its_way_is_refused() -> None:
    with world() as w:
        body = b'--x\r\n\r\n{"name": "a", "crc32c": "AAAAAA=="}\r\n--x\r\n\r\nother\r\n--x--'
        url = f"http://{w.host}/upload/storage/v1/b/bucket/o"
        answer = requests.post(url, params={"uploadType": "multipart"}, data=body, timeout=DEADLINE)
        assert answer.status_code == 400
        assert "CRC32C" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("method", "path", "http"),
    [
        ("GET", "/storage/v1/b/bucket/o?delimiter=/", 501),
        ("GET", "/storage/v1/b/bucket/o/a?ifMetagenerationMatch=1", 501),
        ("GET", "/storage/v1/b/bucket/o/a?ifgenerationmatch=1", 400),
        ("GET", "/storage/v1/b/bucket/o/a?ifGenerationMatch=one", 400),
        ("GET", "/storage/v1/b/bucket/o?maxResults=x", 400),
        ("GET", "/storage/v1/b/bucket/o?pageToken=%FF", 400),
        ("POST", "/storage/v1/b/bucket/o", 501),
        ("POST", "/upload/storage/v1/b/bucket/o?uploadType=resumable&name=a", 501),
        ("POST", "/upload/storage/v1/b/bucket/o?uploadType=media", 400),
        ("POST", "/upload/storage/v1/b/bucket/o?uploadType=multipart", 400),
        ("PATCH", "/storage/v1/b/bucket/o/a", 501),
    ],
)
def test_what_is_not_served_is_refused_and_never_passed_over(method: str, path: str, http: int) -> None:
    with world() as w:
        answer = requests.request(method, f"http://{w.host}{path}", data=b"odd", timeout=DEADLINE)
        assert answer.status_code == http
        assert answer.json()["error"]["code"] == http


def test_metadata_has_its_limit() -> None:
    with world() as w:
        w.put(metadata={"line": "x" * 8000})
        with pytest.raises(exceptions.BadRequest, match="8 KiB"):
            w.put(metadata={"line": "x" * 8200})


INSERT = "storage.objects.insert"


@pytest.mark.parametrize(
    ("fault", "raised", "is_done"),
    [
        ({"fault": "unavailable"}, exceptions.ServiceUnavailable, False),
        ({"fault": "backend-error"}, exceptions.InternalServerError, False),
        ({"fault": "rate-limit"}, exceptions.TooManyRequests, False),
        ({"fault": "iam-denied"}, exceptions.Forbidden, False),
        ({"fault": "connection-refused"}, requests.ConnectionError, False),
        ({"fault": "failed-reply"}, exceptions.ServiceUnavailable, True),
        ({"fault": "lost-reply"}, requests.ConnectionError, True),
        ({"fault": "lost-reply", "close": True}, requests.ConnectionError, True),
    ],
    ids=lambda value: value["fault"] if isinstance(value, dict) else "",
)
def test_trouble_strikes_one_call_before_or_after_it_was_carried_out(
    fault: dict[str, Any], raised: type[Exception], *, is_done: bool
) -> None:
    with world({**fault, "method": INSERT, "call": 2}) as w:
        w.put(b"1")
        with pytest.raises(raised):
            w.put(b"2")
        assert w.get()[0] == (b"2" if is_done else b"1")
        w.put(b"3")


def test_a_slow_reply_takes_its_time_after_the_deed() -> None:
    with world({"fault": "slow", "method": "storage.*", "name": "*.lock", "seconds": 40}) as w:
        began = w.clock.now()
        w.put(name="a.json")
        assert w.clock.now() == began
        w.put(name="state/a.lock")
        assert w.clock.now() == began + 40


def test_refusals_speak_cloud_storages_words() -> None:
    with world({"fault": "iam-denied", "call": 1}, {"fault": "rate-limit", "method": INSERT, "call": 2}) as w:
        with pytest.raises(exceptions.Forbidden, match=r"'storage\.objects\.create' denied on resource"):
            w.put()
        with pytest.raises(exceptions.TooManyRequests, match="exceeded the rate limit for object mutation"):
            w.put()
        verdicts = [request.verdict for request in w.emulator.requests]
        assert verdicts == ["403 forbidden", "429 rateLimitExceeded"]
