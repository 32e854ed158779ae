"""Engine and release are facts of the image: by its name and tag, the lock file, or what an engine reported at boot."""

from __future__ import annotations

import pytest

from tpudeploy.catalog import engines
from tpudeploy.domain.engine import EngineKind, EngineOrigin

A, B = f"sha256:{'a' * 64}", f"sha256:{'b' * 64}"
OURS, TORCH, UNKNOWN = EngineKind.TPU_INFERENCE, EngineKind.TORCHTPU, EngineKind.UNKNOWN
TAG, LOCK, BOOT, NONE = EngineOrigin.TAG, EngineOrigin.LOCK_FILE, EngineOrigin.BOOT, EngineOrigin.NONE


@pytest.mark.parametrize(
    ("image", "kind", "release", "origin"),
    [
        ("vllm/vllm-tpu:v0.32.0", OURS, "0.32.0", TAG),
        ("vllm/vllm-tpu:v0.32.1rc1", OURS, "0.32.1rc1", TAG),
        ("vllm/vllm-tpu:v0.31.0.post1", OURS, "0.31.0", TAG),
        (f"vllm/vllm-tpu:v0.32.0@{A}", OURS, "0.32.0", TAG),
        ("us-docker.pkg.dev/my-project/mirror/vllm-tpu:v0.30.0", OURS, "0.30.0", TAG),
        ("localhost:5000/vllm-tpu", OURS, None, NONE),
        ("vllm/vllm-tpu:nightly", OURS, None, NONE),
        ("vllm/vllm-tpu:nightly-20260801-1a2b3c4-5d6e7f8", OURS, None, NONE),
        ("vllm/vllm-tpu:latest", OURS, None, NONE),
        ("vllm/vllm-tpu:gemma4", OURS, None, NONE),
        ("vllm/vllm-tpu:v0.32", OURS, None, NONE),
        (f"vllm/vllm-tpu@{B}", OURS, None, NONE),
        ("vllm/vllm-torchtpu:v0.29.0", TORCH, "0.29.0", TAG),
        (f"ghcr.io/mirror/vllm-torchtpu@{A}", TORCH, None, NONE),
        ("us-docker.pkg.dev/my-project/serving/our-server:v0.32.0", UNKNOWN, None, NONE),
        ("vllm-tpu.example.com/team/server:v0.32.0", UNKNOWN, None, NONE),
    ],
)
def test_an_image_tells_its_engine_and_perhaps_its_release(
    image: str, kind: EngineKind, release: str | None, origin: EngineOrigin
) -> None:
    engine = engines.identify(image)
    assert (engine.kind, engine.release, engine.origin) == (kind, release, origin)


def test_a_digest_has_the_release_of_a_tag_that_the_lock_file_pins_to_it() -> None:
    locked = {"vllm/vllm-tpu:nightly": A, "vllm/vllm-tpu:v0.31.0": A, "vllm/vllm-torchtpu:v0.29.0": B}
    for image, digest in ((f"vllm/vllm-tpu@{A}", None), ("vllm/vllm-tpu:nightly", A)):
        engine = engines.identify(image, digest, locked=locked)
        assert (engine.release, engine.origin) == ("0.31.0", LOCK)
    assert engines.identify(f"vllm/vllm-tpu@{B}", locked=locked).release is None


def test_what_an_engine_reported_counts_more_than_a_tag() -> None:
    boots = {A: "0.31.1rc1.dev125+ga7a204cc6"}
    for image in ("vllm/vllm-tpu:nightly", "vllm/vllm-tpu:v0.32.0"):
        engine = engines.identify(image, A, boots=boots)
        assert (engine.release, engine.origin) == ("0.31.1rc1", BOOT)
    assert engines.identify("vllm/vllm-tpu:nightly", B, boots=boots).release is None


@pytest.mark.parametrize(
    ("version", "row"),
    [
        ("0.27.0", "0.29.0"),
        ("0.29.0", "0.29.0"),
        ("0.30.1", "0.30.0"),
        ("0.32.0", "0.32.0"),
        ("0.40.1", "0.32.0"),
        (None, "0.32.0"),
    ],
)
def test_a_version_is_sized_by_its_own_row_or_the_nearest_older_one(version: str | None, row: str) -> None:
    assert engines.release(version).version == row


def test_a_fault_has_its_releases_a_source_and_a_fix() -> None:
    for fault in engines.FAULTS:
        assert engines.numbers(fault.first) <= engines.numbers(fault.last)
        assert fault.source
        assert fault.fix
        assert fault.affects(engines.identify(f"vllm/vllm-tpu:v{fault.last}"))
        assert not fault.affects(engines.identify("vllm/vllm-tpu:nightly"))
        assert not fault.affects(engines.identify(f"vllm/vllm-torchtpu:v{fault.last}"))
