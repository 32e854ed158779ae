"""Benching: what can be measured in a workspace, measured. Wires the load drivers to the engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from http import HTTPStatus

from tpudeploy import loading
from tpudeploy.adapters import ids, vllm_facts
from tpudeploy.adapters.vllm_client import BadAnswer, NoAnswer, VllmClient
from tpudeploy.benchmark import foreign
from tpudeploy.benchmark import subject as of
from tpudeploy.benchmark.foreign.reading import Result
from tpudeploy.benchmark.prompts import SIZES
from tpudeploy.benchmark.subject import Target
from tpudeploy.boot_log.settings import effective_settings
from tpudeploy.config.profile import Profile
from tpudeploy.domain.benchmark import Bounds, Cell, Driver, Ended, Run, Sweep, Turn
from tpudeploy.domain.errors import CloudError, QueryFailed, StateError, UsageError
from tpudeploy.domain.load import Point
from tpudeploy.domain.names import address
from tpudeploy.domain.state import Attempt, State
from tpudeploy.engine.bench import Bench, bench, imported
from tpudeploy.node.serving import served_model
from tpudeploy.ports import LoadDriver
from tpudeploy.version import VERSION
from tpudeploy.workspace import Workspace

_FLEETING = {"process_bytes"}  # changes from look to look
_UNBOUND = Bounds()


class Benching:
    """Runs are kept in `workspace.runs`."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._driver: LoadDriver | None = None

    def replicas(self, profile: Profile) -> tuple[str, ...]:
        """The addresses of what can be measured of a profile: of its replicas, or the deployment's where it is one."""
        count, name = self._workspace.deployment(profile, script=False).replicas, profile.spec.name
        return (name,) if count == 1 else tuple(address(name, index) for index in range(count))

    def deployment(self, profile: Profile, replica: str = "") -> Target:
        """A deployment's published endpoint, with all that a benchmark of it is to be known by.

        `replica` is the address of the one of several that is wanted, whether or not clients are sent to it.

        Raise `errors.QueryFailed` where it has none or does not answer, `errors.UsageError` where what serves is not
        what the profile says.
        """
        workspace = self._workspace
        deployment = workspace.deployment(profile, script=False)
        published = workspace.endpoint(deployment.name)
        if published is None:
            raise QueryFailed(f"{deployment.name} has no endpoint yet.", hint="Run `tpudeploy apply` first.")
        url, key = str(published["url"]), workspace.probe.key(deployment)
        state = workspace.states.read(deployment.name).state
        attempt = of.serving_attempt(state)
        if replica not in {"", deployment.name}:
            url, attempt = self._replica(profile, state, replica)
        if attempt is not None and not of.runs_as_declared(deployment, attempt):
            hint = "Run `tpudeploy apply` first, or measure the address as it is: --url."
            raise UsageError(f"What serves as {replica or deployment.name} is not what its profile says.", hint=hint)
        engine, _ = _engine(url, key, served_model(deployment))
        told = {**effective_settings(self._log(deployment.name, attempt)), **engine}
        subject = of.of_deployment(deployment, attempt, url, told)
        if deployment.replicas > 1 and attempt is not None:
            subject = replace(subject, replica=workspace.addresses(deployment.name).get(attempt.name, ""))
        line = of.roofline(subject, deployment)
        is_emulated = VllmClient(url, api_key=key).is_stand_in()
        return Target(subject=subject, budget=deployment.budget, roofline=line, api_key=key, is_emulated=is_emulated)

    def _replica(self, profile: Profile, state: State | None, replica: str) -> tuple[str, Attempt | None]:
        """Where this replica answers, and its slice. Raise `errors.QueryFailed` where it does not."""
        (status,) = self._workspace.status([profile])
        shown = [each for each in status.replicas if each.address == replica]
        for each in shown:
            if each.serving and each.url:
                attempts = () if state is None else state.attempts
                return each.url, next((a for a in attempts if a.name == each.slice_name), None)
        why = next((f"{each.state}{f', {each.detail}' if each.detail else ''}" for each in shown), "it does not exist")
        raise QueryFailed(f"{replica} does not serve: {why}.", hint="See `tpudeploy status`.")

    def address(
        self,
        url: str,
        *,
        model: str = "",
        type: str | None = None,  # noqa: A002 - the command line's word
        usd_per_hour: float | None = None,
        api_key: str | None = None,
    ) -> Target:
        """An address, whoever runs it. `model` is the served name, the first one unless given; `type` the slice.

        Raise `errors.QueryFailed` where it does not answer, `errors.UsageError` for a model or a type there is not.
        """
        kind = None if type is None else loading.accelerator_type(type)
        engine, root = _engine(url, api_key, model)
        named = model or engine["served_model"].partition("\n")[0]
        subject = of.of_address(url, named, engine, root=root, kind=kind, usd_per_hour=usd_per_hour)
        is_emulated = VllmClient(url, api_key=api_key).is_stand_in()
        return Target(subject=subject, roofline=of.roofline(subject, None), api_key=api_key, is_emulated=is_emulated)

    def check_client(self, target: Target, driver: Driver, *, tokenizer: str = "") -> None:
        """Raise `errors.UsageError` where the load client is not installed, or cannot measure this target."""
        named = tokenizer or target.subject.model_id
        _driver(driver, target.subject.url, named, target.api_key).check()

    def check(self, profile: Profile, driver: Driver, *, tokenizer: str = "") -> None:
        """Raise `errors.UsageError` where the load client is not installed, or cannot measure this endpoint."""
        deployment = self._workspace.deployment(profile, script=False)
        published = self._workspace.endpoint(deployment.name) or {}
        found = _driver(driver, str(published.get("url", "")), tokenizer, self._workspace.probe.key(deployment))
        found.check()

    def run(
        self,
        target: Target,
        sweep: Sweep | None = None,
        *,
        resume: str | None = None,
        bounds: Bounds = _UNBOUND,
        driver: Driver = Driver.TPUDEPLOY,
        tokenizer: str = "",
        turn: Turn | None = None,
        on_point: Callable[[Run, Point], None] | None = None,
        on_cell: Callable[[Run, Cell], None] | None = None,
    ) -> Run:
        """Measure every cell of `sweep`, or those that are left of the run `resume`; kept after each.

        `on_point` hears of each cell before it is asked for, `on_cell` once it has ended. `tokenizer` is for drivers
        that make their prompts of words: a model id of the hub, or a folder. `turn` is that of an A/B.

        Raise `errors.UsageError` where the run is of another subject or driver, or the load client is not installed;
        `errors.Interrupted` once `stop` was called, `errors.BenchFailed` where another's client fails: with what was
        measured kept.
        """
        run = self._begun(target, sweep, driver, turn) if resume is None else self._resumed(target, resume, driver)
        client = VllmClient(target.subject.url, api_key=target.api_key)
        named = tokenizer or target.subject.model_id
        self._driver = _driver(driver, target.subject.url, named, target.api_key)
        # Other clients make their prompts of words, by the model's tokenizer.
        vocabulary = vllm_facts.vocabulary(client, run.subject.model, SIZES) if driver is Driver.TPUDEPLOY else None
        return bench(
            run,
            Bench(
                driver=self._driver,
                runs=self._workspace.runs,
                clock=self._workspace.clock,
                lookups=lambda: vllm_facts.lookups(client),
                begins=on_point if on_point is not None else lambda _run, _point: None,
                tell=on_cell if on_cell is not None else lambda _run, _cell: None,
                bounds=bounds,
                budget=target.budget,
                roofline=target.roofline,
                vocabulary=vocabulary,
            ),
        )

    def imports(
        self,
        files: Mapping[str, bytes],
        *,
        model: str = "",
        type: str | None = None,  # noqa: A002 - the command line's word
        usd_per_hour: float | None = None,
    ) -> Run:
        """The results of another client as a run, kept: of one file, or of several that it wrote of one server.

        Raise `errors.UsageError` for a file that nobody here can read, or that does not go with the others.
        """
        kind = None if type is None else loading.accelerator_type(type)
        read = {name: _foreign(name, content) for name, content in files.items()}
        drivers = {driver for driver, _ in read.values()}
        results = [result for _, found in read.values() for result in found]
        models = {model or result.model for result in results}
        if len(drivers) != 1 or len(models) != 1:
            what = "drivers" if len(drivers) > 1 else "models"
            raise UsageError(f"These files are of several {what}.", hint="Import them one by one.")
        twice = [point for point, count in Counter(result.point for result in results).items() if count > 1]
        if twice:
            raise UsageError(f"Two results are of the same cell: {_told(twice[0])}.", hint="Import them one by one.")
        subject = of.of_address("", models.pop(), {}, kind=kind, usd_per_hour=usd_per_hour)
        begun = self._begun(Target(subject=subject), Sweep(points=tuple(r.point for r in results)), drivers.pop())
        run = replace(
            begun,
            cells=imported(results, of.roofline(subject, None)),
            ended=Ended.COMPLETE,
            source=", ".join(files),
            source_hash=f"sha256:{sha256(b''.join(files.values())).hexdigest()}",
        )
        self._workspace.runs.keep(run)
        return run

    def stop(self) -> None:
        """End the run, from whichever thread. What was measured is kept."""
        self._workspace.stop()
        if self._driver is not None:
            self._driver.stop()

    def _is_emulated(self, target: Target) -> bool:
        """Either is enough: a cloud that is emulated, or a server that says it is a stand-in."""
        return self._workspace.is_emulated or target.is_emulated

    def _log(self, name: str, attempt: Attempt | None) -> str:
        """The boot log of this slice; "" where it cannot be read: the endpoint speaks for itself."""
        if attempt is None:
            return ""
        try:
            return "\n".join(self._workspace.logs(name).get(attempt.name, ()))
        except (CloudError, StateError):
            return ""

    def _begun(self, target: Target, sweep: Sweep | None, driver: Driver, turn: Turn | None = None) -> Run:
        if sweep is None or not sweep.points:
            raise UsageError("A sweep without cells measures nothing.")
        now = self._workspace.clock.now()
        subject = replace(target.subject, is_emulated=self._is_emulated(target))
        return Run(
            id=ids.new(now),
            began_at=now,
            version=VERSION,
            driver=driver,
            subject=subject,
            sweep=sweep,
            turn=turn,
        )

    def _resumed(self, target: Target, id: str, driver: Driver) -> Run:  # noqa: A002 - the record's word
        run = self._workspace.runs.find(id)
        if run.driver is not driver:
            raise UsageError(f"Run {run.id} was driven by {run.driver}.", hint=f"Go on with --driver {run.driver}.")
        now = replace(target.subject, is_emulated=self._is_emulated(target))
        others = of.differences(run.subject, now)
        if others:
            told = "; ".join(
                f"{name.replace('_', ' ')} was {getattr(run.subject, name) or 'unknown'}, "
                f"is {getattr(now, name) or 'unknown'}"
                for name in others
            )
            raise UsageError(
                f"Run {run.id} measured something else: {told}.", hint="Begin another: leave out --resume."
            )
        return run


