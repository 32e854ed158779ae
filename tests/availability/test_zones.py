"""`tpudeploy zones`: where a slice type can be had, gate by gate, and what is said where a gate does not tell."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from command_line import INSTANCE, PROFILE, CommandLine, Open
from goldens import assert_golden
from pseudo_terminal import person

from tpudeploy.adapters.google.refusals import VERDICTS
from tpudeploy.adapters.state.local import LocalState
from tpudeploy.availability import gates
from tpudeploy.catalog import generation
from tpudeploy.domain.deployment import Provisioning
from tpudeploy.domain.history import Ending, HistoryEntry
from tpudeploy.domain.names import Zone
from tpudeploy.domain.slices import Remedy

A, B, C = "us-east5-a", "us-east5-b", "europe-west4-a"
ANYWHERE = PROFILE.partition("placement:")[0] + (
    "placement: {provisioning: [flex-start, spot], max_run_duration: 12h, max_price_per_chip_hour: 1.38}\n"
)
HOUR, DAY = 3600.0, 86400.0


def rows(output: str) -> dict[tuple[str, str], str]:
    """What the table says of each pair, in its order."""
    table = output.partition("\n\n")[2].partition("\n\n")[0].splitlines()[1:]
    words = [line.split(None, 2) for line in table]
    return {(zone, model): " ".join("".join(rest).split()) for zone, model, *rest in words}


def pairs(at: CommandLine, *words: str) -> dict[tuple[str, str], Any]:
    """What --json says of each pair."""
    tree = json.loads(at.run("zones", "-json", *words).out)
    return {(p["zone"], p["provisioning"]): p for table in tree["tables"] for p in table["pairs"]}


def tried(
    at: CommandLine, zone: str, model: str, ending: str, *, ago: float, waited: float = 30.0, **more: Any
) -> None:
    one = HistoryEntry(
        at=at.clock.now() - ago,
        zone=Zone(zone),
        provisioning=Provisioning(model),
        type=more.pop("type", "v6e-1"),
        chips=1,
        outcome=Ending(ending),
        waited=waited,
        **more,
    )
    LocalState(at.folder / ".tpudeploy", at.clock, who="me@here", emulated=True).record(one)


def reads(at: CommandLine, words: str) -> int:
    """How many requests so far had these words in their path."""
    return sum(words in r.path for r in at.emulator.requests)


def test_the_screen_reads_well(cli: Open) -> None:
    quota = [
        {"class": "on-demand", "region": "*", "limit": 0},
        {"class": "preemptible", "region": "us-east5", "limit": 16},
    ]
    at = cli(quota=quota, project={"prices": {"us-east5": {"spot": 1.42}}})
    tried(at, B, "spot", "refused", ago=9000, waited=5, kind="stockout", text="There is no more capacity")
    tried(at, B, "spot", "granted", ago=7200, waited=250)
    tried(at, A, "flex-start", "refused", ago=300, waited=8, kind="stockout", text="There is no more capacity")
    refusal = "User does not have permission to submit requests into this queue"
    tried(at, C, "flex-start", "refused", ago=3 * DAY, kind="queue-closed", text=refusal)
    profile = at.write(ANYWHERE.replace("1.38", "1.45"))
    result = at.run("zones", profile)
    assert result.code == 0, result.all
    assert_golden("screens/zones", f"$ tpudeploy zones {profile}\n{result.out}[exit {result.code}]\n", folder=at.folder)


def test_it_lists_every_zone_that_lists_the_type_and_no_other(cli: Open) -> None:
    at = cli(offers={"us-west4-a": ["v6e-1", "v6e-4"], "us-east5-a": ["v6e-8"]})
    zones = {zone for zone, _ in pairs(at)}
    assert "us-west4-a" in zones
    assert "us-east5-b" in zones
    assert "us-east5-a" not in zones
    assert {zone for zone, _ in pairs(at, "-type", "v6e-8")} >= {"us-east5-a", "us-east5-b"}
    assert ("us-west4-a", "spot") not in pairs(at, "-type", "v6e-8")


def test_a_profile_is_asked_about_its_own_type_and_places_alone(cli: Open) -> None:
    at = cli(offers={B: ["v6e-8"]})
    profile = at.write(PROFILE.replace("v6e-1", "v6e-4"))
    result = at.run("zones", profile)
    assert "gemma: v6e-4 (4 chips) in emulated: 2 of 3 pairs" in result.out
    assert list(rows(result.out)) == [(A, "spot"), (C, "spot")]
    assert f"no v6e-4: {B}" in result.words
    assert list(pairs(at, profile, "-type", "v6e-8")) == [(A, "spot"), (B, "spot"), (C, "spot")]


def test_a_type_that_there_is_not_is_refused_with_the_one_that_was_meant(cli: Open) -> None:
    result = cli().run("zones", "-type", "v6e-9")
    assert result.code == 1
    assert "There is no slice type `v6e-9`" in result.err
    assert "Did you mean `v6e-8`?" in result.err


def test_a_zone_that_is_known_to_refuse_flex_start_is_closed_with_the_date(cli: Open) -> None:
    at = cli()
    result = at.run("zones")
    assert ("us-central1-b", "flex-start") not in rows(result.out)
    assert ("us-central1-b", "spot") in rows(result.out)
    assert "no flex-start, refused 2026-06: " in result.out
    assert ("us-east5-c", "flex-start?") in rows(result.out)  # nobody has recorded either


def test_what_asking_came_to_outweighs_the_table_both_ways(cli: Open) -> None:
    at = cli()
    tried(at, "us-central1-b", "flex-start", "lapsed", ago=DAY)  # it let us wait: the model is taken
    tried(at, A, "flex-start", "refused", ago=DAY, kind="model-unsupported", text="not supported for v6e-1 \x1b[31m")
    tried(at, B, "spot", "refused", ago=DAY, kind="too-big", text="Request size can be at most 4", type="v6e-8")
    tried(at, C, "spot", "refused", ago=DAY, kind="zone-unsupported", text="is not supported", type="v6e-4")
    found = pairs(at)
    assert found["us-central1-b", "flex-start"]["model"]["yes"] is True
    assert found[A, "flex-start"]["closed_by"] == "model"
    assert found[A, "spot"]["standing"] == "open"
    models = ("flex-start", "spot", "on-demand")
    assert {found[B, model]["closed_by"] for model in models} == {None}  # another size was too big
    assert {pairs(at, "-type", "v6e-8")[B, model]["closed_by"] for model in models} == {"hardware"}
    assert {found[C, model]["closed_by"] for model in models} == {"hardware"}
    result = at.run("zones").out
    assert "not supported for v6e-1" in result
    assert "\x1b" not in result
    at.clock.sleep(40 * DAY)
    assert pairs(at)[A, "flex-start"]["model"]["source"] == "table"  # a refusal is not believed for ever


def test_a_stockout_closes_nothing_it_is_luck(cli: Open) -> None:
    at = cli()
    tried(at, B, "spot", "refused", ago=60, kind="stockout", text="no more capacity")
    pair = pairs(at, at.write())[B, "spot"]
    assert (pair["standing"], pair["luck"]["last"]) == ("open", "refused")


@pytest.mark.parametrize("zones", ["any", f"[{A}, {B}, us-central1-a, us-central1-b]"])
def test_pairs_stand_in_the_order_in_which_apply_asks_them(cli: Open, zones: str) -> None:
    """Whatever the zone history holds: both weigh it by the same rule."""
    at = cli(habits=[{"habit": "common-reopening", "zone": "*", "after": 40 * HOUR}])
    tried(at, "us-central1-b", "spot", "granted", ago=2 * HOUR)
    tried(at, "us-central1-a", "spot", "refused", ago=60, kind="stockout", text="no more capacity")
    tried(at, A, "spot", "preempted", ago=HOUR, kind="preempted", text="taken back")
    profile = at.write(PROFILE.replace("[us-east5-a, us-east5-b, europe-west4-a]", zones))
    places = {zone: pair for (zone, _), pair in pairs(at, profile).items() if pair["standing"] == "open"}
    listed = list(places)
    at.run("apply", "-auto-approve", profile, "-timeout", "12m")
    requested = list(dict.fromkeys(at.requested_zones()))[: len(listed) - 1]
    assert len(requested) >= 3
    assert requested == listed[: len(requested)]
    is_named = zones != "any"  # else the places without a known price come last
    assert [zone for zone in listed if is_named or places[zone]["price"]["usd_per_chip_hour"] is not None][-1] == A


def test_kinds_that_close_a_gate_are_kinds_of_refusals_that_drop_a_zone() -> None:
    known = {row.kind: row.remedy for row in VERDICTS}
    for kind in gates.NO_MODEL | gates.NO_HARDWARE:
        assert known[kind] is Remedy.DROP_ZONE
    assert gates.OF_ALL_TYPES < gates.NO_MODEL | gates.NO_HARDWARE


def test_both_limits_count_and_so_does_what_is_held_by_whomever(cli: Open) -> None:
    rules = [
        {"class": "preemptible", "region": "us-east5", "limit": 8},
        {"class": "preemptible", "zone": A, "limit": 16},
        {"class": "preemptible", "zone": B, "limit": 0},
        {"class": "preemptible", "region": "europe-west4", "limit": 4},
    ]
    at = cli(quota=rules)
    profile = at.write()
    assert at.run("apply", "-auto-approve", profile).code == 0
    at.emulator.preempt(next(iter(at.slices)))
    at.clock.sleep(600)  # a husk holds its quota
    assert list(at.slices.values()) == ["SUSPENDED"]
    found = rows(at.run("zones", profile, "-type", "v6e-8").out)
    assert found == {(A, "spot"): "1.40 7 of 8", (B, "spot"): "1.40 0", (C, "spot"): "1.78 4"}
    doubtful = pairs(at, profile, "-type", "v6e-8")
    assert {p["standing"] for p in doubtful.values()} == {"doubtful"}
    assert [p["quota"]["fill"] for p in doubtful.values()] == ["short", "none", "short"]
    assert pairs(at, profile)[A, "spot"]["quota"] == {
        "fill": "enough",
        "zone_limit": 16,
        "zone_used": 1,
        "region_limit": 8,
        "region_used": 1,
    }


def test_a_pair_without_quota_is_shown_last_and_never_hidden(cli: Open) -> None:
    at = cli(quota=[{"class": "preemptible", "zone": A, "limit": 0}])
    assert list(rows(at.run("zones", at.write()).out)) == [(B, "spot"), (C, "spot"), (A, "spot")]


def test_a_metric_that_is_spelled_otherwise_is_unknown_never_nothing_and_never_fine(cli: Open) -> None:
    at = cli(
        quota=[{"class": "preemptible", "zone": "*", "limit": 0}],
        project={"quota_metrics": {"preemptible": "tpu-trillium-spot", "on-demand": "tpu-trillium"}},
    )
    result = at.run("zones", at.write())
    assert rows(result.out)[A, "spot"] == "1.40 ?"
    assert "Service Usage names no metric like `tpu-v6e`" in result.words
    assert pairs(at, "gemma.yaml")[A, "spot"]["quota"]["fill"] == "unknown"


@pytest.mark.parametrize("spelling", ["TPU_V6E_Preemptible", "tpu-v6e-preemptible"])
def test_underlines_and_capitals_do_not_make_another_metric(cli: Open, spelling: str) -> None:
    at = cli(
        quota=[{"class": "preemptible", "zone": "*", "limit": 4}], project={"quota_metrics": {"preemptible": spelling}}
    )
    assert rows(at.run("zones", at.write()).out)[A, "spot"] == "1.40 4"


def test_prices_are_the_billing_catalogues_of_the_very_article(cli: Open) -> None:
    at = cli(project={"prices": {"us-east5": {"spot": 1.1, "on-demand": 2.5, "flex-start": 1.2}}})
    found = rows(at.run("zones").out)
    assert [found[A, model].split()[0] for model in ("spot", "on-demand", "flex-start")] == ["1.10", "2.50", "1.20"]


def test_pairs_above_the_price_that_a_profile_allows_are_closed_at_todays_price(cli: Open) -> None:
    at = cli(project={"prices": {"us-east5": {"spot": 1.9}, "europe-west4": {"spot": 1.2}}})
    result = at.run("zones", at.write(PROFILE + "  max_price_per_chip_hour: 1.5\n"))
    assert list(rows(result.out)) == [(C, "spot")]
    assert f"spot is dearer than the profile allows: {A}, {B}" in result.out


def test_hardware_and_prices_are_kept_for_a_day_with_their_age(cli: Open) -> None:
    at = cli()
    profile = at.write()
    assert at.run("zones", profile).code == 0
    first = (reads(at, "/acceleratorTypes"), reads(at, "/skus"))
    assert min(first) > 0
    at.clock.sleep(5 * HOUR)
    result = at.run("zones", profile)
    assert (reads(at, "/acceleratorTypes"), reads(at, "/skus")) == first
    assert result.out.count("read 5h ago; --refresh reads it again") == 2
    assert reads(at, "/consumerQuotaMetrics") == 2  # quota is read every time
    at.run("zones", profile, "-refresh")
    assert reads(at, "/skus") == 2 * first[1]
    at.clock.sleep(25 * HOUR)
    assert "accelerator types, read now" in at.run("zones", profile).out
    assert reads(at, "/skus") == 3 * first[1]


def test_what_is_kept_serves_on_where_it_cannot_be_read_anew(cli: Open) -> None:
    at = cli(project={"prices": {"us-east5": {"spot": 1.1}}}, offers={"us-west4-a": ["v6e-1"]})
    assert at.run("zones").code == 0
    at.emulator.script({"fault": "unavailable", "method": "*"})
    at.clock.sleep(3 * DAY)
    result = at.run("zones")
    assert result.code == 0
    assert rows(result.out)[A, "spot"].startswith("1.10")
    assert ("us-west4-a", "spot") in rows(result.out)
    assert result.out.count("read 3d ago") == 2
    assert "The service is currently unavailable" in result.words


@pytest.mark.parametrize("text", ["", "{", "[]", '{"source": 1}', '{"source": "SOURCE", "reading": {"types": 7}}'])
def test_a_kept_reading_that_makes_no_sense_is_read_anew(cli: Open, text: str) -> None:
    at = cli()
    kept = at.folder / ".tpudeploy" / "facts"
    kept.mkdir(parents=True)
    for name in ("offers-emulated", "prices"):
        (kept / f"{name}.json").write_text(text.replace("SOURCE", at.emulator.host), encoding="utf-8")
    result = at.run("zones")
    assert result.code == 0, result.all
    assert "accelerator types, read now" in result.out


def test_one_projects_hardware_is_not_anothers(cli: Open) -> None:
    at = cli()
    at.write()
    at.run("zones", "gemma.yaml")
    once = reads(at, "/acceleratorTypes")
    at.run("zones", at.write(PROFILE + "  project: another\n", "other.yaml"))
    assert reads(at, "/acceleratorTypes") == 2 * once
    result = at.run("zones", "gemma.yaml", "other.yaml").out
    assert "in emulated: 3 of 3" in result
    assert "in another: 3 of 3" in result


def test_one_clouds_prices_are_not_anothers(cli: Open) -> None:
    first = cli(project={"prices": {"us-east5": {"spot": 1.1}}})
    profile = first.write()
    assert rows(first.run("zones", profile).out)[A, "spot"].startswith("1.10")
    second = cli(project={"prices": {"us-east5": {"spot": 1.2}}})
    assert rows(second.run("zones", profile).out)[A, "spot"].startswith("1.20")


# A method that fails, how, and what of the screen then comes from elsewhere or from nobody.
SILENT: tuple[tuple[str, Mapping[str, str], str], ...] = (
    ("locations.list", {"fault": "unavailable"}, "hardware the catalogue's zones of 2026-08"),
    ("locations.list", {"fault": "iam-denied"}, "hardware the catalogue's zones of 2026-08"),
    ("locations.list", {"fault": "connection-refused"}, "hardware the catalogue's zones of 2026-08"),
    ("serviceusage.*", {"fault": "unavailable"}, "quota not known"),
    ("serviceusage.*", {"fault": "iam-denied"}, "roles/serviceusage.serviceUsageViewer lets you see it"),
    ("serviceusage.*", {"fault": "connection-refused"}, "quota not known"),
    ("queuedResources.list", {"fault": "unavailable"}, "the limit: current usage is unknown"),
    ("cloudbilling.*", {"fault": "unavailable"}, "`~` marks list prices of 2026-08"),
    ("cloudbilling.*", {"fault": "rate-limit"}, "`~` marks list prices of 2026-08"),
    ("cloudbilling.*", {"fault": "lost-reply"}, "`~` marks list prices of 2026-08"),
)


@pytest.mark.parametrize("row", SILENT, ids=lambda row: f"{row[0]}-{row[1]['fault']}")
def test_a_gate_that_does_not_tell_hides_no_other(cli: Open, row: tuple[str, Mapping[str, str], str]) -> None:
    method, fault, words = row
    at = cli(trouble=[{**fault, "method": method}], quota=[{"class": "preemptible", "zone": "*", "limit": 4}])
    tried(at, A, "spot", "granted", ago=7200)
    result = at.run("zones", at.write())
    assert result.code == 0, result.all
    assert words in result.words
    price, quota, luck = rows(result.out)[A, "spot"].split(" ", 2)
    assert price == ("~1.40" if method == "cloudbilling.*" else "1.40")
    assert quota == ("?" if method == "serviceusage.*" else "4")
    assert luck.startswith("granted 2h ago 1 of 1")
    at.write(PROFILE.replace("us-east5-b", "us-west9-z"))
    unknown = pairs(at, "gemma.yaml")["us-west9-z", "spot"]
    if method == "locations.list":
        assert unknown["hardware"]["yes"] is None  # not in the table either: nobody knows
        assert unknown["standing"] == "open"
    else:
        assert unknown["closed_by"] == "hardware"


def test_an_api_that_is_off_is_named_with_the_command_that_enables_it(cli: Open) -> None:
    at = cli(project={"apis_off": ["cloudbilling.googleapis.com"]})
    result = at.run("zones")
    assert "cloudbilling.googleapis.com is not enabled. Run: gcloud services enable cloudbilling" in result.words


def test_one_zone_that_does_not_answer_is_told_by_the_table_and_asked_again_next_time(cli: Open) -> None:
    at = cli(trouble=[{"fault": "unavailable", "method": "acceleratorTypes.list", "zone": A, "times": 1}])
    profile = at.write()
    first = pairs(at, profile)
    assert (first[A, "spot"]["hardware"]["source"], first[B, "spot"]["hardware"]["source"]) == ("table", "live")
    again = pairs(at, profile)[A, "spot"]["hardware"]
    assert (again["source"], again["yes"]) == ("live", True)


def test_a_zone_that_is_not_for_this_project_is_closed(cli: Open) -> None:
    at = cli(trouble=[{"fault": "location-denied", "method": "acceleratorTypes.list", "zone": A}])
    assert pairs(at, at.write())[A, "spot"]["closed_by"] == "hardware"


def test_without_credentials_the_dated_tables_are_shown_and_said_to_be_so(
    cli: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = cli()
    no_credentials(at, monkeypatch)
    result = at.run("zones")
    assert result.code == 0, result.all
    assert "in no project" in result.out
    assert "hardware the catalogue's zones of 2026-08" in result.words
    assert rows(result.out)[A, "spot"] == "~1.40 ?"
    assert result.words.count("gcloud auth application-default login") == 1


def no_credentials(at: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TPU_EMULATOR_HOST")
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(at.folder / "gcloud"))
    monkeypatch.setenv("NO_GCE_CHECK", "true")


def test_luck_is_the_last_outcome_the_grants_of_late_and_the_usual_wait(cli: Open) -> None:
    at = cli(timings={"neighbour": 0})  # ages are told to the second
    for days, ending, waited in ((20, "granted", 9999), (3, "granted", 60), (2, "granted", 120), (1, "granted", 600)):
        tried(at, B, "spot", ending, ago=days * DAY, waited=waited)
    tried(at, B, "spot", "refused", ago=2 * HOUR, kind="stockout")
    tried(at, B, "spot", "released", ago=HOUR)  # our own doing says nothing of the place
    tried(at, B, "spot", "granted", ago=60, type="v6e-8")  # nor does another size
    tried(at, C, "spot", "stuck", ago=5 * DAY, waited=2400)
    found = rows(at.run("zones", at.write()).out)
    assert found[B, "spot"] == "1.40 no limit stockout 2h ago 3 of 4 2m 0s"
    assert found[C, "spot"] == "1.78 no limit stuck 5d ago 0 of 1"
    luck = pairs(at, "gemma.yaml")[B, "spot"]["luck"]
    assert luck["counts"] == {"granted": 3, "refused": 1, "released": 1}
    assert (luck["last"], luck["last_kind"], luck["last_age"]) == ("refused", "stockout", 2 * HOUR)


def test_of_places_at_one_price_what_was_granted_of_late_comes_first(cli: Open) -> None:
    at = cli()
    tried(at, "us-central1-c", "spot", "granted", ago=DAY)
    found = pairs(at, at.write(ANYWHERE))
    price = found["us-central1-c", "spot"]["price"]["usd_per_chip_hour"]
    alike = [key for key, p in found.items() if key[1] == "spot" and p["price"]["usd_per_chip_hour"] == price]
    assert len(alike) > 1
    assert alike[0] == ("us-central1-c", "spot")


def test_a_log_that_cannot_be_read_hides_no_gate(cli: Open) -> None:
    at = cli()
    (at.folder / ".tpudeploy" / "zones-emulated.jsonl").mkdir(parents=True)
    result = at.run("zones", at.write())
    assert result.code == 0, result.all
    assert "zones-emulated.jsonl cannot be read" in result.words
    assert rows(result.out)[A, "spot"] == "1.40 no limit"


def test_the_order_of_models_in_a_profile_is_a_preference(cli: Open) -> None:
    at = cli()
    profile = at.write(ANYWHERE)
    by_place = {place: pair["price"]["usd_per_chip_hour"] for place, pair in pairs(at, profile).items()}
    models = [model for (_, model), usd in by_place.items() if usd is not None]
    assert models == sorted(models)  # flex-start, though spot is cheaper somewhere
    free = [model.rstrip("?") for _, model in rows(at.run("zones").out)]
    assert free != sorted(free)


def test_a_reservation_is_asked_where_it_is(cli: Open) -> None:
    at = cli()
    reservation = f"projects/my-project/locations/{B}/reservations/r"
    profile = at.write(
        PROFILE.partition("placement:")[0] + f"placement: {{provisioning: [reserved], reservation: {reservation}}}\n"
    )
    assert list(pairs(at, profile)) == [(B, "reserved")]


def test_json_says_all_of_it(cli: Open) -> None:
    at = cli()
    tree = json.loads(at.run("zones", "-json", "-type", "v6e-4").out)
    assert (tree["format"], tree["emulated"]) == ("tpudeploy.zones/1", True)
    (table,) = tree["tables"]
    assert (table["type"], table["chips"], table["project"]) == ("v6e-4", 4, "emulated")
    assert set(table["readings"]) == {"hardware", "model", "quota", "price", "luck"}
    assert table["readings"]["price"]["age"] < 60  # just asked; the reply takes its time
    assert len(table["pairs"]) == 18 * 3
    assert {p["standing"] for p in table["pairs"]} == {"open", "closed"}
    assert all(set(p) >= {"hardware", "model", "quota", "price", "luck"} for p in table["pairs"])


@pytest.mark.parametrize(("columns", "last"), [(50, "$/chip-h"), (75, "last"), (100, "median wait")])
def test_a_narrow_terminal_gets_fewer_columns_and_no_broken_lines(cli: Open, columns: int, last: str) -> None:
    at = cli(trouble=[{"fault": "unavailable", "method": "cloudbilling.*"}])
    tried(at, B, "spot", "granted", ago=7200, waited=250)
    environment = {**at.emulator.environment, "COLUMNS": str(columns), "NO_COLOR": "1"}
    with person("zones", folder=at.folder, environment=environment) as somebody:
        assert somebody.stays_to_the_end() == 0
    shown = somebody.read.splitlines()
    assert max(map(len, shown)) <= columns
    (head,) = (line for line in shown if "$/chip-h" in line)
    assert head.endswith(f"  {last}")


def test_it_only_reads(cli: Open) -> None:
    at = cli()
    at.run("zones", at.write())
    assert {r.method for r in at.emulator.requests} == {"GET"}
    assert not (at.folder / ".tpudeploy" / "state").exists()


def test_a_type_that_no_zone_lists_is_said_to_be_so(cli: Open) -> None:
    at = cli(offers=dict.fromkeys(generation("v6e").zones, ()))
    assert "no known zone offers it" in at.run("zones").out


# Compute Engine, which lists machine types and has a quota of its own.
AUTO = INSTANCE.replace("gce-instance", "auto")
QUEUE, MACHINE = "queued-resource", "gce-instance"


def table_of(at: CommandLine, *words: str) -> tuple[dict[tuple[str, str], Any], Mapping[str, Any]]:
    """Return what --json shows of each zone and API, and the readings by API."""
    result = at.run("zones", "-json", *words)
    assert result.code == 0, result.all
    (table,) = json.loads(result.out)["tables"]
    return {(p["zone"], p["backend"]): p for p in table["pairs"]}, table["readings_by_api"]


def test_each_api_has_a_quota_of_its_own(cli: Open) -> None:
    quota = [
        {"class": "preemptible", "region": "us-east5", "limit": 0},
        {"class": "preemptible", "region": "us-east5", "limit": 4, "api": "compute"},
        {"class": "preemptible", "region": "europe-west4", "limit": 0, "api": "compute"},
        {"class": "on-demand", "region": "europe-west4", "limit": 0, "api": "compute"},
    ]
    at = cli(quota=quota, page_most=2)  # the quotas of chips are on later pages
    assert at.run("apply", "-auto-approve", at.write(INSTANCE)).code == 0
    by_api, _ = table_of(at, at.write(AUTO), "-type", "v6e-4")
    assert by_api[A, QUEUE]["quota"]["fill"] == "none"
    used = {"fill": "short", "zone_limit": -1, "zone_used": 1, "region_limit": 4, "region_used": 1}
    assert by_api[A, MACHINE]["quota"] == used
    assert by_api[B, MACHINE]["quota"] == {**used, "zone_used": 0}
    assert (by_api[C, QUEUE]["quota"]["fill"], by_api[C, MACHINE]["quota"]["fill"]) == ("enough", "none")
    assert next(iter(by_api)) == (C, QUEUE)
    assert "3 of 4" in at.run("zones", at.write(INSTANCE), "-type", "v6e-4").out
    diagnosis = at.run("doctor", at.write(AUTO)).words
    assert "1 of 3 pairs have 1 chip of quota left at the TPU API." in diagnosis
    assert "2 of 3 pairs have 1 chip of quota left at Compute Engine." in diagnosis


# A scenario, and why the quota of spot instances is then not known.
UNKNOWN_QUOTAS: tuple[tuple[Mapping[str, Any], str], ...] = (
    (
        {"compute_engine": {"quota_metrics": {"preemptible": "preemptible_ct6e", "on-demand": ""}}},
        "Service Usage lists no quota of v6e at Compute Engine by a name that is known.",
    ),
    # The quota of on-demand machines may stand in for one of 0.
    ({"quota": [{"class": "preemptible", "region": "*", "limit": 0, "api": "compute"}]}, ""),
    ({"trouble": [{"fault": "iam-denied", "method": "serviceusage.*"}]}, "roles/serviceusage.serviceUsageViewer"),
    ({"project": {"apis_off": ["compute.googleapis.com"]}}, "compute.googleapis.com is not enabled"),
)


@pytest.mark.parametrize("row", UNKNOWN_QUOTAS, ids=["another spelling", "a limit of 0", "no permission", "API off"])
def test_a_quota_of_instances_that_is_not_known_is_never_shown_as_0(
    cli: Open, row: tuple[Mapping[str, Any], str]
) -> None:
    scenario, reason = row
    at = cli(**scenario)
    by_api, _ = table_of(at, at.write(INSTANCE))
    assert by_api[A, MACHINE]["quota"]["region_limit"] is None
    assert {pair["quota"]["fill"] for pair in by_api.values()} == {"unknown"}
    assert {pair["standing"] for pair in by_api.values()} == {"open"}
    assert reason in at.run("zones", "gemma.yaml").words
    assert reason in at.run("doctor", "gemma.yaml").words


def test_an_api_that_does_not_answer_leaves_the_quota_of_the_other_as_it_is(cli: Open) -> None:
    at = cli(
        project={"apis_off": ["compute.googleapis.com"]},
        quota=[{"class": "preemptible", "region": "us-east5", "limit": 7}],
    )
    by_api, readings = table_of(at, at.write(AUTO))
    assert by_api[A, QUEUE]["quota"]["region_limit"] == 7
    assert by_api[A, MACHINE]["quota"]["fill"] == "unknown"
    assert {api: own["quota"]["source"] for api, own in readings.items()} == {QUEUE: "live", MACHINE: "none"}
    assert {api: own["hardware"]["source"] for api, own in readings.items()} == {QUEUE: "live", MACHINE: "table"}
    text = at.run("zones", "gemma.yaml").words
    assert "chips left of the smaller limit (the TPU API); not known (Compute Engine)" in text


def test_a_zone_without_the_machine_is_closed_at_compute_engine_alone(cli: Open) -> None:
    at = cli(compute_engine={"machines": {A: ["ct6e-standard-4t"]}})
    by_api, _ = table_of(at, at.write(AUTO))
    assert (by_api[A, QUEUE]["standing"], by_api[A, MACHINE]["closed_by"]) == ("open", "hardware")
    assert by_api[B, MACHINE]["hardware"] == {**by_api[B, MACHINE]["hardware"], "yes": True, "source": "live"}
    assert f"no v6e-1 at Compute Engine: {A}" in at.run("zones", "gemma.yaml").out
    assert "3 of 3 zones list v6e-1." in at.run("doctor", "gemma.yaml").words
    larger, _ = table_of(at, "gemma.yaml", "-type", "v6e-4")
    assert larger[A, MACHINE]["standing"] == "open"


def test_machine_types_are_kept_for_a_day_and_a_silent_zone_is_asked_again(cli: Open) -> None:
    at = cli(trouble=[{"fault": "unreachable", "method": "compute.machineTypes.*", "zones": A, "until": 600}])
    profile = at.write(INSTANCE)
    first, _ = table_of(at, profile)
    assert (first[A, MACHINE]["hardware"]["source"], first[B, MACHINE]["hardware"]["source"]) == ("table", "live")
    at.clock.sleep(HOUR)
    again, _ = table_of(at, profile)
    asked = reads(at, "/aggregated/machineTypes")
    assert again[A, MACHINE]["hardware"]["source"] == "live"
    at.clock.sleep(HOUR)
    assert "machine types, read 1h ago" in at.run("zones", profile).out
    assert reads(at, "/aggregated/machineTypes") == asked


V5E = PROFILE.replace("v6e-1", "v5litepod-1").replace("us-east5-a, us-east5-b, europe-west4-a", "us-west4-a")


@pytest.mark.parametrize("pool", ["serving", "training"])
def test_the_quota_of_v5e_is_read_from_the_pool_that_limits_it(cli: Open, pool: str) -> None:
    at = cli(quota=[{"class": "preemptible", "zone": "*", "limit": 4}], project={"v5e_quota": pool})
    at.write(V5E)
    (pair,) = json.loads(at.run("zones", "-json", "gemma.yaml").out)["tables"][0]["pairs"]
    # With a pool for serving that has nothing, it is not known which of the two Google charges.
    assert pair["quota"]["zone_limit"] == (4 if pool == "serving" else None)


@pytest.mark.parametrize(
    ("slice_type", "generation", "offering"),
    [
        ("v5litepod-1", "v5e", "us-west4-a"),
        ("v5litepod-1", "v5e", "us-south1-a"),
        ("v5p-8", "v5p", "us-east5-a"),
        ("v5p-8", "v5p", "europe-west4-b"),
    ],
)
def test_flex_start_is_found_wherever_google_offers_it(
    cli: Open, slice_type: str, generation: str, offering: str
) -> None:
    at = cli(nodes="simulated", project={"flex_start_zones": {generation: [offering]}})
    profile = PROFILE.replace("v6e-1", slice_type).replace("[us-east5-a, us-east5-b, europe-west4-a]", "any")
    profile = profile.replace("[spot]", "[flex-start]") + "  max_run_duration: 4h\n"
    applied = at.run("apply", "-auto-approve", at.write(profile))
    assert applied.code == 0, applied.all
    assert [slice_["zone"] for record in at.state()["records"] for slice_ in record["attempts"]] == [offering]
    assert at.run("destroy", "-auto-approve", "gemma.yaml").code == 0


def test_flex_start_that_no_zone_offers_ends_with_what_to_change(cli: Open) -> None:
    at = cli(nodes="simulated", project={"flex_start_zones": {"v5e": []}})
    profile = PROFILE.replace("v6e-1", "v5litepod-1").replace("[us-east5-a, us-east5-b, europe-west4-a]", "any")
    profile = profile.replace("[spot]", "[flex-start]") + "  max_run_duration: 4h\n"
    applied = at.run("apply", "-auto-approve", at.write(profile))
    assert applied.code == 1, applied.all
    assert "another model in placement.provisioning" in applied.words
    assert not at.slices


def test_v5e_without_quota_in_either_pool_has_none(cli: Open) -> None:
    at = cli(quota=[{"class": "preemptible", "zone": "*", "limit": 0}])
    at.write(V5E)
    (pair,) = json.loads(at.run("zones", "-json", "gemma.yaml").out)["tables"][0]["pairs"]
    assert pair["quota"]["zone_limit"] == 0
