"""The profiles of a fleet share what they write alike, and nothing else: each means what it says, whatever was read before."""

from __future__ import annotations

import json
import re

import pytest
from config.sources import SMALL

from tpudeploy import Profile, Workspace, errors
from tpudeploy.adapters import assets
from tpudeploy.domain.deployment import first_place
from tpudeploy.sizing.checks import check

ARGS = 'serving: {{image: "vllm/vllm-tpu:v0.32.0", args: {{hf_overrides: {{a: {0}}}}}}}'
# Each row has texts that Python takes for equal, and that a server or a plan does not: 1 and true, 2h and 120m.
ALIKE: dict[str, list[tuple[str, object]]] = {
    "serving.args.hf_overrides": [
        (ARGS.format(value), {"a": json.loads(value)}) for value in ("1", "true", "1.0", '"1"')
    ],
    "placement.valid_until": [(f"placement: {{valid_until: {time}}}", time) for time in ("2h", "120m", "7200s")],
    "serving.shm_size": [
        (f'serving: {{image: "vllm/vllm-tpu:v0.32.0", shm_size: {size}}}', size) for size in ("1gib", "1024mib")
    ],
    "tpu.boot_disk_size": [(f"tpu: {{type: v6e-4, boot_disk_size: {n}GiB}}", f"{n}GiB") for n in (200, 201)],
    "serving.tensor_parallel_size": [("tpu: {type: v6e-4}", 4), ("tpu: {type: v6e-8}", 8), ("tpu: {type: v6e-1}", 1)],
}


@pytest.mark.parametrize("path", ALIKE)
def test_each_profile_has_its_own_value_after_others_that_are_written_alike(path: str) -> None:
    texts = ALIKE[path] * 2
    values = [Workspace.open().deployment(profile(line), offline=True).attributes[path] for line, _ in texts]
    assert json.dumps(values) == json.dumps([value for _, value in texts])


@pytest.mark.parametrize("names", [["A", "B"], ["B", "A"]])
def test_variables_are_passed_in_the_order_of_their_own_profile(names: list[str]) -> None:
    env = ", ".join(f'{name}: "1"' for name in names)
    deployment = Workspace.open().deployment(
        profile(f'serving: {{image: "vllm/vllm-tpu:v0.32.0", env: {{{env}}}}}'), offline=True
    )
    assert list(deployment.container.environment) == names


def test_a_model_that_is_known_is_sized_after_one_that_is_not() -> None:
    texts = ["model: {id: example/unknown}", "model: {id: google/gemma-4-E2B-it}"] * 2
    budgets = [Workspace.open().deployment(profile(line), offline=True).budget for line in texts]
    assert [budget.model is not None for budget in budgets] == [False, True, False, True]


def test_a_section_is_refused_each_time_with_the_line_of_its_own_file() -> None:
    lines = []
    for comment in ("", "# a comment\n", "# two\n# comments\n"):
        with pytest.raises(errors.ProfileInvalid) as refusal:
            Profile.from_text(comment + SMALL.replace("v6e-4", "v6e-5"))
        lines += [each.location.line for each in refusal.value.diagnostics if each.location is not None]
    assert lines == [4, 5, 6]


@pytest.mark.parametrize("shipped", [*sorted(assets.profiles()), ""])
def test_a_deployment_has_its_own_name_wherever_one_written_alike_has_the_other(shipped: str) -> None:
    text = assets.profiles()[shipped] if shipped else SMALL + "router: {kind: smg, host: vm}\nreplicas: 2\n"
    nameless = re.sub(r"(?m)^name:.*$", "name: {0}", text.replace("{", "{{").replace("}", "}}"))
    for name in ("z-first", "y-second", "x-first"):
        deployment = Workspace.open().deployment(Profile.from_text(nameless.format(name)), offline=True)
        everything = repr((deployment, str(deployment.startup_script), deployment.router_machine))
        assert name in everything
        assert {"z-first", "y-second", "x-first"} & set(re.findall("[xyz]-(?:first|second)", everything)) == {name}


@pytest.mark.parametrize("shipped", [*sorted(assets.profiles()), ""])
def test_a_plan_says_of_each_attribute_where_it_or_its_first_entry_is_written(shipped: str) -> None:
    odd = 'serving: {image: "vllm/vllm-tpu:v0.32.0", args: {hf_overrides: {b: [1], a: {}}}}'
    lines = [line for line in SMALL.splitlines() if not line.startswith("serving")]
    text = assets.profiles()[shipped] if shipped else "\n".join([*lines, odd, "placement: {labels: {team: a}}\n"])
    deployment = Workspace.open().deployment(Profile.from_text(text), offline=True)
    paths = {*deployment.attributes, *deployment.origins, "serving", "serving.args", "placement.labels", "no.such", ""}
    everything = dict(deployment.origins)
    assert {path: deployment.origin(path) for path in paths} == {path: first_place(everything, path) for path in paths}


def test_each_of_two_profiles_written_alike_is_warned_of_with_its_own_name_and_line() -> None:
    too_large = SMALL.replace("gemma-4-E2B-it", "gemma-4-26B-A4B-it").replace("v6e-4", "v6e-1")
    texts = [too_large.replace("demo", name) for name in ("one", "two")]
    texts.append("# a comment\n" + texts[0])
    found = [check([Workspace.open().deployment(Profile.from_text(text), offline=True)]) for text in texts]
    problems = [{each.code: each for each in diagnostics} for diagnostics in found]
    assert [each["TPU2001"].message.split()[0] for each in problems] == ["one", "two", "one"]
    lines = [each["TPU2101"].location for each in problems]
    assert [at and at.line for at in lines] == [4, 4, 5]


@pytest.mark.parametrize("name", ["Demo", "9", "''", "[demo]", "~"])
def test_a_name_that_is_refused_is_refused_after_a_sound_profile_written_alike(name: str) -> None:
    Profile.from_text(SMALL)
    with pytest.raises(errors.ProfileInvalid) as refusal:
        Profile.from_text(SMALL.replace("demo", name))
    assert [each.path for each in refusal.value.diagnostics] == ["name"]


def profile(line: str) -> Profile:
    """Return SMALL with this section in place of its own."""
    key = line.partition(":")[0]
    kept = [own for own in SMALL.splitlines() if own.partition(":")[0] != key]
    return Profile.from_text("\n".join([*kept, line, ""]))
