"""Says, for each JSON list of words on standard input, whether the real `vllm serve` would configure an engine with them.

One line of JSON out for each line in: null where it would, else the last line of the error. The parser, the checks of
the API server and the configuration objects run as they do before a device is touched; the model is a folder with the
configuration of a small Gemma 4, and the platform that of TPU where tpu_inference is installed, else that of vLLM's CPU build.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import os
import sys
import tempfile
from collections.abc import Callable
from typing import Any

os.environ.update(
    HF_HUB_OFFLINE="1", VLLM_LOGGING_LEVEL="CRITICAL", VLLM_NO_USAGE_STATS="1", VLLM_CPU_KVCACHE_SPACE="1"
)

# vLLM lives in another Python than the one that type-checks.
import vllm.platforms  # type: ignore[import-not-found] # as above

if importlib.util.find_spec("tpu_inference"):
    # It needs no device to configure. Before any import that asks for the platform: each keeps what it is told.
    vllm.platforms.resolve_current_platform_cls_qualname = lambda: "tpu_inference.platforms.tpu_platform.TpuPlatform"

from tokenizers import Tokenizer  # type: ignore[import-not-found] # as above
from tokenizers.models import WordLevel  # type: ignore[import-not-found] # as above
from transformers import Gemma4Config, PreTrainedTokenizerFast  # type: ignore[import-not-found] # as above
from vllm.engine.arg_utils import AsyncEngineArgs  # type: ignore[import-not-found] # as above
from vllm.entrypoints.launchers.cli_args import (  # type: ignore[import-not-found] # as above
    make_arg_parser,
    validate_parsed_serve_args,
)
from vllm.model_executor.model_loader import (  # type: ignore[import-not-found] # as above
    _LOAD_FORMAT_TO_MODEL_LOADER,
)
from vllm.reasoning import ReasoningParserManager  # type: ignore[import-not-found] # as above
from vllm.tokenizers.registry import TokenizerRegistry  # type: ignore[import-not-found] # as above
from vllm.tool_parsers import ToolParserManager  # type: ignore[import-not-found] # as above
from vllm.usage.usage_lib import UsageContext  # type: ignore[import-not-found] # as above
from vllm.utils.argparse_utils import FlexibleArgumentParser  # type: ignore[import-not-found] # as above


def configure(arguments: Any) -> None:
    """Do what `vllm serve` does with its arguments before it touches a device; raise what it raises."""
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
    # vllm/tokenizers/registry.py, when the API server loads the tokenizer.
    if arguments.tokenizer_mode not in ("auto", *TokenizerRegistry.tokenizers):
        raise ValueError(f"No tokenizer registered for tokenizer_mode={arguments.tokenizer_mode!r}.")
    AsyncEngineArgs.from_cli_args(arguments).create_engine_config(usage_context=UsageContext.OPENAI_API_SERVER)


def refusal(parser: Any, words: list[str]) -> str | None:
    """Return the error of the parser or of the configuration, or None."""
    errors = io.StringIO()
    try:
        with contextlib.redirect_stderr(errors):
            arguments = parser.parse_args(words)
    except SystemExit:
        return errors.getvalue()[-300:]
    except Exception as cause:  # noqa: BLE001 # whatever stops vLLM is its answer
        return message(cause)
    return in_own_process(lambda: refusal_of_configuration(arguments))


def refusal_of_configuration(arguments: Any) -> str | None:
    try:
        configure(arguments)
    except (SystemExit, Exception) as cause:  # noqa: BLE001 # as above
        return message(cause)
    return None


def message(cause: BaseException) -> str:
    return f"{type(cause).__name__}: {cause}"[:900]


def in_own_process(answer: Callable[[], str | None]) -> str | None:
    """Ask in a fork: vLLM leaves decisions in its defaults, its modules and the environment."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        with os.fdopen(writer, "w", encoding="utf-8") as out:
            out.write(json.dumps(answer()))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8") as source:
        text = source.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else "the process died"


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what vLLM logs is no answer
    parser = make_arg_parser(FlexibleArgumentParser(prog="vllm serve"))
    with tempfile.TemporaryDirectory() as model:
        tokenizer = Tokenizer(WordLevel({"a": 0, "<unk>": 1}, unk_token="<unk>"))
        PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(model)
        Gemma4Config(architectures=["Gemma4ForConditionalGeneration"], dtype="bfloat16").save_pretrained(model)
        refusal_of_configuration(parser.parse_args([model]))  # imports what the forks would import each
        for line in sys.stdin:
            answers.write(json.dumps(refusal(parser, [model, *json.loads(line)])) + "\n")
            answers.flush()


if __name__ == "__main__":
    main()
