"""What others send as JSON is a tree that can be written again, or one ValueError, whatever it is."""

from __future__ import annotations

import json

import pytest

from tpudeploy.domain.strict_json import MOST_DEPTH, parse


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "nothing",
        "[" * 200_000,
        '{"a":' * 100_000,
        "[" * (MOST_DEPTH + 1) + "]" * (MOST_DEPTH + 1),
        '{"a": NaN}',
        "[Infinity]",
        "-Infinity",
        "1e400",
        "-1e999",
        "9" * 10_000,
        '"\\ud800"',
        '{"\\udfff": 1}',
        '["\\ud800x\\udc00"]',
        b"\xff\xfe[1]",
        b'{"a": "\xc3("}',
    ],
    ids=lambda text: repr(text[:16]),
)
def test_what_is_no_json_is_one_error(text: str | bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  a caller catches no other, and the texts are Python's
        parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "[1, 2.5, -1e300, null, true]",
        '"\\ud83d\\ude00 \\u202e"',
        "[" * MOST_DEPTH + "]" * MOST_DEPTH,
        '{"é": "\\u0000"}',
    ],
)
def test_json_is_read_and_can_be_written_again(text: str) -> None:
    tree = parse(text.encode())
    assert tree == json.loads(text)
    assert json.dumps(tree, ensure_ascii=False).encode()
