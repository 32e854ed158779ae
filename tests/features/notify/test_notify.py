"""`notify`: a receiver is told each event once, signed, whatever stops a run; no run waits for it or fails by it."""

from __future__ import annotations

import hashlib
import hmac
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command_line import INSTANCE, PROFILE, CommandLine, Open
from features.notify.receiver import Receiver, receiving

from tpudeploy.features.notify import delivery

KEY = "a key of sixteen"
HOUR = 3600.0
pytestmark = pytest.mark.usefixtures("_key")


@pytest.fixture
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TPUDEPLOY_NOTIFY_KEY", KEY)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as one:
        yield one


def notifying(at: CommandLine, target: str, text: str = PROFILE, name: str = "gemma.yaml") -> str:
    return at.write(f"{text}notify: [{json.dumps(target)}]\n", name)


def outbox(at: CommandLine) -> dict[str, Any]:
    tree: dict[str, Any] = json.loads((at.folder / ".tpudeploy" / "outbox.json").read_text())
    return tree


@pytest.mark.parametrize("where", [(), ("--backend", "gs://states/team")], ids=["in the folder", "in a bucket"])
def test_a_receiver_is_told_once_that_it_serves_and_that_it_was_destroyed(
    cli: Open, receiver: Receiver, where: tuple[str, ...]
) -> None:
    at = cli()
    profile = notifying(at, receiver.url)
    assert at.run("apply", "-auto-approve", profile, *where).code == 0
    assert [(each["event"], each["address"]) for each in receiver.events] == [("serving", "gemma[0]")]
    assert at.run("apply", "-auto-approve", profile, *where).code == 0
    assert len(receiver.events) == 1, "each event once"
    assert at.run("destroy", "-auto-approve", profile, *where).code == 0
    assert [(each["event"], each["why"]) for each in receiver.events[1:]] == [("ended", "destroy")]
    assert at.run("destroy", "-auto-approve", profile, *where).code == 0
    assert len(receiver.events) == 2


def test_what_is_sent_is_signed_with_its_time_and_holds_no_secret(cli: Open, receiver: Receiver) -> None:
    at = cli()
    assert at.run("apply", "-auto-approve", notifying(at, receiver.url)).code == 0
    headers, body = receiver.received[0]
    words = dict(part.split("=", 1) for part in headers["tpudeploy-signature"].split(","))
    signed = words["t"].encode() + b"." + body
    assert words["v1"] == hmac.new(KEY.encode(), signed, hashlib.sha256).hexdigest()
    assert abs(int(words["t"]) - at.clock.now()) < 60
    document = json.loads(body)
    assert document["format"] == "tpudeploy.notification/1"
    assert headers["tpudeploy-event-id"] == document["id"]
    assert set(document) == {"format", "id", "event", "at", "deployment", "address", "why", "text"}
    assert KEY not in body.decode()
    assert "hf-token" not in body.decode()


def test_the_page_shows_how_a_receiver_checks_the_signature(cli: Open, receiver: Receiver) -> None:
    at = cli()
    assert at.run("apply", "-auto-approve", notifying(at, receiver.url)).code == 0
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "notify.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    exec(page.partition("```python\n")[2].partition("```")[0], names)
    (headers, body), now = receiver.received[0], at.clock.now()
    header = headers["tpudeploy-signature"]
    check = names["is_genuine"]
    assert check(header, body, KEY.encode(), now)
    assert not check(header, body + b" ", KEY.encode(), now)
    assert not check(header, body, b"another", now)
    assert not check(header, body, KEY.encode(), now + HOUR)


def test_the_schema_of_a_notification_is_published(cli: Open, receiver: Receiver) -> None:
    import jsonschema

    at = cli()
    assert at.run("apply", "-auto-approve", notifying(at, receiver.url)).code == 0
    schema = at.run("schema", "notification")
    assert schema.code == 0
    jsonschema.validate(receiver.events[0], json.loads(schema.out))


def test_a_failure_is_told_with_its_code_once_for_an_approved_change(cli: Open, receiver: Receiver) -> None:
    at = cli(trouble=[{"fault": "stockout", "zone": "*"}])
    profile = notifying(at, receiver.url)
    words = ("apply", "-auto-approve", profile, "-timeout", "10m")
    assert at.run(*words).code == 12
    assert at.run(*words).code == 12
    (failed,) = receiver.events
    assert (failed["event"], failed["address"]) == ("failed", "gemma[0]")
    assert failed["why"].startswith("TPU")
    assert "was not granted in time" in failed["text"]


