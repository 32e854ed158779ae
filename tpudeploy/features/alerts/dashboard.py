"""The dashboard in Grafana's import format: without ids or data sources of an installation, in a grid of 24 columns."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from tpudeploy.features.alerts.panels import ROWS, Panel, PanelLimit, PanelType
from tpudeploy.features.alerts.watched import Watched

Json: TypeAlias = dict[str, Any]

_COLUMNS = 24
# The schema of Grafana 10.4 has every panel here, and newer versions migrate it.
_SCHEMA = 39
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_ALL = {"selected": True, "text": ["All"], "value": ["$__all"]}


def dashboard(deployments: Sequence[Watched]) -> Json:
    """Return one dashboard for all deployments, which its variables select.

    The import of a dashboard for the same deployments replaces the earlier one.
    """
    names = [deployment.name for deployment in deployments]
    return {
        "id": None,
        "uid": f"tpudeploy-{zlib.crc32(','.join(sorted(names)).encode()):08x}",
        "title": f"vLLM on Cloud TPU: {names[0] if len(names) == 1 else f'{len(names)} deployments'}",
        "description": f"{', '.join(names)}. Written by `tpudeploy alerts -format dashboard`.",
        "tags": ["tpudeploy", "vllm", "tpu"],
        "schemaVersion": _SCHEMA,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,  # one cross-hair for all panels
        "time": {"from": "now-1h", "to": "now"},
        "timezone": "browser",
        "refresh": "30s",
        "templating": {"list": [_source(), *_variables(names)]},
        "annotations": {"list": []},
        "links": [],
        "panels": list(_panels(deployments)),
    }


def _source() -> Json:
    return {
        "name": "datasource",
        "label": "Data source",
        "type": "datasource",
        "query": "prometheus",
        "refresh": 1,
        "hide": 0,
        "includeAll": False,
        "multi": False,
    }


def _variables(names: Sequence[str]) -> Iterator[Json]:
    chosen = {"selected": True, "text": list(names), "value": list(names)}
    yield _variable("job", "Deployment", "label_values(up, job)", chosen)
    engine = 'vllm:num_requests_running{job=~"$job"}'
    yield _variable("model_name", "Model", f"label_values({engine}, model_name)", _ALL)
    yield _variable("instance", "Server", 'label_values(up{job=~"$job"}, instance)', _ALL)


def _variable(name: str, label: str, query: str, current: Json) -> Json:
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": _SOURCE,
        "query": query,
        "current": current,
        "refresh": 2,  # when the time range changes
        "sort": 1,
        "hide": 0,
        "includeAll": True,
        "allValue": ".+",
        "multi": True,
    }


def _panels(deployments: Sequence[Watched]) -> Iterator[Json]:
    """Yield the rows from top to bottom, with the panels of each side by side."""
    top, number = 0, 0
    sources = tuple(dict.fromkeys(deployment.ttft_source for deployment in deployments if deployment.ttft_source))
    completes = any(deployment.completes for deployment in deployments)
    for row in ROWS:
        panels = [panel for panel in row.panels if completes or not panel.of_completions]
        if not panels:
            continue
        number += 1
        yield _headline(row.title, number, top)
        width = _COLUMNS // len(panels)
        for at, panel in enumerate(panels):
            number += 1
            place = {"h": row.height, "w": width, "x": at * width, "y": top + 1}
            yield {"id": number, "gridPos": place, **_panel(panel, _limit(panel, deployments), sources)}
        top += 1 + row.height


def _headline(title: str, number: int, top: int) -> Json:
    place = {"h": 1, "w": _COLUMNS, "x": 0, "y": top}
    return {"id": number, "type": "row", "title": title, "collapsed": False, "gridPos": place, "panels": []}


def _limit(panel: Panel, deployments: Sequence[Watched]) -> float | None:
    """Return the limit that all deployments share, or None."""
    if not isinstance(panel.limit, PanelLimit):
        return panel.limit
    limits = {getattr(deployment, panel.limit) for deployment in deployments}
    return limits.pop() if len(limits) == 1 else None


def _panel(panel: Panel, limit: float | None, sources: Sequence[str]) -> Json:
    steps: list[Json] = [{"color": "green", "value": None}]
    if limit is not None:
        steps.append({"color": "orange", "value": limit})
    return {
        "type": str(panel.kind),
        "title": panel.title,
        "description": " ".join(
            (panel.about, *(sources if panel.limit is PanelLimit.TTFT and limit is not None else ()))
        ),
        "datasource": _SOURCE,
        "targets": [_target(panel.kind, at, *line) for at, line in enumerate(panel.lines.items())],
        "fieldConfig": {
            "defaults": {
                "unit": panel.unit,
                **({} if panel.kind is PanelType.HEATMAP else {"min": 0}),
                "thresholds": {"mode": "absolute", "steps": steps},
                "custom": _custom(panel.kind, has_limit=limit is not None),
            },
            "overrides": [],
        },
        "options": _options(panel),
    }


def _target(kind: PanelType, at: int, legend: str, expr: str) -> Json:
    shape = "heatmap" if kind is PanelType.HEATMAP else "time_series"
    query = {"refId": chr(ord("A") + at), "expr": expr, "legendFormat": legend, "format": shape, "editorMode": "code"}
    return {**query, "datasource": _SOURCE, "range": kind is not PanelType.STAT, "instant": kind is PanelType.STAT}


def _custom(kind: PanelType, *, has_limit: bool) -> Json:
    if kind is not PanelType.TIME_SERIES:
        return {}
    style = {"mode": "dashed" if has_limit else "off"}
    return {"drawStyle": "line", "lineWidth": 1, "fillOpacity": 10, "showPoints": "never", "thresholdsStyle": style}


def _options(panel: Panel) -> Json:
    match panel.kind:
        case PanelType.STAT:
            reduced = {"calcs": ["lastNotNull"], "fields": "", "values": False}
            return {"reduceOptions": reduced, "colorMode": "value", "graphMode": "none", "textMode": "auto"}
        case PanelType.TIME_SERIES:
            legend = {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []}
            return {"legend": legend, "tooltip": {"mode": "multi", "sort": "desc"}}
        case PanelType.HEATMAP:
            colour = {"mode": "scheme", "scheme": "Oranges", "steps": 64}
            return {"calculate": False, "color": colour, "yAxis": {"unit": panel.unit, "axisPlacement": "left"}}
