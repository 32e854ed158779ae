"""Writes tpudeploy/catalog/_engine_models.py: what the engine of another Python makes of the models that it lists.

    VLLM_PYTHON=PYTHON-WITH-VLLM-TPU python tests/oracle/dump_engine_models.py [-add LIST] [-answers FILE] [-only WORDS]

Each model and its settings are asked about on 1, 2, 4 and 8 chips, through tpudeploy/features/compile/child.py: seconds
of computing each. LIST adds models, one JSON object a line: `id`, `source` (where its config.json is public), `config`
(the fields that decide shapes), and `settings` if the engine needs some. FILE keeps the answers as they come, so that a
run that was killed continues; what was not asked keeps its row. Transformers' classes on PyTorch's meta device count the parameters; a model that the
engine's own count misses by more than 0.1 % is named.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tpudeploy.features.compile.rows import compact, question

ROOT = Path(__file__).parents[2]
BLOCKS = ROOT / "tests" / "sizing" / "data" / "engine_blocks.jsonl"
TABLE = ROOT / "tpudeploy" / "catalog" / "_engine_models.py"
CHILD = ROOT / "tpudeploy" / "features" / "compile" / "child.py"
CHIPS = (1, 2, 4, 8)
HBM_BYTES = 33_550_237_696  # of one v6e chip, as its runtime reports it: blocks are compared there
WORTH_NAMING = 0.001

HEADER = '''\
"""Models as the engine itself sizes them, written by tests/oracle/dump_engine_models.py; never edit by hand.

`MODELS` holds one JSON document a line. `config` has the fields of the model's config.json that decide shapes, `source`
says where that is public, and `settings` are those of a profile with which the engine was asked. `weights` are bytes on
a chip, by the number of chips that share the model; `attention` has layers, KV heads, head size and window of each
kind; `refusal` and `refusals` are the engine's words. `DIGEST` is of the lines.
"""
# ruff: noqa: E501 - one document a line
'''
# Parameters as Transformers' classes count them, from a Python that has them.
COUNT = """
import json, sys, torch, transformers
from transformers import CONFIG_MAPPING
transformers.logging.set_verbosity_error()
for line in sys.stdin:
    config = json.loads(line)
    try:
        fields = {k: v for k, v in config.items() if k not in ("quantization_config", "torch_dtype", "model_type")}
        made = CONFIG_MAPPING[config["model_type"]](**fields)
        with torch.device("meta"):
            model = getattr(transformers, config["architectures"][0])(made)
        print(sum(p.numel() for p in {id(p): p for p in model.parameters()}.values()), flush=True)
    except Exception as cause:
        print(json.dumps(f"{type(cause).__name__}: {cause}"[:200]), flush=True)
