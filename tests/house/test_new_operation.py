"""A new capability is one file in one folder: planted in a copy of the package, it is there in each of its five forms."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "tpudeploy"
OPERATION = '''"""Greet somebody, as many times as you like."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from tpudeploy.operations.arguments import Arg, Count
from tpudeploy.operations.declaration import Access, Operation
from tpudeploy.results import Result, result

if TYPE_CHECKING:
    from tpudeploy.text.paint import Paint
    from tpudeploy.workspace import Workspace


@result
class Greeting(Result):
    """A greeting."""

    FORMAT = "greeting"
    words: Annotated[tuple[str, ...], "the greeting, word by word"]

    def as_text(self, paint: Paint, width: int | None = None) -> str:
        return " ".join(self.words)


def greet(
    workspace: Workspace,
    name: Annotated[str, Arg("The name.", positional=True)],
    *,
    times: Annotated[Count, Arg("How often to say it.")] = 1,
) -> Greeting:
    """Return a greeting for a name."""
    return Greeting(words=("Hello,", *[name] * times))


OPERATION = Operation(
    run=greet,
    results=(Greeting,),
    access=Access.OFFLINE,
    title="Greet",
    tool="greet",
)
'''


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a copy of the package that has one operation more."""
    folder = tmp_path_factory.mktemp("planted")
    shutil.copytree(PACKAGE, folder / "tpudeploy", ignore=shutil.ignore_patterns("__pycache__"))
    operations = folder / "tpudeploy" / "operations"
    (operations / "greet.py").write_text(OPERATION, encoding="utf-8")
    table = operations / "__init__.py"
    row = '    "version": "Print the version.",\n'
    text = table.read_text(encoding="utf-8")
    assert row in text
    table.write_text(text.replace(row, f'{row}    "greet": "Greet somebody.",\n'), encoding="utf-8")
    return folder


def run(folder: Path, code: str, *words: str) -> str:
    process = subprocess.run(
        [sys.executable, "-c", code, *words], cwd=folder, capture_output=True, text=True, check=True
    )
    return process.stdout


def tpudeploy(folder: Path, *words: str) -> str:
    return run(folder, "import sys; from tpudeploy.cli.main import main; sys.exit(main(sys.argv[1:]))", *words)


def test_it_is_a_method_of_the_library(planted: Path) -> None:
    code = "import tpudeploy as td; w = td.Workspace.open(); print(w.greet('Ann', times=2)); print([w.greet('Ann')])"
    assert run(planted, code) == "Hello, Ann Ann\n[<Greeting: Hello, Ann>]\n"


def test_it_is_a_command_with_its_options_and_its_help(planted: Path) -> None:
    assert "Greet somebody." in tpudeploy(planted, "--help")
    assert "Greet somebody, as many times as you like." in tpudeploy(planted, "greet", "--help")
    assert tpudeploy(planted, "greet", "Ann", "-times", "2") == "Hello, Ann Ann\n"


def test_json_prints_its_document_and_schema_describes_it(planted: Path) -> None:
    document = json.loads(tpudeploy(planted, "greet", "Ann", "-json"))
    assert document == {"format": "tpudeploy.greeting/1", "words": ["Hello,", "Ann"]}
    schema = json.loads(tpudeploy(planted, "schema", "greeting"))
    assert schema["required"] == ["format", "words"]
    assert schema["properties"]["words"]["description"] == "the greeting, word by word"


def test_it_is_a_tool_of_agents_with_its_arguments_and_its_answer(planted: Path) -> None:
    code = """
import json
from pathlib import Path
from tpudeploy.features.agents.server import _strict_tool
from tpudeploy.features.agents.tools import READING
tool = _strict_tool(next(tool for tool in READING if tool.name == "greet"))
print(json.dumps([tool.description, tool.parameters, tool.output_schema["required"]]))
"""
    description, parameters, promised = json.loads(run(planted, code))
    assert description == "Return a greeting for a name."
    assert parameters["required"] == ["name"]
    assert parameters["properties"]["times"]["minimum"] == 1
    assert promised == ["format", "words"]
