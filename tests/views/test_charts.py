"""Charts of pages: uPlot is shipped as it was published, and a page lets no other script run."""

from __future__ import annotations

from hashlib import sha256
from html import unescape
from pathlib import Path

from tpudeploy.views import page
from tpudeploy.views.page.chart import Chart, ChartAxis, ChartLine

UPLOT = Path(page.__file__).parent / "uplot"
# Of the npm package uplot 1.6.32, whose tarball has these files in dist/.
PUBLISHED = {
    "uPlot.iife.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
    "uPlot.min.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
}


def _chart(title: str) -> Chart:
    line = ChartLine(label=title, style=0, values=(1.0, None), titles=(title, ""))
    return Chart(title=title, x=ChartAxis(label="streams"), y=ChartAxis(label="ms"), x_values=(1.0, 2.0), lines=(line,))


def test_the_charting_library_is_unchanged_with_its_version_and_license() -> None:
    assert {name: sha256((UPLOT / name).read_bytes()).hexdigest() for name in PUBLISHED} == PUBLISHED
    assert "(v1.6.32)" in (UPLOT / "uPlot.iife.min.js").read_text(encoding="utf-8")[:80]
    assert "MIT License" in (UPLOT / "LICENSE").read_text(encoding="utf-8")


def test_what_a_chart_says_ends_no_script_and_hides_nothing() -> None:
    hostile = "</script><script>alert(1)</script>\u202e"
    text = page.render("fleet.html.j2", title="t", notes=[], deployments=[], charts=[_chart(hostile)])
    assert text.count("</script>") == 4, "two of the library and of ours, the data, and what draws it"
    assert "alert(1)</script>" not in text
    assert "\u202e" not in text


def test_a_page_without_charts_has_no_script() -> None:
    text = page.fleet([], at=0.0, emulated=False)
    assert "<script" not in text
    assert "default-src 'none'" in unescape(text)
