"""What is shipped is found, from a checkout and from inside a zip."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

from real_time import DEADLINE

from tpudeploy.adapters import assets

ROOT = Path(__file__).parents[2]


def test_a_checkout_gives_every_template_and_profile_by_name() -> None:
    assert {"startup.sh.j2", "boot/report.sh"} <= set(assets.templates())
    assert set(assets.profiles()) == {path.stem for path in (ROOT / "profiles").glob("*.yaml")}


def test_a_zip_gives_the_same(tmp_path: Path) -> None:
    archive = tmp_path / "tpudeploy.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for module in (ROOT / "tpudeploy").rglob("*.py"):
            file.write(module, module.relative_to(ROOT))
        for shipped in [*(ROOT / "templates").rglob("*.*"), *(ROOT / "profiles").glob("*.*")]:
            file.write(shipped, f"tpudeploy/_data/{shipped.relative_to(ROOT)}")
    program = (
        "import sys, json; sys.path.insert(0, sys.argv[1]); from tpudeploy.adapters import assets; "
        "assert sys.argv[1] in assets.__file__; print(json.dumps([assets.templates(), assets.profiles()]))"
    )
    process = subprocess.run(
        [sys.executable, "-I", "-c", program, archive], capture_output=True, text=True, timeout=DEADLINE, check=True
    )
    assert json.loads(process.stdout) == [assets.templates(), assets.profiles()]
