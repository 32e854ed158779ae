"""A cloud that shows slices late: never two for one replica, and after a removal nothing with our label is left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from random import Random
from typing import Any

import pytest
from command_line import INSTANCE, PROFILE, CommandLine, Open
from promises.mortal import Fuse
from promises.trial import DEFAULTS, trial

SEEDS, SAMPLED = 60, 2
HOUR = 3600.0
GROUP = {"api": "gce-instance", "type": "v5p-16", "zones": "us-east5-a, us-central1-a, europe-west4-b"}
KINDS: Mapping[str, Mapping[str, Any]] = {
    "queued resource": {},
    "instance": {"api": "gce-instance"},
    "flex-start instance": {"api": "gce-instance", "provisioning": "flex-start"},
    "group": GROUP,
    "either API": {"api": "auto", "requests": 3},
}
TEXTS = {
    "queued resource": PROFILE,
    "instance": INSTANCE,
    "flex-start instance": INSTANCE.replace("[spot]", "[flex-start]") + "  max_run_duration: 4h\n",
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", KINDS)
def test_late_by_less_than_the_grace_a_slice_is_never_taken_for_absent(kind: str, whole: bool) -> None:
    """Every check of a trial holds at each moment: nothing is forgotten, and no more exists than is allowed."""
    for seed in range(SEEDS if whole else SAMPLED):
        random = Random(f"{kind} {seed}")
        late = {"fault": "hidden-after-operation", "seconds": random.choice([5.0, 40.0, 90.0])}
        full = {"fault": "stockout", "zone": "us-east5-a", "attempt": 1, "layer": random.choice(["L1", "L2"])}
        facts = {"shows_pending": random.random() < 0.5, "lapse_has_error": random.random() < 0.5}
        rows = [late, full][: random.randint(1, 2)]
        with trial(rows, compute_engine=facts, seed=seed) as at:
            at.wanted.update({**DEFAULTS, **KINDS[kind]})
            at.apply(Fuse(random.choice([None, 2, 4, 6, 9]), random.random() < 0.5))
            at.clock.sleep(random.choice([0.0, 30.0, 150.0]))
            at.until_done(at.apply)
            at.must_serve()
            at.destroy(Fuse(random.choice([None, 1, 2]), random.random() < 0.5))
            at.until_done(at.destroy)
            at.clock.sleep(HOUR)
            at.must_be_gone()


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", TEXTS)
def test_however_late_a_slice_appears_requests_are_bounded_and_a_removal_leaves_nothing(
    cli: Open, kind: str, whole: bool
) -> None:
    for seed in range(SEEDS if whole else SAMPLED):
        random = Random(f"{kind} {seed}")
        times = random.randint(1, 3)
        seconds = random.choice([200.0, 400.0, 900.0])
        late = {"fault": "hidden-after-operation", "seconds": seconds, "times": times}
        at = cli(nodes="simulated", seed=seed, trouble=[late])
        profile = at.write(TEXTS[kind])
        if random.random() < 0.5:
            at.left_or_killed(random.uniform(5.0, 600.0), "apply", "-auto-approve", profile)
        applied = at.run("apply", "-auto-approve", profile)
        assert applied.code == 0, (seed, applied.all)
        # One more for each that was late, and none without end.
        assert _creates(at) <= 1 + 2 * times, (seed, applied.all)
        at.clock.sleep(HOUR)
        destroyed = at.run("destroy", "-auto-approve", profile)
        assert destroyed.code == 0, (seed, destroyed.all)
        at.clock.sleep(HOUR)
        assert not at.slices, (seed, destroyed.all)


def _creates(at: CommandLine) -> int:
    posts = Counter(r.resource.rpartition("/")[2] for r in at.emulator.requests if r.method == "POST")
    return posts["queuedResources"] + posts["instances"]
