"""A hunt in many places at once: what is granted first is kept, and of all the rest nothing is left."""

from __future__ import annotations

from desk import Open
from stories.hunts import A, B, hunt


def test_a_boot_that_fails_is_told_once_what_else_was_asked_for_is_gone(desk: Open) -> None:
    slow = {"fault": "timings", "zone": B, "provisioning": 900}
    at = desk(trouble=[slow, {"fault": "boot", "zone": A, "crash": "RESOURCE_EXHAUSTED"}])
    at.write(hunt(A, B))
    failed = at.run("apply", "-auto-approve", "gemma.yaml")
    assert failed.code == 1
    assert "gemma[0] does not serve: RESOURCE_EXHAUSTED" in failed.err
    assert "another slice is kept" in failed.err
    assert list(at.slices.values()) == ["ACTIVE"]  # the one that failed: nobody would watch over another
