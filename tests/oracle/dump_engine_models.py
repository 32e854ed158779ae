"""Writes tpudeploy/catalog/_engine_models.py: what the engine of another Python makes of the models that it lists.

    VLLM_PYTHON=PYTHON-WITH-VLLM-TPU python tests/oracle/dump_engine_models.py [-add LIST] [-answers FILE] [-only WORD]

Each model and its settings are asked about on 1, 2, 4 and 8 chips, through absent_chips.py: seconds
of computing each. LIST adds models, one JSON object a line: `id`, `source` (where its config.json is public), `config`
(the fields that decide shapes), and `settings` if the engine needs some. FILE keeps the answers as they come, so that a
run that was killed continues. Transformers' classes on PyTorch's meta device count the parameters; a model that the
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

ROOT = Path(__file__).parents[2]
BLOCKS = ROOT / "tests" / "sizing" / "data" / "engine_blocks.jsonl"
TABLE = ROOT / "tpudeploy" / "catalog" / "_engine_models.py"
CHILD = Path(__file__).with_name("absent_chips.py")
CHIPS = (1, 2, 4, 8)
HBM_BYTES = 33_550_237_696  # of one v6e chip, as its runtime reports it: blocks are compared there
LENGTH, REQUESTS, TOKENS = 2_048, 256, 2_048
# IndivisibleError is JAX's: an array cannot be divided by the chips.
THE_ENGINES = ("ValidationError", "ValueError", "NotImplementedError", "AssertionError", "IndivisibleError")
WORTH_NAMING, ANOTHER_MODEL = 0.001, 0.1

HEADER = '''\
"""Models as the engine itself sizes them, written by tests/oracle/dump_engine_models.py; never edit by hand.

