"""Profile: a valid profile, and where every written value of it came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from tpudeploy.config.origins import Origins
from tpudeploy.domain.diagnostics import Diagnostic, Location
from tpudeploy.domain.frozen import frozen

if TYPE_CHECKING:
    from tpudeploy.config.reader import Reader
    from tpudeploy.config.schema import ProfileSpec  # costs pydantic, and is only named here


@frozen
class Profile:
    """`spec` speaks the keys of the format; `spec.serving.model_fields_set` tells which of them were written.

    `origins` maps the dotted path of every written leaf, lists by index and as a whole, to the place that its final
    value came from: a file, an overlay, or `--set`. Whatever else the profile names is read by its `reader`, which
    opens no more for it than for the profile itself.
    """

    spec: ProfileSpec
    origins: Mapping[str, Location]
    warnings: tuple[Diagnostic, ...]
    reader: Reader | None = field(default=None, compare=False, repr=False)

    def reference(self, path: str) -> str | None:
        """Return `${env:NAME}` as it is written, where a part of the value at `path` came from the environment."""
        return self.origins.reference(path) if isinstance(self.origins, Origins) else None
