"""What a command takes to start: whole processes, and the CPU of each as a multiple of what Python takes to do nothing.

The runs are paired, so that a busy machine slows down both sides of a ratio. Terraform's commands are beside ours.

A benchmark, not a test: `make bench`, or `PYTHONPATH=tests python -m bench.startup [RUNS]`.
"""

from __future__ import annotations

import os
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench.fleet import profile as fleet_profile

from tpudeploy.emulator import running

ROOT = Path(__file__).parents[2]
PROFILE = "gemma4-e2b-v6e1.yaml"
TPUDEPLOY = str(Path(sys.executable).with_name("tpudeploy"))


@dataclass(frozen=True, kw_only=True)
class Case:
    """`once` is one run, in seconds of wall time and of CPU; `most` is the limit in seconds, on a quiet machine."""

    name: str
    once: Callable[[], tuple[float, float]]
    most: float | None = None


def main(runs: int) -> None:
    # The emulator is in this process, so its CPU is not counted.
    with tempfile.TemporaryDirectory() as folder, running(scenario={"nodes": "simulated"}) as emulator:
        work = Path(folder)
        shutil.copy(ROOT / "profiles" / PROFILE, work)
        cases = tuple(_cases(work, emulator.environment))
        width = max(len(case.name) for case in cases)
        for case in cases:
            case.once()  # the first run writes bytecode and warms the disk
        rounds = [[case.once() for case in cases] for _ in range(runs)]
        for number, case in enumerate(cases):
            seconds = median(pairs[number][0] for pairs in rounds)
            multiple = median(pairs[number][1] / pairs[0][1] for pairs in rounds)
            goal = f"   at most {case.most:.2f} s" if case.most is not None else ""
            over = "   OVER" if case.most is not None and seconds > case.most else ""
            print(f"{case.name.ljust(width)}  {seconds:.3f} s, {multiple:5.1f} x the CPU of python -c pass{goal}{over}")


def _cases(work: Path, cloud: Mapping[str, str]) -> Iterator[Case]:
    yield Case(name="python -c pass", once=_whole([sys.executable, "-c", "pass"], work))
    yield Case(name="tpudeploy --help", once=_whole([TPUDEPLOY, "--help"], work), most=0.15)
    yield Case(name="tpudeploy validate", once=_whole([TPUDEPLOY, "validate", PROFILE], work), most=0.5)
    yield Case(name="tpudeploy validate, without bytecode", once=_without_bytecode(work))
    for count in (40, 1000):
        fleet = work / f"fleet-{count}"
        fleet.mkdir()
        for number in range(count):
            (fleet / f"d{number:04}.yaml").write_text(fleet_profile(number), encoding="utf-8")
        once = _whole([TPUDEPLOY, "validate", fleet.name], work)
        yield Case(name=f"tpudeploy validate, {count} profiles", once=once)
        once = _whole([TPUDEPLOY, "plan", fleet.name], work, {**cloud, "GOOGLE_CLOUD_PROJECT": "emulated"})
        yield Case(name=f"tpudeploy plan, {count} new profiles", once=once)
    _ask_for_one(work, cloud)
    yield Case(name="tpudeploy plan, to its first byte", once=_first_byte(work), most=0.8)
    terraform = shutil.which("terraform")
    if terraform:
        plain = work / "terraform"
        plain.mkdir()
        (plain / "main.tf").write_text('resource "terraform_data" "one" {\n  input = 1\n}\n')
        subprocess.run([terraform, "init"], cwd=plain, env=_environment(), capture_output=True, check=True)
        for command in ("-help", "validate", "plan"):
            yield Case(name=f"terraform {command}", once=_whole([terraform, command], plain))


def _whole(
    argv: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None
) -> Callable[[], tuple[float, float]]:
    def once() -> tuple[float, float]:
        began, before = time.perf_counter(), _cpu_of_children()
        subprocess.run(argv, cwd=folder, env=_environment(environment), capture_output=True, check=True)
        return time.perf_counter() - began, _cpu_of_children() - before

    return once


def _without_bytecode(work: Path) -> Callable[[], tuple[float, float]]:
    """Return a run of a copy of the package that is compiled at each start, as where Python may not keep bytecode."""
    copy = work / "without-bytecode"
    for folder in ("tpudeploy", "templates", "profiles"):
        shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__"))
    code = "import sys; from tpudeploy.cli.main import main; sys.exit(main(['validate', *sys.argv[1:]]))"
    return _whole([sys.executable, "-B", "-c", code, PROFILE], work, {"PYTHONPATH": str(copy)})


def _ask_for_one(work: Path, cloud: Mapping[str, str]) -> None:
    """The usual plan: of a deployment that has a state. Without one, the whole project is looked through instead."""
    subprocess.run(
        [TPUDEPLOY, "apply", PROFILE, "-auto-approve", "--wait", "accepted"],
        cwd=work,
        env=_environment(cloud),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _first_byte(work: Path) -> Callable[[], tuple[float, float]]:
    """From the start of `plan` to the first byte that a cloud would get. The answer never comes."""

    def once() -> tuple[float, float]:
        before = _cpu_of_children()
        with socket.create_server(("127.0.0.1", 0)) as listener:
            host = f"127.0.0.1:{listener.getsockname()[1]}"
            began = time.perf_counter()
            with subprocess.Popen(
                [TPUDEPLOY, "plan", PROFILE],
                cwd=work,
                env=_environment({"TPU_EMULATOR_HOST": host}),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            ) as child:
                listener.settimeout(30)
                connection, _ = listener.accept()
                with connection:
                    connection.recv(1)
                    elapsed = time.perf_counter() - began
                    child.kill()
        return elapsed, _cpu_of_children() - before

    return once


def _environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Bytecode is kept, as it is where people install."""
    return {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"} | dict(more or {})


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 11)
