"""The dashboard: a page on loopback that shows all deployments live, to who has its token, and changes nothing."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import jsonschema
import pytest
from command_line import PROFILE, CommandLine, Open
from playwright.sync_api import Browser, Page, expect
from real_time import DEADLINE

import tpudeploy as td
from tpudeploy.features.dashboard.documents import DOCUMENTS
from tpudeploy.features.dashboard.latest import Documents
from tpudeploy.features.dashboard.server import DashboardServer

TWO = PROFILE.replace("name: gemma", "name: second")


@contextmanager
def _serving(documents: Documents) -> Iterator[DashboardServer]:
    server = DashboardServer(documents, 0)
    thread = threading.Thread(target=server.serve)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        server.close()
        thread.join()


Read = Callable[..., Documents]


@pytest.fixture
def documents_of() -> Iterator[Read]:
    """Return the documents of a folder and its profiles; the connections end with the test."""
    with ExitStack() as stack:

        def open_documents(at: CommandLine, *profiles: str) -> Documents:
            workspace = stack.enter_context(td.Workspace.open(at.folder, clock=at.clock))
            return Documents(workspace, tuple(td.Profile.load(at.folder / name) for name in profiles))

        yield open_documents


def _get(server_port: int, path: str, **headers: str) -> tuple[int, str, Mapping[str, str]]:
    connection = HTTPConnection("127.0.0.1", server_port, timeout=DEADLINE)
    try:
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        return response.status, response.read().decode(), dict(response.getheaders())
    finally:
        connection.close()


@contextmanager
def _running(folder: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """Yield the command in a process of its own, which ends with the block, also where an assertion fails in it."""
    command = [sys.executable, "-m", "tpudeploy", "dashboard", "-port", "0", "-chdir", str(folder), *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=DEADLINE)


def test_the_command_prints_an_address_whose_token_alone_opens_the_documents(tmp_path: Path) -> None:
    with _running(tmp_path) as process:
        assert process.stdout is not None
        match = re.search(r"http://127\.0\.0\.1:(\d+)/#(\S+)", process.stdout.readline())
        assert match is not None
        port, token = int(match[1]), match[2]

        status, page, headers = _get(port, "/")
        assert (status, token in page) == (200, False), "the page has no secret and no data"
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert _get(port, "/data")[0] == 401
        assert _get(port, f"/data?token={token}")[0] == 404
        assert _get(port, "/data", Authorization="Bearer wrong")[0] == 401
        for host in ("evil.example", f"evil.example:{port}"):
            assert _get(port, "/data", Authorization=f"Bearer {token}", Host=host)[0] == 421
            assert _get(port, "/", Host=host)[0] == 421
        assert _get(port, "/data", Authorization=f"Bearer {token}")[0] == 200

        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=DEADLINE)
        assert process.returncode == 0, err
        assert "Traceback" not in err


def test_with_json_the_address_is_a_document(tmp_path: Path) -> None:
    with _running(tmp_path, "-json") as process:
        assert process.stdout is not None
        document = json.loads("".join(iter(process.stdout.readline, "}\n")) + "}")
        jsonschema.validate(document, DOCUMENTS["dashboard"]())
        assert _get(urlsplit(document["url"]).port or 0, "/")[0] == 200

        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=DEADLINE)
        assert out == "", "nothing else is on stdout"


def test_without_a_profile_it_takes_those_of_the_folder_that_have_a_state(cli: Open) -> None:
    at = cli()
    assert at.run("apply", "-auto-approve", at.write()).code == 0
    at.write(TWO, "never-applied.yaml")
    at.write("version: 1\nname: gemma\ntpu: {}\n", "invalid.yaml")
    at.write("trouble: []\n", "cloud.yaml")
    with _running(at.folder) as process:
        assert process.stdout is not None
        match = re.search(r":(\d+)/#(\S+)", process.stdout.readline())
        assert match is not None
        status, text, _ = _get(int(match[1]), "/data", Authorization=f"Bearer {match[2]}")
    assert (status, json.loads(text)["profiles"]) == (200, ["gemma.yaml"])


def test_a_port_in_use_and_a_port_that_is_none_are_explained(cli: Open, documents_of: Read) -> None:
    at = cli()
    with _serving(documents_of(at)) as server:
        taken = at.run("dashboard", "-port", str(server.port))
    assert taken.code == 1
    assert "tpudeploy dashboard -port 0" in taken.err
    assert "`http` is not a port" in at.run("dashboard", "-port", "http").err


def test_its_documents_are_those_of_json_and_hold_no_secret(
    cli: Open, documents_of: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = cli()
    profile = at.write()
    assert at.run("apply", "-auto-approve", profile).code == 0
    monkeypatch.setenv("HF_TOKEN", "hf_canary")
    requests = len([request for request in at.emulator.requests if request.method == "POST"])
    documents = documents_of(at, profile)
    documents.read_live()
    documents.read_plans()
    latest: dict[str, Any] = json.loads(json.dumps(documents.latest()))

    assert not latest["errors"]
    formats = {name: latest[name]["format"] for name in ("status", "metrics", "plan", "drift")}
    assert formats == {
        "status": "tpudeploy.status/1",
        "metrics": "tpudeploy.metrics/1",
        "plan": "tpudeploy.plan/1",
        "drift": "tpudeploy.plan/1",
    }
    (deployment,) = latest["status"]["deployments"]
    assert deployment["replicas"][0]["state"] == "serving"
    assert latest["history"][0]["states"][0]["is_current"]
    assert "hf_canary" not in json.dumps(latest)
    creates = [r for r in at.emulator.requests if r.method == "POST" and "GuestAttributes" not in r.path]
    assert len(creates) <= requests, "it changes nothing"


def _ask(
    server: DashboardServer, body: object, *, kind: str = "application/json", token: str | None = None, **headers: str
) -> tuple[int, list[dict[str, Any]]]:
    """Send a question as the page does; return the status, and the lines of the answer."""
    connection = HTTPConnection("127.0.0.1", server.port, timeout=DEADLINE)
    text = body if isinstance(body, str) else json.dumps(body)
    given = {"Content-Type": kind, "Authorization": f"Bearer {server.token if token is None else token}", **headers}
    try:
        connection.request("POST", "/chat", text, given)
        response = connection.getresponse()
        content = response.read().decode()
        return response.status, [json.loads(line) for line in content.splitlines()] if response.status == 200 else []
    finally:
        connection.close()


HELLO = {"deployment": "gemma", "messages": [{"role": "user", "content": "Hello"}]}


def test_an_answer_streams_to_the_page_which_has_neither_key_nor_address(cli: Open, documents_of: Read) -> None:
    at = cli()
    profile = at.write()
    assert at.run("apply", "-auto-approve", profile).code == 0
    with _serving(documents_of(at, profile)) as server:
        status, lines = _ask(server, HELLO)
        assert status == 200
        assert "emulator" in "".join(line.get("piece", "") for line in lines)
        assert lines[-1]["done"]["tokens"] > 1
        unknown = _ask(server, {**HELLO, "deployment": "other"})
        assert unknown[0] == 200
        assert "no profile of this deployment" in unknown[1][0]["error"]["message"]


@pytest.mark.parametrize(
    ("status", "body", "more"),
    [
        pytest.param(401, HELLO, {"token": "wrong"}, id="without the token"),
        pytest.param(403, HELLO, {"Origin": "http://evil.example"}, id="from another site"),
        pytest.param(403, HELLO, {"Origin": "null"}, id="from a page of no site"),
        pytest.param(421, HELLO, {"Host": "evil.example"}, id="by another name of this machine"),
        pytest.param(415, HELLO, {"kind": "text/plain"}, id="as a form of another site can send it"),
        pytest.param(413, "x" * 200_000, {}, id="larger than any conversation"),
        pytest.param(413, HELLO, {"Content-Length": "-1"}, id="of a length that is none"),
        pytest.param(400, "{", {}, id="not JSON"),
        pytest.param(400, {"deployment": "gemma", "messages": []}, {}, id="no message"),
        pytest.param(
            400, {"deployment": "gemma", "messages": [{"role": "tool", "content": ""}]}, {}, id="another role"
        ),
        pytest.param(400, {"deployment": 1, "messages": HELLO["messages"]}, {}, id="no name"),
    ],
)
def test_a_question_that_is_not_the_pages_is_refused(
    cli: Open, documents_of: Read, status: int, body: object, more: dict[str, str]
) -> None:
    with _serving(documents_of(cli())) as server:
        assert _ask(server, body, **more)[0] == status


def test_a_question_counts_as_use_and_what_the_page_reads_does_not(cli: Open, documents_of: Read) -> None:
    at = cli(nodes="simulated")
    profile = at.write(f"{PROFILE}lifecycle: {{idle: 30m}}\n")
    assert at.run("apply", "-auto-approve", profile).code == 0
    documents = documents_of(at, profile)

    def watch(minutes: int) -> None:
        for _ in range(minutes // 5):
            for _ in range(5):
                at.clock.sleep(60.0)
            documents.read_live()
            documents.read_load()

    with _serving(documents) as server:
        watch(20)
        assert _ask(server, HELLO)[1][-1]["done"]
        watch(20)
        assert at.emulator.billed(), "20 minutes after the question"
        watch(20)
        assert not at.emulator.billed(), "40 minutes after it, whatever the page read"


def test_logs_and_load_are_documents_behind_the_same_token(cli: Open, documents_of: Read) -> None:
    at = cli()
    profile = at.write()
    assert at.run("apply", "-auto-approve", profile).code == 0
    documents = documents_of(at, profile)
    documents.read_live()
    documents.read_load()
    at.clock.sleep(60.0)
    documents.read_load()
    with _serving(documents) as server:
        credentials = {"Authorization": f"Bearer {server.token}"}
        for path in ("/load", "/logs?deployment=gemma"):
            assert _get(server.port, path)[0] == 401
            assert _get(server.port, path, **credentials, Origin="http://evil.example")[0] == 403
        load = json.loads(_get(server.port, "/load", **credentials)[1])
        assert [value for value in load["deployments"]["gemma"]["hour"]["running"] if value is not None]
        assert (at.folder / ".tpudeploy" / "load" / "gemma.jsonl").stat().st_mode & 0o077 == 0
        status, text, _ = _get(server.port, "/logs?deployment=gemma", **credentials)
        assert (status, bool(json.loads(text)["machines"][0]["lines"])) == (200, True)
        status, text, _ = _get(server.port, "/logs?deployment=../gemma", **credentials)
        assert (status, json.loads(text)["message"]) == (502, "No such deployment has a state here.")
    cost = documents.latest()["cost"]["rows"][0]
    assert (cost["key"], cost["running"]) == ("gemma", 1)


def test_a_profile_that_is_not_applied_yet_is_no_error(cli: Open, documents_of: Read) -> None:
    at = cli()
    assert at.run("apply", "-auto-approve", at.write()).code == 0
    documents = documents_of(at, "gemma.yaml", at.write(TWO, "two.yaml"))
    documents.read_live()
    assert documents.latest()["errors"] == {}
    assert [each["deployment"] for each in documents.latest()["history"]] == ["gemma"]


@contextmanager
def _page(browser: Browser, address: str, scheme: Any, width: int) -> Iterator[tuple[Page, list[str]]]:
    """Yield the page, and what a browser complains about on it."""
    page = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900}).new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on(
        "request",
        lambda request: None if request.url.startswith("http://127.0.0.1:") else complaints.append(request.url),
    )
    page.goto(address)
    yield page, complaints
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 820, 1280])
def test_everything_of_a_deployment_is_reached_by_the_keyboard_at_each_width(
    cli: Open, documents_of: Read, browser: Browser, scheme: str, width: int
) -> None:
    at = cli()
    profile = at.write()
    assert at.run("apply", "-auto-approve", profile).code == 0
    documents = documents_of(at, profile)
    documents.read_live()
    documents.read_load()
    with _serving(documents) as server, _page(browser, server.address, scheme, width) as (page, complaints):
        box = page.locator(".deployment")
        expect(box.locator("dl.facts").first).to_contain_text("google/gemma-4-E2B-it")
        expect(box.locator("dl.facts").first).to_contain_text("cost so far")
        expect(box.locator(".row code")).to_have_text(re.compile("http://"))
        expect(box.get_by_role("button", name="Copy")).to_have_text(
            ["Copy URL", "Copy base URL", "Copy curl", "Copy Python"]
        )
        expect(box.locator(".charts h3")).to_contain_text(["Requests", "KV cache in use"])
        page.keyboard.press("c")
        page.keyboard.type("Hello")
        page.keyboard.press("Enter")
        expect(box.locator(".talk .is-answer")).to_contain_text("emulator")
        expect(box.get_by_role("status").last).to_contain_text("TTFT")
        page.keyboard.press("Escape")
        page.keyboard.press("/")
        page.keyboard.type("zzz")
        expect(box.get_by_text("0 lines")).to_be_visible()
        page.keyboard.press("Escape")
        page.keyboard.press("d")
        expect(box.get_by_role("button", name="Last day")).to_have_attribute("aria-pressed", "true")
        assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
        documents.read_live()
        expect(box.locator(".talk .is-asked")).to_have_text("Hello")
        assert complaints == []


def test_warnings_and_phases_share_no_color_and_states_have_a_sign_besides_it(
    cli: Open, documents_of: Read, browser: Browser
) -> None:
    with _serving(documents_of(cli())) as server:
        for scheme in ("light", "dark"):
            with _page(browser, server.address, scheme, 800) as (page, _):
                names = ("--one", "--four", "--warn", "--good", "--bad")
                read = "names => names.map(n => getComputedStyle(document.documentElement).getPropertyValue(n).trim())"
                assert len(set(page.evaluate(read, names))) == len(names)
                sign = "kind => { const e = document.createElement('i'); e.className = kind; document.body.append(e); return getComputedStyle(e, '::before').content; }"
                signs = [
                    page.evaluate(sign, kind) for kind in ("is-good", "is-bad", "is-waiting", "is-idle", "warning")
                ]
                assert len(set(signs)) == 5


@pytest.mark.parametrize(("scheme", "width"), [("light", 1100), ("dark", 390)])
def test_a_browser_shows_the_deployments_and_follows_them_without_a_reload(
    cli: Open, documents_of: Read, browser: Browser, scheme: str, width: int
) -> None:
    at = cli()
    assert at.run("apply", "-auto-approve", at.write()).code == 0
    documents = documents_of(at)
    documents.read_live()
    with _serving(documents) as server, _page(browser, server.address, scheme, width) as (page, complaints):
        expect(page.locator(".badge")).to_have_text("serving, by its own report")
        expect(page.locator(".sums")).to_contain_text("1 of 1")
        expect(page.locator("#page")).to_contain_text("KV cache")
        assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0

        assert at.run("apply", "-auto-approve", at.write(TWO, "two.yaml")).code == 0
        documents.read_live()
        expect(page.locator("h2", has_text="second")).to_be_visible()
        assert complaints == []


def test_the_plan_on_the_page_names_what_an_edited_profile_changes(
    cli: Open, documents_of: Read, browser: Browser
) -> None:
    at = cli()
    assert at.run("apply", "-auto-approve", at.write()).code == 0
    profile = at.write(PROFILE.replace("16384", "8192"))
    documents = documents_of(at, profile)
    documents.read_live()
    documents.read_plans()
    with _serving(documents) as server, _page(browser, server.address, "dark", 390) as (page, complaints):
        expect(page.locator("#page")).to_contain_text("Read every five minutes for gemma.yaml.")
        expect(page.locator("#page")).to_contain_text("restart because of serving change")
        expect(page.locator("li li")).to_contain_text(["serving.max_model_len: 16384 → 8192"])
        assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
        assert complaints == []


def test_the_documents_are_read_on_after_any_error_which_is_shown(
    cli: Open, documents_of: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = cli(nodes="simulated")
    assert at.run("apply", "-auto-approve", at.write(PROFILE)).code == 0
    documents = documents_of(at, "gemma.yaml")
    with monkeypatch.context() as patch:
        patch.setattr(td.Workspace, "status", _surprise)
        documents.read_live()
        documents.read_live()
    (error,) = documents.latest()["errors"].values()
    assert (error["code"], "a surprise" in error["message"]) == ("TPU0070", True)
    documents.read_live()
    assert documents.latest()["errors"] == {}
    assert documents.latest()["status"]["deployments"][0]["name"] == "gemma"


def _surprise(*_: object, **__: object) -> None:
    raise RuntimeError("a surprise")


def test_a_page_without_its_token_says_so(cli: Open, documents_of: Read, browser: Browser) -> None:
    at = cli()
    with _serving(documents_of(at)) as server:
        address = server.address.partition("#")[0]
        with _page(browser, address, "light", 800) as (page, _):
            expect(page.locator("#live")).to_contain_text("the address lacks its token")


def test_what_others_wrote_is_text_and_never_markup(cli: Open, documents_of: Read, browser: Browser) -> None:
    at = cli()
    documents = documents_of(at)
    hostile = "<img src=x onerror=document.title='taken'>"
    replica = {
        **dict.fromkeys(("age", "ends_in", "lapses_in", "usd_per_hour", "usd_per_hour_granted", "stage")),
        **dict.fromkeys(("slice_name", "zone", "provisioning", "accelerator_type", "boot_detail", "url"), hostile),
        "address": hostile,
        "state": "up",
        "boot": "failed",
        "serving": False,
        "detail": hostile,
        "undo": hostile,
        "backend": "queued-resource",
    }
    row = {"name": hostile, "replicas": [replica], "error": None, "underway": "", "lock": hostile, "continue_with": ""}
    documents._parts = {"status": {"emulated": True, "deployments": [row], "timelines": []}, "status_at": 0.0}
    with _serving(documents) as server, _page(browser, server.address, "light", 800) as (page, complaints):
        expect(page.locator("h2").first).to_have_text(hostile)
        assert page.locator("img").count() == 0
        assert page.title() == "tpudeploy"
        assert complaints == []
