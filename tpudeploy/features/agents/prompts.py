"""Offer prompts: what to do for a wish that people have often, tool by tool, so that no agent has to invent the way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated

from pydantic import Field

from tpudeploy.domain.excerpt import plain

_MOST = 400  # characters of an argument: the rest is left out
ProfilePath = Annotated[str, Field(description="a profile's path inside the project")]
_CHANGE = """\
Show the person the plan's `text` and wait for their word. Then `apply` with its plan_id, and poll `operation` until it
ends. If `apply` is missing, this server only reads: tell them the command, `tpudeploy apply`."""


def why_slow(
    profile: ProfilePath, complaint: Annotated[str, Field(description="the complaint, if there is one")] = ""
) -> str:
    """Find what limits a running server, from its metrics, settings, log and benchmarks."""
    return f"""\
Find out why the server of the profile `{_quoted(profile)}` is slow.{_clause("The complaint", complaint)}
Change nothing, and put no load on it. Call, in this order, and stop when a figure explains it:

1. `status`: does it serve, since when, and is a change or a move under way?
2. `metrics`: a queue of waiting requests, a full KV cache, preemptions, time to first token and per output token.
3. `verify`: is a declared setting not in effect? Its `settings` are declared against effective.
4. `logs`: did it compile while it served, or start from a cold cache? `contains` finds lines by text.
5. `size`: does the KV cache hold the requests at the context that they have?
6. `runs`, then `compare`: was it faster before, and what differs in the settings?

Say which figure shows the cause, with its source, and what isn't known. End with one change worth a test, as a line of
the profile. `ab_propose` plans that test; it runs nothing.
"""


def make_cheaper(
    profile: ProfilePath, needs: Annotated[str, Field(description="what it has to achieve, if it is known")] = ""
) -> str:
    """Find a slice, a price or hours that cost less for the same work."""
    return f"""\
Find out how the deployment of the profile `{_quoted(profile)}` can cost less.{_clause("It has to achieve", needs)}
Change nothing before the person has chosen.

1. `cost` by day: what is spent, and what runs without an end?
2. `status` and `metrics`: is it used, and when? A server without requests needs `lifecycle.idle` or `lifecycle.hours`.
3. `zones`: the price per hour of each zone and provisioning model. Spot and flex-start cost less than on-demand; say
   what each risks.
4. `size` with sweep=true, then `recommend` with the users and sizes of its requests: a smaller slice that still fits.
5. `plan` with `set` for each choice, such as set=["tpu.type=v6e-1"]: it prices a change and changes nothing.

Give at most three choices, each with dollars per hour now and then, what it costs in speed, and whether that was
measured or predicted.
{_CHANGE}
"""


def roll_out_flag(
    profile: ProfilePath, setting: Annotated[str, Field(description="PATH=VALUE, e.g. serving.max_num_seqs=128")]
) -> str:
    """Check a setting, test it, apply it, and see that it is in effect."""
    return f"""\
Roll out the setting `{_quoted(setting)}` to the deployment of the profile `{_quoted(profile)}`.

1. `validate` and `size` with set=[the setting]: is it a key, and does the server still start with it?
2. `plan` with the same `set`: what restarts or is replaced, for how long, and at what price? A profile with `replicas`
   rolls one by one.
3. If the person wants proof first: `ab_propose` with flag=PATH=NOW,NEW, then `ab`. It restarts the server many times.
4. Write the setting into the profile's file: a plan with `set` applies once, and the next plan without it undoes it.
5. `plan` without `set`. {_CHANGE}
6. `verify`: the setting is in effect. `query`: it answers. `metrics`: no queue grows.

If a step fails, stop and say which. The way back is to restore the line and to plan again.
"""


# Each by its title, which a client shows in a menu.
PROMPTS: Mapping[str, Callable[..., str]] = {
    "Why is it slow?": why_slow,
    "Make it cheaper": make_cheaper,
    "Roll out this flag": roll_out_flag,
}


def _quoted(text: str) -> str:
    """Return an argument on one line, without what would end its quotation."""
    return " ".join(plain(text)[:_MOST].replace("`", "'").split())


def _clause(beginning: str, text: str) -> str:
    return f" {beginning}: `{_quoted(text)}`." if text.strip() else ""
