"""Weights from a bucket of one's own: fetched beside the image, held to their checksums, and never from the hub after all."""

from __future__ import annotations

import re

import pytest
from command_line import PROFILE, CommandLine, Open
from stories.buckets import log, upload

FILES = {"config.json": b"{}", "tokenizer.json": b"{}"} | {f"model-{n}.safetensors": b"w" * 999 for n in range(20)}
MIRRORED = PROFILE.replace("gemma-4-E2B-it", "gemma-4-E2B-it\n  revision: main\n  mirror: gs://bucket/gemma")


def test_the_server_gets_the_mirrors_files_and_clients_see_the_model(cli: Open) -> None:
    at = _desk(cli)
    upload(at, "gemma/.gitattributes", b"hidden")
    applied = at.run("apply", "-auto-approve", at.write(MIRRORED))
    assert applied.code == 0, applied.all
    assert f"mirror: {len(FILES)} files are here" in log(at)
    assert at.run("query", "gemma.yaml", "Say hello.").code == 0
    verified = at.run("verify", "gemma.yaml")
    assert verified.code == 0, verified.all
    argv = at.run("render", "gemma.yaml", "argv").out
    assert "/tpudeploy/weights" in argv
    assert "--revision" not in argv
    assert at.run("plan", "gemma.yaml", "-detailed-exitcode").code == 0


@pytest.mark.instant("the seconds of a pull and of fetches beside it are counted, and nothing else may last")
def test_image_and_weights_are_fetched_at_the_same_time_and_files_eight_at_once(cli: Open) -> None:
    at = _desk(cli, boot={"image_pull": 100, "bucket": 20})
    began = at.clock.now()
    assert at.run("apply", "-auto-approve", at.write(MIRRORED)).code == 0
    in_turn = 100 + len(FILES) * 20
    waited = at.clock.now() - began - 150  # of the grant
    assert waited < in_turn / 3
    (fetching,) = _fetching(at)
    assert 60 <= fetching < 120  # three times eight, within a look of each


@pytest.mark.long
@pytest.mark.parametrize(
    ("trouble", "says"),
    [
        ({"fault": "garbled"}, "could not be fetched: what arrived does not match its checksum"),
        (
            {"fault": "iam-denied", "method": "storage.objects.list"},
            "grant it roles/storage.objectViewer on the bucket",
        ),
        ({"fault": "iam-denied", "method": "storage.objects.get"}, "grant it roles/storage.objectViewer on the bucket"),
        ({"fault": "unavailable", "method": "storage.objects.get"}, "could not be fetched: HTTP 503"),
        ({"fault": "connection-refused", "method": "storage.*"}, "cannot be read: it broke off: curl ended with 56"),
    ],
)
def test_a_mirror_that_is_broken_ends_the_boot_with_the_reason(cli: Open, trouble: dict[str, str], says: str) -> None:
    at = _desk(cli, boot={"image_pull": 1000})
    at.emulator.script(trouble)
    stopped = at.run("apply", "-auto-approve", at.write(MIRRORED))
    assert stopped.code == 1
    assert says in stopped.err
    assert "image: done" not in log(at)  # nobody waited for the image


@pytest.mark.long
def test_a_mirror_that_stumbles_is_asked_again(cli: Open) -> None:
    at = _desk(cli)
    at.emulator.script({"fault": "garbled", "times": 1})
    assert at.run("apply", "-auto-approve", at.write(MIRRORED)).code == 0
    assert "what arrived does not match its checksum; trying again in 2 s" in log(at)


@pytest.mark.parametrize("lacks", ["config.json", "*"])
def test_a_mirror_without_a_model_says_so(cli: Open, lacks: str) -> None:
    at = cli(nodes="real")
    if lacks != "*":
        upload(at, "gemma/model.safetensors", b"w")
    stopped = at.run("apply", "-auto-approve", at.write(MIRRORED))
    assert stopped.code == 1
    assert "The mirror gs://bucket/gemma/ holds no config.json" in stopped.err


@pytest.mark.long
def test_after_a_reboot_only_what_changed_is_fetched(cli: Open) -> None:
    at = _desk(cli, boot={"bucket": 20})
    assert at.run("apply", "-auto-approve", at.write(MIRRORED)).code == 0
    upload(at, "gemma/config.json", b'{"new": 1}')
    assert at.run("apply", "-auto-approve", at.write(MIRRORED.replace("16384", "8192"))).code == 0
    first, second = _fetching(at)
    assert second <= first / 2  # one file instead of three times eight


def _fetching(at: CommandLine) -> list[int]:
    """Seconds that the mirror took, at each start."""
    return [int(seconds) for seconds in re.findall(r"mirror: done in (\d+) s", log(at))]


def _desk(cli: Open, **scenario: object) -> CommandLine:
    at = cli(nodes="real", **scenario)
    for name, content in FILES.items():
        upload(at, f"gemma/{name}", content)
    return at
