"""The features, a folder each, and what type checkers read of them: public results and the methods of `Workspace`.

At run time, both come from the table of features (feature_table.py), as far as their folders are there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tpudeploy.features.alerts.operation import AlertFile as AlertFile
    from tpudeploy.features.alerts.operation import alerts as _alerts


class FeatureMethods:
    """The methods that features add to `Workspace`."""

    if TYPE_CHECKING:
        alerts = _alerts
