"""What the commands of a machine answer to a startup script."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from emulator.machine_world import IMAGE, SERVE, World

PRIVATE = "us-east5-docker.pkg.dev/demo/images/vllm:1"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    fresh = World(tmp_path)
    yield fresh
    fresh.stop()


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
    assert machine.log().splitlines()[1] == "Client:"


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
    machine = world.boot("docker pull || echo exit $?; docker rm -f || echo exit $?")
    assert machine.log().splitlines() == [
        "docker: requires exactly 1 argument, not 0.",
        "exit 125",
        "docker: requires at least 1 argument.",
        "exit 125",
    ]


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ("docker exec vllm true", "this command of `exec`"),
        ("docker restart vllm", "`restart`"),
        ("docker logs --since 5m vllm", "`--since` of `logs`"),
        ("docker inspect -s vllm", "`-s` of `inspect`"),
        ("docker inspect -f '{{.State.Healthy}}' vllm", "the field `.State.Healthy` of `inspect`"),
        ("docker inspect -f '{{range .Mounts}}{{end}}' vllm", "the template `{{range .Mounts}}{{end}}` of `inspect`"),
        ("docker run --restart always image", "`--restart` of `run`"),
        ("docker run --entrypoint /bin/sh image", "`--entrypoint` of `run`"),
        ("docker run --env-file secrets image", "`--env-file` of `run`"),
        ("systemctl enable docker", "`enable`"),
        ("systemctl", "``"),
        ("systemctl --user is-active docker", "`--user`"),
        ("systemctl stop docker", "`stop docker`"),
        ("systemd-run --unit=a --property=MemoryMax=1G bash", "`--property=MemoryMax`"),
        ("systemd-run --unit=a --scope bash", "`--scope`"),
        ("systemd-run --unit=a --property=RestartSec=5min bash", "`RestartSec=5min`: it takes plain seconds"),
        ("curl --form x=y http://127.0.0.1/", "`--form`"),
        ("curl -D headers http://127.0.0.1/", "`-D`"),
        ("curl -w '%{time_total}' http://127.0.0.1/", "`%{time_total}` of --write-out"),
        ("curl -H Metadata-Flavor:Google $metadata/instance/?alt=json", "the parameter `alt` of the metadata server"),
        ("apt-get remove docker.io", "`remove`"),
        ("apt-get install --reinstall docker.io", "`--reinstall`"),
        ("date --date=yesterday", "`--date=yesterday`"),
        ("hostname -I", "`-I`"),
    ],
)
def test_a_stand_in_that_cannot_answer_says_so(world: World, words: str, what: str) -> None:
    """Whatever the script does with the errors of its commands: its console has them, and the emulator."""
    machine = world.boot(f"{SERVE} >/dev/null 2>&1; set +e; {words} >/dev/null 2>&1; echo exit $?")
    name = words.partition(" ")[0]
    assert machine.log().splitlines() == [f"{name}: the emulator's stand-in does not support {what}", "exit 95"]
    assert world.unsupported == [f"{name}: the emulator's stand-in does not support {what}"]


@pytest.mark.parametrize("name", ["gcloud", "journalctl", "service", "sysctl", "modprobe", "gsutil", "pip", "python3"])
def test_a_command_without_a_stand_in_is_not_there(world: World, name: str) -> None:
    machine = world.boot(f"{name} x || echo exit $?")
    assert machine.log().splitlines()[-2:] == [machine.log().splitlines()[-2], "exit 127"]
    assert f"{name}: command not found" in machine.log()


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        ("systemctl start docker", 0, ""),
        ("systemctl start nginx", 5, "Failed to start nginx.service: Unit nginx.service not found."),
        ("systemctl stop nginx", 5, "Failed to stop nginx.service: Unit nginx.service not loaded."),
        ("systemctl is-active docker", 0, "active"),
        ("systemctl is-active nginx", 3, "inactive"),
        ("systemctl stop", 1, "Too few arguments."),
        ("apt-get install -y jq", 100, "E: Unable to locate package jq"),
        ("sleep", 1, "sleep: missing operand"),
        ("curl -sS --max-time 10 -H Metadata-Flavor:Google $wait", 28, "Operation timed out"),
        ("curl -s -f -X POST -H Metadata-Flavor:Google $metadata/instance/guest-attributes/a/b", 22, ""),
    ],
)
def test_a_stand_in_refuses_in_the_words_of_the_real_one(world: World, words: str, code: int, text: str) -> None:
    wait = "wait=$metadata/instance/attributes/?wait_for_change=true"
    machine = world.boot(f"{wait}; {words} || echo exit $?")
    world.pass_time(20, steps=2)
    last = (machine.log().splitlines() or [""])[-1]
    assert (last == f"exit {code}") == (code != 0)
    assert text in machine.log()
    assert not world.unsupported


def test_date_is_the_nodes(world: World) -> None:
    machine = world.boot("date +%s; date -u +%Y-%m-%dT%H:%M:%SZ")
    assert machine.log().splitlines() == ["1790000000", "2026-09-21T14:13:20Z"]
