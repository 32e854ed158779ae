"""What a profile extends, its overlays and `--set` are laid over each other, and every value remembers its place."""

from __future__ import annotations

import pytest
from config.sources import SMALL, load, place, problems

from tpudeploy.domain.errors import ProfileNotFound

_BASE = """\
model: {id: google/gemma-4-E2B-it}
tpu: {type: v6e-4}
serving:
  image: vllm/vllm-tpu:v0.32.0
  max_model_len: 4096
  args: {seed: 1, hf_overrides: {a: 1, b: 2}}
placement: {zones: [us-east5-a, us-east5-b], labels: {team: search}}
"""
_TOP = "version: 1\nname: demo\nextends: base.yaml\n"


def test_maps_merge_lists_and_scalars_replace_and_null_deletes() -> None:
    top = (
        _TOP
        + "serving: {max_model_len: null, args: {seed: 2, hf_overrides: {b: null}}}\nplacement: {zones: [us-east5-c]}\n"
    )
    spec = load(top, others={"base.yaml": _BASE})
    assert spec.serving.image == "vllm/vllm-tpu:v0.32.0"
    assert "max_model_len" not in spec.serving.model_fields_set
    assert spec.serving.args == {"seed": 2, "hf_overrides": {"a": 1}}
    assert spec.placement.zones == ("us-east5-c",)
    assert spec.placement.labels == {"team": "search"}


def test_a_null_that_deletes_nothing_is_the_flags_own_null() -> None:
    top = _TOP + "serving: {args: {hf_overrides: {c: null}, seed: null}}\n"
    spec = load(top, others={"base.yaml": _BASE})
    assert spec.serving.args == {"hf_overrides": {"a": 1, "b": 2, "c": None}}


def test_what_was_deleted_twice_is_gone() -> None:
    null = "serving: {args: {hf_overrides: {b: null}}}\n"
    spec = load(_TOP + null, others={"base.yaml": _BASE, "o.yaml": null}, overlays=["o.yaml"])
    assert spec.serving.args["hf_overrides"] == {"a": 1}


def test_later_bases_overlays_and_settings_win_in_this_order() -> None:
    def layer(n: int) -> str:
        return f"placement: {{labels: {{a: l{n}{f', b: l{n}' if n > 1 else ''}{f', c: l{n}' if n > 2 else ''}}}}}\n"

    spec = load(
        SMALL + "extends: [one.yaml, two.yaml]\n",
        others={"one.yaml": layer(3), "two.yaml": layer(2), "o1.yaml": layer(1), "o2.yaml": "replicas: 2\n"},
        overlays=["o1.yaml", "o2.yaml"],
        sets=["replicas=3", "replicas=4"],
    )
    assert spec.placement.labels == {"a": "l1", "b": "l2", "c": "l3"}
    assert spec.replicas == 4


def test_every_written_leaf_remembers_the_layer_it_came_from() -> None:
    origins = load(
        _TOP,
        others={"base.yaml": _BASE, "o.yaml": "serving:\n  args: {seed: 7}\n"},
        overlays=["o.yaml"],
        sets=["placement.zones=[us-east5-c]"],
    ).origins
    assert str(origins["name"]) == "p.yaml:2:7"
    assert str(origins["serving.max_model_len"]) == "base.yaml:5:18"
    assert str(origins["serving.args.seed"]) == "o.yaml:2:16"
    assert str(origins["placement.zones"]) == "--set:1:17"
    assert str(origins["placement.zones.0"]) == "--set:1:18"
    assert origins["placement.zones.0"].text == "placement.zones=[us-east5-c]"
    assert "placement.zones.1" not in origins
    assert "extends" not in origins


def test_a_bad_value_from_an_overlay_cites_the_overlay() -> None:
    (diagnostic,) = problems(SMALL, others={"prod.yaml": "tpu:\n  type: v6e-5\n"}, overlays=["prod.yaml"])
    assert str(diagnostic.location) == "prod.yaml:2:9"


