"""The state in a person's hands: looked at, taken out, put back, moved and forgotten; no slice is touched by it."""

from __future__ import annotations

import io
import json
import re

import pytest
from command_line import PROFILE, CommandLine, Killed, Open
from goldens import assert_golden

from tpudeploy import Workspace
from tpudeploy.adapters.state.local import LocalState
from tpudeploy.domain.state import State

TWO = PROFILE + "replicas: 2\n"
BUCKET = ("--backend", "gs://states/team")


@pytest.fixture
def at(cli: Open, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    """Somebody whose gemma serves."""
    monkeypatch.setenv("USER", "ada")
    at = cli()
    assert at.run("apply", "-auto-approve", at.write()).code == 0
    return at


def changing(at: CommandLine) -> list[str]:
    """Requests that did anything to anything of Cloud TPU's."""
    return [r.path for r in at.emulator.requests if r.method != "GET" and "/storage/" not in r.path]


def test_list_names_every_address_that_is_remembered_and_show_tells_all_of_one(at: CommandLine) -> None:
    other = at.write(TWO.replace("name: gemma", "name: other"), "other.yaml")
    assert at.run("apply", "-auto-approve", other).code == 0
    assert at.run("state", "list").out == "gemma[0]\nother[0]\nother[1]\n"
    assert at.run("state", "list", "other").out == "other[0]\nother[1]\n"
    assert at.run("state", "list", "other[1]", "gemma").out == "gemma[0]\nother[1]\n"
    (name,) = (name for name in at.slices if name.startswith("gemma"))
    listed = json.loads(at.run("state", "list", "-json", "gemma").out)
    assert listed == {"format": "tpudeploy.state-list/1", "resources": [{"address": "gemma[0]", "slices": [name]}]}
    result = at.run("state", "show", "gemma[0]")
    assert f'# gemma[0] slice "{name}" {{ ' in result.words
    assert 'zone = "us-east5-a"' in result.words
    assert 'asked_at = "2026-' in result.words
    assert "serving.max_model_len = 16384" in result.words
    assert at.run("state", "show", "other").out.count("slice ") == 2
    tree = json.loads(at.run("state", "show", "-json", "gemma[0]").out)
    assert (tree["format"], tree["serial"]) == ("tpudeploy.state-show/1", at.state()["serial"])
    (attempt,), (stored,) = tree["resources"][0]["attempts"], at.state()["records"][0]["attempts"]
    for key in ("name", "zone", "asked_at", "operation", "spec"):
        assert attempt[key] == stored[key]
    assert (attempt["served"], attempt["granted_at"]) == (True, stored["life"]["granted_at"])
    assert (stored["life"]["state"], attempt["booted"]) == ("serving", stored["boot"]["server"])


def test_where_nothing_is_remembered_list_is_empty_and_show_says_so(cli: Open) -> None:
    at = cli()
    result = at.run("state", "list")
    assert (result.code, result.all) == (0, "")
    assert json.loads(at.run("state", "list", "-json").out)["resources"] == []
    for words in (("show", "gemma"), ("pull", "gemma"), ("rm", "gemma", "-auto-approve"), ("history", "gemma")):
        result = at.run("state", *words)
        assert (result.code, "gemma has no state here" in result.err) == (1, True), result.all


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("lst",), "has no verb `lst`. Did you mean `list`?"),
        ((), "`tpudeploy state` needs a verb. There are: list, show, mv,"),
        (("show",), "The following arguments are required: ADDR."),
        (("mv", "gemma"), "The following arguments are required: DST. Run `tpudeploy state mv --help`"),
        (("pull", "gemma", "other"), "`tpudeploy state pull` takes no argument `other`."),
        (("show", "gemma[x]"), "`gemma[x]` is not an address; write NAME, or NAME[INDEX]"),
        (("show", "gemma[7]"), "No state here tracks gemma[7]. [TPU4000] There are: gemma[0]."),
        (("list", "nobody"), "No state here tracks nobody"),
        (("list", "gema"), "No state here tracks gema. [TPU4000] Did you mean `gemma`?"),
        (("pull", "gema"), "gema has no state here. [TPU4000] Did you mean `gemma`?"),
        (("list", "-force"), "`tpudeploy state list` has no option `--force`."),
        (("pull", "gemma[0]"), "`gemma[0]` is one replica"),
        (("pull", "gemma", "-serial", "99"), "No state of gemma with the serial 99 is kept"),
        (("history", "nobody"), "nobody has no state here, and no earlier state is kept"),
        (("push", "nowhere.json"), "nowhere.json cannot be read"),
    ],
)
def test_what_cannot_be_meant_is_a_clear_error_and_changes_nothing(
    at: CommandLine, words: tuple[str, ...], message: str
) -> None:
    before = at.state()
    result = at.run("state", *words)
    assert (result.code, result.out) == (1, "")
    assert message in result.words
    assert at.state() == before