def _driver(driver: Driver, url: str, tokenizer: str, key: str | None) -> LoadDriver:
    if driver is Driver.TPUDEPLOY:
        from tpudeploy.adapters.load.client import LoadClient

        return LoadClient(url, api_key=key)
    from tpudeploy.adapters.load.installed import Installed

    return Installed(driver, url, tokenizer=tokenizer, api_key=key)


def _foreign(name: str, content: bytes) -> tuple[Driver, Sequence[Result]]:
    try:
        return foreign.read(content.decode())
    except ValueError as cause:
        raise UsageError(f"`{name}` cannot be imported: {cause}.") from cause


def _told(point: Point) -> str:
    return f"{point.concurrency} streams, {point.context_tokens} tokens in, {point.output_tokens} out"


def _engine(url: str, key: str | None, model: str) -> tuple[Mapping[str, str], str]:
    """What the engine says of itself, and the model behind the served name. Raise as `Benching.address`."""
    client = VllmClient(url, api_key=key)
    try:
        cards = client.described()
    except (NoAnswer, BadAnswer) as cause:
        wants_key = isinstance(cause, BadAnswer) and cause.status == HTTPStatus.UNAUTHORIZED
        hint = "It wants a key: set VLLM_API_KEY." if wants_key else ""
        raise QueryFailed(f"{url} did not answer: {cause}.", hint=hint) from cause
    names = [str(card.get("id", "")) for card in cards]
    if not names or (model and model not in names):
        raise UsageError(
            f"{url} does not serve `{model}`." if names else f"{url} serves no model.",
            hint=f"It serves {', '.join(names)}." if names else "",
        )
    root = next(str(card.get("root") or "") for card in cards if card.get("id") == (model or names[0]))
    told = vllm_facts.facts(client)
    return {name: value for name, value in {**told.cache, **told.api}.items() if name not in _FLEETING}, root
