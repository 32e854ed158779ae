"""The exit codes of the command line. Errors and results name theirs."""

from __future__ import annotations

SUCCESS = 0
ERROR = 1
CHANGES = 2  # `drift`, and `plan` with -detailed-exitcode
LOCKED = 10  # another run holds the state
OTHER_PLAN = 11  # than the one that was approved
NOT_YET = 12  # the progress is saved; a re-run continues
CHECK_FAILED = 13
BUG = 70
INTERRUPTED = 130
