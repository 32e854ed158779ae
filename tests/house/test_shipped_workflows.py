"""What we ship for pipelines: valid by the published schemas, careful with credentials, and made of commands of ours."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from command_line import PROFILE
from github_api import REPOSITORY, TOKEN, GitHubApi
from real_time import DEADLINE
from workflow import APPROVAL_KEY

from tpudeploy.cli.main import parse, two_dashes
from tpudeploy.emulator import running

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "05-pull-requests"
WORKFLOWS = [FOLDER / f"{name}.yml" for name in ("pull-request", "plan", "merge", "schedule", "measure")]
GITLAB = FOLDER / "gitlab-ci.yml"
ACTION = ROOT / "action.yml"
RELEASE = ROOT / ".github" / "workflows" / "release.yml"
ENGINE_RELEASE = ROOT / ".github" / "workflows" / "engine-release.yml"


def _tree(path: Path) -> dict[Any, Any]:
    class Loader(yaml.SafeLoader):
        """GitLab's own tag."""

    Loader.add_constructor("!reference", lambda _, node: [key.value for key in node.value])
    tree: dict[Any, Any] = yaml.load(path.read_text(encoding="utf-8"), Loader=Loader)  # a safe loader, with a tag more
    return tree


@pytest.mark.parametrize(
    ("schema", "files"),
    [
        ("github-workflows", [*WORKFLOWS, RELEASE, ENGINE_RELEASE]),
        ("github-actions", [ACTION]),
        ("gitlab-ci", [GITLAB]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_file_is_what_its_published_schema_says(schema: str, files: list[Path]) -> None:
    more = ["--data-transform", "gitlab-ci"] if schema == "gitlab-ci" else []
    program = str(Path(sys.executable).with_name("check-jsonschema"))
    command = [program, "--builtin-schema", f"vendor.{schema}", *more, *map(str, files)]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def _jobs() -> list[Any]:
    matches = [
        pytest.param(job, id=f"{path.stem}-{name}") for path in WORKFLOWS for name, job in _tree(path)["jobs"].items()
    ]
    assert matches
    return matches


@pytest.mark.parametrize("job", _jobs())
def test_a_job_ends_keeps_no_token_in_its_checkout_and_gets_what_it_needs(job: Any) -> None:
    assert job["timeout-minutes"]
    steps = {step["uses"].partition("@")[0]: step for step in job["steps"] if "uses" in step}
    assert steps["actions/checkout"]["with"]["persist-credentials"] is False
    does = steps["tpudeploy/tpudeploy"]["with"]["command"]
    needs = {
        "validate": set(),
        "plan": {"id-token", "pull-requests", "statuses"},
        "apply": {"id-token", "pull-requests", "statuses", "checks"},
        "resume": {"id-token", "pull-requests", "statuses", "checks"},
        "drift": {"id-token", "issues"},
        "ab": {"id-token", "pull-requests", "statuses"},
        "bench": {"id-token", "pull-requests", "statuses", "issues"},
    }[does]
    assert {name for name, level in job.get("permissions", {}).items() if level == "write"} == needs
    assert ("google-github-actions/auth" in steps) == bool(needs)
    account = steps.get("google-github-actions/auth", {"with": {}})["with"].get("service_account", "")
    assert ("APPLY" in account) == (does in {"apply", "resume", "ab", "bench"})
    assert ("environment" in job) == (does in {"plan", "apply", "resume", "ab", "bench"})
    # What may cost has a ceiling.
    assert ("max-cost" in steps["tpudeploy/tpudeploy"]["with"]) == (does in {"ab", "bench"})
    # The key that approves goes to jobs of protected environments that need it, and to no other.
    assert ("approval-key" in steps["tpudeploy/tpudeploy"]["with"]) == (does in {"plan", "apply"})
    inputs = _tree(ACTION)["inputs"]
    assert set(steps["tpudeploy/tpudeploy"]["with"]) <= set(inputs)


def test_no_workflow_runs_for_strangers_with_our_credentials() -> None:
    for path in WORKFLOWS:
        assert ("pull_request_target" in _tree(path)[True]) == (path.stem == "plan")  # YAML reads `on` as a boolean
    tree = _tree(FOLDER / "plan.yml")
    assert list(tree["jobs"]) == ["plan"]
    assert "github.event.pull_request.head.repo.full_name == github.repository" in tree["jobs"]["plan"]["if"]


def test_the_workflow_that_holds_the_key_runs_nothing_of_the_pull_request() -> None:
    """It is that of the default branch; what it checks out is read by a git that only prints, and by us, as data."""
    steps = _tree(FOLDER / "plan.yml")["jobs"]["plan"]["steps"]
    assert [step["run"] for step in steps if "run" in step] == ['test "$(git rev-parse HEAD^2)" = "$HEAD"']
    assert all("working-directory" not in step for step in steps)
    (install, *_) = (step["run"] for step in _tree(ACTION)["runs"]["steps"] if "run" in step)
    assert "python -I -m pip" in install  # without -I, a pip.py at the root of the pull request would be run


def test_a_plan_is_of_the_commit_that_it_says(tmp_path: Path) -> None:
    """The merge that GitHub prepares may be of an older or newer commit than the run."""
    check = next(s["run"] for s in _tree(FOLDER / "plan.yml")["jobs"]["plan"]["steps"] if "run" in s)

    def git(*words: str) -> str:
        config = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")
        process = subprocess.run(["git", *config, *words], cwd=tmp_path, capture_output=True, text=True, check=True)
        return process.stdout.strip()

    git("init", "--quiet", "--initial-branch", "main")
    git("commit", "--quiet", "--allow-empty", "--message", "base")
    git("checkout", "--quiet", "-b", "topic")
    git("commit", "--quiet", "--allow-empty", "--message", "head")
    head = git("rev-parse", "HEAD")
    git("checkout", "--quiet", "main")
    git("commit", "--quiet", "--allow-empty", "--message", "meanwhile")
    git("merge", "--quiet", "--no-ff", "topic")
    for commit, code in ((head, 0), ("0" * 40, 1)):
        around = {"HEAD": commit, "PATH": os.environ["PATH"]}
        process = subprocess.run(["bash", "-e", "-c", check], cwd=tmp_path, env=around, check=False)
        assert process.returncode == code


@pytest.mark.parametrize("path", [*WORKFLOWS, ENGINE_RELEASE, ACTION], ids=lambda path: path.name)
def test_actions_of_others_are_held_to_a_commit_and_the_comment_says_which_version(path: Path) -> None:
    used = re.findall(r"- uses: (\S+)(.*)", path.read_text("utf-8"))
    assert used
    for name, comment in used:
        if not name.startswith("tpudeploy/"):
            assert re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40}", name)
            assert re.fullmatch(r" # v\d+\.\d+\.\d+", comment)
    whole = "".join(other.read_text("utf-8") for other in [*WORKFLOWS, ACTION])
    commits = dict(re.findall(r"uses: (\S+)@([0-9a-f]{40})", whole))
    assert all(f"{action}@{commit}" in whole for action, commit in commits.items())
    assert len(set(re.findall(r"uses: (\S+@[0-9a-f]{40})", whole))) == len(commits)  # each at one commit everywhere


@pytest.mark.parametrize("path", [*WORKFLOWS, ENGINE_RELEASE, ACTION], ids=lambda path: path.name)
def test_an_attackers_eye_finds_nothing_in_them(path: Path) -> None:
    program = Path(sys.executable).with_name("zizmor")
    if not program.exists():
        pytest.skip("zizmor is not installed: pip install --editable '.[dev]'")  # `make test` installs it
    command = [str(program), "--offline", "--no-progress", "--config", str(ROOT / "zizmor.yml"), str(path)]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_an_engine_that_is_new_runs_without_a_permission_to_write() -> None:
    tree = _tree(ENGINE_RELEASE)
    assert tree["permissions"] == {"contents": "read"}
    assert {name for name, job in tree["jobs"].items() if "permissions" in job} == {"offer"}
    assert "GH_TOKEN" not in str(tree["jobs"]["learn"])
    assert "vllm" not in str(tree["jobs"]["offer"]["steps"])


def test_on_gitlab_the_apply_takes_the_files_of_the_signed_plan_alone() -> None:
    jobs = _tree(GITLAB)
    assert jobs["apply"]["needs"] == ["plan"]
    assert jobs["plan"]["environment"] == {"name": "production-plan", "action": "access"}
    assert "environment" not in jobs["show"]
    assert all("merge_request_event" not in str(jobs[name]["rules"]) for name in ("plan", "apply", "resume"))


def test_no_run_drops_one_that_would_do_more() -> None:
    apply = _tree(FOLDER / "merge.yml")["concurrency"]
    resume = _tree(FOLDER / "schedule.yml")["jobs"]["resume"]["concurrency"]
    assert apply["group"] != resume["group"]
    assert not apply["cancel-in-progress"]
    assert not resume["cancel-in-progress"]


def _scripts() -> list[Any]:
    scripts = [step["run"] for step in _tree(ACTION)["runs"]["steps"] if "run" in step]
    gitlab = (job.get("script", []) for job in _tree(GITLAB).values() if isinstance(job, dict))
    lines = [line for script in gitlab for line in script if isinstance(line, str)]
    return [pytest.param(text, id=f"{n}") for n, text in enumerate([*scripts, *lines])]


@pytest.mark.parametrize("script", _scripts())
def test_no_text_of_others_becomes_a_part_of_a_script(script: str) -> None:
    assert "${{" not in script
    checked = subprocess.run(
        [Path(sys.executable).with_name("shellcheck"), "-s", "bash", "-"], input=script, text=True, check=False
    )
    assert checked.returncode == 0


@pytest.mark.parametrize("script", _scripts())
def test_every_command_in_them_is_one_that_we_understand(script: str) -> None:
    for line in re.findall(r"tpudeploy (?:ci|validate) [^;>\n]*", script):
        words = shlex.split(line)[1:]
        variables = {"$COMMAND": "plan", "$TIMEOUT": "45m", "${found[@]}": "gemma.yaml"}
        filled = [variables.get(word, word) for word in words if word != "${words[@]}"]
        assert parse(two_dashes(filled)) is not None


def _step(command: str, folder: Path, environment: dict[str, str]) -> subprocess.Popen[str]:
    """The action's own step, in a shell as GitHub starts it."""
    (step,) = (s for s in _tree(ACTION)["runs"]["steps"] if s.get("id") == "run")
    (folder / "output").touch()
    variables = {"BACKEND": "", "ACCEPT": "", "LABEL": "", "AUTHOR": "github-actions[bot]", "TIMEOUT": "45m"}
    variables |= dict.fromkeys(("MAX_COST", "FLAG", "PROPOSED", "ACCURACY", "LOAD"), "")
    variables |= {
        "TPUDEPLOY_APPROVAL_KEY": APPROVAL_KEY,
        "COMMAND": command,
        "PROFILES": "deploy/**/*.yaml",
        "RUNNER_TEMP": str(folder),
        "HOME": str(folder),
    }
    variables |= {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    return subprocess.Popen(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        cwd=folder,
        env={**variables, **environment, "GITHUB_OUTPUT": str(folder / "output")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _run(command: str, folder: Path, environment: dict[str, str]) -> tuple[int, str, dict[str, str]]:
    """Exit code, what was said, outputs."""
    with _step(command, folder, environment) as process:
        output, _ = process.communicate(timeout=DEADLINE)
    lines = (folder / "output").read_text("utf-8").splitlines()
    return process.returncode, output, dict(line.split("=", 1) for line in lines)


def test_the_action_runs_each_of_its_commands(tmp_path: Path, forge: GitHubApi) -> None:
    (tmp_path / "deploy" / "team").mkdir(parents=True)
    (tmp_path / "deploy" / "team" / "gemma.yaml").write_text(PROFILE, encoding="utf-8")
    with running(scenario={"nodes": "simulated"}) as emulator:
        around = {
            **emulator.environment,
            "GITHUB_REPOSITORY": REPOSITORY,
            "GITHUB_TOKEN": TOKEN,
            "GITHUB_SHA": "b" * 40,
        }
        around |= {"GITHUB_API_URL": forge.url, "NO_PROXY": "127.0.0.1"}
        assert _run("validate", tmp_path, around)[0] == 0
        code, output, outputs = _run("plan", tmp_path, around)
        assert (code, outputs["changes"]) == (0, "true"), output
        assert Path(outputs["json-plan-path"]).parent == tmp_path / "tpudeploy"
        code, output, outputs = _run("apply", tmp_path, around)
        assert (code, outputs["exit-code"], outputs["failure-reason"]) == (11, "11", "TPU3006"), output
        assert _run("resume", tmp_path, around)[0] == 0
        assert _run("drift", tmp_path, around)[0] == 0
        assert not emulator.live()
    step_outputs = set(re.findall(r"steps\.run\.outputs\.([a-z-]+)", ACTION.read_text("utf-8")))
    assert {"changes", "fingerprint", "exit-code", "failure-reason", "drift", "json-plan-path"} <= step_outputs


def test_the_action_measures_below_its_ceiling(tmp_path: Path) -> None:
    (tmp_path / "deploy").mkdir()
    profile = PROFILE.replace("max_model_len", "padding_gap: 0\n  max_model_len")
    (tmp_path / "deploy" / "gemma.yaml").write_text(profile, encoding="utf-8")
    (tmp_path / "proposed.yaml").write_text(profile.replace("gap: 0", "gap: 512"), encoding="utf-8")
    load = "--concurrency 8 --context 512 --output 32"
    boot = {"paced": True}
    with running(scenario={"nodes": "simulated", "boot": boot}) as emulator:
        around = {**emulator.environment, "LOAD": load}
        _, _, outputs = _run("plan", tmp_path, around)
        assert _run("apply", tmp_path, {**around, "ACCEPT": outputs["fingerprint"]})[0] == 0
        code, output, _ = _run("bench", tmp_path, around)
        assert code == 1
        assert "`ci bench` needs a ceiling." in output
        code, output, outputs = _run("bench", tmp_path, {**around, "MAX_COST": "5"})
        assert (code, outputs["exit-code"]) == (0, "0"), output
        assert "No trend yet" in output
        measures = {**around, "LOAD": f"{load} --repeats 2", "MAX_COST": "5", "PROPOSED": "proposed.yaml"}
        code, output, _ = _run("ab", tmp_path, measures)
        assert code in {0, 13}, output
        assert "A = 0, B = 512" in output


def test_a_cancelled_job_saves_what_it_began_within_the_seconds_that_it_has(tmp_path: Path) -> None:
    (tmp_path / "deploy").mkdir()
    (tmp_path / "deploy" / "gemma.yaml").write_text(PROFILE, encoding="utf-8")
    with running(scenario={"nodes": "simulated", "trouble": [{"fault": "wait-for-ever"}]}) as emulator:
        around = dict(emulator.environment)
        _, _, outputs = _run("plan", tmp_path, around)
        with _step("apply", tmp_path, {**around, "ACCEPT": outputs["fingerprint"]}) as process:
            assert process.stdout is not None
            while "Queued in" not in process.stdout.readline():
                assert process.poll() is None
            process.send_signal(signal.SIGINT)
            output, _ = process.communicate(timeout=DEADLINE)
        assert process.returncode == 130
        assert "Work in progress is saved." in output
        (requests,) = (name for zone in emulator.live().values() for name in zone)
    assert requests in (tmp_path / ".tpudeploy" / "state" / "gemma.json").read_text("utf-8")


@pytest.mark.parametrize(("code", "ends"), [("12", 0), ("1", 1), ("11", 11), ("", 1)])
def test_only_a_hunt_that_goes_on_is_no_failure_of_the_job(code: str, ends: int) -> None:
    last = _tree(ACTION)["runs"]["steps"][-1]
    assert last["if"] == "${{ steps.run.outcome == 'failure' }}"
    process = subprocess.run(["bash", "-e", "-c", last["run"]], env={"CODE": code}, check=False)
    assert process.returncode == ends
