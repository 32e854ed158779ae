"""Draws random profiles of single mistakes and good values, and holds `validate` against a real vLLM's configuration.

    VLLM_PYTHON=PYTHON-WITH-VLLM python tests/oracle/draw_profiles.py [-n 1000] [-seed 1] [-release 0.32.0] [-every] [-all]

Prints false accepts (`validate` accepts, vLLM refuses without touching a device) and false refusals (the other way
round), and exits with 1 if there are any. `-every` tries each value of tests/oracle/flag_samples.py once instead of
drawing; `-release` is that of VLLM_PYTHON. What `validate` refuses for a reason that vLLM's configuration does not know is counted apart (OURS), and so
is what vLLM refuses for a reason that is not the profile's (SURROUNDINGS); `-all` prints these too.

Where VLLM_PYTHON can import tpu_inference, vLLM is configured on its TPU platform; else on that of vLLM's CPU build,
which knows less of TPU.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

sys.path[:0] = [str(Path(__file__).parents[1])]
from config.sources import MemoryReader  # noqa: E402 - tests/ is on no path before
from oracle.flag_samples import samples  # noqa: E402 - as above
from oracle.real_vllm import ask  # noqa: E402 - as above

from tpudeploy import loading  # noqa: E402 - as above
from tpudeploy.catalog import flags, releases  # noqa: E402 - as above
from tpudeploy.catalog.flags import Flag, Style  # noqa: E402 - as above
from tpudeploy.config.keys import FLAG_OF_KEY, SECRET_OF_FLAG  # noqa: E402 - as above
from tpudeploy.config.parse import parse  # noqa: E402 - as above
from tpudeploy.domain.diagnostics import Diagnostic, Severity  # noqa: E402 - as above
from tpudeploy.domain.errors import ProfileInvalid  # noqa: E402 - as above
from tpudeploy.sizing.checks import check  # noqa: E402 - as above

# Why `validate` refuses what vLLM's configuration accepts: by code, or by the words of the message.
OURS: Mapping[str, str] = {
    "the endpoint could not be reached": r"TPU1318",
    "the slice has another number of chips": r"TPU1302|TPU2106 [\d,]+ chips are requested",
    "the chips' memory, and what the model's programs need": r"TPU2(?!106|121)\d\d\d",
    "YAML has another type there, and a number as text would lose digits": r"TPU1203|TPU1311 .*; not the number",
    "a mapping, where vLLM takes any text and does not look at it": r"--model-loader-extra-config. takes a mapping",
    "the engine refuses it later, on its device": r"does not run on TPU|TPU1204 .* is not one of auto, bfloat16",
}
# Why vLLM refuses what is not wrong with the profile.
SURROUNDINGS: Mapping[str, str] = {
    "a package that this Python lacks": r"No module named|not installed|pip install|need to have \w+ .* installed",
    "a file that this machine lacks": r"No such file|does not exist|doesn't exist|not found: |not found at ",
    "the model's tokenizer, which is a bare one here": r"[Tt]okenizer must contain|in the tokenizer|tokenizer configuration"
    r"|KeyError: 'Ġ</'",  # reasoning/olmo3_reasoning_parser.py looks its tokens up in the vocabulary
    "the hub, and there is no network": r"offline|Repo id|huggingface|Hugging Face|connect to|outgoing traffic",
    "the checkpoint, which is a bare configuration here": r"Cannot find the config file|Failed to load mistral|__init__\(\) missing .* positional|"
    r"(awq|awq_marlin|modelopt|mxfp4) quantization is currently not supported",
}

_KEYS = {flag: str(key[-1]) for key, flag in FLAG_OF_KEY.items() if key[0] == "serving"}
_NOT_DRAWN = {"config", "port", "revision", *SECRET_OF_FLAG}


class Context(NamedTuple):
    """What stands beside the value that is tried: a profile that is right without it."""

    tpu: str
    serving: Mapping[str, Any]
    args: Mapping[str, Any]


PLAIN = Context("v6e-1", {}, {})
# Flags that vLLM looks at only beside others.
CONTEXTS: tuple[Context, ...] = (
    PLAIN,
    Context("v6e-1", {}, {"enable_lora": True}),
    Context("v6e-1", {}, {"speculative_config": {"method": "ngram", "num_speculative_tokens": 3}}),
    Context("v6e-1", {}, {"enable_auto_tool_choice": True, "tool_call_parser": "gemma4", "reasoning_parser": "gemma4"}),
    Context("v6e-4", {"tensor_parallel_size": 4}, {}),
    Context("v6e-4", {"tensor_parallel_size": 2, "data_parallel_size": 2}, {}),
    Context("v6e-4", {"tensor_parallel_size": 2}, {"pipeline_parallel_size": 2}),
    Context("v6e-1", {"max_model_len": 8192, "max_num_seqs": 64}, {"enable_prefix_caching": False}),
)


class Case(NamedTuple):
    """One flag with a value to try, as a key of `serving` or under `serving.args`, beside its context."""

    flag: Flag
    value: Any
    context: Context = PLAIN

    def settings(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The keys of `serving`, and the arguments."""
        serving, arguments = dict(self.context.serving), dict(self.context.args)
        key = _KEYS.get(self.flag.name)
        if key is None:
            arguments[self.flag.name.replace("-", "_")] = self.value
        else:
            serving[key] = self.value
        return serving, arguments


class Answer(NamedTuple):
    case: Case
    diagnostics: tuple[Diagnostic, ...]
    refusal: str | None


