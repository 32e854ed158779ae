"""The report, seen in a real browser: light and dark, wide and narrow; nothing overflows, overlaps or is unreadable."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tpudeploy.cli.main import main

SCHEMES, WIDTHS = ("light", "dark"), (390, 820, 1280)
AIPERF: dict[str, Any] = {
    "schema_version": "1.4",
    "aiperf_version": "0.13.0",
    "request_count": {"unit": "requests", "avg": 2000.0},
    "benchmark_duration": {"unit": "sec", "avg": 60.0},
    "output_sequence_length": {"unit": "tokens", "avg": 256.0},
}
# Whether a chart has more than its axes: pixels of the colors of lines.
INK = """
() => [...document.querySelectorAll('.chart canvas')].map(canvas => {
  const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  let colored = 0;
  for (let n = 0; n < data.length; n += 4)
    if (data[n + 3] > 200 && Math.max(data[n], data[n + 1], data[n + 2]) - Math.min(data[n], data[n + 1], data[n + 2]) > 60) colored++;
  return colored > 50;
})
"""
# Whatever has a text of its own: its size in pixels as drawn, and its contrast against what is behind it.
TEXTS = """
() => {
  const parse = c => (c.match(/[\\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255).map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, n) => sum + v * [.2126, .7152, .0722][n], 0);
  const behind = el => {
    const layers = [];
    for (let e = el; e; e = e.parentElement) layers.push(parse(getComputedStyle(e).backgroundColor));
    return layers.reverse().reduce((under, [r, g, b, a = 1]) =>
      r === undefined ? under : [r, g, b].map((v, n) => v * a + under[n] * (1 - a)), [255, 255, 255]);
  };
  return [...document.querySelectorAll('body *')].filter(e => [...e.childNodes].some(n => n.nodeType === 3 &&
    n.textContent.trim()) && !['STYLE', 'SCRIPT', 'TITLE'].includes(e.tagName)).map(e => {
    const style = getComputedStyle(e);
    const [one, two] = [light(parse(style.color)), light(behind(e))];
    return {text: e.textContent, size: parseFloat(style.fontSize),
      contrast: (Math.max(one, two) + .05) / (Math.min(one, two) + .05)};
  });
}
"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a sweep over loads that saturate, beside two published tables."""
    folder = tmp_path_factory.mktemp("report")
    names = []
    for context, scale in ((128, 1.0), (1024, 0.6), (8192, 0.15)):
        for streams in (1, 4, 16, 64, 256, 512):
            names.append(f"{context}-{streams}.json")
            (folder / names[-1]).write_text(json.dumps(_cell(context, streams, scale)))
    code = main(["bench", "import", *names, "--type", "v6e-1", "--usd-per-hour", "1.4", "--chdir", str(folder)])
    assert code == 0
    (run,) = (folder / ".tpudeploy" / "runs").glob("*.json")
    words = ["bench", "report", run.stem, "agent-e2b-v6e-1", "agent-e2b-v6e-4", "-o", "report.html"]
    assert main([*words, "--chdir", str(folder)]) == 0
    return folder / "report.html"


def _cell(context: int, streams: int, scale: float) -> dict[str, Any]:
    rate, first = scale * 28 * streams / (streams + 60), 60 / scale + streams**1.2 * 2 / scale
    return {
        **AIPERF,
        "input_config": {
            "endpoint": {"model_names": ["google/gemma-4-E2B-it"]},
            "load": [{"phase": {"concurrency": streams}}],
        },
        "input_sequence_length": {"unit": "tokens", "avg": float(context)},
        "effective_concurrency": {"unit": "requests", "avg": float(min(streams, 300))},
        "request_throughput": {"unit": "requests/sec", "avg": rate},
        "output_token_throughput": {"unit": "tokens/sec", "avg": 256 * rate},
        "time_to_first_token": {"unit": "ms", "avg": first, "p50": first, "p95": first * 1.6, "count": 500},
        "request_latency": {"unit": "ms", "avg": 1000 * streams / rate},
    }


@pytest.fixture(params=[(scheme, width) for scheme in SCHEMES for width in WIDTHS], ids=lambda p: f"{p[0]}-{p[1]}")
def page(browser: Browser, report: Path, request: pytest.FixtureRequest) -> Iterator[Page]:
    scheme, width = request.param
    opened = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900}, offline=True).new_page()
    opened.goto(report.as_uri())
    if folder := os.environ.get("SCREENSHOTS"):
        opened.screenshot(path=Path(folder) / f"report-{scheme}-{width}.png", full_page=True)
    yield opened
    opened.close()


def test_nothing_is_wider_than_the_page(page: Page) -> None:
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0


def test_every_chart_is_drawn_and_its_figures_are_read_by_the_arrow_keys(page: Page) -> None:
    charts = page.locator(".chart")
    assert charts.count() >= 5
    assert page.evaluate(INK) == [True] * charts.count(), "lines and marks in every chart"
    rates = page.locator("section:has(canvas.swatch) .chart[aria-label^='Request rate']")
    rates.focus()
    rates.press("ArrowRight")
    assert "1 streams: " in (rates.locator(".tip").text_content() or "")


def test_every_text_can_be_read(page: Page) -> None:
    texts = page.evaluate(TEXTS)
    assert len(texts) > 100
    assert [t for t in texts if t["size"] < 10] == []
    assert [t for t in texts if t["contrast"] < 4.5] == []


