"""Says, for each JSON list of words on standard input, whether the real `vllm serve` would configure an engine with them.

One line of JSON out for each line in: null where it would, else the last line of the error. The parser, the checks of
the API server and the configuration objects run as they do before a device is touched; the model is a folder with the
configuration of a small Gemma 4, and the platform that of vLLM's CPU build.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import tempfile
from typing import Any

os.environ.update(
    HF_HUB_OFFLINE="1", VLLM_LOGGING_LEVEL="CRITICAL", VLLM_NO_USAGE_STATS="1", VLLM_CPU_KVCACHE_SPACE="1"
)

# vLLM lives in another Python than the one that type-checks.
from transformers import Gemma4Config  # type: ignore[import-not-found] # as above
from vllm.engine.arg_utils import AsyncEngineArgs  # type: ignore[import-not-found] # as above
from vllm.entrypoints.launchers.cli_args import (  # type: ignore[import-not-found] # as above
    make_arg_parser,
    validate_parsed_serve_args,
)
from vllm.model_executor.model_loader import (  # type: ignore[import-not-found] # as above
    _LOAD_FORMAT_TO_MODEL_LOADER,
)
from vllm.reasoning import ReasoningParserManager  # type: ignore[import-not-found] # as above
from vllm.tool_parsers import ToolParserManager  # type: ignore[import-not-found] # as above
from vllm.usage.usage_lib import UsageContext  # type: ignore[import-not-found] # as above
from vllm.utils.argparse_utils import FlexibleArgumentParser  # type: ignore[import-not-found] # as above


def configure(parser: Any, model: str, words: list[str]) -> None:
    """Do what `vllm serve` does before it touches a device; raise what it raises."""
    arguments = parser.parse_args([model, *words])
    validate_parsed_serve_args(arguments)
    if arguments.model_tag is not None:
        arguments.model = arguments.model_tag
    # vllm/entrypoints/launchers/launcher.py:360, which needs a whole configuration to be called.
    if arguments.enable_auto_tool_choice and arguments.tool_call_parser not in ToolParserManager.list_registered():
        raise KeyError(f"invalid tool call parser: {arguments.tool_call_parser}")
    reasoning = arguments.reasoning_parser or arguments.structured_outputs_config.reasoning_parser
    if reasoning and reasoning not in ReasoningParserManager.list_registered():
        raise KeyError(f"invalid reasoning parser: {reasoning}")
    # vllm/model_executor/model_loader/__init__.py, when the weights are about to be loaded.
    if arguments.load_format.lower() not in _LOAD_FORMAT_TO_MODEL_LOADER:
        raise ValueError(f"Load format {arguments.load_format} is not supported")
    AsyncEngineArgs.from_cli_args(arguments).create_engine_config(usage_context=UsageContext.OPENAI_API_SERVER)


def answer(parser: Any, model: str, words: list[str]) -> str | None:
    errors = io.StringIO()
    try:
        with contextlib.redirect_stderr(errors):
            configure(parser, model, words)
    except SystemExit:
        return errors.getvalue()[-300:]
    except Exception as refused:  # noqa: BLE001 # whatever stops vLLM is its answer
        return f"{type(refused).__name__}: {refused}"[:600]
    return None


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what vLLM logs is no answer
    parser = make_arg_parser(FlexibleArgumentParser(prog="vllm serve"))
    with tempfile.TemporaryDirectory() as model:
        Gemma4Config(architectures=["Gemma4ForConditionalGeneration"], dtype="bfloat16").save_pretrained(model)
        for line in sys.stdin:
            answers.write(json.dumps(answer(parser, model, json.loads(line))) + "\n")
            answers.flush()


if __name__ == "__main__":
    main()