`MODELS` holds one JSON document a line. `config` has the fields of the model's config.json that decide shapes, `source`
says where that is public, and `settings` are those of a profile with which the engine was asked. `weights` are bytes on
a chip, by the number of chips that share the model; `attention` has layers, KV heads, head size and window of each
kind; `refusal` and `refusals` are the engine's words. `DIGEST` is of the lines.
"""
# ruff: noqa: E501 - one document a line
'''
# What a setting of a profile is to the engine: an argument, or a variable.
ATTENTION_DP = {"sharding": {"sharding_strategy": {"enable_dp_attention": True}}}
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
    parser.add_argument("-only", default="", help="ask about ids with this word; - asks nothing")
    args = parser.parse_args()
    python = os.environ["VLLM_PYTHON"]
    models = {key(model): model for model in [*listed(), *added(args.add)]}
    known = {tuple(row["key"]): row for row in read_lines(args.answers)}
    chosen = [model for model in models.values() if args.only in model["id"]]
    requests = [(model, chips) for chips in CHIPS for model in chosen if (*key(model), str(chips)) not in known]
    requests = [] if args.only == "-" else requests
    for (model, chips), answer in zip(requests, ask(python, requests), strict=False):
        keep(args.answers, known, [*key(model), str(chips)], answer)
        print(model["id"], chips, answer.get("refusal", "")[:100], flush=True)
    uncounted = [model for model in models.values() if (model["id"], "", "parameters") not in known]
    for model, count in zip(uncounted, parameters(python, uncounted), strict=True):
        keep(args.answers, known, [model["id"], "", "parameters"], {"count": count})
    lines, release = [], ""
    for model in models.values():
        count = known[model["id"], "", "parameters"]["count"]
        each = {chips: known.get((*key(model), str(chips)), {}) for chips in CHIPS}
        row = compact(model, each, count)
        release = release or next((one["answer"]["engine"] for one in each.values() if "answer" in one), "")
        if "weights" in row or row["refusal"]:
            lines.append(json.dumps(row, separators=(",", ":"), sort_keys=False))
    write(sorted(lines), release)
    BLOCKS.write_text("".join(sorted(blocks_of(known.values()))), encoding="utf-8")


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


def keep(path: Path, known: dict[tuple[str, ...], Any], name: list[str], answer: Mapping[str, Any]) -> None:
    known[tuple(name)] = {"key": name, **answer}
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(known[tuple(name)]) + "\n")


def key(model: Mapping[str, Any]) -> tuple[str, str]:
    return model["id"], json.dumps(model.get("settings", {}), sort_keys=True)


def listed() -> list[Mapping[str, Any]]:
    """Return the models of the table as it stands."""
    if not TABLE.exists():
        return []
    text = TABLE.read_text(encoding="utf-8").partition('MODELS = r"""\n')[2].partition('"""')[0]
    fields = ("id", "settings", "source", "config")
    return [{name: row[name] for name in fields} for row in map(json.loads, text.splitlines())]


def added(path: Path | None) -> Iterator[Mapping[str, Any]]:
    for row in read_lines(path) if path else ():
        yield {"id": row["id"], "settings": row.get("settings", {}), "source": row["source"], "config": row["config"]}


def read_lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def request(model: Mapping[str, Any], chips: int) -> dict[str, Any]:
    settings = dict(model["settings"])
    longest = position(model["config"])
    most = longest - 2 if "Roberta" in model["config"]["architectures"][0] else longest
    args: dict[str, Any] = {
        "max_model_len": min(LENGTH, most),
        "max_num_seqs": REQUESTS,
        "max_num_batched_tokens": TOKENS,
    }
    if settings.pop("enable_dp_attention", None):
        args["additional_config"] = ATTENTION_DP
    if "dtype" in settings:
        args["dtype"] = settings.pop("dtype")
    if "runner" in settings:
        args["runner"] = settings.pop("runner")
    return {
        "chip": "v6e",
        "hbm_bytes": HBM_BYTES,
        "tensor_parallel_size": chips,
        "config": model["config"],
        "env": settings,
        "args": args,
    }


def ask(python: str, requests: Iterable[tuple[Mapping[str, Any], int]]) -> Iterator[Mapping[str, Any]]:
    lines = "".join(json.dumps(request(model, chips)) + "\n" for model, chips in requests)
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
    done = subprocess.run([python, "-c", COUNT], input=lines, stdout=subprocess.PIPE, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def compact(model: Mapping[str, Any], each: Mapping[int, Mapping[str, Any]], count: int | str) -> dict[str, Any]:
    """Return the row of a model: what its answers have in common once, the weights by number of chips."""
    row: dict[str, Any] = {name: model[name] for name in ("id", "settings", "source", "config")}
    answers = {chips: one["answer"] for chips, one in each.items() if "answer" in one}
    answers, uneven = without_uneven(answers)
    refused = {chips: one["refusal"] for chips, one in each.items() if "refusal" in one}
    refusals = uneven | {chips: plain(words) for chips, words in refused.items() if is_the_engines(words)}
    if not answers:
        return {**row, "refusal": next(iter(refusals.values()), "")}
    first = answers[min(answers)]
    whole = count if isinstance(count, int) else first["parameters"]
    is_quantized = bool(model["config"].get("quantization_config"))
    off = 0 if is_quantized else first["parameters"] / whole - 1
    if abs(off) > ANOTHER_MODEL:
        words = f"the engine runs {first['architecture']} by a class of {first['parameters']:,} parameters"
        return {**row, "refusal": f"{words}; the checkpoint has {whole:,}"}
    if not loads(model["config"], first):
        words = f"{first['architecture']} does not read a checkpoint quantized with {first['quantization']}"
        return {**row, "refusal": f"{words}: its weights stay in {first['dtype']}"}
    if abs(off) > WORTH_NAMING:
        print(f"{model['id']}: the engine's parameters are {off:+.2%} off Transformers' {whole:,}", file=sys.stderr)
    text = model["config"].get("text_config", model["config"])
    experts = experts_of(text)
    row |= {
        "architecture": model["config"]["architectures"][0],
        "implementation": first["implementation"],
        "layers": layers_of(text),
        "hidden": first["hidden"],
        "vocabulary": first["vocabulary"],
        "max_position": position(model["config"]),
        "heads": heads_of(text),
        "parameters": whole,
        "active": active(model["config"], whole, experts),
        "checkpoint_bytes": first["parameter_bytes"] if is_quantized else 2 * whole,
        "weights": {str(chips): int(answer["weights_bytes_per_chip"]) for chips, answer in answers.items()},
        **attention(next((one for one in answers.values() if one.get("layers")), first), text),
    }
    extra = {
        "refusals": {str(chips): words for chips, words in refusals.items()},
        "experts": experts,
        "is_multimodal": first["is_multimodal"],
        "is_pooling": first["runner"] == "pooling",
        "linear_dtype": first["quantization"],
    }
    return {**row, **{name: value for name, value in extra.items() if value}}


def without_uneven(answers: Mapping[int, Any]) -> tuple[dict[int, Any], dict[int, str]]:
    """Return the answers, and apart from them those whose layers have fewer KV heads than on one chip.

    A class that divides its heads itself has weights of all of them in the engine, which divides no model: it cannot
    run on several chips.
    """
    heads = {
        chips: max((layer.get("num_kv_heads") or 0 for layer in one.get("layers", ())), default=0)
        for chips, one in answers.items()
    }
    own = heads.get(min(heads, default=0), 0)
    is_uneven = {chips: 0 < each < own for chips, each in heads.items()}
    words = "its layers have KV heads for a part of the model, and weights for all of it"
    return (
        {chips: one for chips, one in answers.items() if not is_uneven[chips]},
        {chips: words for chips, wrong in is_uneven.items() if wrong},
    )


def loads(config: Mapping[str, Any], answer: Mapping[str, Any]) -> bool:
    """Return whether a quantized checkpoint is kept in fewer bits: a class that ignores the method cannot read it."""
    full = 2 * answer["parameters"]
    return (
        not config.get("quantization_config") or answer["parameter_bytes"] < full or answer["implementation"] == "vllm"
    )


def is_the_engines(refusal: str) -> bool:
    """Return whether the engine refuses the model, and not the stand-ins of absent_chips.py."""
    kind = refusal.partition(":")[0]
    return kind in THE_ENGINES and "meta tensor" not in refusal


def plain(refusal: str) -> str:
    """Return the engine's words, without the class of the error and what pydantic adds."""
    text = refusal.partition("Value error, ")[2] or refusal.partition(":")[2]
    return " ".join(text.partition(" [type=")[0].split())[:400].rstrip(".:") or "an assertion in its code fails"


