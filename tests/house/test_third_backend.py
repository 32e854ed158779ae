"""What a third API through which slices are requested would touch: these files, and no other names one of the two.

A member that is named outside of them is a branch that a row of catalog/backends.py, or a method of the port, replaces.
"""

from __future__ import annotations

import re
from pathlib import Path

from tpudeploy.domain.accelerator import Backend

_MEMBER = re.compile(rf"\bBackend\.(?:{'|'.join(each.name for each in Backend)})\b")
# A value as a program compares it: a hint or an example of a profile has a word beside it.
_VALUE = re.compile(rf"([\"'])(?:{'|'.join(Backend)})\1")

# What a third API adds a row to, or a part of its own beside.
_TOUCHED = {
    "domain/accelerator.py": "the member, and how a generation is at each API",
    "catalog/backends.py": "its row: texts, paths, permissions, what it can do",
    "catalog/generations.py": "the sizes that it serves",
    "config/schema/placement.py": "its name in a profile",
    "config/foreign_keys.py": "what other tools call it",
    "adapters/google/backends.py": "its adapter",
    "adapters/google/listing.py": "the adapter of queued resources",
    "adapters/google/compute_engine/groups.py": "the adapter of groups of instances",
    "adapters/google/compute_engine/instances.py": "the adapter of instances",
    "adapters/google/request_body.py": "what is sent for a slice",
    "adapters/google/offers.py": "how its zones and types are listed",
    "adapters/google/quotas.py": "how its quota is read, and its use",
    "emulator/listings.py": "what the emulated TPU API offers",
    "emulator/compute_engine/offers.py": "what the emulated Compute Engine offers",
    "features/exports/gcloud.py": "its command group",
}
# What is about one API whatever others there are.
_ABOUT_ONE = {
    "catalog/routers.py": "the VM of a router is an instance",
    "features/exports/terraform.py": "Terraform expresses instances alone",
    "features/rehearsal/reads.py": "each fact is of one API",
    "features/rehearsal/requests.py": "each fact is of one API",
    "features/rehearsal/run.py": "each stage requests from one API",
}


def test_only_these_files_name_an_api() -> None:
    product = Path(__file__).parents[2] / "tpudeploy"
    sources = [path for ending in ("py", "j2", "sh") for path in product.rglob(f"*.{ending}")]
    naming = {
        str(path.relative_to(product))
        for path in sources
        if _MEMBER.search(text := path.read_text(encoding="utf-8")) or _VALUE.search(text)
    }
    assert naming == _TOUCHED.keys() | _ABOUT_ONE.keys()


def test_a_third_api_touches_few_files() -> None:
    assert len(_TOUCHED) <= 15  # it only goes down