def test_a_variable_for_one_verb_is_no_error_to_another(at: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TPUDEPLOY_AUTO_APPROVE", "1")
    assert at.run("state", "list").code == 0


def test_pull_prints_what_lies_there_and_history_who_wrote_it(at: CommandLine) -> None:
    assert json.loads(at.run("state", "pull").out) == at.state()
    assert at.run("state", "pull", "gemma").out == (at.folder / ".tpudeploy/state/gemma.json").read_text("utf-8")
    assert at.run("destroy", "-auto-approve", "gemma.yaml").code == 0
    document = json.loads(at.run("state", "history", "-json").out)
    assert document["format"] == "tpudeploy.state-history/1"
    serials = [row["serial"] for row in document["states"]]
    assert serials == list(range(at.state()["serial"], at.state()["serial"] - 11, -1))
    assert [row["is_current"] for row in document["states"]] == [True, *[False] * 10]
    operations = [row["written"]["operation"] for row in document["states"]]
    assert operations[0] == "finish"
    assert {"apply", "destroy"} <= set(operations)
    assert all(row["written"]["by"].startswith("ada@") for row in document["states"])
    text = at.run("state", "history", "gemma").out.splitlines()
    assert text[0].split() == ["SERIAL", "WRITTEN", "BY", "IN", "SLICES"]
    assert text[1].split()[:2] == [str(serials[0]), "now"]
    assert text[1].split()[-1] == "none"
    earlier = json.loads(at.run("state", "pull", "-serial", str(serials[-1])).out)
    assert (earlier["serial"], earlier["records"][0]["attempts"] != []) == (serials[-1], True)


@pytest.mark.parametrize("versioned", [True, False])
def test_in_a_bucket_history_is_what_its_versioning_keeps(cli: Open, *, versioned: bool) -> None:
    at = cli(versioned_buckets=["states"] if versioned else [])
    assert at.run("apply", "-auto-approve", at.write(), *BUCKET).code == 0
    now = json.loads(at.run("state", "pull", *BUCKET).out)
    result = at.run("state", "history", *BUCKET)
    serials = [int(line.split()[0]) for line in result.out.splitlines()[1:]]
    assert serials == (list(range(now["serial"], 0, -1)) if versioned else [now["serial"]])
    assert ("object versioning" in result.err) != versioned
    if versioned:
        assert json.loads(at.run("state", "pull", "-serial", "1", *BUCKET).out)["serial"] == 1


def test_looking_sends_nothing_to_google(at: CommandLine) -> None:
    before = len(at.emulator.requests)
    for words in (("list",), ("show", "gemma"), ("pull",), ("history",)):
        assert at.run("state", *words).code == 0
    assert len(at.emulator.requests) == before


def test_a_slice_is_forgotten_only_after_a_yes_and_runs_on(at: CommandLine) -> None:
    (name,) = at.slices
    requests = changing(at)
    refused = at.run("state", "rm", "gemma[0]")
    assert refused.code == 1
    assert "Approval needs an interactive terminal" in refused.err
    assert f"gemma[0]: {name} (us-east5-a, spot): $1.40/h" in refused.out
    dry = at.run("state", "rm", "-dry-run", "gemma")
    assert (dry.code, dry.out) == (0, refused.out)
    assert at.run("state", "list").out == "gemma[0]\n"
    result = at.run("state", "rm", "-auto-approve", "gemma[0]")
    assert result.code == 0
    assert "Removed 1 slice of gemma from the state. gemma has no state any more" in result.words
    assert at.run("state", "list").out == ""
    assert changing(at) == requests
    assert at.slices == {name: "ACTIVE"}
    assert at.run("gc", "-auto-approve").code == 0
    assert at.slices == {name: "ACTIVE"}
    stopped = at.run("plan", "gemma.yaml")
    assert (stopped.code, "that no state here tracks" in stopped.err) == (13, True)


def test_what_was_forgotten_can_be_remembered_again(at: CommandLine) -> None:
    before = at.run("state", "pull").out
    serial = at.state()["serial"]
    assert at.run("state", "rm", "-auto-approve", "gemma").code == 0
    pulled = at.run("state", "pull", "-serial", str(serial), "gemma").out
    assert pulled == before
    at.write(pulled, "kept.json")
    assert at.run("state", "push", "kept.json").code == 0
    assert at.run("plan", "-detailed-exitcode", "gemma.yaml").code == 0


def test_one_of_two_replicas_is_forgotten_and_the_other_is_not(at: CommandLine) -> None:
    at.write(TWO)
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    first, second = sorted(at.slices)
    result = at.run("state", "rm", "-auto-approve", "gemma[1]", "gemma[1]")
    assert result.code == 0
    assert "Removed 1 slice of gemma from the state. `tpudeploy gc` would delete them" in result.words
    assert at.run("state", "list").out == "gemma[0]\n"
    assert f"- {second}" in at.run("gc").out
    assert sorted(at.slices) == [first, second]


@pytest.mark.parametrize("words", [("rm", "-auto-approve", "gemma"), ("mv", "gemma", "chat")])
def test_what_a_run_has_begun_is_not_moved_away_from_under_it_unasked(cli: Open, words: tuple[str, ...]) -> None:
    at = cli(timings={"waiting": 7200.0})
    assert at.run("apply", "-auto-approve", "-timeout", "5m", at.write()).code == 12
    result = at.run("state", *words)
    assert result.code == 1
    assert " began on gemma has not ended." in result.err
    assert at.run("state", "list").out == "gemma[0]\n"
    assert at.run("state", *words, "-force").code == 0
    assert at.run("state", "list", "gemma").code == 1


@pytest.mark.parametrize("deed", ["move", "forget"])
def test_a_run_whose_state_is_taken_away_by_force_stops_and_buys_nothing_more(cli: Open, deed: str) -> None:
    at = cli(timings={"waiting": 3600.0})
    at.write()
    began = at.clock.now()

    def take_away() -> None:
        if at.clock.now() > began + 600:
            at.clock.on_advance.remove(take_away)
            with Workspace.open(at.folder, clock=at.clock) as workspace:
                if deed == "move":
                    workspace.state_mv("gemma", "chat", force=True)
                else:
                    workspace.state_rm("gemma", force=True)

    at.clock.on_advance.append(take_away)
    result = at.run("apply", "-auto-approve", "gemma.yaml")
    assert result.code == 11, result.all
    assert "The state of gemma is no longer the one that this run began with" in result.err
    assert at.requested_zones() == ["us-east5-a"]
    assert at.run("state", "list").out == ("chat[0]\n" if deed == "move" else "")


@pytest.mark.parametrize("where", [(), BUCKET], ids=["folder", "bucket"])
def test_a_renamed_deployment_keeps_its_slice_its_lineage_and_its_endpoint(cli: Open, where: tuple[str, ...]) -> None:
    at = cli()
    assert at.run("apply", "-auto-approve", at.write(), *where).code == 0
    slices, output = dict(at.slices), at.run("output", "gemma", *where).out
    before = json.loads(at.run("state", "pull", "gemma", *where).out)
    result = at.run("state", "mv", "gemma", "chat", *where)
    assert (result.code, result.out) == (0, "Moved gemma to chat.\n"), result.err
    assert "write `name: chat` into the profile" in result.words
    after = json.loads(at.run("state", "pull", "chat", *where).out)
    assert (after["lineage"], after["records"]) == (before["lineage"], before["records"])
    assert after["serial"] == before["serial"] + 1
    assert at.run("state", "list", *where).out == "chat[0]\n"
    assert at.run("output", "chat", *where).out == output
    assert at.run("output", "gemma", *where).code == 1
    at.write(PROFILE.replace("name: gemma", "name: chat"))
    assert at.run("plan", "-detailed-exitcode", "gemma.yaml", *where).code == 0
    assert at.slices == slices


def test_a_new_profile_under_the_old_name_buys_its_own_and_neither_is_garbage(at: CommandLine) -> None:
    (moved,) = at.slices
    assert at.run("state", "mv", "gemma", "chat").code == 0
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    assert len(at.slices) == 2
    for words in (("gemma.yaml",), ()):
        result = at.run("gc", "-foreign", "-auto-approve", *words)
        assert (result.code, "Nothing to remove" in result.out) == (0, True), result.all
    assert moved in at.slices


def test_what_a_renamed_deployment_left_over_is_still_found_as_its_own(at: CommandLine) -> None:
    at.write(TWO)
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    first, second = sorted(at.slices)
    assert at.run("state", "rm", "-auto-approve", "gemma[1]").code == 0
    assert at.run("state", "mv", "gemma", "chat").code == 0
    removed = at.run("gc", "-auto-approve")
    assert removed.code == 0, removed.all
    assert "Orphaned" in removed.out
    assert list(at.slices) == [first]
    assert second not in at.slices


def test_a_renamed_profile_restarts_nothing_and_its_container_is_renamed_by_the_next_change(at: CommandLine) -> None:
    slices, renamed = dict(at.slices), PROFILE.replace("name: gemma", "name: chat")
    patches = len(_patches(at))
    assert at.run("state", "mv", "gemma", "chat").code == 0
    at.write(renamed)
    assert at.run("plan", "-detailed-exitcode", "gemma.yaml").code == 0
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    at.clock.sleep(3600)
    assert at.run("drift", "gemma.yaml").code == 0
    assert len(_patches(at)) == patches
    at.write(renamed.replace("16384", "8192"))
    assert 'serving.container_name = "gemma" -> "chat"' in at.run("plan", "gemma.yaml").words
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    assert at.slices == slices
    assert at.run("plan", "-detailed-exitcode", "gemma.yaml").code == 0


def test_a_container_that_its_profile_names_is_renamed_at_once(at: CommandLine) -> None:
    at.write(PROFILE.replace("  max_model", "  container_name: chat\n  max_model"))
    assert "1 to restart" in at.run("plan", "-out", "it.plan", "gemma.yaml").out
    assert at.run("apply", "it.plan").code == 0
    assert at.run("plan", "-detailed-exitcode", "gemma.yaml").code == 0


def test_a_slice_is_moved_to_another_index_and_a_smaller_profile_keeps_it(at: CommandLine) -> None:
    at.write(TWO)
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    first, second = sorted(at.slices)
    result = at.run("state", "mv", "gemma[1]", "gemma[0]")
    assert (result.code, f"gemma[0] already has a slice: {first}" in result.err) == (1, True)
    assert at.run("state", "rm", "-auto-approve", "gemma[0]").code == 0
    assert at.run("state", "mv", "gemma[1]", "gemma[0]").out == "Moved gemma[1] to gemma[0].\n"
    at.write()
    assert at.run("plan", "-detailed-exitcode", "gemma.yaml").code == 0
    assert f'slice "{second}"' in at.run("state", "show", "gemma[0]").out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("gemma", "gemma"), "gemma and gemma are the same address"),
        (("gemma", "chat[0]"), "gemma and chat[0] are not the same kind of address"),
        (("gemma[0]", "chat[0]"), "A slice cannot move to another deployment"),
        (("gemma", "other"), "other has slices of its own: other-"),
        (("nobody", "chat"), "nobody has no state here"),
        (("gemma[5]", "gemma[1]"), "No state here tracks gemma[5]"),
    ],
)
def test_a_move_that_cannot_be_changes_nothing(at: CommandLine, words: tuple[str, ...], message: str) -> None:
    other = at.write(PROFILE.replace("name: gemma", "name: other"), "other.yaml")
    assert at.run("apply", "-auto-approve", other).code == 0
    before = (at.state(), at.state("other"))
    result = at.run("state", "mv", *words)
    assert result.code == 1
    assert message in result.words
    assert (at.state(), at.state("other")) == before
    assert at.run("state", "list").out == "gemma[0]\nother[0]\n"


