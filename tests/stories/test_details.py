"""What an engine runs with and what its chips hold, planned beside measured: `status --details`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import PROFILE, CommandLine, Open

from tpudeploy.boot_log.settings import effective_settings
from tpudeploy.domain.verify import Details, EngineReport
from tpudeploy.loading import Profile, sized
from tpudeploy.verify.details import details
from tpudeploy.verify.settings import verify_settings

MEASURED = PROFILE.replace("max_model_len: 16384", "max_model_len: 32768\n  max_num_batched_tokens: 4096")
LOG = Path(__file__).parents[1] / "sizing" / "data" / "boot_gemma4_e2b_v6e1.log"
GIB = 2**30


def test_a_serving_machine_shows_what_it_runs_with(cli: Open) -> None:
    at: CommandLine = cli(nodes="real", boot={"boot_seconds": 60})
    assert at.run("apply", "-auto-approve", at.write(MEASURED)).code == 0
    result = at.run("status", "-details", "gemma.yaml")
    assert result.code == 0, result.all
    assert "gemma[0] serving" in result.words, "what status says without it stays"
    assert "vLLM 0.32.0 0.32.0" in result.words
    assert "longest request 32768 32768" in result.words
    assert "KV cache in bfloat16" in result.words
    assert "weights 8.97 GiB 8.97 GiB as planned" in result.words
    assert "KV cache 19.78 GiB 19.77 GiB" in result.words
    assert "The API server holds" in result.words


def test_without_a_profile_it_says_what_is_missing(cli: Open) -> None:
    result = cli().run("status", "-details")
    assert result.code == 1
    assert "Name the profiles" in result.err


def test_what_is_not_deployed_has_no_details(cli: Open) -> None:
    at = cli()
    result = at.run("status", "-details", at.write(), "-json")
    assert result.code == 0, result.all
    assert json.loads(result.out)["details"] == []


def test_a_machine_that_does_not_serve_is_told_so(cli: Open) -> None:
    at = cli(boot={"crash": "program-allocation"})
    assert at.run("apply", "-auto-approve", at.write()).code == 1
    result = at.run("status", "-details", "gemma.yaml")
    assert result.code == 0, result.all
    assert "api reported nothing" in result.words


def _of_the_real_boot(tmp_path: Path) -> Details:
    (tmp_path / "gemma.yaml").write_text(MEASURED, encoding="utf-8")
    deployment = sized(Profile.load(tmp_path / "gemma.yaml"))
    answer = EngineReport(log=effective_settings(LOG.read_text(encoding="utf-8")))
    return details(deployment, answer, verify_settings(deployment, answer, address="gemma[0]"))


def test_the_caches_size_is_that_of_the_engines_own_blocks(tmp_path: Path) -> None:
    """A real engine took blocks of 128 tokens where 64 were planned."""
    (tmp_path / "gemma.yaml").write_text(MEASURED, encoding="utf-8")
    deployment = sized(Profile.load(tmp_path / "gemma.yaml"))
    answer = EngineReport(cache={"num_blocks": "9000", "block_size": "128"})
    (kv,) = (
        m
        for m in details(deployment, answer, verify_settings(deployment, answer, address="gemma[0]")).memory
        if m.name == "KV cache"
    )
    assert kv.planned is not None
    assert kv.measured == pytest.approx(kv.planned, rel=0.001)  # 18,000 blocks of 64


def test_a_real_boots_memory_is_within_30_mib_of_the_plan(tmp_path: Path) -> None:
    memory = {share.name: share for share in _of_the_real_boot(tmp_path).memory}
    assert {name for name, share in memory.items() if share.measured is None} == {"programs need"}
    for name in ("weights", "KV cache", "HBM", "room for programs"):
        share = memory[name]
        assert share.planned is not None
        assert share.measured is not None
        assert abs(share.measured - share.planned) < 0.03 * GIB, name


def test_a_real_boots_precision_and_graphs_are_told(tmp_path: Path) -> None:
    facts = {fact.name: fact for fact in _of_the_real_boot(tmp_path).facts}
    answer = {name: facts[name].told for name in ("weights in", "KV cache in", "computes in", "bytes of a token")}
    assert answer == {
        "weights in": "bfloat16",
        "KV cache in": "bfloat16",
        "computes in": "bfloat16",
        "bytes of a token": "18431",
    }
    assert facts["graphs"].told == "199"