def test_the_page_is_one_file_that_allows_its_own_scripts_alone(browser: Browser, report: Path) -> None:
    urls, complaints = [], []
    opened = browser.new_context(offline=True).new_page()
    opened.on("request", lambda request: urls.append(request.url))
    opened.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    opened.goto(report.as_uri())
    assert urls == [report.as_uri()]
    assert complaints == []
    opened.evaluate("""() => { const node = document.createElement("script"); node.textContent = "document.title = 'taken'";
      document.body.append(node); }""")
    assert opened.title() != "taken", "its policy names the hashes of its scripts"
    opened.close()


def test_the_same_figures_lie_beside_it(report: Path) -> None:
    rows = report.with_suffix(".csv").read_text().splitlines()
    assert sum(row.endswith(",google/gemma-4-E2B-it,v6e-1") and ",agent-" not in row for row in rows) == 18
    assert {row.split(",")[-3] for row in rows[1:]} >= {"agent-e2b-v6e-1", "agent-e2b-v6e-4"}
    assert rows[0].startswith("streams,context,output,status,requests/s")
    chart = json.loads(report.with_suffix(".vl.json").read_text())
    assert len(chart["data"]["values"]) == len(rows) - 1
    for row in rows[1:]:
        assert f">{row.split(',')[4]}<" in report.read_text()


def test_all_runs_are_in_the_same_charts_and_doubts_are_marked_by_their_shape(report: Path) -> None:
    html = report.read_text()
    charts = json.loads(html.partition('id="charts">')[2].partition("</script>")[0])
    overlays = [chart for chart in charts if chart["x"]["label"].startswith("streams")]
    assert [chart["title"] for chart in overlays] == [
        "Throughput",
        "Request rate",
        "Time to the first token (TTFT)",
        "Tokens per dollar",
    ]
    rates, first = overlays[1], overlays[2]
    assert (rates["x"]["label"], len(rates["lines"])) == ("streams (log scale)", 5)
    doubts = [
        title
        for line in rates["lines"]
        for title, is_doubted in zip(line["titles"], line["doubts"], strict=True)
        if is_doubted
    ]
    assert doubts
    assert all("Doubted (" in title for title in doubts)
    assert 'data-mark="doubted"' in html
    assert first["y"]["label"] == "median, ms (log scale)"
    assert first["lines"][0]["values"][0] == pytest.approx(60 + 2)
    curves = [chart for chart in charts if chart["x"]["label"] == "requests/s"]
    assert curves
    assert all("TTFT, median, ms" in chart["y"]["label"] for chart in curves)


def test_a_page_of_two_runs_is_titled_by_what_differs(report: Path) -> None:
    words = ["compare", "agent-e2b-v6e-1", "agent-e2b-v6e-4", "-chdir", str(report.parent), "-o", "two.html"]
    assert main(words) == 0
    html = (report.parent / "two.html").read_text()
    assert "<h1>v6e-1 against v6e-4</h1>" in html
    assert "<title>v6e-1 against v6e-4: google/gemma-4-E2B-it</title>" in html
    assert "v6e-1: agent-e2b-v6e-1" in html, "the ids are below"


def test_each_row_of_several_runs_begins_with_its_server_and_no_column_is_empty(browser: Browser, report: Path) -> None:
    page = browser.new_page()
    page.goto(report.as_uri())
    table = page.locator("details table").last
    head = table.locator("th[scope=col], thead th").all_text_contents()
    rows = [row.locator("td, th").all_text_contents() for row in table.locator("tbody tr").all()]
    page.close()
    assert head[0] == "server"
    assert len({row[0] for row in rows}) > 1
    assert all(any(row[place].strip() for row in rows) for place in range(len(head)))


def test_markdown_and_csv_of_the_same_are_written_for_an_article(report: Path) -> None:
    words = ["compare", "agent-e2b-v6e-1", "agent-e2b-v6e-4", "-chdir", str(report.parent)]
    assert main([*words, "-o", "article.md"]) == 0
    text = (report.parent / "article.md").read_text()
    assert "| streams | v6e-1 | v6e-4 |" in text, "labels of what differs"
    assert "| 1 | 3.81 (=) | 5.14 |" in text
    assert "agent-e2b" not in text, "no ids"
    assert "(=) another subject has the same figure" in text
    assert main([*words, "-o", "article.csv"]) == 0
    assert (report.parent / "article.csv").read_text().startswith("streams,context,output")
    assert not (report.parent / "article.html").exists()


def test_servers_with_the_same_figure_are_recommended_together_and_16_streams_need_no_published_row(
    tmp_path: Path,
) -> None:
    for kind, scale in (("v6e-1", 1.0), ("v6e-4", 1.0), ("v5litepod-4", 0.5)):
        path = tmp_path / f"{kind}.json"
        cell = _cell(128, 16, scale)
        requests = {"unit": "requests", "avg": 60 * cell["request_throughput"]["avg"]}
        path.write_text(json.dumps({**cell, "request_count": requests}))
        assert main(["bench", "import", path.name, "--type", kind, "--chdir", str(tmp_path)]) == 0
    runs = [path.stem for path in sorted((tmp_path / ".tpudeploy" / "runs").glob("*.json"))]
    assert main(["compare", *runs, "-o", "article.md", "-chdir", str(tmp_path)]) == 0
    (line,) = [line for line in (tmp_path / "article.md").read_text().splitlines() if "most requests/s" in line]
    one, other = ("v6e-1", "v6e-4") if "**v6e-1**" in line else ("v6e-4", "v6e-1")
    assert line.endswith(f": **{one}** (5.89 at 16 streams, and so has {other}; next is v5litepod-4 with 2.95).")
