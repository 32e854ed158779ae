"""An agent measures what it deployed, in the background, and reads what was measured."""

from __future__ import annotations

import json

import pytest
from agent import connected
from command_line import PROFILE, CommandLine, Open

SMALL = PROFILE.replace("max_model_len: 16384", "max_model_len: 4096\n  max_num_seqs: 4\n  max_num_batched_tokens: 512")


@pytest.fixture
def serving(cli: Open) -> CommandLine:
    at: CommandLine = cli(nodes="real", boot={"boot_seconds": 60})
    assert at.run("apply", "-auto-approve", at.write(SMALL)).code == 0
    return at


def test_a_deployment_is_measured_and_the_run_is_kept_as_the_command_line_tells_it(serving: CommandLine) -> None:
    with connected(serving) as agent:
        sweep = {"concurrency": [2, 1, 2], "context": [16, 4096], "output": [2], "window_seconds": 0.05}
        begun = agent.document("bench", profile="gemma.yaml", **sweep)
        assert begun["does"] == "bench"
        ended = agent.ended()
        (listed,) = agent.document("runs")["runs"]
        stored = agent.whole("run", run_id=listed["id"])
        read = json.loads(agent.read(f"tpudeploy://runs/{listed['id']}"))
        all_read = json.loads(agent.read("tpudeploy://runs"))
        with pytest.raises(Exception, match="There is no run `other`"):
            agent.read("tpudeploy://runs/other")
    assert ended["state"] == "succeeded"
    points = [(c["point"]["context_tokens"], c["point"]["concurrency"], c["status"]) for c in stored["cells"]]
    assert sorted(points)[2:] == [(4096, 1, "skipped_len"), (4096, 2, "skipped_len")]
    assert len(points) == len([e for e in ended["events"] if e["type"] == "cell"]) == 4
    assert stored == ended["result"] == read == json.loads(serving.run("bench", "show", listed["id"], "--json").out)
    assert all_read == json.loads(serving.run("bench", "list", "--json").out)


def test_what_is_cancelled_is_kept(serving: CommandLine) -> None:
    with connected(serving) as agent:
        # A cell takes real time, half a second of it: with this many the run is under way until it is cancelled.
        cells = {"concurrency": [1, 2, 4, 8], "context": [16, 32, 64], "output": [2, 4, 8]}
        agent.document("bench", profile="gemma.yaml", window_seconds=600, **cells)
        busy = agent.call("bench", profile="gemma.yaml")
        assert busy.document["exit_code"] == 10
        agent.document("cancel")
        assert agent.ended()["state"] == "cancelled"
        assert not serving.run("apply", "-auto-approve", "gemma.yaml").code


def test_nothing_is_measured_where_nothing_serves(cli: Open) -> None:
    at = cli()
    at.write()
    with connected(at) as agent:
        refused = agent.call("bench", profile="gemma.yaml")
        assert agent.document("runs")["runs"] == []
    assert refused.is_error
    assert "has no endpoint yet" in refused.text
