"""docs/how-to/preview-changes.md shows plan, apply, drift and replace as they are printed today. UPDATE_GOLDEN=1 rewrites it."""

from __future__ import annotations

import re
import sys
from contextlib import redirect_stderr
from pathlib import Path

import pytest
from command_line import CommandLine, Open
from goldens import hold, lasting

PAGE = Path(__file__).parents[2] / "docs/how-to/preview-changes.md"
_BLOCK = re.compile(r"(?<=^```console\n)\$ tpudeploy plan -out.*?(?=^```$)", re.MULTILINE | re.DOTALL)
_GAPS = re.compile(r"\n{3,}")
PROFILE = """\
version: 1
name: gemma
model:
  id: google/gemma-4-E2B-it
tpu:
  type: v6e-1
serving:
  image: vllm/vllm-tpu:v0.32.0
secrets:
  VLLM_API_KEY: vllm-key
placement:
  zones: [us-east5-a, europe-west4-a]
  provisioning: [spot]
  labels: {team: search}
"""


@pytest.mark.instant("the page shows a short day: a boot that lasts fills it with its phases")
def test_the_transcript_of_a_day_is_what_is_printed(cli: Open) -> None:
    at: CommandLine = cli(trouble=[{"fault": "stockout", "zone": "us-east5-a"}])
    at.write(PROFILE)
    answer = [_transcript(at, "plan -out monday.plan gemma.yaml"), _transcript(at, "apply monday.plan")]
    (node,) = at.emulator._cloud.nodes.values()
    node.spec = {**node.spec, "labels": {**node.spec["labels"], "team": "ads"}}
    answer += [_transcript(at, "drift gemma.yaml"), _transcript(at, "plan gemma.yaml --set tpu.type=v6e-4")]
    text = PAGE.read_text(encoding="utf-8")
    transcript = lasting("".join(answer), at.folder).rstrip() + "\n"
    hold(PAGE, _BLOCK.sub(lambda _: transcript, text, count=1))
    assert transcript in PAGE.read_text(encoding="utf-8")


def _transcript(at: CommandLine, line: str) -> str:
    """Both streams, in the order of time; without the note of the sizing, which `size` explains."""
    with redirect_stderr(sys.stdout):
        result = at.run(*line.split())
    assert result.code in {0, 2}, result.all
    lines = [text for text in result.out.splitlines() if not text.startswith("gemma: a chip holds")]
    return f"$ tpudeploy {line}\n{_GAPS.sub(chr(10) * 2, chr(10).join(lines)).strip()}\n\n"