def position(config: Mapping[str, Any]) -> int:
    text = config.get("text_config", config)
    return int(text.get("max_position_embeddings") or text.get("max_target_positions") or LENGTH)


def layers_of(text: Mapping[str, Any]) -> int:
    return int(text.get("num_hidden_layers") or text["encoder_layers"])


def heads_of(text: Mapping[str, Any]) -> int:
    return int(text.get("num_attention_heads") or text["encoder_attention_heads"])


def experts_of(text: Mapping[str, Any]) -> dict[str, int] | None:
    count = text.get("num_experts") or text.get("num_local_experts") or text.get("n_routed_experts")
    if not count:
        return None
    return {
        "layers": layers_of(text) - int(text.get("first_k_dense_replace") or 0),
        "count": int(count),
        "width": int(text.get("moe_intermediate_size") or text["intermediate_size"]),
        "per_token": int(text["num_experts_per_tok"]),
    }


def active(config: Mapping[str, Any], whole: int, experts: Mapping[str, int] | None) -> int:
    """Return the parameters that each token is multiplied with in the layers: no tables, and the experts it visits."""
    text = config.get("text_config", config)
    tables = 1 if config.get("tie_word_embeddings", text.get("tie_word_embeddings", False)) else 2
    rest = whole - tables * text["vocab_size"] * (text.get("hidden_size") or text["d_model"])
    if experts is not None:
        idle = (experts["count"] - experts["per_token"]) * 3 * text["hidden_size"] * experts["width"]
        rest -= experts["layers"] * idle
    return int(rest)


def attention(answer: Mapping[str, Any], text: Mapping[str, Any]) -> dict[str, Any]:
    """Return the layers that are cached by their kind, and those with a recurrent state."""
    kinds, states, is_latent = [], [], False
    for layer in answer.get("layers", ()):
        if "Mamba" in layer["kind"]:
            states.append({"layers": layer["count"], "slot_bytes": layer["own_bytes"]})
            continue
        is_latent = is_latent or "kv_lora_rank" in text
        kinds.append([layer["count"], layer["num_kv_heads"], layer["head_size"], layer.get("sliding_window")])
    if not kinds:
        heads = heads_of(text)
        return {"attention": [[layers_of(text), heads, answer["hidden"] // heads, None]], "is_encoder": True}
    parts = {"attention": kinds, "states": states, "is_latent": is_latent}
    return {name: value for name, value in parts.items() if value}


def write(lines: list[str], release: str) -> None:
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    text = f'{HEADER}\nRELEASE = "tpu-inference {release}"\nDIGEST = "{digest}"\n\nMODELS = r"""\n'
    TABLE.write_text(text + "".join(f"{line}\n" for line in lines) + '"""\n', encoding="utf-8")


if __name__ == "__main__":
    main()
