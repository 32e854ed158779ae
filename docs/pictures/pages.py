"""Makes the pictures of the report and of the dashboard, from published runs and from a run on the emulator.

    make picture       these, and docs/static/apply.svg; needs Chromium: apt-get install chromium

The load on the dashboard's picture is that of a few clients of the emulator's stand-in. No picture may be larger than
MOST_BYTES. The script starts itself again inside `tpudeploy emulator run`, which gives the clock of its cloud to
every process.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from http.client import HTTPConnection
from pathlib import Path
from random import Random
from urllib.parse import urlsplit

from playwright.sync_api import Browser, sync_playwright

HERE = Path(__file__).resolve().parent
TPUDEPLOY = (sys.executable, "-m", "tpudeploy")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
SCENARIO = """\
nodes: real
boot:
  boot_seconds: 420
"""
SPEED, PORT, CLIENTS = 30, 8788, 6
LOAD_SECONDS, MOST_SECONDS = 60.0, 400.0
MOST_BYTES = 150_000
MODEL = "google/gemma-4-E2B-it"
RUNS = ("agent-e2b-v6e-1", "agent-e2b-v6e-4", "agent-12b-v6e-4")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "scenario.yaml").write_text(SCENARIO, encoding="utf-8")
        words = ("emulator", "run", "-scenario", "scenario.yaml", "-speed", str(SPEED), "--")
        subprocess.run(
            [*TPUDEPLOY, *words, sys.executable, __file__, "inside"], cwd=folder, check=True, timeout=MOST_SECONDS
        )


def take_pictures() -> None:
    """Take both pictures, in the working directory, before the emulator of the environment."""
    run("compare", *RUNS, "-o", "report.html")
    for name in ("gemma4-e2b-v6e1", "llama-3.1-8b-v6e1"):
        run("init", "--from", name, f"{name}.yaml")
    run("apply", "gemma4-e2b-v6e1.yaml", "-auto-approve")
    stop = threading.Event()
    for number in range(CLIENTS):
        threading.Thread(target=send_requests, args=(stop, Random(number)), daemon=True).start()  # noqa: S311 - lengths of prompts
    words = (*TPUDEPLOY, "dashboard", "gemma4-e2b-v6e1.yaml", "llama-3.1-8b-v6e1.yaml", "-port", str(PORT))
    dashboard = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    others = [dashboard]
    try:
        assert dashboard.stdout is not None
        match = re.search(r"http://\S+", dashboard.stdout.readline())
        assert match is not None
        time.sleep(LOAD_SECONDS)
        words = (*TPUDEPLOY, "apply", "llama-3.1-8b-v6e1.yaml", "-auto-approve")
        others.append(subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True))
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            take_report(browser)
            take_dashboard(browser, match[0])
    finally:
        stop.set()
        for each in others:
            each.kill()
    too_large = [path.name for path in HERE.glob("*.png") if path.stat().st_size > MOST_BYTES]
    if too_large:
        sys.exit(f"Larger than {MOST_BYTES} bytes: {', '.join(too_large)}.")


def send_requests(stop: threading.Event, random: Random) -> None:
    """Send chat requests of several lengths to the endpoint, with pauses, until `stop`."""
    (path,) = Path("endpoints").glob("*.json")
    where = urlsplit(json.loads(path.read_text(encoding="utf-8"))["url"])
    while not stop.is_set():
        prompt = "Why is the sky blue? " * random.randint(1, 80)
        body = {
            "model": MODEL,
            "messages": [{"role": "user", "content": prompt}],
            "max_tokens": random.randint(50, 400),
        }
        connection = HTTPConnection(where.hostname or "", where.port or 80, timeout=60)
        try:
            connection.request("POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json"})
            connection.getresponse().read()
        except OSError:
            stop.wait(1.0)
        finally:
            connection.close()
        stop.wait(0.3 * random.random())


def run(*words: str) -> None:
    subprocess.run([*TPUDEPLOY, *words], check=True, capture_output=True)


def take_report(browser: Browser) -> None:
    page = browser.new_page(viewport={"width": 900, "height": 900})
    page.goto(Path("report.html").resolve().as_uri())
    page.locator("section:has(canvas.swatch)").first.screenshot(path=HERE / "report.png")
    page.close()


def take_dashboard(browser: Browser, address: str) -> None:
    """Take the picture while the second deployment boots; at phone width and in dark too."""
    for name, scheme, width, height in (("dashboard", "light", 1100, 1000), ("dashboard-dark", "dark", 390, 900)):
        page = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": height}).new_page()
        page.goto(address)
        page.locator(".charts canvas").first.wait_for()
        page.wait_for_timeout(1500)
        page.screenshot(path=HERE / f"{name}.png")
        page.close()


if __name__ == "__main__":
    take_pictures() if sys.argv[1:] == ["inside"] else main()
