"""Talk to a deployed model: a conversation at a terminal, one answer to what is piped in.

Without PROFILE, it's the one deployment of this folder that has an endpoint. /help lists what a line can do. Ctrl-C
stops an answer, Ctrl-D ends the conversation.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

from tpudeploy.adapters.vllm_client import BadAnswer, NoAnswer, VllmClient
from tpudeploy.cli import options
from tpudeploy.cli.context import AS_WRITTEN, Context
from tpudeploy.cli.error_report import report_error
from tpudeploy.cli.prompts import read_prompt
from tpudeploy.domain import exits
from tpudeploy.domain.errors import ConfigError, QueryFailed, UsageError
from tpudeploy.domain.task import TASKS
from tpudeploy.features.chat.conversation import Conversation, run_command, temperature_of
from tpudeploy.loading import Profile
from tpudeploy.node.serving import served_model
from tpudeploy.operations import argument_types
from tpudeploy.text.words import plain

_MOST_TOKENS = 65_536
_MOST_CHARACTERS = 1_000_000  # of one line
_TIMEOUT = 60.0
Answer = Callable[[Conversation, str], Conversation]


def arguments(parser: argparse.ArgumentParser) -> None:
    options.profile(parser, is_required=False)
    options.option(parser, "system", "The system prompt.", variable="chat-system", metavar="TEXT", default="")
    options.option(parser, "temperature", "0 to 2 (default: the server's own).", metavar="X", type=_temperature)
    options.option(
        parser, "model", "Another name that the server serves.", variable="chat-model", metavar="NAME", default=""
    )
    options.option(
        parser,
        "max-tokens",
        "The most tokens of an answer (default 1024).",
        variable="chat-max-tokens",
        metavar="N",
        type=_tokens,
        default=1024,
    )
    options.backend(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    if args.json:
        raise UsageError("A conversation has no JSON form.", hint="Use `tpudeploy query PROFILE PROMPT -json`.")
    path = args.profile or _only_profile(context)
    (profile,) = context.load([path], args)
    answer = _answerer(profile, path, args, context)
    conversation = Conversation(system=args.system, temperature=args.temperature)
    if not context.terminal.is_interactive:
        answer(conversation, read_prompt("-", context))
        return exits.SUCCESS
    context.terminal.data(f"{args.model or profile.model.id}. /help lists commands, Ctrl-D ends.")
    _converse(conversation, answer, context)
    return exits.SUCCESS


def _converse(conversation: Conversation, answer: Answer, context: Context) -> None:
    """Answer line by line until the end of input or /exit. An answer that fails doesn't end the conversation."""
    while True:
        line = _next_line(context)
        if line is None:
            return
        if not line:
            continue
        if line.startswith("/"):
            reply = run_command(conversation, line)
            if reply.ends:
                return
            conversation = reply.conversation
            context.terminal.data(reply.text)
            continue
        try:
            conversation = answer(conversation, line)
        except QueryFailed as error:
            report_error(context.terminal, error)


def _next_line(context: Context) -> str | None:
    """Return the next line, "" after Ctrl-C, None at the end of input."""
    terminal = context.terminal
    try:
        terminal.verbatim("> ", end="")
        line = terminal.stdin.readline(_MOST_CHARACTERS)
    except KeyboardInterrupt:
        terminal.verbatim("")
        return ""
    if not line:
        terminal.verbatim("")
        return None
    return line.strip()


def _answerer(profile: Profile, path: str, args: argparse.Namespace, context: Context) -> Answer:
    """Return the function that prints the answer to a question as it arrives, and returns the conversation with it."""
    workspace, terminal = context.workspace([path]), context.terminal
    deployment = workspace.deployment(profile, script=False)
    if not TASKS[deployment.task.task].completions:
        hint = "Use `tpudeploy query`."
        raise UsageError(f"{deployment.name} serves {TASKS[deployment.task.task].serves}.", hint=hint)
    url, key = str(workspace.confirmed_endpoint(profile)["url"]), workspace.adapters.probe.key(deployment)
    model = args.model or served_model(deployment)

    def answer(conversation: Conversation, question: str) -> Conversation:
        pieces: list[str] = []

        def print_piece(piece: str) -> None:
            pieces.append(piece)
            terminal.verbatim(plain(piece), end="")

        try:
            VllmClient(url, api_key=key, timeout=_TIMEOUT).converse(
                model,
                conversation.messages(question),
                max_tokens=args.max_tokens,
                now=workspace.adapters.clock.now,
                sampling=conversation.sampling,
                on_piece=print_piece,
            )
        except KeyboardInterrupt:
            terminal.verbatim(" (stopped)", end="")
        except (NoAnswer, BadAnswer) as cause:
            hint = "See `tpudeploy status` for what the machine says; /reset shortens a conversation that is too long."
            raise QueryFailed(f"{url} did not answer: {cause}.", hint=hint) from cause
        finally:
            if pieces:
                terminal.verbatim("")
        return conversation.with_answer(question, "".join(pieces))

    return answer


def _only_profile(context: Context) -> str:
    """Return the profile of this folder whose deployment has an endpoint. Raise `errors.UsageError` unless it's one."""
    names: list[str] = []
    for path in context.expand_folders(["."]):
        try:
            profile = context.read(path, AS_WRITTEN)
        except ConfigError:
            continue
        if context.workspace([path]).endpoint(profile.name) is not None:
            names.append(path)
    if len(names) == 1:
        return names[0]
    several = f"There are {len(names)} deployments with an endpoint here"
    message = several if names else "No deployment here has an endpoint"
    hint = f"Name one: tpudeploy chat {names[0]}" if names else "Run `tpudeploy apply PROFILE` first."
    raise UsageError(f"{message}.", hint=hint)


def _temperature(text: str) -> float:
    value = temperature_of(text)
    if value is None:
        raise argparse.ArgumentTypeError(f"`{text}` is no temperature; write a number from 0 to 2")
    return value


def _tokens(text: str) -> int:
    value = argument_types.count(text)
    if value > _MOST_TOKENS:
        raise argparse.ArgumentTypeError(f"`{text}`: an answer has at most {_MOST_TOKENS:,} tokens")
    return value
