"""Makes the pictures of the report and of the dashboard, from published runs and from a run on the emulator.

    python docs/pictures/pages.py       needs Chromium: apt-get install chromium

It starts itself again inside `tpudeploy emulator run`, which gives the clock of its cloud to every process.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

HERE = Path(__file__).resolve().parent
TPUDEPLOY = (sys.executable, "-m", "tpudeploy")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
SCENARIO = """\
nodes: real
boot:
  boot_seconds: 420
  load: {num_requests_running: 24, num_requests_waiting: 3, kv_cache_usage_perc: 0.62}
"""
SPEED, PORT = 10, 8788
RUNS = ("agent-e2b-v6e-1", "agent-e2b-v6e-4", "agent-12b-v6e-4")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "scenario.yaml").write_text(SCENARIO, encoding="utf-8")
        words = ("emulator", "run", "-scenario", "scenario.yaml", "-speed", str(SPEED), "--")
        subprocess.run([*TPUDEPLOY, *words, sys.executable, __file__, "inside"], cwd=folder, check=True)


def take_pictures() -> None:
    """Take both pictures, in the working directory, before the emulator of the environment."""
    run("compare", *RUNS, "-o", "report.html")
    for name in ("gemma4-e2b-v6e1", "llama-3.1-8b-v6e1"):
        run("init", "--from", name, f"{name}.yaml")
    run("apply", "gemma4-e2b-v6e1.yaml", "-auto-approve")
    other = subprocess.Popen(
        [*TPUDEPLOY, "apply", "llama-3.1-8b-v6e1.yaml", "-auto-approve"], stderr=subprocess.DEVNULL
    )
    profiles = ("gemma4-e2b-v6e1.yaml", "llama-3.1-8b-v6e1.yaml")
    words = (*TPUDEPLOY, "dashboard", *profiles, "-port", str(PORT))
    dashboard = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            take_report(browser)
            take_dashboard(browser, dashboard)
    finally:
        dashboard.terminate()
        other.terminate()


def run(*words: str) -> None:
    subprocess.run([*TPUDEPLOY, *words], check=True, capture_output=True)


def take_report(browser: Browser) -> None:
    page = browser.new_page(viewport={"width": 900, "height": 900})
    page.goto(Path("report.html").resolve().as_uri())
    page.locator("section:has(.keys)").first.screenshot(path=HERE / "report.png")
    page.close()


def take_dashboard(browser: Browser, dashboard: subprocess.Popen[str]) -> None:
    """Take the picture while the second deployment boots; at phone width and in dark too."""
    assert dashboard.stdout is not None
    match = re.search(r"http://\S+", dashboard.stdout.readline())
    assert match is not None
    for name, scheme, width in (("dashboard", "light", 1000), ("dashboard-dark", "dark", 390)):
        page = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 800}).new_page()
        page.goto(match[0])
        page.locator(".meter[aria-label*=' of ']").wait_for(timeout=120_000)
        time.sleep(2.0)
        page.screenshot(path=HERE / f"{name}.png")
        page.close()


if __name__ == "__main__":
    take_pictures() if sys.argv[1:] == ["inside"] else main()
