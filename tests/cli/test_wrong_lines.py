"""What newcomers type wrongly, in profiles and on command lines: each answer says what to do, and no word misleads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from command_line import PROFILE, Open, Result, command

from tpudeploy.cli.main import main

LENGTH = "  max_model_len: 16384"
# A change of the profile, and what the answer says. Every one of them is refused.
WRONG_PROFILES: Mapping[str, tuple[str, str, str]] = {
    "a tab": ("  id: google", "\tid: google", "YAML is indented with spaces"),
    "no space after a colon": ("name: gemma", "name:gemma", "write `key: value`"),
    "an open bracket": ("europe-west4-a]", "europe-west4-a", "a bracket is not closed"),
    "a key twice": ("tpu:", "name: other\ntpu:", "keep one"),
    "a key that is not indented": ("  type: v6e-1", "type: v6e-1", 'did you mean "tpu.type"?'),
    "dashes": (LENGTH, "  max-model-len: 16384", 'did you mean "serving.max_model_len"?'),
    "vLLM's word": (LENGTH, "  gpu_memory_utilization: 0.9", 'did you mean "hbm_utilization"?'),
    "a flag with dashes": (LENGTH, "  args: {--seed: 42}", "did you mean `seed`?"),
    "a flag that is a key": (LENGTH, "  args: {tensor-parallel-size: 4}", "`serving.tensor_parallel_size`"),
    "flags as a list": (LENGTH, '  args: ["--seed", "42"]', "e.g. args: {enable_prefix_caching: true}"),
    "flags as a line": (LENGTH, "  args: --seed 42", "e.g. args: {enable_prefix_caching: true}"),
    "docker's network": (LENGTH, "  args: {net: host}", "leave it out: tpudeploy starts the container"),
    "docker's volumes": (LENGTH, "  args: {v: /data}", "write serving.volumes"),
    "sglang's split": (LENGTH, "  args: {tp_size: 1}", "write serving.tensor_parallel_size"),
    "sglang's memory": (LENGTH, "  args: {mem-fraction-static: 0.8}", "write serving.hbm_utilization"),
    "variables as a list": (LENGTH, '  env: ["HF_HOME=/data"]', "e.g. env: {HF_HOME: /dev/shm}"),
    "a number as a variable": (LENGTH, "  env: {VLLM_LOGGING_LEVEL: 1}", 'quote it: "1"'),
    "a quoted number": ("16384", '"16384"', "leave out the quotes: 16384"),
    "a number with a comma": ("16384", "16,384", "e.g. max_model_len: 16384"),
    "a share of a hundred": (LENGTH, "  hbm_utilization: 90", "e.g. hbm_utilization: 0.9"),
    "a share in percent": (LENGTH, "  hbm_utilization: 90%", "e.g. hbm_utilization: 0.9"),
    "yes": (LENGTH, "  args: {enable_prefix_caching: yes}", "takes `true` or `false`"),
    "docker's ports": (LENGTH, '  port: "8000:8000"', "e.g. port: 8000"),
    "a size without a unit": ("type: v6e-1", "type: v6e-1\n  boot_disk_size: 200", "10GiB (binary)"),
    "a time in words": ("[spot]", "[spot]\n  max_run_duration: 12 hours", "it looks like 90s, 15m, 2h or 7d"),
    "a time without a unit": ("[spot]", "[spot]\n  max_run_duration: 12", "it looks like 90s, 15m, 2h or 7d"),
    "one zone": ("[us-east5-a, us-east5-b, europe-west4-a]", "us-east5-a", "write a list: [us-east5-a]"),
    "zones in a line": (
        "[us-east5-a, us-east5-b, europe-west4-a]",
        "us-east5-a, us-east5-b",
        "write a list: [us-east5-a, us-east5-b]",
    ),
    "a region": ("[us-east5-a, us-east5-b", "[us-east5", "its zones with TPUs are us-east5-a, us-east5-b"),
    "a zone in capitals": ("[us-east5-a", "[US-EAST5-A", "write us-east5-a"),
    "one provisioning model": ("[spot]", "spot", "write a list: [spot]"),
    "preemptible": ("[spot]", "[preemptible]", "write spot"),
    "dws": ("[spot]", "[dws]", "write flex-start"),
    "ondemand": ("[spot]", "[ondemand]", "write on-demand"),
    "a flex-start without an end": ("[spot]", "[flex-start]", "add max_run_duration"),
    "a backend of Google's words": ("placement:", "placement:\n  backend: gce", "write gce-instance"),
    "a type that has no such size": ("v6e-1", "v6e-2", 'did you mean "v6e-4"?'),
    "a marketing name": ("v6e-1", "trillium-1", 'did you mean "v6e-1"?'),
    "a type of two meanings": ("v6e-1", "v7-8", 'write "tpu7x-4" for 4 chips'),
    "a GPU": ("v6e-1", "h100", "choose one of v6e-1"),
    "gpu": ("tpu:", "gpu:", "write tpu.type"),
    "the model alone": ("model:\n  id: google/gemma-4-E2B-it", "model: google/gemma-4-E2B-it", "e.g. model: {id: "),
    "the model's page": ("google/gemma", "https://huggingface.co/google/gemma", "write google/gemma-4-E2B-it"),
    "a prefix": ("google/gemma", "hf://google/gemma", "write google/gemma-4-E2B-it"),
    "a slash at the end": ("E2B-it", "E2B-it/", "write google/gemma-4-E2B-it"),
    "a page of files": (
        "google/gemma-4-E2B-it",
        "https://huggingface.co/google/gemma-4-E2B-it/tree/main",
        "write google/gemma-4-E2B-it\n",
    ),
    "ollama's name": ("google/gemma-4-E2B-it", "llama3.1:8b", "write meta-llama/Llama-3.1-8B-Instruct"),
    "capitals in the name": ("name: gemma", "name: Gemma_4", "lower case, digits and dashes"),
    "a version that is text": ("version: 1", 'version: "1"', "it looks like 1"),
    "a variable of the shell": ("hf-token", "$HF_TOKEN", "write the secret's id"),
    "a variable in braces": ("hf-token", "${HF_TOKEN}", "write ${env:NAME}"),
    "a variable that is not set": ("name: gemma", "name: ${env:NOPE}", "set NOPE"),
    "a token": ("hf-token", "hf_" + "a1b2" * 9, "revoke it if it was ever shared"),
    "an image for GPUs": ("vllm/vllm-tpu", "vllm/vllm-openai", "use vllm/vllm-tpu:v0.32.0"),
    "an image's page": ("vllm/vllm-tpu:v0.32.0", "https://hub.docker.com/r/vllm/vllm-tpu", "it looks like vllm/"),
    "a space in the image": ("vllm/vllm-tpu:v0.32.0", '"vllm/vllm-tpu: v0.32.0"', "it looks like vllm/"),
    "no replicas": ("placement:", "replicas: 0\nplacement:", "e.g. replicas: 2"),
    "a word for a number": ("placement:", "replicas: two\nplacement:", "e.g. replicas: 2"),
    "two documents": ("version: 1", "version: 1\n---\nversion: 1", "one file holds one profile"),
}


@pytest.mark.parametrize("name", WRONG_PROFILES)
def test_a_wrong_profile_is_answered_with_what_to_write(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NOPE", raising=False)
    old, new, answer = WRONG_PROFILES[name]
    assert old in PROFILE
    (tmp_path / "gemma.yaml").write_text(PROFILE.replace(old, new, 1), encoding="utf-8")
    refused = command(tmp_path, capsys, "validate", "gemma.yaml")
    assert refused.code == 1, refused.all
    assert answer in refused.all
    assert "Traceback" not in refused.all
    assert "True}" not in refused.all, "an example is YAML"


# A command line, and what the answer says. `Did you mean` stands in an answer only where the row has it.
WRONG_LINES: tuple[tuple[str, str], ...] = (
    ("gemma.yaml", "A command comes first: `tpudeploy plan gemma.yaml`."),
    ("tpudeploy plan gemma.yaml", "The program is named once"),
    ("validate", "required: PROFILE"),
    ("validate gemma", 'did you mean "gemma.yaml"?'),
    ("validate -", "a profile is a file"),
    ("validate nope", "there are: gemma.yaml"),
    ("validate empty", "A profile has a `version` and a `name`"),
    ("validate https://example.com/gemma.yaml", "a profile is a file, not an address"),
    ("validate gs://bucket/gemma.yaml", "a profile is a file, not an address"),
    ("size google/gemma-4-E2B-it", "`tpudeploy init` writes one for a model"),
    ("query http://127.0.0.1:1 Hello", "a profile is a file, not an address"),
    ("metrics http://127.0.0.1:1", "a profile is a file, not an address"),
    ("status nope", "there are: gemma.yaml"),
    ("drift nope", "there are: gemma.yaml"),
    ("validate gemma.yaml -set serving", "write --set path=value"),
    ("validate gemma.yaml -set serving.maxlen=3", 'did you mean "max_model_len"?'),
    ("validate gemma.yaml -set placement.zones=us-east5-a,us-east5-b", "write a list: [us-east5-a, us-east5-b]"),
    ("validate gemma.yaml -max-model-len 3", "It is a key of the profile, serving.max_model_len"),
    ("plan gemma.yaml -project mine", "It is a key of the profile, placement.project"),
    ("plan -p mine gemma.yaml", "It is a key of the profile, placement.project"),
    ("plan gemma.yaml -zone us-east5-a", "In the profile, write placement.zones"),
    ("plan gemma.yaml -zones us-east5-a", "It is a key of the profile, placement.zones"),
    ("plan gemma.yaml -region us-east5", "In the profile, write placement.zones"),
    ("plan gemma.yaml -spot", "In the profile, write placement.provisioning: [spot]"),
    ("apply gemma.yaml -replicas 3", "It is a key of the profile, replicas"),
    ("apply gemma.yaml -dry-run", "`tpudeploy plan PROFILE` shows what would change."),
    ("apply gemma.yaml -yes", "Did you mean `--auto-approve`?"),
    ("apply gemma.yaml -timeout soon", "write 90s, 15m, 2h or 7d"),
    ("apply gemma.yaml -timeout 5 min", "`min` does not exist"),
    ("render gemma.yaml docker -o x", "`> FILE` writes it to a file"),
    ("render gemma.yaml dokcer", "Did you mean `docker`?"),
    ("bench -url http://127.0.0.1:1 -client vllm", "Did you mean `--driver`?"),
    ("bench -url localhost:8000", "Write it as http://HOST:8000."),
    ("bench -url http://127.0.0.1:1 -concurrency 0", "write 1,2,8"),
    ("bench -url http://127.0.0.1:1 -driver vllm -window 20s", "measures a number of requests"),
    ("bench -url http://127.0.0.1:1 -driver aiperf -window 20s", "measures a number of requests"),
    ("bench import empty", "it is a folder"),
    ("bench show nope", "`tpudeploy bench list` shows them."),
    ("size gemma.yaml -users 3", "has no option `--users`"),
    ("apply -f gemma.yaml", "`-f` names an overlay of a profile: `tpudeploy apply gemma.yaml` names a profile."),
    ("logs gemma.yaml -tail 100", "`-follow` shows new ones"),
    ("status -w", "Did you mean `-watch`?"),
    ("gc -dry-run", "`tpudeploy gc` lists what it found, then asks."),
    ("destroy gemma.yaml --dry-run", "`tpudeploy plan -destroy PROFILE`"),
    ("zones v6e-1", "`tpudeploy zones -type v6e-1`"),
    ("explain TPU1310 TPU1311", "takes no argument `TPU1311`"),
    ("pin gemma.yaml", "`tpudeploy plan -pin PROFILE`"),
    ("taint gemma", "`tpudeploy apply -replace 'NAME[0]' PROFILE`"),
    ("console", "`tpudeploy dashboard`"),
    ("workspace list", "Each deployment has a state of its own"),
    ("destroy nope", "neither a profile nor a deployment"),
    ("logs", "Name a profile, or a log"),
    ("logs -file nope.log", "`nope.log` cannot be read"),
    ("alerts gemma.yaml -ttft fast", "is not a duration"),
    ("state", "needs a verb"),
    ("import gemma.yaml x", "write NAME, or NAME[INDEX]"),
    ("emulator run -scenario nope.yaml -- true", "cannot be read: No such file or directory"),
    ("plan gemma.yaml -backend s3://bucket", "Write gs://BUCKET/PREFIX"),
    ("dashboard -port 99999", "ports go from 0"),
)


def text_of_refusal(refused: Result) -> str:
    assert refused.code == 1, refused.all
    assert "Traceback" not in refused.all
    return " ".join(refused.err.split())


@pytest.mark.parametrize(("line", "answer"), WRONG_LINES, ids=[line for line, _ in WRONG_LINES])
def test_a_wrong_line_is_answered_with_what_to_type(
    line: str, answer: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gemma.yaml").write_text(PROFILE, encoding="utf-8")
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    code = main(line.split())
    output = capsys.readouterr()
    text = text_of_refusal(Result(code=code, out=output.out, err=output.err))
    assert answer in text
    assert "Did you mean" in answer or "Did you mean" not in text, "a guess would mislead"


def test_a_release_without_its_v_is_warned_about_before_it_is_bought(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "gemma.yaml").write_text(PROFILE.replace(":v0.32.0", ":0.32.0"), encoding="utf-8")
    checked = command(tmp_path, capsys, "validate", "gemma.yaml")
    assert checked.code == 0
    assert "write vllm/vllm-tpu:v0.32.0" in checked.all


def test_validate_says_that_two_profiles_have_one_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text(PROFILE, encoding="utf-8")
    checked = command(tmp_path, capsys, "validate", "a.yaml", "b.yaml")
    assert checked.code == 0
    assert "a.yaml and b.yaml are both called gemma" in checked.err
    assert json.loads(command(tmp_path, capsys, "validate", "a.yaml", "-json").out)["valid"] is True


@pytest.mark.parametrize("project", ["My Project", "my_project", "p", "MY-PROJECT", "projects/my-project"])
def test_a_project_of_the_environment_in_another_form_is_refused_by_its_variable(
    cli: Open, monkeypatch: pytest.MonkeyPatch, project: str
) -> None:
    at = cli()
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", project)
    for words in (("plan", at.write()), ("doctor", "gemma.yaml"), ("gc",)):
        result = at.run(*words)
        assert result.code == 1
        assert f"GOOGLE_CLOUD_PROJECT is `{project}`" in result.words
        assert "such as my-project" in result.words
    # A profile that names its own needs none of the environment.
    named = PROFILE.replace("placement:\n", "placement:\n  project: emulated\n")
    assert at.run("plan", at.write(named)).code == 0


@pytest.mark.parametrize("project", ["my-project", "example.com:my-project", "123456789012"])
def test_a_project_of_the_environment_may_be_an_id_or_a_number(
    cli: Open, monkeypatch: pytest.MonkeyPatch, project: str
) -> None:
    at = cli()
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", project)
    assert at.run("render", at.write(), "request").code == 0


def test_a_profile_and_what_to_render_in_the_wrong_order_are_answered_with_the_right_one(cli: Open) -> None:
    at = cli()
    result = at.run("render", "docker", at.write())
    assert result.code == 1
    assert "The profile comes before it: `tpudeploy render gemma.yaml startup-script`." in result.words
