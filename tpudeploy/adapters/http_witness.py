"""HttpWitness: the facts that an engine reports, read by the route on which the probe reached it."""

from __future__ import annotations

from tpudeploy.adapters.http_probe import HttpProbe
from tpudeploy.adapters.routes import open_route
from tpudeploy.adapters.vllm_client import VllmClient
from tpudeploy.adapters.vllm_facts import facts
from tpudeploy.domain import errors
from tpudeploy.domain.attestation import Told
from tpudeploy.domain.deployment import Deployment, Via
from tpudeploy.domain.slices import Health, Slice


class HttpWitness:
    """See `ports.Witness`. Routes and keys are those of the probe."""

    def __init__(self, probe: HttpProbe) -> None:
        self._probe = probe

    def read_facts(self, deployment: Deployment, slice_: Slice, health: Health) -> Told:
        if not health.serving or health.node_only or health.door == Via.NODE:
            return _silent("it cannot be reached from here" if health.serving else health.detail)
        with open_route(Via(health.door), deployment, slice_) as url:
            if url is None:
                return _silent("the slice has no address")
            try:
                return facts(VllmClient(url, api_key=self._probe.key(deployment)))
            except errors.CloudError as error:
                return _silent(error.message)


def _silent(why: str) -> Told:
    return Told(silent={"api": why, "metrics": why})