"""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("-add", type=Path)
    parser.add_argument("-answers", type=Path, default=Path("engine_answers.jsonl"))
    parser.add_argument(
        "-only", default="", help="ask about ids with one of these words, with commas between; - asks nothing"
    )
    args = parser.parse_args()
    python = os.environ["VLLM_PYTHON"]
    models = {key(model): model for model in [*listed(), *added(args.add)]}
    answers = {tuple(row["key"]): row for row in read_lines(args.answers)}
    words = () if args.only == "-" else tuple(args.only.split(","))
    chosen = [model for model in models.values() if any(word in model["id"] for word in words)]
    requests = [(model, chips) for chips in CHIPS for model in chosen if (*key(model), str(chips)) not in answers]
    for (model, chips), answer in zip(requests, ask(python, requests), strict=False):
        keep(args.answers, answers, [*key(model), str(chips)], answer)
        print(model["id"], chips, answer.get("refusal", "")[:100], flush=True)
    rows = {key(row): row for row in table_rows()}
    asked = {name: model for name, model in models.items() if model in chosen or name not in rows}
    uncounted = [model for model in asked.values() if (model["id"], "", "parameters") not in answers]
    for model, count in zip(uncounted, parameters(python, uncounted), strict=True):
        keep(args.answers, answers, [model["id"], "", "parameters"], {"count": count})
    lines, release = [dump(row) for name, row in rows.items() if name not in asked], ""
    for model in asked.values():
        count = answers[model["id"], "", "parameters"]["count"]
        each = {chips: answers.get((*key(model), str(chips)), {}) for chips in CHIPS}
        row = compact(model, each, count)
        loaded = next((one["answer"]["parameters"] for one in each.values() if "answer" in one), 0)
        is_packed = "quantization_config" in model["config"]
        if "weights" in row and not is_packed and abs(off := loaded / row["parameters"] - 1) > WORTH_NAMING:
            print(f"{model['id']}: the engine's parameters are {off:+.2%} off {row['parameters']:,}", file=sys.stderr)
        release = release or next((one["answer"]["engine"] for one in each.values() if "answer" in one), "")
        if "weights" in row or row["refusal"]:
            lines.append(dump(row))
    write(sorted(lines), release)
    names = {(model["id"], chips) for model in asked.values() for chips in CHIPS}
    kept = [line for line in BLOCKS.read_text("utf-8").splitlines(keepends=True) if block_of(line) not in names]
    BLOCKS.write_text("".join(sorted({*kept, *blocks_of(answers.values())})), encoding="utf-8")


def dump(row: Mapping[str, Any]) -> str:
    return json.dumps(row, separators=(",", ":"), sort_keys=False)


def block_of(line: str) -> tuple[str, int]:
    row = json.loads(line)
    return row["id"], row["chips"]


def blocks_of(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield what the tests compare with: the blocks that the engine's own code made of the memory that was left."""
    for row in rows:
        answer = row.get("answer", {})
        if "num_blocks" in answer:
            model_id, settings, chips = row["key"]
            fields = {"id": model_id, "settings": json.loads(settings), "chips": int(chips)}
            yield (
                json.dumps({**fields, "num_blocks": answer["num_blocks"], "max_model_len": answer["max_model_len"]})
                + "\n"
            )


def keep(path: Path, answers: dict[tuple[str, ...], Any], name: list[str], answer: Mapping[str, Any]) -> None:
    answers[tuple(name)] = {"key": name, **answer}
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(answers[tuple(name)]) + "\n")


def key(model: Mapping[str, Any]) -> tuple[str, str]:
    return model["id"], json.dumps(model.get("settings", {}), sort_keys=True)


def listed() -> list[Mapping[str, Any]]:
    """Return the models of the table as it stands."""
    return [{name: row[name] for name in ("id", "settings", "source", "config")} for row in table_rows()]


def table_rows() -> list[Mapping[str, Any]]:
    if not TABLE.exists():
        return []
    text = TABLE.read_text(encoding="utf-8").partition('MODELS = r"""\n')[2].partition('"""')[0]
    return [json.loads(line) for line in text.splitlines()]


def added(path: Path | None) -> Iterator[Mapping[str, Any]]:
    for row in read_lines(path) if path else ():
        yield {"id": row["id"], "settings": row.get("settings", {}), "source": row["source"], "config": row["config"]}


def read_lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def ask(python: str, requests: Iterable[tuple[Mapping[str, Any], int]]) -> Iterator[Mapping[str, Any]]:
    lines = "".join(
        json.dumps(question(model["config"], model["settings"], chips, hbm_bytes=HBM_BYTES)) + "\n"
        for model, chips in requests
    )
    if not lines:
        return
    with subprocess.Popen([python, str(CHILD)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(lines)
        process.stdin.close()
        yield from map(json.loads, process.stdout)


def parameters(python: str, models: list[Mapping[str, Any]]) -> list[int | str]:
    if not models:
        return []
    lines = "".join(json.dumps(model["config"]) + "\n" for model in models)
    ended = subprocess.run([python, "-c", COUNT], input=lines, stdout=subprocess.PIPE, text=True, check=True)
    return [json.loads(line) for line in ended.stdout.splitlines()]


def write(lines: list[str], release: str) -> None:
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    text = f'{HEADER}\nRELEASE = "tpu-inference {release}"\nDIGEST = "{digest}"\n\nMODELS = r"""\n'
    TABLE.write_text(text + "".join(f"{line}\n" for line in lines) + '"""\n', encoding="utf-8")


if __name__ == "__main__":
    main()
