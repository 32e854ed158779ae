"""Parse durations and sizes as people write them: `15m` to seconds, `10GiB` to bytes."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Self

from tpudeploy.domain.hours import time_zone

MOST_SECONDS = 99_999_999  # about three years: nothing here takes as long, and no clock overflows
_DURATION_FORMS = "[0-9]{1,8}s|[0-9]{1,6}m|[0-9]{1,4}h|[0-9]{1,3}d"
_DURATION = re.compile(_DURATION_FORMS)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}

_SIZE = re.compile(r"([0-9]{1,12})(k|m|g|t)(i?)b", re.IGNORECASE)
_POWER = {"k": 1, "m": 2, "g": 3, "t": 4}

DURATION_PATTERN = f"^(?:{_DURATION_FORMS})$"
# As vLLM's human_readable_int reads it: decimals only with a decimal unit.
TOKENS_PATTERN = r"[0-9]{1,12}[kmgtKMGT]|[0-9]{1,12}\.[0-9]{1,6}[kmgt]"

SIZE_PATTERN = "^[0-9]{1,12}[kKmMgGtT][iI]?[bB]$"


class Duration(float):
    """Seconds. `text` is the source text."""

    text: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raise ValueError unless `text` looks like 90s, 15m, 2h or 7d."""
        if _DURATION.fullmatch(text) is None:
            raise ValueError(f"`{text}` is not a duration")
        duration = cls(int(text[:-1]) * _SECONDS[text[-1]])
        duration.text = text
        return duration


_ZONE_FORMS = "Z|[+-][0-9]{2}:[0-9]{2}| [A-Za-z_]{1,32}(?:/[A-Za-z0-9_+-]{1,32}){0,2}"
_MOMENT_FORMS = f"[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}[T ][0-9]{{2}}:[0-9]{{2}}(?::[0-9]{{2}})?(?:{_ZONE_FORMS})"
MOMENT_PATTERN = f"^(?:{_MOMENT_FORMS})$"


class Moment(float):
    """A point in time, in seconds since the epoch. `text` is the source text."""

    text: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raise ValueError unless `text` looks like 2026-12-24T18:00Z, or like 2026-12-24 18:00 Europe/Berlin.

        Raise `UnknownZone` for a time zone that does not exist.
        """
        if re.fullmatch(_MOMENT_FORMS, text) is None:
            raise ValueError(f"`{text}` is not a time with its time zone")
        day, _, rest = text.replace("T", " ", 1).partition(" ")
        clock, _, zone = rest.partition(" ")
        local = datetime.fromisoformat(f"{day} {clock}")
        if zone:
            local = local.replace(tzinfo=time_zone(zone))
        moment = cls(local.timestamp())
        moment.text = text
        return moment


# As docker's units.RAMInBytes reads it: every unit is binary, and a number alone is bytes.
_DOCKER_SIZE = re.compile(r"([0-9]{1,15})(\.[0-9]{1,9})? ?([kmgtp]?)(?:i?b)?", re.IGNORECASE)
DOCKER_SIZE_PATTERN = "^[0-9]{1,15}(\\.[0-9]{1,9})? ?([kKmMgGtTpP]?[iI]?[bB]?)$"
LEAST_DOCKER_SIZE = 1024**2
_DOCKER_POWER = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}


class ByteSize(int):
    """Bytes. `text` is the source text. 10gb is decimal, 10GiB is binary."""

    text: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raise ValueError unless `text` looks like 10gb or 10GiB."""
        match = _SIZE.fullmatch(text)
        if match is None:
            raise ValueError(f"`{text}` is not a size")
        base = 1024 if match[3] else 1000
        size = cls(int(match[1]) * base ** _POWER[match[2].lower()])
        size.text = text
        return size

    @classmethod
    def parse_for_docker(cls, text: str) -> Self:
        """Raise ValueError unless docker takes `text` as a size: 16g, 16384m, 10gb, 1.5GiB, or bytes.

        A number below a MiB is a size whose unit was forgotten.
        """
        match = _DOCKER_SIZE.fullmatch(text)
        if match is None:
            raise ValueError(f"`{text}` is not a size")
        number = float(f"{match[1]}{match[2] or ''}")
        size = cls(int(number * 1024 ** _DOCKER_POWER[match[3].lower()]))
        if size < LEAST_DOCKER_SIZE:
            raise ValueError(f"`{text}` is less than a MiB")
        size.text = text
        return size
