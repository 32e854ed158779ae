"""`chat`: a conversation at a real terminal, and one answer to what is piped in, against the emulator."""

from __future__ import annotations

import io
import sys

import pytest
from command_line import Open
from pseudo_terminal import END_OF_INPUT, person

from tpudeploy.features.chat.conversation import Conversation, run_command


def test_a_person_talks_to_the_only_deployment_of_a_folder(cli: Open) -> None:
    at = cli(nodes="simulated")
    profile = at.write()
    assert at.run("apply", "-auto-approve", profile).code == 0
    with person("chat", "-max-tokens", "12", folder=at.folder, environment={"NO_COLOR": "1"}) as user:
        user.waits_for("google/gemma-4-E2B-it. /help lists commands").types("/system Be brief.\n")
        user.waits_for("System prompt: Be brief.").types("/temperature 3\n")
        user.waits_for("write a number from 0 to 2").types("/temperature 0.5\n")
        user.waits_for("Temperature: 0.5").types("What is a TPU?\n")
        user.waits_for("What is a TPU?\n").waits_for("\n> ").types("/history\n")
        user.waits_for("> What is a TPU?\n").types("/nothing\n")
        user.waits_for("There is no command /nothing").types(END_OF_INPUT)
        assert user.stays_to_the_end() == 0


def test_what_is_piped_in_gets_one_answer(cli: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    at = cli(nodes="simulated")
    profile = at.write()
    assert at.run("apply", "-auto-approve", profile).code == 0
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"What is a TPU?\n")))
    answer = at.run("chat", profile, "-system", "Be brief.", "-temperature", "0", "-max-tokens", "8")
    assert answer.code == 0, answer.all
    assert answer.out.strip()
    assert ">" not in answer.out


def test_a_question_may_come_from_a_file_with_a_system_prompt(cli: Open) -> None:
    at = cli(nodes="simulated")
    profile = at.write()
    assert at.run("apply", "-auto-approve", profile).code == 0
    at.write("What is a TPU?\n", "question.txt")
    words = ("query", profile, "-max-tokens", "8", "-system", "Be brief.")
    assert at.run(*words, "-f", "question.txt").code == 0
    assert at.run(*words, "Summarize this.", "-f", "question.txt").code == 0
    assert at.run(*words, "Hello", "-model", "my-adapter").code == 0
    for file, message in (("absent.txt", "cannot be read"), ("empty.txt", "is empty")):
        at.write("\n", "empty.txt")
        refused = at.run(*words, "-f", file)
        assert refused.code == 1
        assert message in refused.err
    assert "There is no question" in at.run(*words).err


def test_without_an_endpoint_the_error_names_the_command(cli: Open) -> None:
    at = cli()
    at.write()
    refused = at.run("chat")
    assert refused.code == 1
    assert "No deployment here has an endpoint" in refused.err
    assert "tpudeploy apply PROFILE" in refused.err


def test_the_messages_of_a_request_are_the_conversation() -> None:
    conversation = Conversation(system="Be brief.").with_answer("a?", "A.").with_answer("b?", "")
    assert [message["content"] for message in conversation.messages("c?")] == ["Be brief.", "a?", "A.", "c?"]
    assert [message["role"] for message in conversation.messages("c?")] == ["system", "user", "assistant", "user"]
    assert run_command(conversation, "/undo").conversation.turns == ()
    assert run_command(conversation, "/reset").conversation == Conversation(system="Be brief.")
    assert run_command(conversation, "/temperature").conversation.sampling == {}
    assert run_command(conversation, "/temperature nan").conversation == conversation
    assert run_command(conversation, "/exit").ends
