"""Benchmarks of a workspace: what can be measured, a sweep over it cell by cell, and results of other clients."""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar
from urllib.parse import urlsplit

from tpudeploy import catalog, loading
from tpudeploy.adapters import records, vllm_facts
from tpudeploy.adapters.vllm_client import BadAnswer, NoAnswer, VllmClient
from tpudeploy.boot_log.settings import effective_settings
from tpudeploy.config.profile import Profile
from tpudeploy.domain.accelerator import AcceleratorType
from tpudeploy.domain.errors import CloudError, Interrupted, QueryFailed, StateError, UsageError
from tpudeploy.domain.metrics import Counters
from tpudeploy.domain.names import address
from tpudeploy.domain.router import Router
from tpudeploy.domain.state import Attempt
from tpudeploy.domain.task import TASKS, Task, is_absent_route
from tpudeploy.features.benchmark import foreign, gke_quickstart, subject
from tpudeploy.features.benchmark.cells import contradictions, feasible, judge_cell
from tpudeploy.features.benchmark.drivers import load_driver
from tpudeploy.features.benchmark.foreign import ForeignCell, ForeignFile
from tpudeploy.features.benchmark.offer import Offer, Point
from tpudeploy.features.benchmark.ports import LoadDriver, RunStore
from tpudeploy.features.benchmark.prompts import SIZES
from tpudeploy.features.benchmark.roofline import Roofline, roofline
from tpudeploy.features.benchmark.run import (
    Bounds,
    Cell,
    CellStatus,
    Driver,
    Ended,
    Evidence,
    Run,
    Subject,
    Sweep,
    Turn,
)
from tpudeploy.features.benchmark.store import stored_runs
from tpudeploy.features.benchmark.subject import Target
from tpudeploy.node.serving import served_model
from tpudeploy.operations.endpoint import (
    Endpoint,
    check_declared,
    no_answer,
    published_endpoint,
    require_completions,
    serving_attempt,
)
from tpudeploy.sizing.serve import ServingAnswer
from tpudeploy.text.words import some
from tpudeploy.version import VERSION
from tpudeploy.workspace import Workspace

_VOLATILE = {"process_bytes"}  # facts that differ at every reading
_ROUNDS = 3  # measured requests of each stream: with fewer, the window would not be steady
_FEWEST_REQUESTS = 16  # with fewer, a percentile has no meaning
_STEADY_SECONDS = 2.0  # the shortest window: in a few milliseconds, its edges would be most of it
_HOUR = 3600.0
_UNBOUND = Bounds()
_MOST_SERVERS = 500  # of a table: each becomes a run
_T = TypeVar("_T")


