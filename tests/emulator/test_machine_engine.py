"""A real engine in the place of the stand-in: what it is given, what it is not, and that nothing of it is left."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from emulator.machine_world import IMAGE, World
from real_time import until

from tpudeploy.domain.errors import UsageError
from tpudeploy.emulator import process
from tpudeploy.emulator.machine.real_engine import Order, translate
from tpudeploy.emulator.machine.root import Root

# It stands for vLLM's command line: says what it was given, then does what its first flag tells.
ENGINE = """
import json, os, subprocess, sys, time
names = ("KEY", "VLLM_CPU_KVCACHE_SPACE", "HF_HOME", "VLLM_XLA_CACHE_PATH")
print(json.dumps([sys.argv[1:], {name: os.environ[name] for name in names if name in os.environ}]), flush=True)
if "--hang" in sys.argv:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    print(os.getpid(), child.pid, flush=True)
    time.sleep(600)
sys.exit(3)
"""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    engine = tmp_path / "engine.py"
    engine.write_text(ENGINE, encoding="utf-8")
    fresh = World(tmp_path, engine=(sys.executable, str(engine)))
    yield fresh
    fresh.stop()


def ordered(*words: str, has_avx512: bool = True, volumes: Sequence[str] = (), **environment: str) -> Order:
    return translate(
        ("vllm",),
        words,
        environment,
        place=("127.0.0.2", 8000),
        volumes=volumes,
        root=Root(Path("/node")),
        has_avx512=has_avx512,
    )


def test_an_engine_gets_the_containers_words_on_the_nodes_address() -> None:
    engine = ordered("m", "--port", "9", "--host=0.0.0.0", "--max-model-len", "1024", "--enforce-eager", KEY="value")
    assert engine.words == (
        *("vllm", "serve", "m", "--max-model-len", "1024", "--enforce-eager"),
        *("--host", "127.0.0.2", "--port", "8000"),
    )
    assert (engine.environment, engine.notes) == ({"KEY": "value"}, ())


def test_paths_of_the_container_become_those_of_the_nodes_disk() -> None:
    volumes = ("/node/var/weights:/weights", "/node/var/hf:/root/.cache/huggingface:ro", "/elsewhere:/other")
    engine = ordered(
        "/weights",
        "--chat-template=/weights/c.jinja",
        "/other/x",
        volumes=volumes,
        HF_HOME="/root/.cache/huggingface/h",
    )
    assert engine.words[2:5] == ("/node/var/weights", "--chat-template=/node/var/weights/c.jinja", "/other/x")
    assert engine.environment == {"HF_HOME": "/node/var/hf/h"}
    assert engine.notes == (
        "/weights is loaded from its place on the node's disk, which the engine's API gives as its model",
    )


@pytest.mark.parametrize(
    ("words", "note"),
    [
        (("--tensor-parallel-size", "4"), "dropped --tensor-parallel-size 4: a CPU engine is one device"),
        (("--tensor-parallel-size=4",), "dropped --tensor-parallel-size 4: a CPU engine is one device"),
        (("-tp", "4"), "dropped -tp 4: a CPU engine is one device"),
        (("--additional-config", "{}"), "dropped --additional-config {}: it configures tpu_inference"),
        (
            ("--kv_cache_dtype", "fp8"),
            "dropped --kv-cache-dtype fp8: this CPU has no AVX-512, which such a cache needs",
        ),
    ],
)
def test_what_a_cpu_cannot_do_is_dropped_and_said(words: Sequence[str], note: str) -> None:
    engine = ordered("m", *words, "--seed", "1", has_avx512=False)
    assert engine.words[2:5] == ("m", "--seed", "1")
    assert engine.notes == (note,)


@pytest.mark.parametrize(
    "words", [("--tensor-parallel-size", "1"), ("--kv-cache-dtype", "bfloat16"), ("--no-such", "x")]
)
def test_everything_else_is_the_engines_to_accept_or_refuse(words: Sequence[str]) -> None:
    engine = ordered("m", *words, has_avx512=False)
    assert (engine.words[3:5], engine.notes) == (tuple(words), ())


def test_variables_of_a_tpu_build_are_dropped_and_said() -> None:
    engine = ordered("m", VLLM_TPU_BUCKET_PADDING_GAP="512", HF_HOME="/x")
    assert engine.environment == {"HF_HOME": "/x"}
    assert engine.notes == ("dropped the variable VLLM_TPU_BUCKET_PADDING_GAP: only a TPU build reads it",)


def test_a_container_is_the_engine_and_its_log_is_the_engines(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HOME", "/of/the/emulator")
    machine = world.boot(f"""
        serve -e KEY=value -e VLLM_XLA_CACHE_PATH=/x {IMAGE} bash -c 'pip install x && vllm serve m --seed 1' >/dev/null 2>&1
    """)
    lines, code = _ended(world)
    assert lines[:2] == [
        "emulator: the setup steps are not run: no text of a profile is",
        "emulator: dropped the variable VLLM_XLA_CACHE_PATH: only a TPU build reads it",
    ]
    words, environment = json.loads(lines[2])
    assert words == ["serve", "m", "--seed", "1", "--host", machine.address, "--port", "8000"]
    assert environment == {"KEY": "value", "VLLM_CPU_KVCACHE_SPACE": "1", "HF_HOME": "/of/the/emulator"}
    assert code == 3


def test_an_engine_that_is_not_there_is_said_in_the_containers_log(world: World) -> None:
    world.engine = ("/no/such/engine",)
    world.boot(f"serve {IMAGE} vllm serve m >/dev/null 2>&1")
    lines, code = _ended(world)
    assert lines == ["emulator: the engine `/no/such/engine` cannot be started: No such file or directory"]
    assert code == 127


@pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")
@pytest.mark.parametrize("how", ["stop", "remove", "end of the machine"])
def test_nothing_that_an_engine_started_outlives_it(world: World, how: str) -> None:
    machine = world.boot(f"serve {IMAGE} vllm serve m --hang >/dev/null 2>&1")
    (container,) = machine._node.daemon.containers()
    until(lambda: len(container.log().decode().splitlines()) > 1)
    second = container.log().decode().splitlines()[1]
    pids = [int(pid) for pid in second.split()]
    match how:
        case "stop":
            container.stop()
            assert container.exit_code == 143
        case "remove":
            machine._node.daemon.remove(container)
        case _:
            machine.stop()
    until(lambda: not any(map(_lives, pids)))


@pytest.mark.parametrize(
    ("scenario", "more", "words"),
    [
        ("{}", {"engine": ("no-such-engine",)}, "There is no command `no-such-engine`."),
        ("{nodes: simulated}", {"engine": ("sh",)}, "A real engine needs real nodes"),
        ("{}", {"engine": ("sh",), "speed": 10.0}, "A real engine runs in real time."),
    ],
)
def test_where_an_engine_cannot_run_it_is_said_before_anything_starts(
    tmp_path: Path, scenario: str, more: Mapping[str, Any], words: str
) -> None:
    (tmp_path / "scenario.yaml").write_text(scenario, encoding="utf-8")
    with pytest.raises(UsageError, match=words):
        process.run(["true"], scenario=tmp_path / "scenario.yaml", **more)


def _ended(world: World) -> tuple[list[str], int | None]:
    (container,) = world.machines[-1]._node.daemon.containers()
    until(lambda: container.exit_code is not None)
    return container.log().decode().splitlines(), container.exit_code


def _lives(pid: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text("utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return False
