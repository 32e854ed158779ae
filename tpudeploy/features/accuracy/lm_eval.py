"""lm_eval, run as a separate program where it is installed: its command, and its `--log_samples` file as a sheet."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tpudeploy.adapters.child import check_interrupt, child
from tpudeploy.domain.errors import QueryFailed, RunUnreadable, UsageError
from tpudeploy.features.accuracy.sheet import GradedAnswer, Sheet, Terms
from tpudeploy.features.accuracy.store import read_text

_LAST_WORDS = 400


def run(command: Sequence[str], folder: Path, *, api_key: str | None) -> str:
    """Run the command and return the samples that it logged in `folder`. Its stderr passes through.

    Raise `errors.UsageError` where lm_eval is not installed, `errors.QueryFailed` where it fails, and
    `errors.Interrupted` where Ctrl-C ended it.
    """
    environment = {**os.environ, **({"OPENAI_API_KEY": api_key} if api_key else {})}
    try:
        with child(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
            output, _ = process.communicate()
    except FileNotFoundError as cause:
        raise UsageError(
            "lm_eval is not installed.", hint="pip install 'lm_eval[api]', or name a file of questions."
        ) from cause
    check_interrupt(process, "Interrupted: lm_eval was stopped, and no result was saved.")
    if process.returncode:
        raise QueryFailed(f"lm_eval ended with {process.returncode}.", hint=output[-_LAST_WORDS:].strip())
    files = sorted(folder.rglob("samples_*.jsonl"))
    if len(files) != 1:
        names = ", ".join(path.name for path in files) or "nothing"
        raise QueryFailed(f"lm_eval logged {names}, but one task has one file of samples.", hint="Name one task.")
    return read_text(files[0])


TOOL = "lm_eval"


def command(
    *, url: str, model: str, task: str, count: int | None, concurrency: int, max_tokens: int, out: str
) -> tuple[str, ...]:
    """Return the command for lm_eval 0.4.13.

    `task` may be in a folder of the user: `FOLDER/TASK`. `count` None means all questions. Only tasks that generate
    text work with a chat endpoint.
    """
    folder, _, name = task.rpartition("/")
    served = f"model={model},base_url={url}/v1/chat/completions,num_concurrent={concurrency},tokenized_requests=False"
    return (
        *("lm_eval", "run", "--model", "local-chat-completions", "--model_args", served, "--tasks", name),
        *(("--include_path", folder) if folder else ()),
        *("--apply_chat_template", "--fewshot_as_multiturn", "--seed", "0"),
        *("--gen_kwargs", f"temperature=0,max_gen_toks={max_tokens}"),
        *(() if count is None else ("--limit", str(count))),
        *("--log_samples", "--output_path", out),
    )


def is_samples(text: str) -> bool:
    """Return whether a file has the form that `--log_samples` writes."""
    try:
        first = json.loads(text.partition("\n")[0])
    except (ValueError, RecursionError):
        return False
    return isinstance(first, dict) and {"doc_id", "metrics"} <= first.keys()


def sheet(text: str, *, source: str, task: str) -> Sheet:
    """Return the sheet of a file, graded by its first filter and its first metric. Raise `errors.RunUnreadable`."""
    try:
        samples = [json.loads(line) for line in text.split("\n") if line.strip()]
        first = samples[0]
        metric = str(first["metrics"][0])
        mine = [s for s in samples if s.get("filter") == first.get("filter")]
        answers = tuple(_answer(sample, metric) for sample in mine)
        terms = _terms(mine, task, metric)
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as cause:
        raise RunUnreadable(f"{source} has no samples of lm_eval: {type(cause).__name__}: {cause}.") from cause
    return Sheet(id=source, at=0.0, url="", model="", terms=terms, concurrency=0, answers=answers)


def _answer(sample: Mapping[str, Any], metric: str) -> GradedAnswer:
    score = sample[metric]
    if score not in (0, 1):
        raise ValueError(f"{metric} is {score}, and not right or wrong")
    return GradedAnswer(question=str(sample["doc_id"]), said=_response_text(sample), is_right=bool(score))


def _response_text(sample: Mapping[str, Any]) -> str:
    """Return the whole response, or its filtered text where the file has no other."""
    whole = sample.get("resps")
    return str(whole[0][0] if whole else sample["filtered_resps"][0])


def _terms(samples: Sequence[Mapping[str, Any]], task: str, metric: str) -> Terms:
    prompts = [(s["doc_id"], s.get("prompt_hash"), s["target"]) for s in samples]
    digest = hashlib.sha256(json.dumps([metric, *prompts]).encode()).hexdigest()
    limit = _limit(samples[0])
    name = f"{task.rpartition('/')[2]}, {samples[0].get('filter', 'none')}, {metric}"
    return Terms(questions=name, digest=f"sha256:{digest}", max_tokens=limit, tool=TOOL)


def _limit(sample: Mapping[str, Any]) -> int:
    """Return the maximum tokens of an answer, or 0 where the file does not have it."""
    arguments = sample.get("arguments")
    request = arguments.get("gen_args_0", {}) if isinstance(arguments, Mapping) else {}
    return int(request.get("arg_1", {}).get("max_gen_toks") or 0)