def test_a_name_whose_slices_are_gone_can_be_moved_to(at: CommandLine) -> None:
    other = at.write(PROFILE.replace("name: gemma", "name: other"), "other.yaml")
    assert at.run("apply", "-auto-approve", other).code == 0
    assert at.run("destroy", "-auto-approve", other).code == 0
    assert at.run("state", "mv", "gemma", "other").code == 0
    assert at.run("state", "list").out == "other[0]\n"


def test_a_pushed_state_must_be_later_and_of_the_same_lineage(at: CommandLine) -> None:
    now = at.state()
    older = {**now, "serial": now["serial"] - 1}
    alike = {**now, "next_attempt": 7}
    foreign = {**now, "lineage": "f" * 32, "serial": now["serial"] + 5}
    for tree, message in (
        (older, "which is older than"),
        (alike, "which is no newer than"),
        (foreign, "another lineage"),
    ):
        at.write(json.dumps(tree), "given.json")
        result = at.run("state", "push", "given.json")
        assert (result.code, message in result.words, "With -force" in result.words) == (1, True, True), result.all
        assert at.state() == now
    at.write(json.dumps(now), "given.json")
    assert "is already the same" in at.run("state", "push", "given.json").out
    at.write(json.dumps({**now, "serial": now["serial"] + 1}), "given.json")
    assert at.run("state", "push", "given.json").code == 0
    assert at.state()["serial"] == now["serial"] + 1


