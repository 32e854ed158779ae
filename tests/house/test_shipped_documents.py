"""What the documents tell people to type works as it stands there; what needs a project at least is well-formed."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from real_time import DEADLINE

from tpudeploy.cli.commands import COMMANDS
from tpudeploy.cli.main import main, parse, two_dashes

ROOT = Path(__file__).parents[2]
DOCUMENTS = (
    "README.md",
    "AGENTS.md",
    "CONTRIBUTING.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "SUPPORT.md",
    "profiles/README.md",
    # docs/reference is written by the build of the site, but for its index.
    *(
        path.relative_to(ROOT).as_posix()
        for path in sorted((ROOT / "docs").rglob("*.md"))
        if "reference" not in path.parts or path.name == "index.md"
    ),
)
_BLOCK = re.compile(r"^```(?P<language>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
# A file of ours that a document names, in full or below the package.
_FILE = re.compile(r"`((?:[a-z_]+/)+[a-z_0-9]+\.(?:py|sh|md|j2))`")
_LINK = re.compile(r"\]\((?!https?://)([^)#]+)\)")
KINDS = ("", "console", "mermaid", "python", "python needs-a-server", "sh", "sh needs-a-project", "text", "yaml")


def blocks(*kinds: str) -> Iterator[tuple[str, str]]:
    for name in DOCUMENTS:
        text = (ROOT / name).read_text(encoding="utf-8")
        yield from ((name, m["text"]) for m in _BLOCK.finditer(text) if m["language"] in kinds)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_block_says_what_it_is(name: str) -> None:
    for block in _BLOCK.finditer((ROOT / name).read_text(encoding="utf-8")):
        assert re.sub(r"^yaml \S+\.yaml$", "yaml", block["language"]) in KINDS, block[0]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_link_inside_leads_somewhere(name: str) -> None:
    for target in _LINK.findall((ROOT / name).read_text(encoding="utf-8")):
        assert (ROOT / name).parent.joinpath(target).exists(), target


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_file_that_is_named_is_there(name: str) -> None:
    for file in _FILE.findall((ROOT / name).read_text(encoding="utf-8")):
        assert any((folder / file).exists() for folder in (ROOT, ROOT / "tpudeploy")), file


# Those of docs/how-to and for coding agents are run by test_how_tos.py.
_RUN_THERE = ("how-to", "skills", "AGENTS.md")


@pytest.mark.parametrize(
    "name", dict.fromkeys(name for name, _ in blocks("sh") if not any(part in name for part in _RUN_THERE))
)
def test_the_commands_of_a_page_run_as_written_one_after_the_other(name: str, tmp_path: Path) -> None:
    script = "\n".join(text for page, text in blocks("sh") if page == name)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    cloud = {"TPUDEPLOY_SPEED": "4", "TPUDEPLOY_SCENARIO": str(ROOT / "tests" / "one_slice.yaml")}
    process = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=tmp_path,
        env=os.environ | cloud | {"PATH": path},
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )
    assert process.returncode == 0, process.stdout + process.stderr


@pytest.mark.parametrize("script", [text for _, text in blocks("sh needs-a-project")])
def test_commands_for_a_real_project_are_ones_that_we_understand(script: str) -> None:
    subprocess.run(["bash", "-n", "-c", script], check=True)
    for line in script.replace("\\\n", " ").splitlines():
        words = shlex.split(line)
        if words[:1] == ["tpudeploy"]:
            assert parse(two_dashes(words[1:])) is not None


@pytest.mark.parametrize("profile", [text for _, text in blocks("yaml") if text.startswith("version:")])
def test_profiles_in_the_documents_are_valid(profile: str, tmp_path: Path) -> None:
    (tmp_path / "it.yaml").write_text(profile, encoding="utf-8")
    assert main(["validate", "--chdir", str(tmp_path), "it.yaml"]) == 0


def test_every_make_target_that_the_documents_name_is_there() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    for name in DOCUMENTS:
        text = (ROOT / name).read_text(encoding="utf-8")
        assert set(re.findall(r"(?:`|\$ )make ([a-z-]+)", text)) <= targets


def test_every_command_that_the_documents_name_is_there() -> None:
    for name in DOCUMENTS:
        text = (ROOT / name).read_text(encoding="utf-8")
        assert set(re.findall(r"`tpudeploy ([a-z][a-z-]*)", text)) <= set(COMMANDS)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_path_that_the_documents_name_is_there(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    for path in re.findall(r"`((?:tpudeploy|tests|examples|profiles|templates)/[\w./-]*)`", text):
        assert (ROOT / path).exists(), path


def test_the_tree_in_architecture_names_every_folder_of_the_package() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    for init in (ROOT / "tpudeploy").glob("*/__init__.py"):
        assert re.search(rf"^  {init.parent.name}/ ", text, re.MULTILINE), init.parent.name


def test_the_profile_that_readme_shows_is_the_one_of_the_demo() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    profile = (ROOT / "examples" / "01-command-line" / "gemma.yaml").read_text(encoding="utf-8")
    assert f"```yaml\n{profile}```" in text
    changes = re.findall(r"\+ [a-z._]+\.([a-z_]+) += (\S+)  \(gemma.yaml:(\d+)\)", text)
    assert changes
    for key, value, line in changes:
        assert profile.splitlines()[int(line) - 1].split("#")[0].split() == [f"{key}:", value.strip('"')]


def test_every_path_that_has_an_owner_is_there() -> None:
    owned = re.findall(r"^(/\S+)", (ROOT / ".github" / "CODEOWNERS").read_text(encoding="utf-8"), re.MULTILINE)
    assert [path for path in owned if not (ROOT / path.strip("/")).exists()] == []
