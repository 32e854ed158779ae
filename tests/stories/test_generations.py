"""What a user gets on each TPU generation: names, sizes, prices and places, and what is said where a fact is missing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from command_line import PROFILE, CommandLine, Open

from tpudeploy import catalog
from tpudeploy.catalog.generations import GENERATIONS
from tpudeploy.domain.accelerator import AcceleratorType, Backend

SINGLE_HOSTS = [each for each in catalog.accelerator_types() if each.hosts == 1]
PLACED, _, _ = PROFILE.partition("  zones:")
V5P = f"{PLACED.replace('v6e-1', 'v5p-8')}  provisioning: [on-demand]\n"
TPU7X = f"{PLACED.replace('v6e-1', 'tpu7x-4')}  backend: gce-instance\n  provisioning: [on-demand]\n"
# Google's published recipe for TPU7x: Gemma 4 31B, four engines of two devices each.
PUBLISHED = """\
version: 1
name: gemma4-31b-tpu7x
model: {id: google/gemma-4-31B-it}
tpu: {type: tpu7x-4}
serving:
  image: vllm/vllm-tpu:v0.32.0
  tensor_parallel_size: 2
  data_parallel_size: 4
  block_size: 256
  max_model_len: 16384
  env: {TPU_MULTIPROCESS_DP: "1", USE_BATCHED_RPA_KERNEL: "1"}
