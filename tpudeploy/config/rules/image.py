"""`serving.image`: a tag that moves is worth a warning."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tpudeploy.config import codes
from tpudeploy.config.diagnose import quoted, warning
from tpudeploy.config.nodes import MapNode, Path
from tpudeploy.config.rules import look
from tpudeploy.domain.diagnostics import Diagnostic

_IMAGE: Path = ("serving", "image")
_TAG = re.compile(r":([\w.-]+)$")


def floating_tag(root: MapNode) -> Iterator[Diagnostic]:
    image = look.value(root, _IMAGE, str) or ""
    tag = _TAG.search(image)
    # A tag that names a release has a number in it: v0.32.0, nightly-20260801.
    if not image or "@" in image or (tag and re.search(r"[0-9]", tag[1]) and not tag[1].startswith("latest")):
        return
    message = f"The tag {quoted(tag[1])} floats" if tag else "Without a tag the image is `latest`, which floats"
    hint = "name a release or a digest; else what it is at the first apply is held in tpudeploy.lock.json"
    yield warning(codes.FLOATING_IMAGE, message, look.at(root, _IMAGE), path=_IMAGE, hint=hint)