ENDS = {
    "end": "lifecycle: {end: 2h}\n",
    "idle": "lifecycle: {idle: 30m}\n",
    "hours": "lifecycle: {hours: '08:00-16:00 UTC'}\n",
}


@pytest.mark.parametrize("key", ENDS)
@pytest.mark.parametrize("text", [PROFILE, INSTANCE], ids=["queued resource", "instance"])
def test_an_end_that_nobody_saw_is_told_by_the_next_run(cli: Open, receiver: Receiver, key: str, text: str) -> None:
    at = cli(nodes="simulated")  # a Monday, 14:00
    profile = notifying(at, receiver.url, text.replace("[spot]", "[on-demand]") + ENDS[key])
    assert at.run("apply", "-auto-approve", profile).code == 0
    for _ in range(150):
        at.clock.sleep(60)
    assert [each["event"] for each in receiver.events] == ["serving"]
    assert at.run("apply", "-auto-approve", profile).code == 0
    assert at.run("apply", "-auto-approve", profile).code == 0
    assert [(each["event"], f"lifecycle.{key}" in each["why"]) for each in receiver.events[1:]] == [("ended", True)]


def test_a_watch_tells_of_an_end_within_minutes(cli: Open, receiver: Receiver) -> None:
    at = cli()
    profile = notifying(at, receiver.url, PROFILE + ENDS["end"])
    assert at.run("apply", "-auto-approve", "-watch", profile).code == 0, "nothing is left to watch"
    assert [each["event"] for each in receiver.events] == ["serving", "ended"]


@pytest.mark.parametrize("owner", ["deployment", "team"])
def test_four_fifths_of_a_budget_are_told_once_in_its_month(cli: Open, receiver: Receiver, owner: str) -> None:
    at = cli()
    profile = notifying(at, receiver.url, PROFILE + "lifecycle: {end: 9h}\n")
    if owner == "team":
        (at.folder / ".tpudeploy").mkdir()
        (at.folder / ".tpudeploy" / "budgets.yaml").write_text("month: 15\n")
    else:
        notifying(at, receiver.url, PROFILE + "lifecycle: {end: 9h}\nbudget: {month: 15}\n")
    assert at.run("apply", "-auto-approve", profile).code == 0
    at.clock.sleep(8 * HOUR)
    assert at.run("apply", "-auto-approve", profile).code == 0
    assert receiver.events_of("budget") == [], "less than 80 %"
    at.clock.sleep(0.8 * HOUR)
    assert at.run("apply", "-auto-approve", profile).code == 0
    assert at.run("apply", "-auto-approve", profile).code == 0
    (spent,) = [each for each in receiver.events if each["event"] == "budget"]
    assert spent["deployment"] == ("" if owner == "team" else "gemma")
    assert "of $15.00" in spent["text"]


def test_an_answer_of_500_is_tried_again_in_the_same_run(cli: Open) -> None:
    with receiving(500, 503) as receiver:
        at = cli()
        applied = at.run("apply", "-auto-approve", notifying(at, receiver.url))
        assert applied.code == 0
        assert len(receiver.received) == 3
        assert len(receiver.events_of("serving")) == 1, "the same id"
        assert "was sent" not in applied.err


@pytest.mark.parametrize("status", [302, 404, 500])
def test_what_cannot_be_delivered_is_said_once_and_sent_by_the_next_run(cli: Open, status: int) -> None:
    with receiving(*[status] * 20) as receiver:
        at = cli()
        profile = notifying(at, receiver.url)
        applied = at.run("apply", "-auto-approve", profile)
        assert applied.code == 0
        assert applied.words.count("Not everything was sent to http://127.0.0.1:") == 1
        assert f"answered {status}" in applied.words
        assert "/hook" not in applied.all, "the path of a URL may be a secret"
        receiver.statuses.clear()
        before = len(receiver.received)
        assert at.run("apply", "-auto-approve", profile).code == 0
        assert [each["event"] for each in receiver.events[before:]] == ["serving"]


