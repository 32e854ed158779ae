"""Bad days of the compile cache and the mirror, through real bash: the one costs time alone, the other says why not."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from node.bench import Bench
from node.boots import cause_of_failure, script
from node.containers import container, deployment
from tpudeploy.domain.deployment import BucketFolder, CompileCache, Mirror

BUCKET = BucketFolder(name="bucket", prefix="x/")
CACHED = replace(
    deployment(container(volumes=(("/var/xla", "/xla"),))),
    compile_cache=CompileCache(bucket=BUCKET, key="k" * 20, digest="5" * 64, folder="/var/xla"),
)
MIRRORED = replace(deployment(), mirror=Mirror(bucket=BUCKET, folder="/var/weights"))
OBJECT = json.dumps({"generation": "7", "size": "4"}, indent=2)


def row(name: str, **changes: str) -> dict[str, str]:
    return {"name": f"x/{name}", "size": "2", "generation": "1", **changes}


def listed(*rows: dict[str, str]) -> tuple[str, str, list[tuple[int, str]]]:
    return ("curl", "b/bucket/o?prefix=x%2F", [(200, json.dumps({"items": list(rows)}, indent=1))])


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ((-23, ""), "it cannot be written here: is the disk full?; this start compiles"),
        ((-28, ""), "it stalled; this start compiles"),
        ((0, ""), "no connection: Private Google Access or NAT is missing; this start compiles"),
        ((200, "torn"), "it cannot be unpacked, and was thrown away"),
        ((200, "longer than it is"), "what arrived does not match its checksum, and was thrown away"),
    ],
)
def test_a_cache_that_does_not_arrive_whole_leaves_nothing_behind(
    bench: Bench, answer: tuple[int, str], says: str
) -> None:
    bench.rules += [("curl", "alt=media", [answer]), ("curl", "fields=generation", [(200, OBJECT)])]
    result = bench.run(script(CACHED))
    assert result.returncode == 0, result.stdout
    assert f"cache: it cannot be fetched: {says}" in result.stdout or f"cache: {says}" in result.stdout
    assert not [path for path in (bench.root / "var/xla").rglob("*") if path.is_file()]


def test_of_a_tag_the_pull_tells_the_digest_that_names_the_cache(bench: Bench) -> None:
    tagged = replace(CACHED, compile_cache=replace(CACHED.compile_cache, digest=""))  # type: ignore[type-var]  # there is one
    bench.rules.append(("docker", "image inspect -f", [(0, f"[vllm/vllm-tpu@sha256:{'ab' * 32}]", "pull ")]))
    result = bench.run(script(tagged))
    assert result.returncode == 0, result.stdout
    assert f"cache: Looking for gs://bucket/x/tpudeploy-xla-{'k' * 20}-{'ab' * 10}.tar" in result.stdout


def test_an_image_without_a_digest_has_no_cache_and_serves(bench: Bench) -> None:
    tagged = replace(CACHED, compile_cache=replace(CACHED.compile_cache, digest=""))  # type: ignore[type-var]  # there is one
    bench.rules.append(("docker", "image inspect -f", [(0, "[]")]))
    result = bench.run(script(tagged))
    assert result.returncode == 0, result.stdout
    assert "docker does not say which digest the image has" in result.stdout
    assert not [call for call in bench.calls("curl") if "storage.googleapis.com" in call.line]


def test_a_disk_that_fills_up_while_the_cache_is_unpacked_costs_time_alone(bench: Bench) -> None:
    bench.instead = ("tar",)
    bench.rules += [
        ("curl", "alt=media", [(200, "four")]),
        ("curl", "fields=generation", [(200, OBJECT)]),
        ("tar", "-x", [(2, "tar: jit_x-cache: Cannot write: No space left on device")]),
    ]
    result = bench.run(script(CACHED))
    assert result.returncode == 0, result.stdout
    assert "Cannot write: No space left on device; this start compiles" in result.stdout


def test_a_cache_that_breaks_in_a_way_nobody_foresaw_ends_nothing(bench: Bench) -> None:
    (bench.root / "var").mkdir(parents=True)
    (bench.root / "var/xla").touch()  # no folder can be made there
    result = bench.run(script(CACHED))
    assert result.returncode == 0, result.stdout
    assert "cache: It broke at line" in result.stdout
    assert bench.attributes()["phase"][-1] == "serving"


def test_a_cache_is_saved_after_the_server_was_told_to_serve(bench: Bench) -> None:
    (bench.root / "var/xla").mkdir(parents=True)
    (bench.root / "var/xla/jit_x-cache").write_text("compiled")
    bench.rules.append(("curl", "upload/storage", [(200, '{"generation": "9"}')]))
    result = bench.run(script(CACHED))
    assert result.returncode == 0, result.stdout
    lines = [call.line for call in bench.calls("curl")]
    served = next(n for n, line in enumerate(lines) if "chat/completions" in line)
    saved = next(n for n, line in enumerate(lines) if "upload/storage" in line)
    assert saved > served
    assert "ifGenerationMatch=0" in lines[saved]
    assert "cache: Saved as gs://bucket/x/tpudeploy-xla-" in result.stdout


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ((-23, ""), "The mirror's config.json could not be fetched: it cannot be written here: is the disk full?"),
        ((-28, ""), "The mirror's config.json could not be fetched: it stalled"),
        ((0, ""), "could not be fetched: no connection: Private Google Access or NAT is missing"),
        ((200, "xyz"), "The mirror's config.json could not be fetched: what arrived does not match its checksum"),
        ((404, ""), "The mirror's config.json could not be fetched: it is not there"),
    ],
)
def test_weights_that_do_not_arrive_end_the_boot_with_the_reason(
    bench: Bench, answer: tuple[int, str], says: str
) -> None:
    cause = cause_of_failure(bench, MIRRORED, ("curl", "alt=media", [answer]), listed(row("config.json")))
    assert says in cause
    assert not bench.calls("docker run")


def test_a_composite_object_is_taken_by_its_size_and_that_is_said(bench: Bench) -> None:
    bench.rules += [("curl", "alt=media", [(200, "{}")]), listed(row("config.json"), row("sub/model.safetensors"))]
    result = bench.run(script(MIRRORED))
    assert result.returncode == 0, result.stdout
    assert "sub/model.safetensors has no MD5 (a composite object): only its size is compared" in result.stdout
    assert (bench.root / "var/weights/sub/model.safetensors").read_text() == "{}"


@pytest.mark.parametrize("name", ["a b.safetensors", "$(id)", "a;b", "é.json"])
def test_a_name_that_is_no_models_file_is_refused(bench: Bench, name: str) -> None:
    cause = cause_of_failure(bench, MIRRORED, listed(row("config.json"), row(name)))
    assert "cannot be a file of a model" in cause


@pytest.mark.parametrize("name", ["../../etc/passwd", ".hidden", "sub/", "a/../b"])
def test_hidden_files_and_ways_out_of_the_folder_are_left_alone(bench: Bench, name: str) -> None:
    bench.rules += [("curl", "alt=media", [(200, "{}")]), listed(row("config.json"), row(name))]
    assert bench.run(script(MIRRORED)).returncode == 0
    files = [path for path in (bench.root / "var/weights").rglob("*") if path.is_file()]
    assert sorted(path.name for path in files) == ["config.json", "fetched"]


def test_what_the_mirror_no_longer_has_is_removed(bench: Bench) -> None:
    stray = bench.root / "var/weights/model-9.safetensors"
    stray.parent.mkdir(parents=True)
    stray.touch()
    bench.rules += [("curl", "alt=media", [(200, "{}")]), listed(row("config.json"))]
    assert bench.run(script(MIRRORED)).returncode == 0
    assert not stray.exists()
