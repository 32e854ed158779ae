"""A slice that keeps its programs or its weights in a bucket is read back as it was written."""

from __future__ import annotations

from pathlib import Path

from tpudeploy.adapters import assets
from tpudeploy.adapters.files import FileReader
from tpudeploy.config.parse import parse
from tpudeploy.domain.deployment import Deployment
from tpudeploy.planning.readback import ScriptServer, read_script
from tpudeploy.planning.resolve import resolve

PROFILE = """\
version: 1
name: gemma
model: {id: google/gemma-4-E2B-it, mirror: "gs://bucket/gemma"}
tpu: {type: v6e-1}
serving:
  image: vllm/vllm-tpu:v0.32.0
  xla_cache_bucket: gs://bucket/xla/deep
  max_model_len: 16384
placement: {provisioning: [spot]}
"""


def test_both_buckets_are_found_in_the_script(tmp_path: Path) -> None:
    server = _read_back(_resolved(tmp_path, PROFILE))
    assert server.model == {"id": "google/gemma-4-E2B-it", "mirror": "gs://bucket/gemma"}
    assert server.serving["xla_cache_bucket"] == "gs://bucket/xla/deep"
    assert "args" not in server.serving
    assert list(server.serving["volumes"] or ()) == ["/var/lib/tpudeploy/hf", "/var/lib/tpudeploy/xla"]  # type: ignore[arg-type]  # a mapping


def test_without_buckets_none_is_written(tmp_path: Path) -> None:
    plain = PROFILE.replace(', mirror: "gs://bucket/gemma"', "").replace(
        "  xla_cache_bucket: gs://bucket/xla/deep\n", ""
    )
    server = _read_back(_resolved(tmp_path, plain))
    assert server.model == {"id": "google/gemma-4-E2B-it"}
    assert "xla_cache_bucket" not in server.serving


def test_a_name_of_ones_own_stays_the_name_of_a_mirrored_model(tmp_path: Path) -> None:
    with_name = PROFILE.replace("  max_model_len", "  args: {served-model-name: mine}\n  max_model_len")
    words = _resolved(tmp_path, with_name).container.serve
    assert words.count("--served-model-name") == 1
    assert words[words.index("--served-model-name") + 1] == "mine"


def test_the_cache_is_keyed_by_what_changes_programs_and_by_nothing_else(tmp_path: Path) -> None:
    def key(old: str, new: str) -> str:
        cache = _resolved(tmp_path, PROFILE.replace(old, new)).compile_cache
        assert cache is not None
        return cache.key

    same = key("", "")
    around = {"  max_model_len": "  port: 9000\n  max_model_len", "name: gemma\n": "name: other\n"}
    assert {key(old, new) for old, new in around.items()} == {same}
    programs = {
        "E2B": "E4B",
        "v6e-1": "v6e-4",
        "16384": "8192",
        "  max_model_len": "  max_num_seqs: 64\n  max_model_len",
        "serving:\n": "serving:\n  padding_gap: 512\n",
        "placement:": "  setup: [pip install x]\nplacement:",
        "  image": "  args: {speculative_config: {method: ngram, num_speculative_tokens: 3}}\n  image",
    }
    keys = [key(old, new) for old, new in programs.items()]
    assert len({same, *keys}) == len(keys) + 1


def _resolved(folder: Path, profile: str) -> Deployment:
    file = folder / "gemma.yaml"
    file.write_text(profile, encoding="utf-8")
    return resolve(parse(str(file), FileReader(), environment={}), assets.templates(), project="p")


def _read_back(deployment: Deployment) -> ScriptServer:
    server = read_script(str(deployment.startup_script))
    assert server is not None
    return server