def test_a_receiver_that_drips_delays_a_run_by_one_deadline(cli: Open) -> None:
    with receiving(drips=True) as receiver:
        at = cli()
        at.patience = replace(at.patience, call_timeout=0.5)
        applied = at.run("apply", "-auto-approve", notifying(at, receiver.url))
        assert applied.code == 0
        assert "did not answer" in applied.words
        assert len(receiver.received) <= 2


def test_a_receiver_that_is_not_there_fails_nothing(cli: Open) -> None:
    at = cli()
    applied = at.run("apply", "-auto-approve", notifying(at, "http://127.0.0.1:9/x"))
    assert applied.code == 0
    assert "The next apply" not in applied.out
    assert "the next apply, destroy or apply -watch sends it" in applied.words


@pytest.mark.parametrize("moment", ["before", "after"])
def test_killed_around_a_delivery_the_next_run_tells_it(
    cli: Open, receiver: Receiver, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from command_line import Killed

    from tpudeploy.features.notify import companion

    whole = delivery.deliver

    def dying(*words: Any, **options: Any) -> None:
        if moment == "after":
            whole(*words, **options)
        raise Killed

    at = cli()
    profile = notifying(at, receiver.url)
    monkeypatch.setattr(companion, "deliver", dying)
    with pytest.raises(Killed):
        at.run("apply", "-auto-approve", profile)
    monkeypatch.setattr(companion, "deliver", whole)
    assert at.run("apply", "-auto-approve", profile).code == 0
    assert len(receiver.events_of("serving")) == 1
    assert len(receiver.events) == (2 if moment == "after" else 1)
    assert at.run("apply", "-auto-approve", profile).code == 0
    assert len(receiver.events_of("serving")) == 1


@pytest.mark.parametrize("after", [20.0, 60.0, 200.0, 400.0, 560.0, 590.0])
def test_killed_anywhere_each_event_arrives(cli: Open, receiver: Receiver, after: float) -> None:
    at = cli()
    profile = notifying(at, receiver.url)
    at.left_or_killed(after, "apply", "-auto-approve", profile)
    assert at.run("apply", "-auto-approve", profile).code == 0
    at.left_or_killed(after / 4, "destroy", "-auto-approve", profile)
    assert at.run("destroy", "-auto-approve", profile).code == 0
    assert [len(receiver.events_of("serving")), len(receiver.events_of("ended"))] == [1, 1]


def test_a_command_gets_the_document_on_its_standard_input_without_a_shell(cli: Open, tmp_path: Path) -> None:
    at = cli()
    script, target = tmp_path / "take.py", tmp_path / "taken; rm -rf x.json"
    script.write_text(
        "import os, sys\n"
        "assert 'TPUDEPLOY_NOTIFY_KEY' not in os.environ\n"
        "open(sys.argv[1], 'ab').write(sys.stdin.buffer.read() + b'\\n')\n"
    )
    applied = at.run("apply", "-auto-approve", notifying(at, f"{sys.executable} {script} '{target}'"))
    assert applied.code == 0, applied.all
    (line,) = target.read_text().splitlines()
    assert json.loads(line)["event"] == "serving"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("python3 -c 'import time; time.sleep(60)'", "did not end within 0.5 s"),
        ("python3 -c 'raise SystemExit(3)'", "ended with 3"),
        ("/nonexistent/program", "cannot be run: No such file"),
    ],
)
def test_a_command_that_hangs_or_fails_is_ended_and_said(cli: Open, command: str, words: str) -> None:
    at = cli()
    at.patience = replace(at.patience, call_timeout=0.5)
    applied = at.run("apply", "-auto-approve", notifying(at, command))
    assert (applied.code, words in applied.words) == (0, True), applied.err


def test_an_untrusted_profile_notifies_nobody(cli: Open, receiver: Receiver, tmp_path: Path) -> None:
    at = cli()
    proof = tmp_path / "ran"
    at.write(f"{PROFILE}notify: ['{receiver.url}', 'touch {proof}']\n")
    applied = at.run("apply", "-auto-approve", "-untrusted", "gemma.yaml")
    assert applied.code == 0
    assert (receiver.received, proof.exists()) == ([], False)
    assert "The `notify` of gemma is left out: its author is untrusted." in applied.words


