"""Numbers as people say them: durations, money, JSON values on one line."""

from __future__ import annotations

import json

from tpudeploy.domain.deployment import Json

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_WIDEST = 88


def duration(seconds: float) -> str:
    """`45s`, `12m 3s`, `2h 5m`, `3d 4h`: the two largest units."""
    whole = round(seconds)
    if whole < _MINUTE:
        return f"{whole}s"
    if whole < _HOUR:
        return f"{whole // _MINUTE}m {whole % _MINUTE}s"
    if whole < _DAY:
        return f"{whole // _HOUR}h {whole % _HOUR // _MINUTE}m"
    return f"{whole // _DAY}d {whole % _DAY // _HOUR}h"


def hourly(usd: float | None) -> str:
    return "price unknown" if usd is None else f"${usd:.2f}/h"


def value(of: Json) -> str:
    """On one line, shortened where it would run off the screen."""
    text = json.dumps(of, ensure_ascii=False)
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 1]}…"
