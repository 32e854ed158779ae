"""Logs composed of pieces, as machines write them: what else a log holds when a server dies.

Everything around a death is cut out of a boot that was measured (tests/sizing/data), or is constructed after a log
statement whose source stands beside it: ids, addresses and line numbers are made up. The choice is pseudo-random and always the same.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from boot_log.pieces import API, DEATHS, ENGINE, LOGGED, Death

GOOD = (Path(__file__).parents[1] / "sizing" / "data" / "boot_gemma4_e2b_v6e1.log").read_text("utf-8").split("\n")
START = GOOD[:50]  # imports, the banner, the flags; the head of the engine
# With which vLLM's API server ends after its engine (v1/engine/utils.py: wait_for_engine_startup).
WRAPPER = [
    f"{API}Traceback (most recent call last):",
    f'{API}  File "/workspace/vllm/vllm/v1/engine/utils.py", line 1254, in wait_for_engine_startup',
    f"{API}    raise RuntimeError(",
    f"{API}RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {{}}",
]
# It is loud, and nothing comes of it: huggingface_hub utils/_http.py, vLLM transformers_utils/repo_utils.py,
# tpu_inference tpu_info.py, Python's warnings, Python's resource tracker.
ALARMS = [
    "ERROR 11-22 10:00:01 [tpu_info.py:45] Unable to poll the TPU GCE Metadata: 404",
    f"{API}'[Errno 101] Network is unreachable' thrown while requesting HEAD https://huggingface.co/g/m/config.json",
    f"{API}Retrying in 1s [Retry 1/5].",
    f"{API}HTTP Error 429 thrown while requesting GET https://huggingface.co/api/models/google/gemma-4-E2B-it",
    f"{API}Rate limited. Waiting 212.0s before retry [Retry 1/5].",
    (
        f"{API}ERROR 11-22 10:00:09 [repo_utils.py:47] Error retrieving file list: Temporary failure in name resolution, "
        "retrying 1 of 2"
    ),
    (
        f"{API}/usr/local/lib/python3.12/site-packages/torch/cuda/__init__.py:61: FutureWarning: No space left on device "
        "is raised as OSError from 3.0 on"
    ),
    (
        f"{API}WARNING 11-22 10:00:11 [model.py:2196] User-specified max_model_len (200000) is greater than the derived "
        "max_model_len (max_position_embeddings=131072 or model_max_length=None in model's config.json). "
        "VLLM_ALLOW_LONG_MAX_MODEL_LEN must be used with extreme caution."
    ),
]
# A user asks about errors: vLLM entrypoints/logger.py, uvicorn's access log.
QUOTES = [
    (
        f"{API}INFO 11-22 09:10:00 [logger.py:39] Received request cmpl-1: prompt: 'Explain: OSError: [Errno 28] No space "
        "left on device', params: SamplingParams(n=1), lora_request: None."
    ),
    (
        f"{API}DEBUG 11-22 09:10:00 [logger.py:54] Request cmpl-1 details: prompt: 'RESOURCE_EXHAUSTED: Ran out of memory "
        "in memory space hbm. Exceeded hbm capacity by 1.86G.', prompt_token_ids: [1], prompt_embeds shape: None."
    ),
    (
        f"{API}INFO 11-22 09:10:02 [logger.py:93] Generated response chatcmpl-1: output: 'toomanyrequests: You have "
        "reached your pull rate limit', output_token_ids: [5], finish_reason: stop"
    ),
    f'{API}INFO:     10.0.0.7:40112 - "POST /v1/chat/completions?q=GatedRepoError HTTP/1.1" 200 OK',
]
# Of a request that fails; the server serves on (vLLM entrypoints/openai/chat_completion/serving.py).
REQUEST_ERROR = [
    f"{API}ERROR 11-22 09:11:00 [serving.py:290] Error in preprocessing prompt inputs",
    f"{API}ERROR 11-22 09:11:00 [serving.py:290] Traceback (most recent call last):",
    f"{API}ERROR 11-22 09:11:00 [serving.py:290] ValueError: max_tokens must be at least 1, got 0.",
    f'{API}INFO:     10.0.0.7:40113 - "POST /v1/chat/completions HTTP/1.1" 400 Bad Request',
]
# vLLM goes on without a plugin that fails: vllm/plugins/__init__.py.
PLUGIN = [
    "ERROR 11-22 10:00:03 [__init__.py:72] Failed to load plugin lora_filesystem_resolver",
    "ERROR 11-22 10:00:03 [__init__.py:72] Traceback (most recent call last):",
    "ERROR 11-22 10:00:03 [__init__.py:72] ModuleNotFoundError: No module named 'lora_resolver'",
]
# Somebody prints the chat template; Jinja raises what it likes.
TEMPLATE = [
    f"{API}{{%- if messages[0].role == 'system' %}}",
    f"{API}{{{{- raise_exception('No available memory for the cache blocks') }}}}",
    f"{API}{{%- endif %}}",
]
# Requests that fail while others are answered: uvicorn's protocols/http, vLLM's tool parsers.
FAILED_REQUESTS = [
    f"{API}ERROR:    Exception in ASGI application",
    f"{API}Traceback (most recent call last):",
    f'{API}  File "/usr/local/lib/python3.12/site-packages/uvicorn/protocols/http/httptools_impl.py", line 409, in run_asgi',
    f"{API}OSError: [Errno 28] No space left on device",
    f'{API}INFO:     10.0.0.7:40113 - "POST /v1/chat/completions HTTP/1.1" 500 Internal Server Error',
    f"{API}ERROR 11-22 12:00:00 [hermes_tool_parser.py:109] Error in extracting tool call from response.",
    f"{API}ERROR 11-22 12:00:00 [hermes_tool_parser.py:109] Traceback (most recent call last):",
    f"{API}ERROR 11-22 12:00:00 [hermes_tool_parser.py:109] json.decoder.JSONDecodeError: Expecting value: line 1",
]
# What carries a line elsewhere: kubectl, the journal of any unit in two forms, docker, a file of Windows.
CARRIERS = (
    "[pod/vllm-0/vllm] ",
    "Nov 22 10:03:20 t1v-n-1 docker[4711]: ",
    "2026-11-22T10:03:20+0000 t1v-n-1 docker[4711]: ",
    "2026-11-22T10:03:20.123456789Z ",
)
JOURNAL = "Nov 22 10:03:20 t1v-n-1 google_metadata_script_runner[88]: startup-script:   | "


Company = Callable[[Death, random.Random], list[str]]


@dataclass(frozen=True)
class Log:
    """`expected`: the signatures that are right, None for none. `death` tells what the remedy must say."""

    name: str
    lines: Sequence[str]
    expected: tuple[str | None, ...]
    death: Death | None = None

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


def logs() -> Iterator[Log]:
    """Yield every log: each death in each kind of company, what serves, and what dies while it serves."""
    for number, death in enumerate(DEATHS):
        for company in COMPANIES:
            chance = random.Random(f"{number} {company.__name__}")
            name = f"{number}-{death.signature}-{company.__name__}"
            yield Log(name, company(death, chance), (death.signature,), death)
    yield from serving()


def cut(log: Log, chance: random.Random) -> Log:
    """Return what is left of a log whose head and tail are lost, in the middle of a line.

    Right is what is right of the whole, or unknown, or less of the same: a setting that pydantic refuses, a sentence
    of our script, and of a bad token that the hub said 401.
    """
    text = "" if log.death is None else log.death.text
    less = {"validation error": "configuration-refused", "failed: ": "startup-failed", "401": "hub-unauthorized"}
    partial = [signature for words, signature in less.items() if words in text]
    start = chance.randrange(len(log.text) // 2)
    end = chance.randrange(start, len(log.text))
    return Log(f"{log.name}-{start}-{end}", log.text[start:end].split("\n"), (*log.expected, *partial, "unknown", None))


def alone(death: Death, _: random.Random) -> list[str]:
    return [*death.lines, *_end(death)]


def interleaved(death: Death, chance: random.Random) -> list[str]:
    """Another process, and who has no name, write between the lines of the message."""
    others = [line for line in GOOD[60:1000] if line.startswith("(EngineCore" if death.prefix == API else "(APIServer")]
    others = others or [f"{API}INFO 11-22 10:03:20 [core_client.py:1] Waiting for 1 local core engine proc(s)"]
    quiet = [line for line in others if "Precompile" not in line and "Memory statistics" not in line]
    lines = list(START)
    for line in [*death.lines, *_end(death)]:
        lines += [line, *(chance.choice(quiet or others) for _ in range(chance.randrange(3)))]
    return lines


def alarmed(death: Death, chance: random.Random) -> list[str]:
    alarms = list(ALARMS)
    chance.shuffle(alarms)
    return [*START[:20], *alarms[:4], *START[20:], *alarms[4:], *death.lines, *_end(death)]


def after_a_start_that_served(death: Death, _: random.Random) -> list[str]:
    """The container was restarted; the log holds the first server, and what users wrote to it."""
    return [*GOOD[:90], *GOOD[1030:], *QUOTES, *REQUEST_ERROR, *START, *QUOTES[1:2], *death.lines, *_end(death)]


def carried(death: Death, chance: random.Random) -> list[str]:
    """The journal's prefix, or the startup script's."""
    before = chance.choice(["  | ", JOURNAL])
    return [f"{'' if line.startswith('2026-') else before}{line}" for line in alarmed(death, chance)]


def in_several_boots(death: Death, chance: random.Random) -> list[str]:
    """The machine's boot before died of something else."""
    other = chance.choice([other for other in DEATHS if other.signature != death.signature])
    return [
        "2026-11-22T09:00:00Z booted: Starting",
        *(f"  | {line}" for line in other.lines if not line.startswith("2026-")),
        "2026-11-22T09:03:00Z failed: Secret hf-token does not exist: create it, or correct its name in the profile.",
        "2026-11-22T10:00:00Z booted: Starting",
        "2026-11-22T10:00:10Z docker: Looking for docker",
        "2026-11-22T10:00:12Z cache: it cannot be read: 403 Permission denied on resource; this start compiles",
        *(line if line.startswith("2026-") else f"  | {line}" for line in [*death.lines, *_end(death)]),
    ]