def test_a_state_of_before_which_does_not_say_who_wrote_it_is_read_all_the_same(at: CommandLine) -> None:
    before = {key: value for key, value in at.state().items() if key != "written"}
    (at.folder / ".tpudeploy/state/gemma.json").write_text(json.dumps(before), "utf-8")
    newest = at.run("state", "history").out.splitlines()[1].split()
    assert newest[:5] == [str(before["serial"]), "now", "unknown", "unknown", "unknown"]
    assert at.run("plan", "-detailed-exitcode", "gemma.yaml").code == 0
    assert at.run("state", "mv", "gemma", "chat").code == 0


def test_a_forced_state_says_what_it_forgets_and_gives_no_name_twice(at: CommandLine) -> None:
    (name,) = at.slices
    now = at.state()
    empty = {**now, "serial": 1, "next_attempt": 0, "records": []}
    at.write(json.dumps(empty), "given.json")
    result = at.run("state", "push", "-force", "given.json")
    assert result.code == 0
    assert f"are now untracked: {name} (us-east5-a, spot): $1.40/h" in result.words
    assert (at.state()["serial"], at.state()["next_attempt"]) == (now["serial"] + 1, now["next_attempt"])
    assert f"- {name}" in at.run("gc").out


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": "tpudeploy.state/9"}', '{"format": "tpudeploy.state/1"}'])
def test_what_is_no_state_is_never_pushed(at: CommandLine, text: str) -> None:
    before = at.state()
    at.write(text, "given.json")
    for words in (("push", "given.json"), ("push", "-force", "given.json")):
        result = at.run("state", *words)
        assert (result.code, result.out) == (1, "")
        assert "given.json" in result.err
    assert at.state() == before


