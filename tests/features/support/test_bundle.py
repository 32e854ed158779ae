"""`support-bundle`: an archive of what explains a deployment, without what is private, against the emulator."""

from __future__ import annotations

import re
import tarfile
from pathlib import Path

import pytest
from command_line import PROFILE, Open

import tpudeploy as td

TOKEN = "hf_AbcDefGhiJklMnoPqrStu"
PRIVATE = """\
  env: {OWN_SETTING: "private-host.corp.example", SHORT: "pw3", LEVEL: 'it''s'}
secrets:
  VLLM_API_KEY: our-company-key
"""
MINE = PROFILE.replace("secrets:\n", PRIVATE).replace("placement:\n", "placement:\n  labels: {team: secret-team}\n")


def texts_in(path: Path) -> dict[str, str]:
    with tarfile.open(path) as tar:
        members = [(member.name.rpartition("/")[2], tar.extractfile(member)) for member in tar.getmembers()]
        return {name: file.read().decode() for name, file in members if file is not None}


def test_the_archive_explains_the_deployment_and_names_nothing_private(cli: Open) -> None:
    at = cli(secrets={"hf-token": TOKEN, "our-company-key": "sk-AbCdEf0123456789xyz"})
    profile = at.write(MINE)
    assert at.run("apply", "-auto-approve", profile).code == 0
    bundle = at.run("support-bundle", profile)
    assert bundle.code == 0, bundle.all
    path = at.folder / "gemma-support.tar.gz"
    assert path.stat().st_mode & 0o777 == 0o600
    texts = texts_in(path)
    assert set(texts) == {
        *("versions.txt", "profile.yaml", "plan.txt", "status.json", "state.json", "history.json", "boot.log")
    }
    assert not [name for name, text in texts.items() if text.startswith("not read") or not text.strip()]
    assert "google/gemma-4-E2B-it" in texts["profile.yaml"]
    assert "v6e-1" in texts["state.json"]
    for private in (TOKEN, "sk-AbCdEf", "our-company-key", "private-host.corp", "secret-team", "pw3", "it's"):
        assert private not in "".join(texts.values()), private
    again = at.run("support-bundle", profile)
    assert again.code == 1
    assert "exists" in again.err


def test_who_ran_commands_is_left_out_on_request(cli: Open) -> None:
    at = cli()
    profile = at.write()
    assert at.run("apply", "-auto-approve", profile).code == 0
    assert at.run("support-bundle", profile).code == 0
    by = str(re.findall(r'"by": "([^"]+)"', texts_in(at.folder / "gemma-support.tar.gz")["state.json"])[0])
    assert "@" in by
    assert at.run("support-bundle", profile, "-anonymous", "-o", "anonymous.tar.gz").code == 0
    text = str(texts_in(at.folder / "anonymous.tar.gz"))
    assert by not in text
    assert "OPERATOR" in text


def test_what_cannot_be_read_is_in_the_archive_as_the_error(cli: Open) -> None:
    at = cli()
    profile = at.write()
    assert at.run("support-bundle", profile, "-o", "b.tar.gz").code == 0
    texts = texts_in(at.folder / "b.tar.gz")
    assert texts["state.json"].startswith("not read: ")
    assert "google/gemma-4-E2B-it" in texts["profile.yaml"]


def test_without_a_profile_it_takes_the_only_one_that_is_deployed(cli: Open) -> None:
    at = cli()
    profile = at.write()
    assert at.run("support-bundle", "-o", "only.tar.gz").code == 0
    at.write(PROFILE.replace("name: gemma", "name: other"), "other.yaml")
    unclear = at.run("support-bundle")
    assert unclear.code == 1
    assert "2 profiles" in unclear.err
    assert at.run("apply", "-auto-approve", profile).code == 0
    assert at.run("support-bundle").code == 0
    assert (at.folder / "gemma-support.tar.gz").exists()
    assert not (at.folder / "other-support.tar.gz").exists()


def test_a_program_writes_the_same_archive(cli: Open) -> None:
    at = cli(secrets={"hf-token": TOKEN, "our-company-key": "sk-AbCdEf0123456789xyz"})
    profile = at.write(MINE)
    assert at.run("apply", "-auto-approve", profile).code == 0
    with td.Workspace.open(at.folder, clock=at.clock) as workspace:
        (path,) = workspace.support_bundle(at.folder / profile).files
        assert path == at.folder / "gemma-support.tar.gz"
        texts = texts_in(path)
        assert not [name for name, text in texts.items() if text.startswith("not read") or not text.strip()]
        assert not [private for private in (TOKEN, "sk-AbCdEf", "our-company-key") if private in str(texts)]
        with pytest.raises(td.errors.UsageError, match="exists"):
            workspace.support_bundle(at.folder / profile)
