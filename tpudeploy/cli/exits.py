"""Define the exit codes that no error class defines."""

from __future__ import annotations

SUCCESS = 0
ERROR = 1
CHANGES = 2  # only with -detailed-exitcode
INTERRUPTED = 130
NOT_YET = 12  # the progress is saved; a re-run continues
