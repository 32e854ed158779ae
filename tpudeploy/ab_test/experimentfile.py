"""An experiment ↔ JSON: the format `tpudeploy.experiment/1`."""

from __future__ import annotations

from tpudeploy.domain.errors import RunUnreadable
from tpudeploy.domain.experiment import Experiment
from tpudeploy.serialization import sealed

FORMAT = "tpudeploy.experiment/1"


def dumps(of: Experiment) -> str:
    return sealed.dumps(of, FORMAT)


def loads(text: str, *, source: str) -> Experiment:
    """Raise `errors.RunUnreadable`; `source` names the file."""
    try:
        return sealed.loads(Experiment, text, FORMAT)
    except ValueError as cause:
        hint = "Begin another: `tpudeploy compare --ab`."
        raise RunUnreadable(f"{source} is no A/B that we can read: {cause}.", hint=hint) from cause
