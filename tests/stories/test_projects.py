"""Where the state of a profile lies, and that it is found from wherever a command is run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from command_line import PROFILE, CommandLine, Open


def moved(at: CommandLine, folder: Path) -> CommandLine:
    return replace(at, folder=folder)


def test_a_profile_finds_its_state_from_another_folder_and_asks_no_second_time(cli: Open) -> None:
    at = cli()
    (at.folder / "deploy").mkdir()
    at.write(name="deploy/gemma.yaml")
    assert at.run("apply", "-auto-approve", "deploy/gemma.yaml").code == 0
    assert (at.folder / ".tpudeploy" / "state" / "gemma.json").exists()
    inside = moved(at, at.folder / "deploy")
    assert inside.run("plan", "gemma.yaml", "-detailed-exitcode").code == 0
    assert inside.run("apply", "-auto-approve", "gemma.yaml").code == 0
    assert len(at.slices) == 1
    assert "127." in inside.run("output", "gemma").out


def test_a_profile_of_another_folder_keeps_its_state_beside_itself(cli: Open, tmp_path: Path) -> None:
    at = cli()
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    (there / "gemma.yaml").write_text(PROFILE, encoding="utf-8")
    assert moved(at, here).run("apply", "-auto-approve", "../there/gemma.yaml").code == 0
    assert (there / ".tpudeploy" / "state" / "gemma.json").exists()
    assert not (here / ".tpudeploy").exists()
    assert moved(at, there).run("plan", "gemma.yaml", "-detailed-exitcode").code == 0


def test_profiles_of_two_projects_are_not_applied_at_once(cli: Open, tmp_path: Path) -> None:
    at = cli()
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "tpudeploy.toml").write_text("", encoding="utf-8")
        (tmp_path / name / "p.yaml").write_text(PROFILE.replace("name: gemma", f"name: {name}"), encoding="utf-8")
    result = at.run("apply", "-auto-approve", "one/p.yaml", "two/p.yaml")
    assert result.code == 1
    assert "belong to different projects" in result.err
    assert at.requested_zones() == []
    assert at.run("validate", "one/p.yaml", "two/p.yaml").code == 0


def test_looking_around_in_a_folder_makes_no_project_of_it(cli: Open) -> None:
    at = cli()
    assert at.run("zones").code == 0
    (at.folder / "deploy").mkdir()
    at.write(name="deploy/gemma.yaml")
    inside = moved(at, at.folder / "deploy")
    assert inside.run("doctor", "gemma.yaml").code == 0
    assert inside.run("apply", "-auto-approve", "gemma.yaml").code == 0
    assert (at.folder / "deploy" / ".tpudeploy" / "state" / "gemma.json").exists()
    assert not (at.folder / ".tpudeploy" / "state").exists()
