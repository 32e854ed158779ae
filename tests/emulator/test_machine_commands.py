"""What the commands of a machine answer to a startup script."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from emulator.machine_world import IMAGE, SERVE, World

PRIVATE = "us-east5-docker.pkg.dev/demo/images/vllm:1"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.stop()


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("project/project-id", "demo"),
        ("instance/preempted", "FALSE"),
        ("instance/attributes/tpudeploy-spec", "abc"),
        ("instance/attributes/accelerator-type", "v6e-1"),
        ("instance/attributes/agent-worker-number", "0"),
    ],
)
def test_the_metadata_server_answers(world: World, path: str, value: str) -> None:
    world.metadata["tpudeploy-spec"] = "abc"
    assert world.boot(f"value {path}").log() == value


def test_the_metadata_server_wants_its_header_and_knows_what_is_missing(world: World) -> None:
    machine = world.boot("""
        curl -s -o /dev/null -w '%{http_code}\\n' $metadata/instance/name
        curl -s -o /dev/null -w '%{http_code}\\n' -H Metadata-Flavor:Google $metadata/instance/attributes/none
        value instance/attributes/none || echo "exit $?"
        value instance/zone | sed 's/[0-9]\\{12\\}/N/'
    """)
    assert machine.log().splitlines() == [
        "403",
        "404",
        "curl: (22) The requested URL returned error: 404",
        "exit 22",
        "projects/N/zones/us-east5-b",
    ]


def test_refused_guest_attributes_are_told_to_the_script(world: World) -> None:
    machine = world.boot("report phase booted || echo refused", guest_attributes=False)
    assert not machine.guest_attributes
    assert "error: 403" in machine.log()
    assert "refused" in machine.log()


def test_guest_attributes_are_read_back_and_deleted(world: World) -> None:
    machine = world.boot("""
        report phase booted; report detail x; value instance/guest-attributes/tpudeploy/phase
        curl -sS -X DELETE -H 'Metadata-Flavor: Google' $metadata/instance/guest-attributes/tpudeploy/phase
    """)
    assert machine.log() == "booted"
    assert machine.guest_attributes == {"tpudeploy/detail": "x"}


@pytest.mark.parametrize(
    ("secret", "expected"),
    [
        (
            (403, "Permission denied."),
            '403 {"error": {"code": 403, "message": "Permission denied.", "status": "PERMISSION_DENIED"}}',
        ),
        (
            (200, "123456789"),
            '200 {"name": "projects/demo/secrets/hf/versions/1", "payload": {"data": "MTIzNDU2Nzg5", "dataCrc32c": "3808858755"}}',
        ),
    ],
    ids=["denied", "given"],
)
def test_secret_manager_answers_as_google_does(world: World, secret: tuple[int, str], expected: str) -> None:
    world.secrets["projects/demo/secrets/hf/versions/latest"] = secret
    machine = world.boot("""
        token=$(value instance/service-accounts/default/token | sed 's/.*access_token": "\\([^"]*\\)".*/\\1/')
        curl -sS -w ' %{http_code}' -K <(printf 'header = "Authorization: Bearer %s"\\n' "$token") \\
          https://secretmanager.googleapis.com/v1/projects/demo/secrets/hf/versions/latest:access
    """)
    body, _, status = machine.log().rpartition(" ")
    assert f"{status} {body}" == expected


def test_a_secret_needs_the_machines_own_token(world: World) -> None:
    machine = world.boot("""
        curl -sS -H 'Authorization: Bearer other' \\
          https://secretmanager.googleapis.com/v1/projects/demo/secrets/hf/versions/1:access
    """)
    assert '"UNAUTHENTICATED"' in machine.log()


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        ("http://example.com/", 6, "Could not resolve host: example.com"),
        ("http://secretmanager.googleapis.com/", 6, "Could not resolve host"),
        ("http://127.0.0.1:8000/health", 7, "Failed to connect to 127.0.0.1 port 8000"),
        ("--form x=y http://127.0.0.1/", 2, "option --form: is unknown"),
        ("-f https://storage.googleapis.com/bucket/object", 22, "error: 401"),
    ],
)
def test_there_is_no_other_network(world: World, words: str, code: int, text: str) -> None:
    machine = world.boot(f"curl -sS {words} || echo exit $?")
    assert text in machine.log()
    assert machine.log().splitlines()[-1] == f"exit {code}"


def test_curls_retries_wait_on_the_nodes_clock(world: World) -> None:
    machine = world.boot(
        f"""
        {SERVE}
        curl -sS --retry 6 --retry-delay 10 --retry-connrefused http://127.0.0.1:8000/version
    """,
        boot_seconds=25,
    )
    assert machine.exit_code is None
    world.pass_time(40, steps=4)
    assert machine.log().endswith('{"version": "0.32.0"}')


def test_a_pull_takes_its_time_and_fails_as_often_as_the_scenario_says(world: World) -> None:
    machine = world.boot(
        f"until docker pull {IMAGE}; do sleep 10; done; echo pulled", image_pull=60, image_pull_failures=2
    )
    world.pass_time(190, steps=19)
    assert machine.exit_code is None
    assert machine.log().count("TLS handshake timeout") == 2
    world.pass_time(10)
    assert machine.log().splitlines()[-1] == "pulled"


def test_a_private_registry_wants_the_machines_own_token(world: World) -> None:
    machine = world.boot(f"""
        docker pull {PRIVATE} || echo "exit $?"
        value instance/service-accounts/default/token | sed 's/.*access_token": "\\([^"]*\\)".*/\\1/' |
          docker login -u oauth2accesstoken --password-stdin https://us-east5-docker.pkg.dev
        docker pull {PRIVATE}
    """)
    lines = machine.log().splitlines()
    assert "denied: Unauthenticated request" in lines[0]
    assert lines[1:3] == ["exit 1", "Login Succeeded"]
    assert lines[-1] == PRIVATE


def test_docker_is_absent_until_it_is_installed(world: World) -> None:
    machine = world.boot(
        """
        command -v docker || echo none
        sudo DEBIAN_FRONTEND=noninteractive apt-get install -y docker.io >/dev/null
        docker version
        """,
        has_docker=False,
    )
    assert machine.log().splitlines()[0] == "none"
    assert machine.log().splitlines()[1].startswith("Docker version")


def test_docker_tells_of_a_container_what_scripts_ask(world: World) -> None:
    machine = world.boot(f"""
        {SERVE} >/dev/null 2>&1
        docker inspect -f '{{{{.State.Running}}}} {{{{.State.ExitCode}}}} {{{{json .HostConfig.NetworkMode}}}}' vllm
        docker ps --format '{{{{.Names}}}} {{{{.Status}}}}'
        docker stop vllm
        docker ps -a --filter name=vllm --format '{{{{.Names}}}} {{{{.Status}}}}'
        docker ps -q
        docker start vllm >/dev/null && docker ps --format '{{{{.State}}}}'
        docker rm vllm || echo "exit $?"
        docker rm -f vllm && docker inspect -f '{{{{.State.Running}}}}' vllm || echo "exit $?"
    """)
    assert machine.log().splitlines() == [
        'true 0 "host"',
        "vllm Up",
        "vllm",
        "vllm Exited (0)",
        "running",
        'Error response from daemon: cannot remove container "/vllm": container is running: stop it first',
        "exit 1",
        "vllm",
        "",
        "Error: No such object: vllm",
        "exit 1",
    ]


def test_a_name_is_taken_until_the_container_is_removed(world: World) -> None:
    machine = world.boot(f"{SERVE}; {SERVE} || echo exit $?")
    assert 'Conflict. The container name "/vllm" is already in use' in machine.log()
    assert machine.log().splitlines()[-1] == "exit 125"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("--gpu all image", "unknown flag: --gpu"),
        ("-Z image", "unknown shorthand flag: 'Z' in -Z"),
        ("-d --name", "flag needs an argument: --name"),
        ("-d", '"docker run" requires at least 1 argument'),
    ],
)
def test_docker_refuses_words_it_does_not_know(world: World, words: str, text: str) -> None:
    machine = world.boot(f"docker run {words} || echo exit $?")
    assert text in machine.log()
    assert machine.log().splitlines()[-1] == "exit 125"


def test_docker_names_what_is_missing(world: World) -> None:
    machine = world.boot("docker pull || echo exit $?; docker frobnicate || echo exit $?")
    assert machine.log().splitlines() == [
        "docker: requires exactly 1 argument, not 0.",
        "exit 125",
        "docker: 'frobnicate' is not a docker command that the emulator knows.",
        "See 'docker --help'",
        "exit 1",
    ]


def test_date_is_the_nodes(world: World) -> None:
    machine = world.boot("date +%s; date -u +%Y-%m-%dT%H:%M:%SZ")
    assert machine.log().splitlines() == ["1790000000", "2026-09-21T14:13:20Z"]
