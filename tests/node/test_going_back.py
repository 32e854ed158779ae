"""A change that fails goes back to the server before, through real bash; docker, curl and sleep are stood in for."""

from __future__ import annotations

import pytest

from node.answers import Rule
from node.bench import Bench
from node.boots import payload, script, with_secrets
from node.containers import container

GONE: Rule = ("docker", "run -d --name bad", [(125, "docker: no such device")])


def test_what_served_before_is_started_again_and_the_cause_told(bench: Bench) -> None:
    bench.rules.append(GONE)
    assert bench.run(script(container(name="good"), spec="a")).returncode == 0
    assert bench.run(script(container(name="bad"), spec="b")).returncode == 0
    result = bench.attributes()
    assert result["spec"] == ["a", "b", "a"]
    assert result["phase"][-1] == "serving"
    assert result["cause"] == ["docker run failed: docker: no such device"]
    assert [call.argv[4] for call in bench.calls("docker run")] == ["good", "bad", "good"]


def test_what_fails_before_the_old_server_is_stopped_leaves_it_alone(bench: Bench) -> None:
    bench.rules += [("docker", "pull x:bad", [(1, "manifest unknown")])]
    assert bench.run(script(container(), spec="a")).returncode == 0
    assert bench.run(script(container(image="x:bad"), spec="b")).returncode == 0
    assert len(bench.calls("docker run")) == 1
    assert "manifest unknown" in bench.attributes()["cause"][-1]
    assert bench.attributes()["phase"][-1] == "serving"


def test_where_neither_comes_up_both_causes_are_told(bench: Bench) -> None:
    bench.rules += [GONE, ("docker", "run -d --name good", [(0, ""), (125, "docker: out of memory")])]
    assert bench.run(script(container(name="good"), spec="a")).returncode == 0
    assert bench.run(script(container(name="bad"), spec="b")).returncode != 0
    assert bench.attributes()["phase"][-1] == "failed"
    result = bench.attributes()["detail"][-1]
    assert result.startswith("docker run failed: docker: no such device (the server before did not come back either: ")
    assert "out of memory" in result


def test_a_first_server_has_nothing_to_go_back_to(bench: Bench) -> None:
    bench.rules.append(GONE)
    assert bench.run(script(container(name="bad"), spec="b")).returncode != 0
    assert "undone" not in bench.attributes()
    assert bench.attributes()["detail"][-1] == "docker run failed: docker: no such device"


@pytest.mark.parametrize("name", ["undone", "served.part", "running", "container"])
def test_a_disk_that_takes_no_more_does_not_keep_a_server_from_coming_up(bench: Bench, name: str) -> None:
    (bench.root / "var/lib/tpudeploy/boot" / name).mkdir(parents=True)  # what cannot be written
    bench.rules.append(GONE)
    assert bench.run(script(container(name="good"), spec="a")).returncode == 0
    assert bench.run(script(container(name="bad"), spec="b")).returncode == (1 if name == "served.part" else 0)
    assert bench.attributes()["phase"][-1] == ("failed" if name == "served.part" else "serving")


def test_what_is_kept_holds_no_secret(bench: Bench) -> None:
    bench.rules += [("curl", "secretmanager", [(200, payload("hf-canary-8a41"))]), ("docker", "logs", [(0, "x")])]
    assert bench.run(script(with_secrets(), spec="a")).returncode == 0
    folder = bench.root / "var/lib/tpudeploy/boot"
    assert (folder / "served.sh").exists()
    assert not [file for file in folder.iterdir() if "hf-canary-8a41" in file.read_text()]


OLDER = """\
#!/bin/bash
spec=a
attribute() { curl -sS -f -X PUT --data-binary @- "http://metadata.google.internal/guest-attributes/tpudeploy/$1"; }
printf serving | attribute phase
"""


def test_a_script_of_before_that_serves_again_is_not_spoken_for_by_a_newer_report(bench: Bench) -> None:
    folder = bench.root / "var/lib/tpudeploy/boot"
    folder.mkdir(parents=True)
    (folder / "served.sh").write_text(OLDER)
    bench.rules.append(GONE)
    assert bench.run(script(container(name="bad"), spec="b")).returncode == 0
    last = [call for call in bench.calls("curl") if "guest-attributes" in call.line][-3:]
    assert [call.argv[-1].rpartition("/")[2] for call in last] == ["undone", "report", "phase"]
    assert last[0].stdin == " docker run failed: docker: no such device"
    assert "DELETE" in last[1].argv
    assert not (bench.root / "run/tpudeploy/report").exists()


def test_a_report_is_json_whatever_a_server_answers(bench: Bench) -> None:
    odd = '{"content": "a \\"b\\" \\\\ \\n ключ 🦜 & $HOME `id`",\n\t"id": 1}'
    bench.rules.append(("curl", "/v1/chat/completions", [(200, odd)]))
    assert bench.run(script(container())).returncode == 0
    assert bench.reports()[-1]["answer"] == odd.replace("\t", "")
