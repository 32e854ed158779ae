"""Format the status of deployments, one block per replica; the progress of a boot; and the result of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from tpudeploy.boot_log.stage import COMPILING, PER_CENT, WARM_UP, WEIGHTS
from tpudeploy.domain.deployment import describe_place
from tpudeploy.domain.errors import TpudeployError
from tpudeploy.domain.report import DeploymentResult, RunReport, Summary
from tpudeploy.domain.slices import ServerLoad
from tpudeploy.domain.status import BootStage, DeploymentStatus, ReplicaStatus, ScaleStatus
from tpudeploy.text import words
from tpudeploy.text.paint import Paint

# The text of each state whose own name is too short.
_STATES: Mapping[str, str] = {
    "nothing": "not deployed",
    "hidden": "asked for, not visible yet",
    "refused": "refused, and watched until that is certain",
    "waiting": "waiting for chips",
    "dead": "dead: nothing runs there, but it uses quota",
    "leaving": "going away",
}

# The state of the server that a node goes back to, by the phase that its machine reports.
_PREVIOUS = {"serving": "serves again", "failed": "did not start again"}


def status(deployments: Iterable[DeploymentStatus], paint: Paint, *, emulated: bool, width: int | None = None) -> str:
    """Return a block for each deployment. `width`: the columns of the terminal, if any."""
    deployments = tuple(deployments)
    room = None if width is None else width - 2
    # A deployment that was destroyed keeps its state, and has nothing to show.
    blocks = [block for d in deployments if (block := "\n".join(_deployment(d, paint, room)))]
    note = [paint.yellow("On the emulator: no chip is allocated and nothing is billed.")] if emulated and blocks else []
    return "\n\n".join([*blocks, *_end_of_billing(deployments), *note]) or "Nothing is deployed from this folder."


def _end_of_billing(deployments: Iterable[DeploymentStatus]) -> Iterator[str]:
    """Yield the command that ends what is billed, or may be once it is granted."""
    names = [d.name for d in deployments if any(r.usd_per_hour or r.usd_per_hour_granted for r in d.replicas)]
    if names:
        yield f"To stop paying: tpudeploy destroy {' '.join(names)}"


def _deployment(deployment: DeploymentStatus, paint: Paint, room: int | None) -> Iterator[str]:
    if deployment.error is not None and not deployment.replicas:
        yield f"{paint.bold(deployment.name)}  {paint.yellow('unknown')}"
        yield from (f"  {line}" for line in why_unknown(deployment.error))
    for replica in deployment.replicas:
        style = paint.green if replica.serving else paint.yellow
        yield f"{paint.bold(replica.address)}  {style(state_text(replica))}"
        yield from (f"  {line}" for line in words.aligned(list(facts(replica)), room=room))
    if deployment.error is not None and deployment.replicas:
        yield from (paint.yellow(line) for line in why_unknown(deployment.error))
    for late in deployment.late:
        price = "" if late.usd_per_hour is None else f", {words.hourly(late.usd_per_hour)} at list price"
        yield paint.yellow(
            f"{late.name} ({late.zone}, {late.cloud}{price}) appeared after its request was forgotten, and no state"
            " tracks it. To delete it: tpudeploy gc"
        )
    yield from _end(deployment)
    if deployment.scale is not None:
        yield scale(deployment.scale)
    yield from _billing_ceiling(deployment)
    if deployment.underway:
        yield paint.yellow(describe_unfinished_run(deployment))
    if deployment.lock:
        yield paint.yellow(words.plain(deployment.lock))


def _end(deployment: DeploymentStatus) -> Iterator[str]:
    if deployment.ended is not None:
        yield words.past_end(deployment.name, deployment.ended)
    elif deployment.ends_in is not None and deployment.ends_in <= 0:
        since = words.duration(-deployment.ends_in)
        why = f" Its machine may not delete itself: {words.plain(deployment.unended)}." if deployment.unended else ""
        late = f"{deployment.name} should have ended {since} ago ({deployment.ends_by})."
        yield f"{late}{why} `tpudeploy apply` deletes it."
    elif deployment.ends_in is not None:
        yield f"{deployment.name} ends in {words.duration(deployment.ends_in)} ({deployment.ends_by})."


def _billing_ceiling(deployment: DeploymentStatus) -> Iterator[str]:
    """Yield what may be billed at one time: every pending request may be granted."""
    if deployment.ceiling is not None:
        yield (
            f"{words.billed_at_once(deployment.ceiling)} if Google grants every"
            " pending request. The run that made them deletes what is not needed; after its end, the next `apply` does."
        )


def describe_unfinished_run(deployment: DeploymentStatus) -> str:
    """Return the sentence about a run that did not finish."""
    run = f"An earlier run for {deployment.name} ({deployment.underway})"
    return f"{run} did not finish. `{deployment.continue_with}` continues it."


def why_unknown(error: TpudeployError) -> Iterator[str]:
    """Yield the lines that say why a deployment cannot be observed, and what to do."""
    yield f"{words.plain(error.message)} [{error.code}]"
    yield from words.plain(error.hint).splitlines()


def facts(replica: ReplicaStatus) -> Iterator[tuple[str, str]]:
    """Yield the facts of a replica as pairs of name and text."""
    if not replica.slice_name:
        return
    place = describe_place(replica.zone, replica.provisioning, replica.backend)
    yield "slice", f"{replica.slice_name} ({replica.accelerator_type}, {place})"
    if replica.model:
        yield "model", replica.model
    yield "cloud", replica.cloud
    yield from _boot(replica)
    yield from _health(replica)
    if replica.url:
        yield "endpoint", replica.url
    if replica.load is not None:
        yield "load", load(replica.load)
    if replica.age is not None:
        yield "age", words.duration(replica.age)
    if replica.ends_in is not None:
        yield (
            "ends in",
            f"{words.duration(replica.ends_in)}: then Google deletes the machine; apply requests another",
        )
    if replica.lapses_in is not None:
        yield "lapses in", words.duration(max(0.0, replica.lapses_in))
    yield from _price(replica)


def _health(replica: ReplicaStatus) -> Iterator[tuple[str, str]]:
    if replica.serving is None and replica.detail:
        yield "health", f"not observed: {words.plain(replica.detail)}"
    elif replica.serving is not None:
        yield "health", "a completion came back" if replica.serving else words.plain(replica.detail)
    if replica.serving and replica.detail:
        yield "reach", replica.detail


def _boot(replica: ReplicaStatus) -> Iterator[tuple[str, str]]:
    if replica.boot:
        text = replica.boot_detail if replica.stage is None else progress(replica.stage, replica.boot_detail)
        # A phase that has no word but its own name is not named twice.
        is_named = not text or text.startswith(replica.boot)
        yield "boot", words.plain(text) or replica.boot if is_named else f"{replica.boot}: {words.plain(text)}"
    elif replica.stage is not None:
        yield "boot", progress(replica.stage, "the machine reports no progress")
    if replica.undo:
        previous = _PREVIOUS.get(replica.boot, "starts again")
        yield "change", f"failed: {words.plain(replica.undo)}; the previous server {previous}"
    if replica.waits:
        yield "change", f"waits {words.plain(replica.waits)}"


def _price(replica: ReplicaStatus) -> Iterator[tuple[str, str]]:
    if replica.usd_per_hour_granted is not None:
        most = "" if replica.usd_most is None else f", at most ${replica.usd_most:.2f} until its run ends"
        yield "price", f"nothing yet; if granted, {words.hourly(replica.usd_per_hour_granted)} at list price{most}"
    if replica.usd_per_hour is not None:
        yield "price", f"{words.hourly(replica.usd_per_hour)} at list price"


def load(load: ServerLoad) -> str:
    """Return the load of a server as text: `12 running, 3 waiting, KV cache 41 %`, or `unknown`."""
    if load == ServerLoad():
        return "unknown: its metrics cannot be read"
    running, waiting = ("unknown" if count is None else f"{count:,}" for count in (load.running, load.waiting))
    used = "unknown" if load.kv_cache_used is None else f"{load.kv_cache_used:.0%}"
    return f"{running} running, {waiting} waiting, KV cache {used}"


def scale(scale: ScaleStatus) -> str:
    """Return the number of replicas with its bounds, and the last step of scaling with its reason."""
    number = f"Scale: {words.plural(scale.replicas, 'replica')} of {scale.min} to {scale.max}."
    last = scale.last
    if last is None or scale.ago is None:
        return number
    return f"{number} {words.duration(scale.ago)} ago from {last.before} to {last.after}: {words.plain(last.why)}."


def state_text(replica: ReplicaStatus) -> str:
    """Return the state of a replica as text."""
    if replica.state == "dead" and replica.usd_per_hour is not None:
        return "dead: only some of its machines run, and they are billed"
    return _STATES.get(replica.state, replica.state)


def progress(stage: BootStage, detail: str) -> str:
    """Return the progress, or "" if only the phase is known. Other stages show `detail`, the machine's own text."""
    text = activity(stage, detail)
    if stage.left_seconds is None:
        return text
    return f"{text or stage.name}, {time_left(stage.left_seconds, is_least=stage.is_least)}"


