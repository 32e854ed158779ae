"""`apply` does what the plan showed, once, and says so when it cannot."""

from __future__ import annotations

from promises.mortal import Fuse
from promises.trial import Trial, trial

from tpudeploy.domain.plan import Action, Reason
from tpudeploy.workspace import Workspace

BOOTING = 300.0


def test_a_label_changed_while_the_server_boots_is_part_of_what_resumes() -> None:
    with trial(boot={"boot_seconds": BOOTING}) as at:
        at.apply(Fuse(6))
        assert list(_states(at)) == ["ACTIVE"]
        at.wanted["team"] = "ads"
        report = at.apply()
        assert report is not None, at.history
        assert report.error is None
        at.must_serve()


def test_a_resumed_run_whose_server_no_longer_answers_does_not_call_it_done() -> None:
    with trial() as at:
        last = Fuse()
        with trial() as rehearsal:
            rehearsal.apply(last)
        at.apply(Fuse(len(last.passed) - 1))
        (node,) = at.emulator._cloud.nodes.values()
        node.hosts[0].stop()
        report = at.apply()
        assert report is not None
        assert report.error is not None
        assert report.error.exit_code == 1


def test_a_yes_does_not_outlive_a_destroy() -> None:
    with trial() as at:
        at.apply(Fuse(1))
        assert at.plan().needs_approval is False, "begun, and not yet asked for"
        at.until_done(at.destroy)
        assert at.plan().needs_approval is True


def test_a_yes_does_not_outlive_a_change_of_mind() -> None:
    with trial() as at:
        at.until_done(at.apply)
        at.wanted["max_model_len"] = 8192
        at.apply(Fuse(1))
        at.wanted["max_model_len"] = 16384
        at.until_done(at.apply)
        at.must_serve()
        at.wanted["max_model_len"] = 8192
        assert at.plan().needs_approval is True


def test_waiting_for_the_grant_waits_for_the_new_slice_and_not_for_the_one_it_replaces() -> None:
    with trial() as at:
        at.until_done(at.apply)
        at.wanted["type"] = "v6e-4"
        with Workspace(at.folder, clock=at.clock) as workspace:
            report = workspace.apply(workspace.plan([at.profile()]), wait="granted")
        assert report.error is None
        assert sorted(s.accelerator.name for s in at.emulator._cloud.slices.values()) == ["v6e-1", "v6e-4"]
        assert set(_states(at)) == {"ACTIVE"}
        assert at.state is not None
        assert at.state.goal is not None, "begun, and not at its end"
        at.until_done(at.apply)
        at.must_serve()


def test_one_replica_that_serves_does_not_end_the_run_of_the_other() -> None:
    with trial() as at:
        at.until_done(at.apply)
        at.wanted["replicas"] = 2
        with Workspace(at.folder, clock=at.clock) as workspace:
            workspace.apply(workspace.plan([at.profile()]), wait="granted")
        assert at.state is not None
        assert at.state.goal is not None
        assert [(c.action, c.reason) for c in at.plan().changes] == [
            (Action.NO_OP, Reason.NONE),
            (Action.CREATE, Reason.RESUMES),
        ]


def test_a_slice_that_lost_its_machine_unseen_is_given_up_in_the_end() -> None:
    with trial([{"fault": "vanish", "after": 0, "times": 1}]) as at:
        at.apply(Fuse(4))
        at.clock.sleep(3600)
        at.until_done(at.apply)
        at.must_serve()


def test_a_server_that_came_up_while_nobody_looked_is_not_restarted() -> None:
    with trial(boot={"boot_seconds": BOOTING}) as at:
        at.apply(Fuse(6))
        at.clock.sleep(6 * 3600)
        assert [c.action for c in at.plan().changes] == [Action.CREATE]
        report = at.apply()
        assert report is not None
        assert report.error is None
        assert not [r for r in at.emulator.requests if r.resource.endswith(":reset")]


def test_a_look_that_is_refused_is_repeated() -> None:
    with trial([{"fault": "quota-exhausted", "method": "queuedResources.get", "attempt": "2-4"}]) as at:
        report = at.apply()
        assert report is not None, at.history
        assert report.error is None, at.history
        at.must_serve()


def _states(at: Trial) -> list[str]:
    return [state for zone in at.emulator.live().values() for state in zone.values()]
