"""The page of a run: what was measured, where to run it, what it was held against, and every figure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from tpudeploy.domain.benchmark import Run
from tpudeploy.domain.comparison import Comparison
from tpudeploy.domain.details import Details
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.recommendation import OperatingPoint
from tpudeploy.domain.timeline import Timeline
from tpudeploy.views.bench import EMULATED, marked_id, number, seconds
from tpudeploy.views.report import bars
from tpudeploy.views.report.curve import curve
from tpudeploy.views.report.exports import HEAD, rows
from tpudeploy.views.report.heat import heat_maps
from tpudeploy.views.report.html import document, note, section, table, tag, text

Load = tuple[int, int]


@frozen
class Report:
    """All that a page shows. `digest` is the content hash of the run; what is empty is left out."""

    run: Run
    digest: str
    points: Mapping[Load, Sequence[OperatingPoint]]
    comparison: Comparison | None = None
    details: Sequence[Details] = ()
    timelines: Sequence[Timeline] = ()


def page(of: Report) -> str:
    """One HTML file, whole."""
    run = of.run
    parts = [
        _head(of),
        section("Operating points", *_points(of)),
        section("Throughput against latency", _curves(of)),
        section("Heat maps", *heat_maps(run)),
        section("Beside other runs", bars.bests(of.comparison)) if of.comparison is not None else "",
        section("Memory of a chip", bars.memory(of.details)),
        section("The last start", bars.starts(of.timelines)),
        section("What served", _engine(run)),
        section("Every cell", table(HEAD, [tuple(map(text, row)) for row in rows(run)])),
    ]
    title = run.subject.deployment or run.subject.model_id or run.subject.model
    return document(f"{title}: run {marked_id(run)}", *parts)


def _head(of: Report) -> str:
    run, subject = of.run, of.run.subject
    began = f"{datetime.fromtimestamp(run.began_at, UTC):%Y-%m-%d %H:%M} UTC" if run.began_at else ""
    where = (subject.accelerator_type, subject.zone, subject.provisioning, began)
    engine = f"vLLM {subject.engine['version']}" if subject.engine.get("version") else ""
    told = ", ".join(filter(None, (subject.model_id or subject.model, *where, engine)))
    kept = f"Run {run.id}, {len(run.cells)} of {len(run.sweep.points)} cells, by {run.driver}, {of.digest}"
    source = [note(EMULATED)] if subject.is_emulated else []
    source += [note(run.source)] if run.source else []
    return (
        tag("h1", text(subject.replica or subject.deployment or subject.model))
        + note(told)
        + note(kept)
        + "".join(source)
    )


def _points(of: Report) -> Iterator[str]:
    for (context, output), points in of.points.items():
        yield tag("h3", text(_load(context, output)))
        yield tag("div", *(_card(each) for each in points), class_="cards")


def _card(of: OperatingPoint) -> str:
    figures = of.cell.figures
    first = None if figures is None else figures.ttft_seconds
    lines = [f"{of.cell.point.concurrency:,} streams"]
    if figures is not None and figures.requests_per_second is not None:
        lines.append(f"{number(figures.requests_per_second)} requests/s")
    if first is not None:
        lines.append(f"first token {seconds(first.mean if first.p50 is None else first.p50)}")
    told = tag("b", text(of.aim.capitalize())) + tag("div", text(", ".join(lines)))
    return tag("div", told, note(of.rule), class_="card")


def _curves(of: Report) -> str:
    drawn = []
    loads = dict.fromkeys((cell.point.context_tokens, cell.point.output_tokens) for cell in of.run.cells)
    for context, output in sorted(loads):
        cells = [c for c in of.run.cells if (c.point.context_tokens, c.point.output_tokens) == (context, output)]
        line = curve(cells, of.points.get((context, output), ()))
        if line:
            drawn.append(tag("div", tag("h3", text(_load(context, output))), line))
    return tag("div", *drawn, class_="plots") if drawn else ""


def _load(context: int, output: int) -> str:
    return f"{context:,} tokens in, {f'{output:,} out' if output else 'answers of a length that is not told'}"


def _engine(run: Run) -> str:
    of = run.subject
    known = {
        "image": of.image,
        "image digest": of.image_digest,
        "profile": of.profile_fingerprint,
        "server": of.spec_fingerprint,
        "price": "" if of.usd_per_hour is None else f"${of.usd_per_hour:.2f} an hour",
        **{name.replace("_", " "): value for name, value in sorted(of.engine.items())},
    }
    told = [(text(name), text(value)) for name, value in known.items() if value]
    return table(("setting", "value"), told, class_="facts") if told else ""
