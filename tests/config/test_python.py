"""A profile made in Python: typed for editors, checked by the rules of a file, with the path of a key for a line."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from config import sources
from config.sources import problems

import tpudeploy as td

IMAGE = "vllm/vllm-tpu:v0.32.0"
SMALL: Mapping[str, Any] = {
    "name": "demo",
    "model": {"id": "google/gemma-4-E2B-it"},
    "tpu": {"type": "v6e-4"},
    "serving": {"image": IMAGE},
}


def problems_of(make: Callable[[], object]) -> list[tuple[str, str, str, str]]:
    """The code, path, message and hint of each problem."""
    with pytest.raises(td.errors.ProfileInvalid) as caught:
        make()
    assert all(problem.location is None or not problem.location.line for problem in caught.value.diagnostics)
    return [(p.code, p.path, p.message, p.hint) for p in caught.value.diagnostics]


def test_a_profile_of_typed_sections_is_that_of_a_file() -> None:
    profile = td.Profile(
        name="demo",
        model=td.ModelSpec(id="google/gemma-4-E2B-it"),
        tpu=td.TpuSpec(type="v6e-4"),
        serving=td.ServingSpec(image=IMAGE, max_num_seqs=256, args={"enable_prefix_caching": True}),
        placement=td.PlacementSpec(zones=("us-east5-b",), provisioning=("spot",)),
    )
    text = f"""\
version: 1
name: demo
model: {{id: google/gemma-4-E2B-it}}
tpu: {{type: v6e-4}}
serving: {{image: "{IMAGE}", max_num_seqs: 256, args: {{enable_prefix_caching: true}}}}
placement: {{zones: [us-east5-b], provisioning: [spot]}}
"""
    assert profile == td.Profile.from_text(text)
    assert profile.warnings == td.Profile.from_text(text).warnings
    workspace = td.Workspace.open()
    assert workspace.size(profile).to_dict() == workspace.size(td.Profile.from_text(text)).to_dict()


def test_a_misspelled_key_is_refused_with_a_suggestion_by_the_section_and_by_type_checkers() -> None:
    message = ("TPU1201", "max_num_seq", 'Unknown key "max_num_seq"', 'did you mean "max_num_seqs"?')
    assert problems_of(lambda: td.ServingSpec(image=IMAGE, max_num_seq=3)) == [message]  # type: ignore[call-arg]  # the point


@pytest.mark.parametrize(
    ("keys", "yaml", "code"),
    [
        ({"serving": {"image": IMAGE, "max_num_seq": 3}}, "serving: {max_num_seq: 3}", "TPU1201"),
        ({"serving": {"image": IMAGE, "max_num_seqs": "many"}}, "serving: {max_num_seqs: many}", "TPU1203"),
        ({"placement": {"provisioning": ["flex-start"]}}, "placement: {provisioning: [flex-start]}", "TPU1320"),
        ({"placement": {"zones": []}}, "placement: {zones: []}", "TPU1205"),
        ({"lifecycle": {"end": "tomorrow"}}, "lifecycle: {end: tomorrow}", "TPU1206"),
        ({"tpu": {"type": "v6e-3"}}, "tpu: {type: v6e-3}", "TPU1301"),
        ({"replicas": 9, "scale": {"max": 4}}, "{replicas: 9, scale: {max: 4}}", "TPU1343"),
        ({"secrets": {"HF_TOKEN": "a b"}}, "secrets: {HF_TOKEN: a b}", "TPU1317"),
    ],
)
def test_what_a_file_may_not_say_python_may_not_say_either(keys: Mapping[str, Any], yaml: str, code: str) -> None:
    found = problems(sources.SMALL, others={"o.yaml": yaml}, overlays=["o.yaml"])
    of_file = [(p.code, p.path, p.message, p.hint) for p in found]
    assert problems_of(lambda: td.Profile(**{**SMALL, **keys})) == of_file
    assert [each for each, *_ in of_file] == [code]


def test_all_problems_are_told_at_once() -> None:
    keys = {**SMALL, "nmae": "x", "serving": {"image": IMAGE, "port": 22, "block_size": 0, "args": {"max_num_seqs": 1}}}
    codes = {code for code, *_ in problems_of(lambda: td.Profile(**keys))}
    assert codes == {"TPU1201", "TPU1205", "TPU1312", "TPU1344"}


def test_a_credential_is_refused() -> None:
    token = "hf_" + "abcdefghijklmnopqrstuvwxyzABCDEFGH"
    keys = {**SMALL, "serving": {"image": IMAGE, "env": {"GREETING": token}}}
    ((code, path, *_),) = problems_of(lambda: td.Profile(**keys))
    assert (code, path) == ("TPU1030", "serving.env.GREETING")


def test_a_profile_takes_settings_and_is_copied_and_pickled() -> None:
    profile = td.Profile(**{**SMALL, "lifecycle": {"end": "24h"}})
    longer = profile.with_settings({"serving.max_model_len": 8192})
    assert longer.serving.max_model_len == 8192
    assert longer.lifecycle == profile.lifecycle
    assert pickle.loads(pickle.dumps(profile)) == copy.deepcopy(profile) == profile


def test_an_argument_may_be_none_and_a_dollar_is_a_dollar() -> None:
    keys = {**SMALL, "serving": td.ServingSpec(image=IMAGE, port=None, env={"PRICE": "${env:HOME}"})}
    profile = td.Profile(**keys)
    assert profile.serving.env == {"PRICE": "${env:HOME}"}
    assert profile.with_settings({"replicas": 2}).serving == profile.serving
