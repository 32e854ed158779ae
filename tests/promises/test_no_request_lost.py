"""No request is lost in a hand-over, whenever the run that sees to it is killed, and whenever the next one comes."""

from __future__ import annotations

from random import Random

import pytest
from clients import Client, load, lost_nothing
from command_line import PROFILE, Open

from tpudeploy.domain.patience import Patience

MINUTE, HOUR = 60.0, 3600.0
HELD = Patience().held
HANDED_OVER = 280  # seconds that a hand-over takes where nothing is in its way
SAMPLES = 2
BLUE = PROFILE + "lifecycle: {update: blue-green}\n"
RENEWED = PROFILE.replace("[spot]", "[flex-start]\n  max_run_duration: 6h") + "lifecycle: {on_run_end: renew}\n"
# How it is deployed, how long it runs, and what is then applied.
STORIES = {
    "a serving change": (BLUE, 0.0, BLUE.replace("16384", "8192")),
    "a run that ends": (RENEWED, 5 * HOUR, RENEWED),
}
# Whether the run is killed (when, and how long until the next) a second time too.
CUTS = [(first, later, second) for first in range(4, HANDED_OVER, 12) for later in (1.0, 700.0) for second in (0, 40)]


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", STORIES)
def test_killed_at_any_moment_a_hand_over_loses_no_request(cli: Open, name: str, whole: bool) -> None:
    before, runs, after = STORIES[name]
    for number, (first, later, second) in enumerate(CUTS if whole else Random(name).sample(CUTS, SAMPLES)):
        at = cli()
        deployment = f"gemma{number}"  # the folder is the same for all
        profile = at.write(before.replace("name: gemma", f"name: {deployment}"))
        applied = at.run("apply", "-auto-approve", profile)
        assert applied.code == 0, applied.all
        at.clock.sleep(runs)
        at.write(after.replace("name: gemma", f"name: {deployment}"))
        clients = [Client(at=at, each=2, name=deployment), Client(at=at, each=2, holds=HELD, name=deployment)]
        with load(at, *clients):
            at.clock.sleep(0.0)
            for seconds in (first, second):
                if seconds:
                    at.left_or_killed(seconds, "apply", "-auto-approve", profile)
                    at.clock.sleep(later)
            result = at.run("apply", "-auto-approve", profile)
            assert result.code == 0, result.all
            at.clock.sleep(MINUTE)
        lost_nothing(clients, at_least=50)
        assert len(at.slices) == 1, (first, later, second)
