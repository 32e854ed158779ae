"""Records what the engine says of a tiny model: data/compiled.jsonl and data/answer.jsonl, which the tests play back.

python tests/features/compile/record.py PYTHON-WITH-VLLM-TPU
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import tpudeploy as td
from tpudeploy.domain import pins
from tpudeploy.features.compile import service

DATA = Path(__file__).parent / "data"
PROFILE = """\
version: 1
name: tiny
model: {id: example/tiny-qwen3, config: config.json}
tpu: {type: v6e-1}
serving:
  image: vllm/vllm-tpu:v0.32.0
  max_model_len: 256
  max_num_seqs: 8
  max_num_batched_tokens: 32
secrets: {VLLM_API_KEY: vllm-key}
placement: {zones: [us-east5-b], provisioning: [spot]}
"""


def main() -> None:
    child = Path(service.__file__).with_name("child.py")
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "tiny.yaml"
        path.write_text(PROFILE, encoding="utf-8")
        (Path(name) / "config.json").write_bytes((DATA / "config.json").read_bytes())
        question = service.request(*service.resolve_question(td.Profile.load(path), pins.NONE))
    whole: dict[str, object] = {"graphs": {"done": [], "only": []}}
    for file, graphs in (("answer.jsonl", {}), ("compiled.jsonl", whole)):
        line = json.dumps({**question, **graphs}) + "\n"
        process = subprocess.run([sys.argv[1], str(child)], input=line, stdout=subprocess.PIPE, text=True, check=True)
        (DATA / file).write_text(process.stdout, encoding="utf-8")


if __name__ == "__main__":
    main()
