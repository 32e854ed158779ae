"""Every state that Google's own documents name has its phase here, and none beside."""

from __future__ import annotations

import json
from pathlib import Path

import googleapiclient
from google.cloud import tpu_v2

from tpudeploy.adapters.google import states


def test_every_state_of_a_queued_resource_has_a_phase() -> None:
    folder = Path(googleapiclient.__file__).parent / "discovery_cache" / "documents"
    document = json.loads((folder / "tpu.v2alpha1.json").read_text(encoding="utf-8"))
    published = document["schemas"]["QueuedResourceState"]["properties"]["state"]["enum"]
    assert set(published) == set(states.QUEUED_RESOURCE)


def test_every_state_of_an_instance_has_a_phase() -> None:
    folder = Path(googleapiclient.__file__).parent / "discovery_cache" / "documents"
    document = json.loads((folder / "compute.v1.json").read_text(encoding="utf-8"))
    published = document["schemas"]["Instance"]["properties"]["status"]["enum"]
    assert set(published) == set(states.INSTANCE)


def test_every_state_of_a_node_has_a_phase() -> None:
    published = {state.name for state in tpu_v2.Node.State}  # type: ignore[attr-defined]  # an enum; its stub does not say so
    assert published == set(states.NODE)
