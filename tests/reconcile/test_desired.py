"""The attributes that a slice should have: those of the profile, but what the user, or what it runs, exempts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from reconcile.cases import INSTANCES, TPU_API, A, candidate, deployment, serving

from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.deployment import AUTO
from tpudeploy.domain.diagnostics import Location
from tpudeploy.pins import COMMIT, DIGEST
from tpudeploy.reconcile.decide import fits
from tpudeploy.reconcile.desired import covers, desired_attributes

IMAGE, ID, FLAG, LABEL, TYPE = "serving.image", "model.id", "serving.args.turbo", "placement.labels.team", "tpu.type"
NAME = "serving.container_name"
SLICE = {TYPE: "v6e-8", IMAGE: "vllm:nightly", ID: "gemma", FLAG: "on", LABEL: "search"}


@pytest.mark.parametrize(
    ("ignored", "profile", "slice_", "kept_keys"),
    [
        pytest.param((), {FLAG: "off", LABEL: "ads"}, {}, (), id="nothing is ignored"),
        pytest.param((LABEL,), {LABEL: "ads"}, {}, (LABEL,), id="the user ignores a label"),
        pytest.param((LABEL,), {LABEL: "ads", TYPE: "v6e-4"}, {}, (LABEL,), id="and changes something else"),
        pytest.param(("placement.labels",), {LABEL: "ads"}, {}, (LABEL,), id="the user ignores all labels"),
        pytest.param(("placement.lab",), {LABEL: "ads"}, {}, (), id="a part of a key is no key"),
        pytest.param((FLAG,), {FLAG: "off"}, {}, (FLAG,), id="the user ignores a flag of the server"),
        pytest.param(
            (FLAG,), {FLAG: "off", ID: "llama"}, {}, (), id="a restart that comes anyway takes an ignored flag along"
        ),
        pytest.param(
            (FLAG, LABEL),
            {FLAG: "off", LABEL: "ads", ID: "llama"},
            {},
            (LABEL,),
            id="but not an ignored label, which no restart concerns",
        ),
        pytest.param((FLAG,), {FLAG: "off", LABEL: "ads"}, {}, (FLAG,), id="a new label causes no restart"),
        pytest.param((), {DIGEST: "sha256:1"}, {}, (DIGEST,), id="a pin that the slice was not given"),
        pytest.param((), {}, {DIGEST: "sha256:1"}, (DIGEST,), id="a pin that is not known any more"),
        pytest.param((), {DIGEST: "sha256:2"}, {DIGEST: "sha256:1"}, (), id="a pin that moved is a change"),
        pytest.param((), {DIGEST: "sha256:1", COMMIT: "c"}, {COMMIT: "b"}, (), id="a restart takes a new pin along"),
        pytest.param((), {DIGEST: "sha256:1", TYPE: "v6e-4"}, {}, (), id="another slice takes a new pin along"),
        pytest.param(
            (LABEL,),
            {DIGEST: "sha256:1", TYPE: "v6e-4", LABEL: "ads"},
            {},
            (LABEL,),
            id="another slice leaves an ignored label alone",
        ),
        pytest.param(
            (), {DIGEST: "sha256:1", LABEL: "ads"}, {}, (DIGEST,), id="a new label does not take a new pin along"
        ),
        pytest.param(
            (IMAGE,), {DIGEST: "sha256:2"}, {DIGEST: "sha256:1"}, (DIGEST,), id="the pin of an ignored image is ignored"
        ),
        pytest.param((), {NAME: "new"}, {NAME: "old"}, (NAME,), id="the container is named after the deployment"),
        pytest.param(
            (), {NAME: "new", FLAG: "off"}, {NAME: "old"}, (), id="a restart gives the container its new name"
        ),
        pytest.param((), {NAME: "same"}, {NAME: "same"}, (), id="the container has its name"),
        pytest.param((), {NAME: "new"}, {}, (), id="an earlier version gave the container no name"),
    ],
)
def test_what_a_slice_keeps_of_its_own(
    ignored: tuple[str, ...], profile: Mapping[str, Any], slice_: Mapping[str, Any], kept_keys: tuple[str, ...]
) -> None:
    before, after = {**SLICE, **slice_}, {**SLICE, **profile}
    target = deployment(attributes=after, lifecycle={"ignore_changes": ignored})
    expected = {path: value for path, value in after.items() if path not in kept_keys}
    expected |= {path: before[path] for path in kept_keys if path in before}
    assert desired_attributes(target, serving(A, spec=before)) == expected


def test_a_name_of_the_container_that_the_profile_writes_is_a_change() -> None:
    before, after = {**SLICE, NAME: "old"}, {**SLICE, NAME: "new"}
    target = deployment(attributes=after, origins={NAME: Location(file="profile.yaml", line=3, column=1)})
    assert desired_attributes(target, serving(A, spec=before)) == after


def test_an_attribute_that_the_profile_no_longer_has_is_gone() -> None:
    assert FLAG not in desired_attributes(
        deployment(attributes={path: value for path, value in SLICE.items() if path != FLAG}), serving(A, spec=SLICE)
    )


@pytest.mark.parametrize(
    ("ignored", "path", "expected"),
    [
        pytest.param((LABEL,), LABEL, True, id="the key itself"),
        pytest.param(("placement",), LABEL, True, id="a key above it"),
        pytest.param((LABEL,), "placement.labels", False, id="a key below it"),
        pytest.param((ID, "placement"), LABEL, True, id="one of several"),
        pytest.param(("model",), COMMIT, True, id="the pin of a key"),
        pytest.param(("model.revision",), COMMIT, True, id="the pin of the revision"),
        pytest.param((IMAGE,), COMMIT, False, id="the pin of another key"),
        pytest.param((), LABEL, False, id="nothing is ignored"),
    ],
)
def test_what_an_ignored_key_covers(ignored: tuple[str, ...], path: str, expected: bool) -> None:
    assert covers(ignored, path) is expected


RUNTIMES = {TPU_API: "v2-alpha-tpuv6e", INSTANCES: "ubuntu"}
BACKEND, RUNTIME = "placement.backend", "tpu.runtime_version"


@pytest.mark.parametrize(
    ("runtimes", "setting", "backend", "expected"),
    [
        pytest.param(RUNTIMES, AUTO, TPU_API, TPU_API, id="a slice of either API stays where it is"),
        pytest.param(RUNTIMES, AUTO, INSTANCES, INSTANCES, id="whichever that is"),
        pytest.param({TPU_API: "v2-alpha-tpuv6e"}, AUTO, INSTANCES, TPU_API, id="unless its API serves no such slice"),
        pytest.param(
            {TPU_API: "v2-alpha-tpuv6e"}, TPU_API, INSTANCES, TPU_API, id="or the profile names the other one"
        ),
        pytest.param({INSTANCES: "ubuntu"}, INSTANCES, TPU_API, INSTANCES, id="in either direction"),
    ],
)
def test_the_api_of_a_slice_is_the_one_that_granted_it_where_the_profile_allows_it(
    runtimes: Mapping[Backend, str], setting: str, backend: Backend, expected: Backend
) -> None:
    fixed = {} if setting == AUTO else {RUNTIME: runtimes[expected]}
    target = deployment(
        [candidate(A, backend=each) for each in runtimes],
        runtimes=runtimes,
        attributes={**SLICE, BACKEND: setting, **fixed},
    )
    one = serving(A, spec={**SLICE, BACKEND: backend, RUNTIME: RUNTIMES[backend]})
    desired = desired_attributes(target, one)
    assert (desired[BACKEND], desired[RUNTIME]) == (expected, RUNTIMES[expected])
    assert fits(target, one) is (backend is expected)
