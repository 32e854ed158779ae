"""What the stories share."""

from __future__ import annotations

import gc
import os
import shutil
import signal
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from command_line import CALM, REAL_BOOT, UNKIND, CommandLine, NextEvent, Open
from github_api import GitHubApi, github_api
from hypothesis import settings
from journal import read_journal
from real_time import DEADLINE
from workflow import Both, Pipeline

from tpudeploy.domain.patience import Patience
from tpudeploy.emulator import Emulator, VirtualClock, running

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# What a pipeline that runs these tests says of itself: no story is to comment on the pull request that it tests.
PIPELINES = (
    *("GITHUB_REPOSITORY", "GITHUB_EVENT_PATH", "GITHUB_EVENT_NAME", "GITHUB_SHA", "GITHUB_TOKEN", "GH_TOKEN"),
    *("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT", "GITHUB_API_URL", "GITHUB_REF", "TPUDEPLOY_APPROVAL_KEY"),
    *("GITLAB_CI", "CI_PROJECT_PATH", "CI_COMMIT_SHA", "CI_COMMIT_BRANCH", "CI_MERGE_REQUEST_IID"),
)


# What hypothesis draws is the same in each run, and takes the time that it takes.
settings.register_profile("steady", derandomize=True, deadline=None, database=None)
settings.load_profile("steady")

COMPUTING = 2  # workers that have no test that waits to begin with


def pytest_configure() -> None:
    """Take Ctrl-C also where a shell started the tests in the background: their children would inherit to ignore it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None, None, None]:
    """Begin with the tests that wait, once the order is drawn: at the end of a run they would wait alone."""
    yield
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    if workers > COMPUTING:
        items[:] = _with_waiting_first(items, workers)


def _with_waiting_first(items: Sequence[pytest.Item], workers: int) -> list[pytest.Item]:
    """Return the tests so that of the equal parts, one for each worker, all but the last two begin with those that wait."""
    waiting = [item for item in items if item.get_closest_marker("waits")]
    others = (item for item in items if not item.get_closest_marker("waits"))
    ordered: list[pytest.Item] = []
    for number in range(workers):
        size = (len(items) - len(ordered)) // (workers - number)
        head = waiting[number :: workers - COMPUTING] if number < workers - COMPUTING else []
        ordered += [*head, *islice(others, max(0, size - len(head)))]
    return [*ordered, *others]


def pytest_collection_finish() -> None:
    """Keep the garbage collector from what was collected: walking thousands of tests takes it a third of a second."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _without_fsync() -> Iterator[None]:
    """Leave out the wait for the disk: only a loss of power could show it, and no test has one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _descriptor: None)
        yield


# The emulators of the test that runs, and those of a wider fixture.
_EMULATORS: list[Emulator] = []


@pytest.fixture(scope="session", autouse=True)
def _with_journals() -> Iterator[None]:
    """Remember each emulator, however a test starts it."""
    start = Emulator.__init__

    def start_and_remember(emulator: Emulator, **options: Any) -> None:
        start(emulator, **options)
        _EMULATORS.append(emulator)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Emulator, "__init__", start_and_remember)
        yield


def pytest_runtest_setup() -> None:
    """Forget the emulators of earlier tests."""
    _EMULATORS[:] = [emulator for emulator in _EMULATORS if emulator.is_running]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add to a failed test its seeds, what its clouds were asked and what their machines logged."""
    report = yield
    if report.failed:
        report.sections.extend(read_journal(item.config, _EMULATORS))
    return report


@pytest.fixture
def default_patience(request: pytest.FixtureRequest) -> Patience | None:
    """The waiting times of `cli`: None for those of a calm story, the product's own for `polls_every_second`."""
    return Patience() if request.node.get_closest_marker("polls_every_second") else None


@pytest.fixture
def cli(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
    default_patience: Patience | None,
) -> Iterator[Open]:
    """`cli(trouble=[…], nodes="simulated")`: a cloud with that scenario, and a user's command line before it.

    The cloud is as slow as a real one, and no two of its durations are equal. What a scenario says counts before. A
    test or a module that needs exact times, and nothing that lasts, is marked `instant` with the reason.
    """
    is_instant = request.node.get_closest_marker("instant")
    with ExitStack() as stack:

        def open_command_line(*, patience: Patience | None = None, **scenario: Any) -> CommandLine:
            clock = VirtualClock()
            default: Mapping[str, Any] = {} if is_instant else UNKIND
            of_real = {"boot": REAL_BOOT} if default and scenario.get("nodes") == "real" else {}
            timings = {**default.get("timings", {}), **of_real, **scenario.get("timings", {})}
            trouble = [*scenario.get("trouble", ()), *default.get("trouble", ())]
            played = {"nodes": "simulated", **default, **scenario, "timings": timings, "trouble": trouble}
            emulator = stack.enter_context(running(clock=clock, scenario=played))
            stack.callback(_nothing_was_unsupported, emulator)
            monkeypatch.setenv("TPU_EMULATOR_HOST", emulator.host)
            for variable in ("STORAGE_EMULATOR_HOST", "GOOGLE_CLOUD_PROJECT", "TPUDEPLOY_BACKEND", *PIPELINES):
                monkeypatch.delenv(variable, raising=False)
            jumps = played["nodes"] == "simulated" and not is_instant
            calm = NextEvent(emulator=emulator, clock=clock) if jumps else CALM
            own_patience = patience or default_patience or calm
            return CommandLine(folder=tmp_path, clock=clock, emulator=emulator, capture=capfd, patience=own_patience)

        yield open_command_line


def _nothing_was_unsupported(emulator: Emulator) -> None:
    """Fail a story in which a stand-in was asked what it cannot answer: what followed shows nothing of the real one."""
    assert not emulator.unsupported


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A headless Chromium, in which the pages are seen as a reader sees them."""
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        pytest.skip("no Chromium is installed: apt-get install chromium")
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=DEADLINE * 1000)

    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])


@pytest.fixture
def forge() -> Iterator[GitHubApi]:
    with github_api() as api:
        yield api


@pytest.fixture
def pipeline(cli: Open, forge: GitHubApi, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Both:
    """A person's profile in a repository on GitHub, and the workflow that runs there on a pull request."""
    at = cli()
    at.write()
    return at, Pipeline(forge, monkeypatch, tmp_path / "runner")