def test_a_state_can_come_through_a_pipe(at: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    text = at.run("state", "pull").out
    assert at.run("state", "rm", "-auto-approve", "gemma").code == 0
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert at.run("state", "push", "-").code == 0
    assert at.run("plan", "-detailed-exitcode", "gemma.yaml").code == 0


@pytest.mark.parametrize("where", [(), BUCKET], ids=["folder", "bucket"])
def test_a_held_lock_is_waited_for_as_long_as_one_says_and_no_longer(
    cli: Open, monkeypatch: pytest.MonkeyPatch, where: tuple[str, ...]
) -> None:
    monkeypatch.setenv("USER", "ada")
    at = cli(timings={"neighbour": 0})  # the wait for the lock is what is measured
    at.write()
    backend = where[1] if where else None
    with Workspace.open(at.folder, backend=backend, clock=at.clock) as hers:
        lease = hers.adapters.states.lock("gemma", "apply")
        began = at.clock.now()
        result = at.run("apply", "-auto-approve", "-lock-timeout", "20s", "gemma.yaml", *where)
        assert (result.code, at.requested_zones()) == (10, [])
        assert "gemma: Waiting for the lock, retrying in 1s: The state of gemma is locked by ada@" in result.err
        assert 20 <= at.clock.now() - began < 25
        assert "Waiting" not in at.run("apply", "-auto-approve", "gemma.yaml", *where).err

        def free() -> None:
            if at.clock.now() > began + 120:
                at.clock.on_advance.remove(free)
                hers.adapters.states.unlock(lease)

        at.clock.on_advance.append(free)
        monkeypatch.setenv("TPUDEPLOY_LOCK_TIMEOUT", "5m")
        result = at.run("apply", "-auto-approve", "gemma.yaml", *where)
        assert result.code == 0, result.all
        assert "retrying in 16s" in result.err
    assert len(at.slices) == 1


def test_whoever_edits_the_state_waits_for_the_lock_too(at: CommandLine) -> None:
    with Workspace.open(at.folder, clock=at.clock) as hers:
        lease = hers.adapters.states.lock("gemma", "apply")
        pulled = at.write(at.run("state", "pull").out, "kept.json")
        for words in (("rm", "-auto-approve", "gemma"), ("mv", "gemma", "chat"), ("push", pulled)):
            assert at.run("state", *words).code == 10
            waited = at.run("state", *words, "-lock-timeout", "5s")
            assert (waited.code, waited.err.count("Waiting for the lock")) == (10, 3)
        hers.adapters.states.unlock(lease)
    assert at.run("state", "mv", "gemma", "chat").code == 0


def test_what_was_changed_can_be_read_by_programs(at: CommandLine) -> None:
    (name,) = at.slices
    pulled = at.write(at.run("state", "pull").out, "kept.json")

    def state_document(*words: str) -> dict[str, object]:
        message = at.run("state", *words, "-json")
        assert message.code == 0, message.all
        tree: dict[str, object] = json.loads(message.out)
        assert tree.pop("format") == "tpudeploy.state-change/1"
        return tree

    removal: dict[str, object] = {"type": "rm", "changes": [{"deployment": "gemma", "forgotten": [name]}]}
    assert state_document("rm", "-dry-run", "gemma") == {**removal, "is_dry_run": True}
    assert state_document("rm", "-auto-approve", "gemma") == {**removal, "is_dry_run": False}
    push: dict[str, object] = {"type": "push", "deployment": "gemma", "forgotten": []}
    assert state_document("push", pulled) == {**push, "is_changed": True}
    assert state_document("push", pulled) == {**push, "is_changed": False}
    assert state_document("mv", "gemma", "chat") == {"type": "mv", "source": "gemma", "target": "chat"}


@pytest.mark.instant("whole screens, with their moments")
def test_the_screens_read_well(at: CommandLine) -> None:
    def holds(name: str, *words: str) -> None:
        message = at.run(*words)
        transcript = f"$ tpudeploy {' '.join(words)}\n{message.out}{message.err}[exit {message.code}]\n"
        assert_golden(f"screens/{name}", re.sub(r"operation-[0-9a-f-]+", "OPERATION", transcript), folder=at.folder)

    holds("state-show", "state", "show", "gemma[0]")
    holds("state-mv", "state", "mv", "gemma", "chat")
    holds("state-rm", "state", "rm", "-auto-approve", "chat")
    (name,) = at.slices
    (at.folder / "gemma.yaml").unlink()
    holds("import-foreign", "import", "gemma[0]", name)
    holds("import-generate", "import", "gemma[0]", name, "-generate", "-foreign")
    assert_golden("screens/import-generated", (at.folder / "gemma.yaml").read_text("utf-8"), folder=at.folder)


def _patches(at: CommandLine) -> list[str]:
    return [r.path for r in at.emulator.requests if r.method == "PATCH"]


FOLDER = ("--backend", "moved")


@pytest.mark.parametrize("there", [FOLDER, BUCKET], ids=["another folder", "a bucket"])
def test_a_moved_state_has_one_owner_and_the_old_place_says_where_it_is(
    at: CommandLine, there: tuple[str, str]
) -> None:
    slices = at.slices
    moved = at.run("state", "migrate", "gemma", there[1])
    assert (moved.code, "Its slices keep running." in moved.out) == (0, True), moved.all
    before = changing(at)
    for command in (
        ("plan", "gemma.yaml"),
        ("apply", "-auto-approve", "gemma.yaml"),
        ("apply", "-adopt", "-auto-approve", "gemma.yaml"),
        ("destroy", "-auto-approve", "gemma.yaml"),
        ("destroy", "-auto-approve", "gemma"),
        ("status",),
        ("status", "gemma.yaml"),
        ("drift", "gemma.yaml"),
        ("state", "show", "gemma"),
        ("state", "pull", "gemma"),
    ):
        result = at.run(*command)
        assert result.code != 0, command
        assert "The state of gemma was moved to " in result.words, command
        assert there[1] in result.all, command
        assert "-adopt" not in result.all, command
    for command in (("gc", "-auto-approve"), ("gc", "-foreign", "-auto-approve", "gemma.yaml")):
        assert at.run(*command).code == 0
    assert (changing(at), at.slices) == (before, slices)
    assert "No changes" in at.run("plan", "gemma.yaml", *there).out
    assert "127." in at.run("output", "gemma", *there).out
    assert at.run("destroy", "-auto-approve", "gemma.yaml", *there).code == 0
    assert not at.slices
    removed = at.run("state", "rm", "-auto-approve", "gemma")
    assert (removed.code, "Removed the marker of gemma" in removed.out) == (0, True)
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0


def test_a_state_moves_back_over_its_own_marker_and_over_no_other_state(at: CommandLine) -> None:
    assert at.run("state", "migrate", "gemma", "moved").code == 0
    again = at.run("state", "migrate", "gemma", "moved")
    assert (again.code, "was moved to" in again.err) == (1, True)
    assert at.run("state", "migrate", "gemma", ".tpudeploy", *FOLDER).code == 0
    assert "No changes" in at.run("plan", "gemma.yaml").out
    assert "was moved to" in at.run("plan", "gemma.yaml", *FOLDER).all
    same = at.run("state", "migrate", "gemma", ".tpudeploy")
    assert (same.code, "The states are already in" in same.err) == (1, True)
    text = at.run("state", "pull", "gemma").out.replace(at.state()["lineage"], "f" * 32)
    (at.folder / "other").mkdir()
    (at.folder / "other.json").write_text(text, encoding="utf-8")
    assert at.run("state", "push", "other.json", "--backend", "other").code == 0
    taken = at.run("state", "migrate", "gemma", "other")
    assert (taken.code, "already has a state in" in taken.err) == (1, True)
    assert "No changes" in at.run("plan", "gemma.yaml").out


@pytest.mark.parametrize("write", [0, 1, 2], ids=["the place is named", "it is written there", "the marker is left"])
def test_a_move_that_is_killed_at_any_write_leaves_one_owner_and_ends_when_it_is_run_again(
    at: CommandLine, monkeypatch: pytest.MonkeyPatch, write: int
) -> None:
    calls = [write]
    whole = LocalState.write

    def dying(self: LocalState, name: str, state: State, *, over: str) -> str:
        if not calls[0]:
            raise Killed
        calls[0] -= 1
        return whole(self, name, state, over=over)

    with monkeypatch.context() as patch:
        patch.setattr(LocalState, "write", dying)
        with pytest.raises(Killed):
            at.run("state", "migrate", "gemma", "moved")
    owners = [words for words in ((), FOLDER) if "No changes" in at.run("plan", "gemma.yaml", *words).out]
    assert len(owners) <= 1
    assert at.run("state", "migrate", "gemma", "moved").code == 0
    assert "No changes" in at.run("plan", "gemma.yaml", *FOLDER).out
    assert "was moved to" in at.run("plan", "gemma.yaml").all


def test_a_state_that_cannot_be_written_there_stays_here(at: CommandLine) -> None:
    (at.folder / "file").write_text("", encoding="utf-8")
    assert at.run("state", "migrate", "gemma", "file").code == 1
    assert "No changes" in at.run("plan", "gemma.yaml").out
