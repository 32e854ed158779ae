"""Killed at any instant, or a reply lost at any, a re-run converges; destroy leaves nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest
from promises.mortal import Fuse, has_reply
from promises.trial import ROUTER_ON_VM, TWELVE, Trial, trial

HOUR = 3600.0
SAMPLES = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """`changes` are applied one after the other, each made true before the next; at the end comes destroy.

    Before each, `after` seconds pass.
    """

    changes: tuple[Mapping[str, Any], ...]
    trouble: tuple[Mapping[str, Any], ...] = ()


STORIES: Mapping[str, Story] = {
    "created, the first zone full": Story(changes=({},), trouble=({"fault": "stockout", "zone": "us-east5-a"},)),
    "the server restarted": Story(changes=({}, {"max_model_len": 8192})),
    "relabelled": Story(changes=({}, {"team": "ads"})),
    "replaced, the new one first": Story(changes=({}, {"type": "v6e-4"})),
    "replaced, the old one first": Story(changes=({"replace": "destroy-before-create"}, {"type": "v6e-4"})),
    "moved to another zone": Story(changes=({}, {"zones": "us-east5-b, europe-west4-a"})),
    "handed over to a second slice": Story(changes=({"update": "blue-green"}, {"max_model_len": 8192})),
    "handed over, and back": Story(
        changes=({"update": "blue-green"}, {"max_model_len": 8192}, {"max_model_len": 16384}),
    ),
    "renewed before its run ends": Story(
        changes=({"on_run_end": "renew", "run": "3h", "provisioning": "flex-start"}, {"after": 6000.0}),
    ),
    "fewer replicas, then more": Story(changes=({"replicas": 2}, {"replicas": 1}, {"replicas": 3})),
    "a hunt over twelve zones": Story(
        changes=({"zones": ", ".join(TWELVE), "requests": 8},),
        trouble=(
            # Two are granted in one look, and a third, which cannot be deleted before it is up, in the same.
            {"fault": "stockout", "zone": "us-east5-*"},
            {"fault": "wait-for-ever", "zone": "us-*"},
            {"fault": "timings", "zone": "southamerica-*", "provisioning": 300},
        ),
    ),
    # A chip costs $0.54 to $1.78: between two and six requests at a time, whichever places they are in.
    "a hunt that its price limits": Story(
        changes=({"zones": ", ".join(TWELVE), "requests": 12, "search_usd": "3.6"},),
        trouble=({"fault": "stockout", "attempt": "1-2"},),
    ),
    "a hunt in queues and by sweeps": Story(
        changes=({"zones": ", ".join(TWELVE[:6]), "requests": 6, "provisioning": "flex-start, spot"},),
        trouble=(
            {"fault": "stockout", "model": "SPOT", "attempt": "1-2"},
            {"fault": "timings", "model": "FLEX_START", "waiting": 500},
        ),
    ),
}


INSTANCE = {"api": "gce-instance"}
# Two hosts: a policy, a template and a group of instances.
GROUP = {**INSTANCE, "type": "v5p-16", "zones": "us-east5-a, us-central1-a, europe-west4-b"}
AUTO = {"api": "auto"}
STORIES = {
    **STORIES,
    "an instance, the first zone full": Story(
        changes=(INSTANCE,), trouble=({"fault": "stockout", "zone": "us-east5-a"},)
    ),
    "an instance's server restarted": Story(changes=(INSTANCE, {"max_model_len": 8192})),
    "an instance relabelled": Story(changes=(INSTANCE, {"team": "ads"})),
    "an instance replaced": Story(changes=(INSTANCE, {"type": "v6e-4"})),
    "an instance handed over": Story(changes=({**INSTANCE, "update": "blue-green"}, {"max_model_len": 8192})),
    "an instance that waited in a queue": Story(
        changes=({**INSTANCE, "provisioning": "flex-start"},),
        trouble=({"fault": "timings", "model": "FLEX_START", "waiting": 500},),
    ),
    "a group, the first zone full": Story(
        changes=(GROUP,),
        trouble=({"fault": "stockout", "zone": "us-east5-a", "layer": "L1"},),
    ),
    "a group's server restarted": Story(changes=(GROUP, {"max_model_len": 8192})),
    "a group's server restarted, by resets": Story(
        changes=(GROUP, {"max_model_len": 8192}), trouble=({"fault": "boot", "hears_changes": False},)
    ),
    "a group relabelled": Story(changes=(GROUP, {"team": "ads"})),
    "a group replaced by an instance": Story(changes=(GROUP, {"type": "v6e-4"})),
    "a group handed over": Story(changes=({**GROUP, "update": "blue-green"}, {"max_model_len": 8192})),
    "a group, instead of a node of the same size": Story(changes=({**GROUP, "api": "queued-resource"}, GROUP)),
    "moved to Compute Engine": Story(changes=({}, INSTANCE)),
    "moved away from Compute Engine": Story(changes=(INSTANCE, {"api": "queued-resource"})),
    "at either API, one of them full": Story(
        changes=({**AUTO, "requests": 4},), trouble=({"fault": "stockout", "method": "queuedResources.create"},)
    ),
    "at either API, in queues and by sweeps": Story(
        changes=({**AUTO, "requests": 6, "provisioning": "flex-start, spot"},),
        trouble=(
            {"fault": "stockout", "model": "SPOT", "attempt": "1-2"},
            {"fault": "timings", "model": "FLEX_START", "waiting": 500},
        ),
    ),
    "from either API to Compute Engine": Story(changes=({**AUTO, "requests": 2}, INSTANCE)),
    "a router on a VM, the first zone without one": Story(
        changes=({"router": ROUTER_ON_VM},), trouble=({"fault": "stockout", "zone": "us-east5-a", "type": "e2-small"},)
    ),
    "a router on a VM, replaced and removed": Story(
        changes=(
            {"router": ROUTER_ON_VM, "replicas": 2},
            {"router": ROUTER_ON_VM.replace("vm}", "vm, port: 9090}"), "max_model_len": 8192},
            {"router": ""},
        ),
    ),
}


# Left whole to `make exhaustive`: one life of each takes seconds.
LONG = {
    "handed over, and back",
    "renewed before its run ends",
    "fewer replicas, then more",
    "a hunt over twelve zones",
    "a group's server restarted, by resets",
    "a group handed over",
    "a group, instead of a node of the same size",
    "a router on a VM, replaced and removed",
}


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] if name in LONG else []) for name in STORIES]
)
def test_cut_at_any_effect_a_rerun_converges_and_destroy_leaves_nothing(name: str, whole: bool) -> None:
    story = STORIES[name]
    cuts = list(_cuts(story))
    for act, effect, reply_lost, later in cuts if whole else Random(name).sample(cuts, SAMPLES):
        with trial(story.trouble) as at:
            _play(at, story, {act: Fuse(effect, reply_lost)}, later)


def _cuts(story: Story) -> Iterator[tuple[int, int, bool, float]]:
    """(act, effect, whether it is done and only its reply is lost, seconds until the re-run)."""
    for act, effect, what in _effects(story):
        yield from ((act, effect, False, later) for later in (0.0, HOUR))
        if has_reply(what):
            yield act, effect, True, 0.0


def _effects(story: Story) -> Iterator[tuple[int, int, str]]:
    """(act, number, what it does): every effect of the story when nothing cuts it."""
    fuses = {act: Fuse() for act in range(len(story.changes) + 1)}
    with trial(story.trouble) as at:
        _play(at, story, fuses, 0.0)
    for act, fuse in fuses.items():
        yield from ((act, effect, what) for effect, what in enumerate(fuse.passed))


def _play(at: Trial, story: Story, fuses: Mapping[int, Fuse], later: float) -> None:
    """Each act once with its fuse, where it has one, and then until it says that it is done."""
    for number, change in enumerate(story.changes):
        at.clock.sleep(change.get("after", 0.0))
        at.wanted.update(change)
        if number in fuses:
            at.apply(fuses[number])
            at.clock.sleep(later)
        at.until_done(at.apply)
        at.must_serve()
    if len(story.changes) in fuses:
        at.destroy(fuses[len(story.changes)])
        at.clock.sleep(later)
    at.until_done(at.destroy)
    at.must_be_gone()


@pytest.mark.parametrize("cut", ["update", "restart"])
def test_a_change_in_place_that_was_only_written_down_ends_no_server_that_clients_hold(cut: str) -> None:
    deaf = {"boot_seconds": 60, "hears_changes": False}
    with trial(boot=deaf) as at:
        whole = Fuse()
        _changed(at, whole)
    with trial(boot=deaf) as at:
        _changed(at, Fuse(whole.passed.index(cut)))
        at.wanted["update"] = "blue-green"
        at.until_done(at.apply)
        at.must_serve()
        assert not [r for r in at.emulator.requests if r.resource.endswith(":reset")]


def _changed(at: Trial, fuse: Fuse) -> None:
    at.until_done(at.apply)
    at.wanted["max_model_len"] = 8192
    at.apply(fuse)