class Benchmarks:
    """Measures deployments and addresses. Runs are kept in `.tpudeploy/runs`.

    `prove` raises if this process may not write runs any more, because another one has taken over its lock.
    """

    def __init__(self, workspace: Workspace, prove: Callable[[], None] = lambda: None) -> None:
        self._workspace = workspace
        self._prove = prove

    def replica(self, profile: Profile, index: int) -> str:
        """Return the address of a profile's replica. Raise `errors.UsageError` if there are not as many."""
        name, indexes = profile.name, self._workspace.replica_indexes(profile)
        if index not in indexes:
            addresses = ", ".join(address(name, each) for each in indexes)
            raise UsageError(f"{name} has no replica {index}.", hint=f"There are: {addresses}.")
        return address(name, index)

    def deployment(self, profile: Profile, replica: str = "") -> Target:
        """Return the published endpoint of a deployment as a target, or its replica at the address `replica`.

        Behind a router, all replicas that take requests are one target. Raise `errors.QueryFailed` where it has no
        endpoint or does not answer, `errors.UsageError` where a server is not the one that the profile declares.
        """
        workspace = self._workspace
        require_completions(workspace.deployment(profile, script=False), "there are no tokens per second to measure")
        endpoint = published_endpoint(workspace, profile)
        if endpoint.router is not None and not replica:
            return self._behind_router(endpoint, endpoint.router)
        deployment, key, url, attempt = endpoint.deployment, endpoint.api_key, endpoint.url, endpoint.attempt
        has_several = len(workspace.replica_indexes(profile)) > 1
        if not has_several:
            replica = ""
        if replica:
            url, attempt = self._replica(profile, endpoint, replica)
        hint = "Run `tpudeploy apply` first, or measure the address as it is: --url."
        check_declared(deployment, attempt, replica or deployment.name, hint=hint)
        if deployment.task.task is Task.UNKNOWN:
            _check_completes(url, key, served_model(deployment))
        reported, _ = _engine(url, key, served_model(deployment))
        engine = {**effective_settings(self._boot_log(deployment.name, attempt)), **reported}
        measured = subject.of_deployment(deployment, [] if attempt is None else [attempt], url, engine)
        if has_several and attempt is not None:
            measured = replace(measured, replica=workspace.addresses(deployment.name).get(attempt.name, ""))
        return Target(
            subject=measured,
            budget=deployment.budget,
            roofline=roofline(measured, deployment),
            api_key=key,
            is_emulated=VllmClient(url, api_key=key).is_stand_in(),
        )

    def _behind_router(self, endpoint: Endpoint, router: Router) -> Target:
        """Return the replicas behind a router as one target, which is reached at the router's address.

        What the engine says of itself is read from the first replica: all of them run the declared server.
        """
        deployment, key, servers = endpoint.deployment, endpoint.api_key, endpoint.servers
        if not servers:
            raise QueryFailed(f"No replica of {deployment.name} takes requests.", hint="See `tpudeploy status`.")
        for server in servers:
            hint = "Run `tpudeploy apply` first, or measure a replica by itself: --replica."
            check_declared(deployment, server.attempt, server.address, hint=hint)
        try:
            VllmClient(router.url, api_key=key).described()
        except NoAnswer as cause:
            hint = f"The router does not run, or cannot be reached from here: see `tpudeploy router {deployment.name}`."
            raise no_answer(router.url, cause, hint=f"{hint} --replica 0 measures one replica without it.") from cause
        except BadAnswer:
            # A router may answer this path itself. Each request for a completion shows whether it passes them on.
            pass
        first = servers[0]
        if deployment.task.task is Task.UNKNOWN:
            _check_completes(first.url, key, served_model(deployment))
        reported, _ = _engine(first.url, key, served_model(deployment))
        engine = {**effective_settings(self._boot_log(deployment.name, first.attempt)), **reported}
        attempts = [server.attempt for server in servers if server.attempt is not None]
        addresses = tuple(server.address for server in servers)
        measured = subject.of_deployment(deployment, attempts, router.url, engine, replicas=addresses)
        return Target(
            subject=measured,
            servers={server.address: server.url for server in servers},
            budget=deployment.budget,
            roofline=roofline(measured, deployment),
            api_key=key,
            is_emulated=VllmClient(first.url, api_key=key).is_stand_in(),
        )

    def _replica(self, profile: Profile, endpoint: Endpoint, replica: str) -> tuple[str, Attempt | None]:
        """Return the address of a replica's server, and its slice. Raise `errors.QueryFailed` if it does not serve."""
        (status,) = self._workspace.status([profile])
        replica_status = next((each for each in status.replicas if each.address == replica), None)
        if replica_status is not None and replica_status.serving and replica_status.url:
            attempts = () if endpoint.state is None else endpoint.state.attempts
            return replica_status.url, next((a for a in attempts if a.name == replica_status.slice_name), None)
        facts = () if replica_status is None else (replica_status.state, replica_status.detail)
        why = ", ".join(filter(None, facts)) or "it does not exist"
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
        """Return any address as a target. `model` is the served name (default: the first), `type` its slice.

        Raise `errors.QueryFailed` where it does not answer, `errors.UsageError` for what is not an address, and for an
        unknown model or type.
        """
        url = _server_url(url)
        kind = None if type is None else loading.accelerator_type(type)
        engine, root = _engine(url, api_key, model)
        name = model or engine["served_model"].partition("\n")[0]
        _check_completes(url, api_key, name)
        measured = subject.of_address(url, name, engine, root=root, kind=kind, usd_per_hour=usd_per_hour)
        is_emulated = VllmClient(url, api_key=api_key).is_stand_in()
        return Target(subject=measured, roofline=roofline(measured, None), api_key=api_key, is_emulated=is_emulated)

    def check_client(self, target: Target, driver: Driver, *, tokenizer: str = "") -> None:
        """Raise `errors.UsageError` where the load client is not installed, or cannot measure this target."""
        tokenizer = tokenizer or target.subject.model_id
        self._load_driver(driver, target.subject.url, tokenizer, target.api_key).check()

    def check(self, profile: Profile, driver: Driver, *, tokenizer: str = "") -> None:
        """Raise `errors.UsageError` where the load client is not installed, or cannot measure this endpoint."""
        deployment = self._workspace.deployment(profile, script=False)
        document = self._workspace.endpoint(deployment.name) or {}
        key = self._workspace.adapters.probe.key(deployment)
        self._load_driver(driver, str(document.get("url", "")), tokenizer, key).check()

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
        id: str = "",  # noqa: A002 - the record's word
        on_point: Callable[[Run, Point], None] | None = None,
        on_cell: Callable[[Run, Cell], None] | None = None,
    ) -> Run:
        """Measure every cell of `sweep`, or the remaining cells of the run `resume`; the run is stored after each.

        `on_point` is called before each cell and `on_cell` after it. `tokenizer` is a model id of the hub or a folder,
        for drivers that make prompts of words. `turn` is the place of the run in an A/B. `id` is the id of a new run
        (default: one by the time).

        Raise `errors.UsageError` where the run has another subject or driver, or the load client is not installed;
        `errors.Interrupted` after `Workspace.stop`, `errors.BenchFailed` where another client fails. The measured cells
        are stored then.
        """
        run = (
            self._new_run(target, sweep, driver, turn, id) if resume is None else self._resumed(target, resume, driver)
        )
        tokenizer = tokenizer or target.subject.model_id
        # A router passes each request to one replica: only a real load reaches all of them.
        is_stand_in = target.is_emulated and not target.servers
        load_driver = self._load_driver(driver, target.subject.url, tokenizer, target.api_key, is_emulated=is_stand_in)
        runs, seconds_before = stored_runs(self._workspace.adapters, self._prove), run.seconds
        # A router has no metrics of the engines behind it.
        servers = target.servers or {"": target.subject.url}
        clients = {address: VllmClient(url, api_key=target.api_key) for address, url in servers.items()}
        # Other clients make their prompts of words, with the model's tokenizer.
        first = next(iter(clients.values()))
        vocabulary = vllm_facts.vocabulary(first, run.subject.model, SIZES) if driver is Driver.TPUDEPLOY else None
        for point in run.remaining_points:
            seconds, ended = seconds_left(bounds, run.seconds - seconds_before, run.subject.usd_per_hour)
            if seconds is not None and seconds <= 0:
                return _stored(runs, replace(run, ended=ended))
            if on_point is not None:
                on_point(run, point)
            try:
                cell = self._measure(
                    run, point, target, load_driver, clients=clients, vocabulary=vocabulary, most_seconds=seconds
                )
            except (Interrupted, KeyboardInterrupt) as cause:
                runs.keep(replace(run, ended=Ended.INTERRUPTED))
                raise Interrupted(
                    f"Interrupted. {len(run.cells)} of {len(run.sweep.points)} cells are kept.",
                    hint=f"Continue with the same command and --resume {run.id}.",
                ) from cause
            if cell is None:
                # The bound was reached before this cell had figures; the next --resume measures it.
                return _stored(runs, replace(run, ended=ended))
            run = _stored(runs, replace(run, cells=(*run.cells, cell), ended=Ended.NOT_YET))
            if on_cell is not None:
                on_cell(run, cell)
        return _stored(runs, replace(run, ended=Ended.COMPLETE))

    def with_start(self, profile: Profile, run: Run) -> Run:
        """Return the run with the start of its server, and store it. The log has all of it only after the run."""
        attempt = serving_attempt(self._workspace.adapters.states.read(profile.name).state)
        if run.start is not None or attempt is None:
            return run
        try:
            start = self._workspace.last_start(attempt)
        except CloudError:
            # The figures count without it; what is made of the run shows this start as unknown.
            return run
        return _stored(stored_runs(self._workspace.adapters, self._prove), replace(run, start=start))

    def _measure(
        self,
        run: Run,
        point: Point,
        target: Target,
        load_driver: LoadDriver,
        *,
        clients: Mapping[str, VllmClient],
        vocabulary: int | None,
        most_seconds: float | None,
    ) -> Cell | None:
        """Return one cell, or None where its time ended before there were figures."""
        verdict = feasible(point, target.budget, run.subject.engine, replicas=max(1, len(target.servers)))
        at_once = None if verdict is None else verdict.at_once
        if verdict is not None and verdict.service is ServingAnswer.REFUSED:
            return Cell(point=point, status=CellStatus.SKIPPED_LEN, reasons=(verdict.why,), at_once=at_once)
        if verdict is not None and verdict.service is ServingAnswer.QUEUES and not run.sweep.asks_oversubscribed:
            return Cell(point=point, status=CellStatus.OVERSUBSCRIBED, reasons=(verdict.why,), at_once=at_once)
        began, before = self._workspace.adapters.clock.now(), _counters(clients)
        offer = _offer(run, point, began, most_seconds, vocabulary)
        measured = load_driver.measure(offer, run.sweep.slo)
        if measured.is_cut or measured.figures is None:
            return None
        cell = Cell(
            point=point,
            status=CellStatus.OK,
            at_once=at_once,
            began_at=began,
            seconds=measured.seconds,
            figures=measured.figures,
            evidence=_with_counters(measured.evidence, before, _counters(clients)),
            errors=measured.errors,
        )
        return judge_cell(cell, target.roofline, verdict)

    def imports(
        self,
        files: Mapping[str, bytes],
        *,
        model: str = "",
        type: str | None = None,  # noqa: A002 - the command line's word
        usd_per_hour: float | None = None,
        context: int | None = None,
    ) -> tuple[Run, ...]:
        """Return the results of another client as runs, which aren't stored: one for each server they are of.

        Of a table of several servers, `model` and `type` choose; elsewhere they say what the files don't, as `context`
        does of the tokens of prompts. Raise `errors.UsageError` for a file of another form, or that does not belong to
        the others, and for a choice that is not there.
        """
        kind = None if type is None else loading.accelerator_type(type)
        contents = [_read_foreign(name, content) for name, content in files.items()]
        results = [_with_context(result, context) for each in contents for result in each.cells]
        driver = _sole("drivers", {each.driver for each in contents})
        if any(result.hardware for result in results):
            servers = _chosen_servers(results, model, kind)
        else:
            sole_model = _sole("models", {model or result.model for result in results})
            servers = [(subject.of_address("", sole_model, {}, kind=kind), results)]
        if usd_per_hour is not None and len(servers) > 1:
            raise UsageError(
                f"A price is that of one server, and there are {len(servers)}.", hint="Choose one: --model and --type."
            )
        head = _source(driver, files, contents)
        digest = f"sha256:{hashlib.sha256(b''.join(files.values())).hexdigest()}"
        return tuple(
            self._imported_run(driver, replace(each, usd_per_hour=usd_per_hour), own, head, digest)
            for each, own in servers
        )

    def _imported_run(
        self, driver: Driver, measured: Subject, results: Sequence[ForeignCell], head: str, digest: str
    ) -> Run:
        _check_unique(result.point for result in results)
        limits = roofline(measured, None)
        sweep = Sweep(points=tuple(result.point for result in results))
        notes = (result.note for result in results if result.note)
        return replace(
            self._new_run(Target(subject=measured), sweep, driver),
            cells=tuple(_imported(result, limits) for result in results),
            ended=Ended.COMPLETE,
            source="; ".join(dict.fromkeys((head, *notes))),
            source_hash=digest,
        )

    def _load_driver(
        self, driver: Driver, url: str, tokenizer: str, key: str | None, *, is_emulated: bool = False
    ) -> LoadDriver:
        adapters = self._workspace.adapters
        return load_driver(adapters, driver, url, tokenizer=tokenizer, api_key=key, is_emulated=is_emulated)

    def _subject(self, target: Target) -> Subject:
        """Return the subject, marked where the cloud is emulated or the server says that it is a stand-in."""
        return replace(target.subject, is_emulated=self._workspace.adapters.is_emulated or target.is_emulated)

    def _boot_log(self, name: str, attempt: Attempt | None) -> str:
        """Return the boot log of a slice, or "" where it cannot be read: the endpoint reports the most important."""
        if attempt is None:
            return ""
        try:
            return "\n".join(self._workspace.boot_logs(name).get(attempt.name, ()))
        except (CloudError, StateError):
            return ""

    def _new_run(
        self,
        target: Target,
        sweep: Sweep | None,
        driver: Driver,
        turn: Turn | None = None,
        id: str = "",  # noqa: A002 - the record's word
    ) -> Run:
        if sweep is None or not sweep.points:
            raise UsageError("A sweep without cells measures nothing.")
        now = self._workspace.adapters.clock.now()
        return Run(
            id=id or records.new_id(now),
            began_at=now,
            version=VERSION,
            driver=driver,
            subject=self._subject(target),
            sweep=sweep,
            turn=turn,
        )

    def _resumed(self, target: Target, id: str, driver: Driver) -> Run:  # noqa: A002 - the record's word
        run = stored_runs(self._workspace.adapters).find(id)
        if run.driver is not driver:
            raise UsageError(
                f"Run {run.id} was measured with {run.driver}.", hint=f"Continue with --driver {run.driver}."
            )
        before, now = run.subject, self._subject(target)
        changes = "; ".join(
            f"{name.replace('_', ' ')} was {getattr(before, name) or 'unknown'}, is {getattr(now, name) or 'unknown'}"
            for name in subject.differences(before, now)
        )
        if changes:
            raise UsageError(
                f"Run {run.id} measured something else: {changes}.", hint="Start a new run: omit --resume."
            )
        return run


