"""A hand-over under load: whoever finds the deployment by its endpoint file loses no request, not even a long one."""

from __future__ import annotations

import json

import pytest
from clients import Client, Reader, load, lost_nothing
from command_line import PROFILE, CommandLine, Open

from tpudeploy.domain.patience import Patience

pytestmark = pytest.mark.polls_every_second("clients ask whenever time passes: they are many")

HOUR, MINUTE = 3600.0, 60.0
HELD = Patience().held
BLUE = PROFILE + "lifecycle: {update: blue-green}\n"
GREEN = BLUE.replace("16384", "8192")
RENEWED = PROFILE.replace("[spot]", "[flex-start]\n  max_run_duration: 6h") + "lifecycle: {on_run_end: renew}\n"


def _deployed(at: CommandLine, text: str) -> str:
    profile = at.write(text)
    applied = at.run("apply", "-auto-approve", profile)
    assert applied.code == 0, applied.all
    return profile


def test_a_serving_change_loses_no_request_of_two_thousand_and_cuts_no_answer_off(cli: Open) -> None:
    at = cli(boot={"boot_seconds": 60, "token_seconds": 1.0})
    profile = _deployed(at, BLUE)
    (old,) = at.slices
    clients = [Client(at=at, each=14), Client(at=at, each=14, holds=HELD)]
    long = Reader(at, tokens=600)
    at.write(GREEN)
    began = at.clock.now()
    with load(at, *clients):
        applied = at.run("apply", "-auto-approve", profile)
        assert applied.code == 0, applied.all
        at.clock.sleep(MINUTE)
    assert old not in at.slices
    lost_nothing(clients, at_least=2000)
    assert all(len(client.requests_by_url) == 2 for client in clients), "both slices served"
    long.join()
    assert (long.tokens, long.error) == (600, "")
    assert at.clock.now() - began > 600, "the old slice waited for its answer to end"


def test_an_answer_that_never_ends_is_not_waited_for_for_ever(cli: Open) -> None:
    at = cli(boot={"token_seconds": 60.0})
    profile = _deployed(at, BLUE)
    (old,) = at.slices
    endless = Reader(at, tokens=6000)
    at.write(GREEN)
    applied = at.run("apply", "-auto-approve", profile)
    assert applied.code == 0, applied.all
    assert old not in at.slices
    assert "its replacement serves; 1 requests exceeded the drain limit" in applied.err
    endless.join()
    assert endless.error


def test_who_holds_an_endpoint_for_longer_than_is_allowed_notices(cli: Open) -> None:
    at = cli()
    profile = _deployed(at, BLUE)
    stale = Client(at=at, each=1, holds=HOUR)
    at.write(GREEN)
    with load(at, stale):
        stale.on_advance()
        assert at.run("apply", "-auto-approve", profile).code == 0
        at.clock.sleep(0.0)
    assert stale.failed


def test_a_changed_slice_type_loses_no_request_either(cli: Open) -> None:
    at = cli()
    profile = _deployed(at, PROFILE)
    clients = [Client(at=at, each=5), Client(at=at, each=5, holds=HELD)]
    at.write(PROFILE.replace("v6e-1", "v6e-4"))
    with load(at, *clients):
        assert at.run("apply", "-auto-approve", profile).code == 0
        at.clock.sleep(MINUTE)
    lost_nothing(clients, at_least=400)


# When the run is killed, and what there is by then: which slice the endpoint names, and what the old and the new one do.
MOMENTS = {
    "before it asks": (8.0, 1, ["ACTIVE"]),
    "in the queue": (30.0, 1, ["ACTIVE", "WAITING_FOR_RESOURCES"]),
    "while the new one boots": (400.0, 1, ["ACTIVE", "ACTIVE"]),
    "while clients move": (630.0, 2, ["ACTIVE", "ACTIVE"]),
    "while the old one leaves": (720.0, 2, ["DELETING", "ACTIVE"]),
}


@pytest.mark.parametrize(("killed_after", "generation", "states"), MOMENTS.values(), ids=MOMENTS)
def test_a_run_that_is_killed_in_the_middle_loses_no_request(
    cli: Open, killed_after: float, generation: int, states: list[str]
) -> None:
    at = cli()
    profile = _deployed(at, BLUE)
    clients = [Client(at=at, each=2), Client(at=at, each=2, holds=HELD)]
    at.write(GREEN)
    with load(at, *clients):
        at.killed(killed_after, "apply", "-auto-approve", profile)
        endpoint = json.loads((at.folder / "endpoints" / "gemma.json").read_text(encoding="utf-8"))
        assert endpoint["generation"] == generation
        assert list(at.slices.values()) == states
        at.clock.sleep(10 * MINUTE)
        assert at.run("apply", "-auto-approve", profile).code == 0
        at.clock.sleep(MINUTE)
    lost_nothing(clients, at_least=100)
    assert len(at.slices) == 1


def test_real_nodes_are_handed_over_alike(cli: Open) -> None:
    at = cli(nodes="real")
    profile = _deployed(at, BLUE)
    (old,) = at.slices
    client = Client(at=at, each=1)
    at.write(GREEN)
    with load(at, client):
        applied = at.run("apply", "-auto-approve", profile)
        assert applied.code == 0, applied.all
        at.clock.sleep(MINUTE)
    assert old not in at.slices
    lost_nothing([client], at_least=40)
