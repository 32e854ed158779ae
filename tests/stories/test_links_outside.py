"""A link in a project, to a file outside of it: an error names the place, and quotes nothing of the file."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import PROFILE, Open

CANARY = "CANARY7SECRET"
CONTENTS = {
    "text": f"root:x:{CANARY}:0\n",
    "yaml": f"client_{CANARY}: {CANARY}\ntype: {CANARY}\n",
    "broken": f"key: {CANARY}\nlist: [{CANARY}\n",
    "json": f'{{"version": 1, "name": "{CANARY}", "model": "{CANARY}"}}\n',
    "manifest": f"services: {{v: {{image: vllm/vllm-tpu:v0.32.0, command: vllm serve --{CANARY} {CANARY}}}}}\n",
    "csv": f"model,{CANARY}\n{CANARY},{CANARY}\n",
    "toml": f"backend = {CANARY}\n",
    "toml_key": f'{CANARY} = "{CANARY}"\n',
    "script": f"#!/bin/sh\nvllm serve '{CANARY}\n",
}
READERS = (
    "init x.yaml -from-file LINK",
    *("validate LINK", "plan LINK", "size LINK --json", "validate p.yaml -f LINK"),
    *("cost -compare LINK", "bench import LINK p.yaml", "compare LINK LINK", "state push gemma LINK", "apply LINK"),
    *("verify p.yaml -accuracy -questions LINK", "campaign LINK", "emulator run -scenario LINK -- true"),
)


@pytest.mark.parametrize("content", CONTENTS)
@pytest.mark.parametrize("line", READERS)
def test_nothing_of_the_file_is_in_an_error(
    cli: Open, tmp_path_factory: pytest.TempPathFactory, line: str, content: str
) -> None:
    at = cli()
    at.write(PROFILE, "p.yaml")
    secret = tmp_path_factory.mktemp("outside") / "secret"
    secret.write_text(CONTENTS[content])
    for ending in (".yaml", ""):
        link = at.folder / f"link{ending}"
        link.symlink_to(secret)
        result = at.run(*line.replace("LINK", link.name).split())
        assert result.code not in {0, 70}, result.all
        assert CANARY not in result.all, result.all


@pytest.mark.parametrize("content", CONTENTS)
def test_nothing_of_it_is_quoted_in_place_of_a_file_of_ours(
    cli: Open, tmp_path_factory: pytest.TempPathFactory, content: str
) -> None:
    for name in (
        "tpudeploy.toml",
        "tpudeploy.lock.json",
        "endpoints/gemma.json",
        ".tpudeploy/state/gemma.json",
        ".tpudeploy/budgets.yaml",
    ):
        at = cli()
        at.write(PROFILE, "p.yaml")
        secret = tmp_path_factory.mktemp("outside") / "secret"
        secret.write_text(CONTENTS[content])
        link = Path(at.folder / name)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(secret)
        for words in (("plan", "p.yaml"), ("status",), ("output",), ("cost",)):
            assert CANARY not in at.run(*words).all, name
        link.unlink()


def test_a_trusted_person_who_names_a_file_outside_still_sees_its_line(cli: Open, tmp_path: Path) -> None:
    at = cli()
    at.write(PROFILE, "p.yaml")
    overlay = tmp_path / "other" / "overlay.yaml"
    overlay.parent.mkdir()
    overlay.write_text("replicaz: 2\n")
    assert "replicaz: 2" in at.run("validate", "p.yaml", "-f", str(overlay)).err
    assert "replicaz: 2" in at.run("validate", str(overlay)).err