def bounds_of(seconds: float | None, usd: float | None, *, usd_per_hour: float | None, hint: str) -> Bounds:
    """Return the bounds of a run. Raise `errors.UsageError` for a cost where the price is unknown."""
    if usd is not None and usd_per_hour is None:
        raise UsageError("--max-cost needs a price, and it is unknown.", hint=hint)
    return Bounds(seconds=seconds, usd=usd)


def seconds_left(bounds: Bounds, elapsed: float, usd_per_hour: float | None) -> tuple[float | None, Ended]:
    """Return the seconds until the nearer bound, and which one that is; None without a bound."""
    candidates: list[tuple[float, Ended]] = []
    if bounds.seconds is not None:
        candidates.append((bounds.seconds - elapsed, Ended.DURATION))
    if bounds.usd is not None and usd_per_hour:
        candidates.append((bounds.usd / usd_per_hour * _HOUR - elapsed, Ended.COST))
    return min(candidates, key=lambda candidate: candidate[0], default=(None, Ended.DURATION))


def _sole(kind: str, values: set[_T]) -> _T:
    """Return the one value that all files share. Raise `errors.UsageError`."""
    if len(values) != 1:
        raise UsageError(f"These files are of several {kind}.", hint="Import them one by one.")
    return values.pop()


def _check_unique(points: Iterable[Point]) -> None:
    """Raise `errors.UsageError` for two results of one cell."""
    point, count = Counter(points).most_common(1)[0]
    if count > 1:
        cell = f"{point.concurrency} streams, {point.context_tokens} tokens in, {point.output_tokens} out"
        raise UsageError(f"Two results are of the same cell: {cell}.", hint="Import them one by one.")


