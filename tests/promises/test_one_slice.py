"""Never two slices for one replica: whatever became of the reply, and however late the slice shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from promises.mortal import Fuse
from promises.trial import trial

REPLIES: Mapping[str, tuple[Mapping[str, Any], ...]] = {
    "arrived": (),
    "lost": ({"fault": "lost-reply", "times": 1},),
    "lost, the connection closed": ({"fault": "lost-reply", "times": 1, "close": True},),
    "a 409": ({"fault": "already-exists", "times": 1},),
    "late": ({"fault": "slow", "method": "queuedResources.create", "seconds": 50, "times": 1},),
}
KILLED_BEFORE_THE_OPERATION_IS_SAVED = 3


@pytest.mark.parametrize("seconds", [0, 20, 70, 110])
@pytest.mark.parametrize("reply", REPLIES)
@pytest.mark.parametrize("effect", [None, KILLED_BEFORE_THE_OPERATION_IS_SAVED])
def test_a_slice_that_shows_late_is_waited_for_and_not_asked_for_again(
    reply: str, seconds: int, effect: int | None
) -> None:
    hidden = {"fault": "hidden", "seconds": seconds, "attempt": 1}
    with trial([hidden, *REPLIES[reply]]) as at:
        at.apply(Fuse(effect))
        at.until_done(at.apply)
        creates = [r.path for r in at.emulator.requests if r.method == "POST" and "queuedResourceId" in r.path]
        assert len(creates) == 1
        at.must_serve()
        at.until_done(at.destroy)
        at.must_be_gone()
