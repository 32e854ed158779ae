"""`apply --watch`: what is lost is asked for again, and nothing else is touched, until somebody says stop."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from urllib.request import urlopen

import pytest
from command_line import PROFILE, CommandLine, Open, Result
from real_time import DEADLINE

from tpudeploy.adapters.project import STATES
from tpudeploy.domain.errors import Interrupted
from tpudeploy.domain.events import Event, Serving
from tpudeploy.loading import Profile
from tpudeploy.ports import Workers
from tpudeploy.workspace import Workspace

HOUR = 3600.0
A, B = "us-east5-a", "us-east5-b"


def _watched(at: CommandLine, seconds: float, *deeds: tuple[float, Callable[[], object]]) -> Result:
    """`apply --watch`, stopped by Ctrl-C after so long; each deed is done at its moment of that time."""
    began = at.clock.now()
    remaining = sorted(deeds, key=lambda deed: deed[0])

    def on_advance() -> None:
        while remaining and at.clock.now() >= began + remaining[0][0]:
            remaining.pop(0)[1]()
        if at.clock.now() >= began + seconds:
            raise KeyboardInterrupt

    at.clock.on_advance.append(on_advance)
    result = at.run("apply", "-auto-approve", "-watch", "gemma.yaml")
    at.clock.on_advance.remove(on_advance)
    return result


def _preempt(at: CommandLine) -> Callable[[], None]:
    def preempt() -> None:
        for name in at.emulator.billed():
            at.emulator.preempt(name)

    return preempt


def test_what_is_preempted_is_asked_for_again_in_the_same_zone_first_and_serves_again(cli: Open) -> None:
    at = cli(trouble=[{"fault": "stockout", "zone": A, "times": 1}])
    at.write()
    result = _watched(at, 2 * HOUR, (HOUR, _preempt(at)))
    assert result.code == 130
    assert result.err.count("Serving at") == 2
    assert at.requested_zones() == [A, B, B]
    assert list(at.slices.values()) == ["ACTIVE"]  # the husk is gone, its quota is back
    assert at.run("plan", "-detailed-exitcode", "gemma.yaml").code == 0


def test_the_end_of_a_flex_start_run_is_another_request(cli: Open) -> None:
    at = cli()
    at.write(PROFILE.replace("[spot]", "[flex-start]\n  max_run_duration: 1h"))
    result = _watched(at, 2.5 * HOUR)
    assert result.err.count("Serving at") == 3
    assert at.requested_zones() == [A, A, A]
    assert list(at.slices.values()) == ["ACTIVE"]


@pytest.mark.instant("the lines of a quick start are counted")
def test_what_serves_is_left_alone_and_nothing_is_said_of_it(cli: Open) -> None:
    at = cli()
    at.write()
    result = _watched(at, 2 * HOUR)
    assert at.requested_zones() == [A]
    assert result.err.count("\n") < 25
    assert at.state()["goal"] is None  # it was reached; there is nothing to go on with


def test_stopped_in_the_middle_of_a_hunt_the_next_apply_goes_on_without_asking(cli: Open) -> None:
    at = cli(trouble=[{"fault": "timings", "attempt": 2, "waiting": 3 * HOUR}])
    at.write(PROFILE + "  valid_until: 10h\n")
    result = _watched(at, 2 * HOUR, (HOUR, _preempt(at)))
    assert result.code == 130
    resumed = at.run("apply", "gemma.yaml")
    assert resumed.code == 0, resumed.all
    assert list(at.slices.values()) == ["ACTIVE"]


def test_a_colleague_who_destroys_it_meanwhile_has_the_last_word(cli: Open) -> None:
    at = cli()
    at.write()
    profile = Profile.load(at.folder / "gemma.yaml")

    def destroy() -> None:
        with Workspace(at.folder, clock=_Still(at)) as other:
            assert other.destroy([profile]).error is None

    result = _watched(at, 3 * HOUR, (HOUR, destroy))
    assert result.code == 11
    assert "was changed by another run; this one stops watching it" in result.err
    assert not at.slices
    assert at.requested_zones() == [A]


def test_a_colleague_who_applies_the_same_profile_meanwhile_changes_nothing(cli: Open) -> None:
    at = cli()
    at.write()
    profile = Profile.load(at.folder / "gemma.yaml")

    def apply() -> None:
        with Workspace(at.folder, clock=_Still(at)) as other:
            assert other.apply(other.plan([profile])).error is None

    result = _watched(at, 3 * HOUR, (HOUR, apply), (2 * HOUR, _preempt(at)))
    assert result.code == 130
    assert result.err.count("Serving at") == 2
    assert list(at.slices.values()) == ["ACTIVE"]


def test_a_cloud_that_is_silent_for_long_does_not_end_the_watch(cli: Open) -> None:
    at = cli()
    at.write()
    silence = {"fault": "unavailable", "method": "*", "times": 80}
    result = _watched(at, 4 * HOUR, (HOUR, lambda: at.emulator.script(silence)), (3.5 * HOUR, _preempt(at)))
    assert result.code == 130
    assert result.err.count("No answer") > 20
    assert result.err.count("Serving at") == 2


def test_a_library_is_told_to_stop_from_its_own_listener(cli: Open, tmp_path: object) -> None:
    at = cli()
    at.write()
    heard: list[Event] = []
    with Workspace.open(at.folder) as workspace:

        def listen(event: Event) -> None:
            heard.append(event)
            if isinstance(event, Serving):
                workspace.stop()

        workspace.adapters.clock = _Stoppable(at)
        plan = workspace.plan([Profile.load(at.folder / "gemma.yaml")])
        with pytest.raises(Interrupted):
            workspace.apply(plan, on_event=listen, watch=True)
    assert any(isinstance(event, Serving) for event in heard)
    assert at.state()["goal"] is None
    assert (at.folder / STATES).exists()


def test_watching_what_is_not_waited_for_is_refused(cli: Open) -> None:
    at = cli()
    result = at.run("apply", "-watch", "-wait", "accepted", at.write())
    assert result.code == 1
    assert "-watch replaces what serves" in result.err


class _Still:
    """The same clock without the actions that follow when time passes: a colleague's time is the same, his hands are not."""

    def __init__(self, at: CommandLine) -> None:
        self._at = at

    def now(self) -> float:
        return self._at.clock.now()

    def sleep(self, seconds: float) -> None:
        hooks, self._at.clock.on_advance = self._at.clock.on_advance, self._at.clock.on_advance[:1]
        try:
            self._at.clock.sleep(seconds)
        finally:
            self._at.clock.on_advance = hooks

    def stop(self) -> None:
        self._at.clock.stop()

    def workers(self) -> AbstractContextManager[Workers]:
        return self._at.clock.workers()


class _Stoppable(_Still):
    """A clock whose sleeps end once it is stopped, as the real one's do."""

    def __init__(self, at: CommandLine) -> None:
        super().__init__(at)
        self._is_stopped = False

    def sleep(self, seconds: float) -> None:
        if self._is_stopped:
            raise Interrupted("told to stop")
        super().sleep(seconds)

    def stop(self) -> None:
        self._is_stopped = True


def _completions(at: CommandLine) -> int:
    """Return how many requests the server has finished, by its own metrics."""
    (host,) = [node.hosts[0] for node in at.emulator._cloud.nodes.values()]
    url = f"http://{host.address}:{host.port_for(8000)}/metrics"
    with urlopen(url, timeout=DEADLINE) as response:
        text = response.read().decode()
    lines = (line for line in text.splitlines() if line.startswith("vllm:request_success_total"))
    return int(sum(float(line.split()[-1]) for line in lines))


def test_a_watch_completes_a_prompt_at_most_once_in_ten_minutes(cli: Open) -> None:
    at = cli(nodes="real")
    at.write()
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    before = _completions(at)
    assert _watched(at, HOUR).code == 130
    assert 1 <= _completions(at) - before <= 7
