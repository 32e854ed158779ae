"""`explain`: every code and every refusal has its page, and a text of Google's is told for what it is."""

from __future__ import annotations

import re

import pytest
from goldens import assert_golden

from tpudeploy.adapters.google.refusals import UNKNOWN, VERDICTS
from tpudeploy.adapters.google.refusals.row import RefusalRow
from tpudeploy.cli.main import main
from tpudeploy.operations.explanations import explanations, groups

Capture = pytest.CaptureFixture[str]
DOUBLE = "Quota limit 'A,B' has been exceeded. Limit: 0,64 in region us-central1,zone us-central1-a."


def _screen(capsys: Capture, *words: str) -> str:
    assert main(["explain", *words]) == 0
    output = capsys.readouterr()
    assert not output.err
    return output.out


def test_pages_read_well(capsys: Capture) -> None:
    assert_golden("screens/explain-refusal", _screen(capsys, "stockout"))
    assert_golden("screens/explain-error", _screen(capsys, "TPU5002"))
    assert_golden("screens/explain-text", _screen(capsys, DOUBLE))
    assert_golden("screens/explain-unknown-text", _screen(capsys, "quantum flux\nin chip 3"))


@pytest.mark.parametrize("row", [*VERDICTS, UNKNOWN], ids=lambda row: row.kind)
def test_a_refusals_page_says_its_words_where_it_surfaces_and_what_clears_it(capsys: Capture, row: RefusalRow) -> None:
    answer = _screen(capsys, row.kind)
    assert answer.startswith(f"{row.kind}  {row.what}\n")
    for text in row.examples:
        assert text in answer
    assert re.findall(r"^  (L\d)  ", answer, re.MULTILINE) == list(row.layers)
    assert row.hint in answer
    assert ("is not published" in answer) is not row.is_recorded


@pytest.mark.parametrize("row", VERDICTS, ids=lambda row: row.kind)
def test_a_pasted_text_is_told_for_what_it_is_and_shown_as_it_was_given(capsys: Capture, row: RefusalRow) -> None:
    for text in (text for text in row.examples if " " in text and row.only is None):
        answer = _screen(capsys, f"  {text}\n")
        assert answer.startswith(f"{row.kind}  {row.what}\n")
        assert f"Google said\n  {text}\n" in answer


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('{"error": {"code": 429, "message": "no such words", "status": "RESOURCE_EXHAUSTED"}}', "exhausted"),
        ('<HttpError 400 when requesting https://tpu.googleapis.com/v2 returned "no such words">', "invalid"),
        ("code: 8\nmessage: no such words", "exhausted"),
        ("403 Permission 'tpu.nodes.get' denied on resource '//tpu.googleapis.com/projects/p'", "permission"),
        ("no such words", "unknown"),
        ("code: 99999", "unknown"),
    ],
)
def test_what_is_pasted_around_a_text_tells_its_code(capsys: Capture, text: str, kind: str) -> None:
    assert _screen(capsys, text).startswith(f"{kind}  ")


@pytest.mark.parametrize(
    ("text", "deed"),
    [
        (DOUBLE, "does not try again in the region under a model with this quota for 1d 0h"),
        (DOUBLE.replace("0,64", "64,0"), "does not try again in the zone under a model with this quota for 1d 0h"),
        ("Insufficient capacity", "does not try again in the zone under this provisioning model for 3m 0s"),
        ("invalid_grant: Bad Request", "tpudeploy stops"),
        ("a \x1b[31mred\x1b[0m text", "does not try again in the zone under this provisioning model for 30s"),
    ],
)
def test_it_says_what_is_done_where_and_for_how_long(capsys: Capture, text: str, deed: str) -> None:
    answer = _screen(capsys, text)
    assert deed in answer
    assert "\x1b" not in answer


def test_the_list_names_everything_once_by_the_first_line_of_its_page(capsys: Capture) -> None:
    answer = _screen(capsys)
    for name, texts in groups().items():
        assert f"{name}\n" in answer
        for code, text in texts.items():
            (line,) = re.findall(rf"^  {code}  .*", answer, re.MULTILINE)
            assert line.split(maxsplit=1)[1] == text.splitlines()[0]
    assert sum(len(texts) for texts in groups().values()) == len(explanations())


@pytest.mark.parametrize("code", ["TPU7001", "TPU7002", "TPU7003", "provisioning-stuck"])
def test_what_is_no_refusal_of_googles_is_explained_too(capsys: Capture, code: str) -> None:
    assert len(_screen(capsys, code).splitlines()) > 2


def test_a_programs_unknown_exception_is_not_said_to_be_googles(capsys: Capture) -> None:
    text = "ValueError: Too large swap space. 32.00 GiB out of the 35.00 GiB total CPU memory is allocated."
    assert main(["explain", text]) == 0
    page = capsys.readouterr().out
    assert page.startswith("unknown  An unknown error of a program, not of Google Cloud\n")
    assert text in page
    assert "Google said" not in page


@pytest.mark.parametrize(
    ("line", "code", "advice"),
    [
        (
            "RuntimeError: Engine core initialization failed. See root cause above.",
            "server-died",
            "logs -explain -file",
        ),
        ("WARNING [tpu.py:9] Unable to poll the TPU GCE Metadata. Got 404", "harmless", "the metadata server answers"),
        (
            "which implies that the global size of its dimension 0 should be divisible by 8, but it is equal to 12",
            "sharding-uneven",
            "tensor_parallel_size to one of 1, 2, 4,",
        ),
        (
            "AttributeError: 'Qwen2Config' object has no attribute 'text_config'",
            "known-fault",
            "serving.env.MODEL_IMPL_TYPE: vllm",
        ),
    ],
)
def test_a_pasted_line_of_a_log_is_told_for_what_it_is(capsys: Capture, line: str, code: str, advice: str) -> None:
    page = " ".join(_screen(capsys, line).split())
    assert page.startswith(f"{code} ")
    assert advice in page


def test_a_word_that_is_no_code_gets_the_nearest_or_the_way_to_all_of_them(capsys: Capture) -> None:
    assert main(["explain", "Stokout"]) == 1
    assert "Did you mean `stockout`?" in capsys.readouterr().err
    assert main(["explain", "zzz"]) == 1
    assert "Run `tpudeploy explain` for all of them." in capsys.readouterr().err
