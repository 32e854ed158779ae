"""docs/not-verified.md is the table of facts, and each row names a module that exists."""

from __future__ import annotations

from pathlib import Path

import pytest
from goldens import hold

from tpudeploy.features.rehearsal.facts import FACTS, CloudFact
from tpudeploy.features.rehearsal.view import page

ROOT = Path(__file__).parents[2]


def test_the_page_is_that_of_the_table() -> None:
    hold(ROOT / "docs" / "not-verified.md", page())


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: fact.id)
def test_a_fact_names_the_module_that_relies_on_it(fact: CloudFact) -> None:
    assert (ROOT / "tpudeploy" / fact.used_in).exists()
    assert fact.belief.endswith((".", ".)"))


def test_no_two_facts_share_an_id() -> None:
    assert len({fact.id for fact in FACTS}) == len(FACTS)
