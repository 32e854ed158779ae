"""What a machine reports of itself, under Google's limit on guest attributes, and a script that somebody runs again."""

from __future__ import annotations

import pytest
from command_line import PROFILE, CommandLine, Open

SHORTER = PROFILE.replace("16384", "8192")
UNREACHABLE = {"reachable": False}  # so that the report alone says that it serves


def test_a_long_boot_and_its_change_stay_below_googles_limit(cli: Open) -> None:
    at = cli(nodes="real", boot={"boot_seconds": 300, **UNREACHABLE})
    profile = at.write()
    assert at.run("apply", "-auto-approve", profile).code == 0
    at.clock.sleep(60)
    at.write(SHORTER)
    changed = at.run("apply", "-auto-approve", profile)
    assert changed.code == 0, changed.all
    at.clock.sleep(60)
    assert at.emulator.removed_attributes(_node(at)) == ()
    assert "serving" in at.run("status", profile).out


def test_a_run_reads_a_machine_four_times_a_minute_at_most(cli: Open) -> None:
    at = cli(boot={"boot_seconds": 600})
    began = at.clock.now()
    assert at.run("apply", "-auto-approve", at.write()).code == 0
    reads = [request for request in at.emulator.requests if request.path.endswith(":getGuestAttributes?alt=json")]
    assert 5 < len(reads) <= 4 * (at.clock.now() - began) / 60


def test_a_machine_reports_its_preemption_at_once_and_while_its_server_changes_too(cli: Open) -> None:
    at = cli(nodes="real", boot={"boot_seconds": 30})
    profile = at.write()
    assert at.run("apply", "-auto-approve", profile).code == 0
    at.write(SHORTER)  # the watcher of another script listens from here on
    changed = at.run("apply", "-auto-approve", profile)
    assert changed.code == 0, changed.all
    at.clock.sleep(5 * 60)
    at.emulator.preempt(_node(at), notice=30)
    at.clock.sleep(1)
    assert "being preempted" in at.run("status", profile).words
    assert "Google preempts this machine" in at.run("logs", profile).out


def test_a_serving_report_that_google_removes_is_written_again_and_the_run_ends_well(cli: Open) -> None:
    at = cli(nodes="real", boot={"boot_seconds": 120, **UNREACHABLE})
    profile = at.write()
    flood = _Flood(at, minutes=12)
    applied = at.run("apply", "-auto-approve", profile)
    assert applied.code == 0, applied.all
    assert "report" in " ".join(at.emulator.removed_attributes(_node(at)))
    assert flood.is_over


def test_an_acknowledgement_that_google_removes_costs_no_reset_and_is_written_again(cli: Open) -> None:
    at = cli(nodes="real", boot={"boot_seconds": 30})
    profile = at.write()
    assert at.run("apply", "-auto-approve", profile).code == 0
    at.clock.sleep(60)
    at.write(SHORTER)
    _Flood(at, minutes=1)
    changed = at.run("apply", "-auto-approve", profile)
    assert changed.code == 0, changed.all
    assert at.emulator.removed_attributes(_node(at))
    assert not any(request.path.endswith(":reset?alt=json") for request in at.emulator.requests)


def test_the_script_run_by_hand_leaves_the_server_that_runs_alone_and_says_so(cli: Open) -> None:
    at = cli(nodes="real")
    profile = at.write()
    assert at.run("apply", "-auto-approve", profile).code == 0
    at.clock.sleep(60)
    node = _node(at)
    before = at.emulator.log(node)
    at.emulator.run_script_by_hand(node)
    at.clock.sleep(60)
    printed = at.emulator.log(node).removeprefix(before)
    assert "Run by hand: the container gemma of this script runs already, and is left alone." in printed
    assert "systemd" not in printed
    assert "booted: Starting" not in printed
    assert "completion tokens" in at.run("query", profile, "Say hello.").all