def _offer(run: Run, point: Point, began: float, most_seconds: float | None, vocabulary: int | None) -> Offer:
    # A cell that is measured again must not hit the cache with the prompts of the first time.
    text = f"{run.sweep.seed or f'{run.id} {began}'} {point}"
    streams, _, _ = point.sizes
    return Offer(
        point=point,
        model=run.subject.model,
        seed=int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]),
        requests=max(_ROUNDS * streams, _FEWEST_REQUESTS),
        window_seconds=run.sweep.window_seconds,
        least_seconds=run.sweep.window_seconds
        if run.sweep.is_whole_window
        else min(_STEADY_SECONDS, run.sweep.window_seconds),
        most_seconds=most_seconds,
        vocabulary=vocabulary,
    )


def _counters(clients: Mapping[str, VllmClient]) -> Mapping[str, Counters]:
    return {address: vllm_facts.counters(client) for address, client in clients.items()}


def _with_counters(evidence: Evidence, before: Mapping[str, Counters], after: Mapping[str, Counters]) -> Evidence:
    """Return the evidence with what the servers counted meanwhile: hits of their caches, and requests of each."""
    looked_up_tokens = sum(
        _growth(before[address].looked_up_tokens, after[address].looked_up_tokens) or 0.0 for address in after
    )
    cached_tokens = sum(
        _growth(before[address].cached_tokens, after[address].cached_tokens) or 0.0 for address in after
    )
    answers = {address: _growth(before[address].answers, after[address].answers) for address in after if address}
    return replace(
        evidence,
        cached_share=cached_tokens / looked_up_tokens if looked_up_tokens > 0 else None,
        answers={address: int(count) for address, count in answers.items() if count is not None},
    )


