"""The end that a profile gives a deployment, and that it has come."""

from __future__ import annotations

from tpudeploy.domain.frozen import frozen


@frozen
class End:
    """When a deployment ends: `after_seconds` after it first serves, or at the time `at`, in seconds since the epoch.

    One of the two is None. `text` is as the profile writes it.
    """

    text: str
    after_seconds: float | None = None
    at: float | None = None


@frozen
class PastEnd:
    """That the end of a deployment has come: since when (`at`, in seconds since the epoch), and why.

    `fingerprint` is that of the profile that ended: a changed profile needs another approval, and starts again.
    """

    at: float
    why: str
    fingerprint: str
