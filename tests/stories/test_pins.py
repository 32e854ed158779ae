"""What a tag or a revision means is looked up once, held in tpudeploy.lock.json, and the same from then on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from command_line import INSTANCE, PROFILE, CommandLine, Open
from github_api import GitHubApi
from workflow import Pipeline

from tpudeploy.adapters.pin_file import PinFile
from tpudeploy.domain.pins import Name, Pin, PinKind, Pins
from tpudeploy.pins import new, with_pins

DAY = 86400.0
MODEL = "google/gemma-4-E2B-it"
NIGHTLY = PROFILE.replace("v0.32.0", "nightly")
DAILY = {"pushes": {"vllm/vllm-tpu:nightly": DAY, MODEL: DAY}}
DIGEST = f"sha256:{'ab' * 32}"
COMMIT = "c0" * 20
SILENT = ({"fault": "unavailable", "method": "registry.*"}, {"fault": "unavailable", "method": "hub.*"})


def lock(at: CommandLine) -> Mapping[str, Any]:
    tree: Mapping[str, Any] = json.loads((at.folder / "tpudeploy.lock.json").read_text("utf-8"))
    return tree


def hold(at: CommandLine, **more: Any) -> None:
    tree = {
        "format": "tpudeploy.lock/1",
        "images": {"vllm/vllm-tpu:nightly": DIGEST},
        "models": {MODEL: COMMIT},
        **more,
    }
    (at.folder / "tpudeploy.lock.json").write_text(json.dumps(tree, indent=2) + "\n", "utf-8")


def one_line(command: str) -> str:
    """Return the words of a rendered command, which has a line for each option."""
    return " ".join(command.replace("\\\n", " ").split())


def look_ups(at: CommandLine) -> list[str]:
    """Of what names mean, at the registry and the hub. Labels of a digest are read by GET."""
    requests = at.emulator.requests
    return [r.path for r in requests if r.path.startswith("/hub") or (r.method, r.path[:9]) == ("HEAD", "/registry")]


def scripts(at: CommandLine) -> list[str]:
    """What the machines boot."""
    return [node.spec["metadata"]["startup-script"] for node in at.emulator._cloud.nodes.values()]


def applied(at: CommandLine, *words: str) -> str:
    result = at.run("apply", "-auto-approve", *words, "gemma.yaml")
    assert result.code == 0, result.all
    return result.all


def planned(at: CommandLine, *words: str) -> tuple[int, str]:
    result = at.run("plan", "-detailed-exitcode", *words, "gemma.yaml")
    return result.code, result.words


def test_the_first_apply_holds_the_image_and_the_model_and_shows_both_names(cli: Open) -> None:
    at = cli()
    at.write(NIGHTLY)
    code, before = planned(at)
    assert code == 2
    assert not (at.folder / "tpudeploy.lock.json").exists(), "a plan writes nothing"
    result = applied(at)
    pins = lock(at)
    digest, commit = pins["images"]["vllm/vllm-tpu:nightly"], pins["models"][MODEL]
    assert pins["format"] == "tpudeploy.lock/1"
    for text in (before, " ".join(result.split())):
        assert f'+ serving.image = "vllm/vllm-tpu:nightly" ({at.folder}/gemma.yaml:8)' in text
        assert f'+ serving.image_digest = "{digest}"' in text
        assert f'+ model.commit = "{commit}"' in text
    assert f"Pinned vllm/vllm-tpu:nightly to {digest} (tpudeploy.lock.json)" in result
    (script,) = scripts(at)
    assert f"\n  vllm/vllm-tpu@{digest}\n" in script
    assert f"\n  --revision\n  {commit}\n" in script
    assert "nightly" not in script


def test_a_tag_that_moves_changes_neither_what_runs_nor_what_is_added_next_week(cli: Open) -> None:
    at = cli(project=DAILY)
    at.write(NIGHTLY)
    applied(at)
    pins, (first,) = lock(at), scripts(at)
    at.clock.sleep(7 * DAY)
    assert planned(at)[0] == 0
    at.write(NIGHTLY + "replicas: 2\n")
    applied(at)
    assert scripts(at) == [first, first]
    assert lock(at) == pins
    assert len(look_ups(at)) == 2, "of both once, and never again"


def test_what_is_committed_is_used_in_another_checkout_and_nobody_is_asked(cli: Open) -> None:
    at = cli(project=DAILY)
    at.write(NIGHTLY)
    hold(at)
    code, output = planned(at)
    assert code == 2
    assert f'+ serving.image_digest = "{DIGEST}" (tpudeploy.lock.json:4)' in output
    assert f'+ model.commit = "{COMMIT}" (tpudeploy.lock.json:7)' in output
    applied(at)
    assert DIGEST in scripts(at)[0]
    assert look_ups(at) == []


def test_a_lock_file_that_nobody_committed_is_written_again_from_what_runs(cli: Open) -> None:
    at = cli(project=DAILY)
    at.write(NIGHTLY)
    applied(at)
    pins = lock(at)
    (at.folder / "tpudeploy.lock.json").unlink()
    at.clock.sleep(7 * DAY)
    assert planned(at)[0] == 0
    at.write(NIGHTLY.replace("16384", "8192"))
    result = applied(at)
    assert "serving.image_digest" not in result.partition("Pinned")[0], "the image stays what it was"
    assert lock(at) == pins


@pytest.mark.parametrize("fault", ["unavailable", "connection-refused", "iam-denied"])
def test_where_nobody_can_be_asked_it_is_applied_as_it_is_written_and_said(cli: Open, fault: str) -> None:
    at = cli(trouble=[{"fault": fault, "method": "registry.*"}, {"fault": fault, "method": "hub.*"}])
    at.write(NIGHTLY)
    result = applied(at)
    assert "Warning: vllm/vllm-tpu:nightly is not pinned:" in result
    assert f"Warning: {MODEL} is not pinned:" in result
    assert "[TPU3030]" in result
    assert '"nightly" is a floating tag' in result
    assert "\n  vllm/vllm-tpu:nightly\n" in scripts(at)[0]
    assert not (at.folder / "tpudeploy.lock.json").exists()


def test_what_is_private_is_not_pinned_and_the_rest_is(cli: Open) -> None:
    at = cli(project={"images": ["vllm/vllm-tpu:nightly"], "models": []})
    at.write(NIGHTLY)
    result = applied(at)
    assert "does not show this model or revision to anonymous callers." in result
    assert "Pinned vllm/vllm-tpu:nightly" in result
    assert lock(at)["models"] == {}


def test_an_image_that_nobody_may_pull_is_not_pinned_and_the_machine_says_so_too(cli: Open) -> None:
    at = cli(project={"images": []})
    at.write(NIGHTLY)
    result = at.run("apply", "-auto-approve", "gemma.yaml")
    assert result.code == 1
    assert "registry-1.docker.io does not have this image, or hides it from anonymous callers." in result.err
    assert "The image cannot be pulled: Error response from daemon: pull access denied for vllm/vllm-tpu" in result.err


def test_what_ran_before_there_were_pins_is_not_restarted_for_them(cli: Open) -> None:
    at = cli(trouble=[{**row, "times": 1} for row in SILENT], nodes="real")
    at.write(NIGHTLY)
    applied(at)
    before = scripts(at)
    assert planned(at)[0] == 0
    assert "Pinned vllm/vllm-tpu:nightly" in applied(at)
    assert planned(at)[0] == 0
    at.write(NIGHTLY + "  labels: {team: search}\n")
    applied(at)
    assert scripts(at) == before
    at.write(NIGHTLY.replace("16384", "8192"))
    code, output = planned(at)
    digest = lock(at)["images"]["vllm/vllm-tpu:nightly"]
    assert code == 2
    assert f'+ serving.image_digest = "{digest}" # needs a restart (tpudeploy.lock.json:4)' in output
    applied(at)
    assert digest in scripts(at)[0]
    assert planned(at)[0] == 0


def test_what_a_run_began_unpinned_is_ended_so_without_a_new_approval(cli: Open) -> None:
    at = cli(trouble=[{**row, "times": 1} for row in SILENT])
    at.write(NIGHTLY)
    at.killed(60.0, "apply", "-auto-approve", "gemma.yaml")
    resumed = at.run("apply", "gemma.yaml")  # nobody is there to say yes
    assert resumed.code == 0, resumed.all
    assert "\n  vllm/vllm-tpu:nightly\n" in scripts(at)[0]


def test_a_run_that_was_killed_goes_on_with_what_it_pinned(cli: Open) -> None:
    at = cli(project=DAILY)
    at.write(NIGHTLY)
    at.killed(120.0, "apply", "-auto-approve", "gemma.yaml")
    at.clock.sleep(DAY)
    resumed = at.run("apply", "gemma.yaml")
    assert resumed.code == 0, resumed.all
    assert lock(at)["images"]["vllm/vllm-tpu:nightly"] in scripts(at)[0]


@pytest.mark.parametrize(
    "profile",
    [
        NIGHTLY.replace("vllm/vllm-tpu:nightly", f"vllm/vllm-tpu:nightly@{DIGEST}").replace(
            f"id: {MODEL}", f"id: {MODEL}\n  revision: {COMMIT}"
        ),
        NIGHTLY.replace("vllm/vllm-tpu:nightly", f"vllm/vllm-tpu@{DIGEST}").replace(MODEL, "gs://bucket/weights"),
        NIGHTLY.replace("vllm/vllm-tpu:nightly", f"vllm/vllm-tpu@{DIGEST}").replace(MODEL, "/mnt/weights"),
        NIGHTLY.replace("vllm/vllm-tpu:nightly", f"vllm/vllm-tpu@{DIGEST}").replace(
            "  max_model_len: 16384", "  env: {HF_ENDPOINT: https://hub.example}"
        ),
    ],
    ids=["in full", "a bucket", "a folder", "another hub"],
)
def test_what_cannot_move_is_not_asked_for(cli: Open, profile: str) -> None:
    at = cli()
    at.write(profile)
    assert "not pinned" not in planned(at)[1]
    assert look_ups(at) == []


def test_a_branch_is_pinned_as_such(cli: Open) -> None:
    at = cli()
    at.write(NIGHTLY.replace(f"id: {MODEL}", f"id: {MODEL}\n  revision: refs/pr/7"))
    applied(at)
    (name,) = lock(at)["models"]
    assert name == f"{MODEL}@refs/pr/7"
    assert f"/hub/api/models/{MODEL}/revision/refs%2Fpr%2F7" in look_ups(at)


def test_a_saved_plan_applies_the_image_that_it_showed(cli: Open) -> None:
    at = cli(project=DAILY)
    at.write(NIGHTLY)
    assert at.run("plan", "-out", "it.plan", "gemma.yaml").code == 0
    at.clock.sleep(DAY)
    assert at.run("apply", "it.plan").code == 0
    after = json.loads((at.folder / "it.plan").read_text("utf-8"))["resource_changes"][0]["change"]["after"]
    assert lock(at)["images"]["vllm/vllm-tpu:nightly"] == after["serving"]["image_digest"]
    assert after["serving"]["image_digest"] in scripts(at)[0]


def test_what_works_offline_reads_the_lock_file_and_asks_nobody(cli: Open) -> None:
    at = cli()
    at.write(NIGHTLY)
    assert "vllm/vllm-tpu:nightly vllm serve" in one_line(at.run("render", "gemma.yaml", "docker").out)
    assert "floating tag" in at.run("validate", "gemma.yaml").all
    hold(at)
    docker = at.run("render", "gemma.yaml", "docker").out
    assert f"vllm/vllm-tpu@{DIGEST} vllm serve {MODEL} --revision {COMMIT}" in one_line(docker)
    resolved = at.run("render", "gemma.yaml", "profile").out
    assert f'image: "vllm/vllm-tpu:nightly"  # {at.folder}/gemma.yaml:8, pinned to {DIGEST}' in resolved
    at.write(resolved, "resolved.yaml")
    assert at.run("render", "resolved.yaml", "docker").out == docker
    assert "floating tag" not in at.run("validate", "gemma.yaml").all, "it does no longer"
    assert at.run("size", "gemma.yaml").code == 0
    assert not at.emulator.requests


BROKEN: Mapping[str, tuple[Any, str, str]] = {
    "no JSON": ("<<<<<<< HEAD\n{", "it is not JSON", "TPU1002"),
    "a list": ("[]", "it names no format", "TPU1002"),
    "no format": ("{}", "it names no format", "TPU1002"),
    "a short digest": ({"images": {"a:b": "sha256:01"}}, "`a:b` is pinned to", "TPU1002"),
    "a branch": ({"models": {"a/b": "main"}}, "which is not a commit: 40 hexadecimal digits", "TPU1002"),
    "no mapping": ({"images": ["a:b"]}, "`images` is not a mapping", "TPU1002"),
    "both sides of a merge": (
        f'{{"format": "tpudeploy.lock/1", "models": {{"a/b": "{COMMIT}", "a/b": "{"0" * 40}"}}}}',
        "`a/b` is there twice, with different values",
        "TPU1002",
    ),
    "a newer format": ({"format": "tpudeploy.lock/2"}, "this tpudeploy reads `tpudeploy.lock/1`", "TPU1003"),
}


@pytest.mark.parametrize("what", BROKEN)
@pytest.mark.parametrize("command", ["plan", "apply", "validate", "render", "destroy"])
def test_a_lock_file_that_cannot_be_meant_is_refused_and_left_as_it_is(cli: Open, what: str, command: str) -> None:
    at = cli()
    at.write(NIGHTLY)
    text, words, code = BROKEN[what]
    path = at.folder / "tpudeploy.lock.json"
    path.write_text(text if isinstance(text, str) else json.dumps({"format": "tpudeploy.lock/1", **text}), "utf-8")
    before = path.read_bytes()
    result = at.run(command, "gemma.yaml", *(["docker"] if command == "render" else []))
    assert result.code == 1
    assert words in result.words
    assert code in result.all
    assert path.read_bytes() == before
    assert not at.requested_zones()


def test_what_is_not_known_and_whose_profile_is_gone_stays_in_the_file(cli: Open) -> None:
    at = cli()
    at.write(NIGHTLY)
    hold(at, images={"other:tag": DIGEST}, models={}, adapters={"a/lora": {"commit": COMMIT}})
    applied(at)
    pins = lock(at)
    assert pins["images"]["other:tag"] == DIGEST
    assert pins["adapters"] == {"a/lora": {"commit": COMMIT}}
    assert list(pins["images"]) == ["other:tag", "vllm/vllm-tpu:nightly"]


def test_destroying_neither_asks_nor_changes_a_pin(cli: Open) -> None:
    at = cli(project=DAILY)
    at.write(NIGHTLY)
    applied(at)
    pins, before = lock(at), len(look_ups(at))
    assert at.run("destroy", "-auto-approve", "gemma.yaml").code == 0
    assert lock(at) == pins
    assert len(look_ups(at)) == before


def test_several_profiles_of_one_image_ask_for_it_once_and_get_the_same(cli: Open) -> None:
    at = cli()
    for name in ("gemma", "other", "third"):
        at.write(NIGHTLY.replace("name: gemma", f"name: {name}"), f"{name}.yaml")
    assert at.run("apply", "-auto-approve", "gemma.yaml", "other.yaml", "third.yaml").code == 0
    assert len(look_ups(at)) == 2
    assert len(lock(at)["images"]) == 1
    assert all(lock(at)["images"]["vllm/vllm-tpu:nightly"] in script for script in scripts(at))


def test_writing_out_what_was_pinned_restarts_nothing(cli: Open) -> None:
    at = cli(nodes="real")
    at.write(NIGHTLY)
    applied(at)
    pins, slices = lock(at), dict(at.slices)
    digest, commit = pins["images"]["vllm/vllm-tpu:nightly"], pins["models"][MODEL]
    in_full = NIGHTLY.replace("vllm-tpu:nightly", f"vllm-tpu@{digest}").replace(MODEL, f"{MODEL}\n  revision: {commit}")
    at.write(in_full)
    code, output = planned(at)
    assert code == 2
    assert "will be updated in place" in output
    assert "needs a restart" not in output
    applied(at)
    assert dict(at.slices) == slices
    assert planned(at)[0] == 0


def test_a_profile_written_from_a_pinned_slice_restarts_nothing(cli: Open) -> None:
    at = cli()
    at.write(NIGHTLY)
    applied(at)
    (name,) = at.slices
    for file in (".tpudeploy/state/gemma.json", "gemma.yaml"):
        (at.folder / file).unlink()
    result = at.run("import", "gemma[0]", name, "-generate", "-foreign")
    assert result.code == 0, result.all
    assert "@sha256:" in (at.folder / "gemma.yaml").read_text("utf-8")
    assert planned(at)[0] == 0


def test_a_file_that_cannot_be_written_stops_no_apply(cli: Open) -> None:
    at = cli(project=DAILY)
    at.write(NIGHTLY)
    (at.folder / ".tpudeploy" / "pins.lock").mkdir(parents=True)
    assert "Warning: tpudeploy.lock.json cannot be written" in applied(at)
    at.clock.sleep(7 * DAY)
    assert planned(at)[0] == 0, "the slice remembers"


def test_what_the_emulator_pinned_is_pinned_for_nothing_real(cli: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    at = cli()
    at.write(NIGHTLY)
    hold(at, models={})
    applied(at)
    assert f"--revision {lock(at)['models'][MODEL]}" in at.run("render", "gemma.yaml", "docker").out
    monkeypatch.delenv("TPU_EMULATOR_HOST")
    rendered = at.run("render", "gemma.yaml", "docker").out
    assert DIGEST in rendered, "what a person committed counts everywhere"
    assert "--revision" not in rendered


def test_who_ignores_the_image_keeps_what_runs_whatever_is_pinned(cli: Open) -> None:
    at = cli(project={"pushes": {"vllm/vllm-tpu:nightly": DAY}})
    at.write(NIGHTLY + "lifecycle: {ignore_changes: [serving.image]}\n")
    applied(at)
    at.clock.sleep(DAY)
    code, output = planned(at, "-pin")
    assert "Pinned vllm/vllm-tpu:nightly" in output
    assert code == 0


@pytest.mark.parametrize("is_committed", [True, False])
def test_what_was_merged_is_the_image_that_was_approved_or_nothing(
    cli: Open, forge: GitHubApi, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, is_committed: bool
) -> None:
    at, here = cli(project=DAILY), Pipeline(forge, monkeypatch, tmp_path / "runner")
    at.write(NIGHTLY)
    if is_committed:
        hold(at)
    assert at.run("ci", "plan", "gemma.yaml").code == 0
    assert (DIGEST in here.comment()) is is_committed
    assert (at.folder / "tpudeploy.lock.json").exists() is is_committed, "a plan writes nothing"
    here.on_push()
    at.clock.sleep(DAY)
    merged = at.run("ci", "apply", "gemma.yaml")
    assert merged.code == (0 if is_committed else 11), merged.all
    assert all(DIGEST in script for script in scripts(at))
    assert bool(scripts(at)) is is_committed


def test_a_saved_plan_is_not_begun_beside_a_lock_file_that_cannot_be_read(cli: Open) -> None:
    at = cli()
    at.write(NIGHTLY)
    assert at.run("plan", "-out", "it.plan", "gemma.yaml").code == 0
    (at.folder / "tpudeploy.lock.json").write_text("<<<<<<<", "utf-8")
    refused = at.run("apply", "it.plan")
    assert (refused.code, "TPU1002" in refused.err) == (1, True)
    assert not (at.folder / ".tpudeploy" / "state" / "gemma.json").exists()


def test_doctor_looks_for_what_is_pinned(cli: Open) -> None:
    at = cli(project={"images": [f"vllm/vllm-tpu@{DIGEST}"]})
    at.write(NIGHTLY)
    hold(at)
    line = f"image vllm/vllm-tpu:nightly exists (pinned to {DIGEST[:19]})."
    assert line in at.run("doctor", "gemma.yaml").words
    result = cli(project={"images": ["vllm/vllm-tpu:nightly"]}).run("doctor", "gemma.yaml")
    assert f"vllm/vllm-tpu:nightly is pinned to {DIGEST}, which does not exist" in result.words
    assert "`tpudeploy plan --pin` looks up what it is now." in result.words


def test_no_proxy_stands_between_us_and_the_emulator(cli: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    at = cli()
    at.write(NIGHTLY)
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    assert "not pinned" not in planned(at)[1]


def test_of_two_that_pin_one_name_at_once_the_first_counts(tmp_path: Path) -> None:
    first, second = (PinFile(tmp_path, tmp_path / ".tpudeploy", emulated=False) for _ in range(2))
    name, other = Name(kind=PinKind.IMAGE, text="a:b"), Name(kind=PinKind.MODEL, text="a/b")

    def adding(*pins: Pin) -> Any:
        return lambda current: with_pins(current, new(current, pins))

    def overtaken(current: Pins) -> Pins:
        assert not (tmp_path / "tpudeploy.lock.json").exists()
        return with_pins(current, [Pin(name=name, to=DIGEST)])

    first.update(overtaken)
    second.update(adding(Pin(name=name, to=f"sha256:{'0' * 64}"), Pin(name=other, to=COMMIT)))
    current = first.read()
    assert current.target_of(name) == DIGEST
    assert current.target_of(other) == COMMIT


def test_plan_pin_looks_anew_shows_what_moved_and_whom_it_would_restart(cli: Open) -> None:
    at = cli(project=DAILY, nodes="real")
    at.write(NIGHTLY)
    at.write(PROFILE.replace("name: gemma", "name: other"), "other.yaml")
    assert at.run("apply", "-auto-approve", "gemma.yaml", "other.yaml").code == 0
    old = lock(at)
    same = at.run("plan", "-pin", "gemma.yaml")
    assert "No tag or revision has moved: the pins are unchanged." in same.err
    assert "No changes" in same.out
    at.clock.sleep(DAY)
    result = at.run("plan", "-pin", "-detailed-exitcode", "gemma.yaml", "other.yaml")
    now = lock(at)
    was, to = (pins["images"]["vllm/vllm-tpu:nightly"] for pins in (old, now))
    assert was != to
    assert result.code == 2
    assert f"Pinned vllm/vllm-tpu:nightly to {to}, was {was} (tpudeploy.lock.json)" in result.err
    assert f'~ serving.image_digest = "{was}" -> "{to}" # needs a restart (tpudeploy.lock.json:4)' in result.words
    assert "Plan: 0 to add, 0 to change, 2 to restart, 0 to destroy." in result.out, "both have the model"
    assert now["images"]["vllm/vllm-tpu:v0.32.0"] == old["images"]["vllm/vllm-tpu:v0.32.0"]
    assert was in "".join(scripts(at)), "a plan touches no slice"
    slices = dict(at.slices)
    assert at.run("apply", "-auto-approve", "gemma.yaml", "other.yaml").code == 0
    assert dict(at.slices) == slices
    assert {to in script for script in scripts(at)} == {True, False}
    assert planned(at)[0] == 0


def test_plan_pin_names_what_nothing_uses_any_more_and_leaves_it_to_the_person(cli: Open) -> None:
    at = cli()
    at.write(NIGHTLY)
    at.write(PROFILE.replace("name: gemma", "name: other"), "other.yaml")
    assert at.run("apply", "-auto-approve", "other.yaml").code == 0
    hold(at, images={**lock(at)["images"], "gone:tag": DIGEST})
    result = at.run("plan", "-pin", "gemma.yaml")
    assert "also has pins that neither these profiles nor any state uses: gone:tag." in result.err
    assert lock(at)["images"]["gone:tag"] == DIGEST
    assert "vllm/vllm-tpu:v0.32.0" in lock(at)["images"]


def test_plan_pin_keeps_what_nobody_tells_and_says_so(cli: Open) -> None:
    at = cli()
    at.write(NIGHTLY)
    hold(at)
    before = lock(at)
    for row in SILENT:
        at.emulator.script(row)
    result = at.run("plan", "-pin", "gemma.yaml")
    assert result.code == 0, result.all
    assert f"vllm/vllm-tpu:nightly stays pinned to {DIGEST}: registry-1.docker.io answered 503." in result.err
    assert f"{MODEL} stays pinned to {COMMIT}" in result.err
    assert lock(at) == before


def test_plan_pin_writes_before_anything_stands_and_apply_uses_it(cli: Open) -> None:
    at = cli(project=DAILY)
    at.write(NIGHTLY)
    result = at.run("plan", "-pin", "-json", "gemma.yaml")
    assert json.loads(result.out)["type"] == "plan"
    assert result.err.count("Pinned ") == 2
    pins = lock(at)
    at.clock.sleep(DAY)
    applied(at)
    releases = lock(at)["releases"]  # what the engine reported, which the tag does not tell
    assert lock(at) == {**pins, "releases": releases}
    assert pins["images"]["vllm/vllm-tpu:nightly"] in scripts(at)[0]


@pytest.mark.parametrize("option", ["-destroy", "-refresh-only"])
def test_pins_are_renewed_for_what_is_to_be_applied(cli: Open, option: str) -> None:
    at = cli()
    at.write(NIGHTLY)
    result = at.run("plan", "-pin", option, "gemma.yaml")
    assert result.code == 1
    assert "-pin works only with a plan of changes to apply." in result.err


FAMILY = "ubuntu-accel-2204-amd64-tpu-v5e-v5p-v6e"
WEEK = 7 * DAY


def machine_images(at: CommandLine) -> list[str]:
    """Return the images that the instances were made from."""
    bodies = [instance.body for instance in at.emulator._cloud.instances.values()]
    return [body["disks"][0]["initializeParams"]["sourceImage"].rpartition("global/images/")[2] for body in bodies]


def test_the_image_of_a_machine_is_what_its_family_meant_at_the_first_apply(cli: Open) -> None:
    at = cli()
    at.write(INSTANCE)
    code, before = planned(at)
    assert code == 2
    applied(at)
    (image,) = machine_images(at)
    assert image.startswith(f"{FAMILY}-v")
    assert lock(at)["machine_images"] == {FAMILY: image}
    assert f'+ tpu.machine_image = "{image}"' in before
    # A machine keeps its image: weeks later nothing changes, and a second slice boots the same one.
    at.clock.sleep(2 * WEEK)
    assert planned(at)[0] == 0
    request = json.loads(at.run("render", "gemma.yaml", "request").out)
    assert request["disks"][0]["initializeParams"]["sourceImage"].endswith(f"/global/images/{image}")
    assert f"--image={image}" in at.run("render", "gemma.yaml", "gcloud").out
    # A newer image is pinned on request, for machines that do not exist yet.
    pinned = at.run("plan", "-pin", "-detailed-exitcode", "gemma.yaml")
    assert pinned.code == 0, pinned.all
    newer = lock(at)["machine_images"][FAMILY]
    assert newer > image
    assert f"Pinned {FAMILY} to {newer}, was {image}" in pinned.all
    replaced = at.run("apply", "-auto-approve", "-replace", "gemma[0]", "gemma.yaml")
    assert replaced.code == 0, replaced.all
    assert f'tpu.machine_image = "{image}" -> "{newer}"' in replaced.words
    assert machine_images(at) == [newer]


def test_a_family_that_cannot_be_looked_up_is_a_warning_and_its_newest_image_is_used(cli: Open) -> None:
    at = cli(trouble=[{"fault": "iam-denied", "method": "compute.images.getFromFamily"}])
    at.write(INSTANCE)
    assert f"Warning: {FAMILY} is not pinned:" in applied(at)
    assert machine_images(at) == [f"family/{FAMILY}"]
    assert "machine_images" not in lock(at)


def test_an_image_that_google_has_deleted_is_named_with_what_to_do(cli: Open) -> None:
    at = cli()
    hold(at, machine_images={FAMILY: f"{FAMILY}-v20991231"})
    at.write(INSTANCE)
    stopped = at.run("apply", "-auto-approve", "gemma.yaml")
    assert stopped.code == 1
    assert "The referenced image resource cannot be found" in stopped.err
    assert "tpudeploy plan --pin" in stopped.err


def test_a_deployment_on_queued_resources_has_no_image_of_its_machine(cli: Open) -> None:
    at = cli()
    at.write()
    applied(at)
    assert "machine_images" not in lock(at)
    assert not [r for r in at.emulator.requests if "/images/" in r.path]


def test_with_either_api_only_an_instance_has_the_image(cli: Open) -> None:
    at = cli(trouble=[{"fault": "stockout", "method": "queuedResources.create"}])
    at.write(INSTANCE.replace("gce-instance", "auto"))
    applied(at)
    assert machine_images(at) == [lock(at)["machine_images"][FAMILY]]
    assert planned(at)[0] == 0