def _growth(before: float | None, after: float | None) -> float | None:
    """Return by how much a counter grew, or None if it is unknown. A server that started again counts from 0."""
    return None if before is None or after is None or after < before else after - before


def _source(driver: Driver, names: Iterable[str], files: Sequence[ForeignFile]) -> str:
    """Return what runs are imported from, with the results that are left out."""
    source = ", ".join([gke_quickstart.TITLE, *names] if driver.is_of_others else names)
    reasons = [each.why for file in files for each in file.left_out]
    if not reasons:
        return source
    total = len(reasons) + sum(len(file.cells) for file in files)
    return f"{source}; {len(reasons)} of {total} results left out: {'; '.join(dict.fromkeys(reasons))}"


def _with_context(result: ForeignCell, context: int | None) -> ForeignCell:
    """Return a cell with the length of its prompts as the user states it, where the file doesn't."""
    figures, point = result.figures, result.point
    if context is None or point.context_tokens is not None:
        return result
    note = "; ".join(filter(None, (result.note, f"prompts of {context:,} tokens, as stated at the import")))
    if figures is not None:
        rate = figures.requests_per_second
        input_rate = None if rate is None else rate * context
        figures = replace(figures, prompt_tokens_mean=float(context), input_tokens_per_second=input_rate)
    return replace(result, point=replace(point, context_tokens=context), figures=figures, note=note)


