"""Profile: a valid profile, and where every written value of it came from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tpudeploy.domain.diagnostics import Diagnostic, Location
from tpudeploy.domain.frozen import frozen

if TYPE_CHECKING:
    from tpudeploy.config.schema import ProfileSpec  # costs pydantic, and is only named here


@frozen
class Profile:
    """`spec` speaks the keys of the format; `spec.serving.model_fields_set` tells which of them were written.

    `origins` maps the dotted path of every written leaf, lists by index and as a whole, to the place that its final
    value came from: a file, an overlay, or `--set`.
    """

    spec: ProfileSpec
    origins: Mapping[str, Location]
    warnings: tuple[Diagnostic, ...]