def test_a_bad_value_from_an_argument_cites_the_argument() -> None:
    (diagnostic,) = problems(SMALL, sets=["replicas=1", "tpu.type=v6e-5"])
    assert str(diagnostic.location) == "--set:2:10"
    assert diagnostic.location is not None
    assert diagnostic.location.text == "tpu.type=v6e-5"


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        ("replicas", "TPU1105 1:1+8"),
        ("=3", "TPU1105 1:1+1"),
        ("a..b=3", "TPU1105 1:1+4"),
        ("extends=base.yaml", "TPU1105 1:1+7"),
        ("health.prompt=[", "TPU1017 1:15+1"),
        ("replica=3", "TPU1201 1:1+7"),
        ("health.prompt=a\0b", "TPU1013 1:16+1"),
        ("health.prompt=a\udcffb", "TPU1013 1:16+1"),
    ],
)
def test_a_malformed_argument_is_one_problem_at_its_place(argument: str, expected: str) -> None:
    (diagnostic,) = problems(SMALL, sets=[argument])
    assert place(diagnostic) == expected
    assert diagnostic.location is not None
    assert diagnostic.location.file == "--set"


def test_an_argument_without_a_value_leaves_the_key_to_its_default() -> None:
    assert load(SMALL + "replicas: 2\n", sets=["replicas="]).replicas == 1


def test_a_null_over_a_required_key_is_missing_where_the_null_stands() -> None:
    (diagnostic,) = problems(SMALL, others={"o.yaml": "tpu:\n  type: ~\n"}, overlays=["o.yaml"])
    assert diagnostic.code == "TPU1202"
    assert str(diagnostic.location) == "o.yaml:2:3"


def test_extends_is_relative_to_the_file_it_stands_in() -> None:
    others = {
        "shared/a.yaml": "extends: ../b.yaml\n",
        "b.yaml": "extends: shared/c.yaml\n",
        "shared/c.yaml": "replicas: 5\n",
    }
    assert load(SMALL + "extends: shared/a.yaml\n", others=others).replicas == 5


def _chain(length: int) -> dict[str, str]:
    return {
        f"{n}.yaml": (f"extends: {n + 1}.yaml\n" if n < length else "") + f"placement: {{labels: {{l{n}: x}}}}\n"
        for n in range(1, length + 1)
    }


def test_five_levels_of_extends_are_followed_and_a_sixth_is_refused() -> None:
    assert len(load(SMALL + "extends: 1.yaml\n", others=_chain(5)).placement.labels) == 5
    (diagnostic,) = problems(SMALL + "extends: 1.yaml\n", others=_chain(6))
    assert place(diagnostic) == "TPU1103 1:10+6"
    assert diagnostic.location is not None
    assert diagnostic.location.file == "5.yaml"


def test_many_files_that_extend_many_are_refused_before_they_are_all_read() -> None:
    fan = "extends: [" + ", ".join(["n.yaml"] * 10) + "]\n"
    others = {f"{n}.yaml": fan.replace("n.", f"{n + 1}.") for n in range(1, 5)} | {"5.yaml": "replicas: 1\n"}
    diagnostics = problems(SMALL + fan.replace("n.", "1."), others=others)
    assert {d.code for d in diagnostics} == {"TPU1103"}


@pytest.mark.parametrize(
    ("extends", "others", "expected", "says"),
    [
        ("nowhere.yaml", {}, "TPU1101 6:10+12", "nowhere.yaml"),
        ("p.yaml", {}, "TPU1102 6:10+6", "p.yaml -> p.yaml"),
        (
            "a.yaml",
            {"a.yaml": "extends: b.yaml\na: 1\n", "b.yaml": "extends: a.yaml\n"},
            "TPU1102 1:10+6",
            "a.yaml -> b",
        ),
        ("[a.yaml, 1]", {"a.yaml": "replicas: 1\n"}, "TPU1104 6:19+1", "path"),
        ("{a: b}", {}, "TPU1104 6:10+6", "path"),
        ("[]", {"": ""}, "", ""),
    ],
)
def test_extends_that_cannot_be_followed_is_said_where_it_stands(
    extends: str, others: dict[str, str], expected: str, says: str
) -> None:
    diagnostics = problems(SMALL + f"extends: {extends}\n", others=others)
    assert [place(d) for d in diagnostics if d.code.startswith("TPU11")] == ([expected] if expected else [])
    assert all(says in d.message for d in diagnostics if d.code.startswith("TPU11"))


@pytest.mark.parametrize("overlays", [[], ["nowhere.yaml"]])
def test_a_file_named_on_the_command_line_that_is_not_there_is_not_found(overlays: list[str]) -> None:
    with pytest.raises(ProfileNotFound, match="does not exist"):
        load(SMALL, overlays=overlays or ["gone.yaml"])
