"""Whose a resource is, by its derived name and its labels."""

from __future__ import annotations

import pytest

from tpudeploy.domain.names import SliceName
from tpudeploy.domain.orphans import OwnerMark, labels_of, mark_of

NAME = "gemma-aaaaaaaa-0-1"
OF_NAME = OwnerMark(deployment="gemma", lineage="aaaaaaaa", replica=0)


def _labels(name: str) -> dict[str, str]:
    parsed = SliceName.parse(name)
    assert parsed is not None
    return dict(labels_of(parsed))


@pytest.mark.parametrize(
    ("name", "labels", "mark"),
    [
        pytest.param(NAME, {}, OF_NAME, id="its name says it"),
        pytest.param(NAME, _labels("renamed-aaaaaaaa-0-1"), OF_NAME, id="labels of the same state: its name says it"),
        pytest.param(
            NAME,
            _labels("other-bbbbbbbb-2-0"),
            OwnerMark(deployment="other", lineage="bbbbbbbb", replica=2),
            id="labels of another state: that one tracks it by now",
        ),
        pytest.param("my-tpu", _labels(NAME), OF_NAME, id="a name by hand, with labels"),
        pytest.param("my-tpu", {}, None, id="a name by hand"),
    ],
)
def test_a_resource_is_of_the_state_that_tracks_it_now(
    name: str, labels: dict[str, str], mark: OwnerMark | None
) -> None:
    assert mark_of(name, labels) == mark
