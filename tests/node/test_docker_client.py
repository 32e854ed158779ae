"""What a real docker client asks of a docker engine, for any profile: exactly that container and nothing else."""

from __future__ import annotations

import copy
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from real_time import DEADLINE

from node import docker_api
from node.containers import HF_TOKEN, container, deployment
from node.record import FEW, NAME, WORD
from tpudeploy.domain.deployment import SecretRef
from tpudeploy.node import serving, shell

pytestmark = pytest.mark.skipif(shutil.which("docker") is None, reason="needs a docker client; no daemon is asked")


@pytest.fixture(scope="module")
def engine() -> Iterator[docker_api.Engine]:
    # A unix socket's path is short: pytest's own folders are too deep.
    with tempfile.TemporaryDirectory() as folder, docker_api.serving(Path(folder) / "docker.sock") as engine:
        yield engine


def ask(engine: docker_api.Engine, *words: str, **secrets: str) -> docker_api.Created:
    """Run one docker command against the engine; what it asked to create."""
    folder = str(engine.socket.parent)
    environment = {"DOCKER_HOST": f"unix://{engine.socket}", "DOCKER_CONFIG": folder, "HOME": folder, **secrets}
    program = shutil.which(words[0]) or words[0]
    process = subprocess.run(
        [program, *words[1:]], env=environment, capture_output=True, text=True, timeout=DEADLINE, check=False
    )
    assert (process.returncode, process.stderr) == (0, "")
    assert not engine.strange
    return engine.created.pop()


@pytest.fixture(scope="module")
def bare(engine: docker_api.Engine) -> dict[str, Any]:
    """The body of a container about which nothing is said but its network (which stands in more than one place)."""
    return ask(engine, "docker", "run", "-d", "--name", "bare", "--net=host", "image").body


@settings(FEW, max_examples=40)
@given(
    args=st.lists(WORD, max_size=5).map(tuple),
    environment=st.dictionaries(NAME.filter(lambda name: name != "HF_TOKEN"), WORD, max_size=4),
    setup=st.lists(WORD, max_size=3).map(tuple),
    token=WORD,
)
def test_the_engine_is_asked_for_exactly_the_profiles_container(
    engine: docker_api.Engine,
    bare: dict[str, Any],
    *,
    args: tuple[str, ...],
    environment: dict[str, str],
    setup: tuple[str, ...],
    token: str,
) -> None:
    bent = container(serve=("vllm", "serve", *args), environment=environment, setup=setup, secrets=(HF_TOKEN,))
    created = ask(engine, *serving.docker_run(bent), HF_TOKEN=token)
    expected = copy.deepcopy(bare)
    expected["Image"] = bent.image
    expected["Cmd"] = list(serving.command(bent))
    expected["Env"] = sorted([*(f"{name}={value}" for name, value in environment.items()), f"HF_TOKEN={token}"])
    expected["HostConfig"] |= {
        "Binds": ["/dev/shm:/dev/shm"],
        "NetworkMode": "host",
        "Privileged": True,
        "ShmSize": 10 * 2**30,
    }
    assert created.body == expected
    assert created.name == bent.name


def test_what_is_not_written_is_not_asked_for(engine: docker_api.Engine, bare: dict[str, Any]) -> None:
    created = ask(engine, *serving.docker_run(container(shm_size=None, environment={}, volumes=())))
    assert created.body["HostConfig"]["ShmSize"] == bare["HostConfig"]["ShmSize"]
    assert created.body["HostConfig"]["Binds"] == bare["HostConfig"]["Binds"]
    assert created.body["Env"] == bare["Env"]


@pytest.mark.parametrize("refuses", [False, True], ids=["fetched", "refused"])
def test_the_pasted_lines_fetch_the_secrets_and_create_the_container_of_the_profile(
    engine: docker_api.Engine, tmp_path: Path, *, refuses: bool
) -> None:
    key = SecretRef(variable="VLLM_API_KEY", secret="projects/p-1/secrets/vllm-key/versions/3")
    bent = container(serve=("vllm", "serve", "m", "--x", "it's; $(id) !"), setup=("true",), secrets=(HF_TOKEN, key))
    words = serving.docker_run(bent)
    expected = ask(engine, *words, HF_TOKEN="latest of hf-token", VLLM_API_KEY="3 of vllm-key in p-1")
    gcloud = tmp_path / "gcloud"
    gcloud.write_text(_GCLOUD if not refuses else "#!/bin/sh\nexit 1\n")
    gcloud.chmod(0o755)
    folder = str(engine.socket.parent)
    environment = {"DOCKER_HOST": f"unix://{engine.socket}", "DOCKER_CONFIG": folder, "HOME": folder}
    docker = Path(shutil.which("docker") or "docker").parent
    process = subprocess.run(
        ["/bin/bash", "-c", shell.docker_shell(deployment(bent))],
        env={**environment, "PATH": f"{tmp_path}:{docker}:/usr/bin:/bin"},
        capture_output=True,
        timeout=DEADLINE,
        check=False,
    )

    if refuses:
        assert process.returncode != 0
        assert not engine.created
    else:
        assert process.returncode == 0, process.stderr
        assert engine.created.pop().body == expected.body


_GCLOUD = """#!/bin/bash
[[ $* =~ ^secrets\\ versions\\ access\\ ([^ ]+)\\ --secret=([^ ]+)(\\ --project=([^ ]+))?$ ]] || exit 2
echo "${BASH_REMATCH[1]} of ${BASH_REMATCH[2]}${BASH_REMATCH[4]:+ in ${BASH_REMATCH[4]}}"
"""