def _chosen_servers(
    results: Sequence[ForeignCell], model: str, kind: AcceleratorType | None
) -> list[tuple[Subject, list[ForeignCell]]]:
    """Return the servers of a table with their cells: those of a model and a slice, or all.

    Raise `errors.UsageError` for a choice without a server, and for too many servers.
    """
    cells: dict[tuple[str, str, str], list[ForeignCell]] = {}
    for result in results:
        if model in ("", result.model) and (kind is None or kind.name == result.hardware):
            cells.setdefault((result.model, result.hardware, result.server), []).append(result)
    if not cells:
        present = dict.fromkeys(f"{result.model} on {result.hardware}" for result in results)
        raise UsageError("The table has no such server.", hint=f"It has {some(present)}.")
    if len(cells) > _MOST_SERVERS:
        raise UsageError(f"The table is of {len(cells):,} servers.", hint="Choose some: --model and --type.")
    return [(_subject_in_table(*key), own) for key, own in cells.items()]


def _subject_in_table(model: str, hardware: str, server: str) -> Subject:
    slice_type = catalog.accelerator_type(hardware)
    name, _, version = server.partition(" ")
    is_vllm = name == "vllm" and version
    engine = {"version": version} if is_vllm else {"server": server}
    measured = subject.of_address("", model, engine, kind=slice_type)
    return replace(measured, accelerator_type=hardware) if slice_type is None else measured


