"""What a profile declares is held against what its engine does, and what is not in effect is said so, with 13."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import PROFILE, CommandLine, Open

from tpudeploy.boot_log.read import read
from tpudeploy.boot_log.settings import effective_settings
from tpudeploy.domain.budget import HbmBudget
from tpudeploy.domain.verify import EngineReport, ReplicaVerification, Verdict, VerifiedSetting
from tpudeploy.loading import Profile, sized
from tpudeploy.serialization.boot_records import format_record, parse_records
from tpudeploy.verify.calibration import record_of
from tpudeploy.verify.settings import verify_settings
from tpudeploy.views.size import boots

MEASURED = PROFILE.replace("max_model_len: 16384", "max_model_len: 32768\n  max_num_batched_tokens: 4096")
LOG = Path(__file__).parents[1] / "sizing" / "data" / "boot_gemma4_e2b_v6e1.log"


@pytest.fixture
def serving(cli: Open) -> CommandLine:
    """A server whose boot was measured, on a machine that runs its startup script."""
    at: CommandLine = cli(nodes="real", boot={"boot_seconds": 60})
    assert at.run("apply", "-auto-approve", at.write(MEASURED)).code == 0
    return at


def test_a_server_as_declared_is_in_effect_by_several_verify_sources(serving: CommandLine) -> None:
    result = serving.run("verify", "gemma.yaml")
    assert result.code == 0, result.all
    assert "max_model_len 32768 32768 (api, log) in effect" in result.words
    assert "version 0.32.0 0.32.0 (api, log) in effect" in result.words
    assert "num_blocks 18000 17996 (metrics) in effect (-0.02%)" in result.words
    assert "are in effect." in result.out


def test_what_is_declared_and_not_in_effect_comes_first_and_exits_13(serving: CommandLine) -> None:
    result = serving.run(
        "verify", "gemma.yaml", "--set", "serving.max_model_len=8192", "--set", "serving.kv_cache_dtype=fp8"
    )
    assert result.code == 13
    first, second = result.out.splitlines()[1:3]
    assert "NOT IN EFFECT" in first
    assert "NOT IN EFFECT" in second
    assert {"max_model_len", "kv_cache_dtype"} == {first.split()[0], second.split()[0]}
    assert "2 declared settings are not in effect." in result.out


def test_a_prediction_that_fails_is_told_in_per_cent_and_refuses_nothing(serving: CommandLine) -> None:
    result = serving.run("verify", "gemma.yaml", "--set", "serving.max_num_seqs=8", "--json")
    assert result.code == 0, result.all
    tree = json.loads(result.out)
    assert tree["format"] == "tpudeploy.verify/1"
    assert tree["holds"] is True
    rows = {row["name"]: row for row in tree["settings"]}
    assert rows["block_size"]["verdict"] == "off"


def test_a_server_that_says_nothing_is_told_so(cli: Open) -> None:
    at = cli(nodes="simulated", boot={"reachable": False})
    assert at.run("apply", "-auto-approve", at.write()).code == 0
    result = at.run("verify", "gemma.yaml")
    assert result.code == 1, result.all
    assert "api reported nothing:" in result.words
    assert "gemma[0] was not observed:" in result.words
    tree = json.loads(at.run("verify", "gemma.yaml", "-json").out)
    assert (tree["holds"], tree["unobserved"]) == (False, ["gemma[0]"])
    assert "No setting can be verified" in result.out


def test_without_an_endpoint_there_is_nothing_to_verify(cli: Open) -> None:
    at = cli()
    result = at.run("verify", at.write())
    assert result.code == 1
    assert "gemma has no endpoint yet." in result.err


def _of_the_real_boot(tmp_path: Path, **changes: str | float) -> ReplicaVerification:
    (tmp_path / "gemma.yaml").write_text(MEASURED, encoding="utf-8")
    profile = Profile.load(tmp_path / "gemma.yaml", set=changes)
    return verify_settings(
        sized(profile), EngineReport(log=effective_settings(LOG.read_text(encoding="utf-8"))), address="gemma[0]"
    )


def test_a_real_boots_log_attests_eleven_settings_and_the_version_that_it_was_not(tmp_path: Path) -> None:
    verifications = _of_the_real_boot(tmp_path)
    verdicts = {s.name: s.verdict for s in verifications.settings}
    assert [s.name for s in verifications.broken] == ["version"]
    in_effect = {name for name, verdict in verdicts.items() if verdict is Verdict.HOLDS}
    assert in_effect >= {"model", "max_model_len", "tensor_parallel_size", "kv_cache_dtype", "num_blocks", "graphs"}
    assert in_effect >= {"hbm_utilization", "block_size", "enable_prefix_caching", "speculation", "kv_cache_tokens"}


def test_a_real_boots_cache_in_bfloat16_is_no_fp8(tmp_path: Path) -> None:
    verifications = _of_the_real_boot(tmp_path, **{"serving.kv_cache_dtype": "fp8"})
    assert "kv_cache_dtype" in {s.name for s in verifications.broken}


E4B = PROFILE.replace("gemma-4-E2B-it", "gemma-4-E4B-it").replace("16384", "16384\n  kv_cache_dtype: fp8")


def _by_bytes(tmp_path: Path, text: str, bytes_per_token: int) -> VerifiedSetting:
    """An engine whose flags say fp8, with a cache of that many bytes a token."""
    (tmp_path / "gemma.yaml").write_text(text, encoding="utf-8")
    log = {"kv_cache_bytes": str(bytes_per_token * 100_000), "kv_cache_tokens": "100000"}
    answer = EngineReport(cache={"kv_cache_dtype": "fp8"}, log=log)
    verification = verify_settings(sized(Profile.load(tmp_path / "gemma.yaml")), answer, address="gemma[0]")
    return next(s for s in verification.settings if s.name == "kv_cache_dtype")


def test_a_cache_whose_bytes_are_not_those_of_its_type_is_not_in_effect_whatever_its_flags_say(tmp_path: Path) -> None:
    verification = _by_bytes(tmp_path, E4B, 57_344)  # bytes a token of E4B: 57,344 in bfloat16, 28,672 in fp8
    assert verification.verdict is Verdict.DIFFERS
    assert (verification.value, dict(verification.effective)) == ("bfloat16", {"bytes": "bfloat16", "metrics": "fp8"})


def test_bytes_that_are_those_of_the_type_are_a_witness_of_their_own(tmp_path: Path) -> None:
    verification = _by_bytes(tmp_path, E4B, 28_672)
    assert (verification.verdict, set(verification.effective)) == (Verdict.HOLDS, {"bytes", "metrics"})


def test_where_packing_makes_all_types_equal_the_bytes_tell_nothing(tmp_path: Path) -> None:
    verification = _by_bytes(tmp_path, E4B.replace("E4B", "E2B"), 18_432)
    assert (verification.verdict, set(verification.effective)) == (Verdict.HOLDS, {"metrics"})


def test_a_log_tells_how_long_was_compiled_and_what_the_cache_gave(tmp_path: Path) -> None:
    output = {s.name: s.value for s in _of_the_real_boot(tmp_path).settings}
    assert output["compile_seconds"] == "393.98"
    assert output["kv_bytes_per_token"] == "18431"
    hit, miss = ("Persistent compilation cache hit for 'jit_f'", "PERSISTENT COMPILATION CACHE MISS for 'jit_g'")
    assert effective_settings(f"{hit}\n{miss}\n{hit}")["cache_hits"] == "2 of 3"
    assert "cache_hits" not in effective_settings("nothing of the kind")


def test_a_log_that_still_grows_counts_no_graphs() -> None:
    whole = LOG.read_text(encoding="utf-8")
    assert effective_settings(whole)["graphs"] == "199"
    assert "graphs" not in effective_settings(whole.partition("Precompile input_embeddings_merger")[0])


def _of_four_ranks(tmp_path: Path, text: str) -> ReplicaVerification:
    """As four independent engines of a dense model write it: each is told that it is alone."""
    profile = PROFILE.replace("type: v6e-1", "type: v6e-4").replace(
        "max_model_len", "data_parallel_size: 4\n  max_model_len"
    )
    (tmp_path / "gemma.yaml").write_text(profile, encoding="utf-8")
    return verify_settings(
        sized(Profile.load(tmp_path / "gemma.yaml")), EngineReport(log=effective_settings(text)), address="gemma[0]"
    )


def test_ranks_that_are_each_told_to_be_alone_are_counted_and_no_alarm(tmp_path: Path) -> None:
    config = "Initializing a V1 LLM engine (v0.32.0) with config: model='google/gemma-4-E2B-it', tensor_parallel_size=1, data_parallel_size=1,"
    lines = [
        f"(EngineCore_DP{rank} pid={rank}) INFO 08-10 17:54:54 [core.py:121] {output}"
        for rank in range(4)
        for output in (
            config,
            "Precompile worker0 sample --> {'num_reqs': 8}",
            "TPU KV cache size: 1,000 tokens, Maximum",
        )
    ]
    verification = _of_four_ranks(tmp_path, "\n".join([*lines, "INFO:     Application startup complete."]))
    output = {s.name: s for s in verification.settings}
    assert verification.broken == ()
    assert (output["data_parallel_size"].value, output["data_parallel_size"].verdict) == ("4", Verdict.HOLDS)
    assert output["graphs"].value == "1", "each rank compiles its own"
    assert output["kv_cache_tokens"].value == "", "one rank's is not the deployment's"
    cut = _of_four_ranks(tmp_path, "\n".join(lines[:3]))
    assert cut.broken == (), "a log that still grows shows some of them"
    assert cut.value("kv_cache_tokens") == "", "nor is it while only one of them is in the log"


def test_another_share_of_the_memory_is_not_in_effect(tmp_path: Path) -> None:
    assert "hbm_utilization" not in {setting.name for setting in _of_the_real_boot(tmp_path).broken}
    lower = _of_the_real_boot(tmp_path, **{"serving.hbm_utilization": 0.85})
    assert "hbm_utilization" in {setting.name for setting in lower.broken}


@pytest.mark.parametrize(
    ("name", "share", "verdict"),
    [
        ("num_blocks", 1.004, Verdict.HOLDS),
        ("num_blocks", 1.006, Verdict.OFF),
        ("num_blocks", 0.994, Verdict.OFF),
        ("kv_bytes_per_token", 1.009, Verdict.HOLDS),
        ("kv_bytes_per_token", 1.011, Verdict.OFF),
    ],
)
def test_a_prediction_holds_within_its_tolerance(tmp_path: Path, name: str, share: float, verdict: Verdict) -> None:
    (tmp_path / "gemma.yaml").write_text(MEASURED, encoding="utf-8")
    deployment = sized(Profile.load(tmp_path / "gemma.yaml"))
    budget = deployment.budget
    assert isinstance(budget, HbmBudget)
    predicted = {"num_blocks": budget.num_blocks, "kv_bytes_per_token": budget.kv_bytes_per_token_per_chip}[name]
    verification = verify_settings(deployment, EngineReport(cache={name: str(predicted * share)}), address="gemma[0]")
    setting = next(setting for setting in verification.settings if setting.name == name)
    assert (setting.verdict, setting.is_written) == (verdict, False)


def test_a_record_of_a_boot_has_weights_room_for_programs_and_phases_beside_what_was_predicted() -> None:
    text = LOG.read_text(encoding="utf-8")
    deployment = sized(Profile.from_text(MEASURED))
    report = EngineReport(log=effective_settings(text), phases={"weights": 12.5})
    verification = verify_settings(deployment, report, address="gemma[0]", slice_name="slice")
    record = record_of(deployment, verification, report, at=7.0)
    assert record is not None
    for name in ("weights_bytes", "kv_cache_bytes", "program_room_bytes", "hbm_bytes"):
        assert abs(record.deviation(name) or 0) < (0.05 if name == "program_room_bytes" else 0.005), name
    assert "program_bytes" in record.predicted
    assert record.phases == {"weights": 12.5}
    assert record.measured["weights_seconds"] == 12.5
    assert "process_seconds" not in record.measured
    assert parse_records(format_record(record)) == (record,)


def test_a_boot_says_how_long_each_part_of_its_start_took_beside_what_was_predicted() -> None:
    text = LOG.read_text(encoding="utf-8")
    phases = {phase.name: phase.seconds for phase in read(text).phases if phase.seconds is not None}
    deployment = sized(Profile.from_text(MEASURED))
    report = EngineReport(log=effective_settings(text), phases=phases)
    record = record_of(deployment, verify_settings(deployment, report, address="gemma[0]"), report, at=7.0)
    assert record is not None
    assert (record.measured["process_seconds"], record.predicted["process_seconds"]) == (83.0, 83)
    for name in ("weights_seconds", "compile_seconds", "ready_seconds"):
        assert abs(record.deviation(name) or 0) < 0.15, name
    line = boots([record])
    assert "start: the last one took to the first weight 83 s (83 s), weights 60 s" in line
    assert "in brackets as predicted without a cache" in line
