"""Google's refusals: each text that was ever published, and each that the emulator says, means what its row says."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from refusal_cases import SELF_NAMED

from tpudeploy.adapters.google.codes import Code
from tpudeploy.adapters.google.refusals import UNKNOWN, VERDICTS
from tpudeploy.adapters.google.refusals.row import RefusalRow
from tpudeploy.adapters.google.verdicts import classify, hint_for
from tpudeploy.domain.slices import RefusalScope, Remedy
from tpudeploy.emulator import texts

FACTS = {
    "zone": "us-east5-a",
    "region": "us-east5",
    "type": "v6e-1",
    "model": "SPOT",
    "quota": "TPUV6EPreemptiblePerProjectPerRegionForTPUAPI",
    "limit": 16,
    "project": "p",
    "permission": "tpu.nodes.create",
    "parent": "projects/p/locations/us-east5-a",
    "runtime": "v2-alpha-tpuv6e",
}

# The emulator's text → the row it must fall to.
KINDS: Mapping[str, str] = {
    "stockout": "stockout",
    "insufficient-capacity": "stockout",
    "reserved-stockout": "stockout-reserved",
    "internal-error": "internal",
    "quota-zero": "quota-none",
    "quota-exhausted": "quota",
    "ip-quota": "address-quota",
    "rate-limit": "rate-limit",
    "zone-unsupported": "zone-unsupported",
    "type-unsupported": "type-unsupported",
    "model-unsupported": "model-unsupported",
    "no-queueing": "no-queueing",
    "too-big": "too-big",
    "queue-closed": "queue-closed",
    "reservation-missing": "reservation-missing",
    "iam-denied": "permission",
    "api-off": "api-off",
    "location-denied": "location-denied",
    "no-subnetwork": "policy",
    "runtime-unknown": "runtime",
    "expired": "lapsed",
    "reservation-queue": "reservation-queue",
    "org-policy": "policy",
    "unauthenticated": "credentials",
    "spot-mismatch": "model-mismatch",
    "not-found": "not-found",
    "already-exists": "exists",
    "unavailable": "unavailable",
    "backend-error": "internal",
    "delete-refused": "delete-refused",
    "state-refused": "wrong-state",
    "subnetwork-missing": "policy",
    **{kind: kind for kind in SELF_NAMED},
}
NEVER_HERE = {"delete-needs-force"}  # we always force


# Codes that say enough by themselves.
TELLING = {Code.INVALID_ARGUMENT, Code.DEADLINE_EXCEEDED, Code.PERMISSION_DENIED}
TELLING |= {Code.RESOURCE_EXHAUSTED, Code.UNAUTHENTICATED}


# Codes that say enough by themselves.
TELLING = {Code.INVALID_ARGUMENT, Code.DEADLINE_EXCEEDED, Code.PERMISSION_DENIED}
TELLING |= {Code.RESOURCE_EXHAUSTED, Code.UNAUTHENTICATED}


@pytest.mark.parametrize("row", VERDICTS, ids=lambda row: row.kind)
def test_every_example_falls_to_its_own_row(row: RefusalRow) -> None:
    for text in row.examples:
        refusal = classify(text, Code.UNKNOWN, row.only)
        assert (refusal.kind, refusal.remedy, refusal.holds_seconds) == (row.kind, row.remedy, row.holds)
        assert refusal.scope is row.scope or row.scope is None


@pytest.mark.parametrize("row", [*VERDICTS, UNKNOWN], ids=lambda row: row.kind)
def test_every_row_says_where_it_surfaces_and_what_a_person_can_do(row: RefusalRow) -> None:
    assert row.hint
    assert row.layers == tuple(sorted(set(row.layers)))
    assert row.examples or row.pattern is None
    assert row.pattern is not None or row.by_code or row is UNKNOWN
    # What stops stops everywhere; what drops a place holds it for longer than anybody waits.
    assert (row.remedy is Remedy.STOP) <= (row.scope is RefusalScope.PROJECT)
    assert (row.remedy is Remedy.DROP_ZONE) <= (row.holds > 7200)


@pytest.mark.parametrize("cause", KINDS)
def test_what_the_emulator_says_in_googles_words_is_understood(cause: str) -> None:
    output = texts.status(cause, FACTS)
    assert classify(output.message, output.code).kind == KINDS[cause]


def test_every_text_of_the_emulator_is_understood_or_known_never_to_arrive() -> None:
    assert KINDS.keys() | NEVER_HERE == texts.CAUSES.keys()


def test_each_kind_has_one_row_and_each_code_says_one_thing() -> None:
    kinds = [row.kind for row in (*VERDICTS, UNKNOWN)]
    assert len(kinds) == len(set(kinds))
    codes = [row.code for row in VERDICTS if row.by_code]
    assert len(codes) == len(set(codes))
    assert set(codes) == TELLING


def test_the_random_error_id_is_no_part_of_the_message() -> None:
    assert (
        classify("Insufficient capacity [EID: 0xdeadbeef]", Code.RESOURCE_EXHAUSTED).message == "Insufficient capacity"
    )


@pytest.mark.parametrize(
    ("text", "kind", "scope", "limit"),
    [
        ("Quota limit 'Q' has been exceeded. Limit: 0 in region us-east5.", "quota-none", RefusalScope.REGION_QUOTA, 0),
        ("Quota limit 'Q' has been exceeded. Limit: 0 in zone us-east5-a.", "quota-none", RefusalScope.ZONE_QUOTA, 0),
        ("Quota limit 'Q' has been exceeded. Limit: 64 in zone us-east5-a.", "quota", RefusalScope.ZONE_QUOTA, 64),
        ("Quota 'Q' exhausted. Limit 16 in region us-west4", "quota", RefusalScope.REGION_QUOTA, 16),
        ("Quota 'Q' exhausted. Limit 16 in zone us-west4-a", "quota", RefusalScope.ZONE_QUOTA, 16),
        ("Quota 'Q' exhausted. Limit 0 in zone us-west4-a", "quota-none", RefusalScope.ZONE_QUOTA, 0),
        # both places at once: the one that is 0 decides, else the wider
        ("Quota limit 'A,B' has been exceeded. Limit: 0,0 in {both}.", "quota-none", RefusalScope.REGION_QUOTA, 0),
        ("Quota limit 'A,B' has been exceeded. Limit: 64,0 in {both}.", "quota-none", RefusalScope.ZONE_QUOTA, 0),
        ("Quota limit 'A,B' has been exceeded. Limit: 0,64 in {both}.", "quota-none", RefusalScope.REGION_QUOTA, 0),
        ("Quota limit 'A,B' has been exceeded. Limit: 64,32 in {both}.", "quota", RefusalScope.REGION_QUOTA, 64),
        # words that name no place, or other numbers than places: the widest that they may speak of
        (
            "Quota limit 'TPUV6EPerProjectPerRegionForTPUAPI' has been exceeded.",
            "quota",
            RefusalScope.REGION_QUOTA,
            None,
        ),
        ("Quota limit 'TPUV6EPerProjectPerZoneForTPUAPI' has been exceeded.", "quota", RefusalScope.ZONE_QUOTA, None),
        ("Quota 'Q' exhausted. Limit 10,000 in zone us-west4-a", "quota", RefusalScope.ZONE_QUOTA, None),
    ],
)
def test_a_quota_speaks_of_its_pool_in_the_place_that_its_text_names(
    text: str, kind: str, scope: RefusalScope, limit: int | None
) -> None:
    both = "region us-central1,zone us-central1-a"
    refusal = classify(text.format(both=both), Code.RESOURCE_EXHAUSTED)
    assert (refusal.kind, refusal.scope, refusal.limit) == (kind, scope, limit)


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        (Code.RESOURCE_EXHAUSTED, Remedy.NEXT_ZONE),
        (Code.DEADLINE_EXCEEDED, Remedy.NEXT_ZONE),
        (Code.INTERNAL, Remedy.NEXT_ZONE),
        (Code.UNKNOWN, Remedy.NEXT_ZONE),
        (Code.INVALID_ARGUMENT, Remedy.STOP),
        (Code.PERMISSION_DENIED, Remedy.STOP),
        (Code.UNAUTHENTICATED, Remedy.STOP),
    ],
)
def test_a_text_that_nobody_has_seen_is_told_by_its_code_and_kept_verbatim(code: Code, remedy: Remedy) -> None:
    refusal = classify("words nobody has seen", code)
    assert refusal.remedy is remedy
    assert refusal.message == "words nobody has seen"


@pytest.mark.parametrize("code", Code)
def test_what_neither_text_nor_code_explains_is_unknown_and_held_for_half_a_minute(code: Code) -> None:
    refusal = classify("words nobody has seen", code)
    assert refusal.is_known is (code in TELLING)
    if not refusal.is_known:
        assert (refusal.kind, refusal.remedy, refusal.scope) == ("unknown", Remedy.NEXT_ZONE, RefusalScope.PAIR)
        assert refusal.holds_seconds == 30


@pytest.mark.parametrize(
    ("kind", "command"),
    [
        ("api-off", "gcloud services enable"),
        ("permission", "gcloud projects add-iam-policy-binding"),
        ("credentials", "gcloud auth application-default login"),
    ],
)
def test_what_a_person_must_mend_comes_with_the_command(kind: str, command: str) -> None:
    assert command in hint_for(kind)
