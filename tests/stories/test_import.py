"""What somebody made by other means is taken into the state: every way to name it, and a profile written from it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import HAND_MADE, PROFILE, CommandLine, Open

FULL = f"projects/emulated/locations/us-east5-a/queuedResources/{HAND_MADE}"


def state_names(at: CommandLine) -> list[str]:
    return [attempt["name"] for record in at.state()["records"] for attempt in record["attempts"]]


@pytest.mark.parametrize("name", [FULL, f"emulated/us-east5-a/{HAND_MADE}", f"us-east5-a/{HAND_MADE}", HAND_MADE])
def test_it_can_be_named_as_terraform_names_it_and_the_plan_restarts_it_in_place(cli: Open, name: str) -> None:
    at = cli()
    at.make_by_hand()
    at.write()
    result = at.run("import", "gemma[0]", name)
    assert result.code == 0, result.all
    assert f"Imported to gemma[0]: {HAND_MADE} (us-east5-a, spot): $1.40/h, ACTIVE." in result.out
    assert "it will be restarted in place" in result.out
    assert state_names(at) == [HAND_MADE]
    planned = at.run("plan", "-detailed-exitcode", "gemma.yaml")
    assert planned.code == 2
    assert "gemma[0] will be restarted in place" in planned.out
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    assert at.slices == {HAND_MADE: "ACTIVE"}
    assert at.run("plan", "-detailed-exitcode", "gemma.yaml").code == 0
    assert at.run("destroy", "-auto-approve", "gemma.yaml").code == 0
    assert at.slices == {}


def test_what_was_imported_has_not_drifted(cli: Open) -> None:
    at = cli()
    at.make_by_hand(labels={"team": "search", "goog-made-by": "hand"}, tags=["web"], metadata={"a": "b"})
    profile = at.write()
    assert at.run("import", "gemma[0]", HAND_MADE).code == 0
    assert at.run("drift", profile).code == 0
    assert at.run("apply", "-auto-approve", profile).code == 0
    at.clock.sleep(3600)
    assert at.run("drift", profile).code == 0


def test_an_import_asks_google_for_nothing(cli: Open) -> None:
    at = cli()
    at.make_by_hand()
    at.write()
    before = len(at.emulator.requests)
    assert at.run("import", "gemma", HAND_MADE).code == 0
    changing = [r for r in at.emulator.requests[before:] if r.method != "GET" and "getGuestAttributes" not in r.path]
    assert changing == []


def test_a_slice_of_another_kind_than_the_profile_wants_is_planned_to_be_replaced(cli: Open) -> None:
    at = cli()
    at.make_by_hand(acceleratorType="v6e-4")
    at.write()
    assert at.run("import", "gemma[0]", HAND_MADE).code == 0
    planned = at.run("plan", "gemma.yaml")
    assert "gemma[0] must be replaced" in planned.out
    assert 'tpu.type = "v6e-4" -> "v6e-1"' in planned.words


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("gemma[0]", "nobody"), "There is no queued resource nobody in any zone of emulated"),
        (("gemma[0]", "us-east5-b/my-tpu"), "There is no queued resource my-tpu in us-east5-b of emulated"),
        (("gemma[0]", "a/b/c/d"), "`a/b/c/d` is not the name of a queued resource"),
        (("gemma[0]", "nowhere/my-tpu"), "`nowhere` is not a zone"),
        (("gemma[0]", "other-project/us-east5-a/my-tpu"), "There is no queued resource my-tpu"),
        (
            ("gemma[0]", "projects/emulated/zones/us-east5-a/instances/my-vm"),
            "There is no instance my-vm in us-east5-a",
        ),
        (("gemma[0]", "nobody", "-set", "placement.backend=auto"), "There is no queued resource or instance nobody in"),
        (("Gemma", HAND_MADE), "`Gemma` is not an address"),
        (("chat[0]", HAND_MADE), "There is no profile chat.yaml"),
        (("chat[0]", HAND_MADE, "gemma.yaml"), "gemma.yaml is the profile of gemma, not of chat"),
        (("gemma[0]", HAND_MADE, "-generate", "-model", "google/gemma-4-E2B-it"), "gemma.yaml exists"),
        (
            ("chat[0]", HAND_MADE, "-generate"),
            "The model of my-tpu is unknown: tpudeploy did not write its startup script",
        ),
    ],
)
def test_what_cannot_be_imported_is_said_and_leaves_nothing_behind(
    cli: Open, words: tuple[str, ...], message: str
) -> None:
    at = cli()
    at.make_by_hand()
    at.write()
    result = at.run("import", *words)
    assert result.code == 1
    assert message in result.words
    assert at.run("state", "list").out == ""
    assert not (at.folder / "chat.yaml").exists()
    assert (at.folder / "gemma.yaml").read_text("utf-8") == PROFILE


def test_a_tpu_vm_without_a_queued_resource_is_named_as_one(cli: Open) -> None:
    at = cli(trouble=[{"fault": "orphan"}])
    at.make_by_hand()
    at.delete_by_hand(HAND_MADE)
    at.clock.sleep(600)
    assert at.slices == {}
    at.write()
    for name in (HAND_MADE, f"us-east5-a/{HAND_MADE}"):
        result = at.run("import", "gemma[0]", name)
        assert result.code == 1
        assert "my-tpu in us-east5-a is a TPU VM, and no queued resource of this name exists" in result.words
    assert at.run("state", "list").out == ""


def test_one_name_in_two_zones_must_be_named_with_its_zone(cli: Open) -> None:
    at = cli()
    at.make_by_hand()
    at.make_by_hand(zone="us-east5-b")
    at.write()
    result = at.run("import", "gemma[0]", HAND_MADE)
    assert result.code == 1
    assert f"exists in several zones: emulated/us-east5-a/{HAND_MADE}, emulated/us-east5-b/{HAND_MADE}" in result.words
    assert at.run("import", "gemma[0]", f"us-east5-b/{HAND_MADE}").code == 0
    assert at.state()["records"][0]["attempts"][0]["zone"] == "us-east5-b"


def test_a_machine_of_another_name_or_several_are_not_taken_in(cli: Open) -> None:
    at = cli()
    at.make_by_hand()
    at.write()
    (slice_,) = at.emulator._cloud.slices.values()
    spec = slice_.body["tpu"]["nodeSpec"][0]
    for odd in ({"nodeId": "other"}, {"nodeId": None, "multiNodeParams": {"nodeCount": 2, "nodeIdPrefix": "n"}}):
        slice_.body = {**slice_.body, "tpu": {"nodeSpec": [{**spec, **odd}]}}
        result = at.run("import", "gemma[0]", HAND_MADE)
        assert (
            result.code,
            "tpudeploy manages only queued resources for one node of the same name" in result.words,
        ) == (
            1,
            True,
        ), result.all


def test_what_is_remembered_or_an_index_that_is_taken_is_refused(cli: Open) -> None:
    at = cli()
    assert at.run("apply", "-auto-approve", at.write()).code == 0
    (name,) = at.slices
    at.make_by_hand()
    imported = at.run("import", "gemma[0]", HAND_MADE)
    assert (imported.code, f"gemma[0] already has a slice: {name}" in imported.words) == (1, True)
    at.write(PROFILE.replace("name: gemma", "name: chat"), "chat.yaml")
    result = at.run("import", "chat[0]", name, "-foreign")
    assert (result.code, f"{name} is already tracked as gemma[0]" in result.words) == (1, True)


def test_what_another_lineage_holds_is_left_to_it_unless_the_person_says_so(cli: Open) -> None:
    at = cli()
    assert at.run("apply", "-auto-approve", at.write()).code == 0
    (name,) = at.slices
    assert at.run("state", "rm", "-auto-approve", "gemma").code == 0
    result = at.run("import", "gemma[0]", name)
    assert result.code == 1
    assert f"{name} belongs to another lineage ({name.split('-')[1]}, of gemma)" in result.words
    assert at.run("import", "gemma[0]", name, "-foreign").code == 0
    assert at.run("plan", "-detailed-exitcode", "gemma.yaml").code == 0


def test_what_was_forgotten_of_a_state_can_be_imported_back_at_any_index(cli: Open) -> None:
    at = cli()
    assert at.run("apply", "-auto-approve", at.write(PROFILE + "replicas: 2\n")).code == 0
    _, second = sorted(at.slices)
    assert at.run("state", "rm", "-auto-approve", "gemma[1]").code == 0
    assert at.run("import", "gemma[1]", second).code == 0
    assert at.run("plan", "-detailed-exitcode", "gemma.yaml").code == 0


def test_a_request_that_waits_is_taken_in_and_keeps_its_place(cli: Open) -> None:
    at = cli(timings={"waiting": 3600.0})
    at.make_by_hand()
    at.write()
    result = at.run("import", "gemma[0]", HAND_MADE)
    assert result.code == 0, result.all
    assert "if granted, $1.40/h" in result.out
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    assert at.slices == {HAND_MADE: "ACTIVE"}


def test_what_is_dead_or_going_is_not_taken_in(cli: Open) -> None:
    at = cli()
    at.make_by_hand()
    at.write()
    at.emulator.preempt(HAND_MADE)
    at.clock.sleep(240)
    result = at.run("import", "gemma[0]", HAND_MADE)
    assert (result.code, "my-tpu is SUSPENDED, so it will never serve" in result.words) == (1, True), result.all


SERVED = {
    "plain": PROFILE,
    "rich": PROFILE.replace(
        "  max_model_len: 16384\n",
        """\
  max_model_len: 8192
  hbm_utilization: 0.92
  kv_cache_dtype: fp8
  padding_gap: 512
  port: 9000
  shm_size: 10gb
  container_name: mine
  volumes: {/dev/shm: /dev/shm}
  env: {GREETING: "it's $5, or ) more", HF_HOME: /dev/shm}
  setup: ["pip install 'a b'", "echo )"]
  args:
    enable_auto_tool_choice: true
    tool_call_parser: gemma4
    limit_mm_per_prompt: {image: 4, audio: 1}
    enable_prefix_caching: false
