"""The lists of a project that the deployments of one run share."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any, cast

from real_time import DEADLINE

from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.orphans import Listing
from tpudeploy.emulator import VirtualClock
from tpudeploy.engine.strays import Listings
from tpudeploy.ports import World

BACKENDS = frozenset({Backend.QUEUED_RESOURCE})


def test_no_deployment_waits_for_the_list_that_another_one_is_reading() -> None:
    answers: list[Listing | None] = []

    def look() -> Listing | None:
        return lists.since(0.0, "p", (), BACKENDS, machines=False)

    def list_marked(*_: Any, **__: Any) -> Listing:
        # Google takes its time; meanwhile a second deployment of the run looks.
        answers.append(pool.submit(look).result(timeout=DEADLINE / 30))
        return Listing(project="p", resources=())

    world = SimpleNamespace(clock=VirtualClock(), cloud=SimpleNamespace(list_marked=list_marked))
    lists = Listings(cast("World", world))
    with ThreadPoolExecutor(max_workers=1) as pool:
        assert look() == Listing(project="p", resources=())
        assert answers == [None], "it is to look again soon"
        assert pool.submit(look).result(timeout=DEADLINE) == Listing(project="p", resources=())
