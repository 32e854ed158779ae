"""What `--ab PATH=A,B` may say, and which flags are asked for quality."""

from __future__ import annotations

import pytest

from tpudeploy.domain.errors import UsageError
from tpudeploy.features.ab_test.arms import is_risky, parsed


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("serving.padding_gap=0,512", ("0", "512")),
        (
            "serving.args.speculative_config={method: ngram, num_speculative_tokens: 3}, null",
            ("{method: ngram, num_speculative_tokens: 3}", "null"),
        ),
        ("serving.setup=[a, b],[]", ("[a, b]", "[]")),
        ("serving.args.stop=\"a,b\",'c,d'", ('"a,b"', "'c,d'")),
        ('serving.args.x="[",]', ('"["', "]")),
    ],
)
def test_two_values_are_divided_at_the_comma_between_them(text: str, values: tuple[str, str]) -> None:
    assert parsed(text).values == values


@pytest.mark.parametrize("text", ["", "=", "=1,2", "serving.padding_gap", "serving.padding_gap=", "a=[1,2]", "a=1,2,3"])
def test_anything_else_is_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        parsed(text)
    assert "--ab serving.padding_gap=0,512" in refused.value.hint


@pytest.mark.parametrize(
    ("path", "risky"),
    [
        ("model.id", True),
        ("model.revision", True),
        ("serving.kv_cache_dtype", True),
        ("serving.args.quantization", True),
        ("serving.args.kv-sharing-fast-prefill", True),
        ("serving.padding_gap", False),
        ("serving.args.enable_prefix_caching", False),
        ("serving.model_impl", False),
    ],
)
def test_what_may_change_answers_is_asked_for_them(path: str, risky: bool) -> None:
    assert is_risky(path) is risky
