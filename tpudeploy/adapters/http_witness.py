"""HttpWitness: what an engine says of itself, asked through the door that the probe found it behind."""

from __future__ import annotations

from tpudeploy.adapters.doors import opened
from tpudeploy.adapters.http_probe import HttpProbe
from tpudeploy.adapters.vllm_client import VllmClient
from tpudeploy.adapters.vllm_facts import facts
from tpudeploy.domain import errors
from tpudeploy.domain.attestation import Told
from tpudeploy.domain.deployment import Deployment, Via
from tpudeploy.domain.slices import Health, Slice


class HttpWitness:
    """See `ports.Witness`. Doors and keys are the probe's."""

    def __init__(self, probe: HttpProbe) -> None:
        self._probe = probe

    def told(self, deployment: Deployment, found: Slice, health: Health) -> Told:
        if not health.serving or health.node_only or health.door == Via.NODE:
            return _silent("it cannot be reached from here" if health.serving else health.detail)
        with opened(Via(health.door), deployment, found) as url:
            if url is None:
                return _silent("the slice has no address")
            try:
                return facts(VllmClient(url, api_key=self._probe.key(deployment)))
            except errors.CloudError as error:
                return _silent(error.message)


def _silent(why: str) -> Told:
    return Told(silent={"api": why, "metrics": why})
