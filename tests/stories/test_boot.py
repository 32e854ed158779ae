"""From a granted slice to a completion: what the machine says on the way, and what is said when it never comes."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import pytest
from answering import answering
from command_line import PROFILE, CommandLine, Open
from real_time import DEADLINE

# Constructed: the words are those of XLA's compiler as issues quote them; no whole log of such a death is at hand.
OUT_OF_MEMORY = "RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used 33.2G of 31.2G hbm."
# Pulls that fail: the startup script tries six times in one boot.
ONE_BOOT = 6


@pytest.mark.polls_every_second("a calm story looks at no phase before the server's start")
def test_the_phases_of_the_boot_are_told_as_they_come(cli: Open) -> None:
    at = cli(boot={"boot_seconds": 600})
    applied = at.run("apply", "-auto-approve", at.write())
    assert applied.code == 0, applied.all
    phases = [
        "Requesting v6e-1 in us-east5-a, spot",
        "Queued in us-east5-a, spot (WAITING_FOR_RESOURCES)",
        "Provisioning in us-east5-a, spot",
        "docker",
        "image",
        "secrets",
        "starting",
        "serving",
        "Serving at http://",
        "Creation complete after",
    ]
    places = [applied.err.index(f"gemma[0]: {line}") for line in phases]
    assert places == sorted(places)
    assert "cannot be reached" not in applied.err


def test_an_image_that_comes_late_is_pulled_again(cli: Open) -> None:
    at = cli(nodes="real", boot={"image_pull_failures": 2})
    applied = at.run("apply", "-auto-approve", at.write())
    assert applied.code == 0, applied.all
    assert "Pulling the image" in applied.err
    assert "Healthy, and completed a prompt" in applied.err


@pytest.mark.parametrize("nodes", ["real", "simulated"])
def test_a_crash_keeps_the_slice_and_says_why_what_it_costs_and_what_to_do(cli: Open, nodes: str) -> None:
    at = cli(nodes=nodes, boot={"crash": OUT_OF_MEMORY})
    profile = at.write()
    crashed = at.run("apply", "-auto-approve", profile)
    assert crashed.code == 1
    assert OUT_OF_MEMORY in crashed.err
    assert "is kept, at about $1.40/h" in crashed.err
    assert "`tpudeploy apply`" in crashed.err
    assert "`tpudeploy destroy`" in crashed.err
    assert list(at.slices.values()) == ["ACTIVE"]
    assert not (at.folder / "endpoints").exists()

    status = at.run("status", profile)
    assert "gemma[0] up, not serving" in status.words
    assert OUT_OF_MEMORY in status.out
    assert "did not finish" in status.out


@pytest.mark.parametrize("nodes", ["simulated", "real"])
def test_a_crash_in_known_words_says_what_to_change(cli: Open, nodes: str) -> None:
    crash = (
        "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used 33.10G of 31.24G "
        "hbm. Exceeded hbm capacity by 1.86G."
    )
    at = cli(nodes=nodes, boot={"crash": crash})
    crashed = at.run("apply", "-auto-approve", at.write())
    assert crashed.code == 1
    assert "lower serving.max_num_batched_tokens to" in crashed.err
    assert "lower serving.hbm_utilization to 0.85 (now 0.92)" in crashed.err


def test_a_corrected_profile_restarts_the_server_on_the_same_slice(cli: Open) -> None:
    at = cli(nodes="real", boot={"setup_fails": True})
    profile = at.write(PROFILE.replace("  max_model_len", '  setup: ["pip install broken"]\n  max_model_len'))
    failed = at.run("apply", "-auto-approve", profile)
    assert failed.code == 1
    assert "a setup step failed" in failed.err
    before = dict(at.slices)

    at.write()
    planned = at.run("plan", profile)
    assert 'serving.setup = ["pip install broken"] -> null # needs a restart' in planned.words
    mended = at.run("apply", "-auto-approve", profile)
    assert mended.code == 0, mended.all
    assert dict(at.slices) == before
    assert len(at.requested_zones()) == 1


def test_a_boot_that_failed_for_another_reason_than_the_profile_is_tried_again_on_the_same_slice(cli: Open) -> None:
    at = cli(nodes="real", boot={"image_pull_failures": ONE_BOOT})
    profile = at.write()
    failed = at.run("apply", "-auto-approve", profile)
    assert failed.code == 1
    assert "could not be pulled in 6 attempts" in failed.err
    before = dict(at.slices)

    planned = at.run("plan", profile)
    assert "its server did not start, and is booted again" in planned.out
    mended = at.run("apply", profile)  # resumes: no approval is asked again
    assert mended.code == 0, mended.all
    assert dict(at.slices) == before
    assert at.run("plan", profile, "-detailed-exitcode").code == 0


def test_a_server_that_never_comes_up_ends_at_the_health_timeout(cli: Open) -> None:
    at = cli(boot={"hang": True})
    began = at.clock.now()
    stopped = at.run("apply", "-auto-approve", at.write(PROFILE + "health:\n  timeout: 20m\n"))
    assert stopped.code == 1
    assert "20 min have passed; the machine last reported: starting" in stopped.err
    assert 1200 < at.clock.now() - began < 1200 + 300
    assert list(at.slices.values()) == ["ACTIVE"]


def test_a_secret_that_the_machine_may_not_read_is_named_with_the_role_it_needs(cli: Open) -> None:
    at = cli(nodes="real", denied_secrets=["hf-token"])
    stopped = at.run("apply", "-auto-approve", at.write())
    assert stopped.code == 1
    assert "projects/emulated/secrets/hf-token" in stopped.err
    assert "roles/secretmanager.secretAccessor" in stopped.err


_SECRET = "projects/emulated/secrets/hf-token/versions/latest"
# What is missing, and the reason that the machine reports, whether it runs its script or is simulated.
MISSING: Mapping[str, tuple[Mapping[str, Any], str]] = {
    "a secret": (
        {"secrets": {"other": "x"}},
        (
            f"Secret {_SECRET} does not exist: create it, or correct its name in the profile. Google says: "
            "Secret [projects/emulated/secrets/hf-token] not found or has no versions."
        ),
    ),
    "the right to read a secret": (
        {"denied_secrets": ["hf-token"]},
        (
            f"may not read secret {_SECRET}: grant it roles/secretmanager.secretAccessor. Google says: Permission "
            f"'secretmanager.versions.access' denied for resource '{_SECRET}' (or it may not exist)."
        ),
    ),
    "a repository": (
        {"project": {"images": []}},
        (
            "The image cannot be pulled: Error response from daemon: pull access denied for vllm/vllm-tpu, repository "
            "does not exist or may require 'docker login': denied: requested access to the resource is denied"
        ),
    ),
    "a tag": (
        {"project": {"images": ["vllm/vllm-tpu:v0.31.0"]}},
        (
            "The image cannot be pulled: Error response from daemon: manifest for vllm/vllm-tpu:v0.32.0 not found: "
            "manifest unknown: manifest unknown"
        ),
    ),
}


@pytest.mark.parametrize("nodes", ["real", "simulated"])
@pytest.mark.parametrize("case", MISSING)
def test_what_is_missing_ends_a_start_with_the_same_words_on_every_kind_of_node(
    cli: Open, case: str, nodes: str
) -> None:
    scenario, reason = MISSING[case]
    at = cli(nodes=nodes, **scenario)
    profile = at.write()
    stopped = at.run("apply", "-auto-approve", profile)
    assert stopped.code == 1, stopped.all
    (replica,) = json.loads(at.run("status", profile, "-json").out)["deployments"][0]["replicas"]
    assert replica["boot"] == "failed"
    assert replica["boot_detail"].endswith(reason)


@pytest.mark.parametrize("nodes", ["real", "simulated"])
def test_an_endpoint_that_cannot_be_reached_from_here_is_a_success_with_the_firewall_command(
    cli: Open, nodes: str
) -> None:
    at = cli(nodes=nodes, boot={"reachable": False})
    profile = at.write()
    applied = at.run("apply", "-auto-approve", profile)
    assert applied.code == 0, applied.all
    assert "cannot be reached from here" in applied.err
    assert "gcloud compute firewall-rules create gemma-vllm --network=default --allow=tcp:8000" in applied.err
    assert "serving" in at.run("status", profile).out
    assert at.run("plan", profile, "-detailed-exitcode").code == 0


def test_an_endpoint_that_must_be_reached_from_outside_and_is_not_is_a_failure(cli: Open) -> None:
    at = cli(boot={"reachable": False})
    stopped = at.run("apply", "-auto-approve", at.write(PROFILE + "health: {via: external, timeout: 20m}\n"))
    assert stopped.code == 1
    assert "the endpoint: external: " in stopped.err
    assert list(at.slices.values()) == ["ACTIVE"]


def test_a_machine_that_may_not_tell_of_itself_is_believed_by_its_completion(cli: Open) -> None:
    at = cli(boot={"guest_attributes": False, "boot_seconds": 300})
    profile = at.write()
    assert at.run("apply", "-auto-approve", profile).code == 0
    assert "a completion came back" in at.run("status", profile).out
    before = dict(at.slices)
    at.write(PROFILE.replace("16384", "8192"))
    began = at.clock.now()
    restarted = at.run("apply", "-auto-approve", profile)
    assert restarted.code == 0, restarted.all
    assert at.clock.now() - began > 240  # the old server answers until then: only time tells them apart
    assert dict(at.slices) == before


def test_a_machine_without_an_external_address_is_reached_inside(cli: Open) -> None:
    at = cli(nodes="real")
    profile = at.write(PROFILE + "  network: {external_ip: false}\n")
    applied = at.run("apply", "-auto-approve", profile)
    assert applied.code == 0, applied.all
    assert "cannot be reached" not in applied.err


@pytest.mark.parametrize("nodes", ["real", "simulated"])
def test_with_an_api_key_probe_and_query_send_it_and_a_stranger_is_turned_away(cli: Open, nodes: str) -> None:
    at = cli(nodes=nodes, secrets={"hf-token": "made-up-token", "vllm-key": "made-up-key"})
    profile = at.write(PROFILE.replace("  HF_TOKEN: hf-token\n", "  HF_TOKEN: hf-token\n  VLLM_API_KEY: vllm-key\n"))
    applied = at.run("apply", "-auto-approve", profile)
    assert applied.code == 0, applied.all
    answered = at.run("query", profile, "Say hello.")
    assert answered.code == 0, answered.all
    assert "completion tokens" in answered.all
    assert _status(_url(at), {}) == 401
    assert _status(_url(at), {"Authorization": "Bearer made-up-key"}) == 200
    assert "made-up-key" not in applied.all + answered.all + str(at.state())


def test_a_base_model_without_a_chat_template_proves_itself_by_a_plain_completion(cli: Open) -> None:
    at = cli(nodes="real")
    profile = at.write(PROFILE.replace("google/gemma-4-E2B-it", "google/gemma-4-E2B"))
    applied = at.run("apply", "-auto-approve", profile)
    assert applied.code == 0, applied.all
    assert at.run("query", profile, "Once upon a time").code == 0


def test_a_slice_that_is_preempted_while_it_boots_is_asked_for_again(cli: Open) -> None:
    at = cli(boot={"boot_seconds": 900}, trouble=[{"fault": "preempt", "after": 300, "times": 1}])
    applied = at.run("apply", "-auto-approve", at.write())
    assert applied.code == 0, applied.all
    assert len(at.requested_zones()) == 2
    assert list(at.slices.values()) == ["ACTIVE"]


@pytest.mark.parametrize("fault", ["preempt", "vanish"])
def test_a_slice_that_is_lost_while_it_serves_shows_in_status_and_plan_and_apply_brings_another(
    cli: Open, fault: str
) -> None:
    at = cli(trouble=[{"fault": fault, "after": 3600, "times": 1}])
    profile = at.write()
    assert at.run("apply", "-auto-approve", profile).code == 0
    (slice_,) = at.slices
    at.clock.sleep(2 * 3600)

    assert "gemma[0] serving" not in at.run("status", profile).words
    planned = at.run("plan", profile, "-detailed-exitcode")
    assert planned.code == 2
    assert "its slice was preempted, failed, or reached the end of its run" in planned.out
    assert "will be created" in planned.out
    brought = at.run("apply", "-auto-approve", profile)
    assert brought.code == 0, brought.all
    assert slice_ not in at.slices
    assert list(at.slices.values()) == ["ACTIVE"]


def test_a_slice_that_somebody_deleted_is_seen_and_created_anew(cli: Open) -> None:
    at = cli()
    profile = at.write()
    assert at.run("apply", "-auto-approve", profile).code == 0
    (name,) = at.slices
    at.delete_by_hand(name)
    at.clock.sleep(240)
    assert not at.slices
    planned = at.run("plan", profile, "-detailed-exitcode")
    assert planned.code == 2
    assert "its slice was deleted outside tpudeploy" in planned.out
    assert at.run("apply", "-auto-approve", profile).code == 0
    assert list(at.slices.values()) == ["ACTIVE"]


def test_flex_start_tells_when_it_ends_and_after_the_end_a_plan_creates_it_anew(cli: Open) -> None:
    at = cli()
    profile = at.write(PROFILE.replace("[spot]", "[flex-start]\n  max_run_duration: 4h"))
    assert at.run("apply", "-auto-approve", profile).code == 0
    assert "ends in 3h 5" in at.run("status", profile).words
    at.clock.sleep(5 * 3600)
    planned = at.run("plan", profile, "-detailed-exitcode")
    assert planned.code == 2
    assert "will be created" in planned.out
    assert "its slice was preempted, failed, or reached the end of its run" in planned.out


def _url(at: CommandLine) -> str:
    return at.run("output", "gemma").out.split('"')[1]


def _status(url: str, headers: dict[str, str]) -> int:
    where = urlsplit(url)
    connection = http.client.HTTPConnection(where.hostname or "", where.port or 80, timeout=DEADLINE)
    try:
        connection.request("GET", "/v1/models", headers=headers)
        return connection.getresponse().status
    finally:
        connection.close()


def test_a_second_failure_after_a_correction_is_told_at_once(cli: Open) -> None:
    at = cli(
        nodes="real", boot={"boot_seconds": 0, "crash": "ValueError: still wrong"}, timings={"reset": 5, "neighbour": 0}
    )
    profile = at.write()
    assert at.run("apply", "-auto-approve", profile).code == 1
    at.write(PROFILE.replace("max_model_len: 16384", "max_model_len: 8192"))
    began = at.clock.now()
    again = at.run("apply", "-auto-approve", profile)
    assert again.code == 1
    assert "ValueError: still wrong" in again.err
    assert at.clock.now() - began < 180, "two reports are 10 s apart, two reads 15 s; a reboot is not waited for"
    assert len(at.slices) == 1


def test_a_query_shows_the_answer_as_it_comes_and_ends_its_line_where_the_answer_breaks_off(cli: Open) -> None:
    at = cli(nodes="real")
    profile = at.write()
    assert at.run("apply", "-auto-approve", profile).code == 0
    answered = at.run("query", profile, "Say hello.")
    assert answered.out.endswith("tokens.\n")
    assert "TTFT " in answered.err
    piece = (
        b'data: {"choices": [{"delta": {"content": "Hel"}}]}\n\ndata: {"error": {"code": 500, "message": "died"}}\n\n'
    )
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(piece)}\r\nConnection: close\r\n\r\n".encode()
    broken_at = cli(nodes="simulated", boot={"reachable": False})
    assert broken_at.run("apply", "-auto-approve", broken_at.write()).code == 0
    host, _, port = _url(broken_at).removeprefix("http://").partition(":")
    with answering({"/v1/chat/completions": head + piece}, at=(host, int(port))):
        broken = broken_at.run("query", profile, "Say hello.")
    assert (broken.code, broken.out) == (1, "Hel\n")
    assert "died" in broken.err
