"""The end of a deployment as its machines read it in their metadata: when, and what to delete (boot/end.sh)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from tpudeploy.catalog.backends import BACKENDS
from tpudeploy.domain.deployment import Deployment, Place
from tpudeploy.domain.ending import End, EndCause
from tpudeploy.domain.hours import closing_after

END_KEY = "tpudeploy-end"
NO_END = "never"
_BY_OTHERS, _COUNTED = "-", "~"
# The id of the request by which a machine deletes itself (own_request_id in templates/boot/end.sh): a UUID with our
# name, the number of the key, the minutes for which it was idle, and the second of the request. Compute Engine shows it
# in the list of operations; the operations of the TPU API have no such field.
_OWN_REQUEST = re.compile(r"74707564-6570-4(?P<key>[1-3])00-8(?P<minutes>[0-9a-f]{3})-[0-9a-f]{12}")


def end_value(deployment: Deployment, name: str, place: Place, *, since: float | None, now: float | None) -> str:
    """Return `WHEN,WHEN URL KEY: TEXT; KEY: TEXT` for the slice of this name, a WHEN for each key; or `never`.

    WHEN is in seconds since the epoch; `+SECONDS` counts from when the machine first serves, which is so before the
    deployment has served (`since` is None); `~SECONDS` from the last request that it served, and `~` alone says to
    report when that was; `-` is an end that others bring, and so are hours in a text for which there is no `now`. TEXT
    is the value of the key in the profile.
    """
    ends = dict(_ends(deployment, since, now))
    if not ends:
        return NO_END
    request, _ = BACKENDS[place.backend].deletion_of(deployment.accelerator.hosts)
    url = request.format(project=deployment.project or "", zone=place.zone, region=place.zone.region, name=name)
    whens, texts = ",".join(when for when, _ in ends.values()), (f"{key}: {text}" for key, (_, text) in ends.items())
    return f"{whens} {url} {'; '.join(texts)}"


def _ends(deployment: Deployment, since: float | None, now: float | None) -> Iterator[tuple[EndCause, tuple[str, str]]]:
    """Yield each key of an end, with its WHEN and its TEXT."""
    lifecycle = deployment.lifecycle
    if lifecycle.end is not None:
        yield EndCause.END, (_when(lifecycle.end, since), lifecycle.end.text)
    if lifecycle.idle is not None:
        seconds = f"{lifecycle.idle.seconds:.0f}" if sees_all_requests(deployment) else ""
        yield EndCause.IDLE, (f"{_COUNTED}{seconds}", lifecycle.idle.text)
    if lifecycle.hours is not None:
        # What is requested before its hours, and granted in them, ends with them.
        closing = _BY_OTHERS if now is None else f"{closing_after(lifecycle.hours, now):.0f}"
        yield EndCause.HOURS, (closing, lifecycle.hours.text)


def sees_all_requests(deployment: Deployment) -> bool:
    """Return whether a machine can know that its deployment is idle: one of several sees a part of the requests."""
    return deployment.replicas == 1 and deployment.scale is None


def ends_in(value: str) -> Mapping[str, str]:
    """Return the keys of the profile in what the metadata have, and their values; none for no end."""
    texts = value.split(" ", 2)[2:]
    return dict(entry.split(": ", 1) for text in texts for entry in text.split("; ") if ": " in entry)


def counts_from_service(value: str) -> bool:
    """Return whether a machine with this in its metadata counts its end from when it first served."""
    return any(when.startswith("+") for when in value.partition(" ")[0].split(","))


def cause_in_request_id(request_id: str) -> tuple[EndCause, int] | None:
    """Return why a machine deleted itself with this id, and for how many minutes it was idle; or None."""
    match = _OWN_REQUEST.fullmatch(request_id.lower())
    return None if match is None else (tuple(EndCause)[int(match["key"]) - 1], int(match["minutes"], 16))


def _when(end: End, since: float | None) -> str:
    if end.at is not None:
        return f"{end.at:.0f}"
    seconds = end.after_seconds or 0.0
    return f"+{seconds:.0f}" if since is None else f"{since + seconds:.0f}"
