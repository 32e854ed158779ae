"""The state file: never half-written, never guessed at; what cannot be read is left as it is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

import pytest
from command_line import Open
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tpudeploy.domain.errors import StateTooNew, StateUnreadable
from tpudeploy.domain.state import State
from tpudeploy.serialization import statefile
from tpudeploy.version import VERSION

_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)


@pytest.fixture
def served(cli: Open) -> tuple[Any, Path]:
    at = cli()
    at.write()
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    return at, at.folder / ".tpudeploy" / "state" / "gemma.json"


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
@pytest.mark.parametrize("command", [("plan",), ("apply", "-auto-approve"), ("destroy", "-auto-approve"), ("status",)])
def test_a_truncated_state_stops_every_command_and_nothing_is_touched(
    served: tuple[Any, Path], share: float, command: tuple[str, ...]
) -> None:
    at, path = served
    whole = path.read_text(encoding="utf-8")
    rest = whole[: int(len(whole) * share)]
    path.write_text(rest, encoding="utf-8")
    request_count, live = len(at.emulator.requests), dict(at.slices)
    result = at.run(*command, "gemma.yaml")
    assert result.code == 1
    assert f"{path} cannot be read as a state" in result.words
    assert "Do not delete it" in result.words
    assert path.read_text(encoding="utf-8") == rest
    assert (len(at.emulator.requests), dict(at.slices)) == (request_count, live)
    path.write_text(whole, encoding="utf-8")
    assert at.run("plan", "-detailed-exitcode", "gemma.yaml").code == 0


def test_a_state_of_a_later_version_is_refused_and_kept(served: tuple[Any, Path]) -> None:
    at, path = served
    later = path.read_text(encoding="utf-8").replace("tpudeploy.state/2", "tpudeploy.state/3")
    path.write_text(later, encoding="utf-8")
    result = at.run("apply", "-auto-approve", "gemma.yaml")
    assert result.code == 1
    assert "`tpudeploy.state/3`; this tpudeploy reads `tpudeploy.state/2`" in result.words
    assert path.read_text(encoding="utf-8") == later


@pytest.mark.parametrize("command", [("plan",), ("apply", "-auto-approve"), ("destroy", "-auto-approve"), ("status",)])
@pytest.mark.parametrize("known_format", [True, False])
def test_a_state_of_a_later_version_names_both_versions(
    served: tuple[Any, Path], command: tuple[str, ...], known_format: bool
) -> None:
    at, path = served
    tree = json.loads(path.read_text(encoding="utf-8"))
    assert tree["written"]["version"] == VERSION
    tree["written"]["version"] = "7.3.0"
    tree["records"][0]["attempts"][0]["life"]["state"] = "hibernating"
    later = json.dumps(tree if known_format else {**tree, "format": "tpudeploy.state/9", "records": {"by": "name"}})
    path.write_text(later, encoding="utf-8")
    live = dict(at.slices)
    result = at.run(*command, "gemma.yaml")
    assert result.code == 1
    assert f"{path} is written by tpudeploy 7.3.0; this is {VERSION}." in result.words
    assert "cannot be read" not in result.words
    assert (path.read_text(encoding="utf-8"), dict(at.slices)) == (later, live)


def test_what_a_later_version_adds_is_kept_and_written_back(served: tuple[Any, Path]) -> None:
    at, path = served
    tree = json.loads(path.read_text(encoding="utf-8"))
    record = tree["records"][0]
    for place in (tree, record, record["attempts"][0], record["attempts"][0]["boot"]):
        place.update(rating={"stars": [4, 5]}, more="none")
    path.write_text(json.dumps(tree), encoding="utf-8")
    assert at.run("plan", "-detailed-exitcode", "gemma.yaml").code == 0
    assert "rating" not in at.run("status", "-json", "gemma.yaml").out
    assert at.run("state", "mv", "gemma", "chat").code == 0
    tree = json.loads((path.parent / "chat.json").read_text(encoding="utf-8"))
    (record,) = tree["records"]
    for place in (tree, record, record["attempts"][0], record["attempts"][0]["boot"]):
        assert (place["rating"], place["more"]) == ({"stars": [4, 5]}, "none")


@pytest.mark.parametrize("key", ["goal", "records", "lineage", "records__0__attempts", "records__0__attempts__0__life"])
def test_a_state_that_lacks_what_every_version_writes_is_not_taken_for_an_empty_one(
    served: tuple[Any, Path], key: str
) -> None:
    at, path = served
    tree = json.loads(path.read_text(encoding="utf-8"))
    *way, last = (int(part) if part.isdigit() else part for part in key.split("__"))
    del reduce(getitem, way, tree)[last]
    path.write_text(json.dumps(tree), encoding="utf-8")
    result = at.run("apply", "-auto-approve", "gemma.yaml")
    assert (result.code, f"{path} cannot be read as a state" in result.words) == (1, True)


def test_a_state_written_before_quotas_had_pools_is_read(cli: Open) -> None:
    at = cli(trouble=[{"fault": "quota-exhausted", "zone": "us-east5-a", "limit": 16}])
    at.write()
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    path = at.folder / ".tpudeploy" / "state" / "gemma.json"
    tree = json.loads(path.read_text(encoding="utf-8"))
    (refused,) = tree["records"][0]["refusals"]
    assert (refused["scope"], refused.pop("limit"), refused.pop("known")) == ("region quota", 16, True)
    del refused["held"]
    path.write_text(json.dumps(tree | {"serial": tree["serial"] + 1}), encoding="utf-8")
    assert at.run("plan", "-detailed-exitcode", "gemma.yaml").code == 0
    assert statefile.loads(path.read_text(encoding="utf-8"), source="gemma.json").records[0].refusals[0].limit is None


@settings(max_examples=150, suppress_health_check=list(HealthCheck))
@given(text=st.text() | _json.map(json.dumps), key=st.sampled_from(("", "lineage", "records", "goal", "serial")))
@example(text="[" * 100_000, key="")
@example(text='"x"', key="records")
@example(text='[{"index": 0, "attempts": [{"name": 5}], "refusals": []}]', key="records")
@example(text='[{"index": 0, "attempts": ["x"], "refusals": []}]', key="records")
@example(text='[{"index": 0, "attempts": [{"life": []}], "refusals": []}]', key="records")
@example(text="[[]]", key="records")
@example(text="5", key="lineage")
@example(text='"four"', key="serial")
def test_whatever_stands_there_is_a_state_or_an_error_of_ours(text: str, key: str) -> None:
    whole = text if not key else _with(key, text)
    try:
        state = statefile.loads(whole, source="gemma.json")
    except (StateUnreadable, StateTooNew):
        return
    assert statefile.loads(statefile.dumps(state), source="gemma.json") == state
    assert isinstance(state.lineage, str)
    assert isinstance(state.serial, int)


def test_a_folder_that_cannot_be_written_is_told_before_anything_is_asked(cli: Open) -> None:
    at = cli()
    at.write()
    (at.folder / ".tpudeploy" / "state" / "gemma.lock").mkdir(parents=True)
    result = at.run("apply", "-auto-approve", "gemma.yaml")
    assert result.code == 1, result.all
    assert "cannot be written" in result.words
    assert not at.requested_zones()


def test_what_a_killed_write_left_beside_is_overwritten(served: tuple[Any, Path]) -> None:
    at, path = served
    path.with_name(".gemma.json.new").write_text('{"half": ', encoding="utf-8")
    assert at.run("destroy", "-auto-approve", "gemma.yaml").code == 0
    assert sorted(p.name for p in path.parent.iterdir()) == [".gitignore", "earlier", "gemma.json", "gemma.lock"]


def _with(key: str, text: str) -> str:
    tree: Mapping[str, Any] = json.loads(statefile.dumps(State(deployment="gemma", lineage="0" * 32)))
    return json.dumps(tree).replace(json.dumps({key: tree[key]})[1:-1], f'"{key}": {text}')
