"""How soon a fresh machine serves: in turn and side by side, without and with a compile cache in the bucket.

Run from the repository's root: `PYTHONPATH=tests python -m bench.cold_start`. Virtual time, the rendered script under
bash, the stand-in's measured boot: 300 s for the image; in the container 83 s of imports, 9 s to download the weights
and 50 s to load them, 448 s of engine start of which 394 s are compilation, 62 s until the API answers. An object takes
9 s from the bucket, which is what the hub took for all weights; that is an assumption, and hides behind the image.
"""

from __future__ import annotations

import math
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tpudeploy.adapters import assets
from tpudeploy.adapters.files import FileReader
from tpudeploy.boot_log.reading import StartPhase, Timeline
from tpudeploy.boot_log.starts import timeline
from tpudeploy.config.parse import parse
from tpudeploy.emulator import storage_api
from tpudeploy.emulator.clock import VirtualClock
from tpudeploy.emulator.http_server import Reply
from tpudeploy.emulator.machine.facts import Behaviour, MachineFacts
from tpudeploy.emulator.machine.machine import Machine
from tpudeploy.emulator.storage_objects import Conditions, StoredObject, StoredObjects
from tpudeploy.node import render
from tpudeploy.planning.resolve import resolve_without_script

IMAGE_SECONDS, BOOT_SECONDS, BUCKET_SECONDS = 300.0, 652.0, 9.0
PLAIN = """
version: 1
name: gemma
model: {id: google/gemma-4-E2B-it}
tpu: {type: v6e-1}
serving: {image: "vllm/vllm-tpu@sha256:DIGEST", max_model_len: 16384}
secrets: {HF_TOKEN: hf-token}
placement: {provisioning: [spot]}
""".replace("DIGEST", "5" * 64)  # as `apply` pins it: the cache's name is then known before the pull
KEPT = PLAIN.replace("-it}", '-it, mirror: "gs://bucket/gemma"}').replace(
    "max_model_len", 'xla_cache_bucket: "gs://bucket/xla", max_model_len'
)
# Each part in turn, as it was before parts were gathered.
IN_TURN = '\nbegin() {\n  "${@:2}"\n}\n'
MOST_SECONDS = 3600.0


@dataclass(frozen=True, kw_only=True)
class Start:
    """One start. Seconds from the script's first line to the completed prompt."""

    name: str
    timeline: Timeline

    @property
    def seconds(self) -> float:
        return self.timeline.reading.seconds

    @property
    def after_image(self) -> float:
        image = next(phase for phase in self.timeline.reading.phases if phase.name == "image")
        return self.seconds - image.began - (image.seconds or 0)

    @property
    def after_imports(self) -> float:
        """The same without the minute and a half in which the server imports and configures itself."""
        return self.after_image - sum(phase.seconds or 0 for phase in self.parts("imports", "engine"))

    def parts(self, *names: str) -> Iterator[StartPhase]:
        return (phase for phase in self.timeline.reading.phases if phase.name in names)


def measure(folder: Path, *, step: float = 1.0) -> tuple[Start, Start, Start]:
    """In turn and cold, side by side and cold, side by side with what the second left in the bucket.

    Time goes in steps of at least `step` seconds.
    """
    objects = StoredObjects(now=lambda: 1_790_000_000.0)
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        objects.insert("bucket", StoredObject(name=f"gemma/{name}", content=b"{}"), Conditions())
    templates = assets.templates()
    in_turn = {**templates, "boot/gather.sh": templates["boot/gather.sh"] + IN_TURN}
    return (
        start("in turn, cold", folder / "1", PLAIN, in_turn, objects, step=step),
        start("side by side, cold", folder / "2", KEPT, templates, objects, step=step),
        start("side by side, cached", folder / "3", KEPT, templates, objects, step=step),
    )


def start(
    name: str, folder: Path, profile: str, templates: Mapping[str, str], objects: StoredObjects, *, step: float
) -> Start:
    """Boot one fresh machine to the end of its script."""
    clock = VirtualClock()
    script = _script(folder, profile, templates)
    facts = MachineFacts(
        project="demo",
        zone="us-east5-b",
        node="bench",
        accelerator_type="v6e-1",
        worker=0,
        root=folder / "root",
        address="127.0.0.1",
        clock=clock,
        metadata=lambda: {"startup-script": script},
        secret=lambda _: (200, "made-up"),
        storage=lambda *request: _stored(objects, *request),
    )
    behaviour = Behaviour(image_pull=IMAGE_SECONDS, boot_seconds=BOOT_SECONDS, bucket=BUCKET_SECONDS)
    machine = Machine(facts, behaviour)
    machine.boot()
    try:
        _to_the_end(machine, clock, step)
        phases = timeline("gemma[0]", name, machine.log(), None)
    finally:
        machine.stop()
    if phases is None or not phases.reading.is_serving:
        raise RuntimeError(f"it does not serve:\n{machine.log()}")
    return Start(name=name, timeline=phases)


def _to_the_end(machine: Machine, clock: VirtualClock, step: float) -> None:
    end = clock.now() + MOST_SECONDS
    machine.settle()
    while machine.exit_code is None and clock.now() < end:
        moment = machine.next_moment()
        clock.sleep(step if moment is None else max(step, math.ceil(moment - clock.now())))
        machine.settle()


def _script(folder: Path, profile: str, templates: Mapping[str, str]) -> str:
    folder.mkdir(parents=True)
    file = folder / "gemma.yaml"
    file.write_text(profile, encoding="utf-8")
    deployment = resolve_without_script(
        parse(str(file), FileReader(), environment={}), project="demo", config_json=None
    )
    return render.startup_script(deployment, templates, "bench")


def _stored(objects: StoredObjects, method: str, target: str, body: bytes) -> Reply:
    request = storage_api.parse_request(method, target, body)
    assert request is not None
    reply = storage_api.answer(objects, request, {})
    return Reply(http=reply.http, body=reply.payload(indent=2))


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        starts = measure(Path(folder))
    first = starts[0]
    say = sys.stdout.write
    say(f"{'':22}{'serves in':>11}{'of the first':>14}{'after the image':>17}{'of the first':>14}\n")
    for each in starts:
        shares = f"{each.seconds / first.seconds:>14.1%}{each.after_image:>15.0f} s{each.after_image / first.after_image:>14.1%}"
        say(f"{each.name:22}{each.seconds:>9.0f} s{shares}\n")
    last = starts[-1]
    say(f"\nafter the image, of the first start's whole: {last.after_image / first.seconds:.1%}\n")
    say(f"after the image without imports: {last.after_imports / first.after_imports:.1%} of the first's\n")
    for each in starts:
        path = " → ".join(f"{phase.name} {phase.seconds:.0f}" for phase in each.timeline.critical)
        say(f"\n{each.name}, critical path: {path}\n")


if __name__ == "__main__":
    main()