def beside_a_plugin(death: Death, _: random.Random) -> list[str]:
    return [*START[:20], *PLUGIN, *START[20:], *TEMPLATE, *PLUGIN, *death.lines, *_end(death)]


def in_ranks(death: Death, _: random.Random) -> list[str]:
    """Every rank of data parallelism says the same, line by line in turns; what has no rank says it twice."""
    engine = "(EngineCore pid=187)"
    ranks = [
        [line.replace(engine, f"(EngineCore_DP{rank} pid={187 + rank})") for line in death.lines] for rank in (0, 1)
    ]
    lines = [line for pair in zip(*ranks, strict=True) for line in pair] if engine in death.text + death.prefix else []
    return [*START, *(lines or [*death.lines, *death.lines]), *_end(death)]


def elsewhere(death: Death, chance: random.Random) -> list[str]:
    carrier = chance.choice(CARRIERS)
    lines = [*START, *death.lines, *_end(death)]
    return [line if line.startswith("2026-") else f"{carrier}{line}\r" for line in lines]


COMPANIES: tuple[Company, ...] = (
    alone,
    interleaved,
    alarmed,
    after_a_start_that_served,
    carried,
    in_several_boots,
    beside_a_plugin,
    in_ranks,
    elsewhere,
)


def serving() -> Iterator[Log]:
    for number, death in enumerate(DEATHS):  # users paste what they saw elsewhere
        pasted = " ".join(death.lines)
        requests = f"{API}INFO 11-22 09:10:00 [logger.py:39] Received request cmpl-3: prompt: {pasted!r}, params: None"
        answered = f"{API}INFO 11-22 09:10:02 [logger.py:93] Generated response cmpl-3: output: {pasted!r}"
        yield Log(f"pasted-{number}-{death.signature}", [*GOOD, requests, answered], (None,))
    yield Log("failing-requests", [*GOOD, *FAILED_REQUESTS], (None,))
    served = [*GOOD, *QUOTES, *REQUEST_ERROR]
    yield Log("served", served, (None,))
    yield Log("served-with-alarms", [*START, *ALARMS, *GOOD[50:], *QUOTES], (None,))
    fatal = LOGGED.replace("core.py:1349", "core.py:1142")
    missing = [
        f"{fatal}EngineCore encountered a fatal error.",
        f"{fatal}Traceback (most recent call last):",
        f"{fatal}XlaRuntimeError: INTERNAL: Core halted unexpectedly",
        f"{API}ERROR 11-22 12:00:00 [async_llm.py:704] AsyncLLM output_handler failed.",
        (
            f"{API}ERROR 11-22 12:00:00 [async_llm.py:704] vllm.v1.engine.exceptions.EngineDeadError: EngineCore "
            "encountered an issue. See stack trace (above) for the root cause."
        ),
    ]
    unheard = [line.replace("Core halted unexpectedly", "Something unheard of") for line in missing]
    yield Log("died-while-serving", [*served, *unheard], ("server-died",))
    yield Log("halted-while-serving", [*served, *missing], ("core-halted",))
    yield Log("died-while-serving-cut", [*served, *missing[3:]], ("server-died",))
    oom = "Out of memory: Killed process 4711 (VLLM::EngineCor) total-vm:1kB, anon-rss:1kB, file-rss:0kB"
    yield Log("out-of-memory-while-serving", [*served, oom, *missing[3:]], ("host-memory",))
    template = (
        "ChatTemplateResolutionError: As of transformers v4.44, default chat template is no longer allowed, so you "
        "must provide a chat template if the tokenizer does not define one."
    )
    error = f"{API}ERROR 11-22 12:00:00 [serving.py:290] "
    yield Log(
        "no-chat-template",
        [*GOOD, *QUOTES, f"{error}vllm.entrypoints.chat_utils.{template}"],
        ("chat-template-missing",),
    )
    quoted = f"{API}INFO 11-22 12:00:00 [logger.py:39] Received request cmpl-2: prompt: '{template}', params: None"
    yield Log("a-prompt-about-chat-templates", [*GOOD, quoted], (None,))
    yield Log("still-booting", [*START, *ALARMS, *GOOD[50:200]], (None,))
    yield Log("only-the-wrapper", WRAPPER, ("unknown",))
    yield Log("stopped", [*GOOD, *QUOTES, f"{API}INFO:     Shutting down"], (None,))


def _end(death: Death) -> list[str]:
    return WRAPPER if death.prefix in {ENGINE, LOGGED} else []