""",
    ).replace("hf-token", "projects/other/secrets/t/versions/3")
    + "  labels: {team: search}\n  network: {tags: [vllm]}\n  service_account: vllm@emulated.iam.gserviceaccount.com\n",
}


@pytest.mark.parametrize("kind", SERVED)
def test_a_profile_written_from_a_slice_of_ours_needs_no_change(cli: Open, tmp_path: Path, kind: str) -> None:
    at = cli()
    assert at.run("apply", "-auto-approve", at.write(SERVED[kind])).code == 0
    slices = dict(at.slices)
    (name,) = slices
    (at.folder / "gemma.yaml").unlink()
    assert at.run("state", "rm", "-auto-approve", "gemma").code == 0
    result = at.run("import", "gemma[0]", name, "-generate", "-foreign")
    assert result.code == 0, result.all
    assert "Wrote gemma.yaml. Imported to gemma[0]" in result.out
    planned = at.run("plan", "-detailed-exitcode", "gemma.yaml")
    assert planned.code == 0, planned.out + (at.folder / "gemma.yaml").read_text("utf-8")
    assert at.slices == slices


def test_a_profile_written_from_a_strangers_slice_says_what_is_known_of_it(cli: Open) -> None:
    at = cli()
    at.make_by_hand(labels={"team": "search"}, tags=["vllm"], bootDiskConfig={"diskSizeGb": "300"})
    result = at.run("import", "chat[1]", HAND_MADE, "-generate", "-model", "google/gemma-4-E2B-it")
    assert result.code == 0, result.all
    text = (at.folder / "chat.yaml").read_text("utf-8")
    for line in (
        'name: "chat"\n',
        'model:\n  id: "google/gemma-4-E2B-it"\n',
        'tpu:\n  type: "v6e-1"\n  boot_disk_size: "300GiB"\n',
        '  zones: ["us-east5-a"]\n  provisioning: ["spot"]\n',
        '  network: {"tags": ["vllm"]}\n',
        '  labels: {"team": "search"}\n',
        "replicas: 2\n",
    ):
        assert line in text, text
    planned = at.run("plan", "chat.yaml")
    assert "chat[0] will be created" in planned.out
    assert "chat[1] will be restarted in place" in planned.out


@pytest.mark.parametrize(
    "change",
    [
        ("docker_run=(", "docker_run=(podman "),
        ("  vllm\n  serve\n", "  sleep\n  1\n"),
        ("docker_run=(", "docker_run=('"),
    ],
    ids=["another command", "no server", "a quote that never ends"],
)
def test_a_script_that_somebody_changed_is_not_guessed_at(cli: Open, change: tuple[str, str]) -> None:
    at = cli()
    assert at.run("apply", "-auto-approve", at.write()).code == 0
    (name,) = at.slices
    (at.folder / "gemma.yaml").unlink()
    assert at.run("state", "rm", "-auto-approve", "gemma").code == 0
    for node in at.emulator._cloud.nodes.values():
        before = node.spec["metadata"]
        node.spec = {**node.spec, "metadata": {**before, "startup-script": before["startup-script"].replace(*change)}}
    result = at.run("import", "gemma[0]", name, "-generate", "-foreign")
    assert (result.code, "The model of " + name + " is unknown" in result.words) == (1, True), result.all


def test_json_tells_what_was_taken_in(cli: Open) -> None:
    at = cli()
    at.make_by_hand()
    at.write()
    last = json.loads(at.run("import", "gemma[0]", HAND_MADE, "-json").out)
    assert (last["format"], last["address"], last["slice"]["name"]) == ("tpudeploy.import/1", "gemma[0]", HAND_MADE)
