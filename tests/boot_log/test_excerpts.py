"""Log fixtures are cut out of whole logs of real boots: none is retyped, and none is edited."""

from __future__ import annotations

import pytest
from boot_log.excerpts import EXCERPTS, ROOT, SUMS, checksum

from tpudeploy.boot_log.read import read
from tpudeploy.emulator.machine.vllm import deaths


@pytest.mark.parametrize("name", EXCERPTS)
def test_a_fixture_is_as_it_was_cut(name: str) -> None:
    assert checksum((ROOT / name).read_bytes()) == SUMS[name]


def test_every_log_among_the_fixtures_names_its_source() -> None:
    logs = {path for top in ("tests", "tpudeploy") for path in (ROOT / top).rglob("*.log")}
    # Those of the field each have a file beside them that names it.
    field = {path for path in logs if path.with_name(f"{path.name}.md").exists()}
    assert {str(path.relative_to(ROOT)) for path in logs - field} == set(EXCERPTS)


@pytest.mark.parametrize(
    ("name", "signature"),
    [("program-allocation", "no-room-for-program"), ("quantizing-in-place", "hbm-temporaries")],
)
def test_the_stand_in_dies_as_real_engines_did(name: str, signature: str) -> None:
    for text in ("\n".join(deaths.lines(name)), deaths.message(name)):
        cause = read(text).cause
        assert cause is not None
        assert cause.signature == signature
