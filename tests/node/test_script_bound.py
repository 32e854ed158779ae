"""`validate` renders no script that cannot be too long; what it takes for that is never too low."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tpudeploy import Profile, Workspace, errors
from tpudeploy.adapters import assets
from tpudeploy.node import render

TEMPLATES = assets.templates()
DEPLOYMENT = Workspace.open().deployment(
    Profile.load(Path(__file__).parents[2] / "profiles" / "gemma4-e2b-v6e1.yaml"), offline=True
)
TEXT = st.text(st.one_of(st.sampled_from("'\"\\ é€😀\x01"), st.characters(exclude_categories=["Cs"])), max_size=200)


@settings(max_examples=200)
@given(word=TEXT, times=st.integers(1, 50))
def test_no_script_is_longer_than_its_bound(word: str, times: int) -> None:
    text = word * times
    container = replace(
        DEPLOYMENT.container,
        serve=(*DEPLOYMENT.container.serve, text),
        setup=(text,),
        environment={"A": text},
        volumes=((text, text),),
        image=text,
        name=text,
    )
    deployment = replace(DEPLOYMENT, container=container, health=replace(DEPLOYMENT.health, prompt=text))
    try:
        script = render.startup_script(deployment, TEMPLATES, "spec")
    except errors.ConfigError:
        with pytest.raises(errors.ConfigError):
            render.check_size(deployment, assets.templates)
    else:
        assert len(script.encode()) <= render.longest(deployment)


def test_a_shipped_profile_is_far_from_the_limit() -> None:
    assert render.longest(DEPLOYMENT) < render.MAX_SCRIPT_BYTES


def test_the_templates_stay_below_what_is_taken_for_them() -> None:
    assert sum(len(text.encode()) for text in TEMPLATES.values()) < render.TEMPLATE_BYTES


@pytest.mark.parametrize("character", ["x", "'", "é", "\x01"])
@pytest.mark.parametrize("is_prompt", [True, False])
def test_a_word_that_linux_does_not_pass_is_refused_without_rendering(character: str, *, is_prompt: bool) -> None:
    text = character * (1 + render.MAX_WORD_BYTES // len(character.encode()))
    if is_prompt:
        text = character * (1 + render.MAX_WORD_BYTES // len(json.dumps(character)[1:-1]))
        deployment = replace(DEPLOYMENT, health=replace(DEPLOYMENT.health, prompt=text))
    else:
        deployment = replace(DEPLOYMENT, container=replace(DEPLOYMENT.container, setup=(text,)))
    with pytest.raises(errors.ConfigError, match="Linux passes at most"):
        render.check_size(deployment, dict)