def time_left(seconds: float, *, is_least: bool) -> str:
    """Return `about 4 min left`."""
    return f"{'at least' if is_least else 'about'} {words.minutes(seconds)} left"


def activity(stage: BootStage, detail: str) -> str:
    """Return what a boot does, with its count: `compiling 66 of 199`."""
    if stage.name == COMPILING:
        counts = [str(count) for count in (stage.done, stage.of) if count is not None]
        return " ".join(["compiling", " of ".join(counts)]) if stage.done is not None else "compiling"
    if stage.name == WEIGHTS:
        share = "" if stage.of != PER_CENT else f", {stage.done} %"
        return f"loading weights{share}"
    if stage.name == WARM_UP:
        return "warming up"
    return f"{detail} ({stage.done} % of the image's layers)" if stage.of == PER_CENT else detail


def summary(report: RunReport, paint: Paint) -> str:
    """Return the counts, then one line per deployment; a failure shows the first line of its error."""
    deployments = report.deployments
    counts = Counter(deployment.result for deployment in deployments)
    totals = ", ".join(f"{counts[result]} {result}" for result in DeploymentResult if counts[result])
    rows = words.aligned([(deployment.name, _result(deployment, paint)) for deployment in deployments])
    return "\n".join([f"\nDeployments: {totals}.\n", *(f"  {row}" for row in rows)])


def _result(summary: Summary, paint: Paint) -> str:
    match summary.result:
        case DeploymentResult.FAILED if summary.error is not None:
            first = words.plain(summary.error.message).partition("\n")[0]
            return f"{paint.red(summary.result)}: {first} {paint.dim(f'[{summary.error.code}]')}"
        case DeploymentResult.SERVED:
            return paint.green(summary.result)
        case DeploymentResult.UNCHANGED:
            return paint.dim(summary.result)
        case _:
            return str(summary.result)
