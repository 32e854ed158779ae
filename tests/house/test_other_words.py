"""The search of the site finds pages by users' words: each word has a row, which leads to its page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
WORDS = {
    "autoscaling": "how-to/autoscale.md",
    "rollback": "how-to/roll-back.md",
    "embedding": "how-to/embeddings.md",
    "domain": "how-to/tls.md",
    "pause": "how-to/stop-at-night.md",
    "TLS": "how-to/tls.md",
    "LoRA": "how-to/lora.md",
    "quantization": "how-to/quantized-checkpoints.md",
    "notebook": "how-to/python.md",
    "RBAC": "how-to/team-roles.md",
    "OOM": "how-to/out-of-memory.md",
    "TTFT": "how-to/slow-first-token.md",
    "stockout": "explanation/hunting.md",
    "preemption": "how-to/spot-in-three-zones.md",
    "supported models": "compatibility.md",
    "tokens per second": "benchmarks.md",
    "Helm": "how-to/gke.md",
    "Jupyter": "how-to/python.md",
    "support bundle": "how-to/find-what-is-wrong.md",
    "uninstall": "how-to/install.md",
    "proxy": "how-to/install.md",
    "engine upgrade": "how-to/change-a-server.md",
    "air-gapped": "how-to/private-model.md",
    "chat": "how-to/openai-sdk.md",
    "tuning": "how-to/tune.md",
    "adopt": "how-to/existing-slice.md",
    "move state": "how-to/share-the-state.md",
    "unattended": "how-to/stop-at-night.md",
    "SkyPilot": "how-to/coming-from.md",
    "webhook": "how-to/notify.md",
}


def _rows() -> dict[str, str]:
    text = (DOCS / "other-words.md").read_text(encoding="utf-8")
    return dict(re.findall(r"^\| (.+?) \| (.+) \|$", text, re.MULTILINE)[1:])


@pytest.mark.parametrize(("word", "page"), WORDS.items(), ids=WORDS)
def test_a_word_of_users_leads_to_the_page(word: str, page: str) -> None:
    targets = [links for words, links in _rows().items() if word in re.split(r", ", words)]
    assert any(re.search(rf"\]\({re.escape(page)}[)#]", links) for links in targets), targets


def test_each_row_leads_to_a_page_and_no_word_has_two_rows() -> None:
    words = [word for row in _rows() for word in row.split(", ")]
    assert sorted(set(words)) == sorted(words)
    for links in _rows().values():
        for target in re.findall(r"\]\(([^)#]+)", links):
            assert (DOCS / target).exists(), target
