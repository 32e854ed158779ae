"""Probe: is vLLM answering, and through which door? Doors are tried in order; a real completion is the proof."""

from __future__ import annotations

import threading
from collections.abc import Callable

from tpudeploy.adapters import vllm_facts
from tpudeploy.adapters.doors import DOORS, opened
from tpudeploy.adapters.vllm_client import BadAnswer, NoAnswer, VllmClient
from tpudeploy.domain import errors
from tpudeploy.domain.deployment import Deployment, Via
from tpudeploy.domain.slices import BootPhase, BootReport, Health, Slice
from tpudeploy.ports import Clock

API_KEY = "VLLM_API_KEY"
_TOKENS = 16


class HttpProbe:
    """See `ports.Probe`. `secret` reads one secret of a project, for endpoints that want a key.

    `has_iap` False: there are no tunnels (the emulator's machines have none, and gcloud must not be asked for one).
    """

    def __init__(self, clock: Clock, secret: Callable[[str, str], str], *, has_iap: bool, timeout: float = 5.0) -> None:
        self._clock = clock
        self._secret = secret
        self._has_iap = has_iap
        self._timeout = timeout
        self._keys: dict[tuple[str, str], str] = {}
        self._lock = threading.Lock()

    def health(self, deployment: Deployment, found: Slice, report: BootReport | None) -> Health:
        tried: list[str] = []
        for door in DOORS[deployment.health.via]:
            if door is Via.NODE:
                return _by_its_own_word(deployment, found, report, tried)
            if door is Via.IAP and not self._is_worth_a_tunnel(deployment, report):
                continue
            with opened(door, deployment, found) as url:
                if url is None:
                    continue
                health = self._knock(deployment, url, door)
            if health.serving:
                return health
            tried.append(f"{door}: {health.detail}")
        return Health(serving=False, detail="; ".join(tried) or "the slice has no address to knock at")

    def running(self, deployment: Deployment, found: Slice) -> int | None:
        """By its metrics, through the first door that answers."""
        for door in DOORS[deployment.health.via]:
            if door is Via.NODE or (door is Via.IAP and not self._is_worth_a_tunnel(deployment, None)):
                continue
            with opened(door, deployment, found) as url:
                told = None if url is None else vllm_facts.running(VllmClient(url, timeout=self._timeout))
            if told is not None:
                return told
        return None

    def _is_worth_a_tunnel(self, deployment: Deployment, report: BootReport | None) -> bool:
        """A tunnel costs seconds: dug only once the machine says there is something at its end, or where told to."""
        return self._has_iap and (deployment.health.via is Via.IAP or _says_serving(report))

    def key(self, deployment: Deployment) -> str | None:
        """The key this endpoint wants, or None. Raise `errors.Denied` or `errors.Fault`."""
        wanted = next((s.secret for s in deployment.container.secrets if s.variable == API_KEY), None)
        if wanted is None or deployment.project is None:
            return None
        with self._lock:
            place = (deployment.project, wanted)
            if place not in self._keys:
                self._keys[place] = self._secret(*place)
            return self._keys[place]

    def _knock(self, deployment: Deployment, url: str, door: Via) -> Health:
        try:
            client = VllmClient(url, api_key=self.key(deployment), timeout=self._timeout)
            if not client.is_healthy():
                return Health(serving=False, detail="not healthy yet")
            served = client.models()
            model = deployment.model_id if deployment.model_id in served else next(iter(served), deployment.model_id)
            patient = VllmClient(url, api_key=self.key(deployment), timeout=max(60.0, self._timeout))
            answer = patient.complete(model, deployment.health.prompt, max_tokens=_TOKENS, now=self._clock.now)
        except (NoAnswer, BadAnswer, errors.CloudError) as failure:
            return Health(serving=False, detail=str(failure))
        return Health(serving=True, detail="", door=door, url=public_url(deployment, url, door), answer=answer.text)


def public_url(deployment: Deployment, url: str, door: Via) -> str:
    """What clients are told: the address, or for a tunnel the one on the machine itself."""
    return f"http://127.0.0.1:{deployment.container.port}" if door is Via.IAP else url


def _says_serving(report: BootReport | None) -> bool:
    return report is not None and report.phase is BootPhase.SERVING and bool(report.answer)


def _by_its_own_word(deployment: Deployment, found: Slice, report: BootReport | None, tried: list[str]) -> Health:
    url = f"http://{found.external_ip or found.internal_ip or found.name}:{deployment.container.port}"
    if report is None or not _says_serving(report):
        return Health(serving=False, detail="; ".join([*tried, "the machine has not reported a completion"]))
    unreached = deployment.health.via is Via.AUTO
    hint = how_to_reach(deployment, found) if unreached else ""
    return Health(serving=True, detail=hint, door=Via.NODE, url=url, answer=report.answer, node_only=unreached)


def how_to_reach(deployment: Deployment, found: Slice) -> str:
    """The firewall rule or the tunnel that opens the way."""
    port, name = deployment.container.port, deployment.network.network or "default"
    if found.external_ip is not None:
        return (
            f"Open the port: gcloud compute firewall-rules create {deployment.name}-vllm --network={name} "
            f"--allow=tcp:{port} --source-ranges=YOUR_RANGE"
        )
    return (
        f"Use a tunnel: gcloud alpha compute tpus queued-resources ssh {found.name} --zone={found.zone} "
        f"--node=all --worker=0 --tunnel-through-iap -- -N -L {port}:127.0.0.1:{port}"
    )