def test_the_script_run_by_hand_during_a_boot_leaves_the_boot_alone(cli: Open) -> None:
    at = cli(nodes="real", boot={"boot_seconds": 300})
    profile = at.write()
    at.killed(240, "apply", "-auto-approve", profile)
    node = _node(at)
    at.emulator.run_script_by_hand(node)
    assert "Run by hand: the unit tpudeploy-work is bringing up the server already" in at.emulator.log(node)
    assert at.run("apply", "-auto-approve", profile).code == 0
    assert at.emulator.log(node).count("starting: Starting the container") == 1


def test_the_script_run_by_hand_brings_up_a_server_that_failed(cli: Open) -> None:
    at = cli(nodes="real", boot={"crash": "RuntimeError: broken"})
    profile = at.write()
    assert at.run("apply", "-auto-approve", profile).code == 1
    at.clock.sleep(60)
    node = _node(at)
    at.emulator.run_script_by_hand(node)
    at.clock.sleep(60)
    assert "the container of this script does not run, so the unit tpudeploy-work brings it up again" in (
        at.emulator.log(node)
    )
    assert at.emulator.log(node).count("starting: Starting the container") == 2


def test_the_script_run_by_hand_after_a_change_was_undone_leaves_the_server_before_alone(cli: Open) -> None:
    at = cli(nodes="real", boot={"boot_seconds": 30, "setup_fails": True})
    profile = at.write()
    assert at.run("apply", "-auto-approve", profile).code == 0
    at.write(SHORTER.replace("  max_model_len", '  setup: ["pip install broken"]\n  max_model_len'))
    assert at.run("apply", "-auto-approve", profile).code == 13
    at.clock.sleep(60)
    node = _node(at)
    before = at.emulator.log(node)
    at.emulator.run_script_by_hand(node)
    at.clock.sleep(60)
    printed = at.emulator.log(node).removeprefix(before)
    assert (
        "Run by hand: this change failed and was undone, and the server before is left alone."
        " It failed because: The container ended (exit code 1): ERROR: a setup step failed" in printed
    )
    assert "starting: Starting the container" not in printed
    assert "completion tokens" in at.run("query", profile, "Say hello.").all


@pytest.mark.parametrize("nodes", ["real", "simulated"])
def test_a_death_whose_message_is_broken_over_lines_is_told_with_the_numbers_that_mend_it(
    cli: Open, nodes: str
) -> None:
    at = cli(nodes=nodes, boot={"crash": "program-allocation"})
    failed = at.run("apply", "-auto-approve", at.write())
    assert failed.code == 1
    assert "Error loading program 'jit_structured_decode_fn': Attempting to reserve 384.11M" in failed.words
    assert "Compiled programs need room beside weights and cache: lower serving.hbm_utilization to 0." in failed.words


class _Flood:
    """Somebody else's poller: each time that time passes it reads the machine's guest attributes twelve times."""

    def __init__(self, at: CommandLine, *, minutes: float) -> None:
        self._at = at
        self._end = at.clock.now() + 60 * minutes
        at.clock.on_advance.insert(0, self._read)

    @property
    def is_over(self) -> bool:
        return self._at.clock.now() >= self._end

    def _read(self) -> None:
        if not self.is_over:
            for name in self._at.slices:
                self._at.emulator.read_guest_attributes(name, times=12)


def _node(at: CommandLine) -> str:
    (name,) = at.slices
    return name


def test_a_report_that_another_process_is_just_writing_ends_no_boot(cli: Open) -> None:
    """Work, reporter and watcher share the file of the last report's time: who reads it may find it empty."""
    at = cli(nodes="real", boot={"boot_seconds": 120})
    assert at.run("apply", "-auto-approve", "-wait", "granted", at.write()).code == 0
    (report,) = at.emulator._folder.glob("*/*/*/run/tpudeploy/report")
    for _ in range(6):
        (report / ".written").write_text("", encoding="ascii")
        at.clock.sleep(10)
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    assert "syntax error" not in at.run("logs", "gemma.yaml").out
