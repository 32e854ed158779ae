"""The pages of docs/how-to do what they say: the commands of each run in order, before an emulated cloud.

Each begins with the shipped profile as gemma.yaml. `ACHIEVED` looks at what a page has done. A block ```` ```yaml mine.yaml ```` is that file. In a block `sh`, each command of tpudeploy is run in process and on virtual
time, and has to succeed; commands of other tools are well-formed, and not run. `sh needs-a-project` is for what no
emulator answers: its commands are only parsed, by `test_shipped_documents.py`.
"""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
import yaml
from agent import connected
from command_line import CommandLine, Open

import tpudeploy as td

ROOT = Path(__file__).parents[2] / "docs"
PROFILES = ROOT.parent / "profiles"
PAGES = sorted(
    [*(path.relative_to(ROOT).as_posix() for path in (ROOT / "how-to").glob("*.md")), "skills/tpudeploy/SKILL.md"]
)
PAGES.append("../AGENTS.md")
_BLOCK = re.compile(r"^```(?P<kind>yaml (?P<file>\S+)|sh|python)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
BUCKET = "gs://my-states/models"  # a folder stands in for it
_HERE = ("mkdir", "cp", "printf", "echo", "sed")  # commands of the shell that a page needs to have run
# A measurement is real time: short, and of little.
SHORT = {
    "TPUDEPLOY_WINDOW": "100ms",
    "TPUDEPLOY_CONCURRENCY": "1,2",
    "TPUDEPLOY_CONTEXT": "64",
    "TPUDEPLOY_OUTPUT": "8",
}
# Pages that begin with something in the cloud.
BEFORE: Mapping[str, Callable[[CommandLine], None]] = {"how-to/existing-slice.md": CommandLine.make_by_hand}


def _the_state_has_moved(at: CommandLine) -> None:
    """A plan in the folder says where the state is, and the other place has its state and its endpoint."""
    assert len(at.slices) == 1
    assert "No state" in at.run("state", "list").all or not at.run("state", "list").out.strip()
    here = at.run("plan", "gemma.yaml")
    assert here.code != 0, here.all
    assert "was moved to" in here.words
    there = at.run("plan", "gemma.yaml", "-backend", "elsewhere", "-detailed-exitcode")
    assert there.code == 0, there.all
    assert at.run("output", "gemma4-e2b", "-backend", "elsewhere").code == 0


def _the_change_and_the_state_are_there(at: CommandLine) -> None:
    """The second slice has the change, and the state is that of an earlier serial."""
    assert at.run("plan", "gemma.yaml", "-set", "serving.max_num_seqs=128").code == 0
    assert "max_num_seqs: 128" in (at.folder / "gemma.yaml").read_text(encoding="utf-8")
    earlier = json.loads((at.folder / "earlier.json").read_text(encoding="utf-8"))
    now = json.loads(at.run("state", "pull", "gemma4-e2b").out)
    assert now.pop("serial") > earlier.pop("serial")
    own = {"written", "history"}
    assert {k: v for k, v in now.items() if k not in own} == {k: v for k, v in earlier.items() if k not in own}


def _terraform_reads_its_file(at: CommandLine) -> None:
    assert json.loads((at.folder / "main.tf.json").read_text(encoding="utf-8"))["resource"]
    assert len(at.slices) == 1
    assert "gemma4-e2b" not in at.run("state", "list").out


def _serves(name: str = "gemma4-e2b", *, slices: int = 1) -> Callable[[CommandLine], None]:
    """Return a look for a deployment that serves, has published its endpoint, and has so many slices."""

    def look(at: CommandLine) -> None:
        assert len(at.slices) == slices
        assert json.loads((at.folder / "endpoints" / f"{name}.json").read_text(encoding="utf-8"))["url"]
        assert "serving" in at.run("status").out

    return look


def _serves_embeddings(at: CommandLine) -> None:
    _serves("embed")(at)
    assert len(json.loads(at.run("query", "embed.yaml", "a text", "-json").out)["numbers"]) > 1


def _no_slice_is_left(at: CommandLine) -> None:
    assert not at.slices
    assert not list((at.folder / "endpoints").glob("*.json"))


def _rules_and_panels_are_files(at: CommandLine) -> None:
    rules = yaml.safe_load((at.folder / "rules.yaml").read_text(encoding="utf-8"))
    assert {"VllmDown", "VllmNoProgress"} <= {rule["alert"] for rule in rules["groups"][0]["rules"]}
    assert yaml.safe_load((at.folder / "config.yaml").read_text(encoding="utf-8"))["metrics"]
    assert json.loads((at.folder / "dashboard.json").read_text(encoding="utf-8"))["panels"]


def _a_key_is_needed(at: CommandLine) -> None:
    url = json.loads((at.folder / "endpoints" / "gemma4-e2b.json").read_text(encoding="utf-8"))["url"]
    assert url
    assert at.run("plan", "gemma.yaml", "-set", "secrets.VLLM_API_KEY=vllm-key", "-detailed-exitcode").code == 0


def _the_runs_are_kept(at: CommandLine) -> None:
    assert json.loads(at.run("bench", "list", "-json").out)["runs"]
    assert "|" in (at.folder / "article.md").read_text(encoding="utf-8")


def _a_server_is_changed_in_place(at: CommandLine) -> None:
    _serves()(at)
    same = at.run("plan", "gemma.yaml", "-set", "serving.max_num_seqs=128", "-detailed-exitcode")
    assert same.code == 0, same.all


def _the_slice_is_free_and_runs(at: CommandLine) -> None:
    assert len(at.slices) == 1
    assert "mine" not in at.run("state", "list").out


def _manifests_are_kubernetes(at: CommandLine) -> None:
    text = (at.folder / "gemma.k8s.yaml").read_text(encoding="utf-8")
    kinds = {document["kind"] for document in yaml.safe_load_all(text) if document}
    assert {"Deployment", "Service"} <= kinds


def _the_plan_is_a_document(at: CommandLine) -> None:
    assert json.loads((at.folder / "plan.json").read_text(encoding="utf-8"))["format"].startswith("tpudeploy.plan/")
    _no_slice_is_left(at)


def _the_week_ends(at: CommandLine) -> None:
    _serves("gemma")(at)
    assert "ends" in at.run("status", "week.yaml").out


def _an_overlay_has_the_better_flag(at: CommandLine) -> None:
    overlay = (at.folder / "overlay.yaml").read_text(encoding="utf-8")
    assert yaml.safe_load(overlay) == {"serving": {"max_num_seqs": 64}}, overlay
    _serves()(at)


def _nothing_is_bought(at: CommandLine) -> None:
    assert not at.slices
    assert at.requested_zones() == []


def _agents_only_read(at: CommandLine) -> None:
    with connected(at, allow_writes=False) as agent:
        names = {tool["name"] for tool in agent.tools()}
    with connected(at, allow_writes=True) as agent:
        more = {tool["name"] for tool in agent.tools()}
    assert {"plan", "status", "query"} <= names
    assert not {"apply", "destroy"} & names
    assert {"apply", "destroy"} <= more


def _a_page_is_written(at: CommandLine) -> None:
    assert at.run("apply", "gemma.yaml").code == 0
    assert at.run("status", "-html", "page.html").code == 0
    page = (at.folder / "page.html").read_text(encoding="utf-8")
    assert "gemma4-e2b" in page
    assert not re.search(r"(?:src|href)=.?https?://", page)


def _its_price_is_shown_refused_and_ended(at: CommandLine) -> None:
    planned = at.run("plan", "gemma.yaml")
    assert re.search(r"\$1\.35/h .*once granted; free while it waits", planned.words), planned.all
    assert at.run("plan", "gemma.yaml", "-set", "placement.max_price_per_chip_hour=0.01").code != 0
    _serves_after("apply", "gemma.yaml")(at)
    assert at.run("destroy", "gemma.yaml").code == 0
    _no_slice_is_left(at)


def _a_changed_script_restarts_the_server(at: CommandLine) -> None:
    (at.folder / "parts").mkdir()
    script = at.folder / "parts" / "agent.sh"
    at.write((at.folder / "gemma.yaml").read_text(encoding="utf-8") + "boot: {after: [parts/agent.sh]}\n")
    script.write_text("#!/bin/bash\necho one\n", encoding="utf-8")
    _serves_after("apply", "gemma.yaml")(at)
    assert at.run("plan", "gemma.yaml", "-detailed-exitcode").code == 0
    script.write_text("#!/bin/bash\necho two\n", encoding="utf-8")
    changed = at.run("plan", "gemma.yaml", "-detailed-exitcode")
    assert (changed.code, "~ boot.digest.after.parts/agent.sh" in changed.out) == (2, True), changed.all
    assert "1 to restart, 0 to destroy." in changed.words


def _a_saved_plan_is_done_once_and_drift_is_told_apart(at: CommandLine) -> None:
    assert at.run("plan", "-out", "monday.plan", "gemma.yaml").code == 0
    _serves_after("apply", "monday.plan")(at)
    assert at.run("apply", "monday.plan").code != 0
    (name,) = at.slices
    at.delete_by_hand(name)
    drifted = at.run("drift", "gemma.yaml")
    assert (drifted.code, name in drifted.out) == (2, True), drifted.all


def _what_was_reviewed_was_applied(at: CommandLine) -> None:
    assert "<testsuite" in (at.folder / "report.xml").read_text(encoding="utf-8")
    _serves()(at)


def _a_third_replica_touches_no_other(at: CommandLine) -> None:
    _serves_after("apply", "gemma.yaml", "-set", "replicas=2", slices=2)(at)
    before = set(at.slices)
    _serves_after("apply", "gemma.yaml", "-set", "replicas=3", slices=3)(at)
    assert before < set(at.slices)
    assert len(json.loads(at.run("output", "gemma4-e2b", "-json").out)["replicas"]) == 3


def _a_profile_of_several_hosts_is_planned(at: CommandLine) -> None:
    assert at.run("init", "-from", "qwen3-235b-v6e32", "several.yaml").code == 0
    assert at.run("validate", "several.yaml").code == 0
    assert "on 8 hosts, TP 4 x PP 8" in at.run("size", "several.yaml").words
    assert "Plan: 1 to add" in at.run("plan", "several.yaml").out


def _serves_after(*words: str, slices: int = 1) -> Callable[[CommandLine], None]:
    """Return a look for a deployment that serves once this command, which the page names, was run."""

    def look(at: CommandLine) -> None:
        result = at.run(*words)
        assert result.code == 0, result.all
        _serves(slices=slices)(at)

    return look


# What a page has done at its end, by looking and not by an exit code. Where its commands are for a terminal, a browser or
# another machine, the look runs what the page says in words.
ACHIEVED: Mapping[str, Callable[[CommandLine], None]] = {
    "skills/tpudeploy/SKILL.md": _no_slice_is_left,
    "../AGENTS.md": _nothing_is_bought,
    "how-to/tune.md": _an_overlay_has_the_better_flag,
    "how-to/ab-test.md": _serves(),
    "how-to/agents.md": _agents_only_read,
    "how-to/dashboard.md": _a_page_is_written,
    "how-to/limit-the-cost.md": _its_price_is_shown_refused_and_ended,
    "how-to/own-scripts.md": _a_changed_script_restarts_the_server,
    "how-to/preview-changes.md": _a_saved_plan_is_done_once_and_drift_is_told_apart,
    "how-to/pull-requests.md": _what_was_reviewed_was_applied,
    "how-to/replicas.md": _a_third_replica_touches_no_other,
    "how-to/several-hosts.md": _a_profile_of_several_hosts_is_planned,
    "how-to/alert.md": _rules_and_panels_are_files,
    "how-to/api-key.md": _a_key_is_needed,
    "how-to/benchmark.md": _the_runs_are_kept,
    "how-to/change-a-server.md": _a_server_is_changed_in_place,
    "how-to/choose-a-slice.md": _nothing_is_bought,
    "how-to/compare.md": _nothing_is_bought,
    "how-to/compute-engine.md": _serves(),
    "how-to/embeddings.md": _serves_embeddings,
    "how-to/existing-slice.md": _the_slice_is_free_and_runs,
    "how-to/find-what-is-wrong.md": _serves(),
    "how-to/flex-start-for-a-week.md": _the_week_ends,
    "how-to/gke.md": _manifests_are_kubernetes,
    "how-to/interrupt-and-resume.md": _no_slice_is_left,
    "how-to/out-of-memory.md": _serves(),
    "how-to/private-model.md": _serves("llama"),
    "how-to/python.md": _the_plan_is_a_document,
    "how-to/quota.md": _nothing_is_bought,
    "how-to/several-deployments.md": _serves(),
    "how-to/spot-in-three-zones.md": _serves("gemma"),
    "how-to/your-own-model.md": _serves("qwen"),
    "how-to/share-the-state.md": _the_state_has_moved,
    "how-to/roll-back.md": _the_change_and_the_state_are_there,
    "how-to/move-away.md": _terraform_reads_its_file,
}


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_work_in_its_order(page: str, cli: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    at = cli(boot={"paced": True})
    for name, value in {"TPUDEPLOY_AUTO_APPROVE": "1", **SHORT}.items():
        monkeypatch.setenv(name, value)
    at.write((PROFILES / "gemma4-e2b-v6e1.yaml").read_text(encoding="utf-8"))
    if page in BEFORE:
        BEFORE[page](at)
    for block in _BLOCK.finditer((ROOT / page).read_text(encoding="utf-8")):
        if block["file"]:
            at.write(block["text"], block["file"])
        elif block["kind"] == "python":
            _run_python(at, block["text"])
        else:
            for words in _commands(block["text"]):
                _run(at, words)
    if page in ACHIEVED:
        ACHIEVED[page](at)


def _leave_a_lock(at: CommandLine, name: str) -> None:
    """Leave the lock of a run that was killed."""
    with td.Workspace.open(at.folder, backend="elsewhere", clock=at.clock) as workspace:
        states = workspace.adapters.states
        lease = states.lock(name, "apply")
        file = at.folder / "elsewhere" / "state" / f"{name}.lock"
        holder = file.read_bytes()
        states.unlock(lease)
        file.write_bytes(holder)


def _run_python(at: CommandLine, text: str) -> None:
    """Run a program in the folder of the page, on its clock."""
    program = text.replace('Workspace.open(".")', "Workspace.open(folder, clock=clock)")
    program = re.sub(r'td\.(apply|destroy)\("gemma.yaml"', r"\g<0>, clock=clock", program)
    with contextlib.chdir(at.folder):
        exec(compile(program, "the page", "exec"), {"folder": at.folder, "clock": at.clock})


def _commands(script: str) -> Iterator[list[str]]:
    subprocess.run(["bash", "-n", "-c", script], check=True)
    for line in script.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words:
            yield words


def _run(at: CommandLine, words: list[str]) -> None:
    if words[0] in _HERE:
        line = " ".join(word if word in {">", ">>"} else shlex.quote(word) for word in words)
        subprocess.run(["bash", "-c", line], cwd=at.folder, check=True)
    if words[0] != "tpudeploy":
        return
    file = None
    if ">" in words:
        words, file = words[: words.index(">")], words[-1]
    words = ["elsewhere" if word == BUCKET else word for word in words]
    if words[1] == "force-unlock":
        _leave_a_lock(at, words[2])
        words = [*words, "-force"]  # no person is asked here
    if "-serial" in words:
        history = json.loads(at.run("state", "history", words[3], "-json").out)
        words[words.index("-serial") + 1] = str(history["states"][-1]["serial"])
    result = at.run(*words[1:])
    assert result.code == 0, f"{shlex.join(words)}\n{result.all}"
    if file is not None:
        (at.folder / file).write_text(result.out, encoding="utf-8")