def text_of(case: Case, version: str) -> str:
    serving, arguments = case.settings()
    serving = {"image": f"vllm/vllm-tpu:v{version}", **serving, "args": arguments}
    model = {"id": "google/gemma-4-E2B-it"}
    tree = {"version": 1, "name": "demo", "model": model, "tpu": {"type": case.context.tpu}, "serving": serving}
    return yaml.safe_dump(tree)


def errors_of(case: Case, version: str) -> tuple[Diagnostic, ...]:
    """What `validate` refuses."""
    try:
        profile = parse("p.yaml", MemoryReader({"p.yaml": text_of(case, version).encode()}), environment={})
        diagnostics = check([loading.deployment(profile, project=None, script=False)])
    except ProfileInvalid as refusal:
        diagnostics = refusal.diagnostics
    return tuple(d for d in diagnostics if d.severity is Severity.ERROR)


def words_of(case: Case, version: str) -> tuple[str, ...] | None:
    """The words as they would be passed; None where no command line can say the value."""
    serving, arguments = case.settings()
    values = {flags.find(FLAG_OF_KEY["serving", key], version): value for key, value in serving.items()}
    values |= {flags.find(name, version): value for name, value in arguments.items()}
    words: list[str] = []
    for flag, value in values.items():
        assert flag is not None
        try:
            words += flags.express(flags.with_any_choice(flag), value)
        except flags.Inexpressible:
            # A value of another type: as a person would type it.
            plain = isinstance(value, str | int | float) and flag.style in (Style.VALUE, Style.WORDS, Style.JSON)
            if not plain or isinstance(value, bool):
                return None
            words.append(f"--{flag.name}={value}")
    return tuple(words)


def every_case(version: str) -> Iterator[Case]:
    """Yield each sample of each flag, alone."""
    for name in flags.names(version):
        flag = flags.find(name, version)
        assert flag is not None
        if name not in _NOT_DRAWN:
            yield from (Case(flag, value) for value in samples(flag))


def random_cases(rng: random.Random, version: str) -> Iterator[Case]:
    """Yield cases without end: half of them alone, half beside others; each flag as likely as another."""
    drawn = [flag for name in flags.names(version) if name not in _NOT_DRAWN and (flag := flags.find(name, version))]
    several = [flag for flag in drawn if len(samples(flag)) > 12]
    while True:
        flag = rng.choice(drawn if rng.random() < 0.5 else several)
        yield Case(flag, rng.choice(samples(flag)), PLAIN if rng.random() < 0.5 else rng.choice(CONTEXTS))


def reason(table: Mapping[str, str], text: str) -> str | None:
    return next((why for why, pattern in table.items() if re.search(pattern, text)), None)


def kind_of(answer: Answer) -> str:
    ours = " ".join(f"{d.code} {d.message}" for d in answer.diagnostics)
    match bool(answer.diagnostics), answer.refusal is not None:
        case True, True:
            return "refused by both"
        case False, False:
            return "accepted by both"
        case True, False:
            why = reason(OURS, ours)
            return f"refused by validate alone: {why}" if why else "FALSE REFUSAL"
    why = reason(SURROUNDINGS, answer.refusal or "")
    return f"refused by vLLM alone: {why}" if why else "FALSE ACCEPT"


def answers(cases: Iterator[Case], most: int | None, python: str, version: str) -> list[Answer]:
    tried: list[tuple[Case, tuple[str, ...]]] = []
    for case in cases:
        words = words_of(case, version)
        if words is not None:
            tried.append((case, words))
        if len(tried) == most:
            break
    refusals = ask(python, "configure_with_vllm.py", [words for _, words in tried])
    return [Answer(case, errors_of(case, version), refusal) for (case, _), refusal in zip(tried, refusals, strict=True)]


def described(answer: Answer) -> str:
    ours = "; ".join(f"{d.code} {d.message}" for d in answer.diagnostics) or "accepted"
    theirs = " ".join((answer.refusal or "accepted").split())
    beside = "" if answer.case.context is PLAIN else f" beside {answer.case.context}"
    name = f"{answer.case.flag.name}: {answer.case.value!r}"
    return f"{kind_of(answer)}: {name}{beside}\n  validate: {ours}\n  vLLM: {theirs[-400:]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", type=int, default=1000, help="how many profiles")
    parser.add_argument("-seed", type=int, default=1)
    parser.add_argument("-release", default=flags.VLLM_VERSION, choices=releases.VERSIONS, help="that of VLLM_PYTHON")
    parser.add_argument("-every", action="store_true", help="every sample of every flag, once, instead of a draw")
    parser.add_argument("-all", action="store_true", help="print what one side alone refuses for a known reason, too")
    options = parser.parse_args()
    python = os.environ.get("VLLM_PYTHON")
    if not python:
        sys.exit("Set VLLM_PYTHON to a Python that has vLLM: its CPU build is enough.")
    if options.every:
        tried = answers(every_case(options.release), None, python, options.release)
    else:
        tried = answers(random_cases(random.Random(options.seed), options.release), options.n, python, options.release)
    counts = Counter(map(kind_of, tried))
    for answer in tried:
        kind = kind_of(answer)
        if kind.isupper() or kind.startswith("FALSE") or (options.all and "alone" in kind):
            print(described(answer))
    for kind, count in counts.most_common():
        print(f"{count:6,} {kind}")
    print(f"{counts['FALSE ACCEPT']} false accepts and {counts['FALSE REFUSAL']} false refusals of {len(tried):,}")
    return 1 if counts["FALSE ACCEPT"] or counts["FALSE REFUSAL"] else 0


if __name__ == "__main__":
    sys.exit(main())
