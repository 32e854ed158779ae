"""`doctor -fix-script`: the commands for what a project lacks, as a script that shellcheck has nothing to say of."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from command_line import PROFILE, Open

from tpudeploy.availability.diagnosis import Diagnosis, Finding, FindingGrade
from tpudeploy.availability.fix_script import fix_script


def shellcheck(script: str) -> str:
    program = shutil.which("shellcheck")
    if program is None:
        pytest.skip("shellcheck is not installed")
    run = subprocess.run([program, "-"], input=script, capture_output=True, text=True, check=False)
    return run.stdout


def test_the_script_has_the_lines_of_the_findings_and_the_verdict_of_doctor(cli: Open) -> None:
    at = cli(secrets={})
    profile = at.write(PROFILE)
    plain, script = at.run("doctor", profile), at.run("doctor", profile, "-fix-script")
    assert script.code == plain.code
    assert script.out.startswith("#!/usr/bin/env bash\n")
    assert "set -euo pipefail" in script.out
    for line in plain.out.split("Run: ")[1:]:
        verb = " ".join(line.split()[:4])
        assert "printf" in verb or verb in script.out
    assert shellcheck(script.out) == ""


def findings(*hints: str) -> str:
    rows = tuple(
        Finding(check="x", grade=FindingGrade.FAIL, message="It's $(missing) `now`.\nReally", hint=hint)
        for hint in hints
    )
    return fix_script(Diagnosis(name="gemma", project="my-project", type="v6e-1", findings=rows))


def test_no_word_of_a_hint_is_more_than_a_word_to_the_shell() -> None:
    script = findings("Run: gcloud compute networks create $(touch x)`id`;rm", "Name another in the profile.")
    assert "'$(touch'" in script
    assert "'x)`id`;rm'" in script
    assert "# Name another in the profile." in script
    assert "export CLOUDSDK_CORE_PROJECT=my-project" in script


def test_the_value_of_a_secret_is_asked_for_and_what_only_the_person_knows_is_a_variable() -> None:
    script = findings(
        "Run: printf %s VALUE | gcloud secrets create hf-token --data-file=-",
        "Run: gcloud compute firewall-rules create g-vllm --allow=tcp:8000 --source-ranges=YOUR_RANGE",
        "Run: gcloud projects add-iam-policy-binding p --member=user:YOU --role=roles/tpu.admin",
        "Run: gcloud projects add-iam-policy-binding p --member=user:YOU --role=roles/tpu.admin",
    )
    assert 'printf %s "$value" | gcloud secrets create hf-token --data-file=-' in script
    assert '--source-ranges="${YOUR_RANGE:?' in script
    assert script.count("roles/tpu.admin") == 1
    assert shellcheck(script) == ""
    bash = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True, check=False)
    assert bash.returncode == 0, bash.stderr
