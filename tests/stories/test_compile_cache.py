"""Compiled programs outlive their machine: the next one finds them in the bucket, and serves sooner."""

from __future__ import annotations

import io
import tarfile

import pytest
from command_line import PROFILE, CommandLine, Open
from stories.buckets import log, objects, upload

KEPT = PROFILE.replace("  max_model_len", "  xla_cache_bucket: gs://bucket/xla\n  max_model_len")
BOOT = {"boot_seconds": 652, "image_pull": 300}
PROGRAMS = 37  # of the 199 graphs, those that take a second to compile


def test_a_fresh_machine_finds_what_an_earlier_one_compiled(cli: Open) -> None:
    at = cli(nodes="real", boot=BOOT)
    cold = _start(at, KEPT)
    (name,) = objects(at)
    assert name.startswith("xla/tpudeploy-xla-")
    assert f"cache: miss: 0 programs were here, {PROGRAMS} were compiled anew" in log(at)
    assert at.run("destroy", "-auto-approve", "gemma.yaml").code == 0

    warm = _start(at, KEPT)
    assert f"cache: hit: {PROGRAMS} programs were here, 0 were compiled anew" in log(at)
    assert "(compilation: 0.00 s)" in log(at)
    assert cold - warm > 360  # 394 s of compilation, within a look
    assert list(objects(at)) == [name]


@pytest.mark.long
def test_another_length_is_another_cache(cli: Open) -> None:
    at = cli(nodes="real")
    _start(at, KEPT)
    assert at.run("destroy", "-auto-approve", "gemma.yaml").code == 0
    _start(at, KEPT.replace("16384", "8192"))
    assert "there is none yet; this start compiles" in log(at)
    assert len(objects(at)) == 2


def test_what_is_around_the_programs_keeps_their_cache(cli: Open) -> None:
    at = cli(nodes="real")
    _start(at, KEPT)
    assert at.run("destroy", "-auto-approve", "gemma.yaml").code == 0
    around = "  port: 8001\n  args: {enable_auto_tool_choice: true, tool_call_parser: gemma4, served_model_name: x}\n"
    _start(at, KEPT.replace("secrets:", f"{around}secrets:").replace("x}", "google/gemma-4-E2B-it}"))
    assert "cache: hit" in log(at)


@pytest.mark.long
def test_an_image_named_by_its_digest_needs_no_pull_to_know_its_cache(cli: Open) -> None:
    at = cli(nodes="real", boot=BOOT)
    pinned = KEPT.replace("v0.32.0", f"v0.32.0@sha256:{'5' * 64}")
    _start(at, pinned)
    (name,) = objects(at)
    assert name.endswith(f"-{'5' * 20}.tar")
    output = log(at)
    assert output.index("cache: done in") < output.index("image: done in")


@pytest.mark.long
@pytest.mark.parametrize(
    ("trouble", "says"),
    [
        ({"fault": "garbled"}, "does not match its checksum, and was thrown away; this start compiles"),
        ({"fault": "iam-denied", "method": "storage.objects.*"}, "grant it roles/storage.objectUser on the bucket"),
        ({"fault": "unavailable", "method": "storage.objects.get"}, "it cannot be read: HTTP 503"),
        ({"fault": "connection-refused", "method": "storage.*"}, "it broke off: curl ended with 56; this start"),
    ],
)
def test_a_cache_that_cannot_be_had_costs_time_alone(cli: Open, trouble: dict[str, str], says: str) -> None:
    at = cli(nodes="real")
    _start(at, KEPT)
    assert at.run("destroy", "-auto-approve", "gemma.yaml").code == 0
    at.emulator.script(trouble)
    _start(at, KEPT)
    assert says in log(at)
    assert "cache: miss" in log(at)


def test_a_bucket_that_does_not_exist_costs_time_alone(cli: Open) -> None:
    at = cli(nodes="real", buckets=["other"])
    _start(at, KEPT)
    assert "It is not saved: it is not there. Google says: The specified bucket does not exist." in log(at)


def test_a_torn_object_is_thrown_away_and_replaced(cli: Open) -> None:
    at = cli(nodes="real")
    _start(at, KEPT)
    ((name, whole),) = objects(at).items()
    assert at.run("destroy", "-auto-approve", "gemma.yaml").code == 0
    upload(at, name, whole[: len(whole) // 2])
    _start(at, KEPT)
    assert "it cannot be unpacked, and was thrown away" in log(at)
    assert _programs(objects(at)[name]) == _programs(whole)


@pytest.mark.long
def test_a_program_that_is_torn_is_compiled_anew_and_the_rest_is_not(cli: Open) -> None:
    at = cli(nodes="real", boot=BOOT)
    cold = _start(at, KEPT)
    ((name, whole),) = objects(at).items()
    assert at.run("destroy", "-auto-approve", "gemma.yaml").code == 0
    upload(at, name, _without_one(whole))
    warm = _start(at, KEPT)
    assert f"partly a hit: {PROGRAMS - 1} programs were here, 1 were compiled anew" in log(at)
    assert cold - warm > 300
    assert _programs(objects(at)[name]) == _programs(whole)


@pytest.mark.long
def test_two_machines_that_save_at_once_leave_one_whole_object(cli: Open) -> None:
    at = cli(nodes="real", boot={"bucket": 30})
    profile = at.write(KEPT.replace("requests: 1", "requests: 2") + "replicas: 2\n")
    assert at.run("apply", "-auto-approve", profile).code == 0
    at.clock.sleep(60)
    ((_, content),) = objects(at).items()
    assert len(_programs(content)) == PROGRAMS
    assert "Another machine saved it meanwhile; its copy stays" in log(at)


def test_a_reboot_finds_its_programs_on_its_own_disk(cli: Open) -> None:
    at = cli(nodes="real")
    _start(at, KEPT)
    _start(at, KEPT.replace("secrets:", "  args: {tool_call_parser: gemma4}\nsecrets:"))
    assert log(at).count("cache: Its programs are on this disk already") == 1


def test_old_objects_go_when_there_are_many_and_nobody_elses(cli: Open) -> None:
    at = cli(nodes="real")
    for number in range(25):
        upload(at, f"xla/tpudeploy-xla-{number:020}-{number:020}.tar", b"old")
    upload(at, "xla/precious.tar", b"mine")
    at.clock.sleep(40 * 86_400)
    _start(at, KEPT)
    remaining = objects(at)
    assert len([name for name in remaining if "tpudeploy-xla-" in name]) == 20
    assert remaining["xla/precious.tar"] == b"mine"


def test_a_cache_in_no_volume_is_refused_with_the_reason(cli: Open) -> None:
    at = cli()
    result = at.run("validate", at.write(KEPT.replace("  max_model_len", "  volumes: {}\n  max_model_len")))
    assert result.code == 1
    assert "so it cannot be copied to and from its bucket" in result.all


def _start(at: CommandLine, profile: str) -> float:
    """Seconds until it serves; whatever follows is over too."""
    began = at.clock.now()
    applied = at.run("apply", "-auto-approve", at.write(profile))
    assert applied.code == 0, applied.all
    took = at.clock.now() - began
    at.clock.sleep(60)
    return took


def _programs(content: bytes) -> list[str]:
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        return sorted(archive.getnames())


def _without_one(content: bytes) -> bytes:
    """The same archive without its first program."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(content)) as archive, tarfile.open(fileobj=buffer, mode="w") as bent:
        for member in archive.getmembers()[1:]:
            bent.addfile(member, archive.extractfile(member))
    return buffer.getvalue()
