"""Flags, values and variables are those of the release that the image names."""

from __future__ import annotations

import pytest
from config.sources import MemoryReader

from tpudeploy.catalog import releases
from tpudeploy.config.parse import parse
from tpudeploy.domain.diagnostics import Diagnostic
from tpudeploy.domain.errors import ProfileInvalid

PROFILE = """\
version: 1
name: demo
model:
  id: google/gemma-4-E2B-it
tpu:
  type: v6e-1
serving:
  image: vllm/vllm-tpu:v{release}
  {section}:
    {line}
"""


def problems(release: str, line: str, section: str = "args") -> tuple[Diagnostic, ...]:
    text = PROFILE.format(release=release, line=line, section=section)
    try:
        profile = parse("p.yaml", MemoryReader({"p.yaml": text.encode()}), environment={})
    except ProfileInvalid as refusal:
        return refusal.diagnostics
    return profile.warnings


@pytest.mark.parametrize(
    ("flag", "missing", "present"),
    [
        ("enable_bf16x3_router_gemm: true", ("0.30.0", "0.31.0", "0.32.0"), ("0.29.0",)),
        ("monokernel: true", ("0.29.0", "0.30.0", "0.31.0"), ("0.32.0",)),
    ],
)
def test_a_flag_is_refused_for_the_releases_that_lack_it_alone(
    flag: str, missing: tuple[str, ...], present: tuple[str, ...]
) -> None:
    name = flag.partition(":")[0]
    for release in missing:
        (refusal,) = problems(release, flag)
        assert refusal.severity.value == "error"
        assert f'vLLM {release} has no flag "{name}"' in refusal.message
    for release in present:
        assert not any(name in each.message for each in problems(release, flag))


def test_a_flag_that_a_release_dropped_is_said_to_have_been_in_the_last_one_that_had_it() -> None:
    (refusal,) = problems("0.32.0", "enable_bf16x3_router_gemm: true")
    assert "any more; 0.29.0 had it" in refusal.message


def test_every_shipped_release_is_checked_as_an_error_and_an_unknown_one_as_a_warning() -> None:
    for release in releases.VERSIONS:
        assert problems(release, "no_such_flag: 1")[0].severity.value == "error"
    assert all(each.severity.value == "warning" for each in problems("0.28.0", "no_such_flag: 1"))


def test_a_value_is_that_of_the_release() -> None:
    line = "load_format: jax_dummy"
    assert not any("load-format" in each.message for each in problems("0.32.0", line))
    assert any("load-format" in each.message for each in problems("0.32.0", "load_format: jax_dumy"))
