"""An upgrade loses nothing: what an earlier version wrote is read, shown and continued by this one."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest
from command_line import INSTANCE, PROFILE, CommandLine, Open
from googleapiclient.discovery import build

WRITTEN = Path(__file__).parent / "data" / "format_2"
OF_ITS_TIME = Path(__file__).parent / "data" / "format_2_of_its_time"
NAMES = ["batch", "gemma4-e2b", "search"]


@pytest.fixture
def upgraded(cli: Open) -> CommandLine:
    """A folder that an earlier version worked in, before a cloud that holds what its states name."""
    at = cli()
    shutil.copytree(WRITTEN, at.folder, dirs_exist_ok=True)
    (at.folder / "dot-tpudeploy").rename(at.folder / ".tpudeploy")
    for name in NAMES:
        for record in at.state(name)["records"]:
            for attempt in record["attempts"]:
                create(at, attempt["name"], attempt["zone"], is_spot=attempt["provisioning"] == "spot")
    at.clock.sleep(600)
    return at


def create(at: CommandLine, name: str, zone: str, *, is_spot: bool) -> None:
    """A queued resource by this name, as the earlier version made it."""
    where = f"projects/emulated/locations/{zone}"
    node = {
        "acceleratorType": "v6e-1",
        "runtimeVersion": "v2-alpha-tpuv6e",
        "networkConfig": {"network": "default", "enableExternalIps": True},
    }
    body = {
        "tpu": {"nodeSpec": [{"parent": where, "nodeId": name, "node": node}]},
        "provisioningModel": "SPOT" if is_spot else "FLEX_START",
        **({} if is_spot else {"runDuration": {"terminationTime": "2099-01-01T00:00:00Z"}}),
    }
    endpoint = {"api_endpoint": f"http://{at.emulator.host}"}
    with build("tpu", "v2alpha1", client_options=endpoint, static_discovery=True, developerKey="x") as service:
        calls = service.projects().locations().queuedResources()
        calls.create(parent=where, queuedResourceId=name, body=body).execute()


def test_the_states_are_listed_and_shown(upgraded: CommandLine) -> None:
    assert upgraded.run("state", "list").out.split() == [f"{name}[0]" for name in NAMES]
    for name in NAMES:
        result = upgraded.run("state", "show", f"{name}[0]")
        assert result.code == 0, result.all
        assert "v6e-1" in result.out
    assert upgraded.run("state", "history", "batch").code == 0


def test_an_apply_continues_and_buys_nothing(upgraded: CommandLine) -> None:
    before = set(upgraded.slices)
    profiles = [f"{name}.yaml" for name in NAMES]
    applied = upgraded.run("apply", "-auto-approve", *profiles)
    assert applied.code == 0, applied.all
    assert set(upgraded.slices) == before
    planned = upgraded.run("plan", "-detailed-exitcode", *profiles)
    assert planned.code == 0, planned.all


def test_a_destroy_leaves_nothing(upgraded: CommandLine) -> None:
    destroyed = upgraded.run("destroy", "-auto-approve", *(f"{name}.yaml" for name in NAMES))
    assert destroyed.code == 0, destroyed.all
    assert upgraded.slices == {}


def test_a_state_that_an_earlier_tree_wrote_itself_is_shown_continued_and_destroyed(cli: Open) -> None:
    at = cli()
    shutil.copytree(OF_ITS_TIME, at.folder, dirs_exist_ok=True)
    (at.folder / "dot-tpudeploy").rename(at.folder / ".tpudeploy")
    (name,) = [attempt["name"] for record in at.state()["records"] for attempt in record["attempts"]]
    create(at, name, "us-east5-a", is_spot=True)
    at.clock.sleep(600)
    assert at.run("state", "list").out.split() == ["gemma[0]"]
    assert name in at.run("state", "show", "gemma[0]").out
    assert "6fde4c80" in at.run("state", "pull", "gemma").out
    assert at.run("state", "history", "gemma").code == 0
    assert at.run("status", "gemma.yaml").code in {0, 1}
    applied = at.run("apply", "-auto-approve", "gemma.yaml")
    assert applied.code == 0, applied.all
    assert set(at.slices) == {name}
    assert "No changes." in at.run("plan", "gemma.yaml").words
    (at.folder / "gemma.yaml").unlink()
    destroyed = at.run("destroy", "-auto-approve", "gemma")
    assert destroyed.code == 0, destroyed.all
    assert at.slices == {}


def test_a_saved_plan_is_shown_and_done(upgraded: CommandLine) -> None:
    before = set(upgraded.slices)
    assert "max_num_seqs" in upgraded.run("show", "create.plan").out
    applied = upgraded.run("apply", "create.plan")
    assert applied.code == 0, applied.all
    assert set(upgraded.slices) == before


def test_a_saved_plan_whose_slice_is_another_one_is_shown_and_refused(upgraded: CommandLine) -> None:
    assert "max_num_seqs" in upgraded.run("show", "change.plan").out
    applied = upgraded.run("apply", "change.plan")
    assert applied.code == 11
    assert "gemma4-e2b-b8daf7c4-0-2 changed after the plan was made" in applied.err


def test_its_measurements_are_listed_shown_and_compared(upgraded: CommandLine) -> None:
    runs = sorted((WRITTEN / "dot-tpudeploy" / "runs").glob("*.json"))
    names = [json.loads(path.read_text(encoding="utf-8"))["id"] for path in runs]
    listed = upgraded.run("bench", "list")
    for name in names:
        assert name in listed.out
        assert upgraded.run("bench", "show", name).code == 0
    (comparison,) = (WRITTEN / "dot-tpudeploy" / "runs" / "ab").glob("*.json")
    compared = upgraded.run("compare", comparison.stem)
    assert compared.code == 0, compared.all
    assert "serving.max_num_seqs" in compared.out


def test_the_pins_count_and_the_history_of_zones_is_used(upgraded: CommandLine) -> None:
    pins = json.loads((WRITTEN / "tpudeploy.lock.json").read_text(encoding="utf-8"))
    (digest,) = pins["images"].values()
    assert digest in upgraded.run("render", "search.yaml", "startup-script").out
    zones = upgraded.run("zones", "search.yaml")
    assert zones.code == 0, zones.all


def test_a_default_that_an_earlier_version_wrote_out_is_no_change(cli: Open) -> None:
    at = cli(nodes="simulated")
    text = PROFILE.replace("  max_parallel_requests: 1\n", "")
    profile = at.write(text)
    assert at.run("apply", "-auto-approve", profile).code == 0
    path = at.folder / ".tpudeploy" / "state" / "gemma.json"
    state = json.loads(path.read_text())
    spec = state["records"][0]["attempts"][0]["spec"]
    assert "placement.max_parallel_requests" not in spec
    spec["placement.max_parallel_requests"] = 4
    path.write_text(json.dumps(state))
    plan = at.run("plan", profile)
    assert "No changes." in plan.words
    assert "max_parallel_requests" not in plan.words
    assert at.run("drift", profile).code == 0
    at.write(text + "  max_parallel_requests: 2\n")
    assert "placement.max_parallel_requests" in at.run("plan", profile).words


def test_a_saved_plan_with_a_former_name_of_a_slice_is_refused_with_both_names(cli: Open) -> None:
    at = cli(nodes="simulated")
    at.write(
        INSTANCE.replace("v6e-1", "tpu7x-2x2x2").replace("us-east5-a, us-east5-b, europe-west4-a", "us-central1-c")
    )
    at.run("plan", "-out", "new.plan", "gemma.yaml")
    document = json.loads((at.folder / "new.plan").read_text(encoding="utf-8").replace("tpu7x-2x2x2", "tpu7x-8"))
    saved = json.dumps(document["saved"], sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    document["digest"] = f"sha256:{hashlib.sha256(saved.encode()).hexdigest()}"
    (at.folder / "old.plan").write_text(json.dumps(document, indent=1), encoding="utf-8")
    for command in ("show", "apply"):
        refused = at.run(command, "old.plan")
        assert refused.code == 1, refused.all
        assert "an earlier version saved it, and called tpu7x-2x2x2 by the name tpu7x-8" in refused.words
        assert "Make it again: `tpudeploy plan -out FILE`" in refused.words
    assert not at.slices


def test_a_state_of_format_1_is_refused_left_alone_and_says_what_to_do(upgraded: CommandLine) -> None:
    file = upgraded.folder / ".tpudeploy" / "state" / "search.json"
    text = file.read_text(encoding="utf-8").replace("tpudeploy.state/2", "tpudeploy.state/1")
    file.write_text(text, encoding="utf-8")
    for line in (["plan", "search.yaml"], ["state", "show", "search[0]"], ["apply", "-auto-approve", "search.yaml"]):
        refused = upgraded.run(*line)
        assert refused.code == 1, refused.all
        assert "its format, `tpudeploy.state/1`, was that of early development versions" in " ".join(
            refused.err.split()
        )
        assert "tpudeploy import" in refused.err
    assert file.read_text(encoding="utf-8") == text