def test_the_operators_own_targets_are_told_of_every_deployment(
    cli: Open, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = cli()
    monkeypatch.setenv("TPUDEPLOY_NOTIFY", receiver.url)
    assert at.run("apply", "-auto-approve", "-untrusted", at.write()).code == 0
    assert at.run("destroy", "-auto-approve", "gemma").code == 0
    assert [each["event"] for each in receiver.events] == ["serving", "ended"]


def test_an_operators_target_with_a_password_or_without_encryption_is_left_out_and_not_quoted(
    cli: Open, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = cli()
    wrong = ("https://ada:swordfish@hooks.example/x", "http://hooks.example/x", "mail 'ada")
    monkeypatch.setenv("TPUDEPLOY_NOTIFY", "\n".join([*wrong, receiver.url]))
    applied = at.run("apply", "-auto-approve", at.write())
    assert applied.code == 0, applied.all
    for why in ("A URL to notify has a password", "A URL to notify is not encrypted", "has an open quote"):
        assert why in applied.words
    assert applied.words.count("A target in TPUDEPLOY_NOTIFY is left out") == len(wrong)
    assert "swordfish" not in applied.all
    assert [each["event"] for each in receiver.events] == ["serving"]


def test_a_plan_file_names_nobody_to_notify(cli: Open, receiver: Receiver) -> None:
    at = cli()
    profile = notifying(at, receiver.url)
    assert at.run("plan", "-out", "plan.json", profile).code == 0
    assert receiver.url not in (at.folder / "plan.json").read_text()
    applied = at.run("apply", "plan.json")
    assert (applied.code, receiver.received) == (0, [])
    assert "is left out: a plan file has no targets" in applied.words


def test_without_a_key_a_url_gets_nothing_and_the_run_says_how_to_set_one(
    cli: Open, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TPUDEPLOY_NOTIFY_KEY")
    at = cli()
    profile = notifying(at, receiver.url)
    applied = at.run("apply", "-auto-approve", profile)
    assert (applied.code, receiver.received) == (0, [])
    assert "there is no key that signs (notify_key, or TPUDEPLOY_NOTIFY_KEY)" in applied.words
    monkeypatch.setenv("TPUDEPLOY_NOTIFY_KEY", KEY)
    assert at.run("apply", "-auto-approve", profile).code == 0
    assert len(receiver.events_of("serving")) == 1


def test_the_key_may_be_a_secret_of_secret_manager(
    cli: Open, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TPUDEPLOY_NOTIFY_KEY")
    at = cli(denied_secrets=["no-such"])
    profile = at.write(f"{PROFILE}notify: ['{receiver.url}']\nnotify_key: hf-token\n")
    assert at.run("apply", "-auto-approve", profile).code == 0
    assert len(receiver.events_of("serving")) == 1
    at.write(f"{PROFILE}notify: ['{receiver.url}']\nnotify_key: no-such\n")
    destroyed = at.run("destroy", "-auto-approve", profile)
    assert (destroyed.code, "the key that signs cannot be read" in destroyed.words) == (0, True), destroyed.err


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("http://hooks.example/x", "not encrypted"),
        ("https://user:word@hooks.example/x", "has a password"),
        ("ftp://hooks.example/x", "not valid"),
        ("https:///x", "not valid"),
        ("python3 'notify.py", "open quote"),
        ("  ", "is empty"),
    ],
)
def test_a_target_that_cannot_be_used_is_an_error_with_its_place(cli: Open, target: str, message: str) -> None:
    at = cli()
    wrong = at.run("validate", notifying(at, target))
    assert (wrong.code, "TPU1348" in wrong.err, message in wrong.err, "^" in wrong.err) == (1, True, True, True), (
        wrong.all
    )


def test_what_waited_for_a_week_is_given_up_and_what_was_sent_is_remembered(cli: Open) -> None:
    with receiving(*[500] * 50) as receiver:
        at = cli()
        profile = notifying(at, receiver.url)
        at.run("apply", "-auto-approve", profile)
        assert len(outbox(at)["waiting"]) == 1
        at.write()
        at.clock.sleep(8 * 24 * HOUR)
        notifying(at, receiver.url)
        receiver.statuses.clear()
        at.run("destroy", "-auto-approve", profile)
        assert "ended" in {each["event"] for each in receiver.events}
        assert outbox(at)["waiting"] == []