def _imported(result: ForeignCell, limits: Roofline | None) -> Cell:
    """Return the cell of another client, judged by what is known about it."""
    if result.figures is None:
        return Cell(point=result.point, status=CellStatus.OVERSUBSCRIBED, reasons=(result.why,))
    cell = Cell(
        point=result.point,
        status=CellStatus.OK,
        seconds=result.seconds,
        figures=result.figures,
        evidence=result.evidence,
        errors=result.errors,
    )
    return judge_cell(cell, limits, doubts=contradictions(cell.point, result.figures, result.evidence))


def _stored(runs: RunStore, run: Run) -> Run:
    runs.keep(run)
    return run


def _read_foreign(name: str, content: bytes) -> ForeignFile:
    try:
        return foreign.read(content.decode())
    except UnicodeDecodeError as cause:
        line = content[: cause.start].count(b"\n") + 1
        raise UsageError(
            f"`{name}` cannot be imported: line {line} is not UTF-8.", hint="Save it as UTF-8 and import it again."
        ) from cause
    except ValueError as cause:
        raise UsageError(f"`{name}` cannot be imported: {cause}.") from cause


def _server_url(url: str) -> str:
    """Return http(s)://host:port, without what may follow it in a client's settings (/v1)."""
    try:
        parts = urlsplit(url)
        is_address = (
            parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port is None or parts.port > 0)
        )
    except ValueError:
        is_address = False
    if not is_address or parts.username is not None:
        raise UsageError(f"`{url}` is not a valid address.", hint="Write it as http://HOST:8000.")
    return f"{parts.scheme}://{parts.netloc}"


def _check_completes(url: str, key: str | None, model: str) -> None:
    """Raise `errors.UsageError` for a server that answers a pooling route and has none for completions."""
    client = VllmClient(url, api_key=key)
    try:
        client.takes_tokens(model, [1])
    except NoAnswer:
        return  # the measurement says so
    except BadAnswer as answer:
        if not is_absent_route(answer.status):
            return
    else:
        return
    for task in (Task.EMBED, Task.SCORE, Task.CLASSIFY, Task.POOL):
        try:
            client.answer(task, model, "Say hello.", max_tokens=1, now=time.monotonic)
        except (NoAnswer, BadAnswer):
            continue
        client_of_embeddings = "`vllm bench serve --backend openai-embeddings --endpoint /v1/embeddings`"
        raise UsageError(
            f"{url} serves {TASKS[task].serves}: it completes no prompts, so there are no tokens per second to "
            "measure.",
            hint=f"{client_of_embeddings if task is Task.EMBED else 'A client of that route'} measures requests per "
            "second.",
        )


def _engine(url: str, key: str | None, model: str) -> tuple[Mapping[str, str], str]:
    """Return the engine's report, and the model behind the served name. Raise as `Benchmarks.address`."""
    client = VllmClient(url, api_key=key)
    try:
        cards = client.described()
    except (NoAnswer, BadAnswer) as cause:
        raise no_answer(url, cause) from cause
    names = [str(card.get("id", "")) for card in cards]
    if not names:
        raise UsageError(f"{url} serves no model.")
    if model and model not in names:
        raise UsageError(f"{url} does not serve `{model}`.", hint=f"It serves {', '.join(names)}.")
    root = next(str(card.get("root") or "") for card in cards if card.get("id") == (model or names[0]))
    facts = vllm_facts.facts(client)
    return {name: value for name, value in {**facts.cache, **facts.api}.items() if name not in _VOLATILE}, root
