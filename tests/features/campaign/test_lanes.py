"""Lanes: their order, their keys, their time and cost, and which of them start, by tables."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tpudeploy.domain.deployment import Json
from tpudeploy.features.benchmark.offer import Point
from tpudeploy.features.benchmark.report.labels import labels
from tpudeploy.features.campaign import lanes
from tpudeploy.features.campaign.chip_limits import ChipLimits
from tpudeploy.features.campaign.lanes import CampaignLane, CampaignServer, CellTimes, LaneStart
from tpudeploy.features.campaign.record import CampaignRecord
from tpudeploy.serialization import sealed

POINT = Point(concurrency=1, context_tokens=16, output_tokens=2)
TIMES = CellTimes(window=60.0, is_whole=False, asks=False)


def server(name: str, model: str = "m", programs: str = "p") -> CampaignServer:
    return CampaignServer(
        key=name,
        label=name,
        values={},
        lane="lane",
        model=model,
        type="v6e-1",
        programs=programs,
        cold_seconds=600.0,
        warm_seconds=200.0,
        points=(POINT,),
    )


def lane(name: str, chips: int, count: int = 2, price: float | None = 1.0) -> CampaignLane:
    servers = [server(f"{name}-{number}", programs=str(number)) for number in range(count)]
    return CampaignLane(
        name=name,
        type=f"v6e-{chips}",
        generation="v6e",
        chips=chips,
        usd_per_hour=price,
        usd_per_hour_most=price,
        before_serving=3600.0,
        turns=lanes.turns(servers, 1),
    )


def test_servers_of_one_model_and_of_the_same_programs_are_neighbours() -> None:
    listed = [server("a", "x", "1"), server("b", "y", "2"), server("c", "x", "3"), server("d", "x", "1")]
    assert [each.key for each in lanes.in_order(listed)] == ["a", "d", "c", "b"]
    assert lanes.cold_starts(lanes.turns(listed, 3)) == 3


def test_repeats_follow_in_rounds_so_that_each_has_its_own_start() -> None:
    turns = lanes.turns([server("a"), server("b")], 2)
    assert [(turn.server.key, turn.repeat) for turn in turns] == [("a", 1), ("b", 1), ("a", 2), ("b", 2)]


def test_a_cell_is_known_by_its_server_and_its_load_and_not_by_names_or_what_no_server_shows() -> None:
    attributes: dict[str, Json] = {
        "model.id": "m",
        "serving.padding_gap": 0,
        "serving.container_name": "a",
        "lifecycle.end": "1h",
    }
    key = lanes.server_key(attributes)
    assert lanes.server_key({**attributes, "serving.container_name": "b", "lifecycle.end": "2h"}) == key
    assert lanes.server_key({**attributes, "placement.labels.campaign": "x"}) == key
    assert lanes.server_key({**attributes, "serving.padding_gap": 512}) != key
    assert lanes.cell_key(key, POINT, 1) != lanes.cell_key(key, POINT, 2)


def test_the_first_start_of_each_program_is_cold_and_the_others_are_warm() -> None:
    own = lane("l", 1)
    same = lanes.turns([server("a"), server("b")], 1)
    assert lanes.need(own, TIMES).likely_seconds == lanes.MACHINE + 2 * (600 + 30)
    warm = CampaignLane(**{name: getattr(own, name) for name in own.__dataclass_fields__} | {"turns": same})
    assert lanes.need(warm, TIMES).likely_seconds == lanes.MACHINE + 600 + 200 + 60


@pytest.mark.parametrize(
    ("chips", "usd", "running", "names"),
    [
        (None, None, (), ["big", "small"]),
        (12, None, (), ["big", "small"]),
        (8, None, (), ["big"]),
        (12, None, (8,), ["small"]),
        (3, None, (), []),
        (12, 100.0, (), ["big", "small"]),
        (12, 3.0, (), ["big"]),
        (20, 1.5, (8,), []),
        (12, 1.5, (), ["small"]),
        (12, 1.1, (), []),
    ],
    ids=[
        "without limits all start, the longest first",
        "the chips are enough for both",
        "the chips are enough for one",
        "the other lane runs",
        "the chips are enough for none",
        "the budget has room for both",
        "the budget has room for one",
        "what runs may leave more money",
        "nothing runs, so the cheapest starts with an earlier end",
        "not even one cell could be paid",
    ],
)
def test_lanes_start_within_the_chips_and_the_budget(
    chips: int | None, usd: float | None, running: tuple[int, ...], names: list[str]
) -> None:
    starts = lanes.next_lanes(
        [lane("small", 4), lane("big", 8, count=3)],
        TIMES,
        running=[lane(f"runs-{size}", size) for size in running],
        limits=ChipLimits(together=chips),
        usd_free=usd,
        seconds_left=86400.0,
    )
    assert [each.name for each in starts] == names


def test_each_generation_has_its_own_quota_and_its_first_lane_waits_for_none() -> None:
    """What others use of a quota may become free, so a lane that is alone is requested all the same."""
    every = [lane("big", 8), lane("small", 4), replace(lane("other", 4), generation="v5e")]
    limits = ChipLimits(by_generation={"v6e": 8, "v5e": 0})
    starts = lanes.next_lanes(every, TIMES, running=(), limits=limits, usd_free=None, seconds_left=86400.0)
    assert [each.name for each in starts] == ["big", "other"]
    one = lanes.need(every[0], TIMES).likely_seconds
    assert lanes.makespan(every, TIMES, limits) == pytest.approx(2 * one)


def test_a_lane_without_a_price_never_starts_under_a_budget() -> None:
    starts = lanes.next_lanes(
        [lane("l", 1, price=None)], TIMES, running=(), limits=ChipLimits(), usd_free=9.0, seconds_left=9e4
    )
    assert starts == ()


def test_no_end_is_later_than_that_of_the_campaign() -> None:
    starts = lanes.next_lanes([lane("l", 1)], TIMES, running=(), limits=ChipLimits(), usd_free=None, seconds_left=600.0)
    assert starts == (LaneStart(name="l", end_minutes=10),)


def test_lanes_that_do_not_fit_beside_each_other_follow_each_other() -> None:
    one = lanes.need(lane("a", 8), TIMES).likely_seconds
    assert lanes.makespan([lane("a", 8), lane("b", 8)], TIMES, ChipLimits(together=8)) == pytest.approx(2 * one)
    assert lanes.makespan([lane("a", 8), lane("b", 8)], TIMES, ChipLimits(together=16)) == pytest.approx(one)


def test_labels_have_what_differs_alone() -> None:
    models = ("google/gemma-4-E2B-it", "google/gemma-4-E4B-it")
    values = [
        {"model.id": model, "tpu.type": "v6e-1", "serving.kv_cache_dtype": kv}
        for model in models
        for kv in ("auto", "fp8")
    ]
    assert labels(values) == ("E2B, auto", "E2B, fp8", "E4B, auto", "E4B, fp8")
    switches = [{"serving.args.enable_prefix_caching": on, "serving.max_num_seqs": 64} for on in (True, False)]
    assert labels(switches) == ("enable_prefix_caching on", "enable_prefix_caching off")


def test_a_campaign_of_an_earlier_version_is_read_and_written_again_without_a_change() -> None:
    text = (Path(__file__).parent / "data" / "campaign.json").read_text(encoding="utf-8")
    assert (
        sealed.dumps(sealed.loads(CampaignRecord, text, "tpudeploy.campaign-record/1"), "tpudeploy.campaign-record/1")
        == text
    )
