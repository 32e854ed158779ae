"""Hours of the week: nights, weekends, and the two days on which the clocks change."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from tpudeploy.domain.hours import Hours, UnknownZone, closing_after, current_span, last_closing, next_opening

BERLIN = "Europe/Berlin"
OFFICE = "Mon-Fri 08:00-19:00 Europe/Berlin"


def _at(text: str, zone: str = BERLIN) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()


@pytest.mark.parametrize(
    ("hours", "now", "closes"),
    [
        pytest.param(OFFICE, "2026-11-27 08:00", "2026-11-27 19:00", id="it is open at its opening time"),
        pytest.param(OFFICE, "2026-11-27 19:00", None, id="and closed at its closing time"),
        pytest.param(OFFICE, "2026-11-28 12:00", None, id="and on a Saturday"),
        pytest.param("Mon-Fri 22:00-06:00 Europe/Berlin", "2026-11-28 05:59", "2026-11-28 06:00", id="Friday's night"),
        pytest.param("Mon-Fri 22:00-06:00 Europe/Berlin", "2026-11-23 05:59", None, id="Sunday has no night"),
        pytest.param(
            "Sat-Mon 10:00-12:00 Europe/Berlin", "2026-11-29 11:00", "2026-11-29 12:00", id="over the week's end"
        ),
        pytest.param("Mon,Wed 10:00-12:00 Europe/Berlin", "2026-11-24 11:00", None, id="a list leaves Tuesday out"),
        pytest.param("10:00-12:00 Europe/Berlin", "2026-11-29 11:00", "2026-11-29 12:00", id="without days, each day"),
        pytest.param("Mon-Fri 00:00-24:00 Europe/Berlin", "2026-11-25 12:00", "2026-11-28 00:00", id="days that touch"),
    ],
)
def test_hours_are_open_between_their_times(hours: str, now: str, closes: str | None) -> None:
    span = current_span(Hours.parse(hours), _at(now))
    assert (None if span is None else span.ends) == (None if closes is None else _at(closes))


def test_the_weekend_ends_on_monday_morning() -> None:
    hours = Hours.parse(OFFICE)
    saturday = _at("2026-11-28 12:00")
    assert last_closing(hours, saturday) == _at("2026-11-27 19:00")
    assert next_opening(hours, saturday) == _at("2026-11-30 08:00")
    assert closing_after(hours, saturday) == _at("2026-11-30 19:00")


def test_opening_time_is_that_of_the_wall_clock_in_summer_and_in_winter() -> None:
    hours = Hours.parse("08:00-19:00 Europe/Berlin")
    before, after = next_opening(hours, _at("2026-03-28 12:00")), next_opening(hours, _at("2026-10-24 12:00"))
    assert (before, after) == (_at("2026-03-29 08:00"), _at("2026-10-25 08:00"))
    assert before - _at("2026-03-28 08:00") == 23 * 3600
    assert after - _at("2026-10-24 08:00") == 25 * 3600


def test_an_hour_that_comes_twice_is_in_the_hours_twice_and_one_that_never_comes_opens_nothing() -> None:
    night = Hours.parse("01:00-02:30 Europe/Berlin")
    span = current_span(night, _at("2026-10-25 01:30"))
    assert span is not None
    assert span.ends - span.begins == 2.5 * 3600
    missing = Hours.parse("Sun 02:00-03:00 Europe/Berlin")
    assert next_opening(missing, _at("2026-03-29 00:00")) == _at("2026-04-05 02:00")


@pytest.mark.parametrize(
    "text",
    [
        "", "08:00-19:00", "Mon-Fri 8:00-19:00 UTC", "Mon-Fri 08:00-25:00 UTC", "mon-fri 08:00-19:00 UTC",
        "Mon-Fri 08:00-08:00 UTC", "00:00-24:00 UTC", "Mon - Fri 08:00-19:00 UTC", "Mon-Fri 08:00-19:00 UTC\n",
    ],
)  # fmt: skip
def test_what_never_opens_never_closes_or_has_another_form_is_no_hours(text: str) -> None:
    with pytest.raises(ValueError, match=r"hours|never"):
        Hours.parse(text)


def test_a_time_zone_that_does_not_exist_is_named() -> None:
    with pytest.raises(UnknownZone, match="Europe/Munich"):
        Hours.parse("Mon-Fri 08:00-19:00 Europe/Munich")