secrets: {HF_TOKEN: hf-token}
placement: {backend: gce-instance, provisioning: [on-demand]}
"""


def of_type(slice_type: AcceleratorType, name: str = "") -> str:
    text = f"{PLACED.replace('v6e-1', name or slice_type.name)}  provisioning: [on-demand]\n"
    return f"{text}  backend: {slice_type.backends[0]}\n"


def requests_to(at: CommandLine, ending: str) -> list[Any]:
    return [r for r in at.emulator.requests if r.method == "POST" and r.resource.endswith(ending)]


def arguments(at: CommandLine, profile: str) -> list[str]:
    words: list[str] = json.loads(at.run("render", profile, "argv").out)
    return words


@pytest.mark.parametrize("slice_type", SINGLE_HOSTS, ids=lambda each: each.name)
def test_each_type_is_validated_and_rendered_by_each_of_its_names(cli: Open, slice_type: AcceleratorType) -> None:
    at = cli()
    runtime = catalog.generation(slice_type.generation).runtime_of(slice_type.backends[0])
    rendered = set()
    for name in catalog.names_of(slice_type):
        profile = at.write(of_type(slice_type, name))
        result = at.run("validate", profile)
        assert result.code == 0, result.all
        request = at.run("render", profile, "request").out
        rendered.add(request)
        assert runtime in request
        words = arguments(at, profile)
        assert words[words.index("--tensor-parallel-size") + 1] == str(slice_type.devices)
    assert len(rendered) == 1


@pytest.mark.parametrize("slice_type", SINGLE_HOSTS, ids=lambda each: each.name)
def test_a_profile_of_each_type_has_places_prices_and_a_size(cli: Open, slice_type: AcceleratorType) -> None:
    at = cli()
    profile = at.write(of_type(slice_type))
    zones = json.loads(at.run("zones", "-json", profile).out)
    generation = catalog.generation(slice_type.generation)
    pairs = zones["tables"][0]["pairs"]
    assert {pair["zone"] for pair in pairs} == set(generation.zones)
    assert all(pair["hardware"]["yes"] for pair in pairs), pairs
    assert any(pair["price"]["usd_per_chip_hour"] for pair in pairs)
    doctor = at.run("doctor", profile)
    assert doctor.code == 0, doctor.all
    size = json.loads(at.run("size", "-json", profile).out)
    if generation.bytes_limit is None:
        assert size["fits"] is None
        assert f"reports for {generation.name} is not recorded" in size["cannot_size_because"]
        assert size["at_least"]["hbm_bytes_per_chip"] == generation.hbm_gib * 1024**3
        recommended = at.run("recommend", profile, "-users", "4", "-context", "4096", "-output", "256")
        assert recommended.code == 13
        assert f"reports for {generation.name} is not recorded" in recommended.words
    else:
        assert size["hbm_bytes_per_chip"] == generation.bytes_limit
        recommended = at.run("recommend", profile, "-users", "4", "-context", "4096", "-output", "256")
        assert recommended.code == 0, recommended.all


def test_without_a_recorded_limit_nothing_is_said_to_fit(cli: Open) -> None:
    at = cli()
    profile = at.write(V5P)
    result = at.run("size", profile)
    assert "may fit" in result.words
    assert "at most" in result.words
    assert "the HBM limit that the runtime reports for v5p is not recorded" in result.words
    assert "fits" not in result.words.replace("figures", "")
    plan = at.run("plan", profile)
    assert plan.code == 0, plan.all
    assert "and at most" in plan.words
    assert "vLLM calls its support for v5p experimental [TPU1306]" in plan.words


def test_what_does_not_fit_in_the_nominal_memory_is_an_error(cli: Open) -> None:
    at = cli()
    text = V5P.replace("gemma-4-E2B-it", "gemma-4-31B-it").replace("v5p-8", "ct5p-hightpu-1t-tpu")
    profile = at.write(f"{text}  backend: gce-instance\n".replace("16384", "262144"))
    result = at.run("validate", profile)
    assert result.code == 1
    assert "TPU2103" in result.all or "TPU2101" in result.all, result.all
    # What would help has no recorded limit either.
    assert "may be enough: at most" in result.words


def test_the_last_way_out_is_a_generation_whose_memory_is_not_recorded(cli: Open) -> None:
    at = cli()
    text = PROFILE.replace("google/gemma-4-E2B-it", "meta-llama/Llama-3.3-70B-Instruct").replace("16384", "131072")
    result = at.run("validate", at.write(text.replace("v6e-1", "v6e-8").replace("131072", "131072\n  dtype: float32")))
    assert result.code == 1
    assert "tpu.type: v5p-8 may be enough: at most" in result.words, result.words


def test_the_other_spellings_of_a_type_change_nothing(cli: Open) -> None:
    at = cli()
    applied = at.run("apply", "-auto-approve", at.write(PROFILE))
    assert applied.code == 0, applied.all
    for tpu in (
        "{type: ct6e-standard-1t}",
        "{generation: v6e, topology: 1x1}",
        "{generation: trillium, topology: 1x1}",
    ):
        profile = at.write(PROFILE.replace("tpu:\n  type: v6e-1\n", f"tpu: {tpu}\n"))
        result = at.run("plan", "-detailed-exitcode", profile)
        assert result.code == 0, result.all
    # A message, an origin and the resolved profile name the place where the topology is written.
    assert '  type: "v6e-1"  # gemma.yaml:5' in at.run("render", profile, "profile").out.replace(f"{at.folder}/", "")


@pytest.mark.parametrize(
    ("tpu", "words"),
    [
        ("{topology: 2x2}", "tpu.topology needs tpu.generation"),
        ("{generation: v6e}", "tpu.generation needs tpu.topology"),
        ("{generation: v6e, topology: 3x3}", 'The catalogue has no topology "3x3" of v6e [TPU1305]'),
        ("{generation: tpu7x, topology: 2x2x2}", "queued-resource does not serve tpu7x"),
        ("{generation: v9, topology: 2x2}", 'There is no TPU generation "v9"'),
        ("{generation: v4, topology: 2x2x1}", "Unsupported tpu_version=4"),
        ("{type: v6e-4, generation: v6e, topology: 2x4}", 'tpu.type is "v6e-4", and v6e with topology 2x4 is v6e-8'),
        ("{topology: 2x2x1, generation: 7}", "TPU1203"),
        ("{}", 'Missing key "tpu.type"'),
    ],
)
def test_a_topology_that_names_no_slice_is_one_problem(cli: Open, tpu: str, words: str) -> None:
    at = cli()
    result = at.run("validate", at.write(PROFILE.replace("tpu:\n  type: v6e-1\n", f"tpu: {tpu}\n")))
    assert result.code == 1
    assert words in result.words
    assert result.all.count("Error: ") == 1, result.all


def test_a_layer_names_another_slice_by_its_topology(cli: Open) -> None:
    at = cli()
    profile = at.write(PROFILE)
    settings = ("-set", "tpu.type=null", "-set", "tpu.generation=v6e", "-set", "tpu.topology=2x4")
    result = at.run("size", "-json", profile, *settings)
    assert json.loads(result.out)["accelerator_type"] == "v6e-8", result.all


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (V5P.replace("v5p-8", "v5e-4") + "  backend: gce-instance\n", "gce-instance does not serve v5e"),
        (TPU7X.replace("gce-instance", "queued-resource"), "queued-resource does not serve tpu7x"),
        (V5P.replace("v5p-8", "ct5p-hightpu-1t-tpu"), "queued-resource does not serve ct5p-hightpu-1t-tpu"),
    ],
)
def test_a_backend_that_does_not_create_the_slice_is_refused_with_the_one_that_does(
    cli: Open, text: str, words: str
) -> None:
    at = cli()
    result = at.run("validate", at.write(text))
    assert result.code == 1
    assert f"{words} [TPU1326]" in result.words
    other = Backend.GCE_INSTANCE if "queued" in words else Backend.QUEUED_RESOURCE
    assert f"write placement.backend: {other}" in result.words


def test_v5p_serves_through_the_tpu_api(cli: Open) -> None:
    at = cli()
    profile = at.write(f"{V5P}  max_parallel_requests: 1\n")
    applied = at.run("apply", "-auto-approve", profile)
    assert applied.code == 0, applied.all
    assert len(requests_to(at, "/queuedResources")) == 1
    node = json.loads(at.run("render", profile, "request").out)["tpu"]["nodeSpec"][0]["node"]
    assert (node["acceleratorType"], node["runtimeVersion"]) == ("v5p-8", "v2-alpha-tpuv5")
    assert at.run("plan", "-detailed-exitcode", profile).code == 0
    assert at.run("destroy", "-auto-approve", profile).code == 0
    assert not at.slices


def test_tpu7x_serves_at_compute_engine_on_all_of_its_devices(cli: Open) -> None:
    at = cli(nodes="real")
    profile = at.write(f"{TPU7X}  max_parallel_requests: 1\n")
    words = arguments(at, profile)
    assert words[words.index("--tensor-parallel-size") + 1] == "8"
    applied = at.run("apply", "-auto-approve", profile)
    assert applied.code == 0, applied.all
    assert len(requests_to(at, "/instances")) == 1
    body = json.loads(at.run("render", profile, "request").out)
    assert body["machineType"].endswith("machineTypes/tpu7x-standard-4t")
    image = body["disks"][0]["initializeParams"]["sourceImage"]
    assert "/ubuntu-accel-2404-amd64-tpu-tpu7x" in image
    assert at.run("plan", "-detailed-exitcode", profile).code == 0
    assert at.run("destroy", "-auto-approve", profile).code == 0
    assert not at.slices


def test_the_published_recipe_for_tpu7x_is_valid(cli: Open) -> None:
    at = cli()
    result = at.run("validate", at.write(PUBLISHED))
    assert result.code == 0, result.all
    too_many = at.run("validate", at.write(PUBLISHED.replace("data_parallel_size: 4", "data_parallel_size: 8")))
    assert "does not fit tpu7x-4, which has 8 devices (2 on each chip)" in too_many.words


@pytest.mark.parametrize(("slice_type", "is_said"), [("v5e-8", True), ("tpu7x-4", False)])
def test_fp8_weights_are_said_to_save_time_where_the_chips_compute_in_fp8_alone(
    cli: Open, slice_type: str, is_said: bool
) -> None:
    at = cli()
    text = PUBLISHED.replace("tpu7x-4", slice_type).replace("  env:", "  args: {quantization: fp8}\n  env:")
    if slice_type == "v5e-8":
        text = text.replace("gce-instance", "queued-resource")
    result = at.run("validate", at.write(text))
    assert "TPU2114" in result.all
    assert ("saves memory and no time: its chips compute in bfloat16" in result.words) is is_said


def test_a_model_without_a_known_price_counts_as_on_demand_and_the_message_says_so(cli: Open) -> None:
    at = cli()
    profile = at.write(f"{PLACED.replace('v6e-1', 'v5p-8')}  provisioning: [spot]\n  max_price_per_chip_hour: 2.0\n")
    result = at.run("validate", profile)
    assert result.code == 1
    assert "the price of spot is not known for v5p, and counts as that of on-demand" in result.words
    assert at.run("validate", profile, "-set", "placement.max_price_per_chip_hour=5").code == 0


def test_terraform_is_advised_where_compute_engine_has_the_slice_alone(cli: Open) -> None:
    at = cli()
    for name, hint in (("v5p-8", "Set placement.backend: gce-instance."), ("v5e-4", "creates no v5litepod-4.")):
        result = at.run("render", at.write(V5P.replace("v5p-8", name)), "terraform")
        assert hint in result.words


def test_auto_asks_the_apis_that_have_the_slice_alone(cli: Open) -> None:
    at = cli()
    zones = json.loads(at.run("zones", "-json", at.write(TPU7X.replace("gce-instance", "auto"))).out)
    assert {pair["backend"] for pair in zones["tables"][0]["pairs"]} == {"gce-instance"}
    both = json.loads(at.run("zones", "-json", at.write(f"{V5P}  backend: auto\n")).out)
    assert {pair["backend"] for pair in both["tables"][0]["pairs"]} == {"queued-resource", "gce-instance"}


def test_the_quota_of_v5p_counts_cores_and_is_shown_in_chips(cli: Open) -> None:
    at = cli(quota=[{"class": "on-demand", "region": "us-east5", "limit": 4}])
    profile = at.write(f"{V5P}  zones: [us-east5-a]\n")
    tree = json.loads(at.run("zones", "-json", profile).out)
    (pair,) = tree["tables"][0]["pairs"]
    assert pair["quota"]["region_limit"] == 4
    applied = at.run("apply", "-auto-approve", profile)
    assert applied.code == 0, applied.all
    # The same slice once more does not fit: Google's text names the limit in cores.
    second = at.write(f"{V5P}  zones: [us-east5-a]\n".replace("name: gemma", "name: second"), "second.yaml")
    refused = at.run("apply", "-auto-approve", "-timeout", "10m", second)
    assert "Limit 8 in region us-east5" in refused.words


@pytest.mark.parametrize("generation", GENERATIONS, ids=lambda each: each.name)
def test_the_emulator_offers_a_type_where_the_catalogue_has_it_alone(cli: Open, generation: Any) -> None:
    at = cli()
    slice_type = next(each for each in generation.types if each.hosts == 1)
    listed = json.loads(at.run("zones", "-json", "-type", slice_type.name).out)["tables"][0]["pairs"]
    assert {pair["zone"] for pair in listed} == set(generation.zones)
    elsewhere = "asia-east1-c" if generation.name != "v6e" else "us-west4-a"
    profile = at.write(f"{of_type(slice_type)}  zones: [{elsewhere}]\n")
    result = at.run("apply", "-auto-approve", "-timeout", "10m", profile)
    assert result.code == 1
    assert elsewhere in result.all
    assert not at.slices


@pytest.mark.parametrize("name", ["tpu7x-8", "v7x-8", "7x-8", "tpu-v7x-8", "TPU7x-8", "ironwood-8", "tpu7x:8", "v7-8"])
def test_a_name_that_counts_cores_in_some_tools_is_refused_with_both_meanings_and_their_prices(
    cli: Open, name: str
) -> None:
    at = cli()
    result = at.run("validate", at.write(TPU7X.replace("tpu7x-4", name)))
    assert result.code == 1
    assert f'"{name}" has two meanings' in result.words
    assert "count TensorCores, which makes it 4 chips on one machine, from $48.00/h on demand" in result.words
    assert "counted in chips, it is 8 chips on 2 machines, from $96.00/h on demand [TPU1308]" in result.words
    assert 'write "tpu7x-4" for 4 chips, or "tpu7x-2x2x2" for 8' in result.words
    assert result.all.count("Error: ") == 1, result.all
    zones = at.run("zones", "-type", name)
    assert zones.code == 1
    assert "has two meanings" in zones.words


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("tpu7x-16", "8 chips on 2 machines, from $96.00/h on demand; counted in chips, it is 16 chips on 4 machines"),
        ("tpu7x-2", 'counted in TensorCores, it is 1 chip on one machine, from $12.00/h on demand: write "tpu7x-1"'),
        (
            "tpu7x-32",
            'counted in TensorCores, it is 16 chips on 4 machines, from $192.00/h on demand: write "tpu7x-2x2x4"',
        ),
        ("tpu7x-128", "counted in TensorCores, it is 64 chips on 16 machines"),
    ],
)
def test_other_sizes_of_tpu7x_are_read_in_both_ways(cli: Open, name: str, words: str) -> None:
    at = cli()
    result = at.run("validate", at.write(TPU7X.replace("tpu7x-4", name)))
    assert result.code == 1
    assert words in result.words


@pytest.mark.parametrize("name", ["v4-8", "ct4p-hightpu-4t", "tpu-v4-8"])
def test_v4_is_refused_because_the_engine_refuses_it(cli: Open, name: str) -> None:
    at = cli()
    result = at.run("validate", at.write(PROFILE.replace("v6e-1", name)))
    assert result.code == 1
    assert "attention kernel for TPUs refuses it (Unsupported tpu_version=4)" in result.words
    assert "Unsupported tpu_version=4" in at.run("zones", "-type", name).words


def test_one_chip_of_tpu7x_has_two_devices_and_serves(cli: Open) -> None:
    at = cli(nodes="real")
    profile = at.write(f"{TPU7X.replace('tpu7x-4', 'tpu7x-1')}  max_parallel_requests: 1\n")
    words = arguments(at, profile)
    assert words[words.index("--tensor-parallel-size") + 1] == "2"
    body = json.loads(at.run("render", profile, "request").out)
    assert body["machineType"].endswith("machineTypes/tpu7x-standard-1t")
    assert "about $12.00/h at list price" in at.run("plan", profile).words
    applied = at.run("apply", "-auto-approve", profile)
    assert applied.code == 0, applied.all
    assert at.run("destroy", "-auto-approve", profile).code == 0
    assert not at.slices


def test_a_state_with_a_former_name_of_a_type_changes_nothing(cli: Open) -> None:
    at = cli()
    text = TPU7X.replace("tpu7x-4", "tpu7x-2x2x2").replace("v0.32.0", "v0.32.0\n  args: {pipeline_parallel_size: 2}")
    profile = at.write(f"{text}  max_parallel_requests: 1\n")
    applied = at.run("apply", "-auto-approve", profile)
    assert applied.code == 0, applied.all
    (state,) = (at.folder / ".tpudeploy" / "state").glob("*.json")
    state.write_text(state.read_text().replace('"tpu.type": "tpu7x-2x2x2"', '"tpu.type": "tpu7x-8"'))
    assert '"tpu7x-8"' in state.read_text()
    planned = at.run("plan", "-detailed-exitcode", profile)
    assert planned.code == 0, planned.all
    assert "$96.00/h" in at.run("status", profile).words
