"""Find text that looks like a credential, and mask it in everything that may be printed."""

from __future__ import annotations

import re
from collections.abc import Iterator

_KEY_BLOCK = r"-----BEGIN [A-Z ]*PRIVATE KEY(?s:.*?)(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"

# Lengths and character classes exclude words of the field: hf_transfer, hf_quantization, disk-1, sk-learn. Lookaheads
# are bounded, because otherwise a hostile file would take quadratic time.
TOKENS = {
    "a Hugging Face token": r"hf_(?:(?=[a-z]{0,99}[A-Z0-9])[A-Za-z0-9]{10,}|[a-z]{14,})",
    "a GitHub token": r"gh[pousr]_[A-Za-z0-9]{10,}|github_pat_\w{10,}",
    "a GitLab token": r"glpat-[\w-]{16,}",
    "a Google API key": r"AIza[\w-]{10,}",
    "a Google access token": r"ya29\.[\w-]{10,}",
    "a Google client secret": r"GOCSPX-[\w-]{16,}",
    "an API key": r"sk-(?=[\w-]{0,99}[A-Z0-9])[\w-]{16,}",
    "an AWS access key": r"A(?:KI|SI)A[A-Z0-9]{16}",
    "a Slack token": r"xox[abprs]-[\w-]{10,}",
    "a JSON Web Token": r"eyJ[\w-]{10,200}\.eyJ[\w-]{10,}(?:\.[\w-]+)?",
    "a private key": _KEY_BLOCK,
}
_KINDS_OF_TOKENS = "|".join(f"({pattern})" for pattern in TOKENS.values())
_ANY = rf"(?<![A-Za-z0-9])(?:{_KINDS_OF_TOKENS})"
# Matches inside a word too, except for words that end in `sk`: disk-, task-, risk-, desk-, mask-.
_ANYWHERE = rf"(?!(?<=[Dd]i|[Tt]a|[Rr]i|[Dd]e|[Mm]a)sk-)(?:{_KINDS_OF_TOKENS})"
_KINDS = tuple(TOKENS)
# Every token begins with one of these. Looking for them takes a tenth of the search, and most texts have none, so that
# most commands never compile the patterns above.
_BEGINNINGS = (
    *("hf_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "AIza", "ya29.", "GOCSPX-", "sk-"),
    *("AKIA", "ASIA", "xoxa-", "xoxb-", "xoxp-", "xoxr-", "xoxs-", "eyJ", "-----BEGIN "),
)


def tokens_in(text: str, *, anywhere: bool = False) -> Iterator[tuple[str, int, int]]:
    """Yield kind, start and end of each range that looks like a credential; `anywhere`: inside a word too."""
    if not _is_suspect(text):
        return
    for match in re.finditer(_ANYWHERE if anywhere else _ANY, text):
        yield _KINDS[(match.lastindex or 1) - 1], match.start(), match.end()


def masked(text: str) -> str:
    """Return the text with each such range masked, character by character, so that columns and lines stay the same."""
    if not _is_suspect(text):
        return text
    return re.sub(_ANY, lambda match: re.sub(r"[^\r\n\x85\u2028\u2029]", "*", match[0]), text)


def _is_suspect(text: str) -> bool:
    return any(beginning in text for beginning in _BEGINNINGS)
