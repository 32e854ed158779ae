"""Notify: whom a profile wants to be told what becomes of its deployment (`notify`)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Notify:
    """URLs and commands as the profile writes them. `secret` is the Secret Manager id of the key that signs, or "".

    `ignored` says why the targets of the profile are left out: then there are none.
    """

    targets: tuple[str, ...] = ()
    secret: str = ""
    ignored: str = ""


def ignoring(notify: Notify, why: str) -> Notify:
    """Return that these targets are left out, if there are any."""
    return Notify(ignored=why) if notify.targets else notify
