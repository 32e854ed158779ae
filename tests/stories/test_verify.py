"""What a profile declares is held against what its engine does, and what is not in effect is said so, with 13."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from desk import PROFILE, Desk, Open

from tpudeploy.core.attest import attest
from tpudeploy.core.bootlog import effective
from tpudeploy.domain.attestation import Attestation, Told, Verdict
from tpudeploy.loading import Profile, sized

MEASURED = PROFILE.replace("max_model_len: 16384", "max_model_len: 32768\n  max_num_batched_tokens: 4096")
LOG = Path(__file__).parents[1] / "sizing" / "data" / "boot_gemma4_e2b_v6e1.log"


@pytest.fixture
def serving(desk: Open) -> Desk:
    """A server whose boot was measured, on a machine that runs its startup script."""
    at: Desk = desk(nodes="real", boot={"boot_seconds": 60})
    assert at.run("apply", "-auto-approve", at.write(MEASURED)).code == 0
    return at


def test_a_server_as_declared_is_in_effect_by_several_witnesses(serving: Desk) -> None:
    said = serving.run("verify", "gemma.yaml")
    assert said.code == 0, said.all
    assert "max_model_len 32768 32768 (api, log) in effect" in said.words
    assert "version 0.32.0 0.32.0 (api, log) in effect" in said.words
    assert "num_blocks 18000 17996 (metrics) in effect (-0.02%)" in said.words
    assert "are in effect." in said.out


def test_what_is_declared_and_not_in_effect_comes_first_and_exits_13(serving: Desk) -> None:
    said = serving.run(
        "verify", "gemma.yaml", "--set", "serving.max_model_len=8192", "--set", "serving.kv_cache_dtype=fp8"
    )
    assert said.code == 13
    first, second = said.out.splitlines()[1:3]
    assert "NOT IN EFFECT" in first
    assert "NOT IN EFFECT" in second
    assert {"max_model_len", "kv_cache_dtype"} == {first.split()[0], second.split()[0]}
    assert "2 declared settings are not in effect." in said.out


def test_a_prediction_that_fails_is_told_in_per_cent_and_refuses_nothing(serving: Desk) -> None:
    said = serving.run("verify", "gemma.yaml", "--set", "serving.max_num_seqs=8", "--json")
    assert said.code == 0, said.all
    tree = json.loads(said.out)
    assert tree["format"] == "tpudeploy.verify/1"
    assert tree["holds"] is True
    rows = {row["name"]: row for row in tree["settings"]}
    assert rows["block_size"]["verdict"] == "off"


def test_a_server_that_says_nothing_is_told_so(desk: Open) -> None:
    at = desk(nodes="simulated", boot={"reachable": False})
    assert at.run("apply", "-auto-approve", at.write()).code == 0
    said = at.run("verify", "gemma.yaml")
    assert said.code == 0, said.all
    assert "api told nothing:" in said.words
    assert "Nothing is told of its settings" in said.out


def test_without_an_endpoint_there_is_nothing_to_verify(desk: Open) -> None:
    at = desk()
    said = at.run("verify", at.write())
    assert said.code == 1
    assert "gemma has no endpoint yet." in said.err


def _of_the_real_boot(tmp_path: Path, **changes: str) -> Attestation:
    (tmp_path / "gemma.yaml").write_text(MEASURED, encoding="utf-8")
    profile = Profile.load(tmp_path / "gemma.yaml", set=changes)
    return attest(sized(profile), Told(log=effective(LOG.read_text(encoding="utf-8"))), address="gemma[0]")


def test_a_real_boots_log_attests_eleven_settings_and_the_version_that_it_was_not(tmp_path: Path) -> None:
    of = _of_the_real_boot(tmp_path)
    verdicts = {s.name: s.verdict for s in of.settings}
    assert [s.name for s in of.broken] == ["version"]
    held = {name for name, verdict in verdicts.items() if verdict is Verdict.HOLDS}
    assert held >= {"model", "max_model_len", "tensor_parallel_size", "kv_cache_dtype", "num_blocks", "graphs"}
    assert held >= {"hbm_utilization", "block_size", "enable_prefix_caching", "speculation", "kv_cache_tokens"}


def test_a_real_boots_cache_in_bfloat16_is_no_fp8(tmp_path: Path) -> None:
    of = _of_the_real_boot(tmp_path, **{"serving.kv_cache_dtype": "fp8"})
    assert "kv_cache_dtype" in {s.name for s in of.broken}
