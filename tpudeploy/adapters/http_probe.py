"""Probe a vLLM server by the network routes in order. Only a real answer of its task counts as serving."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from http import HTTPStatus

from tpudeploy.adapters import vllm_facts
from tpudeploy.adapters.http_budget import within
from tpudeploy.adapters.routes import ROUTES, open_route
from tpudeploy.adapters.vllm_client import BadAnswer, NoAnswer, VllmClient
from tpudeploy.domain import errors
from tpudeploy.domain.deployment import Deployment, Via
from tpudeploy.domain.slices import BootPhase, BootReport, Health, ServerLoad, Slice
from tpudeploy.domain.state import Attempt
from tpudeploy.domain.task import TASKS
from tpudeploy.domain.verify import EngineReport
from tpudeploy.node.node_facts import CHANGE_KEY, SPEC_KEY
from tpudeploy.ports import Clock

_TOKENS = 16
_ANSWER_SECONDS = 60.0  # to the next piece: the first answer after a start may compile
# All that one observation asks of a server, by every route. A server that is slower does not serve yet.
_HEALTH_SECONDS, _FACTS_SECONDS = 45.0, 10.0
_PROOF_SECONDS = 600.0  # for which an answer counts: a server that hangs is noticed within that time
_STUCK_SECONDS = 60.0  # for which requests are under way without a token


@dataclass(frozen=True, slots=True, kw_only=True)
class _Proof:
    """An answer of a server: when, its text, and the progress of its requests since, by its metrics."""

    at: float
    answer: str
    progress: vllm_facts.RequestCounts
    moved_at: float


class HttpProbe:
    """See `ports.Probe`. `secret` reads one secret of a project, for endpoints that require a key.

    `has_iap` is False for the emulator: its machines have no tunnels, and gcloud must not be called.
    """

    def __init__(self, clock: Clock, secret: Callable[[str, str], str], *, has_iap: bool, timeout: float = 5.0) -> None:
        self._clock = clock
        self._secret = secret
        self._has_iap = has_iap
        self._timeout = timeout
        self._keys: dict[tuple[str, str], str] = {}
        self._proofs: dict[tuple[str, ...], _Proof] = {}  # by the server
        self._lock = threading.Lock()

    def health(
        self,
        deployment: Deployment,
        slice_: Slice,
        report: Callable[[], BootReport | None],
        *,
        is_settled: bool = False,
    ) -> Health:
        server = (slice_.name, *(slice_.metadata.get(key, "") for key in (SPEC_KEY, CHANGE_KEY)))
        if not is_settled:
            self._forget(server)
        with within(_HEALTH_SECONDS):
            return self._health(deployment, slice_, report, server)

    def _health(
        self,
        deployment: Deployment,
        slice_: Slice,
        report: Callable[[], BootReport | None],
        server: tuple[str, ...],
    ) -> Health:
        failures: list[str] = []
        silences: list[str] = []
        for route in ROUTES[deployment.health.via]:
            if route is Via.NODE:
                health = _reported_health(deployment, slice_, report(), failures)
                return replace(health, silence="; ".join(silences)) if health.serving else health
            if route is Via.IAP and not self._may_use_tunnel(deployment.health.via, report):
                continue
            with open_route(route, slice_, project=deployment.project, port=deployment.container.port) as url:
                if url is None:
                    continue
                health, is_certain = self._try_answer(deployment, url, route, server)
            if is_certain:
                return health
            failures.append(f"{route}: {health.detail}")
            silences += failures[-1:] if health.silence else []
        return Health(serving=False, detail="; ".join(failures) or "the slice has no address")

    def health_at(self, deployment: Deployment, url: str) -> Health:
        server = (deployment.name, url)
        self._forget(server)
        with within(_HEALTH_SECONDS):
            return self._try_answer(deployment, url, Via.EXTERNAL, server)[0]

    def _forget(self, server: tuple[str, ...]) -> None:
        with self._lock:
            self._proofs.pop(server, None)

    def _proof(self, server: tuple[str, ...], deployment: Deployment, client: VllmClient) -> _Proof | None:
        """Return the last answer of a server if it still counts: nothing shows that it started again or hangs."""
        with self._lock:
            proof = self._proofs.pop(server, None)
        now = self._clock.now()
        if proof is None or not proof.at <= now < proof.at + _PROOF_SECONDS:
            return None
        progress = _progress(deployment, client)
        if progress.ended < proof.progress.ended:
            return None
        is_moving = progress.running == 0 or progress.tokens != proof.progress.tokens
        proof = replace(proof, progress=progress, moved_at=now if is_moving else proof.moved_at)
        if now >= proof.moved_at + _STUCK_SECONDS:
            return None
        return self._keep(server, proof)

    def _keep(self, server: tuple[str, ...], proof: _Proof) -> _Proof:
        with self._lock:
            # What no longer counts goes: a process that watches for weeks meets many servers.
            oldest = self._clock.now() - _PROOF_SECONDS
            self._proofs = {name: each for name, each in self._proofs.items() if each.at > oldest} | {server: proof}
        return proof

    def load(self, attempt: Attempt, slice_: Slice) -> ServerLoad:
        via = Via(str(attempt.spec.get("health.via", Via.AUTO)))
        for route in ROUTES[via]:
            if route is Via.NODE or (route is Via.IAP and not self._may_use_tunnel(via, _no_report)):
                continue
            with open_route(route, slice_, project=attempt.project, port=attempt.port) as url:
                load = None if url is None else vllm_facts.load(VllmClient(url, timeout=self._timeout))
            if load is not None:
                return load
        return ServerLoad()

    def _may_use_tunnel(self, via: Via, report: Callable[[], BootReport | None]) -> bool:
        """Return whether to open a tunnel. It takes seconds, so the profile or a report must justify it."""
        return self._has_iap and (via is Via.IAP or _says_serving(report()))

    def key(self, deployment: Deployment) -> str | None:
        """Return the API key of this endpoint, or None if it requires none. Raise `errors.Denied` or `errors.Fault`."""
        reference = deployment.container.api_key
        if reference is None or deployment.project is None:
            return None
        with self._lock:
            key = (deployment.project, reference.secret)
            if key not in self._keys:
                self._keys[key] = self._secret(*key)
            return self._keys[key]

    def _try_answer(self, deployment: Deployment, url: str, route: Via, server: tuple[str, ...]) -> tuple[Health, bool]:
        """Return the health by one route, and whether it is certain, so that no other route can know better.

        A server that is reached, and answers 200 with something else than its task's reply, does not serve: neither the
        firewall nor a queue does that, and what the machine reported of its boot is older. One that is reached, and
        refuses, stalls or redirects, may be busy: whether it serves is not observed.
        """
        try:
            with VllmClient(url, api_key=self.key(deployment), timeout=self._timeout, probes=True) as client:
                refusal = client.refusal_of_health()
                if refusal is not None:
                    why = f"not healthy: /health answers {refusal}"
                    self._forget(server)
                    return Health(serving=False, detail="not healthy yet", silence=why), False
                reached = public_url(deployment, url, route)
                proof = self._proof(server, deployment, client)
                if proof is not None:
                    return Health(serving=True, detail="", door=route, url=reached, answer=proof.answer), True
                models, model = client.models(), deployment.model_id
                if model not in models:
                    model = next(iter(models), model)
                client.wait_up_to(max(_ANSWER_SECONDS, self._timeout))
                task, prompt = deployment.task.task, deployment.health.prompt
                answer = client.answer(task, model, prompt, max_tokens=_TOKENS, now=self._clock.now)
                now, progress = self._clock.now(), _progress(deployment, client)
                self._keep(server, _Proof(at=now, answer=answer.text, progress=progress, moved_at=now))
        except BadAnswer as failure:
            is_certain = failure.status == HTTPStatus.OK
            return Health(serving=False, detail=str(failure), silence="" if is_certain else str(failure)), is_certain
        except NoAnswer as failure:
            # A tunnel accepts each connection, and closes that to a port without a server.
            is_reached = failure.reached and not (failure.closed and route is Via.IAP)
            return Health(serving=False, detail=str(failure), silence=str(failure) if is_reached else ""), False
        except errors.CloudError as failure:
            return Health(serving=False, detail=str(failure)), False
        return Health(serving=True, detail="", door=route, url=reached, answer=answer.text), True


def _progress(deployment: Deployment, client: VllmClient) -> vllm_facts.RequestCounts:
    """Return the progress of a server; none of a router, which passes on the metrics of any one of its replicas."""
    return vllm_facts.request_counts(client) if deployment.accelerator.generation else vllm_facts.RequestCounts()


def public_url(deployment: Deployment, url: str, route: Via) -> str:
    """Return the URL for clients. For a tunnel, it is the URL on the machine itself."""
    return f"http://127.0.0.1:{deployment.container.port}" if route is Via.IAP else url


def _no_report() -> None:
    """Return no report: none is read for this."""


def _says_serving(report: BootReport | None) -> bool:
    return report is not None and report.phase is BootPhase.SERVING and bool(report.answer)


def _reported_health(deployment: Deployment, slice_: Slice, report: BootReport | None, failures: list[str]) -> Health:
    noun = TASKS[deployment.task.task].noun
    url = f"http://{slice_.external_ip or slice_.internal_ip or slice_.name}:{deployment.container.port}"
    if report is None or not _says_serving(report):
        return Health(
            serving=False,
            detail="; ".join([*failures, f"the machine has not reported {noun}"]),
        )
    is_unreached = deployment.health.via is Via.AUTO
    hint = how_to_reach(deployment, slice_) if is_unreached else ""
    return Health(serving=True, detail=hint, door=Via.NODE, url=url, answer=report.answer, node_only=is_unreached)


def how_to_reach(deployment: Deployment, slice_: Slice) -> str:
    """Return the command that opens a route: a firewall rule, or a tunnel for a slice without an external address."""
    port, name = deployment.container.port, deployment.network.network or "default"
    if slice_.external_ip is not None:
        return (
            f"Open the port: gcloud compute firewall-rules create {deployment.name}-vllm --network={name} "
            f"--allow=tcp:{port} --source-ranges=YOUR_RANGE"
        )
    return (
        f"Use a tunnel: gcloud alpha compute tpus queued-resources ssh {slice_.name} --zone={slice_.zone} "
        f"--node=all --worker=0 --tunnel-through-iap -- -N -L {port}:127.0.0.1:{port}"
    )


class HttpEngineSource:
    """See `ports.EngineSource`. Routes and keys are those of the probe."""

    def __init__(self, probe: HttpProbe) -> None:
        self._probe = probe

    def read_facts(self, deployment: Deployment, slice_: Slice, health: Health) -> EngineReport:
        if not health.serving or health.node_only or health.door == Via.NODE:
            return _all_silent(
                health.silence or ("it cannot be reached from here" if health.serving else health.detail)
            )
        with open_route(Via(health.door), slice_, project=deployment.project, port=deployment.container.port) as url:
            if url is None:
                return _all_silent("the slice has no address")
            try:
                with within(_FACTS_SECONDS), VllmClient(url, api_key=self._probe.key(deployment)) as client:
                    return vllm_facts.facts(client)
            except errors.CloudError as error:
                return _all_silent(error.message)


def _all_silent(why: str) -> EngineReport:
    return EngineReport(silent={"api": why, "metrics": why})
