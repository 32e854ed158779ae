"""Mutate the pure heart and count what its tables notice: `make mutation`, or `make mutation MODULES="placement refusals"`.

mutmut makes the mutants and runs them; it reads its settings from `pyproject.toml`. Only the tests of the folders that
are named there are run. The command fails where the score of a folder is below its minimum. A mutant that nobody can kill, because it behaves
like the original, has a row in `[[tool.mutation.equivalent]]` with the reason, and does not count. A row that matches no
surviving mutant is an error.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from mutmut.mutation.data import SourceFileMutationData
from mutmut.mutation.diff_apply import get_diff_for_mutant
from mutmut.stats import status_by_exit_code
from mutmut.utils.file_utils import walk_mutatable_files

MINIMUM = {"boot_log": 90.0, "planning": 90.0, "sizing": 90.0}  # per cent, of each folder
MINIMUM_OF_OTHERS = 95.0
FOLDER = Path("mutants")
KILLED = {"killed", "timeout", "segfault"}


@dataclass(frozen=True)
class Mutant:
    """One changed line of one function, and whether a test failed because of it."""

    module: str
    function: str
    before: str
    after: str
    status: str

    @property
    def identity(self) -> tuple[str, str, str, str]:
        return (self.module, self.function, self.before, self.after)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "modules",
        nargs="*",
        help="the end of a module's name, such as placement or reconcile.placement; every module without it",
    )
    parser.add_argument("--jobs", default="1", help="how many mutants are tested at once")
    arguments = parser.parse_args()
    paths = {module_of(path): path for path in walk_mutatable_files()}
    modules = [name for name in sorted(paths) if not arguments.modules or is_one_of(name, arguments.modules)]
    run_mutants(modules, arguments.jobs)
    mutants = [mutant for name in modules for mutant in mutants_of(paths[name])]
    return report(mutants, equivalent_mutants(modules))


def module_of(path: Path) -> str:
    """Return the name of a module below the package: `reconcile.placement`."""
    return ".".join(path.with_suffix("").parts[1:])


def is_one_of(module: str, endings: list[str]) -> bool:
    return any(f".{module}".endswith(f".{ending}") for ending in endings)


def run_mutants(modules: list[str], jobs: str) -> None:
    """Run mutmut from nothing: it takes a copy that it has for a mutated file, and keeps what each test covers."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    command = ["mutmut", "run", "--max-children", jobs, *(f"tpudeploy.{module}.*" for module in modules)]
    run = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if run.returncode:
        sys.exit(run.stdout)


def mutants_of(path: Path) -> Iterator[Mutant]:
    data = SourceFileMutationData(path=path)
    data.load()
    for name, exit_code in data.exit_code_by_key.items():
        status = status_by_exit_code[exit_code]
        before, after = ("", "") if status in KILLED else changed_lines(name, path)
        function = (
            name.rpartition(".")[2].rpartition("__mutmut_")[0].removeprefix("x_").replace("xǁ", "").replace("ǁ", ".")
        )
        yield Mutant(module=module_of(path), function=function, before=before, after=after, status=status)


def changed_lines(name: str, path: Path) -> tuple[str, str]:
    """Return the changed lines before and after the mutation, each with its white space folded."""
    lines = get_diff_for_mutant(name, path=path).splitlines()[2:]
    before, after = ([line[1:] for line in lines if line.startswith(sign)] for sign in "-+")
    return " ".join(" ".join(before).split()), " ".join(" ".join(after).split())


def equivalent_mutants(modules: list[str]) -> Mapping[tuple[str, str, str, str], str]:
    """Return the reason for each mutant that no test can kill."""
    rows = tomllib.loads(Path("pyproject.toml").read_text()).get("tool", {}).get("mutation", {}).get("equivalent", [])
    return {
        (row["module"], row["function"], row["before"], row["after"]): row["why"]
        for row in rows
        if row["module"] in modules
    }


def report(mutants: list[Mutant], equivalent: Mapping[tuple[str, str, str, str], str]) -> int:
    """Print the survivors and a line for each module. Return 1 where too many survived, or a row is out of date."""
    survivors = [mutant for mutant in mutants if mutant.status not in KILLED]
    unexplained = [mutant for mutant in survivors if mutant.identity not in equivalent]
    outdated = equivalent.keys() - {mutant.identity for mutant in survivors}
    for mutant in unexplained:
        print(f"{mutant.module}.{mutant.function} ({mutant.status})\n  - {mutant.before}\n  + {mutant.after}")
    for row in sorted(outdated):
        print("This row of [[tool.mutation.equivalent]] matches no surviving mutant:", *row, sep="\n  ")
    counts = {
        module: Counter(m.status in KILLED for m in mutants if m.module == module)
        for module in {m.module for m in mutants}
    }
    print(f"\n{'module':36}{'mutants':>8}{'killed':>8}{'equivalent':>11}{'survived':>9}{'score':>8}")
    for module in sorted(counts):
        print_row(module, [m for m in mutants if m.module == module], unexplained)
    print_row("all", mutants, unexplained)
    is_low = False
    for folder in sorted({module.partition(".")[0] for module in counts}):
        score = print_row(f"{folder}/", [m for m in mutants if m.module.startswith(f"{folder}.")], unexplained)
        is_low |= score < MINIMUM.get(folder, MINIMUM_OF_OTHERS)
    return 1 if is_low or outdated else 0


def print_row(name: str, mutants: list[Mutant], unexplained: list[Mutant]) -> float:
    killed = sum(m.status in KILLED for m in mutants)
    survived = sum(m in unexplained for m in mutants)
    score = 100.0 * killed / max(killed + survived, 1)
    print(f"{name:36}{len(mutants):8}{killed:8}{len(mutants) - killed - survived:11}{survived:9}{score:7.1f}%")
    return score


if __name__ == "__main__":
    sys.exit(main())
