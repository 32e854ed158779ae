"""Hugging Face's hub: the commit that a revision of a model is now. Gated or not, it tells everybody."""

from __future__ import annotations

import re
from hashlib import sha1
from typing import Any

from tpudeploy.domain.pins import EMULATED
from tpudeploy.emulator import wire
from tpudeploy.emulator.call import Call
from tpudeploy.emulator.cloud import Cloud

_COMMIT = re.compile(r"[0-9a-f]{40}")


def get(cloud: Cloud, call: Call) -> dict[str, Any]:
    """Raise Refusal for a model that is not there."""
    model, revision = call.query["model"], call.query["revision"]
    known = cloud.scenario.project.models
    if known is not None and model not in known:
        raise wire.refuse(16, "Invalid username or password.")  # what is private and what is not are one to strangers
    commit = sha1(f"{cloud.pushed(model)} {revision}".encode(), usedforsecurity=False).hexdigest()
    made = EMULATED + commit[len(EMULATED) :]
    return {"id": model, "sha": revision if _COMMIT.fullmatch(revision) else made}
